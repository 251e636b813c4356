"""The experiment on word2vec: the start leaks, anchors make up for it, nothing else does."""

from __future__ import annotations

import pytest
from shared_extras import needs

from dpcore.cli.app import main
from dpcore.experiments import word2vec_leakage
from dpcore.experiments.word2vec_leakage import Config
from dpcore.experiments.word2vec_leakage.experiment import is_reproduced
from dpcore.text import generated

needs("gensim")
SMALL = {"trials": 6000, "seeds": 2, "anchors": (10, 200, 1000), "epsilons": (50, 1)}


def run(**fields):
    return word2vec_leakage.run(Config(**fields), progress=False)


@pytest.fixture(scope="module")
def result():
    """Two runs on few made-up sentences."""
    return run(**SMALL)


def test_the_start_leaks_and_anchors_make_up_for_it(result):
    assert result.config.anchors == (0, 10, 200, 1000)
    # There are no thousand common words.
    assert (result.anchors, result.anchored) == ((0, 10, 200), 200)
    for halves in ("disjoint", "overlapping"):
        hashed, other = (result.found(s, 0, halves=halves) for s in ("hashed", "other"))
        for mine, control in zip(hashed, other, strict=True):
            # Ten seeds: .11 to .34 with the start, at most .01 without; a guess finds .003.
            assert control.share(1).value < 0.03 < mine.share(1).value
        for start in word2vec_leakage.experiment.STARTS:
            for one in result.found(start, 200, halves=halves):
                assert one.share(1).low > 0.1


def test_the_same_words_for_every_start_and_number_of_anchors(result):
    for halves in ("disjoint", "overlapping"):
        for number in (0, 1):
            kind = halves, number, True
            cells = [c for c in result.cells if (c.halves, c.number, c.held_out) == kind]
            assert len({(cell.found.words, cell.found.vocabulary) for cell in cells}) == 1


def test_the_start_stands_out_without_what_all_vectors_share(result):
    assert result.mean("hashed", 0, dropped=3) > result.mean("hashed", 0)
    assert result.mean("other", 0, dropped=3) < 0.05


def test_noise_has_its_true_epsilon(result):
    for level in (1.0, 50.0):
        for one in result.found("hashed", 0, epsilon=level, centred=True):
            assert one.true == pytest.approx(100 * level)
    hidden, clear = (result.mean("hashed", 0, epsilon=e, centred=True) for e in (1.0, 50.0))
    assert hidden < 0.05 < clear
    # Whoever does not undo the shift finds less: a naive figure says nothing.
    assert result.mean("hashed", 0, epsilon=50.0) < clear


def test_the_record_the_table_and_the_picture(result):
    record = result.to_dict()
    assert len(record["cells"]) == len(result.cells)
    cell = next(c for c in record["cells"] if c["claimed"] == 50.0)
    assert (cell["true"], set(cell["top"])) == (5000.0, {"1", "5"})
    text = result.table()
    assert "made-up sentences: give --data" in text
    assert "single" not in text
    assert "mean and spread of 2 seeds" in text
    assert max(map(len, text.splitlines())) < 160
    left, right = result.plot().axes
    assert "anchors" in left.get_xlabel()
    assert [label.get_text() for label in left.get_xticklabels()] == ["none", "10", "200"]
    assert "claimed epsilon" in right.get_xlabel()
    assert "made-up sentences" in result.plot().get_suptitle()


def test_a_run_repeats_and_one_of_two_is_the_first(result):
    one = run(**{**SMALL, "seeds": 1})
    assert one.cells == tuple(cell for cell in result.cells if cell.number == 0)
    assert "+-" not in one.table()


def test_smaller_sizes_and_ones_own_file(tmp_path):
    file = tmp_path / "mine.txt"
    texts = generated("topics", 2000, rng=1).texts
    file.write_text("\n".join(texts), encoding="utf-8")
    result = run(**{**SMALL, "data": file, "full": True, "seeds": 1})
    assert {cell.size for cell in result.cells} == {1.0, 0.5, 0.25}
    text = result.table()
    assert "mine.txt, read as lines" in text
    assert text.splitlines()[-1].split()[:2] == ["25", "%"]
    assert result.mean("hashed", 0, size=0.25, dropped=3) > result.mean("hashed", 0, size=0.25)
    assert Config(full=True).seeds == 10


def test_without_anchors_only():
    result = run(trials=1000, seeds=1, anchors=(0,), epsilons=(5,))
    assert (result.anchors, result.anchored) == ((0,), 0)
    assert "hashed, 0" in result.table()
    assert result.plot().axes


def test_what_counts_as_reproduced(result):
    found = result.found("hashed", 0)
    share = found[0].share(1).value
    assert is_reproduced(found, 1, f"{share:.3f}".removeprefix("0"))
    assert not is_reproduced(found, 1, ".999")
    other = result.found("other", 0)
    assert is_reproduced(other, 1, ".000") == any(one.share(1).low < 0.0005 for one in other)


def test_data_that_are_not_there(tmp_path, capsys):
    (tmp_path / "few.txt").write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^data must be a corpus of at least 1,000 texts"):
        run(data=tmp_path / "few.txt")
    words = ["reproduce", "word2vec-leakage", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert main([*words, "--no-progress"]) == 2
    assert "Tatoeba" in " ".join(capsys.readouterr().err.split())
