"""Centre of the noise where it is not the input itself: a layer that clips first.

Sizes of draws can only be pooled over coordinates if each is measured from its own centre. Nobody
says what a callable does to its input first. Where the input is not the median of the outputs, two
guesses are tried: 0 at the input 0, which every clip by a norm leaves alone; and the input with all
entries beyond an upper or a lower wall cut off there. If neither explains the outputs, the input
stays the centre.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._ranks import Floats
from ._seeing import Layer, Seen

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
    home = _draw_at_zero(layer, x, seen)
    if home is not None:
        return home
    walled = _replace_by_walls(seen)
    if walled is None:
        return seen
    return replace(seen, clean=walled, around="the input clipped at a wall")


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


def _replace_by_walls(seen: Seen) -> Floats | None:
    """Replace all input entries that do not fit by one upper and one lower wall."""
    assert seen.clean is not None
    fits = _may_be_medians(seen.first, seen.clean)
    middle = np.median(seen.first, axis=0)
    clean = seen.clean.copy()
    for side in (~fits & (middle < seen.clean), ~fits & (middle > seen.clean)):
        if side.any():
            # A wall is one number: sizes measured from it agree among all its entries.
            clean[side] = np.median(seen.first[:, side])
    return clean if _may_be_medians(seen.first, clean).all() else None


def _may_be_medians(outputs: Floats, centre: Floats) -> npt.NDArray[np.bool_]:
    """Test by signs if each number of the centre may be the median of its coordinate."""
    from scipy.special import betainc

    above, below = (outputs > centre).sum(axis=0), (outputs < centre).sum(axis=0)
    most, least = np.maximum(above, below), np.minimum(above, below)
    p = np.where(most > 0, 2 * betainc(np.maximum(most, 1), least + 1.0, 0.5), 1.0)
    return np.asarray(p > _MEDIAN_LEVEL / len(centre))
