"""Readers of files with outputs, which determine the types of the columns."""
