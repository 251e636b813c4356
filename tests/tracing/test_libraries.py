"""`dpcore.trace` on code of torch, Opacus, diffprivlib and OpenDP, without decorators."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest
from shared_extras import needs

import dpcore
from dpcore.claims import GDP

torch = needs("torch")

X = torch.tensor([[1.0, 2.0], [0.5, 0.3], [3.0, 1.0]])
X_PRIME = torch.tensor([[1.0, 2.0], [0.5, 0.3], [3.0, 2.0]])
HALF = GDP(0.5)
SINGLE = 1e-5
"""Relative error that single precision explains."""


def trace(f, x=X, x_prime=X_PRIME, claim=HALF):
    return dpcore.trace(f, (x, x_prime), claim=claim, rng=1)


def draw(*shape):
    return torch.randn(*shape) * 2


def plain_sum(x):
    return x.sum(0) + draw(2)


def zeroed_buffer(x):
    total = torch.full((2,), 7.0)
    total.zero_()
    total += x.sum(0)
    total.add_(draw(2))
    return total


def noise_through_another_view(x):
    table = torch.zeros(2, 2)
    row = table[1]
    row += x.sum(0)
    table.view(-1)[2:] += draw(2)
    return table


def noise_changed_in_place(x):
    noise = draw(2)
    noise.mul_(0.5).add_(x.sum(0), alpha=0.5)
    return noise * 2


def noise_overwritten_after_a_copy(x):
    noise = draw(2)
    copied = noise.clone()
    noise.zero_()
    noise += x.sum(0)
    noise += copied
    return noise


def scattered_assignment(x):
    table = torch.zeros(3)
    table[torch.tensor([0, 2])] = plain_sum(x)
    table[1] = 5
    return table


def noise_entry_by_entry(x):
    noise, total = draw(2), x.sum(0)
    total[0] += noise[0]
    total[1:] += noise[1:]
    return total


def transposed_copy(x):
    table = torch.zeros(2, 2)
    table.t()[0].copy_(draw(2))
    table[:, 0] += x.sum(0)
    return table


def step_of_an_optimizer(x, **options):
    weights = torch.nn.Parameter(torch.zeros(2))
    weights.grad = plain_sum(x)
    optimizer = torch.optim.SGD([weights], lr=1.0, **options)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return weights


def momentum(x):
    return step_of_an_optimizer(x, momentum=0.9)


def lists_of_tensors(x):
    return step_of_an_optimizer(x, foreach=True)


def weights_of_a_module(x):
    layer = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(plain_sum(x)[None])
    return copy.deepcopy(layer)


def noise_stacked_with_data(x):
    noise = draw(2)
    table = torch.stack([noise, torch.zeros(2)])
    table[1] += noise
    return x.sum(0) + (table[0] - noise) + table[1]


def arrays_and_back(x):
    return torch.from_numpy(draw(2).numpy()) + x.sum(0)


def noise_of_numpy(x):
    return x.double().sum(0) + torch.tensor(np.random.default_rng().normal(0.0, 2.0, 2))


def an_issued_seed(x, rng):
    torch.manual_seed(int(rng.integers(2**31)))
    return plain_sum(x)


def shuffled_batches(x):
    data = torch.utils.data.TensorDataset(x)
    (batch,) = next(iter(torch.utils.data.DataLoader(data, batch_size=3, shuffle=True)))
    return plain_sum(batch)


IN_PLACE = [
    plain_sum, zeroed_buffer, noise_through_another_view, noise_changed_in_place,
    noise_overwritten_after_a_copy, scattered_assignment, noise_entry_by_entry, transposed_copy,
    momentum, lists_of_tensors, weights_of_a_module, noise_stacked_with_data, arrays_and_back,
    noise_of_numpy, an_issued_seed, shuffled_batches,
]  # fmt: skip


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda f: f.__name__)
def test_views_and_operations_in_place_keep_the_noise(function):
    """A sum with noise of scale 2 moves by 1: mu is .5, however torch wrote it."""
    report = trace(function)
    assert report.outcome == "within the claim on this pair"
    assert report.mu == pytest.approx(0.5, rel=SINGLE)


def test_a_loss_above_the_claim_is_shown():
    assert trace(zeroed_buffer, claim=GDP(0.49)).outcome == "above the claim on this pair"


def test_noise_that_is_overwritten_hides_nothing():
    """The negative control: a shadow that outlived its numbers would hide this fault."""

    def release(x):
        total = x.sum(0) + draw(2)
        total.copy_(x.sum(0))
        return total

    report = trace(release)
    assert [finding.kind for finding in report.findings] == ["no noise"]
    assert "is 3.3 on x and 4.3 on x'" in report.findings[0].text


@pytest.mark.parametrize(
    ("noise", "loss"),
    [
        (lambda: torch.distributions.Laplace(0.0, 2.0).sample((2,)), 0.5),
        (lambda: torch.distributions.Laplace(torch.zeros(2), torch.tensor(4.0)).rsample(), 0.25),
        (lambda: torch.empty(2).exponential_(0.5), np.inf),
    ],
)
def test_laws_of_torch_have_their_losses(noise, loss):
    """Exponential noise moves upwards only: one order of the pair has no move."""
    report = trace(lambda x: x.sum(0) + noise(), claim=0.5)
    assert report.loss == pytest.approx(loss, rel=SINGLE)
    assert report.covers.startswith("every noise")


def test_readings_of_tensors_are_recorded():
    """After a reading rare noise may leak: the loss covers the noise seen only."""

    def release(x):
        value = float(plain_sum(x)[1])
        return value, x if value > 1e3 else 0

    report = trace(release)
    assert report.mu == pytest.approx(0.5, rel=SINGLE)
    assert "a noisy value is read at test_libraries.py" in report.covers


def test_a_fixed_seed_is_no_noise_in_torch():
    def release(x):
        torch.manual_seed(3)
        return plain_sum(x)

    report = trace(release)
    assert [finding.kind for finding in report.findings] == ["no noise"]


def test_a_large_sum_in_single_precision_is_no_loss_above_a_claim():
    """The sums of both inputs are rounded: their difference is 1.004, not 1."""
    x = torch.full((2, 2), 12345.678)
    report = trace(plain_sum, x, x + torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    assert report.outcome == "within the claim on this pair"


def test_the_generators_of_torch_are_put_back():
    torch.manual_seed(1)
    state, method = torch.get_rng_state(), torch.from_numpy
    trace(plain_sum)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.from_numpy is method
    assert type(torch.randn(1)) is torch.Tensor


# DP-SGD, with noise multiplier 2 and a clipping norm of 1.

ROWS = np.random.default_rng(0).normal(size=(20, 3))
ROWS /= np.linalg.norm(ROWS, axis=1)[:, None]
DATA = np.c_[ROWS, ROWS @ [1.0, -2.0, 0.5]]
NEIGHBOUR = DATA.copy()
NEIGHBOUR[0] = 0.0


def descend_in_numpy(x, rng, steps, clip, by_count):
    weights = np.zeros(3)
    size = np.count_nonzero(x[:, 3]) if by_count else 20
    for _ in range(steps):
        gradients = 4 * (x[:, :3] @ weights - x[:, 3])[:, None] * x[:, :3]
        if clip:
            gradients /= np.maximum(1.0, np.linalg.norm(gradients, axis=1))[:, None]
        total = gradients.sum(0) + rng.normal(0.0, 2.0, 3)
        weights = weights - 0.1 * total / size
    return weights


def descend_in_torch(x, rng, steps, clip, by_count):
    x = torch.tensor(x, dtype=torch.float32)
    weights = torch.zeros(3)
    size = int((x[:, 3] != 0).sum()) if by_count else 20

    def find_loss(w, row):
        return 2 * (row[:3] @ w - row[3]) ** 2

    for _ in range(steps):
        gradients = torch.func.vmap(torch.func.grad(find_loss), (None, 0))(weights, x)
        if clip:
            gradients = gradients / gradients.norm(dim=1, keepdim=True).clamp(min=1.0)
        total = gradients.sum(0)
        total += torch.normal(0.0, 2.0, total.shape)
        weights = weights - 0.1 * total / size
    return weights


def descend_in_opacus(x, rng, steps, clip, by_count):
    opacus = needs("opacus")
    x = torch.tensor(x, dtype=torch.float32)
    layer = torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.zeros_(layer.weight)
    model = opacus.GradSampleModule(layer, loss_reduction="sum")
    optimizer = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=2.0 if clip else 2e-6,
        max_grad_norm=1.0 if clip else 1e6,
        expected_batch_size=int((x[:, 3] != 0).sum()) if by_count else 20,
    )
    for _ in range(steps):
        optimizer.zero_grad()
        (2 * (model(x[:, :3])[:, 0] - x[:, 3]) ** 2).sum().backward()
        optimizer.step()
    return layer


DESCENTS = [descend_in_numpy, descend_in_torch, descend_in_opacus]


def trace_descent(descend, steps=1, clip=True, by_count=False):
    def train(x, rng):
        return descend(x, rng, steps, clip, by_count)

    return trace(train, DATA, NEIGHBOUR, GDP(0.5 * np.sqrt(steps)))


@pytest.mark.parametrize("descend", DESCENTS)
def test_dp_sgd_has_its_mu(descend):
    """One record moves a clipped sum by 1: mu is .5 in one step, root 9 times that in 9."""
    report = trace_descent(descend)
    assert report.outcome == "within the claim on this pair"
    assert report.mu == pytest.approx(0.5, rel=SINGLE)
    assert report.covers.startswith("every noise")
    report = trace_descent(descend, 9)
    assert report.outcome == "within the claim on this pair"
    assert report.mu == pytest.approx(1.5, rel=SINGLE)
    assert "a noisy value is read" in report.covers


@pytest.mark.parametrize("descend", DESCENTS)
def test_faults_of_dp_sgd_are_found(descend):
    """Clipping that is forgotten, and a batch size that is counted in the data."""
    assert trace_descent(descend, clip=False).outcome == "above the claim on this pair"
    report = trace_descent(descend, by_count=True)
    assert [finding.kind for finding in report.findings] == ["data in a noisy value"]
    assert "a noisy value is divided by 20 on x, by 19 on x'" in report.findings[0].text


# diffprivlib and OpenDP.

RECORDS = np.random.default_rng(0).uniform(size=(30, 2))
TABLE = np.c_[RECORDS, RECORDS @ [1.0, 2.0]]
OTHER_TABLE = TABLE.copy()
OTHER_TABLE[0] = [0.97, 0.05, 0.1]
CLASSES = np.c_[RECORDS, np.repeat([0.0, 2.0], 15)]
CLASSES[0, 2] = 1.0
OTHER_CLASSES = CLASSES.copy()
OTHER_CLASSES[0, 2] = 0.0
FIRST_COLUMN, OTHER_COLUMN = TABLE[:, 0], OTHER_TABLE[:, 0]


@pytest.fixture
def diffprivlib():
    package = needs("diffprivlib")
    needs("diffprivlib.models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield package


def test_issue_105_of_diffprivlib_is_found(diffprivlib):
    """Squares of a feature have the sensitivity of its lower bound, which is 0."""

    def fit(data):
        model = diffprivlib.models.LinearRegression(
            epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 3), fit_intercept=False
        )
        return model.fit(data[:, :2], data[:, 2])

    report = trace(fit, TABLE, OTHER_TABLE, 1.0)
    assert report.findings[0].kind == "primitive"
    gap = abs(TABLE[0, 0] ** 2 - 0.97**2)
    change = abs(np.sum(TABLE[:, 0] ** 2) - np.sum(OTHER_TABLE[:, 0] ** 2))
    assert change == pytest.approx(gap)
    assert report.findings[0].text == (
        f"linear_regression.py:147: inputs of LaplaceFolded are {gap:.3g} apart, declared 0"
    )


def test_other_faults_of_diffprivlib_are_found(diffprivlib):
    """A class vanishes from a classifier; bounds are taken from the data."""

    def fit(data):
        return diffprivlib.models.GaussianNB(bounds=(0, 1)).fit(data[:, :2], data[:, 2])

    report = trace(fit, CLASSES, OTHER_CLASSES, 1.0)
    assert report.findings[0].kind == "control flow"
    extreme = np.r_[4.0, FIRST_COLUMN[1:]]
    report = trace(lambda x: diffprivlib.tools.mean(x), FIRST_COLUMN, extreme, 1.0)
    assert {finding.kind for finding in report.findings} == {"data in a law"}
    assert "the sensitivity of LaplaceTruncated is" in report.findings[0].text


def test_correct_code_of_diffprivlib_passes(diffprivlib):
    """The loss of a mean is the distance over the range, times epsilon."""
    tools = diffprivlib.tools
    gap = abs(FIRST_COLUMN[0] - OTHER_COLUMN[0])
    report = trace(lambda x: tools.mean(x, bounds=(0, 1)), FIRST_COLUMN, OTHER_COLUMN, 1.0)
    assert report.outcome == "within the claim on this pair"
    assert report.loss == pytest.approx(gap)
    assert "LaplaceTruncated is called" in report.covers
    report = trace(lambda x: tools.var(x, bounds=(0, 1)), FIRST_COLUMN, OTHER_COLUMN, 1.0)
    assert report.outcome == "within the claim on this pair"
    assert 0.0 < report.loss < 1.0

    def fit(data):
        return diffprivlib.models.PCA(2, epsilon=1.0, bounds=(0, 1), data_norm=1.5).fit(data)

    report = trace(fit, RECORDS, OTHER_TABLE[:, :2], 1.0)
    assert report.outcome == "within the claim on this pair"


def test_a_histogram_of_diffprivlib_spends_twice_on_a_replaced_record(diffprivlib):
    """Two counts change by 1 each; the output shows both."""
    report = trace(
        lambda x: diffprivlib.tools.histogram(x, range=(0, 1), bins=4)[0],
        np.full(8, 0.1), np.r_[np.full(7, 0.1), 0.9], 1.0,
    )  # fmt: skip
    assert (report.outcome, report.loss) == ("above the claim on this pair", 2.0)


def test_randomness_of_the_system_between_steps_is_no_finding():
    """Inputs of a step that vary between runs on x are not traceable."""
    mechanisms = needs("diffprivlib.mechanisms")
    import secrets

    def release(x):
        value = sum(x) * secrets.SystemRandom().random()
        return mechanisms.Laplace(epsilon=1.0, sensitivity=0.01).randomise(value)

    report = trace(release, [1.0, 2.0], [1.0, 3.0], 1.0)
    assert report.outcome == "not traceable"
    assert report.reason == "two runs on x with the same noise give Laplace other inputs"


def test_a_chain_of_opendp_passes():
    """The map gives the loss at the distance of the inputs; half the scale loses twice as much."""
    prelude = needs("opendp.prelude")
    prelude.enable_features("contrib")

    def release(scale):
        def call(x):
            space = prelude.vector_domain(prelude.atom_domain(bounds=(0.0, 1.0)))
            chain = (
                (space, prelude.symmetric_distance())
                >> prelude.t.then_sum()
                >> prelude.m.then_laplace(scale=scale)
            )
            return chain(x)

        return call

    x, shorter = [0.5, 0.25, 1.0], [0.5, 0.25]
    report = trace(release(2.0), x, shorter, 0.5)
    assert (report.outcome, report.loss) == ("within the claim on this pair", 0.5)
    report = trace(release(1.0), x, shorter, 0.5)
    assert (report.outcome, report.loss) == ("above the claim on this pair", 1.0)


def test_a_measurement_without_an_epsilon_is_not_traceable():
    """It was called above the claim, although both claims are true."""
    prelude = needs("opendp.prelude")
    prelude.enable_features("contrib")
    number = prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float)
    measurement = prelude.c.make_fix_delta(
        prelude.c.make_zCDP_to_approxDP(prelude.m.make_gaussian(*number, scale=1.0)), 0.01
    )
    claim = measurement.map(1.0)[0]
    report = dpcore.trace(measurement, (0.0, 1.0), claim=claim, delta=0.01, rng=1)
    assert report.outcome == "not traceable"
    assert "states no epsilon with delta 0" in report.reason


@pytest.mark.parametrize(("claim", "outcome"), [(math.log(3.0), "within"), (1.0986, "above")])
def test_a_loss_is_not_rounded_above_its_claim(claim, outcome):
    prelude = needs("opendp.prelude")
    prelude.enable_features("contrib")
    measurement = prelude.m.make_randomized_response_bool(prob=0.75)
    report = dpcore.trace(measurement, (False, True), claim=measurement.map(1), rng=1)
    assert report.outcome == "within the claim on this pair"
    report = dpcore.trace(measurement, (False, True), claim=claim, rng=1)
    assert report.outcome == f"{outcome} the claim on this pair"


def test_noise_layers_of_dpcore_have_their_losses():
    from dpcore.torch import GaussianNoise, L2LaplaceNoise, LaplaceNoise

    x, x_prime = torch.tensor([1.0, 0.0, 3.0]), torch.tensor([1.0, 1.0, 2.0])
    layers = [(LaplaceNoise(2.0), 1.0, 0.0), (GaussianNoise(2.0), np.inf, np.sqrt(0.5)),
              (L2LaplaceNoise(2.0), np.sqrt(0.5), 0.0)]  # fmt: skip
    for layer, loss, mu in layers:
        report = trace(lambda v, layer=layer: layer(v), x, x_prime, 9.0)
        assert report.loss == pytest.approx(loss, rel=SINGLE)
        assert report.mu == pytest.approx(mu, rel=SINGLE)
