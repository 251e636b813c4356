"""The step of Opacus: flat, per-layer and ghost clipping; nothing changes; faults are refuted."""

import random
import warnings

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore import training

torch = needs("torch", "opacus")

import opacus  # noqa: E402
from opacus import GradSampleModule  # noqa: E402
from opacus.grad_sample import GradSampleModuleFastGradientClipping  # noqa: E402
from opacus.optimizers import (  # noqa: E402
    AdaClipDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    DPPerLayerOptimizer,
)

WEIGHTS = 6 * 5 + 5 + 5 * 3 + 3


def make_records(number=8):
    rng = np.random.default_rng(1)
    x = torch.tensor(3.0 * rng.normal(size=(number, 6)), dtype=torch.float32)
    return list(zip(x, torch.tensor(rng.integers(0, 3, number)), strict=True))


def compute_losses(model, records):
    x, y = (torch.stack(part) for part in zip(*records, strict=True))
    return torch.nn.functional.cross_entropy(model(x), y, reduction="none")


def make_net(*middle):
    generator = torch.Generator().manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(6, 5), *middle, torch.nn.Linear(5, 3))
    with torch.no_grad():
        for one in net.parameters():
            one.copy_(0.4 * torch.randn(one.shape, generator=generator))
    return net


def make_step(kind=DPOptimizer, noise=0.8, clip=1.0, losses=compute_losses, net=None, **options):
    net = make_net(torch.nn.Tanh()) if net is None else net
    if kind is DPOptimizerFastGradientClipping:
        model = GradSampleModuleFastGradientClipping(net, max_grad_norm=clip)
    else:
        model = GradSampleModule(net)
    optimizer = kind(
        torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=noise, max_grad_norm=clip,
        expected_batch_size=8,
    )  # fmt: skip
    return training.OpacusStep(model, optimizer, losses, **options)


def audit(step, records=None, **options):
    options = {"sigma": 0.8, "clip": 1.0, "trials": 1500, "rng": 1} | options
    return training.audit_step(step, make_records() if records is None else records, **options)


def test_the_clean_sum_is_the_sum_of_clipped_gradients():
    records = make_records()
    expected = np.zeros(WEIGHTS)
    for record in records:
        net = make_net(torch.nn.Tanh())
        compute_losses(net, [record]).sum().backward()
        gradient = np.concatenate([one.grad.numpy().ravel() for one in net.parameters()])
        expected += gradient * min(1.0, 1.0 / np.linalg.norm(gradient))
    for kind in (DPOptimizer, DPOptimizerFastGradientClipping):
        np.testing.assert_allclose(make_step(kind).clean(records), expected, atol=1e-5)
    assert 0.5 < np.linalg.norm(expected) < 8.0


@pytest.mark.parametrize(
    ("kind", "clip"),
    [(DPOptimizer, 1.0), (DPOptimizerFastGradientClipping, 1.0), (DPPerLayerOptimizer, [0.5] * 4)],
)
def test_the_right_noise_passes_and_half_of_it_is_refuted(kind, clip):
    right, half = (audit(make_step(kind, noise, clip)) for noise in (0.8, 0.4))
    assert right.refuted is False
    assert right.declared_loss == pytest.approx(right.claim.epsilon(right.delta), abs=1e-3)
    assert right.parameter_lower > 0.7 * right.claim.mu
    assert half.refuted is True


def test_noise_has_the_standard_deviation_of_the_optimizer():
    step, records = make_step(noise=0.5), make_records()
    draws = np.array(list(step.prepare(records)(2000, np.random.default_rng(1))))
    noise = draws - step.clean(records)
    # Four standard errors of 2000 * 53 squares.
    assert abs((noise**2).mean() / 0.25 - 1.0) < 4.0 * (2.0 / noise.size) ** 0.5


@pytest.mark.parametrize("kind", [DPOptimizer, DPOptimizerFastGradientClipping])
def test_everything_is_left_as_found(kind):
    step = make_step(kind, net=make_net(torch.nn.Dropout(0.5)))
    step.model.eval()
    accountant = opacus.accountants.RDPAccountant()
    step.optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=0.1))
    for one in step.model.parameters():
        one.grad = torch.ones_like(one)
    before = {name: value.clone() for name, value in step.model.state_dict().items()}
    attributes = [dict(vars(one)) for one in step.model.parameters()]
    states = torch.get_rng_state(), random.getstate()
    audit(step, trials=300)
    assert all(torch.equal(value, before[name]) for name, value in step.model.state_dict().items())
    assert all(torch.equal(one.grad, torch.ones_like(one)) for one in step.model.parameters())
    assert [dict(vars(one)) for one in step.model.parameters()] == attributes
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert not any(module.training for module in step.model.modules())
    assert len(accountant) == 0


def test_training_goes_on_after_an_audit():
    step, records = make_step(), make_records()
    audit(step, trials=300)
    step.optimizer.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        compute_losses(step.model, records).mean().backward()
    before = step.model.state_dict()["_module.0.weight"].clone()
    step.optimizer.step()
    assert not torch.equal(step.model.state_dict()["_module.0.weight"], before)


def test_rows_of_gradients_stand_in_for_records():
    rows = np.zeros((4, WEIGHTS))
    rows[0, :3], rows[1:, :3] = [-18.0, -18.0, 18.0], [3.0, 3.0, -3.0]
    step = make_step(losses=None, gradients=rows)
    clean, rest = step.clean(range(4)), step.clean([1, 2, 3])
    assert np.linalg.norm(rest - clean) == pytest.approx(1.0, abs=1e-5)

    class SumClipped(DPOptimizer):
        """Clips the sum."""

        def clip_and_accumulate(self):
            sums = [one.grad_sample.sum(dim=0) for one in self.params]
            norm = torch.stack([one.norm() for one in sums]).norm()
            for one, total in zip(self.params, sums, strict=True):
                one.summed_grad = total * min(1.0, self.max_grad_norm / max(float(norm), 1e-9))

    # On opposed rows the clipped sum turns round, which natural records do not show.
    wrong = audit(make_step(SumClipped, losses=None, gradients=rows), range(4), left_out=0)
    assert (wrong.refuted, audit(step, range(4), left_out=0).refuted) == (True, False)
    assert audit(make_step(SumClipped)).refuted is False


class TensorWithoutNoise(DPOptimizer):
    """Leaves out the first bias."""

    def add_noise(self):
        super().add_noise()
        self.params[1].grad = self.params[1].summed_grad.clone()


class OneSeed(DPOptimizer):
    """Seeds the generator at each step."""

    def add_noise(self):
        self.generator = torch.Generator().manual_seed(3)
        super().add_noise()


class NoiseBeforeClipping(DPOptimizer):
    """Adds noise to each gradient, then clips."""

    def clip_and_accumulate(self):
        for one in self.params:
            scale = self.noise_multiplier * self.max_grad_norm
            one.grad_sample = one.grad_sample + scale * torch.randn(one.grad_sample.shape)
        super().clip_and_accumulate()

    def add_noise(self):
        for one in self.params:
            one.grad = one.summed_grad.clone()


@pytest.mark.parametrize("kind", [TensorWithoutNoise, OneSeed])
def test_faults_of_the_noise_are_refuted(kind):
    assert audit(make_step(kind)).refuted is True


def test_noise_before_clipping_is_refuted_where_gradients_are_long():
    rows = np.zeros((3, WEIGHTS))
    rows[:, :3] = 100.0
    wrong = make_step(NoiseBeforeClipping, losses=None, gradients=rows)
    assert (wrong.clean(range(3)), audit(wrong, range(3)).refuted) == (None, True)
    assert audit(make_step(losses=None, gradients=rows), range(3)).refuted is False


def test_a_seeded_generator_of_the_optimizer_is_used_and_put_back():
    step = make_step()
    step.optimizer.generator = torch.Generator().manual_seed(5)
    before = step.optimizer.generator.get_state()
    first, second = (step(make_records(), np.random.default_rng(k)) for k in (1, 1))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, step(make_records(), np.random.default_rng(2)))
    assert torch.equal(step.optimizer.generator.get_state(), before)


FLAT, FAST = make_step(), make_step(DPOptimizerFastGradientClipping)
SGD = torch.optim.SGD(FLAT.model.parameters(), lr=0.1)
ADAPTIVE = AdaClipDPOptimizer(
    SGD, noise_multiplier=0.5, target_unclipped_quantile=0.5, clipbound_learning_rate=0.2,
    max_clipbound=2.0, min_clipbound=0.1, unclipped_num_std=1.0, max_grad_norm=1.0,
    expected_batch_size=8,
)  # fmt: skip
BATCH_NORM = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5))


def make(model=FLAT.model, optimizer=FLAT.optimizer, losses=compute_losses):
    return lambda: training.OpacusStep(model, optimizer, losses)


VALUE_ERRORS = [
    (make(optimizer=ADAPTIVE), "", "flat, per-layer or ghost clipping"),
    (lambda: make_step(DPOptimizerFastGradientClipping, losses=None,
                       gradients=np.ones((2, WEIGHTS))), "gradients", "None for ghost"),
    (make(BATCH_NORM), "model", "records, rng) ->"),
    (make(torch.nn.LSTM(2, 2)), "model", "DPLSTM"),
    (lambda: audit(make_step(losses=lambda m, r: compute_losses(m, r).mean())),
     "losses(model, records)", "shape"),
    (lambda: audit(make_step(losses=lambda m, r: compute_losses(m, r) * np.nan)),
     "losses(model, records)", "finite"),
    (lambda: audit(make_step(losses=lambda m, r: compute_losses(m, r) * torch.rand(len(r)))),
     "losses(model, records)", "second call"),
    (lambda: make_step().clean([]), "records", "a batch of one record or more"),
    (lambda: make_step(losses=None, gradients=np.ones((2, 3))), "gradients", "an array of shape"),
    (lambda: make_step(losses=None, gradients=np.full((2, WEIGHTS), np.nan)), "gradients",
     "finite"),
]  # fmt: skip
TYPE_ERRORS = [
    (make(make_net()), "model", "make_private returns"),
    (make(FAST.model), "model", "as the optimizer"),
    (make(optimizer=SGD), "optimizer", "an optimizer of Opacus"),
    (make(losses=None), "losses", ""),
    (lambda: audit(make_step(losses=lambda model, records: 1.0)), "losses(model, records)",
     "a tensor, one loss a record"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
