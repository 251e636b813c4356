"""Files of every kind: packed, from standard input, as lines; what is found in them; what is not.

The sentences of the errors are part of what is tested: each names the file and what to do.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import sys
import threading
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings, strategies
from pyarrow import parquet

from dpcore import OutputsAudit, audit_outputs
from dpcore.cli import audits as command
from dpcore.cli.options import OutputsArguments
from dpcore.files import cells as cell_files
from dpcore.files import formats, opened
from dpcore.files.columns import Request
from dpcore.files.formats import Reader
from dpcore.progress import Progress
from dpcore.recorded.sides import read_outputs
from dpcore.results.evidence import TableRead

WORDS = np.array(["never", "weekly", "daily"])
SETTINGS = {"rows": "independent", "claim": 1.0, "rng": 1}


def respond(truth, seed, size=2000):
    """Answers that keep the truth with probability .69: the loss is 1.50."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(size) < 0.538, truth, rng.choice(WORDS, size)).tolist()


SIDES = respond("never", 1), respond("daily", 2)


@pytest.fixture
def write(tmp_path):
    def put(text, name="a.csv", encoding="utf-8", pack=False):
        data = text if isinstance(text, bytes) else text.encode(encoding)
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if pack else data)
        return path

    return put


def as_csv(answers):
    return "id,response\n" + "".join(f"{7 * i},{one}\n" for i, one in enumerate(answers))


def as_json_lines(answers):
    return "".join(json.dumps({"id": 7 * i, "r": one}) + "\n" for i, one in enumerate(answers))


def as_json(answers):
    return json.dumps({"id": list(range(len(answers))), "r": answers})


# Kinds.


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(("name", "make", "column"), [
    ("csv", as_csv, "response"),
    ("tsv", lambda answers: as_csv(answers).replace(",", "\t"), 1),
    ("txt", "\n".join, None),
    ("log", lambda answers: "\r\n".join(answers) + "\r\n", None),
    ("json", as_json, "r"),
    ("json", json.dumps, None),
    ("jsonl", as_json_lines, "r"),
    ("ndjson", lambda answers: "\n".join(map(json.dumps, answers)), None),
])  # fmt: skip
def test_every_text_kind_gives_what_lists_give(write, name, make, column, pack):
    end = ".gz" if pack else ""
    paths = [write(make(one), f"{i}.{name}{end}", pack=pack) for i, one in enumerate(SIDES)]
    want = audit_outputs(*SIDES, **SETTINGS)
    found = audit_outputs(*paths, column=column, **SETTINGS)
    assert (found.counts, found.event) == (want.counts, want.event)
    # Most of the loss of 1.50, and nothing above it: at a claim of 1.50 nothing is refuted.
    assert 1.2 < found.epsilon_lower < 1.5
    for path, one in zip(paths, found.files, strict=True):
        assert (one.sha256, one.rows) == (hashlib.sha256(path.read_bytes()).hexdigest(), 2000)


class Frame:
    """A frame whose columns are found by their names."""

    def __init__(self, columns):
        self.columns, self._values = list(columns), columns

    def __getitem__(self, name):
        values = self._values[name]
        return SimpleNamespace(
            null_count=lambda: values.count(None), to_list=lambda: values,
            to_numpy=lambda: np.array(values, dtype=object),
        )  # fmt: skip

    def to_numpy(self):
        raise AssertionError("columns are read one by one")


class Polars(Frame):
    """The part of a frame of polars that is read: columns by their places, and no `len`."""

    def to_series(self, place):
        return super().__getitem__(self.columns[place])

    def __getitem__(self, name):
        raise AssertionError("columns are read by their places")


MAKERS = {"pandas": pd.DataFrame, "pyarrow": pyarrow.table, "polars": Polars, "other": Frame}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("missing", [False, True])
def test_frames_give_what_lists_give(kind, missing):
    sides = [[None if missing and one == "weekly" else one for one in side] for side in SIDES]
    frames = [MAKERS[kind]({"id": list(range(2000)), "r": side}) for side in sides]
    want = audit_outputs(*sides, **SETTINGS)
    found = audit_outputs(*frames, column="r", **SETTINGS)
    assert (found.counts, found.event) == (want.counts, want.event)
    assert [one.kind for one in found.files] == ["frame", "frame"]
    assert (found.files[0].there, found.files[0].sha256) == (("id", "r"), "")


def test_columns_that_nobody_chose_are_not_converted(write):
    class Trap:
        """A value that cannot be compared, hashed or shown."""

        __hash__ = None

        def __array__(self, dtype=None, copy=None):
            raise AssertionError("nobody chose this column")

    frame = pd.DataFrame({"r": SIDES[0], "trap": [Trap() for _ in SIDES[0]]})
    assert audit_outputs(frame, frame.copy(), column="r", paired=True, **SETTINGS).counts
    # The second column of the file is no number, and there are 10^5 of them.
    wide = write("\n".join(",".join([str(i), *["x"] * 99_999]) for i in (5, 7, 5, 9)))
    assert read_outputs(wide, 0).tolist() == [5.0, 7.0, 5.0, 9.0]


@pytest.mark.skipif(sys.gettrace() is not None, reason="another profiler runs")
def test_a_list_of_objects_is_read_once_for_each_column(write):
    calls = []
    path = write(json.dumps([{"v": 1, "w": 2}] * 500), "a.json")
    sys.setprofile(lambda frame, event, arg: calls.append(arg) if event == "c_call" else None)
    try:
        outputs = read_outputs(path, "w", Reader())
    finally:
        sys.setprofile(None)
    assert len(outputs) == 500
    # Two columns of 500 cells, a few calls for each.
    assert len(calls) < 10_000


def test_a_column_of_pyarrow_and_a_whole_table(write):
    path = write(b"", "a.parquet")
    parquet.write_table(pyarrow.table({"a": [1.5, 2.5], "b": [1, None]}), path)
    assert read_outputs(path, ["b", "a"]).tolist() == [[1, 1.5], [None, 2.5]]
    sides = [pyarrow.table({"r": side})["r"] for side in SIDES]
    assert audit_outputs(*sides, **SETTINGS).counts == audit_outputs(*SIDES, **SETTINGS).counts


def test_quoted_cells_anywhere_in_a_file(write):
    text = 'a,b\n1,x\n2,"y\nz"\n3,"w,""v"""\n4,u\n'
    assert read_outputs(write(text), "b").tolist() == ["x", "y\nz", 'w,"v"', "u"]
    assert read_outputs(write(text), "a").tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match=r"line 7 of a\.csv must be 2 cells long, got 1"):
        read_outputs(write(text + "5\n"), "a")


def test_pieces_of_a_file_fit_together(write, monkeypatch):
    """Slices of 16 bytes, so that rows, line ends and kinds meet their borders."""
    monkeypatch.setattr(cell_files, "_HEAD_BYTES", 16)
    monkeypatch.setattr(cell_files, "_SLICE_BYTES", 16)
    rng = np.random.default_rng(0)
    for end in ("\n", "\r\n"):
        cells = rng.choice(["1.25", "-3", "x", "a b", ""], (50, 3), p=[0.5, 0.2, 0.1, 0.1, 0.1])
        cells[0], cells[:, 0] = ["n0", "n1", "n2"], ["n0", *map(str, range(0, 98, 2))]
        path = write(end.join(map(",".join, cells)) + end)
        want = [[float(c) if c in ("1.25", "-3") else c or None for c in row] for row in cells[1:]]
        for place in (1, 2):
            assert read_outputs(path, place).tolist() == [row[place] for row in want]
        assert read_outputs(path, "n0").tolist() == list(range(0, 98, 2))
        quoted = write(end.join(",".join(f'"{c}"' for c in row) for row in cells), "q.csv")
        for place in (0, 1, 2):
            assert read_outputs(quoted, place).tolist() == read_outputs(path, place).tolist()
    # A name that is missing at first, and numbers that turn into words.
    lines = [json.dumps({"a": i} | ({"b": "x"} if i > 30 else {})) for i in range(40)]
    path = write("\n".join(lines), "a.jsonl")
    assert read_outputs(path, "b").tolist() == [None] * 31 + ["x"] * 9
    assert read_outputs(path, "a").tolist() == list(range(40))


# What was found is said.


def test_report_json_and_page_name_columns_rows_and_hash(write):
    paths = [write(as_csv(one), f"{i}.csv") for i, one in enumerate(SIDES)]
    report = audit_outputs(*paths, column="response", **SETTINGS)
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    for name, word, sha256 in zip(
        ("0.csv", "1.csv"), [SIDES[0][0], SIDES[1][0]], sums, strict=True
    ):
        line = (
            f"{name}: 2,000 rows, column 'response' of 'id', 'response': texts, because "
            f"line 2 has {word!r}; csv with a header, ',' between cells, utf-8; SHA-256 {sha256}"
        )
        assert ("read from", line) in report.lines()
        assert sha256 in report.to_html()
        assert sha256 in report.to_json()
    assert OutputsAudit.from_json(report.to_json()).files == report.files
    silent = audit_outputs(*paths, column="response", source=False, **SETTINGS)
    assert silent.files == ()
    assert not any(one in silent.to_html() + silent.to_json() + str(silent) for one in sums)
    assert silent == report


def test_labels_name_their_column_and_their_own_file(write):
    both = write("r,side\n" + "".join(f"{a},x\n{b},x'\n" for a, b in zip(*SIDES, strict=True)))
    (one,) = audit_outputs(both, label="side", **SETTINGS).files
    assert (one.columns, one.rows) == (("r", "side"), 4000)
    labels = write("x\n" * 2000 + "x'\n" * 2000, "labels.txt")
    (own,) = audit_outputs(SIDES[0] + SIDES[1], label=labels, **SETTINGS).files
    assert (own.name, own.columns, own.kind) == ("labels.txt", ("0",), "lines")


@pytest.mark.parametrize(("text", "settings", "outputs", "found"), [
    ("a\nb\nc\n", {}, ["b", "c"], {"header": True}),
    ("a\nb\nc\n", {"header": "no"}, ["a", "b", "c"], {"header": False}),
    ("a\nb\na\n", {}, ["a", "b", "a"], {"header": False}),
    ("a\nb\na\n", {"header": "yes"}, ["b", "a"], {"header": True}),
    ("1\n2\n", {"header": "yes"}, [2.0], {"header": True, "there": ("1",)}),
    ("1|2\n3|4\n", {"sep": "|"}, [[1.0, 2.0], [3.0, 4.0]], {"sep": "|"}),
    ("a,b\tc,d\ne,f\tg\n", {"sep": "tab", "header": "no"}, [["a,b", "c,d"], ["e,f", "g"]],
     {"sep": "\t"}),
    ('"x;y",1\n"z;w;",2\n', {}, [["x;y", 1.0], ["z;w;", 2.0]], {"sep": ","}),
])  # fmt: skip
def test_header_and_separator(write, text, settings, outputs, found):
    reader = Reader(**settings)
    column = "*" if "header" in settings else None
    assert read_outputs(write(text), column, reader).tolist() == outputs
    (one,) = reader.tables
    assert {name: getattr(one, name) for name in found} == found


@pytest.mark.parametrize(
    ("encoding", "given", "found"),
    [
        ("utf-8-sig", None, "utf-8"), ("utf-16", None, "utf-16"), ("latin-1", "latin-1", None),
        ("utf-16-le", "utf-16-le", None), ("utf-8-sig", "UTF8", "utf-8"),
        ("cp1252", "cp1252", None),
    ],
)  # fmt: skip
def test_encodings(write, encoding, given, found):
    reader = Reader(encoding=given)
    path = write("ä,b\né,1\nü,2\n", encoding=encoding)
    assert read_outputs(path, 0, reader).tolist() == ["é", "ü"]
    (one,) = reader.tables
    assert (one.there, one.encoding) == (("ä", "b"), found or one.encoding)


def test_a_long_list_of_columns_is_cut_in_the_report():
    names = tuple(f"c{i}" for i in range(64))
    text = str(TableRead("a.csv", "csv", 3, names, names, 100_000))
    assert text.count("'c") == 16
    assert "(100,000 in all)" in text


# Standard input and the command.


def pipe(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("pack", [False, True])
def test_standard_input(write, monkeypatch, pack):
    data = as_csv(SIDES[0]).encode()
    data = gzip.compress(data) if pack else data
    want = audit_outputs(*SIDES, **SETTINGS)
    pipe(monkeypatch, data)
    found = audit_outputs("-", write(as_csv(SIDES[1])), column="response", format="csv", **SETTINGS)
    assert (found.counts, found.names) == (want.counts, ("standard input", "a.csv"))
    assert found.files[0].sha256 == hashlib.sha256(data).hexdigest()


def test_standard_input_of_arrays(monkeypatch):
    for save, name in ((np.save, "npy"), (np.savez, "npz")):
        file = io.BytesIO()
        save(file, np.arange(3.0))
        pipe(monkeypatch, file.getvalue())
        assert read_outputs("-", None, Reader(format=name)).tolist() == [0.0, 1.0, 2.0]


def test_the_command(write, monkeypatch, capsys):
    pipe(monkeypatch, "\n".join(SIDES[0]).encode())
    other = write("ü\n" + "\n".join(SIDES[1]), encoding="latin-1", name="b")
    asked = OutputsArguments(
        ["-", str(other)], "independent", 1.0, seed=1, format="lines", encoding="latin-1",
        header="no", as_json=True,
    )  # fmt: skip
    assert command.run_outputs_audit(asked) == 1
    record = json.loads(capsys.readouterr().out)
    assert [one["rows"] for one in record["files"]] == [2000, 2001]
    assert record["files"][1]["encoding"] == "iso8859-1"


# Memory, and a bar.


def test_numbers_take_little_more_than_their_array(write):
    """The array of 4 * 10^6 numbers, as much for work, and three slices of 32 MiB."""
    path = write("a,b\n" + "0,0.25\n1,-0.5\n" * 2_000_000)
    tracemalloc.start()
    try:
        found = read_outputs(path, "b")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.shape == (4_000_000,)
    assert found.sum() == -500_000.0
    assert peak < 2 * found.nbytes + 100e6


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.npy", "a.npz", "a.csv.gz"])
def test_a_file_that_memory_cannot_hold_is_an_error_before_it_is_read(tmp_path, monkeypatch, name):
    size = 400_000
    path = tmp_path / name
    values = np.random.default_rng(1).normal(size=size)
    if name.endswith("npy"):
        np.save(path, values)
    elif name.endswith("npz"):
        np.savez(path, values)
    else:
        texts_ = map(repr, values.tolist())
        text = f"[{','.join(texts_)}]" if name == "a.json" else "\n".join(texts_)
        path.write_bytes(gzip.compress(text.encode(), 1) if "gz" in name else text.encode())
    reader = Reader(bar=Progress("", None, False))
    monkeypatch.setattr(opened, "measure_free_memory", lambda: 4e6)
    with pytest.raises(MemoryError, match=rf"{name} needs about 0\.0 GB of memory, and 0\.0 GB"):
        read_outputs(path, None, reader)
    monkeypatch.setattr(opened, "measure_free_memory", lambda: 1e8)
    assert len(read_outputs(path)) == size
    monkeypatch.setattr(opened, "measure_free_memory", lambda: None)
    assert len(read_outputs(path)) == size


def test_the_rest_of_a_file_that_is_too_large_is_not_read(write, monkeypatch):
    path = write("1.5\n" * 1_000_000)
    monkeypatch.setattr(opened, "measure_free_memory", lambda: 4e6)
    with opened.open_file(path, Reader()) as file:
        with pytest.raises(MemoryError, match="choose fewer columns with column="):
            cell_files.read_cells(file, Request("csv"), Reader())
        assert file.position < file.size / 2


def test_free_memory_is_known_here():
    free = opened.measure_free_memory()
    assert free is None or free > 1e6


def test_the_bar_counts_the_bytes_of_a_file(write):
    begun, done = [], []
    bar = SimpleNamespace(reset=lambda *given: begun.append(given), advance=done.append)
    read_outputs(write("1.5\n" * 1000), None, Reader(bar=bar))
    assert (begun, sum(done)) == ([("reading a.csv", 4000)], 4000)


def test_progress_is_an_argument(monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "_draw", lambda self: shown.append(self._state.label))
    audit_outputs(*SIDES, progress=True, **SETTINGS)
    assert "auditing 2,000 and 2,000 rows" in shown


# Bad input.


def test_files_that_were_cut(write, tmp_path):
    whole = gzip.compress(as_csv(SIDES[0]).encode())
    parquet.write_table(pyarrow.table({"r": SIDES[0]}), tmp_path / "c.parquet")
    for save, name in ((np.save, "c.npy"), (np.savez, "c.npz")):
        save(tmp_path / name, np.arange(100.0))
    ends = ("parquet", "npy", "npz")
    table, array, archive = ((tmp_path / f"c.{end}").read_bytes() for end in ends)
    for where, content, column, said in (
        ("c.csv.gz", whole[: len(whole) // 2], "response", "must be a whole gzip file, got Compr"),
        ("c.csv.gz", whole[:-3] + b"abc", "response", "must be a whole gzip file, got "),
        ("line 2000 of c.jsonl", as_json_lines(SIDES[0])[:-6], "r", "must be JSON, got Unt"),
        ("line 1 of c.json", as_json(SIDES[0])[:-6], "r", "must be JSON, got "),
        ("line 4 of c.csv", "a,b\n1,2\n3,4\n5", "b", "must be 2 cells long, got 1"),
        ("c.parquet", table[:-20], None, "must be a whole Parquet file, got "),
        ("c.npy", array[:-8], None, "must hold arrays without Python objects"),
        ("c.npz", archive[:-40], None, "must hold arrays without Python objects"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(where)} {said}"):
            read_outputs(write(content, where.split()[-1]), column)


@pytest.mark.parametrize(
    ("name", "text", "settings", "complaint"),
    [
        ("a.csv", "ä\né\n".encode("latin-1"), {}, "got other bytes in cell 0 in line 1 of a"),
        ("a.csv", b"\x81\n", {"encoding": "cp1252"}, "must be text in CP1252, got "),

        ("a.csv", "1\n2\n".encode("utf-16-le"), {}, "must be text, got a NUL character"),
        ("a.csv", 'a\n"1\n', {}, "cell 0 in line 2 of a.csv must end with the"),

        ("a.csv", "never\n", {}, "must hold at least one row of outputs, got none"),
        ("a.csv", "", {}, "must hold at least one row of outputs, got none"),
        ("a.csv", "\n\n", {}, "must hold at least one row"),
        ("a.csv", "\n1\n", {}, "line 1 of a.csv must hold a row, got nothing"),
        ("a.csv", "a\n1\n\n2\n", {}, "line 3 of a.csv must hold a row, got nothing"),
        ("a.csv", "a,b\n1,2\n3,4,5\n", {}, "line 3 of a.csv must be 2 cells long, got 3"),
        ("a.csv", "a b\nc, d\n", {}, "must be 1 cells long (text with one output a line is"),
        # An empty cell in the first row is no name that is there again.
    ("a.csv", "a,,c\n1,,2\n", {"column": None}, "column must be given"),
    ("a.csv", "1,2\n3,4\n", {"column": "a"}, "a number, for a.csv has no names"),
        ("a.jsonl", '1\n{"a": \n', {}, "line 2 of a.jsonl must be JSON, got "),
        ("a.jsonl", '{"id": 1, "a": 2.5}\n', {"column": None}, "given where a.jsonl has 2 columns"),
        ("a.jsonl", '{"a": 1, "a": 2}\n', {}, "line 1 of a.jsonl must hold each name once"),
        ("a.jsonl", '{"a": 1}\n2\n', {}, "lines up to 2 of a.jsonl must all be objects, or"),
        ("a.jsonl", "1\n[" + "[" * 10**5 + "\n", {}, "line 2 of a.jsonl must be JSON"),
        ("a.csv", "a,b\n1,\x002\n", {}, "got a NUL character in cell 1 in line 2 of a.csv"),
        ("a.csv", 'a,b\n1,"2\x00"\n', {}, "got a NUL character in cell 1 in line 2 of a.csv"),
        ("a.tsv", "a\tb\n1\t\x002\n", {}, "got a NUL character in cell 1 in line 2 of a.tsv"),
        ("a.txt", "1\n2\x00\n", {}, "got a NUL character in cell 0 in line 2 of a.txt"),
        ("a.jsonl", "1\n\x002\n", {}, "line 2 of a.jsonl must be JSON, got Expecting value at col"),
        ("a.json", '["1",\n"2\x00"]', {}, "line 2 of a.json must be JSON, got Invalid control"),
        ("a.tsv", b"a\tb\n1\t\xff\n", {}, "got other bytes in cell 1 in line 2 of a.tsv"),
        ("a.txt", b"1\n2\xff\n", {}, "got other bytes in cell 0 in line 2 of a.txt"),
        ("a.jsonl", b'1\n"\xff"\n', {}, "line 2 of a.jsonl must be text in UTF-8, got b'\\xff'"),
        ("a.json", b'["1",\n"\xff"]', {}, "line 2 of a.json must be text in UTF-8, got b'\\xff'"),
        ("a.csv", "1\n2\n".encode("utf-16")[:-1], {}, "line 2 of a.csv must be text in UTF-16"),
        ("a.csv", "1\n", {"encoding": "utf-16"}, "a.csv must be text in UTF-16, got"),
        ("a.csv", 'a,b\n1,2\n3,"4\n', {}, "cell 1 in line 3 of a.csv must end with the quotation"),
        ("a.csv", 'a,b\n1,2\n3,"4"x\n', {}, "cell 1 in line 3 of a.csv must end after its quot"),
        ("a.jsonl", '1\n"2\n', {}, "line 2 of a.jsonl must be JSON, got Unterminated string"),
        ("a.tsv", "a\tb\n", {}, "must hold at least one row of outputs, got none"),
        ("a.txt", "", {}, "must hold at least one row of outputs, got none"),
        ("a.jsonl", "\n", {}, "must hold at least one row of outputs, got none"),
        ("a.tsv", "a\tb\n1\t2\n3\n", {}, "line 3 of a.tsv must be 2 cells long, got 1"),
        ("a.jsonl", f"1\n{'[' * 65}{']' * 65}\n", {}, "line 2 of a.jsonl must be JSON of at most"),
        ("a.json", f"[1,\n{'[' * 64}{']' * 64}]", {}, "line 2 of a.json must be JSON of at most"),
        ("a.json", f"[1,\n{'[' * 10**5}", {}, "line 2 of a.json must be JSON of at most 64 levels"),
        ("a.json", '{"a": [1],\n"a": [2]}', {}, "a.json must hold each name once, got 'a' twice"),
        ("a.jsonl", f"1\n{'1' * 5000}\n", {}, "line 2 of a.jsonl must be JSON, got Exceeds"),
        ("a.json", "3", {}, "a.json must hold a list of outputs, got 3"),
        ("a.json", '{"a": [1], "b": 2}', {}, "'b' of a.json must be a list, as are all columns"),
        ("a.json", '{"a": [1], "b": [2, 3]}', {}, "arrays of a.json must be of equal length, got"),
        ("a.json", "[]", {}, "a.json must hold at least one row of outputs, got none"),
    ],
)  # fmt: skip
def test_bad_text(write, name, text, settings, complaint):
    settings = {"column": "*", **settings}
    with pytest.raises(ValueError, match=re.escape(complaint)) as caught:
        read_outputs(write(text, name), settings.pop("column"), Reader(**settings))
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_a_file_that_changes_is_an_error(write, monkeypatch, name):
    """Between its two readings, where one is needed, or while it is read."""
    lines = ["7", "1.50", "8", "007"][: 4 if name == "a.csv" else 3]
    text = f"[{', '.join(lines)}]" if name == "a.json" else "\n".join(lines)
    path = write(text, name)
    assert len(read_outputs(path)) == len(lines)
    read_once = formats._read_equal_length_columns

    def change(*arguments):
        table = read_once(*arguments)
        path.write_text(text.replace("7", "9", 1))
        return table

    monkeypatch.setattr(formats, "_read_equal_length_columns", change)
    if name != "a.json":
        # All of a JSON file is in memory, and is read once.
        with pytest.raises(ValueError, match=rf"{name} must stay as it is while it is read, got"):
            read_outputs(path)
    monkeypatch.undo()
    begin = opened.HashedFile.open_bytes
    monkeypatch.setattr(
        opened.HashedFile, "open_bytes",
        lambda file: path.write_text(f"{text}\n") and begin(file),
    )  # fmt: skip
    with pytest.raises(ValueError, match=rf"{name} must stay as it is while it is read, got"):
        read_outputs(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(("name", "line"), [
    ("csv", "007"), ("txt", "2" * 20), ("jsonl", "1.50"), ("json", ", 1.50"),
])  # fmt: skip
@pytest.mark.parametrize("pack", [False, True])
def test_named_pipes_are_read_twice(tmp_path, name, line, pack):
    """The last line of one side changes the kind of both."""
    paths, files = [], []
    for side in range(2):
        numbers = np.random.default_rng(side).integers(50, size=500)
        joined = (", " if name == "json" else "\n").join(map(str, numbers))
        text = f"{joined}{'' if name == 'json' else chr(10)}{line if side else ''}"
        text = f"[{text}]" if name == "json" else text
        data = gzip.compress(text.encode()) if pack else text.encode()
        for folder, items in (("pipe", paths), ("file", files)):
            (tmp_path / folder).mkdir(exist_ok=True)
            items.append(tmp_path / folder / f"{side}.{name}")
        files[-1].write_bytes(data)
        os.mkfifo(paths[-1])
        threading.Thread(target=paths[-1].write_bytes, args=(data,), daemon=True).start()
    reports = [audit_outputs(*each, **SETTINGS, arranged=True) for each in (paths, files)]
    assert reports[0].counts == reports[1].counts
    assert reports[0].files == reports[1].files


CELLS = strategies.sampled_from([
    "a", "", '"a"', '"a,b"', '"a""b"', '"a\nb"', '"a\r\nb"', '""', 'a"b', ' "a"', '" a "', "1;2",
    '"a', '"a"b',
])  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=300, database=None)
@given(
    strategies.text(alphabet='a1" ,\n\r;', max_size=30)
    | strategies.lists(strategies.tuples(CELLS, CELLS), min_size=1).map(
        lambda rows: "\n".join(map(",".join, rows))
    )
)
def test_quoted_cells_are_those_of_pythons_reader(tmp_path_factory, text):
    """Random texts: equal cells, or an error in both."""
    path = tmp_path_factory.getbasetemp() / "quoted.csv"
    path.write_bytes(f'"x",y\n{text}'.encode())
    with path.open(newline="") as file:
        try:
            rows = list(csv.reader(file, strict=True))
        except csv.Error:
            rows = []
    while rows and not rows[-1]:
        rows.pop()
    is_good = len(rows) > 1 and all(len(row) == 2 for row in rows)
    try:
        cells = read_outputs(path, [0, 1], Reader(header="yes", sep=",", dtype="text")).tolist()
    except ValueError:
        assert not is_good
    else:
        assert is_good
        assert cells == [[cell.strip() or None for cell in row] for row in rows[1:]]


def test_two_columns_of_one_name(write, tmp_path):
    path = write("a,a\n1,2\n3,4\n")
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    table = pyarrow.table([[1.0, 3.0], [2.0, 4.0]], names=["a", "a"])
    parquet.write_table(table, tmp_path / "a.parquet")
    for outputs in (path, frame, table, tmp_path / "a.parquet"):
        with pytest.raises(ValueError, match="column must be a number, for several columns of"):
            audit_outputs(outputs, outputs, column="a", **SETTINGS)
    assert read_outputs(path, 1).tolist() == [2.0, 4.0]
    assert read_outputs(tmp_path / "a.parquet", 1).tolist() == [2.0, 4.0]


def test_all_missing_and_marks_that_differ(write):
    path = write("a,b\n" + "1,\n" * 10)
    with pytest.raises(ValueError, match="outputs must be at least one output that is not missing"):
        audit_outputs(path, path, column="b", **SETTINGS)
    # Of pandas NaN is what is missing, in a file it is an empty cell: every one would be a leak.
    values = [0.5, None] * 20
    cells = write("a\n" + "".join(f"{'' if one is None else one}\n" for one in values))
    cells.write_text(cells.read_text().replace("\n\n", '\n""\n').replace("\n\n", '\n""\n'))
    frame = pd.DataFrame({"a": values})
    with pytest.raises(ValueError, match=r"outputs_prime must be with what .* \(None\), got NaN"):
        audit_outputs(cells, frame, **SETTINGS)
    assert not audit_outputs(cells, values, arranged=True, **SETTINGS).refuted
    assert not audit_outputs(frame, frame["a"], arranged=True, **SETTINGS).refuted


@pytest.mark.parametrize(("labels", "label_x", "complaint"), [
    (["a", "b", "c"], None, r"labels of a\.csv must have two values .*, got 3: 'a', 'b', 'c'"),
    (["a", "b", "c"], "a", r"label_x must be one of the two values of the labels of a\.csv"),
    (["a", "a", "a"], None, r"labels of a\.csv must have two values .*, got 1: 'a'"),
    (["a", "a", "a"], "a", r"label_x must be one of the two values of the labels of a\.csv"),
    (["1", "1", "1"], None, r"label must be a column with rows for both sides, got \(3, 0\)"),
    (["a", "", "a"], "a", r"label in row 2 of a\.csv must be given, got None"),
])  # fmt: skip
def test_labels_with_three_values_or_one(write, labels, label_x, complaint):
    path = write("r,side\n" + "".join(f"{i},{one}\n" for i, one in enumerate(labels)))
    with pytest.raises(ValueError, match=complaint):
        audit_outputs(path, label="side", label_x=label_x, **SETTINGS)


@pytest.mark.parametrize("change", [{"column": "a"}, {"column": 1}, {"label": "a"}])
def test_lines_have_no_columns(write, change):
    path = write("x,1\ny,2\n", "a.txt")
    second = {} if "label" in change else {"outputs_prime": path}
    text = r"None where a\.txt has one output a line \(format='csv' reads a table\)"
    with pytest.raises(ValueError, match=text):
        audit_outputs(path, **second, **change, **SETTINGS)
    # A separator makes a table of it.
    assert read_outputs(path, 0, Reader(sep=",")).tolist() == ["x", "y"]


def test_a_choice_that_is_needed_is_asked_for_before_the_rest_is_read(write):
    path = write("a,b\n" + "1,2\n" * 500_000)
    with opened.open_file(path, Reader()) as file:
        with pytest.raises(ValueError, match=r"column must be given where .* 2 columns"):
            cell_files.read_cells(file, Request("csv"), Reader())
        assert file.position <= file.size * 0.7


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "frame"])
def test_a_column_of_groups_is_read_with_the_outputs(write, name):
    """40 people of each side, 10 rows each; the fourth column, which nobody chose, is no number."""
    people = [f"{i % 40} {side}" for side in ("x", "x'") for i in range(400)]
    rows = [
        {"r": answer, "who": who, "side": who[-1:] if who[-1] == "x" else "x'", "note": "n"}
        for answer, who in zip(SIDES[0][:400] + SIDES[1][:400], people, strict=True)
    ]
    make = {
        "frame": lambda: pd.DataFrame(rows),
        "a.csv": lambda: write(pd.DataFrame(rows).to_csv(index=False)),
        "a.jsonl": lambda: write("\n".join(map(json.dumps, rows)), name),
    }
    found = audit_outputs(make[name](), column="r", label="side", groups="who", **SETTINGS)
    assert found.groups == (40, 40)
    (one,) = found.files
    assert (one.columns, one.rows) == (("r", "side", "who"), 800)
