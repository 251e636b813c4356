"""The bridge to torch: what a block costs beside the forward pass of the layer that is audited.

A block is 170 x 768 float32. `share_percent` is what the bridge itself does (the generator's state,
the event, its counts), each part the smallest of 100 blocks, against the layer's forward, the
smallest of 100 too; with `curve` 60 thresholds are counted beside the event. `whole_percent` is
all that an audit of 20,000 trials does beside it: pilot and checks of independence as well.
"""

import time

import numpy as np
import pytest

import dpcore
from dpcore.adapters.torch import TorchModule
from dpcore.attacks import MajorityVote, Threshold
from dpcore.attacks.threshold import Closer, Coordinate, RowMin, RowSum
from dpcore.events import Above, Vote
from dpcore.mechanisms.callables import call_tensor_mechanism, make_generator
from dpcore.sampling.tally import Curve, TallyRows, Watch
from dpcore.streams import COUNT, seeded_torch

torch = pytest.importorskip("torch", reason="torch is not installed")

ROWS, DIM = 170, 768
PAIR = dpcore.Pair(np.zeros(DIM), np.full(DIM, 0.01))
SCORES = {
    "coordinate": Coordinate(0), "min": RowMin(), "sum": RowSum(),
    "l1": Closer("l1", PAIR.x, PAIR.x_prime), "l2": Closer("l2", PAIR.x, PAIR.x_prime),
}  # fmt: skip
EVENTS = {"vote": Vote.between(PAIR), **{name: Above(one, 0.0) for name, one in SCORES.items()}}
ATTACKS = {
    "vote": MajorityVote(), "coordinate": Threshold("coordinate"), "sum": Threshold("sum"),
    "l1": Threshold("l1"), "threshold": Threshold(), "auto": None,
}  # fmt: skip


class Timed(torch.nn.Module):
    """A layer, and the seconds that its forward takes."""

    def __init__(self):
        super().__init__()
        self.layer, self.seconds = pytest.importorskip("dpcore.torch").LaplaceNoise(4.0), []

    def forward(self, x):
        begun = time.perf_counter()
        outputs = self.layer(x)
        self.seconds.append(time.perf_counter() - begun)
        return outputs


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def smallest(work, blocks):
    taken = []
    for _ in range(blocks):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def state():
    with seeded_torch(make_generator(1, COUNT, 0, 5)):
        pass


@pytest.mark.parametrize("curve", [False, True], ids=["alone", "curve"])
@pytest.mark.parametrize("name", EVENTS)
def test_a_block(race, benchmark, tiny, name, curve):
    module, event, blocks = Timed(), EVENTS[name], 2 if tiny else 100
    if curve and event.own_score is None:
        pytest.skip("a vote has no curve")
    watch = Watch(Curve(event.own_score, np.linspace(-99.0, 99.0, 60)), 10**9)
    work = TallyRows(event, "the layer", (watch,) * curve, 0)
    mechanism = TorchModule(module)

    def drawn():
        return call_tensor_mechanism(mechanism, PAIR.x, ROWS, make_generator(1, COUNT, 0, 5))

    outputs = drawn()
    smallest(drawn, blocks)
    # A block far behind the first, of which more is looked at.
    bridge = smallest(state, blocks) + smallest(lambda: work(outputs, ROWS * 10**4), blocks)
    benchmark.extra_info["forward_us"] = round(1e6 * min(module.seconds))
    benchmark.extra_info["share_percent"] = round(100 * bridge / min(module.seconds), 1)
    found = race("a block of a torch layer", lambda: work(drawn(), 0), ROWS * DIM, 50)
    known = work(outputs.numpy(), 0)
    assert (found.hits, found.nan, found.watched) == (known.hits, known.nan, known.watched)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_whole_audit(race, benchmark, tiny, name):
    module, trials = Timed(), 2000 if tiny else 20_000

    def work():
        module.seconds.clear()
        begun = time.perf_counter()
        found = dpcore.audit(
            module, PAIR, attack=ATTACKS[name], trials=trials, claim=9.0, rng=1, threads=1
        )
        beside = (time.perf_counter() - begun) / sum(module.seconds) - 1.0
        benchmark.extra_info["whole_percent"] = round(100 * beside)
        return found

    found = race("a whole audit of a torch layer", work, 2 * trials * DIM, 3)
    assert found.counts.n == trials
    assert found.refuted is not True
