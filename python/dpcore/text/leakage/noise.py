"""Noise on the vectors of words, with the epsilon that it is said to give and the true one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ...calibration import laplace, real_epsilon
from ...errors import choice, instance, invalid, part_of, real
from ...hints import hinted
from ...mechanisms import Laplace
from ...pairs.norms import Norm
from ...sampling.drawing import sample
from ...sensitivity import MinMax, sensitivity
from ...streams import Rng, seed_of
from .embedding import Embedding

__all__ = ["noisy"]


@hinted
def noisy(
    embedding: Any,
    epsilon: float,
    *,
    scale: Literal["published", "sound"] = "published",
    rng: Rng = None,
) -> Embedding:
    """An embedding whose vectors are brought to [0, 1] each and get Laplace noise.

    ``(v - min v) / (max v - min v) + Lap(b)``, independent in every entry, with b = 1/epsilon as
    published: that is epsilon for an entry, and dim times as much for a vector. Covers one release
    of the vector of one word, for any two vectors; not the texts that the vectors were learnt
    from.

    Args:
        embedding: an `Embedding` without noise.
        epsilon: the claim, above 0.
        scale: "published" (b = 1/epsilon) or "sound" (b = dim/epsilon, which keeps the claim).
        rng: None (fresh entropy), an int in [0, 2**63) or a Generator.

    Returns:
        The noisy `Embedding`, with `claimed` and `real`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `epsilon` is not above 0, a vector is constant, or has noise already.

    Source:
        Lyu, He and Li (2020), algorithm 2, word by word.

    Example:
        >>> vectors = np.random.default_rng(1).normal(size=(3, 100))
        >>> noisy(Embedding(("a", "cat", "sat"), vectors), 5.0, rng=1)
        <Embedding of 3 words, dim=100, epsilon claimed 5, true 500>
    """
    clean = instance("embedding", embedding, Embedding)
    if clean.real is not None:
        raise invalid("embedding", "one without noise", clean)
    epsilon = real("epsilon", epsilon, low=0.0, open_low=True)
    with part_of("embedding"):
        rows = MinMax()(clean.vectors)
    domain = MinMax().range(clean.dim)
    # What is published takes the largest change of one entry for that of the whole vector.
    choice("scale", scale, ("published", "sound"))
    norm: Norm = "linf" if scale == "published" else "l1"
    noise = Laplace(laplace(epsilon, sensitivity(domain, norm).value))
    drawn = sample(noise, np.zeros(clean.dim), len(clean), rng=seed_of(rng))
    return replace(clean, vectors=rows + drawn, claimed=epsilon, real=real_epsilon(noise, domain))
