"""`--text` and `--text-prime`: mechanisms that take texts."""

import pytest

CODE = """
import numpy as np

class Lengths:
    claim = 1.0
    def clean(self, text):
        return np.array([float(len(text.split()))])
    def loss(self, pair, delta):
        return float(abs(self.clean(pair.x) - self.clean(pair.x_prime))[0] / 2.0)
    def __call__(self, text, size, rng):
        return self.clean(text) + rng.laplace(scale=2.0, size=(size, 1))

class Maker:
    def as_mechanism(self):
        return Lengths()

class Breaking:
    def as_mechanism(self):
        raise ValueError("no weights")

def rewrite(text, size, rng):
    words = text.split()
    return [words[int(rng.integers(len(words)))] for _ in range(size)]

lengths, maker, breaking = Lengths(), Maker(), Breaking()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "texts.py"
    path.write_text(CODE)
    return str(path)


@pytest.mark.parametrize("name", ["lengths", "maker"])
def test_two_texts_are_the_pair(run, file, name):
    words = ("--text", "a good long film", "--text-prime", "a film", "--trials", "2e4")
    status, out, err = run("audit --seed 1", f"{file}:{name}", *words)
    assert (status, err) == (0, "")
    assert "x = 'a good long film', x' = 'a film'" in out
    assert "exact loss   1.0000 for this pair" in out
    status, out, _ = run("audit --seed 1 --claim .5", f"{file}:{name}", *words)
    assert status == 1


def test_a_rewriter_of_texts_is_audited(run, file):
    words = ("--text", "a good film", "--text-prime", "a film", "--trials", "2e4", "--claim", "1")
    status, out, err = run("audit --seed 1", f"{file}:rewrite", *words)
    assert (status, err) == (1, "")
    assert "verdict      refuted" in out


def test_a_maker_that_fails_is_the_users(run, file):
    status, _, err = run("audit", f"{file}:breaking", "--text", "a", "--text-prime", "b")
    assert status == 3
    assert "no weights" in err
