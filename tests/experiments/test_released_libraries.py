"""The experiment on released packages: rows, embargo, processes, records and page."""

from __future__ import annotations

import datetime
import importlib.util
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dpcore.experiments.released_libraries import Config, Result, run, training_cases
from dpcore.experiments.released_libraries.cases import PACKAGES, Case, list_mechanisms
from dpcore.experiments.released_libraries.experiment import FOLDER, RECORD_FORMAT, read_records
from dpcore.experiments.released_libraries.processes import audit_package
from dpcore.experiments.released_libraries.rows import make_row, read_row

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / FOLDER / "records"
PAGE = ROOT / "docs/explain/released-libraries.md"
NEEDS_RECORDS = pytest.mark.skipif(not RECORDS.is_dir(), reason="only a checkout has the records")

CASE = Case(
    package="numpy", version="2", name="f(1)", build=dict, pair=(0.0, 1.0), claim=1.0,
    relation="numbers at distance 1", stated="a docstring", cause="a fault (file.py:1)",
)  # fmt: skip
ROW = make_row(CASE, certified=2.0, strict=(1.9, 1.8), hits=(9, 1), trials=10, date="2026-11-29")
REQUIRED = {
    "diffprivlib": ("KMeans", "LinearRegression", "histogram", "Bingham"),
    "python-dp": ("BoundedMean", "Gaussian"),
    "pure-ldp": ("RAPPOR",),
    "multi-freq-ldpy": ("RSpFD",),
    "nprr": ("4, 1.0", "16, 1.0"),
    "diffpriv-pure": ("private_count",),
    "trasgodp": ("rare category", "metric_privacy", "new seeds"),
    "ornl-presto": ("sensitivity=100", "applySVTAboveThreshold_full"),
    "eeprivacy": ("Gaussian",),
    "hll-py": ("sketch_map",),
    "opendp": ("make_canonical_noise",),
}
"""Mechanisms that the table must have, by words of their names."""


def load_script():
    """Load the script that writes records and page."""
    path = ROOT / "benches/record_released_libraries.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Cases and rows.


def test_the_table_has_the_packages_and_the_mechanisms_that_it_must_have():
    names = {
        package: [case.name for case in list_mechanisms(package, slow=True)] for package in PACKAGES
    }
    assert all(names.values()), [package for package in names if not names[package]]
    assert sum(map(len, names.values())) >= 150
    for package, words in REQUIRED.items():
        for word in words:
            assert any(word in name for name in names[package]), (package, word)
    for package, listed in names.items():
        assert len({*listed}) == len(listed), package


@pytest.mark.parametrize("package", PACKAGES)
def test_a_case_states_its_cause_and_the_place_of_its_claim(package):
    for case in list_mechanisms(package, slow=True):
        assert case.claim >= 0.0
        assert 0.0 <= case.delta < 1.0
        is_false = case.true_loss is not None and case.true_loss > case.claim * (1 + 1e-9)
        if is_false and case.reading == "claim":
            assert re.search(r"\.(py|rs|h|cc|cpp):\d", case.cause), case.name


VERDICTS = {
    "violation": {},
    "not refuted": {"strict": (1.9, 1.0)},
    "known misuse": {"reading": "known misuse"},
    "relation unclear": {"reading": "relation unclear"},
    "release unclear": {"reading": "release unclear"},
    "false by source only": {"reading": "source only", "strict": ()},
    "failed": {"failure": "not installed"},
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_verdicts(verdict):
    row = replace(ROW, **VERDICTS[verdict])
    assert row.verdict == verdict
    assert read_row(json.loads(json.dumps(row.to_dict()))) == row
    with pytest.raises(ValueError, match="must have the verdict"):
        read_row(row.to_dict() | {"verdict": "another"})


def test_a_record_without_a_field_is_refused():
    for name in ("cause", "strict", "pair"):
        record = {key: value for key, value in ROW.to_dict().items() if key != name}
        with pytest.raises(ValueError, match=rf"^record must be a row .* without {name}"):
            read_row(record)


def test_one_seed_refutes_nothing():
    assert replace(ROW, strict=(9.0,)).verdict == "not refuted"
    assert not replace(ROW, strict=()).refuted


# Embargo and page.

TODAY = datetime.date(2026, 11, 29)
PUBLIC = {
    "an issue": ({"disclosure": "https://example.org/issues/1"}, True),
    "nothing": ({}, False),
    "a report of today": ({"disclosure": "reported 2026-11-29"}, False),
    "a report 89 days ago": ({"disclosure": "reported 2026-09-01"}, False),
    "a report 90 days ago": ({"disclosure": "reported 2026-08-31"}, True),
    "another text": ({"disclosure": "they know it"}, False),
    "not refuted": ({"strict": (), "cause": ""}, True),
    "not refuted, with a cause": ({"strict": ()}, False),
    "source only": ({"reading": "source only"}, False),
    "misuse": ({"reading": "known misuse", "cause": ""}, True),
}


@pytest.mark.parametrize("state", PUBLIC)
def test_the_page_names_a_fault_only_if_it_is_public(state):
    fields, is_public = PUBLIC[state]
    row = replace(ROW, name="the_faulty_call(1)", **fields)
    assert row.is_publishable(TODAY) is is_public
    page = load_script().make_page((replace(ROW, strict=(), cause=""), row), TODAY)
    assert ("the_faulty_call" in page) is is_public
    hidden = (
        "In 1 rows the experiment found a fault that is not public yet. The authors are informed "
        "before the page names these rows."
    )
    assert (hidden in page) is not is_public
    assert not is_public or "file.py:1" not in page or "Reason: a fault (file.py:1)." in page


@NEEDS_RECORDS
def test_the_page_is_built_from_the_records():
    text = PAGE.read_text(encoding="utf-8")
    day = re.search(r"This page was built on (\S+)\.", text)[1]
    rows = read_records(RECORDS)
    assert load_script().make_page(rows, datetime.date.fromisoformat(day)) == text
    for row in rows:
        if not row.is_publishable(datetime.date.fromisoformat(day)):
            assert f"`{row.name}`" not in text
            assert row.cause not in text


@NEEDS_RECORDS
def test_boosted_trees_refute_no_row_that_is_not_refuted():
    script = load_script()
    verdicts = {(row.package, row.name): row.verdict for row in read_records(RECORDS)}
    entries = json.loads(script.CLASSIFIER_ROWS.read_text(encoding="utf-8"))
    assert len(entries) >= 50
    for entry in entries:
        assert verdicts[entry["package"], entry["name"]] == "not refuted"
        assert entry["verdict"] != "refuted", entry["name"]
        assert entry["certified"] < 0.5 * entry["claim"]
    assert f"{len(entries)} rows that certify" in "\n".join(script.describe_classifier_rows())


@NEEDS_RECORDS
def test_the_records_are_sound():
    """A bound exceeds its true loss with probability 0.05 at most: 3 % of rows are allowed here."""
    rows = [row for row in read_records(RECORDS) if row.true_loss is not None and not row.failure]
    above = [row.name for row in rows if row.certified > row.true_loss + 1e-9]
    assert len(above) <= 0.03 * len(rows), above
    assert len(rows) > 80
    for row in read_records(RECORDS):
        if row.verdict == "violation":
            assert row.cause, row.name
            assert row.true_loss is None or row.true_loss > row.claim, row.name


def test_another_format_of_records_is_refused(tmp_path):
    (tmp_path / "numpy-2.json").write_text('{"format": "dpcore.released/0", "rows": []}')
    with pytest.raises(ValueError, match=r"^format of numpy-2\.json must be 'dpcore\.released/1'"):
        read_records(tmp_path)


# Processes.

FAKE_CASES = """
import os, time
import numpy as np
from dpcore.experiments.released_libraries.cases import Case

VERSION = np.__version__

def make(name, build, **fields):
    facts = {"pair": (0.0, 1.0), "claim": 1.0, "relation": "distance 1", "stated": "here"}
    return Case(package="numpy", version=VERSION, name=name, build=build, trials=2000,
                **facts | fields)

def noise(scale):
    return lambda x, size, rng: x + rng.laplace(scale=scale, size=size)

def copies():
    return lambda x, size, rng: np.repeat(x + rng.laplace(size=(size + 1) // 2), 2)[:size]

def fail():
    raise RuntimeError("no luck")

def leave():
    raise SystemExit(3)

CASES = (
    make("true", lambda: noise(1.0)),
    make("segmentation fault", os.abort),
    make("false", lambda: noise(0.2)),
    make("copies", copies),
    make("hang", lambda: time.sleep(600), seconds=1.0),
    make("error", fail),
    make("exit", leave),
    make("last", lambda: noise(1.0)),
)
"""
SITE = """
import dpcore.experiments.released_libraries.training_cases as training_cases
import fake_cases
training_cases.CASES = fake_cases.CASES
"""


@pytest.fixture
def fake_package(tmp_path, monkeypatch):
    """Replace the cases of numpy, here and in the processes that the experiment starts."""
    (tmp_path / "fake_cases.py").write_text(FAKE_CASES)
    (tmp_path / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(training_cases, "CASES", importlib.import_module("fake_cases").CASES)


@pytest.mark.usefixtures("fake_package")
def test_a_crash_a_hang_and_an_error_cost_only_their_rows():
    rows = {row.name: row for row in audit_package("numpy", 1, None, False, None)}
    assert [row.verdict for row in rows.values()] == [
        "not refuted", "failed", "violation", "failed", "failed", "failed", "failed", "not refuted"
    ]  # fmt: skip
    assert rows["segmentation fault"].failure == "ended the process by SIGABRT"
    assert rows["hang"].failure == "exceeded its time limit of 1 s"
    assert rows["copies"].failure.startswith("ValueError: the audit is invalid: ")
    assert rows["error"].failure == "RuntimeError: no luck"
    assert rows["exit"].failure == "SystemExit: 3"
    assert all(row.version for row in rows.values())
    assert min(rows["false"].strict) > 1.0
    assert rows["true"].strict == ()


def test_a_package_that_is_not_installed_fails_and_keeps_its_recorded_row(tmp_path):
    record = replace(ROW, package="nprr", version="0.0.1", name="an old call", cause="")
    folder = tmp_path / "records"
    folder.mkdir()
    record = {"format": RECORD_FORMAT, "package": "nprr", "rows": [record.to_dict()]}
    (folder / "nprr-0.0.1.json").write_text(json.dumps(record))
    pytest.importorskip("numpy")
    result = run(Config(packages=("nprr",), data=str(tmp_path)), progress=False)
    assert {row.failure for row in result.rows} == {"not installed"}
    assert "an old call" in result.table()


def test_a_verdict_that_differs_from_the_record_is_shown():
    other = replace(ROW, strict=())
    result = Result(Config(packages=("numpy",)), (other,), (ROW,))
    assert result.differences == ("numpy 2 f(1): not refuted, recorded: violation",)
    assert "Different from the records:" in result.table()
    assert Result(Config(packages=("numpy",)), (ROW,), (ROW,)).differences == ()


def test_the_picture_has_a_panel_for_each_package():
    rows = (ROW, replace(ROW, package="scipy", strict=(), certified=0.0))
    figure = Result(Config(packages=("numpy", "scipy")), rows).plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["numpy", "scipy"]


def test_infinite_losses_survive_the_record():
    row = replace(ROW, true_loss=math.inf)
    assert read_row(json.loads(json.dumps(row.to_dict(), allow_nan=False))).true_loss == math.inf
