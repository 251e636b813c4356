"""The experiment on noise layers: faults are caught, layers without fault are not."""

from __future__ import annotations

import pytest
from shared_extras import needs

from dpcore.experiments import noise_layers
from dpcore.experiments.noise_layers import CASES

torch = needs("torch")

BEYOND = ("L2 scale, L2 clip", "MinMax, scale 1")
FLAGGED = {
    ("torch's Laplace", "float32"): {"grid"},
    ("DPTextNoise, zero", "float64"): {"one_sided", "atom", "off_centre"},
    ("DPTextNoise, resample", "float32"): {"one_sided", "off_centre"},
    ("SharedNoise", "float64"): {"rank", "correlation", "shared_size"},
}


def run(**fields):
    return noise_layers.run(noise_layers.Config(**fields), progress=False)


@pytest.fixture(scope="module")
def result():
    """Every layer, few trials."""
    return run(trials=20_000, seeds=1)


@pytest.mark.sweep
def test_faults_are_caught_and_nothing_else(result):
    assert result.agreement() == (11, 11, 0, 11)
    rows = {(row.layer, row.dtype): row for row in result.rows}
    assert len(rows) == 2 * len(CASES)
    assert not any(row.partial for row in rows.values() for row in row.audits)
    for key, flags in FLAGGED.items():
        assert set(rows[key].flags) == flags
    for name in BEYOND:
        # Nothing is wrong with the structure: only the audit tells.
        assert all(rows[name, d].beyond and not rows[name, d].flags for d in ("float32", "float64"))
    for row in result.rows:
        assert all(bound <= row.exact for bound in row.certified)
        assert row.faulty or row.exact <= result.config.epsilon


def test_repairs_do_the_same_job():
    names = {case.name: case for case in CASES}
    for case in CASES:
        assert bool(case.faulty) == bool(case.repair) == bool(case.what)
        assert not case.repair or not names[case.repair].faulty


@pytest.mark.sweep
def test_rounding_stands_apart(result):
    rows = {(row.layer, row.dtype): row for row in result.rows}
    assert rows["LaplaceNoise", "float32"].rounding == (0.0,)
    assert rows["LaplaceNoise", "float64"].rounding[0] > 3.0
    assert not rows["LaplaceNoise", "float64"].fault_found
    assert rows["torch's Laplace", "float32"].rounding[0] > 3.0


@pytest.mark.sweep
def test_seeds_give_a_spread_and_a_part_repeats_the_whole(result):
    part = run(trials=20_000, seeds=2, layers=("LaplaceNoise",))
    assert [len(row.audits) for row in part.rows] == [2] * 2
    first = {(row.layer, row.dtype): row.audits[0] for row in result.rows}
    for row in part.rows:
        assert row.audits[0] == first[row.layer, row.dtype]
        assert row.audits[0].seed != row.audits[1].seed
    assert "mean and spread of 2 seeds" in part.table()
    assert "+-" in part.table()


@pytest.mark.sweep
def test_the_record_and_the_table(result):
    record = result.to_dict()
    agreement = {"faults_caught": 11, "faults": 11, "others_caught": 0, "others": 11}
    assert record["agreement"] == agreement
    row = next(row for row in record["rows"] if row["layer"] == "SharedNoise")
    assert (row["exact"], row["repair"]) == ("inf", "MinMax, scale 32")
    assert row["certified"] == [row["mean"]]
    text = result.table()
    assert "11 of 11 faults certified beyond the claim or flagged, 0 of 11 layers" in text
    assert "a made-up encoder" in text
    assert "(1, 1e-05)" in text
    axes = result.plot().axes[0]
    assert len(axes.get_yticks()) == 22
    assert "made-up encoder" in axes.get_xlabel()
    assert sum("flagged" in text.get_text() for text in axes.texts) == 7


@pytest.mark.parametrize(("threads", "used"), [(None, 1), (3, 3)])
def test_threads_of_torch_are_set_and_put_back(threads, used, monkeypatch):
    before, seen = torch.get_num_threads(), []
    audited = noise_layers._audit_and_inspect_if_first

    def counted(*job):
        seen.append(torch.get_num_threads())
        return audited(*job)

    monkeypatch.setattr(noise_layers, "_audit_and_inspect_if_first", counted)
    config = noise_layers.Config(trials=2000, seeds=1, layers=("LaplaceNoise",))
    noise_layers.run(config, threads=threads, progress=False)
    assert set(seen) == {used}
    assert torch.get_num_threads() == before
