"""Sampling of outputs, counts on them, and checks that rows and coordinates are independent."""
