"""Exact audit of a mechanism with finitely many inputs and outputs, from its probability table."""
