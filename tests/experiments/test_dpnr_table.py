"""DPNR's table: shared noise hides nothing, the claims are refuted, figures agree with parts."""

from __future__ import annotations

import math

import pytest
from shared_extras import data, needs

from dpcore.experiments import dpnr_table, get
from dpcore.experiments.dpnr_table.attacks import BASELINES, Remembered, list_systems, micro_f1

torch = needs("torch", "sklearn")

LEVELS = (0.05, 5.0, 50.0)


def run(**fields):
    return dpnr_table.run(dpnr_table.Config(**fields), progress=False)


@pytest.fixture(scope="module")
def result():
    """Few made-up texts and few attackers."""
    return run(trials=20_000, quick=True, levels=LEVELS)


def row(result, system, claim=None):
    return next(r for r in result.rows if (r.case.system, r.case.claim) == (system, claim))


@pytest.mark.sweep
def test_shared_noise_hides_nothing_and_independent_noise_all_or_little(result):
    clean = row(result, "no noise").f1[0]
    assert clean > 0.8
    for level in LEVELS:
        # The same rows but for a rounding, in a subtraction's reach.
        assert row(result, "shared", level).f1[0] > clean - 0.05
    floor = result.rows[0].runs[0].chosen.floors[0].f1
    assert row(result, "iid", 0.05).f1[0] < floor + 0.1
    assert row(result, "iid", 50.0).f1[0] > floor + 0.2
    assert row(result, "sound", 50.0).f1[0] < floor + 0.1
    assert row(result, "no noise").runs[0].main > 0.8


@pytest.mark.sweep
def test_three_epsilons_stand_apart(result):
    for level in LEVELS:
        assert row(result, "iid", level).runs[0].true == pytest.approx(64 * level)
        assert row(result, "shared", level).runs[0].loss == math.inf
    losses = [row(result, "iid", level).runs[0].loss / level for level in LEVELS]
    assert losses == pytest.approx([losses[0]] * 3)
    assert 1.0 < losses[0] < 64.0
    assert row(result, "sound", 50.0).runs[0].true == pytest.approx(50.0)
    assert row(result, "sound", 50.0).runs[0].loss == pytest.approx(50.0 * losses[0] / 64)
    assert row(result, "no noise").runs[0].true == math.inf


@pytest.mark.sweep
def test_claims_on_the_largest_pair(result):
    verdicts = {(one.claim.system, one.claim.claim): one for one in result.claims}
    assert len(verdicts) == 9
    for level in (0.1, 1.0, 5.0):
        assert verdicts["shared", level].refuted
        assert "rank" in verdicts["shared", level].flags
        assert verdicts["iid", level].refuted
        assert not verdicts["sound", level].refuted
        for system in ("iid", "sound"):
            one = verdicts[system, level]
            assert one.flags == ()
            assert one.certified <= one.exact <= one.true


@pytest.mark.sweep
def test_figures_agree_with_their_parts(result):
    found = result.rows[1].runs[0]
    group = found.group
    assert (group.attribute, group.value) == ("parent", 1)
    others = found.chosen.sizes[2] - group.texts
    right = group.texts * group.main.value + others * (group.main.value - group.gap.value)
    assert found.refit_accuracy == pytest.approx(right / found.chosen.sizes[2])
    naive = [one.f1 for one in found.naive]
    assert result.rows[1].naive() == (min(naive), max(naive))
    assert result.facts.unseen == found.chosen.sizes[2]
    assert found.alone.certified.claim == result.rows[1].case.claim
    assert found.certified == found.alone.certified.epsilon_lower


@pytest.mark.sweep
def test_record_table_and_picture(result):
    record = result.to_dict()
    assert len(record["rows"]) == len(result.rows) == 2 + 2 * len(LEVELS)
    assert len(record["claims"]) == 9
    shared = next(one for one in record["rows"] if one["system"] == "shared")
    assert shared["runs"][0]["true"] == shared["runs"][0]["loss_of_largest_pair"] == "inf"
    assert record["texts"]["made_up"] is True
    text = result.table()
    assert "TEXTS THAT WERE MADE UP" in text
    assert "Beside the paper" not in text
    assert "computed from the declared noise, not certified" in text
    assert "empirical privacy, no guarantee" in text
    figure = result.plot()
    assert "made-up texts" in figure.get_suptitle()
    assert [axes.get_xlabel() for axes in figure.axes] == ["claimed epsilon"] * 2


@pytest.mark.sweep
def test_seeds_baselines_and_a_part_repeats_the_whole(monkeypatch, result):
    # A baseline and one system, twice: what the whole list takes minutes for.
    listed = list_systems(("TF-IDF",), LEVELS, (1.0,))
    kept = [one for one in listed if one.system == "Declustering"]
    kept += [row(result, "shared", 5.0).case]
    monkeypatch.setattr(dpnr_table.Config, "cases", property(lambda config: tuple(kept)))
    part = run(trials=2000, quick=True, levels=LEVELS, claims=(1.0,), seeds=2)
    assert [len(one.runs) for one in part.rows] == [2, 2]
    assert row(part, "shared", 5.0).runs[0] == row(result, "shared", 5.0).runs[0]
    assert len({one.seed for one in row(part, "shared", 5.0).runs}) == 2
    assert "+-" in part.table()
    assert "mean +- spread of 2 seeds" in part.table()
    base = part.rows[0].runs[0]
    assert (base.true, base.loss, base.alone.certified.claim) == (None, None, None)
    assert 0.0 <= base.discriminator <= 1.0
    assert "its own opponent" in part.table()
    part.plot()


def test_the_list_of_systems():
    config = get("dpnr-table").Config()
    systems = [case.system for case in config.cases]
    assert systems[:2] == ["no noise", "shared"]
    assert [case.claim for case in config.cases if case.system == "iid"] == [0.05, 1.0, 5.0, 50.0]
    assert set(BASELINES) < set(systems)
    assert [case.strength for case in config.cases].count(0.0) == 1
    full = get("dpnr-table").Config(full=True)
    assert full.encoders == ("TF-IDF", "MiniLM")
    assert len({case.key for case in full.cases}) == len(full.cases)


def test_texts_are_encoded_once():
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return [[float(len(text)), 1.0] for text in texts]

    once = Remembered(encode, "lengths")
    assert once(["a", "bb", "a"]).tolist() == [[1, 1], [2, 1], [1, 1]]
    assert once(["bb", "ccc"]).tolist() == [[2, 1], [3, 1]]
    assert calls == [["a", "bb"], ["ccc"]]


def test_micro_f1():
    truth = torch.tensor([[1, 0], [1, 1]]).numpy()
    assert micro_f1(truth, truth) == 1.0
    assert micro_f1(truth, 1 - truth) == 0.0
    assert micro_f1(truth, 0 * truth) == micro_f1(0 * truth, 0 * truth) == 0.0


@pytest.mark.sweep
def test_the_authors_file(monkeypatch):
    # What is known of the texts without any training; the encoder is a small one.
    monkeypatch.setattr(dpnr_table.Config, "cases", property(lambda config: ()))
    result = run(data=data("dpnr_ag", "ag_data.txt"), quick=True, dim=8, trials=2000, claims=(1.0,))
    facts = result.facts
    assert (facts.repeated, facts.sizes[2], facts.unseen) == (477, 1457, 915)
    assert facts.always[0] == pytest.approx(0.507, abs=5e-4)
    assert facts.majority[0] == pytest.approx(0.578, abs=5e-4)
    assert "Beside the paper" in result.table()
