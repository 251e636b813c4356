"""The interface of mechanisms, and their optional statements on encoding and privacy loss.

A mechanism that encodes its input may define `clean(x)`, the vector to which it adds noise. Attacks
then use this vector instead of an input without arithmetic. A mechanism with a known distribution
may define `log_ratio(outputs, pair)`, the privacy loss of each output; the attack `auto` tries it
as an additional score. Or it may define `log_rows(start, stop)`, rows of a table of its outputs.
Each of these may also define `loss(pair, delta)`, the exact privacy loss of two inputs under the
declared noise, and `notes_on(pair)`, notes for the reader of a report. An audit calls each once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import instance, invalid, mistyped
from ..pairs.differences import list_to_array, pair_to_floats
from ..records import Pair, Record, attribute_of
from ..report.plain import Form, declare_form, decode_fields, encode_fields

_PRIVACY_METHODS: Final = ("clean", "log_ratio", "log_rows")
"""Methods of which one must exist for `loss` and `notes_on` to be about privacy."""

NATIVE: Final[dict[str, type[Any]]] = {}
"""Classes that the core itself runs, by name: noises and published systems."""


class Mechanism(Protocol):
    """A mechanism to audit: a callable `(x, size, rng) -> outputs`.

    Every noise, every published system and every function of this form is a mechanism.
    `dpcore.repeat` makes one from a function that returns a single answer. A mechanism may have
    the attributes `claim` (an epsilon), `delta`, `default_pair(dim)` (the inputs to audit if none
    are given) and `thread_safe`. `dpcore.mechanisms.declarations.MechanismAttributes` lists all
    attributes.
    """

    def __call__(self, x: Any, size: int, rng: np.random.Generator, /) -> Any:
        """Draw outputs for an input.

        Args:
            x: input, any object.
            size: number of outputs.
            rng: generator, the only source of randomness.

        Returns:
            An array of shape `(size, ...)`, or a list of `size` outputs of any type.
        """


class MechanismAttributes:
    """Optional attributes of a mechanism, with their default values.

    A user's function has no base class: `mechanism_attribute` reads its attributes with these
    defaults.

    Attributes:
        name: name in reports. Defaults to the name of the function or class.
        claim: claimed epsilon.
        delta: delta of that claim.
        claim_advice: advice on what to pass if the mechanism has no claim.
        norm: norm that defines neighbouring inputs, "l1", "l2" or "linf".
        sensitivity: largest distance of two neighbours in that norm.
        default_pair: `(dim)` -> the `Pair` to audit if none is given.
        default_trials: counted draws per side of a `dp_audit`.
        default_trials_on: `(pair)` -> counted draws per side, or None for the usual number.
        speaking_of: `(neighbour)` -> mechanism whose `stated` or `curve` holds for this relation.
        as_mechanism: `()` -> mechanism that an object of another type represents.
        clean: `(x)` -> vector to which noise is added, or None.
        loss: `(pair, delta)` -> exact loss of the declared noise, or None.
        log_ratio: `(outputs, pair)` -> ln P_x / P_x' of each output.
        notes_on: `(pair)` -> notes for the reader of a report.
        log_rows: `(start, stop)` -> natural logarithms of rows of its table of probabilities.
        loss_rows: `(start, stop)` -> largest losses of rows, and the outputs that attain them.
        distance_rows: `(start, stop)` -> distances of inputs.
        largest_losses: `(numbers)` -> largest loss of each of the numbered words.
        infinite_loss_note: note on an infinite loss of its table.
        input_names: names of the rows of its table.
        output_names: names of the columns of its table.
        words: names of the rows of a mechanism on words.
        thread_safe: True if threads may share it, False if not, None if it is not stated.
        reproducible: True if the seed repeats it, False if not, for a function of one answer.
        takes_lists: True for a function of one answer, which gets lists of numbers unchanged.
        encodes_once: True if its first call on an input takes longer than later calls.
        seeded_by: source from which its randomness must come.
        way_to_draw: advice on how to draw rows that do not share their noise.
        tensor: `(x, size, rng)` -> outputs as a tensor.
        device_type: type of the device that makes the outputs.
        torch_threads: number of torch threads in a block.
    """

    name = claim = norm = sensitivity = None
    delta = 0.0
    claim_advice = ""
    default_pair = default_trials = default_trials_on = speaking_of = as_mechanism = None
    clean = loss = log_ratio = notes_on = None
    log_rows = loss_rows = distance_rows = largest_losses = None
    infinite_loss_note = input_names = output_names = words = None
    thread_safe = reproducible = None
    takes_lists = encodes_once = False
    seeded_by = way_to_draw = None
    tensor = device_type = torch_threads = None


def mechanism_attribute(mechanism: Any, name: str) -> Any:
    """Return an attribute of a mechanism, or its default in `MechanismAttributes`.

    Example:
        >>> mechanism_attribute(print, "delta"), mechanism_attribute(print, "claim")
        (0.0, None)
    """
    return attribute_of(MechanismAttributes, mechanism, name)


def is_native(mechanism: Any) -> bool:
    """Return True if the core runs exactly this mechanism.

    Only the exact type counts. A subclass may override a method, but the core reads only the
    fields; it would then audit the wrong code.

    Args:
        mechanism: any object.

    Returns:
        True for a direct instance of a class in `NATIVE`, False for an instance of a subclass.

    Example:
        >>> from dpcore import Laplace
        >>> is_native(Laplace(1.0)), is_native(lambda x, size, rng: x)
        (True, False)
    """
    return NATIVE.get(type(mechanism).__name__) is type(mechanism)


def _decode_native(record: Mapping[str, Any]) -> Any:
    name = record["native"]
    if not isinstance(name, str) or name not in NATIVE:
        raise invalid("native", "the name of one of dpcore's mechanisms", name)
    return NATIVE[name](**decode_fields(NATIVE[name], record, "native"))


declare_form(
    "native",
    Form(
        is_native,
        lambda mechanism: {"native": type(mechanism).__name__, **encode_fields(mechanism)},
        _decode_native,
    ),
)


def inputs_of(mechanism: Any, pair: Pair) -> Pair:
    """Return the inputs in the form in which a mechanism is called.

    A mechanism `(x, size, rng)` computes with arrays: for a list, `x * 2` would repeat its entries.

    Args:
        mechanism: any mechanism.
        pair: inputs as the user passed them.

    Returns:
        For functions of one answer, the pair itself. Otherwise lists and tuples of numbers become
        arrays; for native mechanisms, arrays of float64.
    """
    if mechanism_attribute(mechanism, "takes_lists"):
        return pair
    if is_native(mechanism):
        return pair_to_floats(pair)
    x, x_prime = list_to_array(pair.x), list_to_array(pair.x_prime)
    return pair if x is pair.x and x_prime is pair.x_prime else replace(pair, x=x, x_prime=x_prime)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatedLogRatio(Record, word="StatedLogRatio"):
    """Score: the log-likelihood ratio of outputs that the mechanism states.

    The statement itself certifies no bound: an event is a threshold on this score, and it is
    counted like any other event.

    Args:
        mechanism: object with a method `log_ratio(outputs, pair)`.
        pair: its two inputs.

    Raises:
        TypeError: if the mechanism has no such method, or `pair` is not a `Pair`.

    Source:
        Neyman and Pearson (1933): no event of the same size distinguishes the inputs better.

    Example:
        >>> from dpcore.calibration import L2Laplace
        >>> score = StatedLogRatio(L2Laplace(0.5), Pair([1.0, 0.0], [0.0, 0.0]))
        >>> score(np.array([[3.0, 0.0], [-1.0, 0.0], [np.inf, 0.0]])).tolist()
        [2.0, -2.0, nan]
    """

    mechanism: Any
    pair: Pair

    cost = 1_000
    """Assumed nanoseconds per output: of equally good scores, any other score is preferred."""

    def __post_init__(self) -> None:
        """Check that the mechanism has a log ratio and that `pair` is a pair."""
        instance("pair", self.pair, Pair)
        if not callable(mechanism_attribute(self.mechanism, "log_ratio")):
            raise mistyped("mechanism", "one with log_ratio(outputs, pair)", self.mechanism)

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the scores, shape `(size,)`; NaN for outputs that are not finite."""
        if outputs.dtype.kind != "f":
            return np.asarray(self.mechanism.log_ratio(outputs, self.pair))
        finite = np.isfinite(outputs).reshape(len(outputs), -1).all(axis=1)
        scores = np.full(len(outputs), np.nan)
        scores[finite] = self.mechanism.log_ratio(outputs[finite], self.pair)
        return scores

    def __str__(self) -> str:
        """Return one line for a report."""
        return "log ratio that the mechanism states"


def stated_log_ratio(mechanism: Any, pair: Pair) -> tuple[StatedLogRatio, ...]:
    """Return a tuple with the score that a mechanism states; it is empty without a statement.

    Args:
        mechanism: any mechanism.
        pair: its two inputs.
    """
    has_ratio = _get_method(mechanism, "log_ratio") is not None
    return (StatedLogRatio(mechanism, inputs_of(mechanism, pair)),) if has_ratio else ()


def clean_pair(mechanism: Any, pair: Pair) -> Pair | None:
    """Return the vectors to which the noise is added for both inputs, or None if not available.

    Args:
        mechanism: any mechanism.
        pair: its two inputs.

    Example:
        >>> class Counting:
        ...     def clean(self, text):
        ...         return np.array([float(len(text.split()))])
        >>> clean_pair(Counting(), Pair("a good film", "a film"))
        Pair(x=array([3.]), x_prime=array([2.]))
        >>> clean_pair(print, Pair("a", "b")) is None
        True
    """
    clean = _get_method(mechanism, "clean")
    if clean is None:
        return None
    pair = inputs_of(mechanism, pair)
    x, x_prime = clean(pair.x), clean(pair.x_prime)
    if x is None or x_prime is None:
        return None
    return Pair(np.asarray(x, np.float64), np.asarray(x_prime, np.float64), pair.distance)


def declared_loss(mechanism: Any, pair: Pair, delta: float) -> float | None:
    """Compute the exact loss of a pair under the declared noise; return None if undeclared.

    Args:
        mechanism: any mechanism.
        pair: its two inputs.
        delta: delta of the claim.
    """
    loss = _get_method(mechanism, "loss")
    stated_loss = None if loss is None else loss(inputs_of(mechanism, pair), delta)
    return None if stated_loss is None else float(stated_loss)


def notes_on(mechanism: Any, pair: Pair) -> tuple[str, ...]:
    """Return a mechanism's notes on a pair for the reader of a report."""
    notes = _get_method(mechanism, "notes_on")
    stated_notes = () if notes is None else notes(inputs_of(mechanism, pair))
    if not isinstance(stated_notes, tuple):
        raise mistyped("notes_on(pair)", "a tuple of strings", stated_notes)
    return stated_notes


def _get_method(mechanism: Any, name: str) -> Any:
    # A torch loss function also has an attribute `loss`, with another meaning.
    is_marked = name in ("clean", "notes_on") or any(
        mechanism_attribute(mechanism, mark) is not None for mark in _PRIVACY_METHODS
    )
    method = mechanism_attribute(mechanism, name) if is_marked else None
    return method if callable(method) else None
