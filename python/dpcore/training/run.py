"""An audit of one training run by means of canaries, and a process pool for many training runs.

A canary is a record that is made for the audit. Fair coins decide which canaries are added to the
training records. From the trained model, the audit guesses which canaries were added. Each process
of the pool uses one torch thread and prepares its data and model only once.
"""

from __future__ import annotations

import inspect
import os
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..bounds import RecordedBound
from ..claims import Claim
from ..errors import AssumptionWarning, integer, invalid, mistyped, numeric
from ..events.event import numpy_of
from ..packages import get_loaded_module, has_all, is_tensor
from ..pairs.differences import fingerprint_input
from ..recorded.run import audit_outputs
from ..results.outputs_audits import OutputsAudit
from ..streams import Rng, threads_of, to_seed
from ..suggestions import explain_argument_errors

Losses = Callable[[Any], Any]
Fit = Callable[[Any], Losses]
_INCLUSION_STREAM_KEY: Final = 0x636F696E
"""Key of the coins that include canaries. The coins that decide ties have another key."""
_NO_PROOF_REMARK: Final = (
    "a small leak does not prove that the training adds noise: fit_without_noise= trains the same "
    "recipe without noise, for comparison"
)


def check_function(name: str, requirement: str, value: Any, arguments: int) -> None:
    """Check that a value is a function that accepts a given number of arguments.

    Args:
        name: name of the value in the error message.
        requirement: text in the error message that states what the value must be.
        value: function, or another object that can be called like a function.
        arguments: number of arguments of a call.

    Raises:
        TypeError: if `value` cannot be called with this number of arguments.
    """
    if not callable(value):
        raise mistyped(name, requirement, value)
    try:
        # A torch module passes the arguments of its call on to this method.
        called = value.forward if has_all(value, "forward") else value
        inspect.signature(called).bind(*[None] * arguments)
    except TypeError:
        raise mistyped(name, requirement, value) from None
    except ValueError:
        # A function written in C may hide its arguments.
        return


def count_records(name: str, records: Any) -> int:
    """Return the number of training records, or raise an error if their type is not allowed.

    An audit must be able to remove a record, and to add records.

    Args:
        name: name of the argument in the error message.
        records: a list, a range, a numpy array or a torch tensor.

    Raises:
        TypeError: if the records have another type. The message states how to convert them to a
            list.
    """
    is_frame = has_all(records, "iloc")
    is_array = has_all(records, "shape") and bool(records.shape) and not is_frame
    is_array = is_array and hasattr(records, "__len__")
    if isinstance(records, list | range) or is_array:
        return len(records)
    ways = (
        (is_frame, " (records.to_numpy() makes an array of a frame)"),
        (isinstance(records, tuple), " (list(zip(x, y)) makes a list of records of two arrays)"),
        (has_all(records, "dataset"), " (list(loader.dataset) makes a list of all its records)"),
        (isinstance(records, Iterator), " (list(records) makes a list)"),
        (has_all(records, "__getitem__"), " (list(records) makes a list)"),
    )
    advice = next((way for is_kind, way in ways if is_kind), "")
    raise mistyped(name, f"a list of records, a numpy array or a torch tensor{advice}", records)


def read_numbers(name: str, requirement: str, value: Any) -> npt.NDArray[np.float64]:
    """Convert real numbers of any shape to a float64 array on the CPU, without gradients.

    Args:
        name: name of the value in the error message.
        requirement: text in the error message that states what the value must be.
        value: numbers, an array, a tensor, or a list of these.

    Returns:
        The numbers as a float64 array.

    Raises:
        TypeError: if the value does not hold real numbers.
        ValueError: if rows differ in length, or entries are masked.
    """
    if isinstance(value, list | tuple):
        value = [numpy_of(part) if is_tensor(part) else part for part in value]
    elif is_tensor(value):
        value = numpy_of(value)
    return numeric(name, requirement, value).astype(np.float64)


@explain_argument_errors
def audit_run(
    fit: Fit,
    records: Any,
    *,
    canaries: Any,
    guesses: int | float | tuple[int, int],
    claim: float | Claim | None = None,
    delta: float = 0.0,
    bound: RecordedBound | None = None,
    confidence: float = 0.95,
    fit_without_noise: Fit | None = None,
    rng: Rng = None,
) -> OutputsAudit:
    """Train a model once with canaries, and certify a lower bound on the epsilon of the training.

    A canary is a record that is made for the audit. For each canary, the audit throws a separate
    fair coin to decide whether the canary is added to the training records. The training runs once.
    The score of a canary is minus the loss of the canary under the trained model. The audit guesses
    that the canaries with the highest scores were included in the training. For the same number of
    canaries with the lowest scores, the audit guesses that they were not included. The bound
    follows from the number of correct guesses. The number of guesses is fixed before the training,
    as the theorem requires.

    Args:
        fit: function that trains a model on records. It returns a function `records -> losses` that
            computes one loss of the trained model for each record. Any training code is possible,
            such as torch, Opacus, scikit-learn, JAX, or a command. The function `fit` must not know
            which records are canaries, and must draw the noise from its own random generator.
        records: the training records other than canaries: a list, a numpy array or a torch tensor.
        canaries: records made for the audit, of the same type as `records`. The bound is largest if
            no other record has the same gradient as a canary. Each canary is included with
            probability one half.
        guesses: number of canaries for which the audit makes a guess. The argument is a number, a
            share of all canaries (a float up to 1.0), or a pair (number of guesses "included",
            number of guesses "not included").
        claim: claimed epsilon, or a curve of `dpcore.claims`. With None, no claim is tested.
        delta: delta of the claim, in [0, 1).
        bound: theorem for the lower bound: "one_run" (the default) for any claim, or "one_run_fdp"
            for a claim on the Gaussian mechanism. None means the default.
        confidence: confidence of the lower bound, such as 0.95.
        fit_without_noise: function like `fit` that trains without noise. The audit also runs this
            training on the same records. The report states the bound without noise for the same
            canaries. If this bound is not larger than the bound with noise, the canaries are too
            weak to test the noise. None means that no such training runs.
        rng: source of random numbers for the coins: None, a seed, or a numpy Generator. The
            function `fit` does not use this source.

    Returns:
        An object of the class `OutputsAudit`. The property `ceiling` is the largest epsilon that
        this number of guesses can certify. The field `auc` is the probability that an included
        canary has a higher score than a canary that was not included.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range, if there are fewer than 2 canaries, if losses
            are NaN or all equal, or if the number of losses is not the number of canaries.

    Warns:
        AssumptionWarning: before the training, if the claim could not be refuted even if all
            guesses were correct, or if a canary is equal to another canary or to a record. After
            the training, if the number of included canaries is improbable for fair coins.

    Source:
        Steinke, Nasr and Jagielski (2023), algorithm 1 and theorem 5.2; Mahloujifar, Melis and
        Chaudhuri (2025).

    Example:
        >>> def fit(records):
        ...     mean = np.mean(records, axis=0)
        ...     return lambda asked: -(np.asarray(asked) @ mean)
        >>> rows = np.zeros((100, 40))
        >>> mine = np.eye(40)
        >>> report = audit_run(fit, rows, canaries=mine, guesses=20, claim=1.0, rng=3)
        >>> report.verdict, report.correct, report.auc
        ('refuted', 20, 1.0)
    """
    other = fit if fit_without_noise is None else fit_without_noise
    for name, value in (("fit", fit), ("fit_without_noise", other)):
        check_function(name, "a function records -> (records -> losses)", value, 1)
    many = _check_canaries(records, canaries)
    seed = to_seed(rng)
    rules: dict[str, Any] = {
        "rows": "one_run", "guesses": guesses, "claim": claim, "delta": delta, "bound": bound,
        "confidence": confidence, "rng": seed,
    }  # fmt: skip
    remarks = (*_note_too_few_guesses(many, rules), *_describe_equal_canaries(records, canaries))
    for remark in remarks:
        warnings.warn(remark, AssumptionWarning, stacklevel=3)
    included = np.random.default_rng((seed, _INCLUSION_STREAM_KEY)).random(many) < 0.5
    batch = _append_canaries(records, canaries, np.flatnonzero(included))
    report = _guess_canaries(fit, batch, canaries, included, rules)
    if fit_without_noise is None:
        remarks = (*remarks, _NO_PROOF_REMARK)
    else:
        control = _guess_canaries(fit_without_noise, batch, canaries, included, rules)
        remarks = (*remarks, _compare_without_noise(control))
    return replace(report, remarks=(*report.remarks, *remarks))


@explain_argument_errors
def language_model_losses(model: Any, tokenizer: Any = None, *, batch: int = 32) -> Losses:
    """Make a function that computes the losses of records under a causal language model.

    The function `fit` that you pass to `audit_run` can return the new function. The loss of a
    record is the mean of ``-ln P(token | tokens before it)`` over all tokens except the first. The
    loss is computed in eval mode and without gradients. The new function always uses the weights
    that the model has at the time of the call. Records are never truncated.

    Args:
        model: a causal language model of the package transformers, such as `GPT2LMHeadModel`,
            possibly wrapped by Opacus.
        tokenizer: tokenizer of the model, if the records are texts. None means that the records are
            lists of token numbers.
        batch: number of records that the model processes at the same time.

    Returns:
        A function `records -> losses`. The n records are texts, lists of token numbers, or the rows
        of an array or tensor of token numbers. The losses are an array of shape `(n,)`.

    Raises:
        TypeError: if the model is of another kind, such as a masked model or a model with an
            encoder, or if `tokenizer` cannot be called. The returned function raises a TypeError
            for a record that does not contain token numbers.
        ValueError: if `batch` is below 1. The returned function raises a ValueError for a record
            with fewer than 2 tokens, or with more tokens than the model accepts.

    Source:
        Carlini et al. (2019), section 3, for the log-perplexity of a canary. dpcore divides this
        number by the number of tokens.

    Example:
        End the function `fit`, which you pass to `audit_run`, with the line ``return
        language_model_losses(model)``.

        >>> language_model_losses("gpt2")
        Traceback (most recent call last):
        TypeError: model must be a causal language model of transformers, got 'gpt2'
    """
    kind = "a causal language model of transformers"
    # Opacus wraps a model and hides its attributes.
    model = getattr(model, "_module", model)
    if not (has_all(model, "can_generate", "config", "modules") and model.can_generate()):
        raise mistyped("model", kind, model)
    if getattr(model.config, "is_encoder_decoder", False):
        raise mistyped("model", f"{kind}, without an encoder", model)
    if tokenizer is not None and not callable(tokenizer):
        raise mistyped("tokenizer", "a tokenizer of transformers or None", tokenizer)
    rows = integer("batch", batch, 1)
    limit = getattr(model.config, "max_position_embeddings", None)

    def compute_losses(records: Any) -> npt.NDArray[np.float64]:
        tokens = records if tokenizer is None else tokenizer(list(records))["input_ids"]
        sequences = [_check_tokens(place, record, limit) for place, record in enumerate(tokens)]
        parts = [sequences[start : start + rows] for start in range(0, len(sequences), rows)]
        losses = [_mean_losses(*_logits_tokens_mask(model, part)) for part in parts]
        return np.concatenate([np.empty(0), *losses])

    # In a causal model, the first logits do not depend on the second token.
    logits, *_ = _logits_tokens_mask(model, [np.array([0, 0]), np.array([0, 1])])
    if not np.allclose(*logits[:, 0].cpu().numpy()):
        raise mistyped("model", f"{kind}, whose logits do not depend on later tokens", model)
    return compute_losses


def _check_tokens(place: int, record: Any, max_length: int | None) -> npt.NDArray[np.int64]:
    """Check the token numbers of one record and return them as an array."""
    name = f"record {place}"
    # numpy reads no numbers from a text; its token numbers need a tokenizer.
    tokens = np.asarray(numpy_of(record) if is_tensor(record) else record)
    if tokens.dtype.kind not in "iu" or tokens.ndim != 1:
        raise mistyped(name, "a list of token numbers (tokenizer= reads texts)", record)
    if tokens.size < 2:
        raise invalid(name, "of 2 tokens or more: the first has no loss", tokens.size)
    if max_length is not None and tokens.size > max_length:
        raise invalid(name, f"of at most {max_length:,} tokens, which the model takes", tokens.size)
    return tokens.astype(np.int64)


def _logits_tokens_mask(model: Any, sequences: list[npt.NDArray[np.int64]]) -> tuple[Any, Any, Any]:
    """Return logits, tokens, and a mask of the tokens that are not padding, for one batch."""
    import torch

    sizes = np.array([sequence.size for sequence in sequences])
    padded = np.zeros((len(sequences), sizes.max()), dtype=np.int64)
    mask = np.arange(sizes.max()) < sizes[:, None]
    padded[mask] = np.concatenate(sequences)
    device = next(model.parameters()).device
    tokens, is_token = torch.from_numpy(padded).to(device), torch.from_numpy(mask).to(device)
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            logits = model(input_ids=tokens, attention_mask=is_token.long()).logits
    finally:
        for module, mode in modes:
            module.training = mode
    # Use float32 for any model: with 16 bits, the losses of different canaries become equal.
    return logits.float(), tokens, is_token


def _mean_losses(logits: Any, tokens: Any, is_token: Any) -> npt.NDArray[np.float64]:
    """Compute the mean loss of each sequence, from its second token on."""
    import torch

    shifted, targets = logits[:, :-1].transpose(1, 2), tokens[:, 1:]
    losses = torch.nn.functional.cross_entropy(shifted, targets, reduction="none").double()
    means = (losses * is_token[:, 1:]).sum(dim=1) / is_token[:, 1:].sum(dim=1)
    return np.asarray(means.cpu().numpy(), dtype=np.float64)


def _guess_canaries(
    fit: Fit, batch: Any, canaries: Any, included: npt.NDArray[np.bool_], rules: dict[str, Any]
) -> OutputsAudit:
    """Train the model, score the canaries by their losses, and guess which ones are included."""
    scores = -_call_and_check_losses(fit(batch), canaries, included.size)
    report = audit_outputs(scores, label=included, source=False, **rules)
    auc = _scores_auc(scores[included], scores[~included])
    return replace(report, names=("canaries of one training",) * 2, auc=auc)


def _call_and_check_losses(loss_function: Any, canaries: Any, many: int) -> npt.NDArray[np.float64]:
    if not callable(loss_function):
        raise mistyped("fit(records)", "a function records -> losses", loss_function)
    values = read_numbers("losses", "one number for each canary", loss_function(canaries))
    if values.shape != (many,):
        raise invalid("losses", f"one for each canary, shape ({many},)", values.shape)
    if np.isnan(values).any():
        row = int(np.isnan(values).argmax())
        raise invalid("losses", "numbers that can be ranked", f"NaN for canary {row}")
    if (values == values[0]).all():
        requirement = "different for some canaries (equal losses show nothing)"
        raise invalid("losses", requirement, f"{many} times {values[0]:g}")
    return values


def _scores_auc(inside: npt.NDArray[np.float64], outside: npt.NDArray[np.float64]) -> float | None:
    """Compute the share of pairs (inside, outside) with a higher score inside; ties count 1/2."""
    if not inside.size or not outside.size:
        return None
    ranked = np.sort(outside)
    below = np.searchsorted(ranked, inside, "left") + np.searchsorted(ranked, inside, "right")
    return float(below.mean() / (2.0 * outside.size))


def _compare_without_noise(other: OutputsAudit) -> str:
    auc = "" if other.auc is None else f"AUC {other.auc:.4f}, "
    certified = f"epsilon >= {other.epsilon_lower:.4f}"
    if isinstance(other.claim, Claim) and other.parameter_lower is not None:
        certified = f"{other.claim.parameter} >= {other.parameter_lower:.4f}"
    return (
        f"the same recipe without noise: {auc}{other.correct:,} of {other.guesses:,} guesses "
        f"right, certified {certified}; where that is no more than above, "
        "these canaries say nothing about the noise"
    )


def _note_too_few_guesses(many: int, rules: dict[str, Any]) -> tuple[str, ...]:
    """Return a remark if the claim could not be refuted even with all guesses correct."""
    requested = rules["guesses"]
    first = (
        requested[0] if isinstance(requested, tuple) and len(requested) == 2 else (many + 1) // 2
    )
    inside = np.arange(many) < first
    with warnings.catch_warnings():
        # The warnings would concern perfect guesses, before the coins are tossed.
        warnings.simplefilter("ignore", AssumptionWarning)
        best = audit_outputs(inside.astype(float), label=inside, source=False, **rules)
    if not best.undecided:
        return ()
    needed = best.guesses_needed
    takes = "no number of guesses refutes it" if needed is None else f"it takes {needed:,} guesses"
    if needed is not None and needed > many:
        takes += f" and as many canaries, not {many:,}"
    return (
        f"{best.guesses:,} guesses cannot refute the claim even if all of them are right: {takes}",
    )


def _describe_equal_canaries(records: Any, canaries: Any) -> tuple[str, ...]:
    """Return a remark on canaries that are equal to each other or to a record."""
    mine = Counter(key for key in map(fingerprint_input, canaries) if _is_whole_record_hashed(key))
    equal = sum(times for times in mine.values() if times > 1)
    prints = {fingerprint_input(record) for record in records}
    among = sum(times for key, times in mine.items() if key in prints)
    remark = (
        (equal, "are equal to another one: they cannot be distinguished"),
        (among, "occur among the records: a coin changes little for them"),
    )
    return tuple(f"{many:,} canaries {what}" for many, what in remark if many)


def _is_whole_record_hashed(key: Any) -> bool:
    """Return True if a fingerprint covers the whole content of a record."""
    return all(map(_is_whole_record_hashed, key)) if isinstance(key, tuple) else key is not None


def _check_canaries(records: Any, canaries: Any) -> int:
    """Return the number of canaries; check that they can be added to the records."""
    many = count_records("canaries", canaries)
    if many < 2:
        raise invalid("canaries", "2 records or more", many)
    count_records("records", records)
    if type(records) is not type(canaries) or isinstance(records, range):
        kind = type(canaries).__name__
        raise mistyped("records", f"of one kind with canaries, {kind}", records)
    if not isinstance(records, list) and records.shape[1:] != canaries.shape[1:]:
        shape = "".join(f", {size}" for size in canaries.shape[1:])
        raise invalid("records", f"of shape (n{shape}), as canaries", tuple(records.shape))
    return many


def _append_canaries(records: Any, canaries: Any, chosen: npt.NDArray[np.int_]) -> Any:
    """Return the records together with the included canaries, as an object of the same type."""
    if isinstance(records, list):
        return records + [canaries[place] for place in chosen]
    if isinstance(records, np.ndarray):
        return np.concatenate([records, canaries[chosen]])
    return get_loaded_module("torch").cat([records, canaries[chosen]])


@explain_argument_errors
def make_pool(
    processes: int | None = None, prepare: Callable[[], Any] | None = None
) -> ProcessPoolExecutor:
    """Make a pool of processes in which an audit can run many trainings.

    Pass the pool to `dpcore.audit(dpcore.repeat(train), ..., executor=pool)`. In each process,
    torch and the libraries of numpy use one thread, because several processes with many threads
    would be slower. The processes are started by the method "spawn" of Python, not by "fork".
    Therefore the training function must be importable from a module. All processes start at once.

    Args:
        processes: number of processes. Defaults to the number of cores.
        prepare: function without arguments that prepares a process. For example, `prepare` loads
            data, or makes a model that the training function copies. `prepare` must be importable
            from a module. Each process of the pool calls `prepare` once. The process that called
            `make_pool` also calls `prepare` once. None means no function.

    Returns:
        The pool, a `ProcessPoolExecutor`. Use the pool in a `with` statement, which closes the
        pool.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `processes` is below 1.

    Example:
        >>> with make_pool(1) as pool:
        ...     pool.submit(abs, -2).result()
        2
    """
    many = threads_of(None) if processes is None else integer("processes", processes, 1)
    if prepare is not None and not callable(prepare):
        raise mistyped("prepare", "a function without arguments or None", prepare)
    # Processes import torch if this one has.
    try:
        pickle.dumps(prepare)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise invalid("prepare", "a function that pickle can store", prepare) from None
    state = prepare, get_loaded_module("torch") is not None
    pool = ProcessPoolExecutor(many, get_context("spawn"), _start_process, state)
    # The first task starts all processes.
    pool.submit(os.getpid)
    if prepare is not None:
        prepare()
    return pool


def _start_process(prepare: Callable[[], Any] | None, uses_torch: bool) -> None:
    """Limit the number of threads of a new process, then call `prepare` in it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if prepare is not None:
        prepare()
    if uses_torch or get_loaded_module("torch") is not None:
        import torch

        torch.set_num_threads(1)
        threadpool_limits(1)
