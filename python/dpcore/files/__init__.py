"""Readers of files: which columns there are, and what each of their cells holds."""
