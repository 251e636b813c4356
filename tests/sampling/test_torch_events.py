"""Events on tensors, where the outputs are: the counts of numpy on the same outputs, no copies."""

from __future__ import annotations

import numpy as np
import pytest
from shared_extras import needs

import dpcore
import dpcore.events.event as held_module
from dpcore import Pair
from dpcore.attacks import Coordinatewise, MajorityVote, Threshold
from dpcore.attacks.classifier import Features, Linear
from dpcore.attacks.threshold import Closer, Coordinate, RowMax, RowMin, RowSum
from dpcore.events import Above, EveryCoordinate, Never, Vote
from dpcore.events.event import Batch, numpy_of, round_up_to_format, score_held
from dpcore.events.every_coordinate import Intervals
from dpcore.sampling.driver import Task, run_shard
from dpcore.sampling.replay import hash_prefixes
from dpcore.sampling.rows import constant_columns
from dpcore.sampling.sources import CallableDraws
from dpcore.sampling.tally import Curve, Hits, TallyRows, Watch, count_apart_from_main_event
from dpcore.streams import COUNT

torch = needs("torch")

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
KINDS = ["float64", "float32", "bfloat16", "float16", "int64", "bool"]
DIM = 7
ROWS = 500

X = np.array([0.1, -0.3, 0.0, 1.0, 2.5, -1.0, 0.7])
X_PRIME = np.array([0.4, -0.3, 1.0, 0.0, 2.0, -0.1, 0.7])
PAIR = Pair(X, X_PRIME)

LINEAR = Linear(
    Features(
        np.linspace(-1.0, 1.0, DIM), np.array([0.0, 0.25, 0.1, 0.0, 1e-3, 0.5, 0.0]),
        np.array([0, 2, 3, 5]), np.array([0.0, -0.3, np.nan, np.inf]),
        np.array([0.0, 0.4, np.nan, np.inf]),
    ),
    np.append(np.linspace(-0.7, 0.9, DIM), [3.0, -1.0, 0.3, 0.2]), 0.1,
)  # fmt: skip

SCORES = [
    Coordinate(0), Coordinate(6), RowSum(), RowMin(), RowMax(), LINEAR,
    Closer("l1", X, X_PRIME), Closer("l2", X, X_PRIME), Closer("l1", X_PRIME - 3.0, X),
]  # fmt: skip


def outputs_of(kind, special, seed=1, rows=ROWS, dim=DIM):
    """Multiples of a tenth, many of them equal; of floats some NaN and infinite ones."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-20, 21, (rows, dim)) / 10.0
    values[: rows // 2] = rng.laplace(scale=2.0, size=(rows // 2, dim))
    if special:
        for odd in (np.nan, np.inf, -np.inf, -0.0, 6e4, -6e4):
            values[rng.integers(0, rows, 20), rng.integers(0, dim, 20)] = odd
    return torch.from_numpy(values).to(getattr(torch, kind))


CASES = [(kind, special) for kind in KINDS for special in (False, True)[: 1 + ("float" in kind)]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "special"), CASES)
@pytest.mark.parametrize("score", SCORES, ids=str)
def test_thresholds_are_counted_as_numpy_counts(score, kind, special, device, monkeypatch):
    """On the CPU the steps on scores are numpy's; here they are those of other devices too."""
    tensor = outputs_of(kind, special)
    array = numpy_of(tensor)
    scores = score(array)
    finite = np.unique(scores[np.isfinite(scores)])
    held = Batch(tensor.to(device))
    monkeypatch.setattr(type(score), "compiled", False, raising=False)
    assert score_held(score, held) is not None
    # At values of the score itself and beside them: there an order of summing would show.
    ties = finite[:: max(1, finite.size // 15)]
    edges = np.unique(np.concatenate([ties, np.nextafter(ties, np.inf), ties + 0.01]))
    curve = Curve(score, edges)
    assert curve(held) == curve(array)
    if special:
        monkeypatch.setattr(held_module, "_cpu_tensor_as_numpy_view", lambda numbers: numbers)
    assert curve(held) == curve(array)
    for edge in edges[:: max(1, edges.size // 8)]:
        for side in ("above", "below"):
            event = Above(score, edge, side)
            seen, known = event.seen(held, "held"), event.seen(array, "array")
            assert (seen.hits, seen.nan) == (known.hits, known.nan)
            assert np.array_equal(seen.answers, known.answers)
            after = count_apart_from_main_event(curve, held, score, seen.scores)
            assert after == count_apart_from_main_event(curve, array, score, known.scores)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "special"), CASES)
def test_votes_are_counted_as_numpy_counts(kind, special, device):
    tensor = outputs_of(kind, special)
    array = numpy_of(tensor)
    towards = np.array([1, -1, 0, 1, -1, -1, 1])
    for threshold in (np.zeros(DIM), X, np.full(DIM, 0.1), np.full(DIM, 6e4), X * 1e300):
        for signs in (towards, -towards, np.abs(towards), -np.abs(towards)):
            for vote in ("x", "x_prime"):
                event = Vote(threshold, signs, vote)
                seen, known = (
                    event.seen(Batch(tensor.to(device)), ""),
                    event.seen(array, ""),
                )
                assert (seen.hits, seen.nan) == (known.hits, known.nan)
                assert np.array_equal(seen.answers, event(array))
    one = Vote([0.1], [-1])
    seen = one.seen(Batch(tensor[:, 0].to(device)), "")
    assert seen.hits == one.seen(array[:, 0], "").hits
    with pytest.raises(ValueError, match=r"^outputs of it must be of shape \(size, 1\), got"):
        one.seen(Batch(tensor.to(device)), "it")


def test_an_order_of_summing_is_no_matter():
    """The control: torch's own sums differ from the score's, and are settled."""
    tensor = outputs_of("float64", False, rows=4000, dim=100)
    score = RowSum()
    held = score_held(score, Batch(tensor))
    exact = score(tensor.numpy())
    assert (held.values != exact).any()
    edges = np.unique(exact)[::50]
    rough = (held.values[:, None] >= edges).sum(axis=0).tolist()
    assert rough != (exact[:, None] >= edges).sum(axis=0).tolist()
    assert list(Curve(score, edges)(Batch(tensor))) == (exact[:, None] >= edges).sum(0).tolist()


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16"])
def test_edges_are_rounded_so_that_comparisons_stay(kind):
    rng = np.random.default_rng(1)
    ends = [0.0, -0.0, 1e-46, -1e-46, 1e-9, -1e-9, 65519.0, 1e39, -1e39, 1e308, -1e308, 65504.0]
    edges = np.concatenate([ends, rng.standard_cauchy(500), rng.integers(-9, 9, 50) / 8])
    values = torch.from_numpy(np.append(edges, [np.inf, -np.inf, np.nan])).to(getattr(torch, kind))
    around = torch.cat([values, values * (1 + 2e-2), values * (1 - 4e-3)]).double().numpy()
    rounded = round_up_to_format(edges, kind)
    assert torch.equal(torch.from_numpy(rounded), torch.from_numpy(rounded).to(values.dtype).to(
        torch.float32 if kind == "bfloat16" else values.dtype))  # fmt: skip
    with np.errstate(invalid="ignore"):
        compared = (around[:, None] >= one for one in (rounded.astype(np.float64), edges))
        assert np.array_equal(*compared)
    assert (round_up_to_format(edges + 1e-3, kind) != rounded).any()


def test_other_events_and_scores_see_an_array():
    tensor = outputs_of("float32", True)
    array = tensor.numpy()
    inside = EveryCoordinate(((0, 1), (3,)), (Intervals([0.0], True), Intervals([1.0], False)), DIM)
    own = lambda outputs: outputs[:, 0] > 0.3  # noqa: E731
    twice = Above(lambda outputs: 2.0 * np.asarray(outputs)[:, 1], 0.3)
    for event in (inside, Never(), own, twice):
        work = TallyRows(event, "m", (Watch(Hits(event), 99),), 0)
        left, right = work(Batch(tensor), 0), work(array, 0)
        assert (left.hits, left.nan, left.watched) == (right.hits, right.nan, right.watched)

    class Other(RowSum):
        def __call__(self, outputs):
            return -super().__call__(outputs)

    assert score_held(Other(), Batch(tensor)) is None


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64", "int64"])
def test_rows_are_compared_as_those_of_an_array(kind):
    tensor = outputs_of(kind, kind != "int64")
    tensor[:, 2] = tensor[0, 2]
    if kind != "int64":
        tensor[:, 4] = torch.nan
    held, array = Batch(tensor), numpy_of(tensor)
    first, second = constant_columns(held), constant_columns(array)
    assert first.rows == second.rows
    assert np.array_equal(first.columns[0], second.columns[0])
    assert np.array_equal(first.values[0], second.values[0], equal_nan=True)
    assert constant_columns(Batch(tensor[:, :2])) is None is constant_columns(array[:, :2])
    for needed in (0.0, 13.0, 300.0):
        assert (
            hash_prefixes(held, needed, False).digests
            == hash_prefixes(array, needed, False).digests
        )
    work = TallyRows(Above(Coordinate(0), 0.5), "m", (), 0)
    near, known = work(held, 0).evidence, work(array, 0).evidence
    assert near.pieces.sums == known.pieces.sums
    assert np.array_equal(near.near, known.near)


# Whole audits.


class Noise(torch.nn.Module):
    """Laplace noise in float32; `kind` is what it returns."""

    def __init__(self, kind="float32", nan=False):
        super().__init__()
        self.kind, self.nan = getattr(torch, kind), nan

    def forward(self, x):
        noise = torch.empty(x.shape, dtype=torch.float64).exponential_()
        sign = torch.empty(x.shape, dtype=torch.float64).bernoulli_().mul_(2).sub_(1)
        outputs = (x.double() + sign * noise).to(self.kind)
        if self.nan:
            outputs[outputs > 3.0] = torch.nan
        return outputs


def as_arrays(module):
    """The same draws as arrays alone: the way of any callable."""
    adapted = dpcore.adapters.torch.TorchModule(module)
    return lambda x, size, rng: adapted(x, size, rng)


ATTACKS = {
    "vote": MajorityVote(), "coordinate": Threshold(2), "sum": Threshold("sum"),
    "l1": Threshold("l1"), "l2": Threshold("l2"), "min": Threshold("min"),
    "max": Threshold("max"), "pooled": Coordinatewise(), "auto": None,
}  # fmt: skip


def audited(mechanism, attack, **options):
    pair = (np.zeros(DIM), np.linspace(-1.0, 1.0, DIM))
    options = {"trials": 4000, "pilot": 1000, "block": 300, "claim": 9.0, "rng": 7, **options}
    return dpcore.audit(mechanism, pair, attack=attack, **options)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ATTACKS)
def test_an_audit_counts_what_numpy_counts(name, kind):
    module = Noise(kind, nan=name in ("vote", "min"))
    found, known = (audited(m, ATTACKS[name]) for m in (module, as_arrays(module)))
    for field in ("counts", "event", "nan", "nan_prime", "curve", "floating_point", "pooled"):
        assert getattr(found, field) == getattr(known, field), field
    assert found.checks == known.checks == ()


@pytest.mark.parametrize(
    "score", [None, Coordinate(1), RowSum(), Closer("l2", X, X_PRIME), RowMin(), RowMax()], ids=str
)
def test_no_block_is_copied(score, monkeypatch):
    """Of a block of 1,700 rows a few leave the device: those that tell it again."""
    copied = []
    # On the CPU numpy looks at the scores without a copy: here they stay, as on other devices.
    monkeypatch.setattr(held_module, "_cpu_tensor_as_numpy_view", lambda numbers: numbers)

    class Spied(torch.Tensor):
        """Notes how many numbers go to numpy or to another device."""

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if getattr(function, "__name__", "") in ("numpy", "cpu", "tolist", "item", "__array__"):
                copied.append(args[0].numel() * (1 if args[0].dtype != torch.bool else 0))
            return super().__torch_function__(function, types, args, kwargs or {})

    class Spying(torch.nn.Module):
        def forward(self, x):
            return Noise()(x).as_subclass(Spied)

    mechanism, pair = dpcore.adapters.torch.TorchModule(Spying()), Pair(X, X_PRIME)
    event = Vote.between(pair) if score is None else Above(score, 0.3)
    watches = () if score is None else (Watch(Curve(score, np.linspace(-1, 1, 50)), 10**6),)
    draws, rows = CallableDraws(mechanism, pair, 1, 1700, (DIM,)), 1700
    task = Task(COUNT, 9 * rows, 10 * rows, 0, 10 * rows, (13.0, 13.0))
    run_shard(draws, TallyRows(event, "m", watches, 0), task)
    # On each side 16 rows for the mark, two to see whether all are equal, one number a threshold.
    assert 0 < sum(copied) <= 2 * (18 * DIM + 60)
    copied.clear()
    # The control: what wants an array gets the whole block.
    run_shard(draws, TallyRows(lambda outputs: outputs[:, 0] > 0.0, "m", (), 0), task)
    assert sum(copied) >= 2 * rows * DIM
