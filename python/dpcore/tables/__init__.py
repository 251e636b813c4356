"""Exact audit of a mechanism that is given as a table of its output probabilities."""
