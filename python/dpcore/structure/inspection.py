"""The inspection of a noise layer: structural checks by sampling.

Sizes of draws can only be pooled over coordinates if each is measured from its own centre, and
nobody says what a callable does to its input first. Where the input is not the median of the
outputs, two guesses are tried: 0 at the input 0, which every clip by a norm leaves unchanged; and
the input with all entries beyond an upper or a lower wall cut off there. If neither explains the
outputs, the input stays the centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import choice, confidence_level, integer, invalid, mistyped, suggest_arguments, whole
from ..packages import is_tensor
from ..records import Pair
from ..streams import Rng, seed_of
from .checks import CHECKS, DETERMINISTIC, Inspection, make_check
from .outputs import (
    MIN_INSPECTED_DRAWS,
    Clean,
    Floats,
    Layer,
    Seen,
    as_finite_array,
    collect_outputs,
    one_sided_p_values,
)

_MEDIAN_LEVEL: Final = 1e-6
"""Chance that a centre is given up, or not taken, though it is the median of the noise."""


def choose_centre(layer: Layer, x: Any, seen: Seen) -> Seen:
    """Choose the outputs for the tail checks, and their centre.

    Args:
        layer: the layer, for two more calls at 0 where they are needed.
        x: the input.
        seen: its outputs, `clean` being the input itself.

    Returns:
        `seen` where the input is the centre or nothing better is known; else the same outputs with
        another `clean`, or outputs at 0. Its `clean` is a guess: no check of sides may use it.
    """
    if seen.clean is None or _may_be_medians(seen.first, seen.clean).all():
        return seen
    return _draw_at_zero(layer, x, seen) or _replace_by_walls(seen) or seen


def _draw_at_zero(layer: Layer, x: Any, seen: Seen) -> Seen | None:
    """Return outputs at the input 0 if there is noise around it as at the input."""
    draws = len(seen.first)
    try:
        first, second = layer.draw(0 * x, draws), layer.draw(0 * x, draws)
        clean = layer.clean(0 * x, False)
    except Exception:
        # Nobody said that the mechanism takes this input.
        return None
    if clean is None or not _may_be_medians(first, clean).all():
        return None
    home = replace(seen, first=first, second=second, clean=clean, around="0, at the input 0")
    return home if np.array_equal(home.varying, seen.varying) else None


def _replace_by_walls(seen: Seen) -> Seen | None:
    """Replace all input entries that do not fit by one upper and one lower wall."""
    assert seen.clean is not None
    fits = _may_be_medians(seen.first, seen.clean)
    middle = np.median(seen.first, axis=0)
    clean = seen.clean.copy()
    for side in (~fits & (middle < seen.clean), ~fits & (middle > seen.clean)):
        if side.any():
            # A wall is one number: sizes measured from it agree among all its entries.
            clean[side] = np.median(seen.first[:, side])
    if not _may_be_medians(seen.first, clean).all():
        return None
    return replace(seen, clean=clean, around="the input clipped at a wall")


def _may_be_medians(outputs: Floats, centre: Floats) -> npt.NDArray[np.bool_]:
    """Test by signs if each number of the centre may be the median of its coordinate."""
    above, below = (outputs > centre).sum(axis=0), (outputs < centre).sum(axis=0)
    p = 2 * one_sided_p_values(np.maximum(above, below), np.minimum(above, below))
    return np.asarray(p > _MEDIAN_LEVEL / len(centre))


@suggest_arguments
def inspect(
    mechanism: Any,
    x: Any,
    *,
    draws: int | None = None,
    rng: Rng = None,
    clean: Clean = None,
    others: Sequence[Any] | None = None,
    skip: Sequence[str] = (),
    false_alarm: float = 1e-4,
) -> Inspection:
    """Look for faults in the structure of a noise layer, by sampling it.

    The checks:

    - ``no_noise``: outputs equal the clean vector in every draw, in all or some coordinates;
    - ``shared_rows``, ``shared_calls``: noise used again within a call, or in a second call;
    - ``rank``: noise in fewer directions than coordinates, such as one draw added to all of them;
    - ``correlation``, ``shared_size``: dependent coordinates, of which the size alone is meant
      where a radius is drawn for the whole vector (then ``skip=("shared_size",)``);
    - ``one_sided``, ``atom``, ``off_centre``: noise never below (above) the clean vector, exactly
      0 or another value with positive probability, or with another median than 0. Each is
      flagged only if it is so at all inputs that were tried;
    - ``scale``: noise that is larger at some inputs than at others;
    - ``column_scale``: a coordinate with less than a tenth of the noise of most others. Where
      coordinates have scales of their own by design, the noise is as unequal as the
      sensitivities, and ``skip=("column_scale",)`` leaves the check out;
    - ``grid``, ``range``: values that come back in the tail, as those of torch's float32 Laplace
      noise do, which never exceeds 15.942385 scales; noise that ends at a wall, where enough
      draws reach it;
    - ``modes``: another law in train mode than in eval mode, for objects that have both, such as
      torch modules. The other checks look at the mode that the object is in, and leave it there.

    With m checks that have a p-value, each is flagged at ``false_alarm / m``, so that a layer of
    independent draws of noise that is continuous, or has few values, and symmetric about the clean
    vector, with a tail no lighter than a Gaussian one, is flagged with probability `false_alarm`
    at most. A layer that passes is not proved private: `dpcore.audit` counts what it leaks.
    Outputs that are clamped after the noise do depend on the input: inspect the layer before its
    clamp.

    Args:
        mechanism: a native mechanism, a callable ``(x, size, rng) -> outputs``, or an object that
            `dpcore.adapters` knows, such as a torch module, which is called as it is.
        x: the input: finite numbers, any shape that the mechanism takes, or a tensor.
        draws: outputs in each of the two main calls, at least 200; None makes a million
            numbers, from 1,536 to 262,144 draws. Other inputs and modes are drawn 16,384 times at
            most.
        rng: None, an int in [0, 2**63) or a numpy Generator.
        clean: what the noise is added to: a function of the input, or the vector at x. None takes
            x itself where an output has as many numbers (a native mechanism's own clip and factor
            are known), False says that it is not known. Without it, noise is only compared with
            itself. Where x is not the median of
            the outputs, as behind a clip, `grid` and `range` measure from what the outputs show:
            x cut off at a wall, or else 0 at the input 0.
        others: inputs to compare with; None makes up 2 x, 0 and two shifts of x by ten times the
            noise, and leaves out those that the mechanism does not take.
        skip: names of checks that are not made.
        false_alarm: chance, at most, of any flag without a fault.

    Returns:
        The `Inspection`: ``str`` is a table, ``flagged`` the names, ``passed`` True without any.

    Raises:
        TypeError: if an argument is of the wrong kind, or outputs are no real numbers.
        ValueError: if an argument is out of range, or outputs are not finite or of another shape
            in every call.

    Source:
        The faults: Habernal (2022), theorem 3.2 (one-sided noise); Mironov (2012)
        (floating point); the released code of Lyu, He and Li (2020) (one draw for a whole row).

    Example:
        >>> import dpcore
        >>> inspect(dpcore.Laplace(1.0), [0.0, 0.5, 1.0], rng=1).passed
        True
        >>> def shared(x, size, rng):
        ...     return x + rng.laplace(size=(size, 1))
        >>> found = inspect(shared, [0.0, 0.5, 1.0], rng=1)
        >>> found.flagged
        ('rank', 'correlation', 'shared_size')
        >>> print(found["rank"])
        rank: FLAGGED: one draw of noise for all 3 coordinates (rank 1): subtracting the row minimum
        returns the clean vector (largest error ...)
    """
    if isinstance(x, (tuple, Pair)):
        raise mistyped("x", "one input, such as [0.0], and not a pair of them", x)
    if draws is not None:
        draws = integer("draws", whole(draws), MIN_INSPECTED_DRAWS)
    if isinstance(skip, str) or not isinstance(skip, Sequence):
        raise mistyped("skip", "a sequence of names of checks", skip)
    for name in skip:
        choice("skip", name, CHECKS)
    if set(skip) == set(CHECKS):
        raise invalid("skip", "names that leave a check to make", skip)
    if others is not None and not isinstance(others, Sequence):
        raise mistyped("others", "a sequence of inputs", others)
    false_alarm = confidence_level(false_alarm, "false_alarm")
    layer = Layer(mechanism, seed_of(rng), clean)
    seen = collect_outputs(layer, x, draws, others, skip)
    tails = {"grid", "range"}
    tail = seen
    if layer.guessed and not tails <= set(skip):
        tail = choose_centre(layer, x if is_tensor(x) else as_finite_array("x", x), seen)
    wanted = [name for name in CHECKS if name not in skip]
    # The number does not depend on what is seen: a check without an answer keeps its share.
    level = false_alarm / max(1, len({*wanted} - {*DETERMINISTIC}))
    checks = tuple(make_check(one, tail if one in tails else seen, level) for one in wanted)
    n, d = seen.first.shape
    return Inspection(layer.name, d, n, layer.seed, false_alarm, level, checks)
