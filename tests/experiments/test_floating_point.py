"""The experiment on floating point: every row is there, whatever is installed."""

from __future__ import annotations

import importlib
import json
import math
import sys

import pytest
from shared_extras import needs

from dpcore.events import Never
from dpcore.experiments import floating_point
from dpcore.experiments.floating_point import EPSILON, GAUSSIAN, SCALE, SYSTEMS, Config, run

OURS = tuple(system.name for system in SYSTEMS if system.package in ("", "numpy"))


@pytest.fixture(scope="module")
def result():
    return run(Config(trials=50_000, systems=OURS), progress=False)


def test_what_is_bare_is_refuted_and_what_is_protected_is_not(result):
    assert [row.system.name for row in result.rows] == list(OURS)
    for row in result.rows:
        assert row.found is row.system.lattice
        if row.system.lattice:
            assert row.audit.epsilon_lower > 5.0
            assert min(row.audit.counts.k, row.audit.counts.k_prime) == 0
        else:
            assert row.audit.epsilon_lower == 0.0
            assert type(row.audit.event) is Never
    assert not result.partial


def test_one_seed_gives_one_result(result):
    assert run(Config(trials=50_000, systems=OURS[3:5]), progress=False).rows == result.rows[3:5]


def test_the_table_shows_counts_and_events(result):
    text = result.table()
    assert "no multiple of 2^-5" in text
    assert text.count("none: the pilot shows no trace") == 2
    for row in result.rows:
        assert f"{row.audit.counts.k:,}" in text
    assert "operating system" not in text


def test_the_record_and_the_picture_have_each_system(result):
    rows = result.to_dict()["rows"]
    assert [row["system"] for row in rows] == list(OURS)
    assert rows[0]["audit"]["counts"]["n"] == 50_000
    axes = result.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(OURS)[::-1]
    widths = [patch.get_width() for patch in axes.patches]
    assert widths == [row.audit.epsilon_lower for row in reversed(result.rows)]


def test_a_missing_package_has_a_row(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    real = floating_point.metadata.version

    def version(name):
        if name in ("torch", "opendp"):
            raise floating_point.metadata.PackageNotFoundError(name)
        return "0.6.6" if name == "diffprivlib" else real(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    monkeypatch.setattr(floating_point.metadata, "version", version)
    monkeypatch.delitem(sys.modules, "diffprivlib.mechanisms", raising=False)
    missing = "torch Laplace float32", "diffprivlib Laplace", "OpenDP make_laplace"
    names = (*missing, "dpcore.Laplace")
    found = run(Config(trials=5000, systems=names), progress=False)
    assert [row.system.name for row in found.rows] == list(names)
    assert [row.found is None for row in found.rows] == [True, True, True, False]
    assert found.rows[0].missing == "not installed"
    assert found.rows[1].missing.startswith("cannot be imported: No module named")
    text = found.table()
    assert (text.count("not installed"), text.count("cannot be imported")) == (4, 2)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rows"][0]["audit"] is None
    assert found.plot().axes[0].texts[-1].get_text() == "not installed"


@pytest.mark.extras
def test_libraries_of_single_calls_get_fewer_trials():
    shares = {system.name: system.share for system in SYSTEMS}
    assert (shares["numpy Generator.laplace"], shares["diffprivlib Laplace"]) == (1, 10)
    system = next(system for system in SYSTEMS if system.share == 10)
    needs(system.package)
    found = run(Config(trials=20_000, systems=(system.name,)), progress=False)
    assert found.rows[0].audit.counts.n == 2000
    assert "the seed does not repeat its counts" in found.table()


def test_the_claims_are_true_of_real_numbers():
    # Laplace noise: sensitivity over scale. Gaussian noise: the closed form of its delta.
    from scipy.special import ndtr

    assert pytest.approx(1.0 / SCALE) == EPSILON
    epsilon, delta = GAUSSIAN
    shift, half = epsilon * SCALE, 0.5 / SCALE
    exact = ndtr(half - shift) - math.exp(epsilon) * ndtr(-half - shift)
    assert 0.0 < exact < delta
