"""Audits of noise layers that follow a text encoder, some correct and some faulty.

Each case consists of a small text encoder, a transform that bounds the encoder's vectors, and a
noise layer. Some layers are correct, some contain a fault of published code, and some repair such a
fault. Every case runs in float32 and in float64.

dpcore examines each case in two ways. An audit certifies a lower bound on epsilon, and a structural
inspection searches the layer for known faults. A faulty layer is caught if the bound exceeds the
claim, or if the inspection reports a fault. A correct or repaired layer should not be caught.

The table also shows the loss that is caused by floating-point rounding. This loss is listed
separately, because it comes from the returned floats, not from the probability law of the noise.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from typing import Any

from ..errors import choice
from ..mechanisms.callables import set_torch_threads
from ..records import Counts
from ..report.figures import BLUE, GREY, INK, RED, WHITE, apply_style
from ..report.rows import align_rows, format_epsilon
from ..report.shown import Shown
from ..results.audits import Audit
from ..streams import threads_of
from ..structure import inspect
from . import drawing
from .base import Column, SeededSettings, align_columns, setting
from .running import Tabled, audit_cell, cell_seed, group_answers, mean_and_sd, run_jobs, time_run

NAME = "noise-layers"

WIDTH = 32
"""Number of entries of the encoder's vectors."""
_HASH_PLACES = 64
"""Number of counts to which the words of a text are hashed."""
DELTA = 1e-5
"""Claimed delta of the layers with Gaussian noise."""

PAIR = ("he has cancer and lives in this town", "she won the match in the last minute")
"""The two input texts on which every layer is audited. Any two texts are neighbours."""

DTYPES = ("float32", "float64")

_INSPECTION_DRAWS = 4096
"""Number of outputs in each of the two main calls of a structural inspection. With half of this
number, the inspection misses noise with only 24 random bits."""


@dataclass(frozen=True, slots=True, repr=False)
class Case(Shown):
    """A transform that bounds vectors, followed by a noise layer with a claimed epsilon.

    Args:
        name: name of the case in the table.
        transform: function that takes the module `dpcore.torch` and returns the transform.
        noise: function that takes the module `dpcore.torch` and the claimed epsilon. It returns the
            noise layer, or a name from which `PrivateEncoder` makes the layer.
        faulty: dtypes in which the layer is faulty. The tuple is empty if the layer is correct.
        repair: name of the case in which the fault is repaired, or "" for a correct layer.
        delta: claimed delta.
        skip: names of structural checks that are left out, because this layer has on purpose the
            property for which they search.
        what: description of the fault in one line.
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
    """Encode texts as vectors of 32 entries.

    The words of a text are hashed to 64 signed counts. A fixed linear layer then maps the counts to
    the vector.

    The encoder is a small example, made for this experiment only.

    Args:
        texts: the texts.
        dtype: dtype of the vectors.
        device: device of the vectors.

    Returns:
        A tensor of shape `(texts, 32)`.
    """
    from ..packages import torch

    fixed = torch.Generator().manual_seed(WIDTH)
    weight = torch.randn(_HASH_PLACES, WIDTH, generator=fixed, dtype=torch.float64)
    counts = torch.zeros(len(texts), _HASH_PLACES, dtype=torch.float64)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            place, sign = divmod(zlib.crc32(word.encode()), 2)
            counts[row, place % _HASH_PLACES] += 2 * sign - 1
    return (counts @ weight).to(device, dtype)


def put_behind_encoder(case: Case, epsilon: float, dtype: str, device: str) -> Any:
    """Return the encoder, followed by the transform and the noise layer of a case.

    Args:
        case: the case.
        epsilon: claimed epsilon.
        dtype: "float32" or "float64".
        device: torch device, such as "cpu".
    """
    from .. import torch as bridge
    from ..packages import torch

    kind = getattr(torch, dtype)
    claim: Any = {"epsilon": epsilon, "delta": case.delta, "strict": not case.faulty}
    claim["noise"] = case.noise(bridge, epsilon)

    def encode(texts: list[str]) -> Any:
        return encode_in_dtype(texts, kind, device)

    return bridge.PrivateEncoder(encode, case.transform(bridge), **claim).to(device)


def _make_torch_laplace(bridge: Any, scale: float) -> Any:
    """Return a layer that adds noise from `torch.distributions.Laplace` in the input's dtype."""
    from ..packages import torch

    class TorchLaplace(bridge.LaplaceNoise):  # type: ignore[misc]
        """Layer that declares its scale and draws noise from `torch.distributions.Laplace`."""

        def forward(self, x: Any, generator: Any = None) -> Any:
            zero = torch.zeros((), dtype=x.dtype, device=x.device)
            return x + torch.distributions.Laplace(zero, zero + self.scale).sample(x.shape)

    return TorchLaplace(scale)


CASES: tuple[Case, ...] = (
    Case("LaplaceNoise", lambda t: t.Clip("l1", 1.0), lambda t, e: "laplace"),
    Case("torch's Laplace", lambda t: t.Clip("l1", 1.0),
         lambda t, e: _make_torch_laplace(t, 2.0 / e), ("float32",), "LaplaceNoise",
         what="24 random bits in float32: few values in the tail"),
    Case("DPTextNoise, zero", lambda t: t.Clip("l1", 1.0), lambda t, e: t.DPTextNoiseLayer(2.0 / e),
         DTYPES, "LaplaceNoise", what="never below the input, and often equal to it"),
    Case("DPTextNoise, resample", lambda t: t.Clip("l1", 1.0),
         lambda t, e: t.DPTextNoiseLayer(2.0 / e, "resample"), DTYPES, "LaplaceNoise",
         what="never below the input"),
    Case("L1 scale, L2 clip", lambda t: t.Clip("l2", 1.0), lambda t, e: "laplace"),
    Case("L2 scale, L2 clip", lambda t: t.Clip("l2", 1.0), lambda t, e: t.LaplaceNoise(2.0 / e),
         DTYPES, "L1 scale, L2 clip",
         what="ADePT: Laplace noise for a distance in L2 is too small by sqrt(32)"),
    Case("MinMax, scale 32", lambda t: t.MinMax(), lambda t, e: "laplace"),
    Case("MinMax, scale 1", lambda t: t.MinMax(), lambda t, e: t.LaplaceNoise(1.0 / e), DTYPES,
         "MinMax, scale 32", what="DPNR: each of 32 entries moves by 1, not all of them together"),
    Case("SharedNoise", lambda t: t.MinMax(), lambda t, e: t.SharedNoise(1.0 / e), DTYPES,
         "MinMax, scale 32", what="DPNR's code: one draw for a whole row"),
    Case("GaussianNoise", lambda t: t.Clip("l2", 1.0), lambda t, e: "gaussian", delta=DELTA),
    Case("L2LaplaceNoise", lambda t: t.Clip("l2", 1.0), lambda t, e: "l2_laplace",
         skip=("shared_size",)),
)  # fmt: skip
"""All layers. A faulty layer stands next to its repair."""

_CASES_BY_NAME = {case.name: case for case in CASES}


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment: the layers, the number of audits, and their numbers of draws.

    Args:
        trials: number of outputs that each audit draws on each of the two inputs.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        seeds: number of audits of each layer. The table shows the mean and the standard deviation
            of their bounds.
        device: torch device on which encoder and noise layer run, such as "cpu".
        epsilon: claimed epsilon.
        confidence: probability with which each single certified bound holds.
        layers: names of the audited layers, in the order of the table. The default is all layers.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="2e4", layers=("LaplaceNoise",)).trials
        20000
    """

    trials: int = 10**5
    seeds: int = 3
    device: str = "cpu"
    epsilon: float = 1.0
    confidence: float = 0.95
    layers: tuple[str, ...] = setting(tuple(_CASES_BY_NAME), choice, tuple(_CASES_BY_NAME))


@dataclass(frozen=True, slots=True, repr=False)
class Found(Shown):
    """Results of one audit as plain values, so that two runs can be compared with `==`.

    Args:
        seed: seed that reproduces the audit.
        counts: number of outputs in the counted event, on each of the two inputs.
        event: description of the counted event.
        refuted: True if the audit refuted the claim.
        certified: certified lower bound on epsilon.
        rounding: lower bound on epsilon that is certified from the low-order bits of the outputs.
            It is 0 if these bits show no loss.
        exact: exact privacy loss of the two inputs, computed from the noise that the layer
            declares.
        partial: True if Ctrl-C ended the audit early.
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
        """Collect these values from the result of an audit."""
        loss, floats = audit.declared_loss, audit.floating_point
        assert loss is not None
        rounding = 0.0 if floats is None else floats.epsilon_lower
        outcome = str(audit.event), audit.refuted is True, audit.epsilon_lower, rounding
        return cls(audit.seed, audit.counts, *outcome, float(loss), audit.partial)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Audits and structural inspection of one layer in one dtype.

    Args:
        layer: name of the layer.
        dtype: "float32" or "float64".
        audits: results of the audits, one for each seed.
        flags: names of the structural checks that found a fault.
    """

    layer: str
    dtype: str
    audits: tuple[Found, ...]
    flags: tuple[str, ...]

    @property
    def case(self) -> Case:
        """Transform, noise layer and claim."""
        return _CASES_BY_NAME[self.layer]

    @property
    def faulty(self) -> bool:
        """True if the layer is known to be faulty in this dtype."""
        return self.dtype in self.case.faulty

    @property
    def exact(self) -> float:
        """Exact privacy loss of the two inputs, computed from the noise that the layer declares."""
        return self.audits[0].exact

    @property
    def certified(self) -> tuple[float, ...]:
        """Certified lower bounds on epsilon, one for each audit."""
        return tuple(audit.certified for audit in self.audits)

    @property
    def rounding(self) -> tuple[float, ...]:
        """Lower bounds on epsilon from the low-order bits of the outputs, one for each audit."""
        return tuple(audit.rounding for audit in self.audits)

    @property
    def beyond(self) -> bool:
        """True if at least one audit refuted the claim."""
        return any(audit.refuted for audit in self.audits)

    @property
    def fault(self) -> str:
        """Description of the fault, or "" if the layer has no fault in this dtype."""
        return self.case.what if self.faulty else ""

    @property
    def repair(self) -> str:
        """Name of the repaired layer, or "" if this layer has no fault in this dtype."""
        return self.case.repair if self.faulty else ""

    @property
    def mean(self) -> float:
        """Mean of the certified lower bounds over the audits."""
        return mean_and_sd(self.certified)[0]

    @property
    def spread(self) -> float:
        """Standard deviation of the certified lower bounds over the audits."""
        return mean_and_sd(self.certified)[1]

    @property
    def caught(self) -> bool:
        """True if an audit refuted the claim, or if the structural inspection found a fault."""
        return self.beyond or bool(self.flags)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every layer, and inspect the structure of every layer.

    Args:
        config: options of the experiment.
        threads: number of torch threads. The default is 1, because the tensors are small.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, which contains one `Row` for each layer and dtype.

    Raises:
        ModuleNotFoundError: if torch is not installed. The message of the error states how to
            install the package.
        ValueError: if this machine does not have the device.
        KeyboardInterrupt: if the user presses Ctrl-C before dpcore has counted an output.

    Source:
        For the faults: Beigi et al. (2019), Lyu, He and Li (2020) and Krishna, Gupta and Dupuy
        (2021); see Habernal (2021) and Habernal (2022).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     config = Config(trials=10**4, seeds=1, layers=("SharedNoise",))
        ...     assert all(row.caught for row in run(config).rows)
    """
    jobs = list(product(config.layers, DTYPES, range(config.seeds)))
    with set_torch_threads(threads_of(threads, 1)):
        work = partial(_audit_and_inspect, config)
        done, ended = run_jobs("noise layers", jobs, work, progress)
    groups = group_answers((job[:2] for job in jobs), done).items()
    rows = (Row(*key, tuple(audit for audit, _ in ones), ones[0][1]) for key, ones in groups)
    return Result(config, tuple(rows), partial=ended)


def _audit_and_inspect(
    config: Config, name: str, dtype: str, number: int
) -> tuple[Found, tuple[str, ...]]:
    """Run audit `number` of a layer. Inspect the layer's structure too if `number` is 0."""
    case, key = _CASES_BY_NAME[name], f"{name}/{dtype}/{number}"
    private = put_behind_encoder(case, config.epsilon, dtype, config.device)
    flags: tuple[str, ...] = ()
    if number == 0:
        options: Any = {"rng": cell_seed(config.seed, key), "skip": case.skip}
        clean = private.clean([PAIR[0]])[0]
        flags = inspect(private.noise, clean, draws=_INSPECTION_DRAWS, **options).flagged
    cell = audit_cell(config, key, private, PAIR, claim=config.epsilon, delta=case.delta)
    return Found.of(cell), flags


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the audits and inspections of all layers.

    Args:
        config: options of the run.
        rows: one `Row` for each layer and dtype.
    """

    rows: tuple[Row, ...]

    def agreement(self) -> tuple[int, int, int, int]:
        """Count the faulty and the correct layers, and the caught layers among them.

        A layer is caught if an audit refutes its claim, or if the inspection finds a fault.

        Returns:
            Four numbers: caught faulty layers, faulty layers, caught correct layers, and correct
            layers.
        """
        faults = [row.caught for row in self.rows if row.faulty]
        right = [row.caught for row in self.rows if not row.faulty]
        return sum(faults), len(faults), sum(right), len(right)

    def table(self) -> str:
        """Return the results as a text table, followed by the fault of each faulty layer."""
        config = self.config
        several = f", mean and spread of {config.seeds} seeds" if config.seeds > 1 else ""
        caught, faults, wrong, right = self.agreement()
        shown = {row.layer for row in self.rows}
        repairs = [
            (case.name, f"{case.what}; repaired: {case.repair}")
            for case in CASES
            if case.name in shown and case.faulty
        ]
        return self.join_parts(
            f"Noise layers behind an encoder of texts: {config.trials:,} trials per side, seed "
            f"{config.seed}{several},\neach bound at {100 * config.confidence:g} % confidence on "
            "its own; two texts, a made-up encoder (words hashed to 32 numbers)",
            align_columns(_list_columns(config.epsilon), self.rows),
            f"{caught} of {faults} faults certified beyond the claim or flagged, {wrong} of "
            f"{right} layers without fault.",
            "Faults:\n" + align_rows(repairs, left=(0, 1)) if repairs else "",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of plain data (numbers, strings, lists and dicts)."""
        rows = [
            {"layer": row.layer, "dtype": row.dtype, "fault": row.fault, "repair": row.repair}
            | {"claim": self.config.epsilon, "delta": row.case.delta, "exact": row.exact}
            | {"certified": row.certified, "rounding": row.rounding, "mean": row.mean}
            | {"spread": row.spread, "flags": row.flags}
            | {"counts": [list(astuple(audit.counts)) for audit in row.audits]}
            | {"seeds": [str(audit.seed) for audit in row.audits]}
            | {"events": [audit.event for audit in row.audits]}
            for row in self.rows
        ]
        names = ("faults_caught", "faults", "others_caught", "others")
        agreement = dict(zip(names, self.agreement(), strict=True))
        return self.make_record(pair=list(PAIR), rows=rows, agreement=agreement)

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the certified bounds and the claim. Each layer and dtype has a separate line.

        Returns:
            A matplotlib figure.
        """
        rows = sorted(self.rows, key=lambda row: row.faulty)
        claim = self.config.epsilon
        picture = drawing.make_canvas(1.1 + 0.2 * len(rows), ax)
        axes = picture.subplots()
        largest = [row.mean for row in rows]
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
        spots = (("layers and repairs", (split + len(rows)) / 2), ("faults", split / 2))
        for text, middle in spots if 0 < split < len(rows) else ():
            drawing.write_beside(axes, middle - 0.5, text)
        drawing.tidy_axes(axes, label)
        axes.tick_params(axis="y", length=0)
        drawing.add_legend(picture, _make_layer_legend(), 3, "upper")
        return apply_style(picture)


def _list_columns(epsilon: float) -> list[Column]:
    def format_claim(delta: float) -> str:
        return f"({epsilon:g}, {delta:g})" if delta else f"{epsilon:g}"

    return [
        Column("layer", "layer", left=True),
        Column("dtype", "dtype", left=True),
        Column("", lambda row: "fault" if row.faulty else "", left=True),
        Column("claim", "case.delta", format_claim),
        Column("exact loss", "exact", format_epsilon),
        Column("certified", "certified", _format_mean_and_sd),
        Column("rounding", "rounding", _format_mean_and_sd),
        Column("flags", lambda row: ", ".join(row.flags) or "-", left=True),
    ]


def _format_mean_and_sd(values: tuple[float, ...]) -> str:
    mean, wide = mean_and_sd(values)
    if mean == 0.0:
        return "0"
    return f"{mean:.2f} +- {wide:.2f}" if len(values) > 1 else f"{mean:.2f}"


def _draw_layer(axes: drawing.Axes, place: int, row: Row, claim: float, right: float) -> None:
    mean, wide = row.mean, row.spread
    colour = RED if row.beyond else BLUE
    axes.barh(place, mean, height=0.6, color=colour, xerr=wide or None, ecolor=INK)
    if math.isfinite(row.exact):
        style: dict[str, Any] = {"markeredgecolor": WHITE, "markeredgewidth": 0.7}
        axes.plot([row.exact], [place], "D", color=INK, markersize=4.5, zorder=3, **style)
    else:
        drawing.draw_arrow(axes, 0.95 * right, right, place)
    if row.flags:
        note = f"flagged: {', '.join(row.flags)}"
        # The note is inside a long bar, and otherwise to the right of all marks.
        inside = mean > 0.6 * right
        marks = (claim, mean + wide, row.exact if math.isfinite(row.exact) else 0.0)
        at = claim if inside else max(marks)
        colour = WHITE if inside else INK
        style = {"va": "center", "fontsize": drawing.SMALL, "color": colour}
        axes.text(at + 0.015 * right, place, note, **style)


def _make_layer_legend() -> list[Any]:
    return [
        drawing.make_patch("certified, refutes the claim", RED),
        drawing.make_patch("certified, does not", BLUE),
        drawing.make_line("claim", GREY, linestyle="--", linewidth=1.2),
        drawing.make_mark("exact loss of the pair", INK, "D", 4.5),
        drawing.make_mark("infinite", INK, r"$\rightarrow$", 11, markeredgewidth=0.4),
    ]
