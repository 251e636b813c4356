"""Run files: audits that were cut off go on, whatever ended them; parts add up to the whole."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from shared_damage import iterate_damaged_texts, list_bad_readings, peak_memory
from shared_messages import check_messages
from shared_randomness import by_the_module, by_the_system
from shared_resumed import cut_after
from shared_shards import BLOCK, KINDS, ONE, TRIALS, add_noise, audit_kind, list_differences

import dpcore
from dpcore import Audit, Pair, runs
from dpcore.auditing import run_files
from dpcore.auditing.run_files import open_locked_run, read_run
from dpcore.errors import FileWarning
from dpcore.progress import Progress
from dpcore.runs import MissingPartsError, begin_run, count_part, merge_parts
from dpcore.sampling import driver

ABOUT = {"trials": TRIALS, "block": BLOCK, "rng": 3, "claim": 0.9, "pilot": 600, "progress": False}
ABOUT["attack"] = dpcore.attacks.Threshold()


def cut_off(shards, work):
    """Do some work that Ctrl-C ends after so many counted shards; return what the error says."""
    with cut_after(shards), pytest.raises(KeyboardInterrupt) as caught:
        work()
    return str(caught.value)


@pytest.fixture
def path(tmp_path):
    """Path of a run file."""
    return tmp_path / "run.json"


@pytest.fixture
def cut(path):
    """A run of a callable of which seven blocks were counted."""
    cut_off(7, lambda: audit_kind("callable", checkpoint=path))
    return path


# What was cut off goes on.


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_cut_off_goes_on_as_if_nothing_had_happened(path, kind):
    whole = audit_kind(kind)
    for shards in (2, 1, 6):
        said = cut_off(shards, lambda: audit_kind(kind, checkpoint=path, threads=1))
        held = f"{path} holds {read_run(path).held:,} trials per side: "
        assert said == f"{held}go on with the same call with checkpoint={str(path)!r}"
    assert kind == "early stop" or read_run(path).done.trials == 9 * BLOCK
    assert list_differences(audit_kind(kind, checkpoint=path, rng=None), whole) == []
    # A finished run is read, and nothing is counted again.
    assert list_differences(audit_kind(kind, checkpoint=path, rng=None), whole) == []


def test_other_workers_go_on(cut):
    with ThreadPoolExecutor(2) as pool:
        report = audit_kind("callable", checkpoint=cut, executor=pool)
    assert list_differences(report, audit_kind("callable")) == []
    assert report.seconds > 0.0


def test_the_seed_of_the_file_is_taken(path):
    cut_off(3, lambda: audit_kind("callable", checkpoint=path, rng=None))
    seed = read_run(path).fixed.audit["seed"]
    report = audit_kind("callable", checkpoint=path, rng=None)
    assert report.seed == seed
    assert list_differences(report, audit_kind("callable", rng=seed)) == []


SCRIPT = """
import os, signal, sys, time
import numpy as np
import dpcore
from dpcore.auditing import run_files
from dpcore.sampling import driver

def slow_noise(x, size, rng):
    time.sleep(float(os.environ.get("SLEEP", "0")))
    return x + rng.laplace(size=(size, len(x)))

run_files._SECONDS_BETWEEN_WRITES = 0.02
driver.Pace.shard_trials = lambda pace, left, workers, block, travels: block
write, most = run_files.os.fsync, int(os.environ.get("WRITES", "-1"))
written = []
def fsync(handle):
    written.append(handle)
    if len(written) == most:
        os.ftruncate(handle, os.fstat(handle).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    write(handle)
run_files.os.fsync = fsync
print("begun", flush=True)
report = dpcore.audit(
    slow_noise, dpcore.Pair([0.0], [1.0]), attack=dpcore.attacks.Threshold(), claim=0.9,
    trials=12800, block=128, rng=3, pilot=600, checkpoint=sys.argv[1], progress=False,
)
open(sys.argv[2], "w").write(report.to_json())
"""
KILLS = int(os.environ.get("DPCORE_KILLS", "3"))
"""Kills at random moments; benches/record_runs.py has twenty."""


@pytest.fixture
def start(tmp_path):
    """Start an audit with a run file in a process of its own, whose record is read afterwards."""
    script = tmp_path / "killed.py"
    script.write_text(SCRIPT)

    def begin(run, record, **more):
        environment = {**os.environ, **more}
        command = [sys.executable, str(script), str(tmp_path / run), str(tmp_path / record)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"begun\n"
        process.stdout.close()
        return process

    return begin


def read_record(path):
    """Read a record but for its times."""
    record = json.loads(path.read_text())
    times = ("seconds", "spent", "threads", "provenance")
    record["derived"].pop("draws_per_second")
    return {name: value for name, value in record.items() if name not in times}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_kills_at_random_moments_leave_the_record_of_an_uninterrupted_audit(start, tmp_path):
    assert start("whole.json", "whole").wait(60) == 0
    rng, killed = random.Random(5), 0
    for _ in range(KILLS):
        process = start("run.json", "record", SLEEP="0.01")
        try:
            process.wait(rng.uniform(0.2, 1.0))
        except subprocess.TimeoutExpired:
            process.kill()
        killed += process.wait(60) == -signal.SIGKILL
    # In the middle of the third write, half of the text is in the temporary file.
    killed += start("run.json", "record", SLEEP="0.01", WRITES="3").wait(60) == -signal.SIGKILL
    assert killed >= 2
    assert read_run(tmp_path / "run.json").done.trials > 0
    assert start("run.json", "record").wait(60) == 0
    assert read_record(tmp_path / "record") == read_record(tmp_path / "whole")


MECHANISM = """
import time
def slow_noise(x, size, rng):
    time.sleep(0.02)
    return x + rng.laplace(scale=0.5, size=(size, len(x)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C of another process")
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_shows_no_counts_and_names_the_line_that_goes_on(tmp_path, process):
    (tmp_path / "mech.py").write_text(MECHANISM)
    words = "audit mech.py:slow_noise --x 0 --x-prime 1 --claim 1 --attack threshold --pilot 600"
    words += " --trials 3200 --block 128 --seed 7 --checkpoint run.json --no-progress"

    command = [sys.executable, "-m", "dpcore", *words.split()]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    counting = subprocess.Popen(command, cwd=tmp_path, **pipes)
    end = time.monotonic() + 60
    while not (tmp_path / "run.json").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    counting.send_signal(signal.SIGINT)
    printed, said = counting.communicate(timeout=60)
    assert (counting.returncode, printed) == (130, "")
    assert "dpcore audit mech.py:slow_noise --resume run.json" in said
    begun = read_run(tmp_path / "run.json")
    assert 0 < begun.done.trials < 3200
    assert not begun.looked
    assert not any(str(side.hits[0]) in said for side in begun.done.sides)
    status, printed, said = process(
        "audit mech.py:slow_noise --resume run.json --json --no-progress"
    )
    assert status == 1, said
    report = Audit.from_json(printed)
    assert (report.counts.n, report.bound, report.partial) == (3200, "clopper_pearson", False)
    whole = Audit.from_json(process(words.replace("--checkpoint run.json", "--json"))[1])
    assert list_differences(report, whole) == []


# What cannot be written.


def test_a_folder_that_cannot_be_written_to_is_an_error_at_the_start(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(driver, "run_shard", lambda *_: drawn.append(1))
    (tmp_path / "file").write_text("")

    def write(path):
        return lambda: audit_kind("callable", checkpoint=path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    folders, needed = (tmp_path / "missing", tmp_path / "file"), "a file in a folder that can be"
    calls = [(write(folder / "run.json"), "checkpoint", needed) for folder in folders]
    check_messages(ValueError, calls)
    check_messages(TypeError, [(write(3), "checkpoint", "the path of a file")])
    monkeypatch.setattr(run_files.os, "open", refuse)
    check_messages(ValueError, [(write(tmp_path / "run.json"), "", "Permission denied")])
    assert not drawn


def test_a_full_disk_is_a_warning_and_counting_goes_on(monkeypatch, path):
    written, original = [], os.fsync

    def fsync(handle):
        written.append(handle)
        if len(written) > 2:
            raise OSError(28, "No space left on device")
        original(handle)

    monkeypatch.setattr(run_files.os, "fsync", fsync)
    monkeypatch.setattr(run_files, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(driver.Pace, "shard_trials", lambda *args: args[3])
    with pytest.warns(FileWarning, match="could not be written .*No space left") as caught:
        report = audit_kind("callable", checkpoint=path)
    # At once and at the end, not at every shard; and the file before it is still there.
    held = f"{read_run(path).held:,} trials per side, not the"
    ends = [f"goes on, but a kill would leave {held}", f"ends and leaves {held} {report.trials:,}"]
    for warning, end in zip(caught, ends, strict=True):
        assert end in str(warning.message)
    assert list_differences(report, audit_kind("callable")) == []
    assert 0 < read_run(path).done.trials < report.trials
    assert [one.name for one in path.parent.iterdir() if "tmp" in one.name] == []


def test_a_second_driver_is_refused(cut):
    expected = "checkpoint must be a run file that no other process counts for"
    with open_locked_run(cut), pytest.raises(ValueError, match=expected):
        audit_kind("callable", checkpoint=cut)
    assert audit_kind("callable", checkpoint=cut).trials == TRIALS - 50


# What is not this run.


def edit(path, *place, value):
    """Change one entry of a run file."""
    record = json.loads(path.read_text())
    inside = record
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value(inside[place[-1]]) if callable(value) else value
    path.write_text(json.dumps(run_files.seal_record(record)))


def test_an_accident_shows_in_the_digest(cut):
    cut.write_text(cut.read_text().replace('"zeros": 0', '"zeros": 1'))
    with pytest.raises(ValueError, match="digest must be that of the other entries"):
        audit_kind("callable", checkpoint=cut)


@pytest.mark.parametrize(("place", "value", "expected"), [
    ((), None, "run file that dpcore wrote"),
    (("format",), "dpcore.run/9", "format must be 'dpcore.run/2'"),
    (("sides", 0, "hits"), [10**6], "hits must be at most"),
    (("sides", 1, "nan"), -1, "counts must be an integer"),
    (("sides", 1, "hits"), ["7"], "hits must be of the kind"),
    (("sides", 0, "rows"), lambda rows: rows + 1, "rows must be"),
    (("ranges",), [[0, 640], [512, 768]], "start must be an integer"),
    (("ranges",), lambda ranges: [[a + 10**6, b + 10**6] for a, b in ranges], "within"),
    (("ranges",), "all", "run file that dpcore wrote"),
    (("fixed",), {}, "run file that dpcore wrote"),
    (("fixed", "bits"), None, "bits must be a str"),
    (("same_bits",), "no", "same_bits must be True or False"),
    (("looked",), 0, "looked must be True or False"),
    (("part",), [3, 2], "run file that dpcore wrote"),
])  # fmt: skip
def test_a_file_that_was_edited_or_cut_is_refused(cut, place, value, expected):
    if place:
        edit(cut, *place, value=value)
    else:
        cut.write_text(cut.read_text()[:-100])
    with pytest.raises(ValueError, match=expected) as caught:
        audit_kind("callable", checkpoint=cut)
    assert str(cut) in str(caught.value)


def test_a_run_that_accepted_other_bits_goes_on_without_saying_so_again(path):
    cut_off(3, lambda: audit_kind("callable", checkpoint=path, same_bits=False))
    assert any("same_bits=False" in note for note in audit_kind("callable", checkpoint=path).notes)
    assert read_run(path).same_bits is False


def test_counts_that_were_edited_are_found_where_a_block_is_drawn_again(cut):
    edit(cut, "edges", 0, 1, 0, 0, value=lambda hits: [hits[0] + 1, *hits[1:]])
    with pytest.raises(ValueError, match="mechanism must be the one that began the run file"):
        audit_kind("callable", checkpoint=cut)


@pytest.mark.parametrize(("argument", "value"), [
    ("rng", 4), ("claim", 0.8), ("trials", TRIALS), ("start", BLOCK), ("delta", 1e-3),
    ("confidence", 0.9), ("bound", "exact"), ("block", 64),
    ("attack", dpcore.attacks.Threshold()),
])  # fmt: skip
def test_another_argument_is_named(cut, argument, value):
    with pytest.raises(ValueError, match=rf"^{argument} must be .* as in the run file"):
        audit_kind("callable", checkpoint=cut, **{argument: value})


def test_another_pair_is_named(cut):
    given = {**ABOUT, **KINDS["callable"][2], "trials": TRIALS - 50, "attack": None}
    with pytest.raises(ValueError, match=r"^pair must be .* as in the run file"):
        dpcore.audit(add_noise, Pair([0.0], [2.0]), **given, checkpoint=cut)


def make_mechanism(scale):
    def changing_noise(x, size, rng):
        return x + rng.laplace(scale=scale, size=(size, len(x)))

    return changing_noise


@pytest.mark.parametrize(
    ("stop", "found"),
    [("fixed", "of which block 0 has"), ("refuted", r"with \[\d+, \d+\] hits in trials")],
)
def test_a_changed_mechanism_is_refused(path, stop, found):
    about = {**ABOUT, "claim": 9.0, "checkpoint": path, "stop": stop}
    cut_off(5, lambda: dpcore.audit(make_mechanism(1.0), ONE, **about))
    began = r"^mechanism must be the one that began the run file .*same_bits=False.* got one "
    with pytest.raises(ValueError, match=began + "whose outputs differ"):
        dpcore.audit(make_mechanism(1.01), ONE, **about)
    bits = read_run(path).fixed.bits
    # A mechanism that gives the compared block alone is found by what it counted.
    edit(path, "fixed", "bits", value="")
    with pytest.raises(ValueError, match=began + found):
        dpcore.audit(make_mechanism(1.01), ONE, **about)
    edit(path, "fixed", "bits", value=bits)
    assert dpcore.audit(make_mechanism(1.0), ONE, **about).trials == TRIALS


@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_a_mechanism_that_no_seed_repeats_goes_on(path, stop):
    about = {**ABOUT, "trials": 4096, "checkpoint": path, "stop": stop, "claim": 1.5}
    cut_off(5, lambda: dpcore.audit(by_the_system, ONE, **about))
    assert read_run(path).fixed.bits == ""
    report = dpcore.audit(by_the_system, ONE, **about)
    assert (report.randomness, report.trials, report.checks) == ("own", 4096, ())


def test_the_bar_shows_workers_and_the_time_of_the_file(monkeypatch, path):
    labels = []
    monkeypatch.setattr(Progress, "relabel", lambda _, label: labels.append(label))
    with ThreadPoolExecutor(2) as pool:
        audit_kind("callable", checkpoint=path, executor=pool)
    assert re.fullmatch(r"counting on 2 workers, run file of \d\d:\d\d:\d\d", labels[-1])
    path.unlink()
    audit_kind("early stop", checkpoint=path)
    assert re.fullmatch(r"counting until refuted, run file of \d\d:\d\d:\d\d", labels[-1])
    with ThreadPoolExecutor(2) as pool:
        audit_kind("callable", executor=pool)
    assert labels[-1] == "counting on 2 workers"


def test_a_generator_of_its_own_is_refused(path):
    with pytest.raises(ValueError, match="by_the_module"):
        dpcore.audit(by_the_module, ONE, **{**ABOUT, "checkpoint": path})


# Parts.


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A run of which all four parts are counted: its file, and theirs."""
    return count_parts(tmp_path_factory.mktemp("parts"), add_noise)


def count_parts(folder, mechanism, count=4, **options):
    path = folder / "run.json"
    begin_run(path, mechanism, ONE, **{**ABOUT, **options})
    found = [folder / f"part-{number}.json" for number in range(1, count + 1)]
    for number, out in enumerate(found, 1):
        count_part(path, mechanism, ONE, part=(number, count), out=out, **{**ABOUT, **options})
    return path, found


def copy(path, folder, name=None):
    """Copy a file, so that it may be changed."""
    other = folder / (name or path.name)
    other.write_bytes(path.read_bytes())
    return other


def test_parts_in_any_order_are_the_whole(parts):
    whole = dpcore.audit(add_noise, ONE, **ABOUT)
    _, found = parts
    for seed in range(3):
        report = merge_parts([*random.Random(seed).sample(found, len(found)), found[0]])
        assert list_differences(report, whole, without=("mechanism",)) == []
        assert (report.bound, report.stop) == ("clopper_pearson", "fixed")


def test_a_part_that_was_cut_off_goes_on(tmp_path, parts):
    path, found = parts
    about = {"part": (2, 4), "out": tmp_path / "part.json", **ABOUT}
    cut_off(2, lambda: count_part(path, add_noise, ONE, **about))
    with pytest.raises(MissingPartsError):
        merge_parts([found[0], about["out"], *found[2:]])
    count_part(path, add_noise, ONE, **about)
    assert merge_parts([found[0], about["out"], *found[2:]]) == merge_parts(found)


def test_more_parts_than_blocks(tmp_path):
    _, found = count_parts(tmp_path, add_noise, count=30)
    assert merge_parts(found).counts == dpcore.audit(add_noise, ONE, **ABOUT).counts


def refuse_merge(files, text, *named):
    """Check that the error of a merge names these files."""
    with pytest.raises(ValueError, match=text) as caught:
        merge_parts(files)
    assert all(str(file) in str(caught.value) for file in named)


def test_parts_of_two_runs(parts, tmp_path):
    _, others = count_parts(tmp_path, add_noise, rng=4)
    both = parts[1][0], others[1]
    refuse_merge(both, "paths must be of one run", *both)


def test_wrong_calls_of_parts(parts, tmp_path):
    path, found = parts

    def count(part=(2, 4), run=path, out=tmp_path / "out.json"):
        return lambda: count_part(run, add_noise, ONE, part=part, out=out, **ABOUT)

    none = tmp_path / "no.json"
    check_messages(ValueError, [
        *((count(part), "part", "an integer") for part in ((0, 64), (65, 64), (1, 0))),
        (count(out=copy(found[0], tmp_path)), "out", "a new file, or one of part"),
        (count(out=path), "out", "another file"),
        (count(run=found[0]), "path", "a run of which nothing is counted"),
        (count((1, 4), none, path), "path", "a run file that is there"),
        (lambda: begin_run(path, add_noise, ONE, **ABOUT), "path", "the name of a new file"),
        (lambda: merge_parts([]), "paths", "at least one file"),
        (lambda: merge_parts([none]), "", "must be a run file that is there"),
    ])  # fmt: skip
    check_messages(TypeError, [(count(3), "part", "a pair"), (count((1.5, 4)), "part", "")])


def test_a_part_with_other_counts_is_named(parts, tmp_path):
    _, found = parts
    other = copy(found[1], tmp_path, "other.json")
    edit(other, "sides", 0, "hits", value=lambda hits: [hits[0] - 1])
    refuse_merge([*found, other], "paths must agree", found[1], other)


def test_parts_that_overlap_are_named(parts, tmp_path):
    path, found = parts
    halves = [tmp_path / f"half-{number}.json" for number in (1, 2)]
    for number, out in enumerate(halves, 1):
        count_part(path, add_noise, ONE, part=(number, 2), out=out, **ABOUT)
    assert merge_parts([halves[0], *found[2:]]) == merge_parts(found)
    # Without digests, by the trials alone.
    for file in halves:
        edit(file, "digests", value=[])
    refuse_merge([halves[0], *found[1:]], "paths must hold each trial once", halves[0], found[1])


def test_a_part_of_other_bits_is_refused_or_compared(tmp_path):
    path = tmp_path / "run.json"
    about = {**ABOUT, "source": False}
    begin_run(path, make_mechanism(1.0), ONE, **about)

    def count(number, scale, **more):
        out = tmp_path / f"part-{number}.json"
        more = {**about, **more}
        count_part(path, make_mechanism(scale), ONE, part=(number, 2), out=out, **more)
        return out

    with pytest.raises(ValueError, match=r"on a CPU with the same bits .*same_bits=False"):
        count(2, 1.0 + 1e-12)
    right, near = count(1, 1.0), count(2, 1.0 + 1e-12, same_bits=False).rename(tmp_path / "near")
    report = merge_parts([right, near])
    far = count(2, 9.0, same_bits=False, again=True).rename(tmp_path / "far")
    assert report.checks == ()
    assert any("same_bits=False" in note for note in report.notes)
    assert any("vary more from audit to audit" in said for said in merge_parts([right, far]).checks)


def test_a_replay_between_parts_is_an_error(parts, tmp_path):
    _, found = parts
    replayed = copy(found[1], tmp_path)
    edit(replayed, "digests", value=json.loads(found[0].read_text())["digests"])
    refuse_merge([found[0], replayed, *found[2:]], "paths must hold outputs that were drawn anew")


def test_missing_parts_are_listed(parts, run):
    _, found = parts
    with pytest.raises(MissingPartsError, match="missing: ") as caught:
        merge_parts([found[0], found[3]])
    [missing] = caught.value.ranges
    assert missing == (read_run(found[1]).range[0], read_run(found[2]).range[1])
    status, printed, said = run("merge", str(found[0]), str(found[3]))
    assert (status, printed) == (4, "")
    assert f"{missing[0]:,} to {missing[1]:,}" in said


def test_who_has_looked_certifies_the_anytime_bound(parts, tmp_path):
    whole = merge_parts(parts[1])
    copies = [copy(file, tmp_path) for file in parts[1]]
    partial = merge_parts(copies[:2], partial=True)
    assert (partial.partial, partial.bound, partial.stop) == (True, "anytime", "looked")
    assert partial.counts.n == sum(read_run(file).done.trials for file in copies[:2])
    assert [read_run(file).looked for file in copies] == [True, True, False, False]
    later = merge_parts(copies)
    assert (later.partial, later.bound, later.stop) == (False, "anytime", "looked")
    assert later.counts == whole.counts
    assert later.epsilon_lower < whole.epsilon_lower
    # Nobody has looked at a whole run before its end.
    assert merge_parts(parts[1], partial=True) == whole


@pytest.fixture
def unrepeated(tmp_path):
    """A run of two parts that no seed repeats: its options, and the files of its parts."""
    path, files = count_parts(tmp_path, by_the_system, count=2)
    return {"path": path, "mechanism": by_the_system, "pair": ONE, **ABOUT}, files


def test_a_part_that_no_seed_repeats_is_counted_once(unrepeated, tmp_path):
    about, files = unrepeated
    entries = sorted(path.name for path in (tmp_path / "run.json.parts").iterdir())
    assert entries == ["1-of-2", "2-of-2"]
    notes = merge_parts(files).notes
    assert f"; 2 parts are registered in {tmp_path / 'run.json.parts'}" in notes[-1]
    other, again = tmp_path / "other.json", {"part": (1, 2), **about}
    with pytest.raises(ValueError, match=r"out must be .*part-1.json.*again=True"):
        count_part(out=other, **again)
    assert not other.exists()
    # The file itself goes on, wherever it was moved.
    count_part(out=files[0].rename(tmp_path / "moved.json"), **again)
    count_part(out=other, again=True, **again)
    with pytest.raises(ValueError, match=r"counts that hold: part 1/2 .*other.json, got .*moved"):
        merge_parts([tmp_path / "moved.json", files[1]])
    with pytest.raises(ValueError, match=r"out must be a new file.*void"):
        count_part(out=tmp_path / "moved.json", again=True, **again)
    assert merge_parts([other, files[1]]).notes[-1].endswith(", and 1 counts are void")
    # Another division into parts is registered beside it.
    count_part(out=tmp_path / "third.json", **{**again, "part": (1, 3)})
    assert "; 3 parts are registered" in merge_parts([other, files[1]]).notes[-1]


def test_a_look_is_registered(unrepeated, tmp_path):
    _, files = unrepeated
    folder = tmp_path / "copies"
    folder.mkdir()
    merge_parts([copy(files[0], folder)], partial=True)
    assert merge_parts(files).bound == "anytime"


def test_without_a_folder_nothing_is_registered(tmp_path):
    (tmp_path / "run.json.parts").write_text("")
    _, files = count_parts(tmp_path, by_the_system, count=2)
    assert merge_parts(files).notes[-1].endswith("; 0 parts are registered")


def test_a_part_that_the_seed_repeats_is_not_registered(parts, tmp_path):
    path, files = parts
    assert not path.with_name("run.json.parts").exists()
    about = {"part": (1, 4), "out": tmp_path / "part.json", **ABOUT}
    with pytest.raises(ValueError, match="again must be False"):
        count_part(path, add_noise, ONE, again=True, **about)
    # A second count verifies the first.
    count_part(path, add_noise, ONE, **about)
    assert merge_parts([*files, about["out"]]) == merge_parts(files)


def test_a_run_that_was_looked_at_ends_with_the_anytime_bound(cut):
    assert merge_parts([cut], partial=True).partial
    report = audit_kind("callable", checkpoint=cut)
    assert (report.bound, report.partial) == ("anytime", False)
    assert report.counts == audit_kind("callable").counts


@pytest.mark.sweep
def test_parts_on_the_command_line(tmp_path, process):
    (tmp_path / "mech.py").write_text(MECHANISM.replace("0.02", "0"))
    words = "audit mech.py:slow_noise --x 0 --x-prime 1 --claim 1 --attack threshold --trials 2000"
    status, printed, said = process(f"{words} --seed 7 --checkpoint run.json --fit-only")
    assert (status, printed) == (0, "")
    assert "run.json" in said
    for number in ("1", "2"):
        done = process(
            f"count run.json mech.py:slow_noise --part {number}/2 --out part-{number}.json"
        )
        assert done[:2] == (0, ""), done
    status, printed, said = process("merge part-1.json part-2.json --json")
    assert status == 1, said
    whole = process(f"{words} --seed 7 --json")[1]
    assert list_differences(Audit.from_json(printed), Audit.from_json(whole)) == []
    edit(tmp_path / "run.json", "fixed", "bits", value="of another CPU")
    again = "count run.json mech.py:slow_noise --part 2/2 --out other.json"
    status, _, said = process(again)
    assert status == 2
    assert "on a CPU with the same bits" in said
    assert process(f"{again} --no-same-bits")[0] == 0
    assert read_run(tmp_path / "other.json").same_bits is False

    assert process("merge part-1.json")[0] == 4


def test_nothing_of_a_run_file_is_executed(cut):
    for module in (run_files, runs):
        assert not {"pickle", "eval", "exec", "importlib"} & set(vars(module))
    assert json.loads(cut.read_text())["format"] == "dpcore.run/2"


# The path of a run file.


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_a_symbolic_link_stays_a_link_and_excludes_a_driver_through_the_path(cut, tmp_path):
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.json"
    link.symlink_to(cut)
    for one, other in ((cut, link), (link, cut)):
        expected = "a run file that no other process counts for"
        with open_locked_run(one), pytest.raises(ValueError, match=expected):
            audit_kind("callable", checkpoint=other)
    assert list_differences(audit_kind("callable", checkpoint=link), audit_kind("callable")) == []
    assert link.is_symlink()
    assert read_run(cut).done.trials == TRIALS - 50
    assert os.listdir(tmp_path / "links") == ["link.json"]
    # One that names a file that is not there yet begins it there.
    cut.unlink()
    audit_kind("callable", checkpoint=link)
    assert link.is_symlink()
    assert cut.is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
@pytest.mark.parametrize("make", [
    lambda path: os.mkfifo(path), lambda path: path.mkdir(),
    lambda path: path.symlink_to("/dev/full"), lambda path: path.symlink_to(path),
], ids=["FIFO", "folder", "/dev/full", "loop"])  # fmt: skip
def test_what_is_no_regular_file_is_refused_before_a_lock_is_made(make, path, monkeypatch):
    make(path)
    monkeypatch.setattr(run_files.os, "open", None)
    before = os.listdir(path.parent)
    for read in (lambda: audit_kind("callable", checkpoint=path), lambda: read_run(path)):
        with pytest.raises(ValueError, match=r"must be (a run file|the path of a file)") as caught:
            read()
        assert path.name in str(caught.value)
    assert os.listdir(path.parent) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no permissions")
def test_a_new_file_that_may_hold_outputs_is_for_its_owner_and_an_old_one_keeps_its_mode(path):
    before = os.umask(0o022)
    try:
        for kind, mode in (("callable", 0o600), ("native vote", 0o644)):
            audit_kind(kind, checkpoint=path)
            assert path.stat().st_mode & 0o777 == mode
            path.unlink()
        cut_off(3, lambda: audit_kind("callable", checkpoint=path))
        path.chmod(0o640)
        audit_kind("callable", checkpoint=path)
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


# Damaged files.


def read_damaged(kind, path, many, seed):
    """List what is no clear error, of an audit that goes on with a damaged file.

    The digest is renewed, so that each entry is checked by itself. Where the damage left all
    entries possible, the same verdict or none may follow.
    """
    with cut_after(7), pytest.raises(KeyboardInterrupt):
        audit_kind(kind, checkpoint=path)
    text = path.read_text()

    def read(content):
        with contextlib.suppress(ValueError, AttributeError):
            content = json.dumps(run_files.seal_record(json.loads(content))).encode()
        path.write_bytes(content)
        verdict = audit_kind(kind, checkpoint=path, rng=None).verdict
        return whole if verdict.startswith("invalid: outputs") else verdict

    whole = audit_kind(kind).verdict
    return list_bad_readings(iterate_damaged_texts(text, many, seed), read, whole)


def test_a_damaged_file_is_an_error_or_the_same_verdict(path):
    assert read_damaged("native scores", path, 60, seed=1) == []


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_gives_another_verdict(path, kind):
    before = peak_memory()
    assert read_damaged(kind, path, 2000 // len(KINDS), seed=2) == []
    assert peak_memory() - before < 2**30
