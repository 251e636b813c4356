"""Both doors: a native mechanism and a Python function are audited alike; attacks and events."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import Laplace, Pair, published
from dpcore.attacks import MajorityVote
from dpcore.exact import vote_log_probabilities
from dpcore.mechanisms import Steps
from dpcore.published import SYSTEMS

ALPHA = 1e-6


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
    one = dpcore.audit(native, pair, trials=trials, rng=1)
    other = dpcore.audit(twin(native), pair, trials=trials, rng=2, claim=1.0)
    assert (one.route, other.route) == ("integer", "callable")
    assert one.verdict == other.verdict
    seen = dpcore.exact.vote_loss(native, pair)
    assert one.verdict == ("refuted" if seen > 1.05 else "not refuted by this attack")
    assert min(side_pvalues(one, other)) > ALPHA / 36
    # The oracle belongs to what the core runs; it must not vouch for a function.
    assert one.exact == seen
    assert other.exact is None
    assert other.own_claim is None


def test_a_twin_five_per_cent_off_is_seen():
    """The control of the test above."""
    native = published.LaplaceMechanism(1.0)
    pair = native.default_pair(1)
    one = dpcore.audit(native, pair, trials=10**6, rng=1)
    off = twin(published.LaplaceMechanism(1.05))
    other = dpcore.audit(off, pair, trials=10**6, rng=2, claim=1.0)
    assert min(side_pvalues(one, other)) < ALPHA / 36


@pytest.mark.parametrize("dim", [1, 3])
def test_threads_do_not_change_the_counts_of_a_callable(dim):
    mechanism = twin(published.HalfNoise(1.0))
    pair = Pair(np.zeros(dim), np.ones(dim))
    audits = [
        dpcore.audit(mechanism, pair, trials=20_500, rng=3, block=1000, threads=threads)
        for threads in (1, 2, 3)
    ]
    assert audits[0] == audits[1] == audits[2]
    assert audits[1].threads == 2


def test_one_thread_is_the_default_for_a_callable():
    names = set()

    def mechanism(x, size, rng):
        names.add(threading.current_thread().name)
        return rng.normal(size=size)

    report = dpcore.audit(mechanism, trials=5000, block=100, rng=1)
    assert report.threads == 1
    assert names == {threading.current_thread().name}


def scalar(x, size, rng):
    return x[0] + rng.laplace(size=size)


def column(x, size, rng):
    return x + rng.laplace(size=(size, 1))


def test_one_number_an_output():
    flat, tall = (dpcore.audit(one, trials=5000, rng=4) for one in (scalar, column))
    assert flat.shape == ()
    assert tall.shape == (1,)
    # One number an output has blocks of the same size, hence the same draws.
    assert flat.block == tall.block
    assert flat.counts == tall.counts
    assert flat.outputs("x", 0, 5000).shape == (5000,)
    np.testing.assert_array_equal(flat.outputs("x", 10, 20), tall.outputs("x", 10, 20)[:, 0])


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8, np.bool_, ">f8"]
)
@pytest.mark.parametrize("attack", [None, lambda a, b, pair: lambda o: o[:, 0] > 0])
def test_outputs_of_other_types(dtype, attack):
    def mechanism(x, size, rng):
        return (rng.random((size, 2)) * 2 + x).astype(dtype)

    report = dpcore.audit(mechanism, ([0, 0], [1, 1]), trials=3000, rng=5, attack=attack, block=99)
    k, k_prime = (
        int(report.event(report.outputs(side, 0, 3000)).sum()) for side in ("x", "x_prime")
    )
    assert (report.counts.k, report.counts.k_prime) == (k, k_prime)
    assert report.outputs("x", 0, 1).dtype == np.dtype(dtype).newbyteorder("=")


def test_outputs_may_be_lists_or_any_shape_for_a_custom_event():
    def words(x, size, rng):
        return [x if rng.random() < 0.75 else "no" for _ in range(size)]

    def attack(outputs, outputs_prime, pair):
        return lambda outputs: outputs == pair.x

    report = dpcore.audit(words, ("yes", "no"), trials=2000, rng=6, attack=attack)
    assert report.counts.k_prime == 0
    assert stats.binomtest(report.counts.k, 2000, 0.75).pvalue > ALPHA
    assert report.direction == "x"
    assert report.nan == 0

    def images(x, size, rng):
        return rng.normal(x.sum(), 1.0, (size, 3, 4))

    report = dpcore.audit(
        images,
        (np.zeros((2, 2)), np.ones((2, 2))),
        trials=500,
        attack=lambda a, b, pair: lambda o: o.mean(axis=(1, 2)) > 2.0,
    )
    assert report.shape == (3, 4)
    assert report.elements == 12
    assert report.epsilon_lower > 1


def returning(value):
    def broken(x, size, rng):
        return value(x, size, rng)

    return broken


NAME = r"outputs of test_doors\.returning\.<locals>\.broken must be "


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (lambda x, n, r: 1.0, ValueError, r"an array with 2 rows, one per output, got \(\)"),
        (lambda x, n, r: None, ValueError, r"an array with 2 rows, one per output, got \(\)"),
        (
            lambda x, n, r: np.zeros((n + 1, 2)),
            ValueError,
            r"an array with 2 rows, one per output, got \(3, 2\)",
        ),
        (
            lambda x, n, r: np.zeros((2, n)).T if n == 2 else np.zeros((2, n)),
            ValueError,
            r"an array with \d+ rows, one per output, got \(2, \d+\)",
        ),
        (
            lambda x, n, r: np.zeros((n, n)),
            ValueError,
            r"of shape \((\d+), 2\) in every call, got \(\1, \1\)",
        ),
        (lambda x, n, r: np.zeros(n), ValueError, r"of shape \(size, 2\), got \(\d+,\)"),
        (lambda x, n, r: np.zeros((n, 3)), ValueError, r"of shape \(size, 2\), got \(\d+, 3\)"),
        (lambda x, n, r: np.zeros((n, 1, 2)), ValueError, r"of shape \(size, 2\), got"),
        (lambda x, n, r: np.zeros((n, 2)) + 0j, TypeError, r"real numbers, got dtype\('compl"),
        (lambda x, n, r: np.full((n, 2), "a"), TypeError, "real numbers, got dtype"),
        (lambda x, n, r: [[1.0], [1.0, 2.0]] * (n // 2), TypeError, "an array, got"),
        (lambda x, n, r: np.full((n, 2), None), TypeError, r"real numbers, got dtype\('O'\)"),
    ],
)
def test_wrong_outputs_are_named(value, kind, text):
    with pytest.raises(kind, match=f"^{NAME}{text}"):
        dpcore.audit(returning(value), dpcore.pairs.zeros_ones(2), trials=10_000, rng=1)


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
        dpcore.audit(mechanism, trials=2000, block=100, threads=threads)
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
            dpcore.audit(mechanism, trials=100, attack=attack)


def test_a_mechanism_that_is_not_thread_safe_refuses_threads():
    class Unsafe:
        thread_safe = False

        def __call__(self, x, size, rng):
            return rng.normal(size=size)

    assert dpcore.audit(Unsafe(), trials=100).threads == 1
    assert dpcore.audit(Unsafe(), trials=100, threads=1).threads == 1
    text = "threads must be 1 for a mechanism that is not thread-safe, got 2"
    with pytest.raises(ValueError, match=f"^{text}$"):
        dpcore.audit(Unsafe(), trials=100, threads=2)


def test_a_subclass_is_audited_by_its_own_call():
    class Silent(Laplace):
        """Says Laplace, adds nothing."""

        def __call__(self, x, size, rng=None):
            return np.tile(x, (size, 1))

    report = dpcore.audit(Silent(1.0), trials=10_000, claim=1.0, rng=1)
    assert report.route == "callable"
    assert report.epsilon_hat == math.inf
    assert report.verdict == "refuted"
    assert report.exact is None
    assert report.name.endswith("Silent")

    class Quieter(published.DPText):
        """Inherits the native call, but describes other steps: those are audited."""

        def steps(self, dim):
            return Steps(Laplace(10.0 * self.sensitivity / self.epsilon))

    report = dpcore.audit(Quieter(1.0), trials=10_000, rng=1)
    assert report.route == "callable"
    assert report.verdict == "not refuted by this attack"
    assert report.epsilon_hat < 0.3
    assert dpcore.audit(published.DPText(1.0), trials=10_000, rng=1).verdict == "refuted"

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
    assert report.pair == Mine().default_pair()
    assert report.verdict == "refuted"

    class Metric(Mine):
        norm, sensitivity = "l1", 1.0

    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0, got 6.0"):
        dpcore.audit(Metric(), trials=1000)

    class Vague(Mine):
        norm = "l1"  # but nothing that says how far neighbours are apart

    assert dpcore.audit(Vague(), trials=1000).claim == 0.5


# Attacks and events.


def threshold_attack(outputs, outputs_prime, pair):
    cut = float(np.quantile(outputs_prime[:, 0], 0.9))
    return lambda outputs: outputs[:, 0] > cut


@pytest.mark.parametrize("mechanism", [Laplace(0.5), dpcore.Gaussian(0.5), column])
def test_any_function_can_be_an_attack(mechanism):
    report = dpcore.audit(mechanism, trials=20_000, attack=threshold_attack, rng=2)
    assert report.attack.endswith("threshold_attack")
    assert report.direction == "x_prime"
    assert stats.binomtest(report.counts.k_prime, 20_000, 0.1).pvalue > 1e-6 or report.pilot < 10**4
    assert report.epsilon_lower > 0.5
    assert report.exact is None


def test_the_attack_sees_pilot_draws_and_only_those():
    seen = []

    def attack(outputs, outputs_prime, pair):
        seen.append((np.array(outputs), np.array(outputs_prime)))
        return lambda outputs: outputs[:, 0] > 0.5

    for mechanism in (Laplace(1.0), column):
        seen.clear()
        report = dpcore.audit(mechanism, trials=4000, attack=attack, rng=3)
        ((outputs, outputs_prime),) = seen
        assert outputs.shape == outputs_prime.shape == (report.pilot, 1)
        for side, pilot in (("x", outputs), ("x_prime", outputs_prime)):
            assert not np.isin(report.outputs(side, 0, 4000), pilot).any()


def test_the_direction_follows_the_pilot():
    def rare(x, size, rng):
        return (rng.random(size) < 0.9 - 0.8 * x[0]).astype(float)

    high = dpcore.audit(rare, trials=5000, attack=lambda a, b, p: lambda o: o > 0.5, rng=4)
    low = dpcore.audit(rare, trials=5000, attack=lambda a, b, p: lambda o: o < 0.5, rng=4)
    assert (high.direction, low.direction) == ("x", "x_prime")
    assert high.epsilon_lower > 1.5
    assert low.epsilon_lower > 1.5
    swapped = dpcore.audit(
        rare, ([1.0], [0.0]), trials=5000, attack=lambda a, b, p: lambda o: o > 0.5, rng=4
    )
    assert swapped.direction == "x_prime"


@pytest.mark.parametrize("attack", [None, lambda a, b, pair: lambda o: np.ones(len(o), bool)])
def test_a_tie_counts_the_vote_for_x_prime_with_x_prime_in_the_numerator(attack):
    def constant(x, size, rng):
        return np.ones((size, 1))

    report = dpcore.audit(constant, trials=1000, attack=attack, claim=0.0)
    assert report.direction == "x_prime"
    assert report.epsilon_lower == 0.0
    assert report.verdict == "not refuted by this attack"
    if attack is None:
        assert report.event.vote == "x_prime"
        tiny = dpcore.audit(constant, trials=99)
        assert (tiny.pilot, tiny.event.vote, tiny.direction) == (0, "x_prime", "x_prime")


def test_the_pilot_of_the_vote_is_at_most_one_per_cent():
    for trials, pilot in [(99, 0), (100, 1), (12_345, 64), (10**6, 8192), (10**8, 2**17)]:
        report = dpcore.audit(Laplace(1.0), trials=trials, rng=1)
        assert report.pilot == pilot <= trials // 100


def test_the_vote_of_the_attack_class_is_that_of_the_audit():
    """MajorityVote called as any attack chooses as the built-in route does, from equal pilots."""
    mechanism, pair = published.HalfNoise(1.0), dpcore.pairs.zeros_ones(2)
    report = dpcore.audit(mechanism, pair, trials=10**5, rng=5, claim=1.0)
    event = MajorityVote()(
        *(dpcore.sample(mechanism, x, 2000, rng=5) for x in (pair.x, pair.x_prime)), pair
    )
    assert event == report.event

    def wrapped(outputs, outputs_prime, pair):
        return MajorityVote()(outputs, outputs_prime, pair)

    again = dpcore.audit(mechanism, pair, trials=10**5, rng=5, claim=1.0, attack=wrapped)
    assert again.event == report.event
    assert again.counts == report.counts
    assert again.exact == report.exact == pytest.approx(vote_loss(mechanism, pair))


def vote_loss(mechanism, pair):
    law = vote_log_probabilities(mechanism, pair)
    return max(abs(law.log_p - law.log_p_prime), abs(law.log_q - law.log_q_prime))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (lambda o: o[:, 0], r"\('float64', \(\d+,\)\)"),
        (lambda o: (o[:, 0] > 0).astype(int), r"\('int64', \(\d+,\)\)"),
        (lambda o: o > 0, r"\('bool', \(\d+, 1\)\)"),
        (lambda o: (o[:, 0] > 0)[:-1], r"\('bool', \(\d+,\)\)"),
        (lambda o: True, r"\('bool', \(\)\)"),
        (lambda o: None, r"\('object', \(\)\)"),
    ],
)
@pytest.mark.parametrize("mechanism", [Laplace(1.0), column])
def test_an_event_returns_one_bool_an_output(event, text, mechanism):
    text = r"^event must be a function that returns bools of shape \(\d+,\), got " + text
    with pytest.raises(ValueError, match=text):
        dpcore.audit(mechanism, trials=2000, attack=lambda a, b, pair: event)


def test_an_event_may_return_a_list():
    report = dpcore.audit(
        Laplace(1.0), trials=500, attack=lambda a, b, pair: lambda o: [v > 0.5 for v in o[:, 0]]
    )
    assert 0 < report.counts.k < 500


def test_an_attack_returns_an_event():
    for found in (None, 1, np.ones(3, bool)):
        with pytest.raises(TypeError, match="event must be a callable outputs -> bools, got"):
            dpcore.audit(Laplace(1.0), trials=500, attack=lambda a, b, pair, found=found: found)
