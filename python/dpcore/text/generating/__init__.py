"""Corpora made of templates, for tests and where no data are."""

from .generator import GENERATED, generated

__all__ = ["GENERATED", "generated"]
