"""Command line interface: `dpcore audit`, `dpcore reproduce` and `dpcore info`."""

from .app import app, main

__all__ = ["app", "main"]
