"""Parts that the texts and the plain data of the experiments share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from .._core import __version__
from ..report.encoding import encode_value
from ..report.text import align_rows as aligned

__all__ = ["FORMAT", "aligned", "make_record_head"]

FORMAT = "dpcore.experiment/1"


def make_record_head(name: str, result: Any) -> dict[str, Any]:
    """Return the head of an experiment's JSON: format, name, version and configuration."""
    config = {f.name: encode_value(getattr(result.config, f.name)) for f in fields(result.config)}
    return {
        "format": FORMAT,
        "experiment": name,
        "version": __version__,
        "config": {**config, "seed": str(result.config.seed)},
        "partial": result.partial,
        "seconds": result.seconds,
    }
