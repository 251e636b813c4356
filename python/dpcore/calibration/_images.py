"""Largest distance of two neighbours when the noise is added: after the mechanism's clip."""

from __future__ import annotations

import math
from typing import Any, Final

from ..errors import invalid, mistyped
from ..mechanisms import Clip
from ..pairs import Box, distance
from ..pairs.norms import Norm
from ..records import Pair
from ..sensitivity import Ball, Histogram, MinMaxRows, OneHot, Simplex, Sphere, sensitivity

_CLIP_TOLERANCE: Final = 1e-12

KNOWN: Final = (Box, MinMaxRows, Ball, Simplex, Sphere, OneHot, Histogram)


def widest_pair(domain: Any, norm: Norm, clip: Clip | None) -> tuple[float, Pair]:
    """Return the largest distance of two clipped neighbours of a domain, and such a pair.

    Args:
        domain: one of `dpcore.sensitivity`'s.
        norm: "l1" or "l2", of the distance.
        clip: what the mechanism does to its input first, or None.

    Returns:
        The distance, and a pair of inputs, before the clip.

    Raises:
        TypeError: if the domain is none of them.
        ValueError: if there is no closed form after the clip.
    """
    if type(domain) not in KNOWN:
        raise mistyped("domain", "one of dpcore.sensitivity's, whose diameter is known", domain)
    if clip is None or (type(domain) is not Histogram and _is_inside(domain, clip)):
        found = sensitivity(domain, norm)
        return found.value, found.pair
    if type(domain) is Histogram:
        requirement = "other than a histogram for a mechanism that clips (no closed form)"
        raise invalid("domain", requirement, domain)
    ball = Ball(clip.norm, clip.radius, domain.dim)
    whole = sensitivity(ball, norm)
    # The domain's members nearest to the ball's worst pair: often the pair itself.
    pair = Pair(domain.clip(whole.pair.x), domain.clip(whole.pair.x_prime))
    lower = distance(Pair(ball.clip(pair.x), ball.clip(pair.x_prime)), norm)
    if lower < whole.value * (1.0 - _CLIP_TOLERANCE):
        requirement = (
            f"within the clip's ball, or reach its width {whole.value:g} in {norm.upper()}: what "
            f"lies between has no closed form (at least {lower:g} is reached)"
        )
        raise invalid("domain", requirement, domain)
    return whole.value, pair


def _is_inside(domain: Any, clip: Clip) -> bool:
    """Return True if the clip changes no member."""
    return _farthest_norm(domain, clip.norm) <= clip.radius * (1.0 + _CLIP_TOLERANCE)


def _farthest_norm(domain: Any, norm: Norm) -> float:
    """Compute the largest norm of a member."""
    if isinstance(domain, (Simplex, OneHot)):
        return 1.0
    if isinstance(domain, MinMaxRows):
        return float(domain.dim - 1) if norm == "l1" else math.sqrt(domain.dim - 1)
    if isinstance(domain, Box):
        radius = max(abs(domain.low), abs(domain.high))
        if radius == 0.0:
            return 0.0
        domain = Ball("linf", radius, domain.dim)
    # Balls and spheres are symmetric: the farthest member and its opposite are a diameter.
    return sensitivity(domain, norm).value / 2.0
