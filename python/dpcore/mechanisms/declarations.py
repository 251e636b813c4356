"""The interface of mechanisms, and their optional methods.

- `clean(x)` returns the vector to which the mechanism adds noise, such as the encoding of a text.
  Attacks use this vector if they cannot compute with the input itself.
- `log_ratio(outputs, pair)` returns the privacy loss of each output. The default attack also tries
  events of the form "loss above a threshold".
- `log_rows(start, stop)` returns rows of a table, which contains the log probability of each output
  for each input. Each row belongs to one input.
- `loss(pair, delta)` returns the exact privacy loss of two inputs, for the noise that the
  mechanism is meant to have.
- `notes_on(pair)` returns notes for the reader of a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import instance, invalid, mistyped
from ..pairs.differences import list_to_array, pair_lists_to_float_arrays
from ..records import Pair, Record, get_attribute
from ..report.plain import Form, decode_fields, encode_fields, register_codec

_PRIVACY_METHODS: Final = ("clean", "log_ratio", "log_rows")
"""A `loss` counts as a privacy loss only if the mechanism also has one of these methods."""

NATIVE: Final[dict[str, type[Any]]] = {}
"""Classes of noise and of published systems whose outputs the compiled core draws, by name."""


class Mechanism(Protocol):
    """Type of a mechanism that can be audited: a callable `(x, size, rng) -> outputs`.

    Every noise of dpcore (such as `dpcore.Laplace`), every published system in dpcore, and every
    function with these three parameters is a mechanism. `dpcore.repeat` makes a mechanism from a
    function that returns one output per call.

    A mechanism may have these attributes:

    - `claim`: the claimed epsilon;
    - `delta`: the claimed delta;
    - `default_pair`: a function `(dim)` that returns two inputs with `dim` entries. These inputs
      are audited if the user does not state inputs;
    - `thread_safe`: True if several threads may call the mechanism at once.

    `dpcore.mechanisms.declarations.MechanismAttributes` lists all attributes.
    """

    def __call__(self, x: Any, size: int, rng: np.random.Generator, /) -> Any:
        """Draw independent outputs for an input.

        Args:
            x: the input, an object of any type.
            size: number of outputs.
            rng: numpy Generator, which must be the only source of randomness.

        Returns:
            An array of shape `(size, ...)`, or a list of `size` outputs of any type.
        """


class MechanismAttributes:
    """Optional attributes of a mechanism, with their default values.

    An entry `(a) -> b` below means that the attribute is a function of a that returns b. Some
    mechanisms have a table of probabilities. A row of the table is the distribution of the output
    for one input. A column is one output.

    Attributes:
        name: name of the mechanism in reports. Defaults to the name of the function or class.
        claim: claimed epsilon.
        delta: claimed delta.
        claim_advice: text with advice for users who audit the mechanism without a claim.
        norm: norm in which the distance of neighbouring inputs is measured, "l1", "l2" or "linf".
        sensitivity: largest distance between two neighbouring inputs in this norm.
        default_pair: `(dim)` -> a `Pair` of inputs with `dim` entries. The pair is audited if the
            user does not state inputs.
        default_trials: number of trials of an audit by pytest. One trial consists of one output on
            x and one output on x'.
        default_trials_on: `(pair)` -> number of trials of an audit of this pair. None means the
            usual number.
        speaking_of: `(neighbour)` -> the same mechanism, with the privacy claim for this neighbour
            relation.
        as_mechanism: `()` -> mechanism to audit, for an object that is not a mechanism itself.
        clean: `(x)` -> vector to which the mechanism adds noise on input x. None if this vector is
            unknown.
        loss: `(pair, delta)` -> exact privacy loss between the two inputs, if the noise has the
            distribution that the mechanism states. None if the loss is unknown.
        log_ratio: `(outputs, pair)` -> ln P(output|x) - ln P(output|x') for each output.
        notes_on: `(pair)` -> tuple of notes for the reader of a report.
        log_rows: `(start, stop)` -> rows `start` to `stop` - 1 of the table, as natural logarithms
            of the probabilities.
        loss_rows: `(start, stop)` -> for each row from `start` to `stop` - 1 and each row of the
            table, the largest privacy loss and the output with this loss.
        distance_rows: `(start, stop)` -> distances from the inputs of rows `start` to `stop` - 1 to
            all inputs.
        largest_losses: `(numbers)` -> for each row whose index is in `numbers`, the largest privacy
            loss against any other row.
        infinite_loss_note: text for the report if a privacy loss in the table is infinite.
        input_names: names of the inputs, one for each row of the table.
        output_names: names of the outputs, one for each column of the table.
        words: names of the rows, if the inputs are words.
        thread_safe: True if several threads may call the mechanism at once, False if they may not,
            None if it is not known.
        reproducible: for a mechanism that calls a function once for each output, True if the random
            generator determines the outputs, and False if it does not. None for other mechanisms.
        takes_lists: True if an input that is a list of numbers is passed as a list. False if it is
            converted to an array.
        encodes_once: True if the first call on an input takes longer than later calls.
        seeded_by: text for error messages that names the source from which the randomness must
            come.
        way_to_draw: text for error messages that states how to draw outputs that do not share their
            noise.
        tensor: `(x, size, rng)` -> `size` outputs as a torch tensor.
        device_type: type of the torch device that draws the outputs, such as "cuda".
        torch_threads: number of torch threads to use while outputs are drawn.
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


def get_or_default(mechanism: Any, name: str) -> Any:
    """Return an attribute of a mechanism, or its default in `MechanismAttributes`.

    Example:
        >>> get_or_default(print, "delta"), get_or_default(print, "claim")
        (0.0, None)
    """
    return get_attribute(MechanismAttributes, mechanism, name)


def can_core_draw(mechanism: Any) -> bool:
    """Return True if the compiled core of dpcore can draw the outputs of a mechanism.

    Args:
        mechanism: any object.

    Returns:
        True if the class of the object is in the list `NATIVE`. False for a subclass of a class in
        the list, because the compiled core would ignore methods that the subclass has changed.

    Example:
        >>> from dpcore import Laplace
        >>> can_core_draw(Laplace(1.0)), can_core_draw(lambda x, size, rng: x)
        (True, False)
    """
    return NATIVE.get(type(mechanism).__name__) is type(mechanism)


def _decode_native(record: Mapping[str, Any]) -> Any:
    name = record["native"]
    if not isinstance(name, str) or name not in NATIVE:
        raise invalid("native", "the name of one of dpcore's mechanisms", name)
    return NATIVE[name](**decode_fields(NATIVE[name], record, "native"))


register_codec(
    "native",
    Form(
        can_core_draw,
        lambda mechanism: {"native": type(mechanism).__name__, **encode_fields(mechanism)},
        _decode_native,
    ),
)


def convert_pair(mechanism: Any, pair: Pair) -> Pair:
    """Convert two inputs to the types that a mechanism gets.

    Lists of numbers become arrays, because most mechanisms compute with arrays. If x were a list,
    `x * 2` would repeat its entries.

    Args:
        mechanism: any mechanism.
        pair: the two inputs, as the user passed them.

    Returns:
        `pair` without a change if the attribute `takes_lists` of the mechanism is True. Otherwise a
        pair in which lists and tuples of numbers are arrays. If the mechanism is a noise of the
        compiled core, the arrays have dtype float64.
    """
    if get_or_default(mechanism, "takes_lists"):
        return pair
    if can_core_draw(mechanism):
        return pair_lists_to_float_arrays(pair)
    x, x_prime = list_to_array(pair.x), list_to_array(pair.x_prime)
    return pair if x is pair.x and x_prime is pair.x_prime else replace(pair, x=x, x_prime=x_prime)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatedLogRatio(Record, word="StatedLogRatio"):
    """Function that returns the log-likelihood ratio of each output, as a mechanism computes it.

    The ratio is ln P(output|x) - ln P(output|x'). An attack chooses a threshold. An audit then
    counts the outputs on x, and those on x', whose ratio is above the threshold. The certified
    bound depends only on the two counts. Therefore the bound holds even if the ratio is wrong.

    Args:
        mechanism: object with a method `log_ratio(outputs, pair)`.
        pair: the two inputs x and x'.

    Raises:
        TypeError: if the mechanism has no method `log_ratio`, or `pair` is not a `Pair`.

    Source:
        Neyman and Pearson (1933): among all events with the same probability on x', the event
        "ratio above a threshold" has the largest probability on x.

    Example:
        >>> from dpcore.calibration import L2Laplace
        >>> score = StatedLogRatio(L2Laplace(0.5), Pair([1.0, 0.0], [0.0, 0.0]))
        >>> score(np.array([[3.0, 0.0], [-1.0, 0.0], [np.inf, 0.0]])).tolist()
        [2.0, -2.0, nan]
    """

    mechanism: Any
    pair: Pair

    cost = 1_000
    """Assumed time in nanoseconds per output. Between two equally good scores, an audit prefers the
    faster score."""

    def __post_init__(self) -> None:
        """Check that the mechanism has a method `log_ratio`, and that `pair` is a `Pair`."""
        instance("pair", self.pair, Pair)
        if not callable(get_or_default(self.mechanism, "log_ratio")):
            raise mistyped("mechanism", "one with log_ratio(outputs, pair)", self.mechanism)

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the log-likelihood ratios of outputs, shape `(size,)`.

        The ratio is NaN for outputs that are not finite.
        """
        if outputs.dtype.kind != "f":
            return np.asarray(self.mechanism.log_ratio(outputs, self.pair))
        finite = np.isfinite(outputs).reshape(len(outputs), -1).all(axis=1)
        scores = np.full(len(outputs), np.nan)
        scores[finite] = self.mechanism.log_ratio(outputs[finite], self.pair)
        return scores

    def __str__(self) -> str:
        """Return the name of the score in a report."""
        return "log ratio that the mechanism states"


def stated_score_function_or_empty(mechanism: Any, pair: Pair) -> tuple[StatedLogRatio, ...]:
    """Return a tuple with one function that computes the log-likelihood ratio of each output.

    The ratio is ln P(output|x) - ln P(output|x'). The function calls the method `log_ratio` of the
    mechanism. If the mechanism has no method `log_ratio`, the tuple is empty.

    Args:
        mechanism: any mechanism.
        pair: the two inputs x and x'.
    """
    has_ratio = _get_privacy_method(mechanism, "log_ratio") is not None
    return (StatedLogRatio(mechanism, convert_pair(mechanism, pair)),) if has_ratio else ()


def noiseless_outputs(mechanism: Any, pair: Pair) -> Pair | None:
    """Return the two vectors to which a mechanism adds noise: one for input x, one for input x'.

    The vectors come from the method `clean` of the mechanism. The result is None if the mechanism
    has no method `clean`, or `clean` returns None.

    Args:
        mechanism: any mechanism.
        pair: the two inputs x and x'.

    Example:
        >>> class Counting:
        ...     def clean(self, text):
        ...         return np.array([float(len(text.split()))])
        >>> noiseless_outputs(Counting(), Pair("a good film", "a film"))
        Pair(x=array([3.]), x_prime=array([2.]))
        >>> noiseless_outputs(print, Pair("a", "b")) is None
        True
    """
    clean = _get_privacy_method(mechanism, "clean")
    if clean is None:
        return None
    pair = convert_pair(mechanism, pair)
    x, x_prime = clean(pair.x), clean(pair.x_prime)
    if x is None or x_prime is None:
        return None
    return Pair(np.asarray(x, np.float64), np.asarray(x_prime, np.float64), pair.distance)


def declared_loss(mechanism: Any, pair: Pair, delta: float) -> float | None:
    """Compute the exact privacy loss between two inputs, from the noise that a mechanism states.

    The loss comes from the method `loss` of the mechanism. The result is None if the mechanism has
    no method `loss`, or `loss` returns None.

    Args:
        mechanism: any mechanism.
        pair: the two inputs x and x'.
        delta: the delta at which the loss (the smallest epsilon) is computed.
    """
    loss = _get_privacy_method(mechanism, "loss")
    stated_loss = None if loss is None else loss(convert_pair(mechanism, pair), delta)
    return None if stated_loss is None else float(stated_loss)


def notes_on(mechanism: Any, pair: Pair) -> tuple[str, ...]:
    """Return the notes of a mechanism for a report on two inputs, as a tuple of strings.

    The notes come from the method `notes_on` of the mechanism. The tuple is empty if the mechanism
    has no such method.
    """
    notes = _get_privacy_method(mechanism, "notes_on")
    stated_notes = () if notes is None else notes(convert_pair(mechanism, pair))
    if not isinstance(stated_notes, tuple):
        raise mistyped("notes_on(pair)", "a tuple of strings", stated_notes)
    return stated_notes


def _get_privacy_method(mechanism: Any, name: str) -> Any:
    # A torch loss function also has an attribute `loss`, with another meaning.
    is_marked = name in ("clean", "notes_on") or any(
        get_or_default(mechanism, mark) is not None for mark in _PRIVACY_METHODS
    )
    method = get_or_default(mechanism, name) if is_marked else None
    return method if callable(method) else None
