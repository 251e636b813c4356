"""Outputs from files: what is read, and that nothing is dropped in silence."""

from __future__ import annotations

import dataclasses
import gzip
import importlib
import random
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
import site_pages
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from shared_damage import damage_bytes, list_bad_readings, peak_memory

from dpcore.cli.options import OutputsArguments
from dpcore.files import cells as cell_files
from dpcore.files import formats
from dpcore.files.columns import Request
from dpcore.files.formats import Reader
from dpcore.recorded.sides import read_outputs, split_outputs_by_label

ODD = [0.1, -0.0, 1e-310, np.nan, np.inf, -np.inf, 1 / 3, 2.0**53]


@pytest.fixture
def write(tmp_path):
    def put(text, name="outputs.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return put


# CSV.


def test_a_header_names_the_columns(write):
    path = write("score,loss\n1,2\n3,4\n")
    assert read_outputs(path, "*").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read_outputs(path, "loss").tolist() == [2.0, 4.0]
    assert read_outputs(path, ["loss", "score"]).tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert read_outputs(path, ["loss", 0]).tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert read_outputs(str(path), 0).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("text", [
    "a;b\r\n1;2\r\n3;4\r\n", "a\tb\n1\t2\n3\t4\n", "\ufeffa,b\n1,2\n3,4\n",
    '"a","b"\n"1","2"\n3,4\n\n\n', "# a, b\n1, 2\n3, 4\n",
])  # fmt: skip
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.CSV"])
def test_dialects(write, text, name):
    if name == "x.tsv" and '"' in text:
        # In a table with tabs a quotation mark is a letter.
        assert read_outputs(write(text.replace(",", "\t"), name), '"b"').tolist()[0] == '"2"'
        return
    assert read_outputs(write(text, name), "b").tolist() == [2.0, 4.0]
    assert read_outputs(write(text, name), "a").tolist() == [1.0, 3.0]


@given(st.lists(st.lists(st.floats(), min_size=2, max_size=2), min_size=1, max_size=20))
def test_every_double_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("doubles") / "x.csv"
    path.write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in rows))
    assert np.array_equal(read_outputs(path, "*"), np.array(rows), equal_nan=True)


def test_row_numbers_are_no_outputs(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5]})
    frame.to_csv(tmp_path / "numbered.csv")
    with pytest.raises(ValueError, match=r"column 0 of numbered.csv must have a name, got none"):
        read_outputs(tmp_path / "numbered.csv", "*")
    assert read_outputs(tmp_path / "numbered.csv", "a").tolist() == [1.5, 2.5]
    frame.set_axis([7, 9]).to_parquet(tmp_path / "numbered.parquet")
    with pytest.raises(ValueError, match=r"column 1 of numbered.parquet must have a name"):
        read_outputs(tmp_path / "numbered.parquet", "*")
    assert read_outputs(tmp_path / "numbered.parquet", "a").tolist() == [1.5, 2.5]


@pytest.mark.parametrize(("name", "text", "column", "outputs"), [
    ("x.csv", "1.5\n-2\n", None, [1.5, -2.0]),
    ("x.csv", "0.5\n", None, [0.5]),
    ("x.csv", "1,2\n3,4\n", None, [[1.0, 2.0], [3.0, 4.0]]),
    ("x.csv", "1,2\n3,4", 1, [2.0, 4.0]),
    ("x.csv", "monthly\ndaily\nmonthly\n", None, ["monthly", "daily", "monthly"]),
    ("x.csv", "answer\nmonthly\ndaily\n", None, ["monthly", "daily"]),
    # Columns that nobody chose are not parsed.
    ("x.csv", "id,answer\n7,never\n9,daily\n", "answer", ["never", "daily"]),
    ("x.csv", "id,answer\n7,never\n9,daily\n", 1, ["never", "daily"]),
    # Words and numbers are objects, an empty cell is missing.
    ("x.csv", "a,b\n1,2\n3,x\n", "b", [2.0, "x"]),
    ("x.csv", "a,b\n1,2\n,3\n", "a", [1.0, None]),
    # One name among numbers is no header, but a mistake that must not cost a row.
    ("x.csv", "1,2x\n3,4\n", 1, ["2x", "4"]),
    ("x.csv", "a\n0x10\n", None, ["0x10"]),
    # A first row that comes again below is no header, whatever it holds.
    ("x.csv", "a,b\nb,a\na,b\n", "*", [["a", "b"], ["b", "a"], ["a", "b"]]),
    # An empty line is an answer that is missing, at the end too.
    ("x.txt", "a, b\n\nc\n", None, ["a, b", None, "c"]),
    ("x.txt", "1.5\n-2\n", None, [1.5, -2.0]),
    ("x.log", "x\n1\n\n", None, ["x", 1.0, None]),
    # The first line is a name where all others are numbers.
    ("x.txt", "score\n1.5\n2\n", None, [1.5, 2.0]),
    ("x.txt", " a\na\n", None, [" a", "a"]),
    ("x.jsonl", '"a\u2028b"\n"c"\n', None, ["a\u2028b", "c"]),
    ("x.jsonl", "1\n2.5\nNaN\n", None, [1.0, 2.5, np.nan]),
    ("x.jsonl", '"never"\n"daily"\n', None, ["never", "daily"]),
    ("x.jsonl", '{"id": 1, "a": 2.5}\n{"id": 2, "a": 0.5}\n', "a", [2.5, 0.5]),
    ("x.jsonl", '{"a": "x"}\n\n{"b": 1}\n', "a", ["x", None]),
    ("x.jsonl", '["a", 1]\n["b"]\n', None, [["a", 1], ["b"]]),
    ("x.json", "[1.5, 2.5]", None, [1.5, 2.5]),
    ("x.json", '{"a": [1, 2], "b": ["x", "y"]}', "b", ["x", "y"]),
])  # fmt: skip
def test_the_outputs_of_a_text(write, name, text, column, outputs):
    assert repr(read_outputs(write(text, name), column).tolist()) == repr(outputs)


def test_a_first_row_that_comes_again_in_many_blocks_is_one_output(write, monkeypatch):
    monkeypatch.setattr(cell_files, "_HEAD_BYTES", 8)
    monkeypatch.setattr(cell_files, "_SLICE_BYTES", 8)
    words = ["never", "daily", "never", "weekly", "never", "daily"] * 3
    assert read_outputs(write("\n".join(words)), None).tolist() == words


def test_paths_that_are_no_outputs(write, tmp_path):
    with pytest.raises(ValueError, match=r"a file that ends in one of \.csv, \.tsv"):
        read_outputs(write("1\n", "outputs.xls"))
    with pytest.raises(FileNotFoundError):
        read_outputs(tmp_path / "nothing.csv")
    with pytest.raises(TypeError, match="path must be the path of a file, got 3"):
        read_outputs(3)


@pytest.mark.parametrize(("column", "error", "complaint"), [
    ("c", ValueError, r"column must be one of 'a', 'b' in outputs.csv, got 'c'"),
    (2, ValueError, "column must be an integer from 0 to 1, got 2"),
    (-1, ValueError, "column must be an integer from 0 to 1, got -1"),
    (True, TypeError, "column must be a name or number of a column"),
    (0.0, TypeError, "column must be a name or number of a column"),
    ([], ValueError, "column must be at least one column"),
    (["a", None], TypeError, "column must be a name or number of a column"),
    (None, ValueError, r"column must be given where .* has 2 columns"),
])  # fmt: skip
def test_columns_that_do_not_exist(write, column, error, complaint):
    with pytest.raises(error, match=complaint):
        read_outputs(write("a,b\n1,2\n"), column)


# Arrays.


@pytest.mark.parametrize("array", [
    np.array(ODD), np.arange(12.0).reshape(3, 4), np.arange(24).reshape(2, 3, 4),
    np.array([True, False]), np.array([1, 2**62 + 1]), np.array(["yes", "no"]),
    np.array([0.1], dtype=np.float32),
])  # fmt: skip
def test_npy_and_npz_come_back_whole(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    np.savez_compressed(tmp_path / "x.npz", only=array)
    for name in ("x.npy", "x.npz"):
        found = read_outputs(tmp_path / name)
        assert found.dtype == array.dtype
        assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


def test_columns_of_arrays(tmp_path):
    table = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "x.npy", table)
    assert read_outputs(tmp_path / "x.npy", 1).tolist() == [1.0, 3.0, 5.0]
    named = np.array([(1.0, 2), (3.0, 4)], dtype=[("score", float), ("side", int)])
    np.save(tmp_path / "named.npy", named)
    assert read_outputs(tmp_path / "named.npy", "score").tolist() == [1.0, 3.0]
    np.savez(tmp_path / "x.npz", a=table, b=np.arange(3), c=np.arange(4))
    with pytest.raises(ValueError, match=r"arrays of x.npz must be of equal length, got \[3, 4\]"):
        read_outputs(tmp_path / "x.npz", "a")
    np.savez(tmp_path / "x.npz", a=table, b=np.arange(3))
    assert np.array_equal(read_outputs(tmp_path / "x.npz", "a"), table)
    with pytest.raises(ValueError, match=r"column must be given where x\.npz has 2 columns"):
        read_outputs(tmp_path / "x.npz")
    with pytest.raises(ValueError, match="columns must be of equal shape"):
        read_outputs(tmp_path / "x.npz", ["a", "b"])


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return print, ("unpickled",)

    np.save(tmp_path / "x.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", only=np.array([Trap()], dtype=object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(ValueError, match=f"{name} must hold arrays without Python objects"):
            read_outputs(tmp_path / name)


def test_arrays_without_rows(tmp_path):
    for array in (np.zeros((0, 3)), np.array(1.0)):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(ValueError, match=r"x.npy must be an array with one row an output"):
            read_outputs(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"x.npy must hold arrays"):
        read_outputs(tmp_path / "x.npy")
    with (tmp_path / "x.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"x.npz must be an archive of arrays"):
        read_outputs(tmp_path / "x.npz")


# Parquet.


def test_parquet(tmp_path):
    path = tmp_path / "x.parquet"
    table = pyarrow.table({"score": ODD, "word": ["a", "b"] * 4, "on": [True, False] * 4})
    parquet.write_table(table, path)
    assert np.array_equal(read_outputs(path, "score"), ODD, equal_nan=True)
    assert read_outputs(path, "word").tolist() == ["a", "b"] * 4
    assert read_outputs(path, "on").dtype == bool
    # A null is no NaN.
    table = pyarrow.table({"a": pyarrow.array([1.0, float("nan"), None])})
    parquet.write_table(table, path)
    first, second, third = read_outputs(path).tolist()
    assert (first, third) == (1.0, None)
    assert np.isnan(second)
    # pandas writes NaN as null.
    pd.DataFrame({"a": [1.0, np.nan]}).to_parquet(path)
    assert read_outputs(path).tolist() == [1.0, None]


@pytest.mark.parametrize("missing", [{"pyarrow.parquet"}, {"pyarrow.parquet", "pandas"}])
def test_parquet_without_its_packages(tmp_path, monkeypatch, missing):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"a": [1.0, 2.5]}).to_parquet(path)
    kept = importlib.import_module

    def importing(name):
        if name in missing:
            raise ImportError(f"no {name}")
        return kept(name)

    monkeypatch.setattr(formats, "import_module", importing)
    needed = r"reading x.parquet needs pyarrow \(pip install pyarrow"
    with pytest.raises(ImportError, match=needed) if "pandas" in missing else nullcontext():
        assert read_outputs(path).tolist() == [1.0, 2.5]


def test_reading_a_csv_imports_neither_package():
    import subprocess

    code = (
        "import sys, pathlib, tempfile; from dpcore.recorded.sides import read_outputs;"
        "p = pathlib.Path(tempfile.mkdtemp(), 'x.csv'); p.write_text('1\\n'); read_outputs(p);"
        "assert not {'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


# One file for both sides.


def split_by_label(path, label, column, label_x=None):
    return split_outputs_by_label(path, label, Request("", column), label_x, None, Reader())


@pytest.mark.parametrize(
    ("one", "zero"), [("1", "0"), ("x", "x_prime"), ("In", "out"), ("TRUE", "False"), ("1.0", "0")]
)
def test_a_label_tells_the_sides(write, one, zero):
    path = write(f"score,member\n0.5,{one}\n1.5,{zero}\n2.5, {one}\n")
    (x, x_prime), titles, *_ = split_by_label(path, "member", None)
    assert titles == ("column 'score'",)
    assert (x.tolist(), x_prime.tolist()) == ([0.5, 2.5], [1.5])
    x, x_prime = split_by_label(write(f"0.5,{one}\n1.5,{zero}\n", "bare.csv"), 1, None)[0]
    assert (x.tolist(), x_prime.tolist()) == ([0.5], [1.5])


def test_labels_in_other_files(tmp_path):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0], "on": [True, False, True]})
    table.to_parquet(tmp_path / "x.parquet", index=False)
    np.savez(tmp_path / "x.npz", **{name: table[name].to_numpy() for name in table})
    np.save(tmp_path / "x.npy", table.to_numpy(dtype=float))
    by_name = "on", ["a", "b"]
    for name, label, columns in (
        ("x.parquet", *by_name), ("x.npz", *by_name), ("x.npy", 2, [0, 1]),
    ):  # fmt: skip
        x, x_prime = split_by_label(tmp_path / name, label, columns)[0]
        assert x.tolist() == [[1.0, 4.0], [3.0, 6.0]]
        assert x_prime.tolist() == [[2.0, 5.0]]


def test_labels_that_are_refused(write):
    path = write("row,score,member\n0,1.5,1\n1,2.5,0\n")
    assert split_by_label(path, "member", "score")[0][0].tolist() == [1.5]
    with pytest.raises(ValueError, match="label must be one of"):
        split_by_label(path, "number", "score")
    bad = write("score,member\n1,1\n2,maybe\n3,0\n", "bad.csv")
    with pytest.raises(ValueError, match=r"label in row 2 of bad.csv must be 1, true, in or x, .*"):
        split_by_label(bad, "member", None)
    words = write("score,member\n1,never\n2,daily\n3,never\n", "words.csv")
    message = r"label_x must be given: which of 'daily', 'never' of words\.csv stands for x"
    with pytest.raises(ValueError, match=message):
        split_by_label(words, "member", None)
    assert split_by_label(words, "member", None, "never")[0][0].tolist() == [1.0, 3.0]


# Formats.


def test_every_format_is_in_help_and_page():
    options = {option.name: option for option in dataclasses.fields(OutputsArguments)}
    listed = options["format"].metadata["parameter"].help
    assert listed == f"Kind of the files: {', '.join(formats.FORMATS)}. Default: by their names."
    rows = site_pages.formats_table().splitlines()[2:]
    for row, each in zip(rows, formats.FORMATS.values(), strict=True):
        assert row.startswith(f"| {', '.join(f'`{end}`' for end in each.endings)} | ")
    page = (Path(__file__).parents[2] / "docs/howto/recorded-outputs.md").read_text("utf-8")
    assert "{include} ../reference/generated/formats.md" in page


# Damaged files.


def write_example(path):
    """Write 500 numbers in a format that has checksums or lengths."""
    values = np.random.default_rng(1).normal(size=500)
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table({"a": values}), path, write_page_checksum=True)
    elif path.suffix == ".npz":
        np.savez(path, a=values)
    elif path.suffix == ".npy":
        np.save(path, values)
    else:
        with gzip.open(path, "wt") as file:
            file.writelines(f"{value}\n" for value in values)


@pytest.mark.parametrize("many", [20, pytest.param(200, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "a.npy", "a.csv.gz"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, name, many):
    path, rng, before = tmp_path / name, random.Random(3), peak_memory()
    write_example(path)
    content = path.read_bytes()

    def read(changed):
        path.write_bytes(changed)
        try:
            read_outputs(path, 0)
        except ValueError as error:
            if name not in str(error):
                raise AssertionError(f"the message must name {name}") from error
            raise

    # Numbers without a checksum may change; what is no file of the format is an error.
    assert list_bad_readings((damage_bytes(content, rng) for _ in range(many)), read, None) == []
    assert peak_memory() - before < 2**30
