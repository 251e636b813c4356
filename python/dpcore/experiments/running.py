"""What the experiments share: seeds of cells, the loop over audits, text tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._core import __version__
from ..attacks import MajorityVote
from ..auditing.run import Audit, audit
from ..errors import confidence_level, count, integer, invalid, mistyped
from ..mechanisms import Native
from ..progress import Progress
from ..records import Pair
from ..report import encoding as _json

FORMAT = "dpcore.experiment/1"
SEED = 2022
"""The seed of the published files: the year of the paper."""


@dataclass(frozen=True, slots=True)
class Job:
    """One audit of an experiment.

    Args:
        mechanism: what is audited.
        pair: its two inputs.
        claim: the epsilon tested.
        key: names the cell; its seed follows from it.
    """

    mechanism: Native
    pair: Pair
    claim: float
    key: str


def cell_seed(seed: int, key: str) -> int:
    """The seed of one cell: a function of the experiment's seed and the cell's name alone.

    A part of a grid therefore repeats the whole grid's cells, in any order, and no two cells
    share their random numbers.

    Args:
        seed: seed of the experiment, at least 0.
        key: name of the cell.

    Returns:
        An int in [0, 2**63).

    Source:
        numpy.random.SeedSequence with the name as its spawn key.

    Example:
        >>> cell_seed(1, "a") == cell_seed(1, "a"), cell_seed(1, "a") == cell_seed(1, "b")
        (True, False)
    """
    sequence = np.random.SeedSequence(seed, spawn_key=tuple(key.encode()))
    return int(sequence.generate_state(1, np.uint64)[0]) >> 1


def check(config: Any) -> None:
    """Check the fields that every `Config` has, and store them as plain numbers."""
    object.__setattr__(config, "trials", count("trials", config.trials))
    object.__setattr__(config, "seed", integer("seed", config.seed, 0, 2**63 - 1))
    if hasattr(config, "confidence"):
        object.__setattr__(config, "confidence", confidence_level(config.confidence))


def own(config: Any, module: str) -> None:
    """Check that a configuration is that of the experiment whose folder this module is in."""
    # By name: whoever replaces the class to change a default still runs the same experiment.
    if type(config).__module__ != module:
        raise mistyped("config", f"a Config of {module.rpartition('.')[0]}", config)


def listed(name: str, values: Any, checked: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Check a list without repetition, entry by entry, and return it as a tuple."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise mistyped(name, "a list or tuple", values)
    found = tuple(map(checked, values))
    if not found or len(set(found)) < len(found):
        raise invalid(name, "not empty and without repetition", values)
    return found


def run_audits(
    label: str, jobs: Sequence[Job], config: Any, threads: int | None, progress: bool | None
) -> tuple[tuple[Audit, ...], bool]:
    """Audit every job in turn.

    Args:
        label: what the bar says.
        jobs: the audits.
        config: has `trials`, `seed` and `confidence`.
        threads: number of threads, None for all cores.
        progress: show a bar, None where somebody is looking.

    Returns:
        The audits of the first jobs, and True if Ctrl-C ended the loop; the last audit may then
        be partial itself.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.
    """
    done: list[Audit] = []
    with Progress(label, sum(job.pair.x.size for job in jobs), progress) as bar:
        try:
            for job in jobs:
                done.append(_audit(job, config, threads))
                if done[-1].partial:
                    break
                bar.advance(job.pair.x.size)
        except KeyboardInterrupt:
            if not done:
                raise
    return tuple(done), len(done) < len(jobs) or done[-1].partial


def _audit(job: Job, config: Any, threads: int | None) -> Audit:
    return audit(
        job.mechanism,
        job.pair,
        # The experiments remake what the reconstruction attack of the papers sees.
        attack=MajorityVote(),
        claim=job.claim,
        trials=config.trials,
        confidence=config.confidence,
        rng=cell_seed(config.seed, job.key),
        threads=threads,
        progress=False,
    )


def record(name: str, result: Any) -> dict[str, Any]:
    """What every experiment's JSON begins with: format, name, version, configuration."""
    config = {f.name: _json.encode(getattr(result.config, f.name)) for f in fields(result.config)}
    return {
        "format": FORMAT,
        "experiment": name,
        "version": __version__,
        "config": {**config, "seed": str(result.config.seed)},
        "partial": result.partial,
        "seconds": result.seconds,
    }


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Rows of text as a table, columns two spaces apart.

    Args:
        rows: the cells, every row equally long.
        left: columns set flush left; the others are flush right.

    Returns:
        Lines of text without trailing blanks.

    Example:
        >>> print(aligned([("a", "1"), ("bc", "10")]))
        a    1
        bc  10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
