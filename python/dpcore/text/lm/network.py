"""The LSTM network of a next-word model, and its training without privacy or by DP-SGD."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from ...packages import require_module, torch
from ...records import Floats
from ...streams import seeded_torch
from ..systems.training import one_thread, refuse_divergence, run_epochs
from .settings import FitPlan, Ids, Rows

_MAX_INITIAL_WEIGHT: Final = 0.1
"""Largest absolute value of an initial weight."""
_EVALUATION_BATCH_SIZE: Final = 256
"""Number of texts per batch if gradients are not needed."""
_IGNORED_TARGET: Final = -100
_MAX_GRADIENT_NORM: Final = 0.25
"""Largest norm of the gradient of a step without privacy."""
_RATE_DIVISOR: Final = 4.0
"""Divisor of the learning rate if the validation loss does not decrease."""
DIVERGED_WORD_LOSS: Final = 1e4
"""A training counts as diverged if its loss per word, in nats, reaches this value."""
_PATIENCE_EPOCHS: Final = 4
"""Training stops after this number of epochs in a row without a lower loss."""
_BATCHES_PER_POOL: Final = 25
"""Number of batches that are sorted by length together, to reduce padding."""
_RECORDS_PER_CHUNK: Final = 64
"""Number of records whose gradients are in memory at once on the CPU."""
_RECORDS_PER_DEVICE_CHUNK: Final = 512
"""Number of records at once on other devices, where the run time depends on the number of calls."""
_MAX_QUIET_GRADIENTS: Final = 2e8
"""Number of gradient entries (records times weights) of a private step, from which dpcore warns."""
_SECONDS_PER_GRADIENT: Final = 1.2e-8
"""Seconds per gradient entry on one core, measured on ATIS."""


class Network(torch.nn.Module):  # type: ignore[misc]
    """Network that predicts the next word of a text: an embedding, an LSTM and a linear layer.

    Args:
        words: number V of words that the network can predict. Inputs are numbers from 0 to V + 1.
            Number V stands for a masked word, and number V + 1 for padding.
        hidden: number of entries of a word vector, and of the LSTM state.
        layers: number of layers of the LSTM.
        dropout: share of the entries that are set to 0 in training, after the embedding and after
            each layer.
        kind: class of the LSTM: `torch.nn.LSTM` or `opacus.layers.DPLSTM`.
    """

    def __init__(self, words: int, hidden: int, layers: int, dropout: float, kind: Any) -> None:
        super().__init__()
        self.words = words
        self.embedding = torch.nn.Embedding(words + 2, hidden, padding_idx=words + 1)
        between = dropout if layers > 1 else 0.0
        self.lstm = kind(hidden, hidden, num_layers=layers, batch_first=True, dropout=between)
        self.decoder = torch.nn.Linear(hidden, words)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, ids: Any, sizes: Any) -> Any:
        """Compute the scores (logits) of the next word after each word of each text.

        Args:
            ids: word numbers of n texts, padded to the longest text, shape `(n, longest)`.
            sizes: number of words of each text, at least 1. The texts must be in descending order
                of this number.

        Returns:
            Scores of the V words of the vocabulary, shape `(n, longest, V)`.
        """
        return self.decoder(self.dropout(self.states(ids, sizes)))

    def states(self, ids: Any, sizes: Any) -> Any:
        """Compute the output of the last LSTM layer (the state) after each word of each text.

        `ids` has the word numbers of n texts, padded to the longest text. `sizes` has the number of
        words of each text, in descending order. The result has shape `(n, longest, hidden)`.
        """
        read = self.dropout(self.embedding(ids))
        if isinstance(self.lstm, torch.nn.LSTM):
            # Padding after the end of a text does not change the states before it, and later states
            # are not used.
            return self.lstm(read)[0]
        # Rows are packed, so Opacus does not process the padding. Opacus stores the gradients of
        # records in the order of the packed rows. This is the order of the batch, because the
        # longest text comes first.
        packed = torch.nn.utils.rnn.pack_padded_sequence(read, sizes, batch_first=True)
        return torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]

    def states_of(self, rows: Rows) -> Iterator[tuple[Floats, Floats]]:
        """Yield, for each text, the LSTM states and the log probabilities of the next word.

        Args:
            rows: word numbers of each text.

        Yields:
            For each text, a pair: the LSTM states, shape `(contexts, hidden)`, and the natural
            logarithms of the probabilities, shape `(contexts, V)`. A context is the first k words
            of a text, for each k that is smaller than the length of the text. V is the number of
            words that the network can predict.
        """
        self.eval()
        for part in _split_rows(rows, _EVALUATION_BATCH_SIZE):
            ids, sizes, _ = _pad_lengths_targets(part, self.words)
            with one_thread(), torch.no_grad():
                states = self.states(ids, sizes)
            for row, padded in zip(part, states, strict=True):
                # The context is left before each yield, because the switches are global and two
                # readers may alternate.
                with one_thread(), torch.no_grad():
                    row_states = padded[: max(0, len(row) - 1)]
                    scores = torch.log_softmax(self.decoder(row_states).double(), dim=1)
                yield row_states.double().numpy(), scores.numpy()

    def draw_words(self, firsts: Ids, length: int, draw: Generator) -> Ids:
        """Draw random texts from the network, with given first words.

        `firsts` has the word number of the first word of each text. The result has the word numbers
        of the texts, shape `(n, length)`. The number 0 ("<unk>") is never drawn.
        """
        self.eval()
        columns, state = [firsts], None
        for _ in range(length - 1):
            with one_thread(), torch.no_grad():
                read = self.embedding(torch.from_numpy(columns[-1])[:, None])
                states, state = self.lstm(read, state)
                law = torch.softmax(self.decoder(states[:, 0]).double(), dim=1)[:, 1:]
            sums = law.numpy().cumsum(axis=1)
            levels = draw.random((len(firsts), 1)) * sums[:, -1:]
            columns.append(1 + np.minimum((sums <= levels).sum(axis=1), sums.shape[1] - 1))
        return np.stack(columns, axis=1)

    def word_losses(self, rows: Rows) -> list[Floats]:
        """Compute the loss (in nats) of each word that the network predicts, as one array per text.

        The network predicts all words except the first word of a text and masked words.
        """
        losses = []
        for row, (_, states) in zip(rows, self.states_of(rows), strict=True):
            kept = np.flatnonzero(row[1:] < self.words)
            losses.append(-states[kept, row[1:][kept]])
        return losses


def make_network(words: int, plan: FitPlan, source: Any = None, private: bool = False) -> Network:
    """Return a new next-word network with the sizes in `plan`, the settings of a training.

    Args:
        words: number of words that the network can predict.
        plan: settings of the training. Only `hidden`, `layers` and `dropout` are used.
        source: network of the same sizes whose weights are copied. None gives the initial weights
            of torch.
        private: True for the LSTM of Opacus, False for the LSTM of torch.
    """
    kind = require_module("opacus.layers", "lm.fit").DPLSTM if private else torch.nn.LSTM
    network = Network(words, plan.hidden, plan.layers, plan.dropout, kind)
    if source is not None:
        # The state of Opacus' LSTM also has the names of torch.
        network.load_state_dict(source.state_dict(), strict=False)
    return network


def wrap_for_opacus(network: Network, plan: FitPlan) -> tuple[Any, Any]:
    """Return the two objects with which Opacus trains a network by DP-SGD.

    The first object is a wrapper of the network that computes the gradient of each record. The
    second object is an optimizer for the wrapper, with the settings in `plan`.
    """
    model = require_module("opacus.grad_sample", "lm.fit").GradSampleModule(network)
    optimizer = require_module("opacus.optimizers", "lm.fit").DPOptimizer(
        torch.optim.SGD(network.parameters(), lr=plan.lr),
        noise_multiplier=plan.sigma,
        max_grad_norm=plan.clip,
        expected_batch_size=plan.batch,
    )
    return model, optimizer


def draw_weights(network: Network, rng: Generator) -> None:
    """Replace all weights of a network by random numbers from U(-.1, .1), and all biases by 0.

    Args:
        network: the network, which is changed in place. The embedding of padding is set to zero.
        rng: generator of the random numbers.
    """
    with seeded_torch(rng), torch.no_grad():
        for name, weight in network.named_parameters():
            weight.zero_() if "bias" in name else weight.uniform_(
                -_MAX_INITIAL_WEIGHT, _MAX_INITIAL_WEIGHT
            )
        network.embedding.weight[network.words + 1] = 0.0


def record_losses(model: Any, rows: Rows, words: int) -> Any:
    """Compute the loss of each text: the mean loss (in nats) over the predicted words.

    Args:
        model: a `Network`, or Opacus' wrapper of a `Network`.
        rows: list with the word numbers of each text, for at least one text.
        words: number of words that the model can predict.

    Returns:
        A tensor of losses that supports backpropagation, shape `(n,)`. The loss of a text without
        words to predict is 0.
    """
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
    ids, sizes, targets = _pad_lengths_targets([rows[number] for number in order], words)
    place = _find_device(model)
    targets = targets.to(place)
    losses = torch.nn.functional.cross_entropy(
        model(ids.to(place), sizes).flatten(0, 1),
        targets.flatten(),
        ignore_index=_IGNORED_TARGET,
        reduction="none",
    ).view(targets.shape)
    means = losses.sum(dim=1) / (targets >= 0).sum(dim=1).clamp(min=1)
    return means[torch.from_numpy(np.argsort(order))]


def _find_device(model: Any) -> Any:
    return next(model.parameters()).device


def _split_rows(rows: Rows, size: int) -> list[Rows]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _pad_lengths_targets(rows: Rows, words: int) -> tuple[Any, Any, Any]:
    """Return padded inputs, text lengths and targets (the next words) of rows of word numbers."""
    table = np.full((len(rows), max(2, *map(len, rows))), words + 1)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    sizes = torch.tensor([max(1, len(row) - 1) for row in rows], dtype=torch.int64)
    ids = torch.from_numpy(table)
    return ids[:, :-1], sizes, torch.where(ids[:, 1:] < words, ids[:, 1:], _IGNORED_TARGET)


def learn_plain(
    network: Network, rows: Rows, valid: Rows, plan: FitPlan, rng: Generator, progress: bool | None
) -> dict[str, Any]:
    """Train a next-word network without privacy, in place, and keep the weights of the best epoch.

    Args:
        network: network with its initial weights.
        rows: training texts as word numbers.
        valid: validation texts as word numbers. The best epoch has the lowest loss on these texts.
            The learning rate decreases after an epoch in which this loss does not decrease.
        plan: settings of the training.
        rng: generator of the order of the texts and of dropout.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work.

    Returns:
        A dictionary with these fields of `NextWordModel`: `epochs` (number of complete epochs),
        `best_epoch`, `valid_losses` (one loss per epoch), and `partial` (True if Ctrl-C stopped the
        training early).

    Raises:
        KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
        ValueError: if the loss becomes very large or NaN.
    """
    kind = torch.optim.SGD if plan.optimiser == "sgd" else torch.optim.Adam
    optimizer = kind(network.parameters(), lr=plan.lr)
    least, best = math.inf, network.state_dict()

    def run_epoch(epoch: int) -> float:
        nonlocal least, best
        network.train()
        for batch in _draw_similar_length_batches(rows, plan.batch, rng):
            loss = record_losses(network, batch, network.words).mean()
            refuse_divergence(loss.item() < DIVERGED_WORD_LOSS, plan.lr, epoch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _MAX_GRADIENT_NORM)
            optimizer.step()
        valid_loss = mean_loss(network, valid)
        refuse_divergence(valid_loss < DIVERGED_WORD_LOSS, plan.lr, epoch)
        if valid_loss < least:
            least, best = valid_loss, deepcopy(network.state_dict())
        else:
            for group in optimizer.param_groups:
                group["lr"] /= _RATE_DIVISOR
        return valid_loss

    losses, partial = run_epochs(
        run_epoch, plan.epochs, [*network.parameters()], rng, progress, patience=_PATIENCE_EPOCHS
    )
    network.load_state_dict(best)
    epochs = {"epochs": len(losses), "best_epoch": 1 + losses.index(min(losses))}
    return {**epochs, "valid_losses": losses, "partial": partial}


def learn_private(
    network: Network, rows: Rows, plan: FitPlan, rng: Generator, progress: bool | None
) -> dict[str, Any]:
    """Train a next-word network by DP-SGD with Opacus, in place.

    Args:
        network: network with an `opacus.layers.DPLSTM` and initial weights.
        rows: training texts as word numbers.
        plan: settings of the training, with the noise multiplier and the clipping norm.
        rng: generator of the batches and the noise.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work.

    Returns:
        A dictionary with these fields of `NextWordModel`:

        - `epochs`: number of complete epochs; `best_epoch` has the same value;
        - `steps`: number of all steps, including the steps of an incomplete epoch;
        - `partial`: True if Ctrl-C stopped the training early. Then the network has the weights of
          the last complete epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
        ValueError: if the loss becomes very large or NaN.

    Warns:
        UserWarning: if a step on the CPU will take several seconds.
    """
    _warn_if_private_step_slow(network, plan)
    model, optimizer = wrap_for_opacus(network, plan)
    accountant = require_module("opacus.accountants", "lm.fit").PRVAccountant()
    optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(plan.rate))
    samplers = require_module("opacus.utils.uniform_sampler", "lm.fit")
    sampler = samplers.UniformWithReplacementSampler(
        num_samples=len(rows), sample_rate=plan.rate, steps=-(-len(rows) // plan.batch)
    )

    def run_epoch(epoch: int) -> float:
        network.train()
        for batch in sampler:
            _take_private_step(model, optimizer, [rows[number] for number in batch], plan, epoch)
        return 0.0

    with warnings.catch_warnings():
        # The inputs need no gradients, and Opacus' hooks do not use them.
        warnings.filterwarnings("ignore", "Full backward hook is firing")
        whole, partial = run_epochs(run_epoch, plan.epochs, [*network.parameters()], rng, progress)
    model.remove_hooks()
    steps = sum(many for _, _, many in accountant.history)
    return {"epochs": len(whole), "best_epoch": len(whole), "steps": steps, "partial": partial}


def _draw_similar_length_batches(rows: Rows, batch: int, rng: Generator) -> list[Rows]:
    """Return the rows (texts) in random batches; texts of a batch have similar lengths."""
    shuffled = [rows[number] for number in rng.permutation(len(rows))]
    batches = []
    for pool in _split_rows(shuffled, _BATCHES_PER_POOL * batch):
        alike = sorted(pool, key=len)
        parts = np.array_split(np.arange(len(alike)), -(-len(alike) // batch))
        batches += [[alike[place] for place in part] for part in parts]
    return [batches[number] for number in rng.permutation(len(batches))]


def _take_private_step(model: Any, optimizer: Any, batch: Rows, plan: FitPlan, epoch: int) -> None:
    """Make one DP-SGD step for a (possibly empty) batch, in chunks that fit into memory."""
    size = _RECORDS_PER_CHUNK if _find_device(model).type == "cpu" else _RECORDS_PER_DEVICE_CHUNK
    chunks = _split_rows(sorted(batch, key=len, reverse=True), size) or [[]]
    for number, chunk in enumerate(chunks, 1):
        optimizer.zero_grad()
        if chunk:
            loss = record_losses(model, chunk, model._module.words).mean()
            refuse_divergence(loss.item() < DIVERGED_WORD_LOSS, plan.lr, epoch)
            loss.backward()
        else:
            # There are no gradients of records, so the optimizer adds its noise to a sum of zeros.
            for weight in model.parameters():
                weight.grad_sample = weight.new_zeros((0, *weight.shape))
        optimizer.signal_skip_step(number < len(chunks))
        optimizer.step()
    optimizer.zero_grad()


def mean_loss(network: Network, rows: Rows) -> float:
    """Return the mean loss, in nats, of the texts under the network.

    The loss of a text is the mean loss over all words that the network predicts: all words except
    the first word and masked words.
    """
    network.eval()
    parts = _split_rows(rows, _EVALUATION_BATCH_SIZE)
    with torch.no_grad():
        return sum(float(record_losses(network, x, network.words).sum()) for x in parts) / len(rows)


def _warn_if_private_step_slow(network: Network, plan: FitPlan) -> None:
    """Warn before private training on the CPU if a step will take several seconds."""
    weights = sum(weight.numel() for weight in network.parameters())
    numbers = plan.batch * weights
    held = min(plan.batch, _RECORDS_PER_CHUNK) * weights * 4 / 2**30
    if numbers >= _MAX_QUIET_GRADIENTS and _find_device(network).type == "cpu":
        warnings.warn(
            f"a private step computes {plan.batch:,} gradients of {weights:,} weights, most of "
            f"them of the {network.words:,} words: about "
            f"{numbers * _SECONDS_PER_GRADIENT:.1g} s and {held:.1g} GiB a step; a vocabulary with "
            "max_size= makes it smaller",
            # The warning points to the caller of `fit`, above its decorator.
            stacklevel=5,
        )
