"""Command line interface of dpcore, with commands such as `dpcore audit`."""

from .app import app, main

__all__ = ["app", "main"]
