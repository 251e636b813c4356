"""Training a next-word model: the plain recipe, and DP-SGD with the objects of Opacus."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid
from ...progress import Progress
from ...streams.generators import seeded_torch
from ...torch.needed import torch
from ..needed import needed
from ..systems.training import one_thread
from .network import Network, copy_weights, draw_weights, record_losses
from .settings import Noise, Plan

__all__ = [
    "learn_plain", "learn_private", "make_network", "make_optimizer",
    "set_start_weights", "warn_if_large",
]  # fmt: skip

Ids = npt.NDArray[np.int64]

_NORM: Final = 0.25
"""Largest norm of a plain step's gradient."""
_ANNEALING: Final = 4.0
"""Divisor of the rate when the validation loss does not fall."""
_FAR: Final = 1e4
"""A loss of a word above it has diverged: the uniform law has the logarithm of the vocabulary."""
_PATIENCE: Final = 4
"""Epochs in a row that do not lower the validation loss, after which the rate is 1/256."""
_POOL: Final = 25
"""Batches that are sorted by length together, so that little is padding."""
_CHUNK: Final = 64
"""Records whose gradients are held at once."""
_MAX_NUMBERS: Final = 2e8
"""Gradients of a private step, records times weights, from which on a warning is given."""
_SECONDS: Final = 1.2e-8
"""Seconds of one core for one of them, measured on ATIS."""


def make_network(words: int, plan: Plan, is_private: bool = False) -> Network:
    """Make the network of a plan, with the LSTM of torch or of Opacus."""
    kind = needed("opacus.layers", "lm.fit").DPLSTM if is_private else torch.nn.LSTM
    return Network(words, plan.hidden, plan.layers, plan.dropout, kind)


def make_optimizer(network: Network, plan: Plan, noise: Noise) -> tuple[Any, Any]:
    """Return Opacus' module around a network, and its optimizer."""
    model = needed("opacus.grad_sample", "lm.fit").GradSampleModule(network)
    optimizer = needed("opacus.optimizers", "lm.fit").DPOptimizer(
        torch.optim.SGD(network.parameters(), lr=plan.lr), noise_multiplier=noise.sigma,
        max_grad_norm=noise.clip, expected_batch_size=plan.batch,
    )  # fmt: skip
    return model, optimizer


def learn_plain(
    network: Network,
    rows: Sequence[Ids],
    valid: Sequence[Ids],
    plan: Plan,
    rng: np.random.Generator,
    progress: bool | None,
) -> tuple[tuple[float, ...], bool]:
    """Train without privacy, in place; the weights of the best epoch are kept.

    Args:
        network: its weights at the start.
        rows: training texts as numbers.
        valid: validation texts, which choose the epoch and the rate.
        plan: length and speed.
        rng: order and dropout follow from it.
        progress: show a bar.

    Returns:
        The validation loss after each epoch, and True if Ctrl-C ended it early.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if the loss diverges.
    """
    kind = torch.optim.SGD if plan.optimiser == "sgd" else torch.optim.Adam
    optimizer = kind(network.parameters(), lr=plan.lr)
    losses: list[float] = []
    best = _copy_weights(network)

    def run_epoch(epoch: int) -> bool:
        nonlocal best
        network.train()
        for batch in _draw_batches(rows, plan.batch, rng):
            loss = record_losses(network, [rows[number] for number in batch], network.words).mean()
            _check_loss(loss.item(), plan, epoch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _NORM)
            optimizer.step()
        found = _mean_loss(network, valid)
        _check_loss(found, plan, epoch)
        if not losses or found < min(losses):
            best = _copy_weights(network)
        else:
            for group in optimizer.param_groups:
                group["lr"] /= _ANNEALING
        losses.append(found)
        return len(losses) - losses.index(min(losses)) <= _PATIENCE

    partial = _run_epochs(run_epoch, plan, rng, progress)
    network.load_state_dict(best)
    return tuple(losses), partial


def learn_private(
    network: Network,
    rows: Sequence[Ids],
    plan: Plan,
    noise: Noise,
    rng: np.random.Generator,
    progress: bool | None,
) -> tuple[int, int, bool]:
    """Train by DP-SGD with Opacus' sampler, clipping, noise and accountant, in place.

    Args:
        network: of `DPLSTM`, with its weights at the start.
        rows: training texts as numbers.
        plan: length and speed.
        noise: sigma, clip and rate.
        rng: batches and noise follow from it.
        progress: show a bar.

    Returns:
        The steps that were made, those of an epoch that Ctrl-C ended among them; the whole epochs;
        and True if Ctrl-C ended it early. The weights are those of the last whole epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if the loss diverges.
    """
    model, optimizer = make_optimizer(network, plan, noise)
    accountant = needed("opacus.accountants", "lm.fit").PRVAccountant()
    optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(noise.rate))
    sampler = needed("opacus.utils.uniform_sampler", "lm.fit").UniformWithReplacementSampler(
        num_samples=len(rows), sample_rate=noise.rate, steps=-(-len(rows) // plan.batch)
    )
    last, whole = _copy_weights(network), 0

    def run_epoch(epoch: int) -> bool:
        nonlocal last, whole
        network.train()
        for batch in sampler:
            _make_step(model, optimizer, [rows[number] for number in batch], plan, epoch)
        last, whole = _copy_weights(network), epoch
        return True

    with warnings.catch_warnings():
        # Inputs need no gradient, and Opacus' hooks need none of them.
        warnings.filterwarnings("ignore", "Full backward hook is firing")
        partial = _run_epochs(run_epoch, plan, rng, progress)
    model.remove_hooks()
    network.load_state_dict(last)
    return sum(steps for _, _, steps in accountant.history), whole, partial


def _draw_batches(
    rows: Sequence[Ids], batch: int, rng: np.random.Generator
) -> list[npt.NDArray[np.int64]]:
    """Return the numbers of the rows in random batches of texts of similar length."""
    order = rng.permutation(len(rows))
    sizes = np.array([len(row) for row in rows])
    found = []
    for start in range(0, len(order), _POOL * batch):
        pool = order[start : start + _POOL * batch]
        pool = pool[np.argsort(sizes[pool], kind="stable")]
        found += np.array_split(pool, -(-len(pool) // batch))
    return [found[number] for number in rng.permutation(len(found))]


def _make_step(model: Any, optimizer: Any, batch: list[Ids], plan: Plan, epoch: int) -> None:
    """Make one step of a Poisson batch, in chunks that fit into memory; it may be empty."""
    batch = sorted(batch, key=len, reverse=True)
    chunks = [batch[start : start + _CHUNK] for start in range(0, len(batch), _CHUNK)] or [[]]
    for number, chunk in enumerate(chunks, 1):
        optimizer.zero_grad()
        if chunk:
            loss = record_losses(model, chunk, model._module.words).mean()
            _check_loss(loss.item(), plan, epoch)
            loss.backward()
        else:
            # No record has a gradient; the optimizer adds its noise to a sum of zeros.
            for weight in model.parameters():
                weight.grad_sample = weight.new_zeros((0, *weight.shape))
        optimizer.signal_skip_step(number < len(chunks))
        optimizer.step()
    optimizer.zero_grad()


def _run_epochs(
    run_epoch: Callable[[int], bool],
    plan: Plan,
    rng: np.random.Generator,
    progress: bool | None,
) -> bool:
    """Run epochs while they return True; return True if Ctrl-C ended them after the first."""
    made = 0
    with one_thread(), seeded_torch(rng), Progress("training", plan.epochs, progress) as bar:
        try:
            for epoch in range(1, plan.epochs + 1):
                goes_on = run_epoch(epoch)
                made = epoch
                bar.advance(1)
                if not goes_on:
                    break
        except KeyboardInterrupt:
            if not made:
                raise
            return True
    return False


def _mean_loss(network: Network, rows: Sequence[Ids]) -> float:
    network.eval()
    parts = [rows[start : start + 256] for start in range(0, len(rows), 256)]
    with torch.no_grad():
        total = sum(float(record_losses(network, part, network.words).sum()) for part in parts)
    return total / len(rows)


def _copy_weights(network: Network) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _check_loss(found: float, plan: Plan, epoch: int) -> None:
    if not found < _FAR:
        requirement = f"small enough that training does not diverge (it does in epoch {epoch})"
        raise invalid("lr", requirement, plan.lr)


def set_start_weights(network: Network, start: Network | None, rng: np.random.Generator) -> None:
    """Give a network its weights at the start, drawn or copied."""
    if start is not None:
        copy_weights(start, network)
        return
    with seeded_torch(rng):
        draw_weights(network)


def warn_if_large(network: Network, plan: Plan) -> None:
    """Warn before a private training whose steps take seconds.

    Warns:
        UserWarning: names batch, weights, words, memory and time.
    """
    weights = sum(weight.numel() for weight in network.parameters())
    numbers = plan.batch * weights
    if numbers < _MAX_NUMBERS:
        return
    held = min(plan.batch, _CHUNK) * weights * 4 / 2**30
    warnings.warn(
        f"a private step computes {plan.batch:,} gradients of {weights:,} weights, most of them of "
        f"the {network.words:,} words: about {numbers * _SECONDS:.1g} s and {held:.1g} GiB a step; "
        "a vocabulary with max_size= makes it smaller",
        UserWarning,
        stacklevel=3,
    )
