"""Audits of noise layers behind an encoder of texts: claims that hold, and faults found.

A small encoder, a transform that bounds its vectors, and noise: layers that are right, faults of
published code, and the repair of each, in both dtypes. A fault is certified beyond its claim or
flagged by the inspection of its structure, a repair neither. Rounding is a separate
matter: it concerns the floats that a layer returns, not the law of its noise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...auditing.run import Audit, audit
from ...errors import choice, instance, integer, real
from ...records import Counts, Shown
from ...streams import threads_of
from ...structure import inspect
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .cases import CASES, PAIR, Case, put_behind_encoder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "noise-layers"
DTYPES = ("float32", "float64")
_CASES_BY_NAME = {case.name: case for case in CASES}
_INSPECTION_DRAWS = 4096
"""Outputs in each of the two main calls of an inspection: with half of them 24 bits are missed."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the layers, and the number and size of audits.

    Args:
        trials: draws on each side of every audit.
        seed: int in [0, 2**63); every audit gets its own seed derived from it.
        seeds: audits of each layer, of which mean and spread are shown.
        device: where encoder and noise run, such as "cpu".
        epsilon: the claim.
        confidence: probability that a bound holds, for each bound on its own.
        layers: names of the layers, in order; all of them by default.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="2e4", layers=("LaplaceNoise",)).trials
        20000
    """

    trials: int = 10**5
    seed: int = SEED
    seeds: int = 3
    device: str = "cpu"
    epsilon: float = 1.0
    confidence: float = 0.95
    layers: tuple[str, ...] = tuple(_CASES_BY_NAME)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        instance("device", self.device, str)
        object.__setattr__(self, "seeds", integer("seeds", self.seeds, 1))
        level = real("epsilon", self.epsilon, low=0.0, open_low=True)
        object.__setattr__(self, "epsilon", level)
        names = check_list(
            "layers", self.layers, lambda name: choice("layers", name, tuple(_CASES_BY_NAME))
        )
        object.__setattr__(self, "layers", names)


@dataclass(frozen=True, slots=True, repr=False)
class Found(Shown):
    """Figures of one audit: two runs of it are equal, although their modules differ.

    Args:
        seed: repeats it.
        counts: of its event.
        event: in words.
        refuted: True if the claim was refuted.
        certified: the certified bound.
        rounding: what the low-order bits of the outputs certify, 0 where they show nothing.
        exact: the exact loss of the pair, computed from the declared noise.
        partial: True if Ctrl-C ended it early.
    """

    seed: int
    counts: Counts
    event: str
    refuted: bool
    certified: float
    rounding: float
    exact: float
    partial: bool

    @classmethod
    def of(cls, audit: Audit) -> Found:
        """Collect the figures of an audit."""
        loss, floats = audit.declared_loss, audit.floating_point
        assert loss is not None
        return cls(
            audit.seed,
            audit.counts,
            str(audit.event),
            audit.refuted is True,
            audit.epsilon_lower,
            0.0 if floats is None else floats.epsilon_lower,
            float(loss),
            audit.partial,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One layer in one dtype.

    Args:
        layer: its name.
        dtype: "float32" or "float64".
        audits: one for each seed.
        flags: checks of the structure that found a fault.
    """

    layer: str
    dtype: str
    audits: tuple[Found, ...]
    flags: tuple[str, ...]

    @property
    def case(self) -> Case:
        """Transform, noise and claim of the layer."""
        return _CASES_BY_NAME[self.layer]

    @property
    def faulty(self) -> bool:
        """True if the layer has a fault in this dtype."""
        return self.dtype in self.case.faulty

    @property
    def exact(self) -> float:
        """The exact loss of the pair, computed from the declared noise."""
        return self.audits[0].exact

    @property
    def certified(self) -> tuple[float, ...]:
        """The certified bounds."""
        return tuple(one.certified for one in self.audits)

    @property
    def rounding(self) -> tuple[float, ...]:
        """Certified bounds from the low-order bits of the outputs."""
        return tuple(one.rounding for one in self.audits)

    @property
    def beyond(self) -> bool:
        """True if an audit refuted the claim."""
        return any(one.refuted for one in self.audits)

    @property
    def caught(self) -> bool:
        """True if the claim was refuted or the structure flagged."""
        return self.beyond or bool(self.flags)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit and inspect every layer.

    Args:
        config: what to audit, and how long.
        threads: of torch, None for 1: its tensors are small here.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each layer and dtype.

    Raises:
        ModuleNotFoundError: without torch; it says what to install.
        ValueError: if there is no such device.
        KeyboardInterrupt: on Ctrl-C before anything was counted.

    Source:
        The faults: Beigi et al. (2019), Lyu, He and Li (2020) and Krishna, Gupta and Dupuy (2021);
        see Habernal (2021) and Habernal (2022).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     config = Config(trials=10**4, seeds=1, layers=("SharedNoise",))
        ...     assert all(row.caught for row in run(config).rows)
    """
    require_own_config(config, __name__)
    from ...torch.mechanisms import device_of

    device_of(config.device)
    begun = time.perf_counter()
    jobs = [
        (name, dtype, number)
        for name in config.layers
        for dtype in DTYPES
        for number in range(config.seeds)
    ]
    done, partial = run_jobs(
        "noise layers",
        jobs,
        lambda job: _audit_and_inspect(config, *job),
        progress,
        ended=lambda one: one[0].partial,
    )
    found: dict[tuple[str, str], list[tuple[Found, tuple[str, ...]]]] = {}
    for (name, dtype, _), one in zip(jobs, done, strict=False):
        found.setdefault((name, dtype), []).append(one)
    rows = tuple(
        Row(*key, tuple(one for one, _ in ones), ones[0][1]) for key, ones in found.items()
    )
    return Result(config, rows, partial, time.perf_counter() - begun)


@contextmanager
def _torch_threads(threads: int) -> Iterator[None]:
    from ...torch.needed import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads_of(threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _audit_and_inspect(
    config: Config, name: str, dtype: str, number: int
) -> tuple[Found, tuple[str, ...]]:
    """Run one audit, and inspect the layer at its first audit."""
    case, key = _CASES_BY_NAME[name], f"{name}/{dtype}/{number}"
    private = put_behind_encoder(case, config.epsilon, dtype, config.device)
    seed = cell_seed(config.seed, key)
    flags: tuple[str, ...] = ()
    if number == 0:
        clean = private.clean([PAIR[0]])[0]
        flags = inspect(
            private.noise, clean, draws=_INSPECTION_DRAWS, rng=seed, skip=case.skip
        ).flagged
    found = audit(
        private,
        PAIR,
        claim=config.epsilon,
        delta=case.delta,
        trials=config.trials,
        confidence=config.confidence,
        rng=seed,
        progress=False,
    )
    return Found.of(found), flags


def compute_mean_sd(values: tuple[float, ...]) -> tuple[float, float]:
    """Compute the mean and the standard deviation, which is 0 for a single value."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The audits, layer by layer.

    Args:
        config: the options of the run.
        rows: one for each layer and dtype.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def agreement(self) -> tuple[int, int, int, int]:
        """Count the faults and the layers without fault that were caught.

        Returns:
            Faults caught, faults, layers without fault that were caught, layers without fault.
        """
        faults = [row.caught for row in self.rows if row.faulty]
        right = [row.caught for row in self.rows if not row.faulty]
        return sum(faults), len(faults), sum(right), len(right)

    def table(self) -> str:
        """Return the figures as text, then the fault of each faulty layer."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds and the claim, a line for each layer and dtype.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
