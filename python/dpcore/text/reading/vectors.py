"""Vectors of words, from the files of others."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .files import opened

__all__ = ["word_vectors"]

_ORIGIN = "word2vec-JSON (MIT)"


def word_vectors(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[np.float64]]:
    r"""Read words and their vectors from a JavaScript file with a word a line.

    Args:
        path: a file such as wordvecs1000.js: `var NAME={`, lines of a word in quotes, a colon, a
            list of numbers and a comma, and `};`.

    Returns:
        Word -> vector, all of one length, in the order of the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is none of these, a word comes twice, lengths differ, or an entry is
            not finite; the message names file and line.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     file = Path(name, "small.js")
        ...     _ = file.write_text('var words={\n"in":[0.5,1],\n"on":[0,-1],\n};')
        ...     word_vectors(file)
        {'in': array([0.5, 1. ]), 'on': array([ 0., -1.])}
    """
    file = opened(Path(path), _ORIGIN)
    found: dict[str, npt.NDArray[np.float64]] = {}
    width = None
    for number, line in file.filled():
        stripped = line.strip()
        if not found and re.fullmatch(r"(var|let|const)\s+\w+\s*=\s*\{", stripped):
            continue
        if found and stripped in ("}", "};"):
            break
        match = re.fullmatch(r'("(?:[^"\\]|\\.)*")\s*:\s*(\[[^\]]*\])\s*,?', stripped)
        try:
            word, values = (json.loads(part) for part in match.groups()) if match else (None, None)
            vector = np.array(values)
        except ValueError:
            word, vector = None, np.empty(0)
        plain = vector.ndim == 1 and vector.dtype.kind in "if"
        if word is None or not plain or not np.isfinite(vector).all():
            raise file.error(number, 'a line such as "word":[0.5,1.0],', line)
        if word in found or vector.size != (width or vector.size):
            requirement = f"a new word with a vector of {width} numbers"
            raise file.error(number, requirement, f"{word!r} with {vector.size}")
        found[word], width = vector.astype(np.float64), vector.size
    else:
        raise file.error(number if found else 1, "followed by the end };", "no more lines")
    return found
