"""Rows that belong together: groups stay together, and one row of each is counted.

Soundness is tested on claims that are true: at a stated confidence of 80 %, so that a fault shows
in few audits, the number of refuted claims may exceed 20 % by chance with probability 1e-6.
"""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import stats

from dpcore.bounds import clopper_pearson
from dpcore.cli import main
from dpcore.errors import AssumptionWarning
from dpcore.recorded.run import audit_outputs
from dpcore.records import Counts

AUDITS = 100
MOST = int(stats.binom.isf(1e-6, AUDITS, 0.2))


def shared_runs(rng, runs=20, size=2000):
    """Return records of runs that share their noise, and the number of their run."""
    groups = np.repeat(np.arange(runs), size // runs)
    return 3.0 * rng.normal(size=runs)[groups] + rng.normal(size=size), groups


def above_median(outputs, outputs_prime, pair):
    """Choose the half line on the side of the larger mean."""
    middle = np.median(np.concatenate([outputs, outputs_prime]))
    if outputs.mean() > outputs_prime.mean():
        return lambda rows: rows > middle
    return lambda rows: rows < middle


def audit(*sides, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_outputs(*sides, **{"rows": "independent", "claim": 0.1, **settings})


def test_true_claims_about_runs_that_share_their_noise():
    """The control: with rows for runs almost every claim is refuted."""
    refuted = overclaims = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng([seed, 29])
        (x, groups), (x_prime, groups_prime) = (shared_runs(rng) for _ in range(2))
        settings = {"attack": above_median, "claim": 0.0, "confidence": 0.8, "rng": seed}
        given = {"groups": groups, "groups_prime": groups_prime + 20}
        found = audit(x, x_prime, **given, **settings)
        assert found.doubts == ()
        refuted += found.refuted
        overclaims += audit(x, x_prime, arranged=True, **settings).refuted
    assert refuted <= MOST
    assert overclaims > AUDITS / 2 > MOST


def test_a_leak_between_runs_is_refuted():
    rng = np.random.default_rng(1)
    (x, groups), (x_prime, groups_prime) = (shared_runs(rng, 200) for _ in range(2))
    found = audit(x, x_prime + 15.0, groups=groups, groups_prime=groups_prime + 200, rng=1)
    assert found.refuted
    assert (found.counts.n, found.counts.n_prime) == (100, 100)


def test_groups_stay_together_and_one_row_of_each_is_counted():
    seen, counted = [], []

    def attack(outputs, outputs_prime, pair):
        seen.extend([outputs, outputs_prime])

        def event(rows):
            counted.append(rows)
            return rows > 0

        return event

    sizes = np.random.default_rng(3).integers(1, 9, size=40)
    groups = np.random.default_rng(4).permutation(np.repeat(np.arange(40), sizes))
    side = np.arange(groups.size)
    other = side + 1000
    found = audit(side + 0.5, other + 0.5, groups=groups, groups_prime=groups + 40, attack=attack,
                  arranged=True, rng=5)  # fmt: skip
    for number, first in enumerate((0, 1000)):
        pilot = groups[seen[number].astype(int) - first]
        rows = next(one for one in counted if len(one) == 20 and one[0] // 1000 == first // 1000)
        kept = groups[rows.astype(int) - first]
        assert np.unique(kept).size == kept.size == 20
        assert not set(kept) & set(pilot)
        # All rows of a group that chooses do.
        assert len(pilot) == np.isin(groups, pilot).sum()
    assert found.counts.n == found.counts.n_prime == 20
    again = audit(side + 0.5, other + 0.5, groups=groups, groups_prime=groups + 40, attack=attack,
                  arranged=True, rng=5)  # fmt: skip
    assert again.evidence == found.evidence


def test_groups_of_one_row_change_nothing():
    noise = np.random.default_rng(2).laplace(size=(2, 1000))
    one = audit(noise[0], 1.0 + noise[1], rng=7)
    groups = np.arange(1000)
    other = audit(noise[0], 1.0 + noise[1], groups=groups, groups_prime=groups + 1000, rng=7)
    assert (one.evidence, one.direction, one.pilot) == (
        other.evidence,
        other.direction,
        other.pilot,
    )


def test_the_report_of_groups():
    rng = np.random.default_rng(1)
    (x, groups), (x_prime, _) = (shared_runs(rng) for _ in range(2))
    few = [("x_prime", one) for one in groups // 2]
    found = audit(x, x_prime, groups=groups, groups_prime=few, claim=1.0, rng=1)
    assert found.groups == (20, 10)
    either = Counts(5, 5, 0, 10), Counts(10, 10, 0, 5)
    assert found.ceiling == max(map(clopper_pearson, either))
    assert found.ceiling > found.epsilon_lower
    for shown in (str(found), found.to_html()):
        assert "20 groups on x and 10 on x" in shown
        reach = f"10 and 5 counted groups certify at most epsilon >= {found.ceiling:.4f}"
        assert reach in shown.replace("&gt;", ">")
        assert "too few to refute the claim" in shown
    record = json.loads(found.to_json())
    assert (record["groups"], record["derived"]["ceiling"]) == ([20, 10], found.ceiling)
    assert type(found).from_json(found.to_json()) == found
    del record["groups"]
    assert type(found).from_dict(record).groups is None


# Columns of files and frames.


def write_runs(folder, name, first, seed):
    values, groups = shared_runs(np.random.default_rng(seed))
    lines = [f"{value},run {first + group}" for value, group in zip(values, groups, strict=True)]
    (folder / name).write_text("\n".join(["value,run", *lines]))
    return folder / name, values, [f"run {first + group}" for group in groups]


def test_groups_are_a_column_of_files(tmp_path):
    x, values, groups = write_runs(tmp_path, "x.csv", 0, 1)
    x_prime, values_prime, groups_prime = write_runs(tmp_path, "x_prime.csv", 20, 2)
    wanted = audit(values, values_prime, groups=groups, groups_prime=groups_prime, rng=1)
    # One column is left.
    assert audit(x, x_prime, groups="run", rng=1).evidence == wanted.evidence
    assert audit(x, x_prime, groups=1, column="value", rng=1).evidence == wanted.evidence
    with pytest.raises(ValueError, match="groups must be one of 'value', 'run' in"):
        audit(x, x_prime, groups="day", column="value")
    with pytest.raises(ValueError, match="groups must be an integer from 0 to 1, got 2"):
        audit(x, x_prime, groups=2, column="value")
    found = audit(x, x_prime, groups="run", groups_prime="run", column="*", rng=1)
    assert (found.evidence, found.groups) == (wanted.evidence, (20, 20))


def test_groups_of_both_sides_with_labels(tmp_path):
    _, values, groups = write_runs(tmp_path, "x.csv", 0, 1)
    _, values_prime, groups_prime = write_runs(tmp_path, "x_prime.csv", 20, 2)
    wanted = audit(values, values_prime, groups=groups, groups_prime=groups_prime, rng=1)
    every, runs = np.concatenate([values, values_prime]), groups + groups_prime
    on = np.repeat([1, 0], 2000)
    lines = [f"{a},{b},{c},0.5" for a, b, c in zip(runs, on, every.tolist(), strict=True)]
    (tmp_path / "both.csv").write_text("\n".join(["run,on,value,seconds", *lines]))
    settings = {"label": "on", "groups": "run", "column": "value", "rng": 1}
    assert audit(tmp_path / "both.csv", **settings).evidence == wanted.evidence
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(tmp_path / "both.csv")
    assert audit(frame, **settings).evidence == wanted.evidence
    assert audit(every, label=on, groups=runs, rng=1).evidence == wanted.evidence
    assert audit(frame["value"], label=on, groups=frame["run"], rng=1).evidence == wanted.evidence
    matrix = np.stack([every, np.repeat(np.arange(40), 100), on], axis=1)
    assert audit(matrix, label=2, groups=1, rng=1).groups == (20, 20)
    turned = frame["run"].sort_values()
    with pytest.raises(ValueError, match="groups must be groups with the index of outputs"):
        audit(frame["value"], label=on, groups=turned)


def test_groups_on_the_command_line(tmp_path, capsys):
    x, *_ = write_runs(tmp_path, "x.csv", 0, 1)
    x_prime, *_ = write_runs(tmp_path, "x_prime.csv", 20, 2)
    command = ["audit-outputs", str(x), str(x_prime), "--rows", "independent", "--claim", "1"]
    assert main([*command, "--column", "value", "--seed", "1"]) == 3
    assert "groups= (which rows belong together)" in capsys.readouterr().err
    assert main([*command, "--groups", "run", "--seed", "1"]) == 0
    assert "20 groups on x and 20 on x'" in capsys.readouterr().out
    assert main([*command, "--groups", "day", "--seed", "1"]) == 2
    assert "--groups must be one of 'value', 'run' in x.csv, got 'day'" in capsys.readouterr().err
