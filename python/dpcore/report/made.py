"""Provenance of a result as rows of text."""

from __future__ import annotations

from ..results.provenance import Provenance


def list_run_rows(provenance: Provenance) -> list[tuple[str, str]]:
    """List the rows (label, text) of one run, without its source text."""
    cores = f"{provenance.cores:,} core{'s' if provenance.cores != 1 else ''}"
    machine = (provenance.cpu, cores, provenance.system, provenance.architecture)
    rows = [
        ("begun", provenance.date),
        ("command", provenance.command),
        ("source", provenance.origin),
        ("SHA-256", provenance.sha256),
        ("versions", ", ".join(" ".join(each) for each in provenance.versions)),
        ("machine", ", ".join(part for part in machine if part)),
    ]
    return [(label, text) for label, text in rows if text]
