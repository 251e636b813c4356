"""Private attributes of texts: their values, the code of each text, and a reader of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import about, invalid, mistyped
from ...torch.needed import torch
from ..corpus import Corpus

__all__ = ["Discriminator", "codes_of", "descend", "make_layers", "names_of", "values_of"]

_HIDDEN_UNITS: Final = 128
"""Units in each hidden layer, as in Coavoux, Narayan and Cohen (2018)."""


def names_of(attribute: Any) -> tuple[str, ...]:
    """Check the name of one attribute or of several, and return the names.

    Raises:
        TypeError: if it is neither a name nor several.
        ValueError: if there is none, or one comes twice.
    """
    names = (attribute,) if isinstance(attribute, str) else attribute
    requirement = "the name of an attribute, or several names"
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise mistyped("attribute", requirement, attribute)
    found = tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise mistyped("attribute", requirement, attribute)
    if not found or len(set(found)) < len(found):
        raise invalid("attribute", f"{requirement}, that differ", attribute)
    return found


def values_of(names: tuple[str, ...], part: Corpus) -> dict[str, npt.NDArray[Any]]:
    """Return the sorted values of each attribute among training texts.

    Raises:
        ValueError: if the corpus lacks an attribute, or it has one value only.
    """
    found = {name: np.unique(part.attribute(name)) for name in names}
    for name, values in found.items():
        if len(values) < 2:
            requirement = "of two values at least in the training texts"
            raise about(invalid(f"attribute {name!r}", requirement, values.tolist()), "attribute")
    return found


def codes_of(values: dict[str, npt.NDArray[Any]], corpus: Corpus) -> npt.NDArray[np.int64]:
    """Return the places of a corpus's attributes among the training texts' values.

    Returns:
        int64, shape `(len(corpus), attributes)`.

    Raises:
        ValueError: if the corpus lacks an attribute, or has a value that training did not.
    """
    columns = []
    for name, known in values.items():
        column = corpus.attribute(name)
        strange = np.setdiff1d(column, known)
        if strange.size:
            requirement = f"of values in the training texts, {known.tolist()}"
            raise about(invalid(f"attribute {name!r}", requirement, strange[0]), "attribute")
        columns.append(np.searchsorted(known, column))
    return np.stack(columns, axis=1).astype(np.int64)


def make_layers(width: int, outputs: int, layers: int = 2) -> Any:
    """Make layers of `_HIDDEN_UNITS` rectified units between vectors and scores."""
    widths = [width, *[_HIDDEN_UNITS] * layers]
    hidden = [
        part
        for before, after in pairwise(widths)
        for part in (torch.nn.Linear(before, after), torch.nn.ReLU())
    ]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(widths[-1], outputs))


class Discriminator(torch.nn.Module):
    """Reads attributes from vectors: two hidden layers, with scores for the values of each.

    Args:
        width: entries of a vector.
        sizes: values of each attribute.
    """

    def __init__(self, width: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.width, self.sizes = width, tuple(sizes)
        self.layers = make_layers(width, sum(sizes))

    def forward(self, rows: Any) -> tuple[Any, ...]:
        """Compute scores of shape `(n, values)`, one tensor for each attribute."""
        found: tuple[Any, ...] = self.layers(rows).split(self.sizes, dim=1)
        return found

    def loss(self, rows: Any, targets: Sequence[Any]) -> Any:
        """Compute the cross entropy, averaged over texts and attributes.

        Args:
            rows: shape `(n, width)`.
            targets: for each attribute codes of shape `(n,)` or shares of shape `(n, values)`.
        """
        pairs = zip(self(rows), targets, strict=True)
        losses = [torch.nn.functional.cross_entropy(*pair) for pair in pairs]
        return torch.stack(losses).mean()

    def codes(self, rows: Any) -> Any:
        """Return the code of the likeliest value of each attribute, shape `(n, attributes)`."""
        return torch.stack([scores.argmax(dim=1) for scores in self(rows)], dim=1)


def descend(optimiser: Any, loss: Any) -> None:
    """Take one step down a loss."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
