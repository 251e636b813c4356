"""Compare what dpcore and other auditors certify of eight mechanisms, with equal numbers of draws.

Remade by these commands, each in the environment of its tool. dpcore must be importable there.

    python benches/rivals.py dpcore
    python benches/rivals.py jax-privacy
    python benches/rivals.py privacy-estimates
    python benches/rivals.py dp-auditorium
    python benches/rivals.py dp-recorder
    python benches/rivals.py table

Two tools are not on the package index. They are installed by

    pip install "git+https://github.com/google/differential-privacy@b5b0286e313b64a692abfc8c528d54ef\
47d960a0#subdirectory=python/dp_auditorium"
    pip install git+https://github.com/ObliviousAI/dp-recorder@85d189ebd7ff81a52984708322ee2c2d8c47\
9db4

Every tool gets the same function `(x, size, rng) -> outputs`, and at most 200,000 outputs for one
bound, on both inputs together. The outputs on which a tool is fitted are included. Each bound has
an error of 5 %. A cell is the median bound of five seeds, its ratio to the first bound of dpcore,
and the median of the CPU seconds, each with its draws. A dash means that the way does not apply.

- dpcore: `dpcore.audit` with the default attack. "Gaussian curve" is the claim `GDP(1.0)`, and the
  certified mu is converted to an epsilon. It assumes that the curve of the mechanism is Gaussian.
- jax-privacy: `CanaryScoreAuditor.epsilon_clopper_pearson` with its default, Bonferroni, on both
  sides. "Gaussian curve" is `epsilon_from_gdp`, with the same assumption. Scores are the projection
  of outputs on x - x', or the score of `dpcore.attacks.Auto`, fitted on a ninth of the draws.
- privacy-estimates: `compute_eps_lo` of the counts of an event, which is chosen on a ninth of the
  draws: by `dpcore.attacks.Threshold` on the projection, or by `Auto`. "beta" is Clopper-Pearson.
  "joint-beta" is the posterior of its paper. Its integral is too coarse for so many counts, and
  the search for epsilon then ends in an error.
- dp-auditorium: the hockey-stick test of its example, with its defaults and tanh of the outputs.
  The bound is the largest epsilon that it rejects, by bisection of 0 to 4 in steps of 1/8.
- dp-recorder and `dpcore.trace` certify nothing. 30 runs; a dash means that nothing was found.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import math
import pathlib
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

import dpcore
from dpcore.attacks import Auto, Threshold
from dpcore.claims import GDP
from dpcore.experiments.dp_sniper_table import svt_values_loss

try:
    from dp_recorder.auditing.audit_primitives import Auditor, audit_spec, ensure_equality
except ImportError:
    Auditor = audit_spec = None

    def ensure_equality(**values: object) -> None:
        """Ignore a declaration that values are equal on both inputs."""


Array = npt.NDArray[Any]
Rng = np.random.Generator
Row = dict[str, Any]
Bounds = Iterator[tuple[str, float | None]]
"""Names of ways to certify, each with its bound. A way draws its own outputs."""

FOLDER = pathlib.Path(__file__).parent / "record" / "rivals"
FIRST_SEED, SEEDS, DRAWS = 5_000_001, 5, 200_000
"""A seed that no test uses, how many seeds, and the outputs that may be drawn for one bound."""
DELTA, ERROR = 1e-5, 0.05
_PILOT_SHARE, _MAX_CHECKED_DRAWS = 1 / 9, 33_700
"""The default pilot of dpcore is an eighth of the counted draws. It also draws outputs to check
that rows are independent."""
_MAX_EPSILON, _BISECTIONS = 4.0, 5
_RECORDINGS, _ALPHA = 30, 1e-4
"""Runs of dp-recorder and draws of `trace`; significance of the binomial test that a tool
overclaims more often than it states."""


def add_noise(
    x: Array, size: int, rng: Rng, kind: str = "laplace", scale: float = 1.0,
    sensitivity: float = 1.0, order: float = 1.0,
) -> Array:  # fmt: skip
    """Return `size` rows of x with noise. dp-recorder, if installed, records the call.

    Args:
        x: vector.
        size: number of rows.
        rng: generator of the noise.
        kind: name of the method of `rng`.
        scale: scale of the noise.
        sensitivity: distance between two inputs that the author declares to dp-recorder.
        order: order of the norm of that distance.
    """

    def noise(x: Array, sensitivity: float) -> Array:
        rows: Array = x + getattr(rng, kind)(scale=scale, size=(size, len(x)))
        return rows

    if audit_spec is not None:
        noise = audit_spec(kind, "x", "sensitivity", partial(measure_distance, order))(noise)
    return noise(x=x, sensitivity=sensitivity)


def measure_distance(order: float, x: Array, x_prime: Array) -> float:
    """Return the distance of two inputs in a norm."""
    return float(np.linalg.norm(x - x_prime, order))


# The mechanisms


def release_first_above(x: Array, size: int, rng: Rng) -> Array:
    """Return the first noisy query above a noisy threshold; -1000 is below, -2000 is the end."""
    threshold = add_noise(np.ones(1), size, rng, scale=2.0)
    queries = add_noise(x, size, rng, scale=2.0, order=np.inf)
    above = queries >= threshold
    ensure_equality(above=above)
    has_ended = np.cumsum(above, axis=1) > above
    return np.where(has_ended, -2000.0, np.where(above, queries, -1000.0))


def compare_queries(x: Array, size: int, rng: Rng) -> Array:
    """Return which queries without noise are above a noisy threshold."""
    above = x >= add_noise(np.ones(1), size, rng, scale=2.0)
    ensure_equality(above=above)
    return above.astype(float)


def release_maximum(x: Array, size: int, rng: Rng) -> Array:
    """Return the largest noisy score. Only its index would be private."""
    return np.max(add_noise(x, size, rng, scale=2.0, order=np.inf), axis=1, keepdims=True)


def encode_vector(x: Array, size: int, rng: Rng) -> Array:
    """Return a vector that is clipped in L2, with Laplace noise for an L1 distance of 2."""
    return add_noise(clip_norm(x), size, rng, scale=2.0, sensitivity=2.0)


def take_step(x: Array, size: int, rng: Rng) -> Array:
    """Return the noisy sum of gradients. Each gradient should have been clipped, not the sum."""
    return add_noise(clip_norm(x.sum(axis=0)), size, rng, kind="normal", order=2.0)


def clip_norm(x: Array) -> Array:
    """Return a vector, scaled to an L2 norm of 1 if it is longer."""
    return np.asarray(x / max(1.0, float(np.linalg.norm(x))))


@dataclass(frozen=True)
class Case:
    """A mechanism with its pair of inputs, its claim and its true loss on the pair.

    Args:
        name: name in the table.
        mechanism: function `(x, size, rng) -> outputs`, shape `(size, entries)`.
        pair: the two inputs.
        claim: claimed epsilon.
        loss: true epsilon at `delta`.
        delta: delta of the claim.
    """

    name: str
    mechanism: Callable[[Array, int, Rng], Array]
    pair: dpcore.Pair
    claim: float
    loss: float
    delta: float = 0.0

    def draw_sides(self, size: int, seed: int) -> list[Array]:
        """Draw outputs on both inputs, `size` in all."""
        rng = np.random.default_rng(seed)
        return [self.mechanism(x, size // 2, rng) for x in (self.pair.x, self.pair.x_prime)]

    def split_sides(self, size: int, seed: int) -> tuple[list[Array], list[Array]]:
        """Draw outputs on both inputs, and split them into a pilot and the rest."""
        sides, cut = self.draw_sides(size, seed), int(_PILOT_SHARE * size / 2)
        return [side[:cut] for side in sides], [side[cut:] for side in sides]

    def project(self, outputs: Array) -> Array:
        """Return the inner products of outputs with x - x', or with its first entry."""
        direction = np.atleast_2d(self.pair.x - self.pair.x_prime).sum(axis=0)
        return np.asarray(outputs @ direction[: outputs.shape[1]])


def make_cases() -> list[Case]:
    """Return the eight mechanisms."""
    number = dpcore.Pair(np.ones(1), np.zeros(1))
    half = np.repeat([1.0, 0.0], 5)
    queries, scores = dpcore.Pair(half, 1 - half), dpcore.Pair(np.zeros(5), np.ones(5))
    # A record moves from one cell to another; the noise is for one cell.
    cells = dpcore.Pair(np.array([3.0, 5, 2, 7, 4]), np.array([2.0, 6, 2, 7, 4]))
    vectors = dpcore.Pair(np.ones(128), -np.ones(128))
    rest = np.random.default_rng(3).normal(size=(31, 20))
    # With the first record the sum of the gradients has the opposite direction.
    batches = dpcore.Pair(*(np.vstack([w * rest.sum(axis=0), rest]) for w in (-2.0, 0.0)))
    values = max(
        svt_values_loss(half, 1 - half, 2.0, 2.0), svt_values_loss(1 - half, half, 2.0, 2.0)
    )
    mu_1, mu_2, mu_half = (GDP(mu).epsilon(DELTA) for mu in (1.0, 2.0, 0.5))
    small, normal = partial(add_noise, scale=0.9), partial(add_noise, kind="normal", order=2.0)
    return [
        Case("Laplace, a tenth too small", small, number, 1.0, 1 / 0.9),
        Case("sparse vector 3", release_first_above, queries, 1.0, values),
        Case("sparse vector 5", compare_queries, queries, 1.0, math.inf),
        Case("noisy maximum", release_maximum, scores, 1.0, 5 / 2),
        Case("histogram", add_noise, cells, 1.0, 2.0),
        Case("Gaussian at delta 1e-5", partial(normal, scale=2.0), number, 1.0, mu_half, DELTA),
        Case("ADePT, 128 entries", encode_vector, vectors, 1.0, math.sqrt(128)),
        Case("DP-SGD step at delta 1e-5", take_step, batches, mu_1, mu_2, DELTA),
    ]


# The tools


def audit_with_dpcore(case: Case, seed: int, draws: int) -> Bounds:
    """Audit the claim, and a Gaussian curve if the claim has a delta."""
    pilot = int(_PILOT_SHARE * max(draws - _MAX_CHECKED_DRAWS, draws / 2) / 2)
    run = partial(dpcore.audit, case.mechanism, case.pair, trials=8 * pilot, pilot=pilot, rng=seed)
    report = run(claim=case.claim, delta=case.delta)
    n_drawn = sum(step.outputs for step in report.spent)
    assert n_drawn <= max(draws, 3 * _MAX_CHECKED_DRAWS), f"{case.name}: {n_drawn} outputs"
    yield "audit", report.epsilon_lower
    if case.delta:
        yield "Gaussian curve", GDP(run(claim=GDP(1.0)).mu_lower).epsilon(case.delta)


def audit_with_jax_privacy(case: Case, seed: int, draws: int) -> Bounds:
    """Give scores to the auditor, which tries all thresholds (Bonferroni, its default)."""
    from jax_privacy.auditing import CanaryScoreAuditor

    for name in ("projection", "dpcore's score"):
        for curve in ("", ", Gaussian curve")[: 2 if case.delta else 1]:
            sides, score = case.draw_sides(draws, seed), case.project
            if name == "dpcore's score":
                pilot, sides = case.split_sides(draws, seed)
                score = Auto()(*pilot, case.pair).score
                if np.mean(score(pilot[0])) < np.mean(score(pilot[1])):
                    sides.reverse()
            auditor = CanaryScoreAuditor(*map(score, sides))
            certify = auditor.epsilon_from_gdp if curve else auditor.epsilon_clopper_pearson
            options = {} if curve else {"one_sided": False}
            yield name + curve, float(certify(ERROR, case.delta, **options))


def audit_with_privacy_estimates(case: Case, seed: int, draws: int) -> Bounds:
    """Give counts of guesses to the posterior of the paper and to Clopper-Pearson."""
    from privacy_estimates import AttackResults, compute_eps_lo

    def certify(event: Any, sides: Sequence[Array], method: str) -> float | None:
        tp, fp = (int(np.count_nonzero(event(side))) for side in sides)
        counts = AttackResults(TP=tp, FN=len(sides[0]) - tp, FP=fp, TN=len(sides[1]) - fp)
        try:
            return float(compute_eps_lo(counts, case.delta, ERROR, method))
        except ValueError:  # the integral of the posterior is not precise enough for the search
            return None

    attacks = {"projection": Threshold(score=case.project), "dpcore's event": Auto()}
    for (name, attack), method in itertools.product(attacks.items(), ("beta", "joint-beta")):
        pilot, rest = case.split_sides(draws, seed)
        yield f"{name}, {method}", certify(attack(*pilot, case.pair), rest, method)


def audit_with_dp_auditorium(case: Case, seed: int, draws: int) -> Bounds:
    """Find the largest epsilon that the hockey-stick test of the library's example rejects."""
    import tensorflow as tf
    from dp_auditorium.configs import privacy_property
    from dp_auditorium.configs import privacy_test_runner_config as runner
    from dp_auditorium.configs.property_tester_config import HockeyStickPropertyTesterConfig
    from dp_auditorium.privacy_test_runner import PrivacyTestRunner
    from dp_auditorium.testers import hockey_stick_tester as hockey

    tf.random.set_seed(seed)
    sides, low, high = case.draw_sides(draws, seed), 0.0, _MAX_EPSILON
    kind, tanh = runner.PropertyTester.HOCKEY_STICK_TESTER, runner.PostProcessing.TANH
    settings = runner.PrivacyTestRunnerConfig(kind, 1, ERROR, draws // 2, tanh)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        guarantee = privacy_property.ApproximateDp(middle, case.delta)
        training = hockey.make_default_hs_training_config()
        config = HockeyStickPropertyTesterConfig(training, guarantee)
        test = hockey.HockeyStickPropertyTester(config, hockey.make_default_hs_base_model())
        run = PrivacyTestRunner(settings, lambda _: (0, 1), test)
        result = run.test_privacy(lambda side, size: sides[side][:size], case.name)
        low, high = (middle, high) if result.found_privacy_violation else (low, middle)
    yield "hockey-stick test", low


TOOLS: Mapping[str, Callable[[Case, int, int], Bounds]] = {
    "dpcore": audit_with_dpcore,
    "jax-privacy": audit_with_jax_privacy,
    "privacy-estimates": audit_with_privacy_estimates,
    "dp-auditorium": audit_with_dp_auditorium,
}


def iterate_rows(tool: str, cases: Iterable[Case], seeds: int, draws: int) -> Iterator[Row]:
    """Yield a row for each mechanism, seed and way. The bound is None if a way raises an error."""
    for case, seed in itertools.product(cases, range(FIRST_SEED, FIRST_SEED + seeds)):
        begun = time.process_time()
        for way, bound in TOOLS[tool](case, seed, draws):
            row = {"mechanism": case.name, "way": way, "seed": seed, "bound": bound}
            yield row | {"seconds": round(time.process_time() - begun, 3)}
            begun = time.process_time()


def require_sound(tool: str, rows: Sequence[Row], cases: Iterable[Case]) -> None:
    """Raise AssertionError if a tool overclaims more often than its error, or dpcore ever does."""
    losses = {case.name: case.loss for case in cases}
    n_above = sum((row["bound"] or 0.0) > losses[row["mechanism"]] for row in rows)
    allowed = 0 if tool == "dpcore" else int(binom.isf(_ALPHA, len(rows), ERROR))
    assert n_above <= allowed, f"{tool}: {n_above} of {len(rows)} bounds are above the true loss"


def record_with_dp_recorder(case: Case) -> Row:
    """Run a mechanism on x, replay it on x', and return what was declared and found."""
    rng, text = np.random.default_rng(FIRST_SEED), "-"
    for _ in range(_RECORDINGS):
        auditor = Auditor()
        try:
            with auditor:
                case.mechanism(case.pair.x, 1, rng)
                auditor.set_replay()
                case.mechanism(case.pair.x_prime, 1, rng)
            auditor.validate_records()
        except AssertionError as problem:
            text = str(problem).split("\n")[0]
            break
    declared = [entry.label or f"{entry.kind} {entry.sensitivity_val:g}" for entry in auditor.log]
    return {"mechanism": case.name, "cells": [", ".join(declared), text]}


def trace_with_dpcore(case: Case) -> Row:
    """Return the outcome of `dpcore.trace` and the loss that it computes."""
    options: dict[str, Any] = {"delta": case.delta, "draws": _RECORDINGS, "rng": FIRST_SEED}
    trace = dpcore.trace(case.mechanism, case.pair, claim=case.claim, **options)
    text = f"{trace.outcome}; loss {trace.loss and round(trace.loss, 2)}"
    return {"mechanism": case.name, "cells": ["nothing", text]}


def run_tool(tool: str, seeds: int, draws: int) -> Row:
    """Return the results of a tool, which must be sound, with versions."""
    cases = make_cases()
    rows = list(iterate_rows(tool, cases, seeds, draws)) if tool in TOOLS else []
    require_sound(tool, rows, cases)
    find = {"dpcore": trace_with_dpcore, "dp-recorder": record_with_dp_recorder}.get(tool)
    findings = [find(case) for case in cases] if find else []
    version = dpcore.__version__ if tool == "dpcore" else importlib.metadata.version(tool)
    versions = {tool: version, "python": platform.python_version(), "numpy": np.__version__}
    facts = {"tool": tool, "versions": versions, "date": time.strftime("%Y-%m-%d")}
    return facts | {"draws": draws, "seeds": seeds, "rows": rows, "findings": findings}


def format_bounds(documents: Iterable[Row], names: Sequence[str]) -> Iterator[str]:
    """Yield lines of the table: median bounds, their ratios to dpcore's, and CPU seconds."""
    firsts: dict[str, float] = {}
    for document in documents:
        for way in dict.fromkeys(row["way"] for row in document["rows"]):
            cells = [f"{document['tool']}: {way}"]
            for key in itertools.product(names, [way]):
                rows = [row for row in document["rows"] if (row["mechanism"], row["way"]) == key]
                bounds = [row["bound"] for row in rows]
                if not bounds or None in bounds:
                    cells.append(f"{bounds.count(None)} errors" if bounds else "-")
                    continue
                ratio = median(bounds) / firsts.setdefault(key[0], median(bounds))
                seconds = median(row["seconds"] for row in rows)
                cells.append(f"{median(bounds):.3g} ({ratio:.2f}), {seconds:.2f} s")
            yield format_line(cells)


def format_line(cells: Iterable[str]) -> str:
    """Return a line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def write_tables(folder: pathlib.Path) -> None:
    """Write the tables of all results."""
    tools, cases = (*TOOLS, "dp-recorder"), make_cases()
    documents = [json.loads((folder / f"{tool}.json").read_text()) for tool in tools]
    names, losses = [case.name for case in cases], [f"{case.loss:.3g}" for case in cases]
    lines = [f"# Rivals\n\n{__doc__}", format_line(["", *names]), format_line(["---"] * 9)]
    lines += [format_line(["true loss", *losses]), *format_bounds(documents, names), ""]
    lines += [format_line(["mechanism", "tool", "declared", "found"]), format_line(["---"] * 4)]
    for document in documents:
        for row in document["findings"]:
            lines.append(format_line([row["mechanism"], document["tool"], *row["cells"]]))
    lines += ["", *(f"- {document['date']}: {document['versions']}" for document in documents)]
    folder.with_suffix(".md").write_text("\n".join([*lines, ""]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one tool, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=(*TOOLS, "dp-recorder", "table"))
    tool = parser.parse_args(arguments).tool
    if tool == "table":
        return write_tables(FOLDER)
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(run_tool(tool, SEEDS, DRAWS), indent=1)
    (FOLDER / f"{tool}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
