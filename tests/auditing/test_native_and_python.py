"""A native mechanism and a Python function are audited in the same way."""

from __future__ import annotations

import importlib.util
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from shared_audits import count_again

import dpcore
from dpcore import Laplace, Pair, published
from dpcore.attacks import MajorityVote
from dpcore.mechanisms import Steps
from dpcore.published import SYSTEMS

ALPHA = 1e-6
VOTE = MajorityVote()
ATTACKS = [VOTE, None]


def clipped(x, clip):
    if clip is None:
        return x
    return x * min(1.0, clip.radius / np.linalg.norm(x, 1 if clip.norm == "l1" else 2))


def faulty(size, scale, rng):
    with np.errstate(invalid="ignore"):
        u = rng.random(size)
        noise = -scale * np.sign(u) * np.log(1.0 - 2.0 * u)
    return np.where(np.isnan(noise), 0.0, noise)


def twin(system):
    """The same system in numpy, a plain function that claims nothing."""

    def mechanism(x, size, rng):
        steps = system.steps(x.size)
        shape = (size, x.size)
        if isinstance(steps.noise, Laplace):
            noise = rng.laplace(0.0, steps.noise.scale, shape)
        else:
            noise = faulty(shape, steps.noise.scale, rng)
        return (clipped(x, steps.clip) + noise) * steps.factor

    return mechanism


def fisher(left, right):
    """Two-sided p-value for equal probabilities behind two counts of n: exact, conditional."""
    k, k_prime, n = left[0], right[0], left[1]
    law = stats.hypergeom(2 * n, k + k_prime, n)
    return min(1.0, 2.0 * min(law.cdf(k), law.sf(k - 1)))


def votes(report):
    """Counts of the vote for x': by symmetry a pilot may choose either vote."""
    return report.counts if report.event.vote == "x_prime" else report.counts.complement()


def side_pvalues(one, other):
    a, b = votes(one), votes(other)
    return fisher((a.k, a.n), (b.k, b.n)), fisher((a.k_prime, a.n_prime), (b.k_prime, b.n_prime))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("dim", [1, 2])
def test_a_numpy_twin_gets_the_same_verdict(system, dim):
    native, trials = system(1.0), 10**5
    pair = native.default_pair(dim)
    one = dpcore.audit(native, pair, trials=trials, rng=1, attack=VOTE)
    other = dpcore.audit(twin(native), pair, trials=trials, rng=2, claim=1.0, attack=VOTE)
    assert (one.route, other.route, one.verdict) == ("integer", "callable", other.verdict)
    seen = dpcore.exact.vote_loss(native, pair)
    assert one.verdict == ("refuted" if seen > 1.05 else "not refuted by this attack")
    assert min(side_pvalues(one, other)) > ALPHA / 36
    # The oracle belongs to what the core runs; it must not vouch for a function.
    assert one.exact == seen
    assert (other.exact, other.own_claim) == (None, None)


def test_a_twin_five_per_cent_off_is_seen():
    """The control of the test above."""
    native = published.LaplaceMechanism(1.0)
    pair = native.default_pair(1)
    one = dpcore.audit(native, pair, trials=10**6, rng=1, attack=VOTE)
    off = twin(published.LaplaceMechanism(1.05))
    other = dpcore.audit(off, pair, trials=10**6, rng=2, claim=1.0, attack=VOTE)
    assert min(side_pvalues(one, other)) < ALPHA / 36


def test_one_thread_is_the_default_for_a_callable():
    names = set()

    def mechanism(x, size, rng):
        names.add(threading.current_thread().name)
        return rng.normal(size=size)

    assert dpcore.audit(mechanism, ([0.0], [1.0]), trials=5000, block=100, rng=1).threads == 1
    assert names == {threading.current_thread().name}


def scalar(x, size, rng):
    return x[0] + rng.laplace(size=size)


def column(x, size, rng):
    return x + rng.laplace(size=(size, 1))


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_number_an_output(attack):
    options = {"trials": 5000, "rng": 4, "attack": attack}
    flat, tall = (dpcore.audit(one, ([0.0], [1.0]), **options) for one in (scalar, column))
    assert flat.shape == ()
    assert tall.shape == (1,)
    # One number an output has blocks of the same size, hence the same draws.
    assert (flat.block, flat.counts) == (tall.block, tall.counts)
    assert flat.outputs("x", 0, 5000).shape == (5000,)
    np.testing.assert_array_equal(flat.outputs("x", 10, 20), tall.outputs("x", 10, 20)[:, 0])


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "i1", "u1", "?", ">f8"])
@pytest.mark.parametrize("attack", [*ATTACKS, lambda a, b, pair: lambda o: o[:, 0] > 0])
def test_outputs_of_other_types(dtype, attack):
    def mechanism(x, size, rng):
        return (rng.random((size, 2)) * 2 + x).astype(dtype)

    report = dpcore.audit(mechanism, ([0, 0], [1, 1]), trials=3000, rng=5, attack=attack, block=99)
    assert report.counts == count_again(report, 3000)
    assert report.outputs("x", 0, 1).dtype == np.dtype(dtype).newbyteorder("=")


def test_outputs_may_be_lists_or_any_shape_for_a_custom_event():
    def words(x, size, rng):
        return [x if rng.random() < 0.75 else "no" for _ in range(size)]

    def attack(outputs, outputs_prime, pair):
        return lambda outputs: outputs == pair.x

    report = dpcore.audit(words, ("yes", "no"), trials=2000, rng=6, attack=attack)
    assert report.counts.k_prime == 0
    assert stats.binomtest(report.counts.k, 2000, 0.75).pvalue > ALPHA
    assert (report.direction, report.nan) == ("x", 0)

    def images(x, size, rng):
        return rng.normal(x.sum(), 1.0, (size, 3, 4))

    bright = lambda a, b, pair: lambda o: o.mean(axis=(1, 2)) > 2.0  # noqa: E731
    report = dpcore.audit(images, (np.zeros((2, 2)), np.ones((2, 2))), trials=500, attack=bright)
    assert (report.shape, report.elements) == ((3, 4), 12)
    assert report.epsilon_lower > 1


def returning(value):
    def broken(x, size, rng):
        return value(x, size, rng)

    return broken


class Unreachable:
    """A tensor on a device that numpy does not reach."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("copy it to the host first")


def transpose_later(x, n, r):
    return np.zeros((2, n)).T if n == 2 else np.zeros((2, n))


NAME = r"outputs of test_native_and_python\.returning\.<locals>\.broken must be "


@pytest.mark.parametrize(("value", "kind", "text"), [
    (lambda x, n, r: 1.0, ValueError, r"an array with 2 rows, one per output, got \(\)"),
    (lambda x, n, r: None, ValueError, r"an array with 2 rows, one per output, got \(\)"),
    (lambda x, n, r: np.zeros((n + 1, 2)), ValueError, r"an array with 2 rows.* got \(3, 2\)"),
    (transpose_later, ValueError, r"an array with \d+ rows, one per output, got \(2, \d+\)"),
    (lambda x, n, r: np.zeros((n, n)), ValueError, r"of shape \((\d+), 2\) in .*\(\1, \1\)"),
    (lambda x, n, r: Unreachable(), TypeError, "an array, got"),
])  # fmt: skip
@pytest.mark.parametrize("attack", ATTACKS)
def test_wrong_outputs_are_named(value, kind, text, attack):
    mechanism, pair = returning(value), dpcore.pairs.zeros_ones(2)
    with pytest.raises(kind, match=f"^{NAME}{text}"):
        dpcore.audit(mechanism, pair, trials=10_000, rng=1, attack=attack)


@pytest.mark.parametrize(("value", "kind", "text"), [
    (lambda x, n, r: np.zeros(n), ValueError, r"of shape \(size, 2\), got \(\d+,\)"),
    (lambda x, n, r: np.zeros((n, 3)), ValueError, r"of shape \(size, 2\), got \(\d+, 3\)"),
    (lambda x, n, r: np.zeros((n, 1, 2)), ValueError, r"of shape \(size, 2\), got"),
    (lambda x, n, r: np.zeros((n, 2)) + 0j, TypeError, r"real numbers, got dtype\('compl"),
    (lambda x, n, r: np.full((n, 2), "a"), TypeError, "real numbers, got dtype"),
    (lambda x, n, r: np.full((n, 2), None), TypeError, r"real numbers, got dtype\('O'\)"),
])  # fmt: skip
def test_outputs_that_cannot_vote_are_named(value, kind, text):
    """A vote needs one number for each entry of the pair; the default attack takes them all."""
    pair, mechanism = dpcore.pairs.zeros_ones(2), returning(value)
    with pytest.raises(kind, match=f"^{NAME}{text}"):
        dpcore.audit(mechanism, pair, trials=10_000, rng=1, attack=VOTE)
    report = dpcore.audit(mechanism, pair, trials=10_000, rng=1, claim=0.0)
    # All these outputs are the same on both sides.
    assert report.epsilon_lower == 0.0


class Boom(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", [1, 2, 5, 9])
def test_what_a_callable_raises_passes_through(threads, call):
    calls, lock = [], threading.Lock()
    error = Boom("mine")

    def mechanism(x, size, rng):
        with lock:
            calls.append(size)
            if len(calls) >= call:
                raise error
        return rng.normal(size=(size, 1))

    with pytest.raises(Boom) as caught:
        dpcore.audit(mechanism, ([0.0], [1.0]), trials=2000, block=100, threads=threads)
    assert caught.value is error
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("where", ["attack", "event"])
def test_what_an_attack_or_event_raises_passes_through(where):
    def event(outputs):
        raise Boom("event")

    def attack(outputs, outputs_prime, pair):
        if where == "attack":
            raise Boom("attack")
        return event

    for mechanism in (Laplace(1.0), column):
        with pytest.raises(Boom, match=where):
            dpcore.audit(mechanism, ([0.0], [1.0]), trials=100, attack=attack)


def test_a_subclass_is_audited_by_its_own_call():
    class Silent(Laplace):
        """Says Laplace, adds nothing."""

        def __call__(self, x, size, rng=None):
            return np.tile(x, (size, 1))

    report = dpcore.audit(Silent(1.0), trials=10_000, claim=1.0, rng=1, attack=VOTE)
    assert (report.route, report.epsilon_hat, report.verdict) == ("callable", math.inf, "refuted")
    assert report.exact is None
    assert report.name.endswith("Silent")

    class Quieter(published.DPText):
        """Inherits the native call, but describes other steps: those are audited."""

        def steps(self, dim):
            return Steps(Laplace(10.0 * self.sensitivity / self.epsilon))

    report = dpcore.audit(Quieter(1.0), trials=10_000, rng=1, attack=VOTE)
    assert (report.route, report.verdict) == ("callable", "not refuted by this attack")
    assert report.epsilon_hat < 0.3
    for mechanism, verdict in ((Quieter, report.verdict), (published.DPText, "refuted")):
        for attack in ATTACKS:
            again = dpcore.audit(mechanism(1.0), trials=10_000, rng=1, attack=attack)
            assert again.verdict == verdict

    class Renamed(Laplace):
        """Inherits everything: a subclass of a noise is not taken for the noise."""

    with pytest.raises(TypeError, match=r"^noise must be one of dpcore's primitives, got "):
        dpcore.audit(Renamed(1.0), trials=100)


def test_an_object_with_a_claim_and_a_pair_of_its_own():
    class Mine:
        claim = 0.5

        def default_pair(self):
            return Pair([0.0, 0.0], [3.0, 3.0])

        def __call__(self, x, size, rng):
            return x + rng.laplace(size=(size, 2))

    report = dpcore.audit(Mine(), trials=10_000, rng=1)
    assert report.claim == report.own_claim == 0.5
    assert (report.pair, report.verdict) == (Mine().default_pair(), "refuted")

    class Metric(Mine):
        norm, sensitivity = "l1", 1.0

    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0, got 6.0"):
        dpcore.audit(Metric(), trials=1000)

    class Vague(Mine):
        norm = "l1"  # but nothing that says how far neighbours are apart

    assert dpcore.audit(Vague(), trials=1000).claim == 0.5


# The table of audits that the Rust tests read (tests/audit.rs) is what Python finds today.


SCRIPT = Path(__file__).parents[1] / "reference" / "make_audits.py"
SPEC = importlib.util.spec_from_file_location("make_audits", SCRIPT)
make_audits = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_audits)
HEAD, *ROWS = make_audits.FILE.read_text().splitlines()


def test_the_table_has_every_case():
    assert (make_audits.HEAD, len(make_audits.CASES)) == (HEAD, len(ROWS))


@pytest.mark.parametrize(("case", "row"), list(zip(make_audits.CASES, ROWS, strict=True)))
def test_counts_choices_and_bounds_are_those_of_the_table(case, row):
    assert make_audits.audited(case) == row
