"""The choice of a score and a threshold, and the grids that outputs are rounded to."""
