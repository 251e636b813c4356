"""Compare what dpcore and other auditors certify of eight mechanisms, with equal numbers of draws.

Run it once in the environment of each tool, and then once for the table:

    python benches/rivals.py dpcore
    python benches/rivals.py jax-privacy
    python benches/rivals.py privacy-estimates
    python benches/rivals.py dp-auditorium
    python benches/rivals.py dp-recorder
    python benches/rivals.py table

dpcore must be importable in each environment. Results are written to benches/record/rivals/, and
the table to benches/record/rivals.md. Two tools are not on the package index. They are installed by

    pip install "git+https://github.com/google/differential-privacy@b5b0286e313b64a692abfc8c528d54ef\
47d960a0#subdirectory=python/dp_auditorium"
    pip install git+https://github.com/ObliviousAI/dp-recorder@85d189ebd7ff81a52984708322ee2c2d8c47\
9db4

Every tool gets the same function `(x, size, rng) -> outputs`, and the same number of draws. The
draws on which a tool is fitted are included.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import json
import math
import os
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
from dpcore.attacks import Auto
from dpcore.claims import GDP
from dpcore.experiments.dp_sniper_table import maximum_loss, values_loss

try:
    from dp_recorder.auditing.audit_primitives import Auditor, audit_spec, ensure_equality
except ImportError:
    Auditor = audit_spec = ensure_equality = None

Array = npt.NDArray[Any]
Rng = np.random.Generator
Row = dict[str, Any]
Bounds = Iterator[tuple[str, float]]
"""Names of ways to certify, each with its bound. A way draws its own outputs."""

FIRST_SEED = 5_000_001
"""No test uses this seed or one of the next thousands."""
FOLDER = pathlib.Path(__file__).parent / "record" / "rivals"
PACKAGES = "jax-privacy privacy-estimates dp-auditorium dp-recorder numpy scipy jax tensorflow"
DRAWS = 200_000
"""Outputs that a tool may draw for one bound, on both inputs together."""
DELTA, ERROR = 1e-5, 0.05
_PILOT_SHARE = 1 / 9
"""Share of the pilot. The default of dpcore is an eighth of the other draws."""
_MAX_CHECKED_DRAWS = 33_700
"""Draws with which `dpcore.audit` checks that rows are independent."""
_MAX_EPSILON, _BISECTIONS = 4.0, 5
_RECORDINGS = 30
_ALPHA = 1e-4
"""Significance of the binomial test that a tool overclaims more often than it states."""


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

    def norm(x: Array, x_prime: Array) -> float:
        return float(np.linalg.norm(x - x_prime, order))

    call = noise if audit_spec is None else audit_spec(kind, "x", "sensitivity", norm)(noise)
    return call(x=x, sensitivity=sensitivity)


def declare_equal(**values: Array) -> None:
    """Declare to dp-recorder that values are equal on both inputs if the noisy values are."""
    if ensure_equality is not None:
        ensure_equality(**values)


# The mechanisms


def release_first_above(x: Array, size: int, rng: Rng) -> Array:
    """Return the first noisy query above a noisy threshold; -1000 is below, -2000 is the end."""
    threshold = add_noise(np.ones(1), size, rng, scale=2.0)
    queries = add_noise(x, size, rng, scale=2.0, order=np.inf)
    above = queries >= threshold
    declare_equal(above=above)
    has_ended = np.cumsum(above, axis=1) > above
    return np.where(has_ended, -2000.0, np.where(above, queries, -1000.0))


def compare_queries(x: Array, size: int, rng: Rng) -> Array:
    """Return which queries without noise are above a noisy threshold."""
    above = x >= add_noise(np.ones(1), size, rng, scale=2.0)
    declare_equal(above=above)
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
        """Return the inner products of outputs with x - x'; a single number is its own score."""
        direction = np.atleast_2d(self.pair.x - self.pair.x_prime).sum(axis=0)
        return outputs[:, 0] if outputs.shape[1] == 1 else np.asarray(outputs @ direction)


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
    values = max(values_loss(half, 1 - half, 2.0, 2.0), values_loss(1 - half, half, 2.0, 2.0))
    maximum = maximum_loss(scores.x, scores.x_prime, False, 2.0)
    mu_1, mu_2, mu_half = (GDP(mu).epsilon(DELTA) for mu in (1.0, 2.0, 0.5))
    small, normal = partial(add_noise, scale=0.9), partial(add_noise, kind="normal", order=2.0)
    return [
        Case("Laplace, a tenth too small", small, number, 1.0, 1 / 0.9),
        Case("sparse vector 3", release_first_above, queries, 1.0, values),
        Case("sparse vector 5", compare_queries, queries, 1.0, math.inf),
        Case("noisy maximum", release_maximum, scores, 1.0, maximum),
        Case("histogram", add_noise, cells, 1.0, 2.0),
        Case("Gaussian at delta 1e-5", partial(normal, scale=2.0), number, 1.0, mu_half, DELTA),
        Case("ADePT, 128 entries", encode_vector, vectors, 1.0, math.sqrt(128)),
        Case("DP-SGD step at delta 1e-5", take_step, batches, mu_1, mu_2, DELTA),
    ]


# The tools


def audit_with_dpcore(case: Case, seed: int, draws: int) -> Bounds:
    """Audit the claim, and a Gaussian curve if the claim has a delta."""
    pilot = int(_PILOT_SHARE * max(draws - _MAX_CHECKED_DRAWS, draws / 2) / 2)
    options: dict[str, Any] = {"trials": 8 * pilot, "pilot": pilot, "confidence": 1 - ERROR}
    audit = partial(dpcore.audit, case.mechanism, case.pair, rng=seed, progress=False, **options)
    report = audit(claim=case.claim, delta=case.delta)
    n_drawn = sum(step.outputs for step in report.spent)
    assert n_drawn <= max(draws, 3 * _MAX_CHECKED_DRAWS), f"{case.name}: {n_drawn} outputs"
    yield "audit", report.epsilon_lower
    if case.delta:
        yield "Gaussian curve", GDP(audit(claim=GDP(1.0)).mu_lower).epsilon(case.delta)


def audit_with_jax_privacy(case: Case, seed: int, draws: int) -> Bounds:
    """Give scores to the auditor, which tries all thresholds (Bonferroni, its default)."""
    from jax_privacy.auditing import CanaryScoreAuditor

    for name in ("projection", "dpcore's score"):
        for is_curve in (False, True)[: 2 if case.delta else 1]:
            if name == "projection":
                scores = [case.project(side) for side in case.draw_sides(draws, seed)]
            else:
                pilot, rest = case.split_sides(draws, seed)
                scores = list(map(Auto()(*pilot, case.pair).score, rest))
            auditor = CanaryScoreAuditor(*scores)
            if is_curve:
                yield f"{name}, Gaussian curve", auditor.epsilon_from_gdp(ERROR, case.delta)
            else:
                yield name, auditor.epsilon_clopper_pearson(ERROR, case.delta, one_sided=False)


def audit_with_privacy_estimates(case: Case, seed: int, draws: int) -> Bounds:
    """Give counts of guesses to the posterior of the paper and to Clopper-Pearson."""
    from privacy_estimates import AttackResults, compute_eps_lo

    def certify(event: Callable[[Array], Array], sides: Sequence[Array], method: str) -> float:
        tp, fp = (int(np.count_nonzero(event(side))) for side in sides)
        counts = AttackResults(TP=tp, FN=len(sides[0]) - tp, FP=fp, TN=len(sides[1]) - fp)
        try:
            return float(compute_eps_lo(counts, case.delta, ERROR, method))
        except ValueError:  # the integral of the posterior is not precise enough for the search
            return math.nan

    for name in ("projection", "dpcore's event"):
        for method in ("beta", "joint-beta"):
            pilot, rest = case.split_sides(draws, seed)
            event: Callable[[Array], Array] = Auto()(*pilot, case.pair)
            if name == "projection":
                scores = np.concatenate([case.project(side) for side in pilot])
                levels = np.unique(np.quantile(scores, np.arange(1, 200) / 200))
                guesses = [
                    lambda rows, level=level: case.project(rows) >= level for level in levels
                ]
                event = max(guesses, key=lambda guess: certify(guess, pilot, "beta"))
            yield f"{name}, {method}", certify(event, rest, method)


def audit_with_dp_auditorium(case: Case, seed: int, draws: int) -> Bounds:
    """Find the largest epsilon that the hockey-stick test of the library's example rejects."""
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    import tensorflow as tf
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.configs import privacy_test_runner_config as runner_config
    from dp_auditorium.privacy_test_runner import PrivacyTestRunner
    from dp_auditorium.testers import hockey_stick_tester as tester

    tf.random.set_seed(seed)
    sides, low, high = case.draw_sides(draws, seed), 0.0, _MAX_EPSILON
    settings = runner_config.PrivacyTestRunnerConfig(
        property_tester=runner_config.PropertyTester.HOCKEY_STICK_TESTER,
        max_num_trials=1,
        failure_probability=ERROR,
        num_samples=draws // 2,
        post_processing=runner_config.PostProcessing.TANH,
    )
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        guarantee = privacy_property.ApproximateDp(middle, case.delta)
        config = property_tester_config.HockeyStickPropertyTesterConfig(
            tester.make_default_hs_training_config(), guarantee
        )
        test = tester.HockeyStickPropertyTester(config, tester.make_default_hs_base_model())
        with contextlib.redirect_stdout(io.StringIO()):
            result = PrivacyTestRunner(settings, lambda _: (0, 1), test).test_privacy(
                lambda side, size: sides[side][:size], case.name
            )
        rejected = result.found_privacy_violation is not None
        low, high = (middle, high) if rejected else (low, middle)
    yield "hockey-stick test", low


TOOLS: Mapping[str, Callable[[Case, int, int], Bounds]] = {
    "dpcore": audit_with_dpcore,
    "jax-privacy": audit_with_jax_privacy,
    "privacy-estimates": audit_with_privacy_estimates,
    "dp-auditorium": audit_with_dp_auditorium,
}


def iterate_rows(tool: str, cases: Iterable[Case], seeds: int, draws: int) -> Iterator[Row]:
    """Yield a row for each mechanism, seed and way. NaN becomes None, for JSON."""
    for case in cases:
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            begun = time.process_time()
            for way, bound in TOOLS[tool](case, seed, draws):
                seconds = round(time.process_time() - begun, 3)
                value = None if math.isnan(bound) else float(bound)
                row = {"mechanism": case.name, "way": way, "seed": seed}
                yield row | {"bound": value, "seconds": seconds}
                begun = time.process_time()


def require_sound(tool: str, rows: Iterable[Row], cases: Iterable[Case]) -> None:
    """Raise AssertionError if a way overclaims more often than its error, or dpcore ever does."""
    losses = {case.name: case.loss for case in cases}
    ways: dict[str, list[bool]] = {}
    for row in rows:
        if row["bound"] is not None:
            ways.setdefault(row["way"], []).append(row["bound"] > losses[row["mechanism"]])
    for way, above in ways.items():
        allowed = 0 if tool == "dpcore" else int(binom.isf(_ALPHA, len(above), ERROR))
        assert sum(above) <= allowed, f"{tool}, {way}: {sum(above)} bounds above the true loss"


def record_with_dp_recorder(case: Case) -> Row:
    """Run a mechanism on x, replay it on x', and return what was declared and found."""
    rng, text = np.random.default_rng(FIRST_SEED), "-"
    for _ in range(_RECORDINGS):
        auditor = Auditor()
        try:
            with auditor:
                case.mechanism(case.pair.x, 1, rng)
            auditor.set_replay()
            with auditor:
                case.mechanism(case.pair.x_prime, 1, rng)
            auditor.validate_records()
        except AssertionError as problem:
            text = str(problem).split("\n")[0]
            break
    declared = [
        f"{entry.label} is equal" if entry.kind == "EQ" else f"{entry.kind} {entry.sensitivity_val}"
        for entry in auditor.log
    ]
    return {"mechanism": case.name, "declared": ", ".join(declared), "text": text}


def trace_with_dpcore(case: Case) -> Row:
    """Return the outcome of `dpcore.trace` and the loss that it computes."""
    trace = dpcore.trace(
        case.mechanism, case.pair, claim=case.claim, delta=case.delta, rng=FIRST_SEED
    )
    loss = "-" if trace.loss is None else f"{trace.loss:.3g}"
    return {"mechanism": case.name, "declared": "nothing", "text": f"{trace.outcome}; loss {loss}"}


def run_tool(tool: str, seeds: int, draws: int) -> Row:
    """Return the results of a tool, with versions."""
    cases, document = make_cases(), {"tool": tool, "date": str(datetime.date.today())}
    versions = {"python": platform.python_version(), "dpcore": dpcore.__version__}
    for package in PACKAGES.split():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    document |= {"versions": versions, "draws": draws, "seeds": seeds, "rows": [], "findings": []}
    if tool in TOOLS:
        document["rows"] = list(iterate_rows(tool, cases, seeds, draws))
        require_sound(tool, document["rows"], cases)
    find = {"dpcore": trace_with_dpcore, "dp-recorder": record_with_dp_recorder}.get(tool)
    document["findings"] = [find(case) for case in cases] if find else []
    return document


def format_tables(documents: Sequence[Row], cases: Sequence[Case]) -> list[str]:
    """Return the lines of the tables: bounds with their ratio to dpcore's, seconds, findings."""
    head = ["", "| | " + " | ".join(case.name for case in cases) + " |", "| --- |" + " ---: |" * 8]
    bounds = [*head, "| true loss | " + " | ".join(f"{case.loss:.3g}" for case in cases) + " |"]
    seconds, firsts = list(head), {}
    findings = ["", "| mechanism | tool | declared | found |", "| --- | --- | --- | --- |"]
    for document in documents:
        ways: dict[str, dict[str, list[Row]]] = {}
        for row in document["rows"]:
            ways.setdefault(row["way"], {}).setdefault(row["mechanism"], []).append(row)
        for way, rows_of_case in ways.items():
            cells, times = [f"{document['tool']}: {way}"], [f"{document['tool']}: {way}"]
            for rows in (rows_of_case.get(case.name) for case in cases):
                bound = median(row["bound"] or 0.0 for row in rows) if rows else 0.0
                first = firsts.setdefault(rows[0]["mechanism"], bound) if rows else 1.0
                n_failed = sum(row["bound"] is None for row in rows or ())
                note = f", {n_failed} failed" if n_failed else ""
                cells.append(f"{bound:.3g} ({bound / first:.2f}){note}" if rows else "-")
                times.append(f"{median(row['seconds'] for row in rows):.2f}" if rows else "-")
            bounds.append("| " + " | ".join(cells) + " |")
            seconds.append("| " + " | ".join(times) + " |")
        for row in document["findings"]:
            cells = [row["mechanism"], document["tool"], row["declared"], row["text"]]
            findings.append("| " + " | ".join(cells) + " |")
    return [*bounds, *seconds, *findings]


def write_tables(folder: pathlib.Path) -> None:
    """Write the tables of all results, which must be sound."""
    cases, documents = make_cases(), []
    for tool in (*TOOLS, "dp-recorder"):
        document = json.loads((folder / f"{tool}.json").read_text())
        require_sound(tool, document["rows"], cases)
        documents.append(document)
    lines = [f"- {text['tool']}, {text['date']}: {text['versions']}" for text in documents]
    tables = format_tables(documents, cases)
    text = "\n".join(["# Rivals", "", *_EXPLAINED, "", *lines, *tables, ""])
    folder.with_suffix(".md").write_text(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one tool, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=(*TOOLS, "dp-recorder", "table"))
    parser.add_argument("--seeds", type=int, default=5, help="audits of which a median is taken")
    parser.add_argument("--draws", type=int, default=DRAWS, help="outputs that one audit may draw")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.tool == "table":
        write_tables(options.folder)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    document = run_tool(options.tool, options.seeds, options.draws)
    text = json.dumps(document, indent=1)
    (options.folder / f"{options.tool}.json").write_text(text + "\n")


_EXPLAINED = (
    "Remade by `python benches/rivals.py`, see its first lines. Medians over the seeds, at 95 %.",
)

if __name__ == "__main__":
    main()
