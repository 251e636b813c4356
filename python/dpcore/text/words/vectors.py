"""Vectors of words, from the files of others."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..reading.files import File, missing_file, opened

__all__ = ["text_vectors", "word_vectors"]

Vectors = dict[str, npt.NDArray[np.float64]]

_VECTOR_FORMAT = "word2vec-JSON (MIT)"


def word_vectors(path: str | os.PathLike[str]) -> Vectors:
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
    file = opened(Path(path), _VECTOR_FORMAT)
    found: Vectors = {}
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


def text_vectors(path: Path, limit: int | None = None) -> Vectors:
    """Read words and their vectors from a text file of GloVe or word2vec, a word a line.

    The file is read no further than `limit` words.

    Args:
        path: lines of a word and its numbers, separated by blanks; a first line of two whole
            numbers (word2vec) is the number of words and the length of a vector.
        limit: words to read at most.

    Returns:
        Word -> vector, all of one length, in the order of the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not a word with as many finite numbers as the first has, a word is
            repeated, or the file has another number of words than it states; the message names file
            and line.
    """
    if not path.is_file():
        raise missing_file(path, "a text file of word vectors")
    found: Vectors = {}
    file, stated, width, number = File(path.name, "", b""), None, None, 0
    with path.open("rb") as lines:
        for number, content in enumerate(lines, 1):
            if len(found) == limit:
                break
            line = file.decoded(number, content.rstrip(b"\r\n "))
            if number == 1 and re.fullmatch(r"\d+ \d+", line):
                stated, width = map(int, line.split())
                continue
            if len(found) == stated:
                raise file.error(number, f"no more: {stated:,} words are stated", line)
            width = width or line.count(" ")
            word, vector = _word_and_vector(line, width)
            if vector is None:
                raise file.error(number, f"a word and {width} finite numbers", line)
            if word in found:
                raise file.error(number, "a word that occurs once", word)
            found[word] = vector
    if not found or len(found) < min(stated or 0, limit or len(found) + 1):
        requirement = "the last of a file with " + (f"{stated:,} words" if stated else "words")
        raise file.error(number or 1, requirement, f"{len(found):,} words")
    return found


def _word_and_vector(line: str, width: int) -> tuple[str, npt.NDArray[np.float64] | None]:
    """Return the word of a line and its vector; the vector is None if it is not valid."""
    # Some words of GloVe hold blanks: the numbers are counted from the end.
    word, *numbers = line.rsplit(" ", width) if width else [""]
    try:
        vector = np.array(numbers, np.float64)
    except ValueError:
        return word, None
    is_sound = bool(word.strip()) and vector.size == width and np.isfinite(vector).all()
    return word, vector if is_sound else None
