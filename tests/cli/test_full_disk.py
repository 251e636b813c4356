"""A full disk: a limit of zero bytes for files of this process, which the kernel enforces."""

import os
import re
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import dpcore
from dpcore.auditing import run_files
from dpcore.auditing.run_files import read_run
from dpcore.cli.app import main
from dpcore.runs import begin_run, count_part, merge_parts
from dpcore.sampling import driver

resource = pytest.importorskip("resource")

MECHANISM = """
import os, resource
counted = []
def noise(x, size, rng):
    file = os.environ["RUN_FILE"]
    # Counting has begun: the file is there.
    counted.append(file) if os.path.exists(file) else None
    if len(counted) == int(os.environ["FULL_AT"]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    if len(counted) == int(os.environ.get("CTRL_C", -1)):
        raise KeyboardInterrupt
    return x + rng.laplace(scale=0.5, size=(size, len(x)))
"""
LINE = "audit mech.py:noise --x 0 --x-prime 1 --claim 1 --attack threshold --pilot 600"
LINE += " --trials 1280 --block 128 --seed 7 --no-progress"


EARLY = " --stop refuted --claim 1.9"
# Early stop draws the pilot's ten blocks after the file was written.
FULL_AT = {"": "6", EARLY: "18"}
CTRL_C_AT = {"": "12", EARLY: "24"}


@contextmanager
def fill_disk():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a mechanism that fills the disk once its run file is written."""
    (tmp_path / "mech.py").write_text(MECHANISM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUN_FILE", "run.json")
    monkeypatch.setenv("FULL_AT", "6")
    monkeypatch.setattr(run_files, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(driver.Pace, "shard_trials", lambda *args: args[3])
    return tmp_path


def run_line(words):
    """Run the command line; the disk is empty again before pytest writes its next letter."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        return main(words.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def list_files(folder):
    """List the files that dpcore wrote."""
    return sorted(path.name for path in folder.iterdir() if path.name[0] not in "m_")


@pytest.mark.parametrize(
    ("words", "status", "option", "path"),
    [
        (f"{LINE} --checkpoint run.json", 2, "--checkpoint", "run.json"),
        (f"{LINE} --checkpoint run.json --fit-only", 2, "--checkpoint", "run.json"),
        (f"{LINE} --stop refuted --checkpoint run.json", 2, "--checkpoint", "run.json"),
        ("audit half-noise --epsilon 1 --trials 1e3 --html a.html", 3, "--html", "a.html"),
        ("audit half-noise --epsilon 1 --trials 1e3 --plot a.svg", 3, "--plot", "a.svg"),
        ("audit half-noise --epsilon 1 --trials 1e3 --json --plot a.png", 3, "--plot", "a.png"),
        ("plan --claim 1 --factor 0.9 --plot plan.pdf", 3, "--plot", "plan.pdf"),
        ("reproduce habernal2022-figure2 --trials 1e3 --out out", 2, "--out", "out"),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_no_file(
    folder, capsys, words, status, option, path
):
    with fill_disk():
        assert run_line(words) == status
    printed, error = capsys.readouterr()
    assert re.search(rf"error: {option} must be a (file|folder) that can be written", error), error
    assert f"got {path}" in error
    # The verdict is there, whatever is lost with the disk.
    assert any(word in printed for word in ("verdict", "Plan")) == (status == 3), printed
    assert [name for name in list_files(folder) if name != "out"] == []


def test_standard_output_on_a_full_disk_is_an_error(folder, capsys, monkeypatch):
    with open("report.json", "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        with fill_disk():
            assert main(["audit", "half-noise", "--epsilon", "1", "--trials", "1e3", "--json"]) == 3
    assert "error: standard output must be a file that can be written (" in capsys.readouterr()[1]


@pytest.mark.parametrize("more", ["", EARLY])
def test_a_disk_that_fills_up_is_reported_at_once_and_at_the_end(folder, capsys, monkeypatch, more):
    monkeypatch.setenv("FULL_AT", FULL_AT[more])
    with warnings.catch_warnings():
        # Filters of Python do not hide it.
        warnings.simplefilter("ignore")
        status = run_line(f"{LINE}{more} --checkpoint run.json")
    printed, error = capsys.readouterr()
    held = read_run("run.json").held
    lines = [line for line in error.splitlines() if line.startswith("warning: run.json could not")]
    assert [f"leave {held:,} trials per side" in line for line in lines][:1] == [True], error
    assert f"ends and leaves {held:,} trials per side, not the" in lines[-1]
    assert len(lines) == 2
    assert (status, "verdict      refuted" in printed) == ((1, True) if not more else (0, False))
    assert 0 < held < 1280
    assert list_files(folder) == ["run.json"]


@pytest.mark.parametrize("more", ["", EARLY])
def test_ctrl_c_names_the_trials_that_the_file_holds(folder, capsys, monkeypatch, more):
    monkeypatch.setenv("FULL_AT", FULL_AT[more])
    monkeypatch.setenv("CTRL_C", CTRL_C_AT[more])
    assert run_line(f"{LINE}{more} --checkpoint run.json") == 130
    held = read_run("run.json").held
    text = f"interrupted: run.json holds {held:,} trials per side, not the "
    assert text in capsys.readouterr()[1]
    assert 0 < held < 1280


@pytest.mark.parametrize("full_from", ["the start", "a block on"])
def test_a_part_that_cannot_be_written_has_a_status_of_its_own(
    folder, capsys, monkeypatch, full_from
):
    monkeypatch.setenv("RUN_FILE", "none" if full_from == "the start" else "part.json")
    assert run_line(f"{LINE} --checkpoint run.json --fit-only") == 0
    words = "count run.json mech.py:noise --part 1/1 --out part.json --no-progress"
    with fill_disk() if full_from == "the start" else pytest.MonkeyPatch.context():
        assert run_line(words) == 5
    error = capsys.readouterr()[1]
    assert "error: --out must be a file that can be written (" in error
    assert ("wrote part.json" in error, "got part.json" in error) == (False, True)
    part = [] if full_from == "the start" else ["part.json"]
    assert list_files(folder) == [*part, "run.json"]


def test_counts_are_not_shown_where_the_file_cannot_say_so(folder):
    pair = dpcore.Pair([0.0], [1.0])
    options = {"claim": 1.0, "trials": 10**6, "rng": 1, "progress": False}
    begin_run("run.json", dpcore.Laplace(0.5), pair, **options)
    count_part("run.json", dpcore.Laplace(0.5), pair, part=(1, 2), out="part.json", **options)
    with fill_disk(), pytest.raises(OSError, match="must be a file that can be written"):
        merge_parts(["part.json"], partial=True)
    assert not read_run("part.json").looked


def save_figure(path):
    from matplotlib.figure import Figure

    from dpcore.report.figures import save_picture

    save_picture(Figure(), path)


REPORT = dpcore.audit_table(np.array([[0.5, 0.5], [0.25, 0.75]]), claim=1.0)
WRITERS = {"save": REPORT.save, "to_html": REPORT.to_html, "save_picture": save_figure}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_writers_leave_the_file_before_or_none(tmp_path, write):
    path, link = tmp_path / "a.svg", tmp_path / "link.svg"
    with fill_disk(), pytest.raises(OSError, match="path must be a file that can be written"):
        write(path)
    assert list(tmp_path.iterdir()) == []
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    with fill_disk(), pytest.raises(OSError, match=r"a\.svg|link\.svg"):
        write(link)
    assert path.read_text() == "before"
    write(link)
    assert (link.is_symlink(), path.stat().st_mode & 0o777) == (True, 0o640)
    assert path.read_text() != "before"
    if write is not save_figure:
        # A device is written to, not replaced.
        write(os.devnull)
        assert not os.path.isfile(os.devnull)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.svg", "link.svg"]
