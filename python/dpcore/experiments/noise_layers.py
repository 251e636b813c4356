"""Audits of noise layers behind an encoder of texts: claims that hold, and faults found.

A small encoder, a transform that bounds its vectors, and noise: layers that are right, faults of
published code, and the repair of each, in both dtypes. A fault is certified beyond its claim or
flagged by the inspection of its structure, a repair neither. Rounding is a separate
matter: it concerns the floats that a layer returns, not the law of its noise.
"""

from __future__ import annotations

import math
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..auditing.run import audit
from ..errors import choice, instance, integer, real
from ..records import Counts, Shown
from ..report.encoding import encode_float
from ..report.figures import BLUE, GREY, INK, RED, WHITE, apply_style
from ..report.text import align_rows, format_epsilon
from ..results.audits import Audit
from ..streams import threads_of
from ..structure import inspect
from .presentation import SMALL, TEXT, make_canvas, make_record_head, tidy_axes
from .running import SEED, Tabled, cell_seed, check_config, check_list, require_own_config, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "noise-layers"

WIDTH = 32
"""Entries of a vector."""
_HASH_PLACES = 64
"""Places that words are hashed to."""
DELTA = 1e-5
"""The delta of the Gaussian claim."""

PAIR = ("he has cancer and lives in this town", "she won the match in the last minute")
"""The two texts: any two are neighbours."""

DTYPES = ("float32", "float64")

_INSPECTION_DRAWS = 4096
"""Outputs in each of the two main calls of an inspection: with half of them 24 bits are missed."""


@dataclass(frozen=True, slots=True, repr=False)
class Case(Shown):
    """A transform with noise behind it, and the claim.

    Args:
        name: what the table calls it.
        transform: given `dpcore.torch`, what bounds the vectors.
        noise: given `dpcore.torch` and the epsilon claimed, the noise layer, or the name by which
            `PrivateEncoder` makes one.
        faulty: the dtypes in which it has its fault; empty for a layer that is right.
        repair: for one with a fault, the name of the case without it.
        delta: of the claim.
        skip: checks of the structure that are not made: what they find is meant.
        what: the fault in one line.
    """

    name: str
    transform: Callable[[Any], Any]
    noise: Callable[[Any, float], Any]
    faulty: tuple[str, ...] = ()
    repair: str = ""
    delta: float = 0.0
    skip: tuple[str, ...] = ()
    what: str = ""


def encode_in_dtype(texts: list[str], dtype: Any, device: Any) -> Any:
    """Encode texts: hash words to 64 signed counts, then apply a fixed linear layer.

    This is a small encoder for the experiment.

    Args:
        texts: the texts.
        dtype: of the vectors.
        device: where they are.

    Returns:
        A tensor of shape `(texts, 32)`.
    """
    from ..packages import torch

    weight = torch.randn(
        _HASH_PLACES, WIDTH, generator=torch.Generator().manual_seed(WIDTH), dtype=torch.float64
    )
    counts = torch.zeros(len(texts), _HASH_PLACES, dtype=torch.float64)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            place, sign = divmod(zlib.crc32(word.encode()), 2)
            counts[row, place % _HASH_PLACES] += 2 * sign - 1
    return (counts @ weight).to(device, dtype)


def put_behind_encoder(case: Case, epsilon: float, dtype: str, device: str) -> Any:
    """Put a layer behind the encoder.

    Args:
        case: which layer.
        epsilon: the claim.
        dtype: "float32" or "float64".
        device: such as "cpu".
    """
    from .. import torch as bridge
    from ..packages import torch

    kind = getattr(torch, dtype)
    private = bridge.PrivateEncoder(
        lambda texts: encode_in_dtype(texts, kind, device),
        case.transform(bridge),
        epsilon=epsilon,
        delta=case.delta,
        noise=case.noise(bridge, epsilon),
        strict=not case.faulty,
    )
    return private.to(device)


def _make_torch_laplace(bridge: Any, scale: float) -> Any:
    """Make Laplace noise by torch's own distribution in the dtype of the input, as is usual."""
    from ..packages import torch

    class TorchLaplace(bridge.LaplaceNoise):  # type: ignore[misc]
        """`torch.distributions.Laplace`, of the same declared scale."""

        def forward(self, x: Any, generator: Any = None) -> Any:
            zero = torch.zeros((), dtype=x.dtype, device=x.device)
            return x + torch.distributions.Laplace(zero, zero + self.scale).sample(x.shape)

    return TorchLaplace(scale)


CASES: tuple[Case, ...] = (
    Case("LaplaceNoise", lambda t: t.Clip("l1", 1.0), lambda t, e: "laplace"),
    Case(
        "torch's Laplace",
        lambda t: t.Clip("l1", 1.0),
        lambda t, e: _make_torch_laplace(t, 2.0 / e),
        ("float32",),
        "LaplaceNoise",
        what="24 random bits in float32: few values in the tail",
    ),
    Case(
        "DPTextNoise, zero",
        lambda t: t.Clip("l1", 1.0),
        lambda t, e: t.DPTextNoise(2.0 / e),
        DTYPES,
        "LaplaceNoise",
        what="never below the input, and often equal to it",
    ),
    Case(
        "DPTextNoise, resample",
        lambda t: t.Clip("l1", 1.0),
        lambda t, e: t.DPTextNoise(2.0 / e, "resample"),
        DTYPES,
        "LaplaceNoise",
        what="never below the input",
    ),
    Case("L1 scale, L2 clip", lambda t: t.Clip("l2", 1.0), lambda t, e: "laplace"),
    Case(
        "L2 scale, L2 clip",
        lambda t: t.Clip("l2", 1.0),
        lambda t, e: t.LaplaceNoise(2.0 / e),
        DTYPES,
        "L1 scale, L2 clip",
        what="ADePT: Laplace noise for a distance in L2 is too small by sqrt(32)",
    ),
    Case("MinMax, scale 32", lambda t: t.MinMax(), lambda t, e: "laplace"),
    Case(
        "MinMax, scale 1",
        lambda t: t.MinMax(),
        lambda t, e: t.LaplaceNoise(1.0 / e),
        DTYPES,
        "MinMax, scale 32",
        what="DPNR: each of 32 entries moves by 1, not all of them together",
    ),
    Case(
        "SharedNoise",
        lambda t: t.MinMax(),
        lambda t, e: t.SharedNoise(1.0 / e),
        DTYPES,
        "MinMax, scale 32",
        what="DPNR's code: one draw for a whole row",
    ),
    Case("GaussianNoise", lambda t: t.Clip("l2", 1.0), lambda t, e: "gaussian", delta=DELTA),
    Case(
        "L2LaplaceNoise",
        lambda t: t.Clip("l2", 1.0),
        lambda t, e: "l2_laplace",
        skip=("shared_size",),
    ),
)
"""Every layer, faults beside their repairs."""

_CASES_BY_NAME = {case.name: case for case in CASES}


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
    from ..torch.mechanisms import device_of

    device_of(config.device)
    begun = time.perf_counter()
    jobs = [
        (name, dtype, number)
        for name in config.layers
        for dtype in DTYPES
        for number in range(config.seeds)
    ]
    with _torch_threads(1 if threads is None else threads):
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
    """Set the number of torch's threads within a block."""
    from ..packages import torch

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
        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds and the claim, a line for each layer and dtype.

        Returns:
            A matplotlib figure.
        """
        return draw_figure(self, ax)


def write_table(result: Result) -> str:
    """Format the figures, then the fault of each faulty layer."""
    config = result.config
    several = f", mean and spread of {config.seeds} seeds" if config.seeds > 1 else ""
    head = ("layer", "dtype", "", "claim", "exact loss", "certified", "rounding", "flags")
    parts = [
        f"Noise layers behind an encoder of texts: {config.trials:,} trials a side, seed "
        f"{config.seed}{several},\neach bound at {100 * config.confidence:g} % confidence on its "
        "own; two texts, a made-up encoder (words hashed to 32 numbers)"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts.append(
        align_rows(
            [head, *(_format_layer_row(row, config.epsilon) for row in result.rows)],
            left=(0, 1, 2, 7),
        )
    )
    caught, faults, wrong, right = result.agreement()
    parts.append(
        f"{caught} of {faults} faults certified beyond the claim or flagged, {wrong} of {right} "
        "layers without fault."
    )
    shown = {row.layer for row in result.rows}
    told = [
        (case.name, f"{case.what}; repaired: {case.repair}")
        for case in CASES
        if case.name in shown and case.faulty
    ]
    if told:
        parts.append("Faults:\n" + align_rows(told, left=(0, 1)))
    return "\n\n".join(parts)


def _format_layer_row(row: Row, level: float) -> tuple[str, ...]:
    claim = f"{level:g}"
    if row.case.delta:
        claim = f"({claim}, {row.case.delta:g})"
    return (
        row.layer,
        row.dtype,
        "fault" if row.faulty else "",
        claim,
        format_epsilon(row.exact),
        _format_mean_and_sd(row.certified),
        _format_mean_and_sd(row.rounding),
        ", ".join(row.flags) or "-",
    )


def _format_mean_and_sd(values: tuple[float, ...]) -> str:
    mean, wide = compute_mean_sd(values)
    if mean == 0.0:
        return "0"
    return f"{mean:.2f} +- {wide:.2f}" if len(values) > 1 else f"{mean:.2f}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [
        {
            "layer": row.layer,
            "dtype": row.dtype,
            "fault": row.case.what if row.faulty else "",
            "repair": row.case.repair if row.faulty else "",
            "claim": result.config.epsilon,
            "delta": row.case.delta,
            "exact": encode_float(row.exact),
            "certified": [encode_float(value) for value in row.certified],
            "rounding": [encode_float(value) for value in row.rounding],
            "mean": encode_float(compute_mean_sd(row.certified)[0]),
            "spread": encode_float(compute_mean_sd(row.certified)[1]),
            "flags": list(row.flags),
            "counts": [
                [getattr(audit.counts, name) for name in ("k", "n", "k_prime", "n_prime")]
                for audit in row.audits
            ],
            "seeds": [str(audit.seed) for audit in row.audits],
            "events": [audit.event for audit in row.audits],
        }
        for row in result.rows
    ]
    names = ("faults_caught", "faults", "others_caught", "others")
    agreement = dict(zip(names, result.agreement(), strict=True))
    return {
        **make_record_head(NAME, result),
        "pair": list(PAIR),
        "rows": rows,
        "agreement": agreement,
    }


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds as bars, exact losses as diamonds or arrows, the claim as a line."""
    rows = sorted(result.rows, key=lambda row: row.faulty)
    claim = result.config.epsilon
    picture = make_canvas(1.1 + 0.2 * len(rows), ax)
    axes = picture.subplots()
    largest = [compute_mean_sd(row.certified)[0] for row in rows]
    exact = [row.exact for row in rows if math.isfinite(row.exact)]
    right = 1.3 * max([2.0 * claim, *largest, *exact])
    for place, row in enumerate(reversed(rows)):
        _draw_layer(axes, place, row, claim, right)
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=2.5)
    split = sum(row.faulty for row in rows)
    if 0 < split < len(rows):
        axes.axhline(split - 0.5, color=GREY, linewidth=0.6)
    axes.set(xlim=(0.0, right), ylim=(-0.7, len(rows) - 0.3))
    axes.set_yticks(range(len(rows)), [f"{row.layer}, {row.dtype}" for row in reversed(rows)])
    label = "privacy loss epsilon of two texts; a made-up encoder (words hashed to 32 numbers)"
    axes.set_xlabel(label, fontsize=TEXT)
    spots = (("layers and repairs", (split + len(rows)) / 2), ("faults", split / 2))
    for text, middle in spots if 0 < split < len(rows) else ():
        transform = axes.get_yaxis_transform()
        axes.text(
            1.02, middle - 0.5, text, transform=transform, rotation=270, va="center", fontsize=SMALL
        )
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)
    picture.legend(
        handles=_make_layer_legend(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_layer(axes: Axes, place: int, row: Row, claim: float, right: float) -> None:
    mean, wide = compute_mean_sd(row.certified)
    colour = RED if row.beyond else BLUE
    axes.barh(place, mean, height=0.6, color=colour, xerr=wide or None, ecolor=INK)
    if math.isfinite(row.exact):
        style: dict[str, Any] = {"markeredgecolor": WHITE, "markeredgewidth": 0.7}
        axes.plot([row.exact], [place], "D", color=INK, markersize=4.5, zorder=3, **style)
    else:
        tip = {"arrowstyle": "-|>", "color": INK, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (right, place), (0.95 * right, place), arrowprops=tip)
    if row.flags:
        note = f"flagged: {', '.join(row.flags)}"
        # In a long bar, or else right of all marks.
        inside = mean > 0.6 * right
        marks = (claim, mean + wide, row.exact if math.isfinite(row.exact) else 0.0)
        at = claim if inside else max(marks)
        colour = WHITE if inside else INK
        axes.text(at + 0.015 * right, place, note, va="center", fontsize=SMALL, color=colour)


def _make_layer_legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    mark: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 4.5}
    arrow = {**mark, "markersize": 11, "markeredgewidth": 0.4}
    return [
        Patch(color=RED, label="certified, refutes the claim"),
        Patch(color=BLUE, label="certified, does not"),
        Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label="claim"),
        Line2D([], [], marker="D", label="exact loss of the pair", **mark),
        Line2D([], [], marker=r"$\rightarrow$", label="infinite", **arrow),
    ]
