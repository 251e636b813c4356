"""The audit's trial loop: ours against numpy, per core, and how it scales."""

import numpy as np
import pytest

import dpcore
from dpcore.attacks import MajorityVote
from dpcore.published import LaplaceMechanism

TRIALS = 10**6
VOTE = MajorityVote()


def trials_of(tiny: bool, trials: int = TRIALS) -> int:
    return 20_000 if tiny else trials


def check(votes: list[int], trials: int, dim: int = 128) -> None:
    """The empirical loss is within six standard errors of the closed form."""
    exact = dpcore.exact.vote_log_probabilities(*system(dim))
    for k, log_p in zip(votes, (exact.log_p, exact.log_p_prime), strict=True):
        p = np.exp(log_p)
        assert abs(k - trials * p) < 6.0 * np.sqrt(trials * p * (1.0 - p))


def system(dim: int) -> tuple[LaplaceMechanism, dpcore.Pair]:
    """Laplace at epsilon 1 on the zeros/ones pair."""
    return LaplaceMechanism(1.0, sensitivity=float(dim)), dpcore.pairs.zeros_ones(dim)


def ours(route: str):
    def contender(trials: int, dim: int):
        def work() -> list[int]:
            mechanism, pair = system(dim)
            found = dpcore.audit(
                mechanism, pair, attack=VOTE, trials=trials, rng=1, threads=1, route=route,
                progress=False,
            )  # fmt: skip
            # The vote counted may be either one; votes for x' are wanted here.
            k, k_prime = found.counts.k, found.counts.k_prime
            if found.event.vote == "x":
                k, k_prime = trials - k, trials - k_prime
            return [k, k_prime]

        return work

    contender.__name__ = f"dpcore_{route}_route"
    return contender


def chunked(trials: int, dim: int, bits) -> list[int]:
    """Numpy in chunks that fit the second-level cache."""
    rows = max(1, 2**15 // dim)
    votes = []
    for x in (0.0, 1.0):
        total = 0
        for first in range(0, trials, rows):
            size = min(rows, trials - first)
            total += int(np.count_nonzero(2 * np.count_nonzero(bits(x, size), axis=1) > dim))
        votes.append(total)
    return votes


def numpy_laplace_in_chunks(trials: int, dim: int):
    rng = np.random.default_rng(1)
    return lambda: chunked(
        trials, dim, lambda x, size: x + rng.laplace(scale=dim, size=(size, dim)) >= 0.5
    )


def numpy_threshold_on_random(trials: int, dim: int):
    """Numpy's own integer route: P(x + noise >= 1/2) as a threshold on one uniform draw."""
    rng = np.random.default_rng(1)
    miss = {0.0: 1.0 - np.exp(-0.5 / dim) / 2.0, 1.0: np.exp(-0.5 / dim) / 2.0}
    return lambda: chunked(trials, dim, lambda x, size: rng.random((size, dim)) >= miss[x])


def papers_way(trials: int, dim: int):
    """All repeats in one array, as the reference code does it."""
    rng = np.random.default_rng(1)

    def work() -> list[int]:
        votes = []
        for x in (0.0, 1.0):
            outputs = x + rng.laplace(scale=dim, size=(trials, dim))
            rounded = np.where(outputs < 0.5, 0.0, 1.0)
            votes.append(int(np.count_nonzero(rounded.mean(axis=1) > 0.5)))
        return votes

    return work


CONTENDERS = [
    ours("integer"), ours("sampled"), numpy_threshold_on_random, numpy_laplace_in_chunks,
    papers_way,
]  # fmt: skip


@pytest.mark.parametrize("contender", CONTENDERS)
def test_audit_at_128(race, tiny, contender):
    quick = contender.__name__.startswith("dpcore")
    trials = trials_of(tiny, 10 * TRIALS if quick else TRIALS)
    work = contender(trials, 128)
    rounds = 5 if quick else 3
    votes = race("audit at dimension 128, one thread", work, 2 * 128 * trials, rounds)
    check(votes, trials)


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 32, 127, 128, 129])
@pytest.mark.parametrize("route", ["integer", "sampled"])
def test_dimensions(race, tiny, route, dim):
    trials = trials_of(tiny, max(10**5, 2**25 // dim))
    votes = race(f"cost a draw by dimension, {route}", ours(route)(trials, dim), 2 * dim * trials)
    check(votes, trials, dim)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_linear_growth(race, tiny, factor):
    trials = factor * trials_of(tiny)
    work = ours("integer")(trials, 128)
    check(race("growth with trials, integer route", work, 2 * 128 * trials), trials)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(race, tiny, threads):
    trials = trials_of(tiny, 10 * TRIALS)
    mechanism, pair = system(128)
    found = race(
        "threads, integer route",
        lambda: dpcore.audit(mechanism, pair, attack=VOTE, trials=trials, rng=1, threads=threads),
        2 * 128 * trials,
        5,
    )
    check([found.counts.k, found.counts.k_prime], trials)


def mechanism(x: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    return x + rng.laplace(scale=128.0, size=(size, x.size))


def sampling_alone(trials: int, threads: int):
    """The callable's own cost: the same calls, nothing counted."""
    pair = dpcore.pairs.zeros_ones(128)

    def work() -> None:
        for side, x in enumerate((pair.x, pair.x_prime)):
            for block in range(trials // 1024):
                sequence = np.random.SeedSequence(1, spawn_key=(2, side, block))
                mechanism(x, 1024, np.random.Generator(np.random.PCG64(sequence)))

    return work


def audit_of_callable(trials: int, threads: int):
    pair = dpcore.pairs.zeros_ones(128)
    return lambda: dpcore.audit(
        mechanism, pair, attack=VOTE, trials=trials, rng=1, claim=1.0, threads=threads
    )


@pytest.mark.parametrize(
    ("contender", "threads"), [(sampling_alone, 1), (audit_of_callable, 1), (audit_of_callable, 2)]
)
def test_callable(race, tiny, contender, threads):
    trials = 1024 * (20 if tiny else 200)
    work = contender(trials, threads)
    found = race("numpy callable at dimension 128", work, 2 * 128 * trials, 5)
    if found is not None:
        check([found.counts.k, found.counts.k_prime], trials)
        assert found.counts == audit_of_callable(trials, 3 - threads)().counts
