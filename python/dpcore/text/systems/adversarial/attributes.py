"""The attributes that a defence is to hide: their values, and the code of each text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import about, invalid, mistyped
from ...corpus import Corpus

__all__ = ["codes_of", "names_of", "values_of"]


def names_of(attribute: Any) -> tuple[str, ...]:
    """The names of one attribute or of several.

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
    """The sorted values of each attribute among training texts.

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
    """The places of a corpus's attributes among the training texts' values.

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
