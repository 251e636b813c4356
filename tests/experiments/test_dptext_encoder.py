"""The experiment on DPText: faults refuted and flagged, a learnt epsilon no claim, its files."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from shared_extras import data, needs

torch = needs("torch", "sklearn")

from dpcore.experiments import dptext_encoder  # noqa: E402
from dpcore.experiments.dptext_encoder import Config  # noqa: E402
from dpcore.experiments.running import cell_seed  # noqa: E402
from dpcore.text import generated  # noqa: E402

SMALL = {"trials": 20_000, "texts": 600, "epochs": 2, "claims": (0.1, 10.0), "starts": (10.0,)}


def run(**fields):
    return dptext_encoder.run(Config(**{**SMALL, **fields}), progress=False)


@pytest.fixture(scope="module")
def result():
    """Every noise, with a cap that training passes at once."""
    return run(cap=10.0)


@pytest.mark.sweep
def test_faults_are_refuted_and_flagged_and_the_repair_neither(result):
    assert len(result.rows) == 3 * (2 + 2)
    for row in result.rows:
        (found,) = row.runs
        assert ("one_sided" in row.flags) == row.case.faulty
        assert found.certified <= found.exact
        assert found.exact == (math.inf if row.case.faulty else found.right)
        assert found.right <= found.epsilon * (1.0 + 1e-9)
        if not row.case.faulty:
            assert not row.flags
            # Every epsilon here is true of the pair: false alarms of 5 % each, by a fixed seed.
            assert not found.refuted
        elif not row.case.learn and row.case.epsilon < 1.0:
            assert found.refuted


@pytest.mark.sweep
def test_the_losses_are_those_of_the_scales(result):
    for noise in ("zero", "resample", "repaired"):
        small, large = (result.row(noise, level).runs[0] for level in ("0.1", "10"))
        assert small.epsilons == (0.1, 0.1)
        assert 0.0 < small.right < 0.1
        assert 1.0 < large.right < 10.0


@pytest.mark.sweep
def test_learnt_epsilons_stay_below_the_cap_and_have_no_claim(result):
    for noise in ("zero", "resample", "repaired"):
        capped, free = (result.row(noise, f"from 10, {cap}") for cap in ("cap 10", "no cap"))
        assert max(capped.runs[0].epsilons) <= 10.0
        assert len(free.runs[0].epsilons) == 2
        # One training but for the cap.
        assert capped.runs[0].seed == free.runs[0].seed
    assert result.row("repaired", "from 10, no cap").mean("epsilon") > 10.0
    lines = [line for line in result.table().splitlines() if "LEARNT from" in line]
    assert len(lines) == 6
    assert all("no claim; value " in line for line in lines)
    assert "no claim fixed in advance, and it covers none" in result.table()
    records = [row for row in result.to_dict()["rows"] if row["learnt"]]
    assert [row["claim"] for row in records] == [None] * 6


@pytest.mark.sweep
def test_the_floor_is_the_area_of_the_main_label_alone(result):
    corpus = generated("topics", 600, rng=cell_seed(result.config.seed, "corpus"))
    train, test = ((part.labels, part.attribute("parent")) for part in (corpus.train, corpus.test))
    share = {label: np.mean(train[1][train[0] == label]) for label in set(train[0])}
    scores, positive = np.array([share[label] for label in test[0]]), test[1] == 1
    area = mannwhitneyu(scores[positive], scores[~positive]).statistic
    area /= positive.sum() * (~positive).sum()
    assert area > 0.501
    for row in result.rows:
        assert row.runs[0].floor == pytest.approx(max(0.5, area))


@pytest.mark.sweep
def test_an_attacker_at_its_floor_is_no_evidence_where_the_task_is_lost(result):
    row = result.row("repaired", "0.1")
    assert row.useless(result.majority)
    assert not row.useless(-1.0)
    table = result.table()
    assert "*: utility at the majority. An attacker at its floor there" in table
    assert "is no evidence of privacy" in table
    (line,) = [one for one in table.splitlines() if one.startswith("repaired  fixed 0.1")]
    assert " * " in line
    assert "made-up texts" in table


@pytest.mark.sweep
def test_the_pair_in_the_record_is_of_later_texts(result):
    record = result.to_dict()
    assert (record["rows"][0]["runs"][0]["exact"], len(set(record["pair"]))) == ("inf", 2)
    assert record["rows"][0]["at_majority"] in (True, False)


@pytest.mark.sweep
def test_several_seeds_and_a_part_repeats_the_whole(result):
    part = run(cap=10.0, seeds=2, noises=("repaired",), claims=(10.0,))
    assert part.row("repaired", "10").runs[0] == result.row("repaired", "10").runs[0]
    first, second = part.row("repaired", "10").runs
    assert first.seed != second.seed
    assert "+-" in part.table()
    assert "of the first seed" in part.table()
    assert len(part.plot().axes) == 2


def test_options():
    assert [len(Config(quick=quick).cases) for quick in (False, True)] == [21, 6]
    assert (Config(full=True).seeds, Config(full=True, seeds=2).seeds) == (5, 2)
    assert (Config().attribute, Config(data="folder").attribute) == ("parent", "Bush")


@pytest.mark.sweep
def test_real_texts():
    folder = data("dpnr_ag").parent
    result = run(data=str(folder), noises=("zero",), claims=(1.0,), quick=True, epochs=1)
    assert "dpnr_ag" in result.corpus
    assert result.majority == pytest.approx(0.578, abs=0.001)
    assert [row.refuted for row in result.rows if not row.case.learn] == [1]
    assert "made-up" not in result.table()


@pytest.mark.parametrize(
    ("beaten", "auc", "shown"),
    [
        (True, (0.652, 0.501, 0.773), "above"),
        (False, (0.652, 0.501, 0.773), "not shown"),
        (False, (0.55, 0.45, 0.65), "at floor"),
    ],
)
def test_an_area_above_its_floor_is_not_at_the_floor(beaten, auc, shown):
    figures = SimpleNamespace(beaten=beaten, auc=auc, floor=0.5)
    assert dptext_encoder._compare_attack_with_floor(figures) == shown
