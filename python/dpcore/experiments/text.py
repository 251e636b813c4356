"""Parts that the texts and the plain data of the experiments share."""

from __future__ import annotations

import statistics
from dataclasses import asdict, fields
from typing import Any

from .._core import __version__
from ..report.encoding import encode_value
from ..report.text import align_rows as aligned

__all__ = ["FORMAT", "aligned", "encode_fields", "make_record_head", "write_mean"]

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


def encode_fields(cell: Any) -> dict[str, Any]:
    """Return the fields of a record as plain data, those of records inside too."""
    return {
        name: {key: encode_value(one) for key, one in value.items()}
        if isinstance(value, dict)
        else encode_value(value)
        for name, value in asdict(cell).items()
    }


def write_mean(values: Any, digits: int = 3) -> str:
    """Return a mean, and in brackets the standard deviation where there is one."""
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"
