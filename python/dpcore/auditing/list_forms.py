"""Test whether a mechanism treats a list and an array of the same numbers alike.

The user gives an input as a list of numbers. A function that makes one output per call gets this
list. A function `(x, size, rng)`, which makes `size` outputs per call, gets an array of the numbers
instead. Before the audit, dpcore calls the mechanism for each input once with the list and once
with the array. Both calls get equal random generators. If their outputs differ, the report has a
note.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import flat_list_to_floats
from ..mechanisms.callables import Repeated, make_generator
from ..mechanisms.declarations import can_core_draw, convert_pair, get_or_default
from ..pairs.differences import inputs_equal
from ..records import Pair, frozen_array
from ..sampling.sources import TimeLog
from ..streams import PROBE

_FORMS_STREAM: Final = 2
"""Last number in the keys of the random streams for the calls that compare the two forms."""
_ROUNDING: Final = 1e-5
"""Largest relative difference that counts as rounding."""


class _Forms(NamedTuple):
    """One input in two forms, such as a list and an array of the same numbers.

    `passed` is the form that the audit passes to the mechanism, and `other` is the other form.
    """

    mechanism: Any
    seed: int
    course: TimeLog
    side: int
    passed: Any
    other: Any

    def draw_output(self, x: Any) -> Any:
        """Return one output of the mechanism for the input x. A list is copied before the call."""
        rng = make_generator(self.seed, PROBE, self.side, 0, _FORMS_STREAM)
        self.course.add_outputs(1)
        return self.mechanism(list(x) if type(x) is list else x, 1, rng)

    def can_answer(self, x: Any) -> bool:
        try:
            self.draw_output(x)
        except Exception:
            return False
        return True


@contextmanager
def explain_list_errors(mechanism: Any, pair: Pair, seed: int, course: TimeLog) -> Iterator[None]:
    """Add advice to an error of the `with` block, if the mechanism needs inputs as float64 arrays.

    The mechanism is called twice: with the input as the audit passes it, and with a float64 array
    of the same numbers. The advice is added if the first call raises an error and the second call
    raises no error.
    """
    try:
        yield
    except Exception as error:
        for forms in _yield_input_forms(mechanism, pair, seed, course):
            wants_floats = isinstance(forms.other, np.ndarray) and forms.can_answer(forms.other)
            if wants_floats and not forms.can_answer(forms.passed):
                name, dtype = _name_form(forms.passed), ""
                origin = f"{name}, as in pair="
                if isinstance(forms.passed, np.ndarray):
                    origin, dtype = f"{name} of the numbers in pair=", ", float"
                error.add_note(
                    f"x was passed as {origin}; numpy.asarray(x{dtype}) in the function makes an "
                    f"array that works, or give pair=(np.array(...{dtype}), np.array(...{dtype}))"
                )
                break
        raise


def compare_input_forms(mechanism: Any, pair: Pair, seed: int, course: TimeLog) -> tuple[str, ...]:
    """Call a mechanism with a list and with an array of the same numbers, and compare the outputs.

    Returns:
        A tuple of one sentence if the outputs differ, else an empty tuple.
    """
    for forms in _yield_input_forms(mechanism, pair, seed, course):
        try:
            answer, other = (forms.draw_output(x) for x in (forms.passed, forms.other))
            differ = not _are_nearly_equal(answer, other) and _are_nearly_equal(
                answer, forms.draw_output(forms.passed)
            )
        except Exception:
            # A function that accepts only one form has no other output to compare.
            continue
        if differ:
            names = [_name_form(x) for x in (forms.passed, forms.other)]
            passed = names[0].partition(" ")[2]
            both = " and ".join(names if passed != "array" else names[::-1])
            return (f"{both} give different answers here; the {passed} was passed",)
    return ()


def _yield_input_forms(mechanism: Any, pair: Pair, seed: int, course: TimeLog) -> Iterator[_Forms]:
    """Yield the two forms of each input that the user gave as a list or tuple of numbers.

    Native noises, commands and adapters are left out, because they treat the two forms alike.
    Functions with their own randomness are left out too, because their outputs differ in any case.
    """
    is_function = isinstance(mechanism, Repeated) and mechanism.reproducible
    if can_core_draw(mechanism) or (get_or_default(mechanism, "takes_lists") and not is_function):
        return
    inputs = convert_pair(mechanism, pair)
    for side, (x, passed) in enumerate(((pair.x, inputs.x), (pair.x_prime, inputs.x_prime))):
        floats = flat_list_to_floats(x)
        # Rounded numbers would be another input, not another form of it.
        if floats is not x and floats.tolist() == list(x):
            is_float = isinstance(passed, np.ndarray) and passed.dtype == np.float64
            yield _Forms(
                mechanism, seed, course, side, passed, x if is_float else frozen_array(floats)
            )


def _name_form(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return f"a {type(x).__name__}"
    return (
        "an array" if x.dtype == np.float64 else f"a{'n' * (x.dtype.kind == 'i')} {x.dtype} array"
    )


def _are_nearly_equal(answer: Any, other: Any) -> bool:
    """Return True if two outputs are numbers that differ by rounding at most, or equal objects."""
    first, second = (np.asarray(value) for value in (answer, other))
    if first.dtype.kind in "buifc" and second.dtype.kind in "buifc":
        same = first.shape == second.shape
        return same and np.allclose(first, second, rtol=_ROUNDING, atol=0.0, equal_nan=True)
    return inputs_equal(first.tolist(), second.tolist())
