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
from ..report.figures import BLUE, GREY, INK, RED, WHITE, restyle_figure
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
    """A transform that bounds text vectors, followed by a noise layer that claims an epsilon.

    Args:
        name: name of the noise layer in the table.
        transform: function that returns the transform. Its argument is the module `dpcore.torch`.
        noise: function that returns the noise layer, or a name from which `PrivateEncoder` makes
            the layer. The arguments of the function are the module `dpcore.torch` and the claimed
            epsilon.
        faulty: names of the dtypes for which the noise layer is faulty. The tuple is empty if the
            layer is correct.
        repair: name of a different `Case`, in which the fault is repaired. The name is "" if the
            layer is correct.
        delta: delta that the noise layer claims.
        skip: names of structural checks that are not run. These checks would report a property of
            the noise layer as a fault, although the layer has this property on purpose.
        what: description of the fault in one line, or "" if the layer is correct.
    """

    name: str
    transform: Callable[[Any], Any]
    noise: Callable[[Any, float], Any]
    faulty: tuple[str, ...] = ()
    repair: str = ""
    delta: float = 0.0
    skip: tuple[str, ...] = ()
    what: str = ""


def compute_text_vectors(texts: list[str], dtype: Any, device: Any) -> Any:
    """Encode each text as a vector with 32 entries, with a small example encoder.

    The words of a text are hashed to 64 signed counts. A fixed linear layer then maps the 64 counts
    to the 32 entries.

    Args:
        texts: the texts to encode.
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
    """Return a text encoder, followed by the transform and the noise layer of a case.

    Args:
        case: object with the transform and the noise layer.
        epsilon: epsilon that the noise layer claims.
        dtype: dtype of the vectors, "float32" or "float64".
        device: torch device on which all layers run, such as "cpu".
    """
    from .. import torch as bridge
    from ..packages import torch

    kind = getattr(torch, dtype)
    claim: Any = {"epsilon": epsilon, "delta": case.delta, "strict": not case.faulty}
    claim["noise"] = case.noise(bridge, epsilon)

    def encode(texts: list[str]) -> Any:
        return compute_text_vectors(texts, kind, device)

    return bridge.PrivateEncoder(encode, case.transform(bridge), **claim).to(device)


def _make_torch_laplace_layer(bridge: Any, scale: float) -> Any:
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
         lambda t, e: _make_torch_laplace_layer(t, 2.0 / e), ("float32",), "LaplaceNoise",
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
    """Options of the experiment that audits noise layers behind a text encoder.

    Args:
        trials: number of outputs that each audit draws on each of the two inputs.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        seeds: number of audits of each noise layer. The table shows the mean and the standard
            deviation of the certified bounds.
        device: torch device on which the encoder and the noise layer run, such as "cpu".
        epsilon: epsilon that every noise layer claims.
        confidence: probability with which each certified bound holds. The probability that all
            bounds are true at once may be lower.
        layers: names of the audited noise layers, in the order of the table. The default is all
            layers.

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
    """Results of one audit of a noise layer, as plain values that can be compared with `==`.

    Args:
        seed: seed that reproduces the audit.
        counts: for each of the two inputs, the number of outputs in the event that the audit
            counts, and the number of all outputs.
        event: description of the event.
        refuted: True if the audit refuted the epsilon that the layer claims.
        certified: certified lower bound on epsilon.
        rounding: certified lower bound on epsilon from the low-order bits of the outputs. The bound
            is 0 if these bits show no loss.
        exact: exact privacy loss between the two inputs, computed from the noise distribution that
            the layer declares.
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
        """Return the most important results of the audit `audit`, as plain values."""
        loss, floats = audit.declared_loss, audit.floating_point
        assert loss is not None
        rounding = 0.0 if floats is None else floats.epsilon_lower
        outcome = str(audit.event), audit.refuted is True, audit.epsilon_lower, rounding
        return cls(audit.seed, audit.counts, *outcome, float(loss), audit.partial)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Results of the audits and of the structural inspection of one noise layer, for one dtype.

    Args:
        layer: name of the noise layer.
        dtype: dtype of the vectors, "float32" or "float64".
        audits: results of the audits of this layer, one for each seed.
        flags: names of the structural checks that found a fault in this layer.
    """

    layer: str
    dtype: str
    audits: tuple[Found, ...]
    flags: tuple[str, ...]

    @property
    def case(self) -> Case:
        """Transform and noise layer that were audited and inspected, and the claimed delta."""
        return _CASES_BY_NAME[self.layer]

    @property
    def faulty(self) -> bool:
        """True if this noise layer is known to be faulty for this dtype."""
        return self.dtype in self.case.faulty

    @property
    def exact(self) -> float:
        """Exact privacy loss between the two audited inputs.

        The loss is computed from the noise distribution that the layer declares.
        """
        return self.audits[0].exact

    @property
    def certified(self) -> tuple[float, ...]:
        """Lower bounds on epsilon that the audits of this layer certify, one for each audit."""
        return tuple(audit.certified for audit in self.audits)

    @property
    def rounding(self) -> tuple[float, ...]:
        """Lower bounds on epsilon that come from rounding of floats, one bound for each audit.

        An audit certifies this bound from the low-order bits of the outputs of the noise layer.
        """
        return tuple(audit.rounding for audit in self.audits)

    @property
    def beyond(self) -> bool:
        """True if at least one audit refuted the epsilon that this noise layer claims."""
        return any(audit.refuted for audit in self.audits)

    @property
    def fault(self) -> str:
        """Description of the fault, or "" if this noise layer has no fault for this dtype."""
        return self.case.what if self.faulty else ""

    @property
    def repair(self) -> str:
        """Name of the layer that repairs the fault, or "" if this layer has no fault.

        A layer can be faulty for one dtype and have no fault for another dtype.
        """
        return self.case.repair if self.faulty else ""

    @property
    def mean(self) -> float:
        """Mean of the lower bounds on epsilon that the audits of this layer certify."""
        return mean_and_sd(self.certified)[0]

    @property
    def spread(self) -> float:
        """Standard deviation of the lower bounds that the audits of this layer certify."""
        return mean_and_sd(self.certified)[1]

    @property
    def fault_found(self) -> bool:
        """True if the audits or the inspection find a fault in this noise layer.

        An audit finds a fault if it refutes the claimed epsilon. The structural inspection finds a
        fault if at least one check reports a fault.
        """
        return self.beyond or bool(self.flags)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every noise layer, and search the structure of every layer for known faults.

    Args:
        config: options of the experiment, such as the names of the layers.
        threads: number of torch threads. The default is 1, because the tensors are small.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Row` for each noise layer and dtype.

    Raises:
        ModuleNotFoundError: if torch is not installed. The message of the error states how to
            install the package.
        ValueError: if this machine does not have the device `config.device`.
        KeyboardInterrupt: if the user presses Ctrl-C before dpcore has counted an output.

    Source:
        For the faults: Beigi et al. (2019), Lyu, He and Li (2020) and Krishna, Gupta and Dupuy
        (2021); see Habernal (2021) and Habernal (2022).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     config = Config(trials=10**4, seeds=1, layers=("SharedNoise",))
        ...     assert all(row.fault_found for row in run(config).rows)
    """
    jobs = list(product(config.layers, DTYPES, range(config.seeds)))
    with set_torch_threads(threads_of(threads, 1)):
        work = partial(_audit_and_inspect_if_first, config)
        done, ended = run_jobs("noise layers", jobs, work, progress)
    groups = group_answers((job[:2] for job in jobs), done).items()
    rows = (Row(*key, tuple(audit for audit, _ in ones), ones[0][1]) for key, ones in groups)
    return Result(config, tuple(rows), partial=ended)


def _audit_and_inspect_if_first(
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
    """Results of the audits and structural inspections of all noise layers.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each noise layer and dtype.
    """

    rows: tuple[Row, ...]

    def agreement(self) -> tuple[int, int, int, int]:
        """Count the noise layers in which the experiment finds a fault.

        The experiment finds a fault if an audit refutes the claimed epsilon, or if the structural
        inspection reports a fault. Each layer is counted once for each dtype.

        Returns:
            Four counts: the faulty layers in which a fault was found, all faulty layers, the
            correct layers in which a fault was found, and all correct layers.
        """
        faults = [row.fault_found for row in self.rows if row.faulty]
        right = [row.fault_found for row in self.rows if not row.faulty]
        return sum(faults), len(faults), sum(right), len(right)

    def table(self) -> str:
        """Return the results of all noise layers as a text table, with a list of the faults."""
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
            align_columns(_make_table_columns(config.epsilon), self.rows),
            f"{caught} of {faults} faults certified beyond the claim or flagged, {wrong} of "
            f"{right} layers without fault.",
            "Faults:\n" + align_rows(repairs, left=(0, 1)) if repairs else "",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data (numbers, strings, lists and dicts)."""
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
        """Draw the certified bounds of each noise layer, and the claimed epsilon.

        Returns:
            A matplotlib figure, with one row for each layer and dtype.
        """
        rows = sorted(self.rows, key=lambda row: row.faulty)
        claim = self.config.epsilon
        picture = drawing.empty_figure(1.1 + 0.2 * len(rows), ax)
        axes = picture.subplots()
        largest = [row.mean for row in rows]
        exact = [row.exact for row in rows if math.isfinite(row.exact)]
        right = 1.3 * max([2.0 * claim, *largest, *exact])
        for place, row in enumerate(reversed(rows)):
            _draw_bound(axes, place, row, claim, right)
        axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=2.5)
        split = sum(row.faulty for row in rows)
        if 0 < split < len(rows):
            axes.axhline(split - 0.5, color=GREY, linewidth=0.6)
        axes.set(xlim=(0.0, right), ylim=(-0.7, len(rows) - 0.3))
        axes.set_yticks(range(len(rows)), [f"{row.layer}, {row.dtype}" for row in reversed(rows)])
        label = "privacy loss epsilon of two texts; a made-up encoder (words hashed to 32 numbers)"
        spots = (("layers and repairs", (split + len(rows)) / 2), ("faults", split / 2))
        for text, middle in spots if 0 < split < len(rows) else ():
            drawing.write_right_of(axes, middle - 0.5, text)
        drawing.style_axes(axes, label)
        axes.tick_params(axis="y", length=0)
        drawing.add_legend(picture, _make_layer_legend(), 3, "upper")
        return restyle_figure(picture)


def _make_table_columns(epsilon: float) -> list[Column]:
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


def _draw_bound(axes: drawing.Axes, place: int, row: Row, claim: float, right_limit: float) -> None:
    mean, wide = row.mean, row.spread
    colour = RED if row.beyond else BLUE
    axes.barh(place, mean, height=0.6, color=colour, xerr=wide or None, ecolor=INK)
    if math.isfinite(row.exact):
        style: dict[str, Any] = {"markeredgecolor": WHITE, "markeredgewidth": 0.7}
        axes.plot([row.exact], [place], "D", color=INK, markersize=4.5, zorder=3, **style)
    else:
        drawing.draw_arrow(axes, 0.95 * right_limit, right_limit, place)
    if row.flags:
        note = f"flagged: {', '.join(row.flags)}"
        # The note is inside a long bar, and otherwise to the right of all marks.
        inside = mean > 0.6 * right_limit
        marks = (claim, mean + wide, row.exact if math.isfinite(row.exact) else 0.0)
        at = claim if inside else max(marks)
        colour = WHITE if inside else INK
        style = {"va": "center", "fontsize": drawing.SMALL, "color": colour}
        axes.text(at + 0.015 * right_limit, place, note, **style)


def _make_layer_legend() -> list[Any]:
    return [
        drawing.make_patch("certified, refutes the claim", RED),
        drawing.make_patch("certified, does not", BLUE),
        drawing.make_line("claim", GREY, linestyle="--", linewidth=1.2),
        drawing.make_mark("exact loss of the pair", INK, "D", 4.5),
        drawing.make_mark("infinite", INK, r"$\rightarrow$", 11, markeredgewidth=0.4),
    ]
