"""Readers of files, which determine the columns and the types of their cells."""
