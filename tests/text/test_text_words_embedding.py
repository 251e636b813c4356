"""Vectors of words from files: three formats, limits, and what is wrong with a file."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from dpcore.text.words import Embedding

GLOVE = "the 3 4\n, 0.5 -1\n. . . 1e-1 2\ncaf\u00e9 1 1\n"
WORDS = ("the", ",", ". . .", "caf\u00e9")
ROWS = [[3.0, 4.0], [0.5, -1.0], [0.1, 2.0], [1.0, 1.0]]


@pytest.fixture
def write(tmp_path):
    def put(text, name="vectors.txt"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return put


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (GLOVE, "vectors.txt"),
        (GLOVE.replace("\n", " \r\n"), "vectors.txt"),
        ("4 2\n" + GLOVE, "vectors.vec"),
        (GLOVE.rstrip("\n"), "glove"),
        (
            'var v={\n"the":[3,4],\n",":[0.5,-1],\n". . .":[0.1,2],\n"caf\u00e9":[1,1],\n};',
            "small.js",
        ),
    ],
)
def test_every_format_gives_the_words_in_their_order(write, text, name):
    found = Embedding.load(write(text, name))
    assert (found.words, found.vectors.tolist(), found.origin) == (WORDS, ROWS, name)
    first = Embedding.load(write(text, name), limit=2)
    assert (first.words, first.vectors.tolist()) == (WORDS[:2], ROWS[:2])
    assert Embedding.load(write(text, name), limit=9) == found
    unit = Embedding.load(write(text, name), normalise=True)
    np.testing.assert_allclose(np.linalg.norm(unit.vectors, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(unit["the"], [0.6, 0.8], rtol=1e-15)
    assert unit.sha256 != found.sha256 == Embedding(WORDS, ROWS).sha256
    content = "\n".join(WORDS).encode() + np.array(ROWS, "<f8").tobytes()
    assert found.sha256 == hashlib.sha256(content).hexdigest()


def test_normalising_survives_entries_whose_squares_do_not(write):
    found = Embedding.load(write("a 3e300 4e300\nb 5e-300 0\n"), normalise=True)
    np.testing.assert_allclose(found.vectors, [[0.6, 0.8], [1.0, 0.0]], rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 3 4\na 5 6\n", r"line 3 of vectors.txt must be a word that occurs once"),
        ("a 1 2\nb nan 4\n", r"line 2 .* a word and 2 finite numbers, got 'b nan 4'"),
        ("a 1 2\nb 3 inf\n", r"line 2 .* a word and 2 finite numbers"),
        ("a 1 2\nb 3\n", r"line 2 .* a word and 2 finite numbers, got 'b 3'"),
        ("a 1 2\n\nb 3 4\n", r"line 2 .* a word and 2 finite numbers, got ''"),
        ("a 1 2\nb 3 x\n", r"line 2 .* a word and 2 finite numbers"),
        ("3 2\na 1 2\nb 3 4\n", r"line 3 .* the last of a file with 3 words, got '2 words'"),
        ("1 2\na 1 2\nb 3 4\n", r"line 3 .* no more: 1 words are stated, got 'b 3 4'"),
        ("3 2\na 1 2\nb 3", r"line 3 .* a word and 2 finite numbers"),
        ("", r"line 1 of vectors.txt must be the last of a file with words, got '0 words'"),
        ("word\n", r"line 1 .* a word and 0 finite numbers"),
        (b"a 1 2\n\xff 1 2\n", r"line 2 of vectors.txt must be text in UTF-8"),
        ("a 1 2\nb 0 0\n", r"vector of 'b' in vectors.txt must be a vector that is not zero"),
        ("a 1 2\nb 3 4\nc 1 2\n", r"another for each word, got \"one for 'a' and 'c'\""),
    ],
)
def test_what_is_wrong_with_a_file_is_named(write, text, message):
    with pytest.raises(ValueError, match=message):
        Embedding.load(write(text))


def test_two_words_may_have_one_direction_until_it_is_normalised(write):
    file = write("a 1 2\nb 2 4\n")
    assert len(Embedding.load(file)) == 2
    with pytest.raises(ValueError, match="one for 'a' and 'b'"):
        Embedding.load(file, normalise=True)


def test_lines_beyond_the_limit_are_not_read(write):
    assert Embedding.load(write(b"a 1 2\nb 3 4\n\xff\n"), limit=2).words == ("a", "b")
    with pytest.raises(ValueError, match="limit must be"):
        Embedding.load(write(GLOVE), limit=0)
    with pytest.raises(FileNotFoundError, match="path must be a text file of word vectors"):
        Embedding.load("no-such-file.txt")
    with pytest.raises(TypeError, match="normalise must be True or False"):
        Embedding.load(write(GLOVE), normalise=1)
