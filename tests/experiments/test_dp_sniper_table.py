"""The table of the benchmark, on audits that cost nothing: what is asked for, shown and flagged."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest

from dpcore.bounds import clopper_pearson
from dpcore.bounds.unconditional import berger_boos
from dpcore.experiments import dp_sniper_table as table
from dpcore.experiments import running
from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS
from dpcore.experiments.running import cell_seed
from dpcore.records import Counts


@dataclass(frozen=True)
class FakeAudit:
    """What the table reads of an audit."""

    epsilon_lower: float
    bound_counts: Counts
    seed: int
    trials: int
    confidence: float = 0.9
    partial: bool = False

    def to_dict(self):
        return {"seed": str(self.seed), "epsilon_lower": self.epsilon_lower}


class FakeAuditFunction:
    """Replacement of `audit` that records its calls and returns a share of the true epsilon."""

    def __init__(self, share=0.99, stop=None, partial=None):
        self.calls, self.share, self.stop, self.partial = [], share, stop, partial

    def __call__(self, mechanism, pair, **options):
        self.calls.append((mechanism, pair, options))
        if len(self.calls) == self.stop:
            raise KeyboardInterrupt
        known = next(b for b in BENCHMARKS.values() if b.mechanism is mechanism)
        truth = min(known.supremum, known.oracle_at_1e8 / 0.99)
        n = options["trials"]
        counts = Counts(round(0.4 * n), n, round(0.4 * n * math.exp(-truth)), n)
        bound = self.share * truth * (1 + 1e-4 * (options["rng"] % 7))
        return FakeAudit(bound, counts, options["rng"], n, partial=len(self.calls) == self.partial)


@pytest.fixture
def fake_audit(monkeypatch):
    made = FakeAuditFunction()
    monkeypatch.setattr(running, "audit", made)
    return made


def few(**fields):
    return table.Config(trials=20_000, mechanisms=("Laplace", "SVT1", "RAPPOR"), **fields)


def test_what_is_asked_of_an_audit(fake_audit):
    table.run(few(repeats=2, seed=7), threads=2)
    assert len(fake_audit.calls) == 6
    mechanism, pairs, options = fake_audit.calls[2]
    assert mechanism is BENCHMARKS["SVT1"].mechanism
    assert pairs == list(BENCHMARKS["SVT1"].pairs)
    seed = options.pop("rng")
    assert options == {
        "attack": "auto", "trials": 20_000, "claim": 0.1, "confidence": 0.9,
        "bound": "clopper_pearson", "threads": 2, "progress": False,
        "pilot": 8000, "executor": None,
    }  # fmt: skip
    assert seed == cell_seed(7, "SVT1/0")
    assert len({options.get("rng", seed) for _, _, options in fake_audit.calls}) == 6


def test_each_mechanism_has_its_own_number_of_trials(fake_audit):
    table.run(table.Config(repeats=1, mechanisms=("Laplace", "PrefixSum")))
    assert [options["trials"] for _, _, options in fake_audit.calls] == [4 * 10**8, 10**8]
    assert (set(table.TRIALS), table.Config().mechanisms) == (set(BENCHMARKS), tuple(BENCHMARKS))


def test_a_part_repeats_the_cells_of_the_whole(fake_audit):
    whole = table.run(table.Config(trials=1000, repeats=2))
    part = table.run(table.Config(trials=1000, repeats=2, mechanisms=("SVT6", "RAPPOR")))
    assert len(whole.rows) == 20
    assert set(part.rows) <= set(whole.rows)
    assert part == table.run(part.config)
    assert table.run(replace(part.config, seed=5)).rows != part.rows


def test_the_median_and_the_flags():
    def row(name, *bounds):
        counts = Counts(4000, 10_000, 3600, 10_000)
        return table.Row(name, tuple(FakeAudit(b, counts, 1, 10_000) for b in bounds), (1.0,))

    assert row("Laplace", 0.09, 0.0977, 0.0976).certified == 0.0976
    assert row("Laplace", 0.09, 0.0977).certified == 0.09
    assert row("Laplace", 0.0976).reached
    assert not row("Laplace", 0.0975).reached
    assert row("Laplace", 0.0999, 0.1, 0.1001).above == 1
    assert row("ReportNoisyMax4", 12.0).above == 0
    assert row("Laplace", 0.09).exact_bounds == ()
    assert row("Laplace", 0.09).certified_exact is None
    assert row("ReportNoisyMax3", 0.2479).reached is False
    # The unconditional bound is computed from the counts, and is flagged like the other.
    beside = row("SVT2", 0.05)
    assert beside.certified_exact == berger_boos(Counts(4000, 10_000, 3600, 10_000), 0.0, 0.9)
    assert (beside.certified, beside.above) == (0.05, 0)
    counts = Counts(4000, 10_000, 3000, 10_000)
    assert replace(beside, audits=(FakeAudit(0.05, counts, 1, 10_000),)).above == 1


def test_both_bounds_stand_side_by_side(fake_audit):
    result = table.run(few(repeats=1))
    rows = {row.name: row for row in result.rows}
    assert [name for name, row in rows.items() if row.exact_bounds] == ["SVT1"]
    line = next(line for line in result.table().splitlines() if line.startswith("SVT1"))
    assert f" {rows['SVT1'].certified:.4f}  {rows['SVT1'].certified_exact:.4f} " in line
    counts = rows["SVT1"].audits[0].bound_counts
    assert rows["SVT1"].certified_exact != clopper_pearson(counts, 0.0, 0.9)


def test_the_table_says_what_it_shows(fake_audit):
    config = table.Config(trials=10**5, repeats=3)
    sound = table.run(replace(config, mechanisms=("SVT5", "RAPPOR")))
    assert "better bound: 1 of 2 mechanisms. Above the true loss: 0 of 6" in sound.table()
    fake_audit.share = 1.02
    result = table.run(config)
    text = result.table()
    assert f"At least DP-Sniper's better bound: {result.reached} of 20 mechanisms" in text
    assert f"Above the true loss: {result.above} of 69 bounds" in text
    assert 3 <= sum(row.above > 0 for row in result.rows) < 20
    assert text.count("ABOVE THE TRUTH") == sum(row.above > 0 for row in result.rows)
    for shown in ("0.2930/0.3008*", "9.7170/10.0020*", "infinite", "0.0968/0.0976", "27,400"):
        assert shown in text

    quiet = result.table(times=False)
    assert "27,400" not in quiet
    assert "0.2930/0.3008*" in quiet


def test_the_record(fake_audit):
    record = table.run(few(repeats=2)).to_dict()

    assert record["config"]["seed"] == "2022"
    assert [row["mechanism"] for row in record["rows"]] == ["Laplace", "SVT1", "RAPPOR"]
    assert all(len(row["audits"]) == len(row["seconds"]) == 2 for row in record["rows"])
    assert (record["rows"][0]["exact_bounds"], len(record["rows"][1]["exact_bounds"])) == ([], 2)


@pytest.mark.parametrize(("ended", "kept"), [({"stop": 6}, [2, 2, 1]), ({"partial": 3}, [2, 1])])
def test_ctrl_c_keeps_what_was_done(monkeypatch, ended, kept):
    monkeypatch.setattr(running, "audit", FakeAuditFunction(**ended))
    result = table.run(few(repeats=2))
    assert (result.partial, [len(row.audits) for row in result.rows]) == (True, kept)
    assert "INTERRUPTED" in result.table()


def test_the_picture(fake_audit):
    result = table.run(table.Config(trials=1000, repeats=1))
    picture = result.plot()
    axes = picture.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(BENCHMARKS)[::-1]
    words = {text.get_text() for text in picture.axes[1].texts}
    assert {f"{row.certified:.4f}" for row in result.rows} <= words
    assert {"infinite", "0.3008*"} <= words
    # A bound far below the published one lies off the picture, which must still be drawn.
    fake_audit.share = 0.0
    picture = table.run(few(repeats=1)).plot()
    assert "0.0000" in {text.get_text() for text in picture.axes[1].texts}
    picture.canvas.draw()
