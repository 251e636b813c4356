"""Texts as inputs of mechanisms: checks of text encoders, and functions that rewrite texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice, invalid, mistyped, real, tag_error
from ..packages import has_all, is_tensor
from ..records import Record
from ..report.shown import Shown, name_of
from ..streams import Generators, check_size, seed_and_hide_warnings
from ..suggestions import explain_argument_errors
from .declarations import get_or_default

_PROBE_SENTENCE: Final = (
    "he has the flu but she was at a good film with all of them last week and then it rained so "
    "we took two long trains home to see what had been said about our new house"
)
_PROBE_TEXT_LENGTHS: Final = (1, 1, 2, 3, 5, 8, 12, 20, 40)
"""Numbers of words of the built-in texts. An encoder of 128 tokens does not truncate them."""

PROBE_TEXTS: Final = tuple(
    " ".join(islice(cycle(_PROBE_SENTENCE.split()), 3 * place, 3 * place + length))
    for place, length in enumerate(_PROBE_TEXT_LENGTHS)
)
"""Built-in texts, with which dpcore tests encoders by default."""
_FLOATS_ROUNDING: Final = 1e-5
"""Relative distance up to which two vectors count as equal, for float32 (MiniLM reaches 8e-7). It
also holds for float64, because many encoders compute in float32 and convert the result."""
_HALF_ROUNDING: Final = 0.05
"""Relative distance up to which two vectors count as equal, for bfloat16 and float16. MiniLM in
bfloat16 reaches 8e-3. If padding affects a row, the distance is about 1."""

Encode = Callable[[list[str]], npt.NDArray[Any]]
TextsArgument = Literal["text", "texts"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchCheck(Record, word="BatchCheck"):
    """Result of a check that a text's vector does not depend on the other texts in the batch.

    Args:
        distance: largest distance between two vectors of the same text. The first vector comes from
            a call of the encoder with only this text, and the second from a batch with other texts.
            The distance is divided by the norm of the vector. NaN if it was not measured.
        rounding: largest value of `distance` that rounding may cause.
        texts: number of texts that were checked.
        reason: reason why the distance was not measured, or "" if the distance was measured.
    """

    distance: float
    rounding: float
    texts: int
    reason: str = ""

    def __str__(self) -> str:
        """Return a description of the result on one line, for a report."""
        if self.reason:
            return f"not checked: {self.reason}"
        return (
            f"{self.texts} texts alone, in two batches of other texts and in another order agree "
            f"within {self.distance:.1g} of a vector's norm (limit {self.rounding:g})"
        )


class TextFunction:
    """Encoder of a list of texts, made from a function of a list of texts or of one text.

    The first call determines if `function` takes a list of texts or one text. `function` counts as
    a function of one text if both conditions hold:

    - The function returns one vector for each of two single texts, and both vectors have the same
      width.
    - The function raises an error for a list of texts, or returns results of the same shape for a
      list of one text and a list of two texts.

    Args:
        function: function of a list of texts, function of one text, or feature-extraction pipeline
            of Hugging Face. For a pipeline, the vector of a text is the mean over its tokens.

    Example:
        >>> TextFunction(lambda text: [len(text.split()), len(text)])(["one", "and two"])
        [[1, 3], [2, 7]]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._takes_one: bool | None = None

    def __call__(self, texts: list[str], **more: Any) -> Any:
        """Return the vectors of a list of texts."""
        if is_hf_feature_extraction_pipeline(self.function):
            # One text at a time, because a batch adds padding, which would change the mean.
            return [_average_vectors_of_one_text(self.function(text)) for text in texts]
        if self._takes_one:
            return [_squeeze_one_row(self.function(text, **more)) for text in texts]
        try:
            vectors = self.function(texts, **more)
        except Exception:
            if self._takes_one is None and self._try_one_text(texts, more, is_known=False):
                return self(texts, **more)
            raise
        if self._takes_one is None:
            shape = _shape_of(vectors)
            is_rows = len(shape) == 2 and shape[0] == len(texts) > 1
            if not is_rows and len(shape) in (1, 2) and self._try_one_text(texts, more, True):
                return self(texts, **more)
        self._takes_one = False
        return vectors

    def _try_one_text(self, texts: list[str], more: dict[str, Any], is_known: bool) -> bool:
        """Determine if the function takes one text; store the result in `_takes_one`."""
        pair = [texts[0], texts[-1]]
        try:
            lists = (pair[:1], pair) if is_known else ()
            if len({_shape_of(self.function(some, **more)) for some in lists}) > 1:
                return False
            shapes = [_shape_of(_squeeze_one_row(self.function(text, **more))) for text in pair]
        except Exception:
            return False
        self._takes_one = len(shapes[0]) == 1 and shapes[0] == shapes[1] != (0,)
        return self._takes_one


def _shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, a tensor or nested lists; () for lists of unequal lengths."""
    try:
        return tuple(value.shape) if has_all(value, "shape") else np.shape(value)
    except ValueError:
        # Rows of different lengths.
        return ()


def _squeeze_one_row(array: Any) -> Any:
    """Return a vector unchanged, and the row of an array that has only one row."""
    shape = _shape_of(array)
    return array[0] if len(shape) == 2 and shape[0] == 1 else array


def is_hf_feature_extraction_pipeline(function: Any) -> bool:
    """Return True if an object is a Hugging Face pipeline for feature extraction."""
    return has_all(function, "task") and bool(function.task == "feature-extraction")


def _average_vectors_of_one_text(tokens: Any) -> npt.NDArray[Any]:
    """Return the mean of the token vectors of one text, given in shape `(1, tokens, width)`."""
    tokens = tokens.detach().cpu() if is_tensor(tokens) else tokens
    array = np.asarray(tokens)
    if array.ndim != 3 or len(array) != 1:
        requirement = "of shape (1, tokens, width), the vectors of the tokens of one text"
        raise invalid("answers of the pipeline", requirement, array.shape)
    mean: npt.NDArray[Any] = array[0].mean(axis=0)
    return mean


def look_up_vectors(table: Mapping[str, Any], texts: Iterable[str]) -> list[Any]:
    """Return the vectors of texts from `table`, a dictionary from a text to its vector.

    Raises:
        ValueError: if a text is not in the dictionary.
    """
    texts = list(texts)
    missing = [text for text in texts if text not in table]
    if missing:
        requirement = f"keys of the encoder, a dictionary of {len(table):,} texts"
        # Do not show the text, because it may be private.
        first = f"{len(missing):,} others, first texts[{texts.index(missing[0])}]"
        raise invalid("texts", requirement, first)
    return [table[text] for text in texts]


def relative_tolerance(rounding: float | None, dtype: str) -> float:
    """Return the largest relative distance at which two vectors count as equal.

    Args:
        rounding: distance that the user chose. None gives the default for the dtype.
        dtype: dtype of the vectors, such as "float32" or "torch.bfloat16".
    """
    if rounding is not None:
        return real("rounding", rounding, low=0.0)
    return _HALF_ROUNDING if dtype.endswith("float16") else _FLOATS_ROUNDING


def choose_by_length(texts: Iterable[str], most: int = 12) -> list[str]:
    """Choose texts of different lengths, including the shortest and the longest text.

    The texts are sorted by length, and texts at equal steps in this order are chosen.

    Args:
        texts: any number of texts.
        most: largest number of texts to choose, at least 2.

    Example:
        >>> choose_by_length(["aaa", "b", "aaaaa", "b", "aa"], 3)
        ['b', 'aaa', 'aaaaa']
    """
    ordered = sorted(dict.fromkeys(texts), key=len)
    if len(ordered) <= most:
        return ordered
    return [ordered[round(step * (len(ordered) - 1) / (most - 1))] for step in range(most)]


def relative_gaps(
    vectors: npt.NDArray[np.float64], others: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the relative distance between row i of `vectors` and row i of `others`, for each i.

    The relative distance is the L2 distance divided by the larger norm of the two rows.
    """
    norms = np.maximum(np.linalg.norm(vectors, axis=1), np.linalg.norm(others, axis=1))
    distances = np.linalg.norm(vectors - others, axis=1)
    return np.asarray(distances / np.where(norms > 0.0, norms, 1.0), np.float64)


def compare_batches(
    encode: Encode, texts: Sequence[str], rounding: float, name: str = "encoder",
    shown: Sequence[str] = (),
) -> BatchCheck:  # fmt: skip
    """Check that the vector of a text does not depend on the other texts in the batch.

    The encoder is called with each single text, with two different batches that contain the text,
    and with all texts in reverse order. The vectors of the text are compared. If other texts change
    the vector, an output also reveals information about these texts. The noise that is added to the
    vector does not protect the other texts.

    Args:
        encode: encoder without randomness, that is, a function from a list of texts to a float64
            array of shape `(texts, width)`.
        texts: list of different texts, at least one.
        rounding: largest relative distance at which two vectors count as equal.
        name: name of the encoder in error messages.
        shown: names of the texts in error messages. Defaults to the beginnings of the texts.

    Returns:
        The result of the check, with the largest distance.

    Raises:
        ValueError: if the vector of a text depends on the other texts in the batch.

    Example:
        >>> def centred(texts):
        ...     rows = np.array([[float(len(text)), 1.0] for text in texts])
        ...     return rows - rows.mean(axis=0)
        >>> compare_batches(centred, ["one", "three"], 1e-5)
        Traceback (most recent call last):
        ValueError: encoder must be one that gives a text the same vector alone and in any batch (up
        to 1e-05 of its norm; rounding= changes that), got another one for 'three', 1 of its norm
        away, in a batch with 'one'
    """
    places = range(len(texts))
    alone = np.concatenate([encode([text]) for text in texts])
    middle = (len(texts) + 1) // 2
    batches = (places[::2], places[1::2], places[:middle], places[middle:], places[::-1])
    largest, where, found_in = -1.0, 0, places
    for batch in filter(None, batches):
        distances = relative_gaps(alone[batch], encode([texts[place] for place in batch]))
        if distances.max() > largest:
            largest, where, found_in = float(distances.max()), batch[int(distances.argmax())], batch
    if not largest <= rounding:
        shown = shown or [repr(text[:40]) for text in texts]
        others = [shown[place] for place in found_in if place != where]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        requirement = (
            "one that gives a text the same vector alone and in any batch (up to "
            f"{rounding:g} of its norm; rounding= changes that)"
        )
        batch_words = f"in a batch with {(others or ['none'])[0]}{more}"
        found_words = (
            f"another one for {shown[where]}, {largest:.3g} of its norm away, {batch_words}"
        )
        error = ValueError(f"{name} must be {requirement}, got {found_words}")
        raise tag_error(error, name)
    return BatchCheck(largest, rounding, len(texts))


def check_text(name: str, value: Any) -> str:
    """Check that a value is a text that is not empty, and return it.

    Args:
        name: name of the text in error messages.
        value: the text.

    Raises:
        TypeError: if the value is not a string.
        ValueError: if the value is empty, or contains only white space.
    """
    if not isinstance(value, str):
        raise mistyped(name, "a text (a string)", value)
    if not value.strip():
        raise invalid(name, "a text that is not empty", value)
    # numpy's string is a subclass of Python's; convert it, because it would show as another type.
    return str(value)


def as_texts(name: str, value: Any, *, fewest: int = 1) -> tuple[str, ...]:
    """Check that a value is a list of texts, and return the texts as a tuple.

    Args:
        name: name of the texts in error messages.
        value: a list of strings, a column of a table, a `text.Corpus` or a similar object. A single
            string is not allowed.
        fewest: smallest allowed number of texts, 0 or 1.

    Returns:
        The texts, unchanged.

    Raises:
        TypeError: if the value is a single string, or an entry is not a string.
        ValueError: if the number of texts is below `fewest`, or a text is empty.

    Example:
        >>> as_texts("texts", ["one", "two"])
        ('one', 'two')
        >>> as_texts("texts", "he has the flu")
        Traceback (most recent call last):
        TypeError: texts must be a list of at least one text, not a single string, got 'he has the
        flu'
    """
    requirement = "a list of at least one text" if fewest else "a list of texts"
    if isinstance(value, (str, bytes)):
        raise mistyped(name, f"{requirement}, not a single string", value)
    is_scalar = isinstance(value, Mapping) or getattr(value, "ndim", 1) == 0
    if not isinstance(value, Iterable) or is_scalar:
        raise mistyped(name, requirement, value)
    texts = tuple(value)
    if len(texts) < fewest:
        raise invalid(name, requirement, value)
    return tuple(check_text(f"{name}[{row}]", text) for row, text in enumerate(texts))


def check_batches(
    encode: Encode,
    texts: Sequence[str],
    limit: Callable[[], float],
    *,
    name: str = "encoder",
    random: str = "",
    refuse_state: bool = False,
    shown: Sequence[str] = (),
) -> BatchCheck:
    """Check that the vector of a text does not depend on the other texts in the batch.

    The function encodes the texts in different batches, and compares the vectors of each text. A
    random encoder is not checked. An encoder is random if it draws from a generator of torch, numpy
    or Python, or if two equal calls give different vectors. The state of these generators is
    restored at the end.

    Args:
        encode: encoder, that is, a function from a list of texts to a float64 array of shape
            `(texts, width)`.
        texts: list of different texts, at least one.
        limit: function without arguments that returns the largest relative distance at which two
            vectors count as equal. This function is called after the texts were encoded, so that it
            may depend on the dtype of the vectors.
        name: name of the encoder in error messages.
        random: text that states why the encoder is random. The text is empty if the encoder is not
            known to be random.
        refuse_state: True raises an error if two equal calls give different vectors, although the
            encoder does not draw from the generators above.
        shown: names of the texts in error messages. Defaults to the beginnings of the texts.

    Returns:
        The result of the check. For a random encoder, the result states why the encoder was not
        checked.

    Raises:
        ValueError: if the vector of a text depends on the other texts in the batch. With
            `refuse_state`, also if two equal calls give different vectors.
    """
    calls, drew = list[npt.NDArray[Any]](), False
    with Generators.collect_from_memory() as generators:
        for seed in range(2):
            with seed_and_hide_warnings(seed):
                vectors, moved = generators.moved_by(lambda: encode(list(texts)))
            calls.append(vectors)
            drew |= moved
        rounding = limit()
        if random or drew:
            return BatchCheck(np.nan, rounding, len(texts), random or "the encoder is random")
        if not (relative_gaps(*calls) <= rounding).all():
            if refuse_state:
                requirement = (
                    "the same in two equal calls, for no generator of torch, numpy or Python moved "
                    "(an encoder that draws elsewhere declares it by an attribute random = True)"
                )
                raise invalid(name, requirement, f"{relative_gaps(*calls).max():.3g} of its norm")
            reason = "two equal calls differ although no generator of torch, numpy or Python moved"
            return BatchCheck(np.nan, rounding, len(texts), reason)
        with seed_and_hide_warnings(0):
            return compare_batches(encode, texts, rounding, name, shown)


def bound_object(function: Any) -> Any:
    """Return the object `a` of a bound method `a.f`, or None for any other function."""
    return getattr(function, "__self__", None)


def takes_rng(encode: Callable[..., Any]) -> bool:
    """Return True if a function has a parameter `rng`."""
    try:
        return "rng" in inspect.signature(encode).parameters
    except (TypeError, ValueError):
        # Some compiled functions have no signature.
        return False


def _text_or_texts_from_signature(function: Callable[..., Any]) -> TextsArgument | None:
    """Return "text" if a function rewrites one text, and "texts" if it rewrites a list of texts.

    The result is None if the signature of the function does not show this.

    Raises:
        TypeError: if the function has arguments other than the texts and `rng`.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some compiled functions have no signature.
        return None
    missing = inspect.Parameter.empty
    inputs = [
        parameter for parameter in parameters
        if parameter.name != "rng" and parameter.kind is not parameter.VAR_KEYWORD
    ]  # fmt: skip
    further = [
        parameter for parameter in inputs[1:]
        if parameter.default is missing and parameter.kind is not parameter.VAR_POSITIONAL
    ]  # fmt: skip
    if not inputs or inputs[0].kind is inspect.Parameter.KEYWORD_ONLY or further:
        requirement = "a function of a list of texts or of one text, with or without rng"
        raise mistyped("rewrite", requirement, function)
    hint, name = inputs[0].annotation, inputs[0].name
    if hint is not missing:
        is_list = hint is list or "[" in str(hint)
        return "text" if hint in (str, "str") else "texts" if is_list else None
    return "text" if name == "text" else "texts" if name == "texts" else None


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class Rewriter(Shown):
    """Make a mechanism from a function that rewrites texts.

    The function takes a list of texts and returns a list of strings, or it takes one text and
    returns one string. The argument `takes` states which of these two forms the function has. If
    `takes` is None, dpcore reads the annotation of the first parameter, which may be `str` or a
    list. Without an annotation, dpcore reads the name of the parameter, which may be `text` or
    `texts`. If the parameter has another name, dpcore calls the function on a list and on one text.
    If both calls succeed, dpcore raises a ValueError.

    In an audit, the function rewrites the same text many times. The rewritten texts must be
    independent.

    Args:
        rewrite: function `(texts) -> list[str]` that returns one rewritten text for each text, or
            function `(text) -> str`. If the function has a parameter `rng`, dpcore passes a numpy
            Generator to it. A second audit with the same seed then gives the same rewritten texts.
        claim: claimed epsilon, if any two texts are neighbours. None means that the mechanism has
            no claim.
        takes: "texts" for a function of a list, "text" for a function of one text. With None,
            dpcore determines the value as described above.

    Raises:
        TypeError: if `rewrite` is not callable or requires arguments other than the texts and
            `rng`, or `claim` is not a number.
        ValueError: if `claim` is negative or not finite, or `takes` contradicts the annotation or
            the name of the first parameter.

    Source:
        Krishna, Gupta and Dupuy (2021), whose system ADePT rewrites utterances.

    Example:
        >>> import dpcore
        >>> def any_word(text, rng):
        ...     return str(rng.choice(text.split()))
        >>> rewriter = Rewriter(any_word)
        >>> pair = ("a good film", "a film")
        >>> report = dpcore.audit(rewriter, pair, claim=1.0, trials=10_000, rng=1)
        >>> report.verdict, rewriter("a good film", 2, np.random.default_rng(1))
        ('refuted', ['good', 'good'])
        >>> Rewriter(lambda texts: [text.upper() for text in texts]).takes
        'texts'
    """

    rewrite: Callable[..., Any]
    claim: float | None = None
    takes: TextsArgument | None = field(default=None, compare=False)
    takes_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields."""
        if not callable(self.rewrite):
            raise mistyped("rewrite", "a function of a list of texts or of one text", self.rewrite)
        if self.claim is not None:
            object.__setattr__(self, "claim", real("claim", self.claim, low=0.0))
        settled = _text_or_texts_from_signature(self.rewrite)
        if self.takes is None:
            object.__setattr__(self, "takes", settled)
        elif choice("takes", self.takes, get_args(TextsArgument)) != (settled or self.takes):
            raise invalid("takes", f"{settled!r}, as the signature of rewrite has it", self.takes)

    @property
    def name(self) -> str:
        """Name of this mechanism in reports, with the name of the model or of the function."""
        own_name = get_or_default(bound_object(self.rewrite), "name")
        return f"Rewriter({own_name if isinstance(own_name, str) else name_of(self.rewrite)})"

    def __call__(self, x: str, size: int, rng: np.random.Generator) -> list[str]:
        """Draw `size` rewrites of one text.

        Args:
            x: the text.
            size: number of rewrites.
            rng: numpy Generator, which the function gets if it has a parameter `rng`.

        Returns:
            A list of `size` texts.

        Raises:
            TypeError: if `x` or a rewrite is not a string.
            ValueError: if `x` is empty, or if the function returns another number of rewrites.
        """
        return self.apply([check_text("x", x)] * check_size(size, 1), rng)

    def apply(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """Rewrite each of several texts once, and return the rewritten texts.

        Args:
            texts: list of texts.
            rng: numpy Generator, which is passed to the rewriting function if it has a parameter
                `rng`.

        Returns:
            A list with one rewritten text for each text, as the function returned it.

        Raises:
            TypeError: if a rewritten text is not a string.
            ValueError: if the number of rewritten texts differs from the number of texts. Also if
                `takes` is None, and the function accepts one text as well as a list of texts.
        """
        texts = list(texts)
        if self.takes is None and texts:
            object.__setattr__(self, "takes", self._find_argument_kind_by_trial_calls(texts))
        if self.takes == "text":
            rewrites = [self._call(text, rng) for text in texts]
        else:
            rewrites = self._call(texts, rng)
        if isinstance(rewrites, str) or not isinstance(rewrites, Iterable):
            raise mistyped(f"rewrites of {self.name}", "a list, one for each text", rewrites)
        for text in rewrites:
            if not isinstance(text, str):
                raise mistyped(f"rewrites of {self.name}", "strings", text)
        if len(rewrites := list(rewrites)) != len(texts):
            requirement = f"{len(texts):,} rows, one for each text"
            raise invalid(f"rewrites of {self.name}", requirement, len(rewrites))
        return rewrites

    def _call(self, texts: Any, rng: np.random.Generator) -> Any:
        return self.rewrite(texts, **({"rng": rng} if takes_rng(self.rewrite) else {}))

    def _find_argument_kind_by_trial_calls(self, texts: list[str]) -> TextsArgument:
        """Call the function on a list and on one text, and return which of them it accepts."""
        with Generators.collect_from_memory():
            answers, failures = list[Any](), list[Exception]()
            for argument in (texts[:1] * 2, texts[0]):
                try:
                    answers.append(self._call(argument, np.random.default_rng(0)))
                except Exception as error:
                    answers.append(None)
                    failures.append(error)
        is_row = isinstance(answers[0], (list, tuple)) and len(answers[0]) == 2
        is_listed = is_row and all(isinstance(text, str) for text in answers[0])
        if is_listed and isinstance(answers[1], str):
            need = "'text' or 'texts', for the function answers one text and a list of texts"
            raise invalid("takes", need, None)
        if len(failures) == 2:
            raise failures[1] from failures[0]
        return "text" if isinstance(answers[1], str) else "texts"

    def __repr__(self) -> str:
        return self.name
