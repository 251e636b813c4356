"""Measure how often curves are refuted that are true, and how many trials refute a false one.

Usage: python benches/record_claims.py [--draws 2000] [--audits 100] [--out FILE]

Without options it writes benches/record/claims.md. True claims are met at points of their own
curve, where a bound comes as close as it can to refuting them. The control is the same loop at a
claim that is a fifth too small.
"""

from __future__ import annotations

import argparse
import datetime
import math
import pathlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, binomtest

import dpcore
from dpcore.bounds import BOUNDS, limits
from dpcore.claims import GDP, RDP, ZCDP, Claim
from dpcore.claims.trade_off import choose_refutable_pair
from dpcore.experiments.dpsgd_audit import FAULTS, FIXED, POISSON, Recipe, make_opposing_record
from dpcore.records import Counts
from dpcore.training import audit_step

FIRST_SEED = 3_000_001
"""No test uses this seed or one of the next thousands."""
CONFIDENCE = 0.9
SEEDS = 20
TRIALS = 400
PILOT = 200
_ALPHA = 1e-3
"""Significance of the binomial test of a row."""
ORDERS = [1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0]

Rates = tuple[float, float]
Draw = Callable[[], Counts]


def diverge_laplace(order: float) -> float:
    """Compute the Renyi divergence of Laplace noise of scale 1 at sensitivity 1."""
    grown = order / (2 * order - 1) * math.exp(order - 1)
    return math.log(grown + (order - 1) / (2 * order - 1) * math.exp(-order)) / (order - 1)


def list_true_points() -> Iterator[tuple[str, Claim, Claim, Rates]]:
    """Yield a name, a true claim, one a fifth too small, and rates of an event on its curve."""
    for mu in (0.5, 1.0, 3.0):
        yield f"GDP({mu:g})", GDP(mu), GDP(0.8 * mu), (float(ndtr(mu / 2)), float(ndtr(-mu / 2)))
    for rho in (0.1, 0.5):
        claim = ZCDP(rho)
        yield f"ZCDP({rho:g})", claim, ZCDP(0.64 * rho), (1.0 - claim.trade_off(0.2), 0.2)
    claim = RDP(ORDERS, [order / 2.0 for order in ORDERS])
    small = RDP(ORDERS, [0.32 * order for order in ORDERS])
    yield "RDP of Gaussian noise", claim, small, (1.0 - claim.trade_off(0.2), 0.2)
    levels = [diverge_laplace(order) for order in ORDERS]
    claim, small = RDP(ORDERS, levels), RDP(ORDERS, [0.64 * level for level in levels])
    yield "RDP of Laplace noise", claim, small, (1.0 - claim.trade_off(0.2), 0.2)


def draw_counts(rng: np.random.Generator, rates: Rates, n: int, reverse: bool) -> Counts:
    """Draw counts; in reverse those of the complement with the sides exchanged."""
    p, q = (1.0 - rates[1], 1.0 - rates[0]) if reverse else rates
    return Counts(int(rng.binomial(n, p)), n, int(rng.binomial(n, q)), n)


@cache
def _refutes_point(claim: Claim, counts: Counts) -> bool:
    """Compare the exact limits with the curve, each at half the error."""
    alpha = (1.0 - CONFIDENCE) / 2.0
    one = limits(counts.k_prime, counts.n_prime, alpha)[1]
    two = 1.0 - limits(counts.k, counts.n, alpha)[0]
    return bool(two < claim.trade_off(one))


@cache
def _refutes_tangent(bound: str, counts: Counts, epsilon: float, delta: float) -> bool:
    return bool(BOUNDS[bound](counts, delta, CONFIDENCE) > epsilon)


def count_refuted(claim: Claim, rates: Rates, bound: str, reverse: bool, draws: int) -> int:
    """Count how many draws refute a claim."""
    rng = np.random.default_rng(FIRST_SEED + reverse)
    refuted = 0
    for _ in range(draws):
        if bound == "clopper_pearson":
            refuted += _refutes_point(claim, draw_counts(rng, rates, TRIALS, reverse))
            continue
        pilot = draw_counts(rng, rates, PILOT, reverse)
        epsilon, delta = _choose(claim, pilot)
        counts = draw_counts(rng, rates, TRIALS, reverse)
        refuted += _refutes_tangent(bound, counts, epsilon, delta)
    return refuted


@cache
def _choose(claim: Claim, pilot: Counts) -> tuple[float, float]:
    return choose_refutable_pair(claim, pilot)


def record_nulls(draws: int) -> Iterator[str]:
    """Yield the rows of the table of true claims."""
    yield "| claim | bound | refuted, x first | x' first | a fifth too small | |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for name, claim, small, rates in list_true_points():
        for bound in ("clopper_pearson", "exact", "anytime"):
            both = [count_refuted(claim, rates, bound, reverse, draws) for reverse in (False, True)]
            control = count_refuted(small, rates, bound, False, draws)
            fits = [
                binomtest(one, draws, 1.0 - CONFIDENCE, alternative="greater").pvalue > _ALPHA
                for one in both
            ]
            print(name, bound, both, control, flush=True)
            said = "as allowed" if all(fits) else "MORE THAN ALLOWED"
            yield f"| {name} | {bound} | {both[0]:,} | {both[1]:,} | {control:,} | {said} |"


def record_runs(draws: int) -> Iterator[str]:
    """Yield the rows of the table of one run: canaries that meet their claim, each by itself."""
    yield "| claim | canaries | guesses | refuted | a fifth too small | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    orders = np.array(ORDERS)
    gaussian = [(f"GDP({mu:g})", GDP, mu, np.random.Generator.normal) for mu in (0.5, 1.0, 3.0)]
    renyi = [
        ("RDP of Gaussian noise", orders / 2.0, np.random.Generator.normal),
        ("RDP of Laplace noise", np.array([*map(diverge_laplace, ORDERS)]), draw_laplace),
    ]
    rows: list[tuple[str, Claim, Claim, float, Any]] = [
        (name, kind(mu), kind(0.8 * mu), mu, draw) for name, kind, mu, draw in gaussian
    ]
    rows += [(name, RDP(ORDERS, x), RDP(ORDERS, 0.64 * x), 1.0, draw) for name, x, draw in renyi]
    for name, claim, small, shift, draw in rows:
        for many, guesses in ((200, 50), (1000, 250)):
            rng = np.random.default_rng(FIRST_SEED)
            right = Counter(count_right(rng, many, guesses, shift, draw) for _ in range(draws))
            refuted, control = (
                sum(
                    times * _refutes_run(one, many, guesses, found)
                    for found, times in right.items()
                )
                for one in (claim, small)
            )
            more = binomtest(refuted, draws, 1.0 - CONFIDENCE, alternative="greater").pvalue
            said = "as allowed" if more > _ALPHA else "MORE THAN ALLOWED"
            print(name, many, refuted, control, flush=True)
            yield f"| {name} | {many:,} | {guesses} | {refuted:,} | {control:,} | {said} |"


def draw_laplace(rng: np.random.Generator, size: int) -> Any:
    """Draw Laplace noise of scale 1."""
    return rng.laplace(size=size)


def count_right(rng: np.random.Generator, many: int, guesses: int, shift: float, draw: Any) -> int:
    """Count right guesses where a canary that is in moves its own score, and no other, by shift."""
    included = rng.random(many) < 0.5
    order = np.argsort(-(shift * included + draw(rng, size=many)))
    half = guesses // 2
    return int(included[order[:half]].sum() + (~included[order[half - guesses :]]).sum())


@cache
def _refutes_run(claim: Claim, many: int, guesses: int, right: int) -> bool:
    """Ask the package about scores of which so many guesses are right."""
    included = np.arange(many) % 2 == 0
    scores = np.where(included, 1.0, -1.0) * (1.0 + np.arange(many) / many)
    order, half = np.argsort(-scores, kind="stable"), guesses // 2
    ends = np.concatenate([order[:half], order[half - guesses :]])
    wrong = ends[np.random.default_rng(1).permutation(guesses)[: guesses - right]]
    included[wrong] = ~included[wrong]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.AssumptionWarning)
        report = dpcore.audit_outputs(
            scores, label=included, source=False, rows="one_run", guesses=guesses, claim=claim,
            confidence=CONFIDENCE, rng=1,
        )  # fmt: skip
    assert report.correct == right, (report.correct, right)
    return bool(report.refuted)


def record_steps(seeds: int) -> Iterator[str]:
    """Yield the rows of the table of single steps of DP-SGD, 1,000 trials a seed."""
    yield "| recipe | refuted | certified mu of 1, least and most |"
    yield "| --- | ---: | ---: |"
    rng = np.random.default_rng(FIRST_SEED)
    rows = np.column_stack([5.0 * rng.normal(size=(31, 20)), rng.random(31) < 0.5])
    batch = np.concatenate([make_opposing_record(rows)[None], rows])
    for fault in FAULTS:
        if fault in (POISSON, FIXED):
            continue  # How batches are drawn shows in no step of one batch.
        draw = partial(Recipe(1.0, fault).draw_noisy_gradient_sum, at=np.zeros(rows.shape[1]))
        step = partial(split_bias, draw)
        reports = [
            audit_step(
                step, batch, sigma=1.0, clip=1.0, left_out=0, trials=1000, rng=FIRST_SEED + seed
            )
            for seed in range(seeds)
        ]
        found = [report.parameter_lower or 0.0 for report in reports]
        refuted = sum(report.refuted is True for report in reports)
        print(fault, refuted, min(found), max(found), flush=True)
        yield f"| {fault} | {refuted} of {seeds} | {min(found):.2f}, {max(found):.2f} |"


def split_bias(draw: Any, records: Any, rng: np.random.Generator) -> Any:
    """Return a sum as two tensors: the weights of the features, and the bias."""
    return np.split(draw(records, rng), [-1])


def record_audits(audits: int) -> Iterator[str]:
    """Yield the rows of the table of whole audits of true claims."""

    def draw_gaussian(x: Any, size: int, rng: np.random.Generator) -> Any:
        return np.asarray(x) + rng.normal(size=(size, 1))

    yield "| claim | bound | stop | refuted | certified above the truth |"
    yield "| --- | --- | --- | ---: | ---: |"
    for claim in (GDP(1.0), ZCDP(0.5)):
        for bound, stop in (
            ("clopper_pearson", "fixed"), ("exact", "fixed"), ("anytime", "fixed"),
            (None, "refuted"),
        ):  # fmt: skip
            refuted = above = 0
            for seed in range(audits):
                more = {} if bound is None else {"bound": bound}
                report = dpcore.audit(
                    draw_gaussian, ([0.0], [1.0]), claim=claim, trials=2000, confidence=CONFIDENCE,
                    stop=stop, rng=FIRST_SEED + seed, floats=False, **more,
                )  # fmt: skip
                refuted += bool(report.refuted)
                truth = GDP(1.0).epsilon(report.delta)
                above += report.epsilon_lower > truth or (
                    (report.parameter_lower or 0.0) > getattr(claim, str(claim.parameter))
                )
            print(claim, bound, stop, refuted, above, flush=True)
            yield f"| {claim} | {bound or 'its own'} | {stop} | {refuted} of {audits} | {above} |"


def find_trials(refuted: Callable[[int, np.random.Generator], bool], draws: int) -> int:
    """Find the trials with which 95 % of the draws refute, to 2 %."""
    low, high = 500, 64_000
    while high > 1.02 * low:
        middle = int(math.sqrt(low * high))
        rng = np.random.default_rng(FIRST_SEED)
        hits = sum(refuted(middle, rng) for _ in range(draws))
        low, high = (low, middle) if hits >= 0.95 * draws else (middle, high)
    return round(math.sqrt(low * high))


def record_power(draws: int) -> Iterator[str]:
    """Yield the rows of the table of trials that refute mu 1 for noise of mu 1.1."""
    mu, claim, confidence = 1.1, GDP(1.0), 0.95
    # The half line at the middle, which both sides' limits are hardest on equally.
    rates = float(ndtr(mu / 2)), float(ndtr(-mu / 2))
    best = max(
        claim.tangents()[0].tolist(),
        key=lambda e: (
            (rates[0] - math.exp(e) * rates[1] - claim.delta(e))
            / math.sqrt(rates[0] * (1 - rates[0]) * (1.0 + math.exp(2.0 * e)))
        ),
    )

    def by_curve(n: int, rng: np.random.Generator) -> bool:
        counts = draw_counts(rng, rates, n, False)
        alpha = (1.0 - confidence) / 2.0
        one = limits(counts.k_prime, n, alpha)[1]
        return bool(1.0 - limits(counts.k, n, alpha)[0] < claim.trade_off(one))

    def by_tangent(bound: str, pilot: int | None) -> Callable[[int, np.random.Generator], bool]:
        def refutes(n: int, rng: np.random.Generator) -> bool:
            chosen = best, float(claim.delta(best))
            if pilot is not None:
                chosen = choose_refutable_pair(claim, draw_counts(rng, rates, pilot, False))
            counts = draw_counts(rng, rates, n, False)
            return bool(BOUNDS[bound](counts, chosen[1], confidence) > chosen[0])

        return refutes

    yield "| way | bound | trials a side for 95 % |"
    yield "| --- | --- | ---: |"
    yield f"| GDP curve | clopper_pearson | {find_trials(by_curve, draws):,} |"
    for bound in ("clopper_pearson", "exact", "anytime"):
        for way, pilot in (("best (epsilon, delta)", None), ("that of a pilot of 4,000", 4000)):
            found = find_trials(by_tangent(bound, pilot), draws)
            print(way, bound, found, flush=True)
            yield f"| {way} | {bound} | {found:,} |"


def say_whether_zcdp_sees(mu: float) -> str:
    """Say by how much Gaussian noise lies below the curve of zCDP(.5), at 400 type I errors."""
    errors = np.linspace(1e-4, 1.0 - 1e-4, 400)
    gap = ZCDP(0.5).trade_off(errors) - GDP(mu).trade_off(errors)
    return (
        f"Against ZCDP(.5): Gaussian noise of mu {mu:g} lies below its curve by {gap.max():.1g} at "
        f"most, at type I error {errors[gap.argmax()]:.4g}; no number of trials that can be drawn "
        "shows it."
    )


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--audits", type=int, default=100)
    default = pathlib.Path(__file__).parent / "record" / "claims.md"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    options = parser.parse_args()
    most = int(binom.isf(_ALPHA, options.draws, 1.0 - CONFIDENCE))
    lines = [
        "# Claims that are curves",
        "",
        f"{datetime.date.today()}, seeds from {FIRST_SEED}. Remade by `python "
        "benches/record_claims.py`.",
        "",
        f"## True claims: {options.draws:,} draws of {TRIALS} rows a side, confidence {CONFIDENCE}",
        "",
        f"More than {most} refuted would be more than the confidence allows (exact binomial, "
        f"{_ALPHA}). With 400 rows a bound may be too wide to see even a fifth: the control "
        "shows where it is not.",
        "",
        *record_nulls(options.draws),
        "",
        f"## One run: {options.draws:,} draws, confidence {CONFIDENCE}",
        "",
        "Each canary moves its own score alone, by what the claim allows.",
        "",
        *record_runs(options.draws),
        "",
        f"## One step of DP-SGD, {SEEDS} seeds, confidence .95",
        "",
        "The recipes are those of `dpcore reproduce dpsgd-audit`; the first has no fault.",
        "",
        *record_steps(SEEDS),
        "",
        f"## Whole audits of Gaussian noise of mu 1: 2,000 trials, confidence {CONFIDENCE}",
        "",
        *record_audits(options.audits),
        "",
        "## Gaussian noise of mu 1.1, claimed 1: trials for 95 % power at confidence .95",
        "",
        *record_power(options.draws // 5),
        "",
        say_whether_zcdp_sees(1.1),
        "",
    ]
    options.out.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
