"""Adapters of released packages, on small stand-ins with the packages' names and methods.

The packages themselves are audited by the experiment `released-libraries`.
"""

from __future__ import annotations

import math
import sys
import types

import numpy as np
import pytest
from shared_messages import check_messages

import dpcore
from dpcore.adapters import (
    EpsilonFunction,
    FittedModel,
    LocalClient,
    NoiseAdder,
    SQLQuery,
    TumultMeasurement,
    adapt,
)
from dpcore.claims import ZCDP

DRAW = np.random.default_rng(7)
TRIALS = 10_000


class LaplaceAdder:
    """An object as python-dp has it; `factor` 1 keeps its claim."""

    factor = 1.0

    def __init__(self, epsilon=1.0, sensitivity=2.0):
        self.epsilon, self.sensitivity = epsilon, sensitivity

    def add_noise(self, value):
        return value + DRAW.laplace(scale=self.factor * self.sensitivity / self.epsilon)


class Wrapper:
    """An object as pipeline-dp has it: the mechanism inside states epsilon."""

    def __init__(self, inner):
        self._mechanism = inner

    @property
    def sensitivity(self):
        return self._mechanism.sensitivity

    def add_noise(self, value):
        return self._mechanism.add_noise(value)


class Client:
    """A client of local privacy with three values from `first` on, which keeps half of them."""

    first = 1

    def __init__(self, epsilon):
        self.epsilon, self.d = epsilon, 3

    def privatise(self, value):
        kept = DRAW.random() < 0.5
        return value if kept else int(DRAW.integers(self.first, self.first + 3))


class Protocol:
    """A client as ldp-toolbox has it: values from 0, and `obfuscate`."""

    def __init__(self, epsilon):
        self.epsilon, self.k = epsilon, 3

    def obfuscate(self, value):
        return value if DRAW.random() < 0.5 else int(DRAW.integers(3))


CLIENT_LOSS = math.log((0.5 + 0.5 / 3.0) / (0.5 / 3.0))


class Measurement:
    """A measurement as tmlt-core has it; its privacy function has exact numbers."""

    def __init__(self, measure="PureDP"):
        self.output_measure = type(measure, (), {})()

    def privacy_function(self, d_in):
        return types.SimpleNamespace(to_float=lambda round_up: 1.0 if round_up else 0.5)

    def __call__(self, value):
        return value + DRAW.laplace()


class Model:
    """A model as diffprivlib has it: epsilon, `fit`, and attributes that end with _."""

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, rows, labels):
        rows[0] = 0.0
        self.mean_ = float(np.mean(labels)) + DRAW.laplace(scale=1.0 / (len(labels) * self.epsilon))
        self.names_ = ["a"]
        self.parts_ = types.SimpleNamespace(count=len(rows))
        return self


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Put the stand-ins where the adapters look for the packages' classes."""
    places = {
        "pydp.algorithms.numerical_mechanisms": ("NumericalMechanism", LaplaceAdder),
        "pipeline_dp.dp_computations": ("AdditiveMechanism", Wrapper),
        "pure_ldp.core": ("FreqOracleClient", Client),
        "ldp_toolbox.protocols.base": ("BaseProtocol", Protocol),
        "tmlt.core.measurements.base": ("Measurement", Measurement),
        "diffprivlib.validation": ("DiffprivlibMixin", Model),
    }
    for path, (name, cls) in places.items():
        module = types.ModuleType(path)
        setattr(module, name, cls)
        monkeypatch.setitem(sys.modules, path, module)


FORMS = {
    "python-dp": (LaplaceAdder, NoiseAdder, (1.0, 0.0)),
    "pipeline-dp": (lambda: Wrapper(LaplaceAdder()), NoiseAdder, (1.0, 0.0)),
    "pure-ldp": (lambda: Client(CLIENT_LOSS), LocalClient, (CLIENT_LOSS, 0.0)),
    "ldp-toolbox": (lambda: Protocol(CLIENT_LOSS), LocalClient, (CLIENT_LOSS, 0.0)),
    "tmlt-core": (Measurement, TumultMeasurement, (1.0, 0.0)),
    "diffprivlib": (Model, FittedModel, (1.0, 0.0)),
}
PAIRS = {
    "tmlt-core": (0.0, 1.0),
    "diffprivlib": tuple((np.zeros(4), np.array([0.0, 0.0, 0.0, last])) for last in (0.0, 1.0)),
}


@pytest.mark.parametrize("package", FORMS)
def test_an_object_is_recognised_with_its_claim_and_pair(package):
    """A true claim is refuted with probability 0.05 at most; the seed is fixed."""
    make, cls, stated = FORMS[package]
    adapter = adapt(make())
    assert type(adapter) is cls
    assert adapter.stated == stated
    report = dpcore.audit(make(), PAIRS.get(package), trials=TRIALS, rng=1)
    assert report.claim == stated[0]
    assert report.verdict != "refuted"
    assert report.epsilon_lower > 0.8 * stated[0]


@pytest.mark.parametrize("package", ["python-dp", "pipeline-dp"])
def test_too_little_noise_is_refuted(package, monkeypatch):
    monkeypatch.setattr(LaplaceAdder, "factor", 0.5)
    assert dpcore.audit(FORMS[package][0](), trials=TRIALS, rng=1).verdict == "refuted"


def test_a_client_is_audited_on_all_pairs_of_values():
    class Leaking(Client):
        def privatise(self, value):
            return value if value == 3 and DRAW.random() < 0.9 else super().privatise(value)

    pairs = [(pair.x, pair.x_prime) for pair in LocalClient(Client(1.0)).default_pair()]
    assert pairs == [(1, 2), (1, 3), (2, 3)]
    assert [pair.x for pair in LocalClient(Protocol(1.0)).default_pair()] == [0, 0, 1]
    report = dpcore.audit(Leaking(CLIENT_LOSS), trials=TRIALS, rng=1)
    assert report.verdict == "refuted"
    assert 3 in (report.pair.x, report.pair.x_prime)


def test_a_function_states_its_epsilon_or_its_default():
    def noisy_sum(x, epsilon=0.5, delta=0.0):
        return sum(x) + DRAW.laplace(scale=1.0 / epsilon)

    assert EpsilonFunction(noisy_sum).stated == (0.5, 0.0)
    adapter = EpsilonFunction(noisy_sum, {"epsilon": 2.0, "delta": 1e-6})
    assert adapter.stated == (2.0, 1e-6)
    assert EpsilonFunction(sum).stated is None
    assert EpsilonFunction(noisy_sum, {"epsilon": np.float32(2.0)}).stated == (2.0, 0.0)
    report = dpcore.audit(EpsilonFunction(noisy_sum), ([0.0], [1.0]), trials=TRIALS, rng=1)
    assert (report.claim, report.verdict) == (0.5, "not refuted by this attack")


def test_a_model_is_fitted_to_copies_and_releases_the_named_attributes():
    rows = np.ones(4)
    adapter = FittedModel(Model(), ["parts_.count"])
    assert adapter((rows, rows), 3, DRAW).tolist() == [[4.0]] * 3
    assert rows.tolist() == [1.0] * 4
    assert not hasattr(adapter.model, "mean_")
    assert FittedModel(Model())((rows, rows), 2, DRAW).shape == (2, 1)


def test_a_query_brings_its_cost():
    class Reader:
        def __init__(self, table):
            self.table = table

        def get_privacy_cost(self, query):
            return 1.5, 1e-7

        def execute(self, query):
            return [("count",), (len(self.table) + float(DRAW.laplace()),)]

    def make_reader(table):
        return Reader(table)

    query = SQLQuery(make_reader, "SELECT COUNT(*) FROM t", [1, 2])
    assert query.stated == (1.5, 1e-7)
    assert SQLQuery(make_reader, "SELECT 1").stated is None
    report = dpcore.audit(query, ([1, 2], [1]), claim=0.5, trials=TRIALS, rng=1)
    assert report.verdict == "refuted"


def test_a_measurement_rounds_its_claim_up_and_may_state_rho():
    assert TumultMeasurement(Measurement()).stated == (1.0, 0.0)
    concentrated = TumultMeasurement(Measurement("RhoZCDP"))
    assert concentrated.stated is None
    assert concentrated.curve == ZCDP(1.0)


def test_messages_name_the_argument():
    check_messages(ValueError, [
        (lambda: NoiseAdder(types.SimpleNamespace(add_noise=abs)).default_pair(), "pair",
         "states no sensitivity"),
        (lambda: LocalClient(types.SimpleNamespace(privatise=abs)).default_pair(), "",
         "2 to 45 values"),
        (lambda: LocalClient(Client(1.0), range(46)).default_pair(), "", "2 to 45 values"),
        (lambda: FittedModel(Model(), ["names_"])((np.ones(4), np.ones(4)), 2, DRAW),
         "attributes", "numeric attributes of Model"),
    ])  # fmt: skip
    client = types.SimpleNamespace(privatise=abs, epsilon=1.0)
    check_messages(ValueError, [
        (lambda: LocalClient(types.SimpleNamespace(privatise=abs, epsilon=math.nan)).stated,
         "epsilon of SimpleNamespace", "got nan"),
        (lambda: LocalClient(types.SimpleNamespace(privatise=abs, epsilon=-1.0)).stated,
         "epsilon of SimpleNamespace", "at least 0"),
        (lambda: EpsilonFunction(abs, {"epsilon": 1.0, "delta": 1.0}).stated, "", "below 1"),
        (lambda: EpsilonFunction(max).stated, "function", "with a signature"),
        (lambda: LocalClient(client, [1]).default_pair(), "", "2 to 45 values"),
    ])  # fmt: skip
    check_messages(TypeError, [
        (lambda: EpsilonFunction(abs, {"epsilon": "1"}).stated, "", "got '1'"),
        (lambda: LocalClient(types.SimpleNamespace(privatise=abs, d="4")).default_pair(), "",
         "got '4'"),
        (lambda: SQLQuery(abs, 3), "query", "got 3"),
        (lambda: FittedModel(Model())(1.0, 2, DRAW), "x", "the tuple of arguments of fit"),
    ])  # fmt: skip
