"""Readers: formats, guesses, and what is said of malformed and missing files."""

import gzip

import numpy as np
import pytest
from shared_files import file_writer

from dpcore.text import Corpus, read, word_vectors

written = pytest.fixture(file_writer)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("mine.csv", None, "path must be a file or a folder"),
        ("mine", "csv", "path must be a file of texts"),
        ("mine", "folder", "path must be a folder"),
    ],
)
def test_a_missing_file_is_named_with_its_origin(tmp_path, name, kind, said):
    with pytest.raises(FileNotFoundError, match=said):
        read(tmp_path / name, kind)


TABLES = [
    ("a.csv", "text,label\none,1\ntwo,2\n", {}, Corpus(["one", "two"], [1, 2])),
    ("a.csv", "label,text\r\nx,one\r\n", {}, Corpus(["one"], ["x"])),
    ("a.csv", '\ufefftext\n"a, ""b""\nc"\n', {}, Corpus(['a, "b"\nc'])),
    ("a.csv", "text,zip\none,01\ntwo,12\n", {"label": "zip"}, Corpus(["one", "two"], ["01", "12"])),
    ("a.csv", "x,one,1\ny,two,0\n", {"text": 1, "label": 0, "attributes": [2]},
     Corpus(["one", "two"], ["x", "y"], {"column 2": [1, 0]})),
    ("a.csv", "t,old,age\none,1,x\n", {"text": "t", "attributes": ("old", "age")},
     Corpus(["one"], None, {"old": [1], "age": ["x"]})),
    ("a.tsv", 'text\tlabel\n"one\ta\n', {}, Corpus(['"one'], ["a"])),
    ("a.jsonl", '{"text": "one", "label": 3, "x": null}\n\n{"label": 4, "text": "two"}\n', {},
     Corpus(["one", "two"], [3, 4])),
    ("a.jsonl", '{"text": "one", "old": true}\n', {"attributes": ["old"]},
     Corpus(["one"], None, {"old": [1]})),
    ("a.txt", "one\n\n two \x85 x\n", {}, Corpus(["one", "two \x85 x"])),
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gz"])
def test_the_same_file_in_other_bytes_is_the_same_corpus(tmp_path, encoding):
    """Separators, encodings and packed files are those of recorded outputs."""
    for name, content, wanted in (
        ("a.csv", "text;label\none, 1;1\n'two;2\n", Corpus(["one, 1", "'two"], [1, 2])),
        ("a.tsv", 'text\tlabel\n"one\t1\n', Corpus(['"one'], [1])),
        ("a.jsonl", '{"text": "ü", "label": 1}\n', Corpus(["ü"], [1])),
        ("a.txt", "ü\n\nx\n", Corpus(["ü", "x"])),
    ):
        path = tmp_path / f"{name}{'.gz' * (encoding == 'gz')}"
        data = content.encode("utf-8" if encoding == "gz" else encoding)
        path.write_bytes(gzip.compress(data) if encoding == "gz" else data)
        assert read(path) == wanted


@pytest.mark.parametrize(("name", "content", "columns", "wanted"), TABLES)
def test_tables_and_lines(tmp_path, name, content, columns, wanted):
    (tmp_path / name).write_bytes(content.encode())
    corpus = read(tmp_path / name, **columns)
    assert corpus == wanted
    kind = name.removeprefix("a.").replace("txt", "lines")
    assert corpus.origin == f"{name}, read as {kind}"
    assert read(str(tmp_path / name), kind, **columns) == wanted


VALUE_ERRORS = [
    ("a.csv", "", {}, "text must be a column of a.csv, which are none, got 'text'"),
    ("a.csv", "text\n", {}, "at least one text"),
    ("a.csv", "a,b\n", {}, "text must be a column of a.csv, which are 'a', 'b', got"),
    ("a.csv", "text,label\n", {"attributes": ["old"]},
     "attributes must be a column .* 'label', got 'old'"),
    ("a.csv", "text,text\na,b\n", {}, "a header of different names"),
    ("a.csv", "text,label\na,1\nb\n", {}, "line 3 of a.csv must be 2 cells long, got 1"),
    ("a.csv", 'text\nx\n"open\n', {}, "cell 0 in line 3 of a.csv must end with"),
    ("a.csv", 'text,label\n"a\nb",1\nc,\n', {}, "1 of 2 rows with one, the first in line 4"),
    ("a.csv", "text\n  \n", {}, "1 of 1 rows .* line 2 of a.csv, column 'text'"),
    ("a.csv", "a,b\n", {"text": 2}, "text must be a column of a.csv, which are 0 to 1, got 2"),
    ("a.csv", "a,b\n", {"text": -1}, "text must be a position from 0"),
    ("a.csv", "a,b\n", {"label": 1}, "text must be a position from 0"),
    ("a.csv", "a,b\n", {"text": 0, "label": "b"}, "all names, or all positions"),
    ("a.jsonl", '{"text": "a"}\nx\n', {}, "line 2 of a.jsonl must be JSON, got "),
    ("a.jsonl", '{"text": "a", "text": "b"}\n', {}, "line 1 of a.jsonl must hold each name once"),
    ("a.jsonl", "[1]\n", {}, "line 1 of a.jsonl must be a JSON object"),
    ("a.jsonl", '{"a": 1}\n', {}, "text must be a column of a.jsonl, which are 'a', got"),
    ("a.jsonl", '{"text": 1}\n', {}, r"line 1 .* a row with a text .a string. as 'text', got 1"),
    ("a.jsonl", '{"text": "a"}\n', {"text": 0}, "objects have no positions"),
    ("a.jsonl", '{"text": "a"}\n{"text": "b", "label": 1}\n', {},
     "1 of 2 rows with one, the first in line 1 of a.jsonl, column 'label'"),
    ("a.jsonl", '{"text": "a", "label": 0.5}\n', {}, "as 'label', got 0.5"),
    ("a.jsonl", '{"text": "a", "label": null}\n', {}, "missing='drop' leaves out their rows"),
    ("a.txt", "a\n", {"text": "t"}, "left out for the kind 'lines'"),
    ("a.txt", " \n", {}, "at least one text"),
    ("a.txt", b"a\n\xff\n", {}, "line 2 of a.txt must be text in UTF-8"),
    ("a.dat", "a", {}, "say which it is with kind=.*got 'a.dat'"),
    ("a.js", "a", {}, "word_vectors reads vectors"),
    ("a.txt", "a", {"kind": "text"}, "kind must be one of 'csv'"),
    ("a.txt", "a", {"kind": "atis"},
     r"got 'atis' \(dpcore\.experiments\.corpora\.read_corpus reads public corpora by name\)"),
    (".", None, {"kind": "csv"}, "path must be a file to be read as csv"),
]  # fmt: skip
TYPE_ERRORS = [
    ("a.csv", "a,b\n", {"text": 1.0}, "text must be the name or the position"),
    ("a.csv", "a,b\n", {"attributes": "ab"}, "not a single string"),
    ("a.txt", "a", {"kind": 3}, "kind must be one of 'csv'"),
]


@pytest.mark.parametrize(("name", "content", "columns", "said"), VALUE_ERRORS + TYPE_ERRORS)
def test_what_is_wrong_with_a_table_is_named(tmp_path, name, content, columns, said):
    error = TypeError if (name, content, columns, said) in TYPE_ERRORS else ValueError
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=said):
        read(tmp_path / name, **columns)


AGES = "text,age,author\none,34.5,ann\ntwo,,bob\n ,18,bob\nfour,51,ann\n"


def test_rows_with_empty_cells_are_refused_once_or_dropped_and_counted(written):
    path = written(a_dot_csv=AGES) / "a.csv"
    columns = {"attributes": ["age"], "group": "author"}
    said = r"got 2 of 4 rows with one, the first in line 3 of a\.csv, column 'age'"
    with pytest.raises(ValueError, match=rf"path must be .*missing='drop' leaves .*{said}"):
        read(path, **columns)
    corpus = read(path, missing="drop", **columns)
    assert corpus == Corpus(["one", "four"], None, {"age": [34.5, 51]}, groups=["ann", "ann"])
    assert (corpus.dropped, corpus[:1].dropped) == (2, 2)
    said = "a.csv, read as csv; 2 rows with an empty cell dropped"
    assert repr(corpus) == f"Corpus(2 texts; attribute age; groups ann; {said})"
    with pytest.raises(ValueError, match="missing must be one of 'error', 'drop', got 'skip'"):
        read(path, missing="skip")


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["34", "-5"], [34, -5]),
        (["34.0", "1e1"], [34, 10]),
        (["34.5", "5"], [34.5, 5.0]),
        (["01.5", "2"], ["01.5", "2"]),
        (["nan", "2"], ["nan", "2"]),
        (["1,5", "2"], ["1,5", "2"]),
    ],
)
def test_columns_of_numbers_are_numbers(written, cells, wanted):
    content = "text,a\n" + "".join(f't{row},"{cell}"\n' for row, cell in enumerate(cells))
    path = written(a_dot_csv=content) / "a.csv"
    column = read(path, attributes=["a"]).attribute("a")
    assert (column.tolist(), column.dtype.kind) == (wanted, np.array(wanted).dtype.kind)
    # Labels are names: numbers with a fraction stay as they are written.
    assert read(path, label="a").labels.tolist() == (cells if wanted == [34.5, 5.0] else wanted)


def test_frames_are_read():
    pandas = pytest.importorskip("pandas")
    table = {"words": ["one", "two", None], "topic": [1.0, 2.0, 1.0], "age": [34, np.nan, 50]}
    frame = pandas.DataFrame(table, index=[7, 8, 9])
    columns = {"text": "words", "label": "topic", "attributes": ["age"]}
    corpus = read(frame, missing="drop", **columns)
    assert corpus == Corpus(["one"], [1], {"age": [34]})
    assert (corpus.dropped, corpus.origin) == (2, "a frame of 3 rows")
    with pytest.raises(ValueError, match=r"2 of 3 rows .* row 1 of the frame, column 'age'"):
        read(frame, **columns)
    with pytest.raises(ValueError, match="group must be a column of the frame, which are 'words'"):
        read(frame, group="author", **columns)
    with pytest.raises(ValueError, match="kind must be left out for a frame"):
        read(frame, "csv", **columns)


def test_folders_of_parts(written):
    written(train_dot_csv="text,label\na,1\n", readme_dot_md="x")
    root = written(dev_dot_csv="text,label\nb,0\n")
    corpus = read(root)
    assert corpus == Corpus(["b", "a"], [0, 1], None, ["valid", "train"])
    assert corpus.origin == f"{root.name}, read as folder"
    written(test_dot_csv="text\nc\n")
    with pytest.raises(ValueError, match="all have labels, or none"):
        read(root)
    written(test_dot_csv="text,label\nc,1\n", test_dot_jsonl="")
    with pytest.raises(ValueError, match=r"one test part.*test\.csv and test\.jsonl"):
        read(root)


def test_folders_of_classes(written):
    root = written(pos__1_dot_txt="good\nindeed\n", neg__1_dot_txt="bad", pos__2_dot_txt="fine")
    assert read(root) == Corpus(["bad", "good\nindeed", "fine"], ["neg", "pos", "pos"])
    written(pos__3_dot_txt=" ")
    with pytest.raises(ValueError, match=r"line 1 of 3\.txt must be a text that is not empty"):
        read(root)


def test_folders_of_parts_of_classes(written):
    root = written(train__pos__1_dot_txt="good", test__neg__1_dot_txt="bad", notes_dot_txt="x")
    assert read(root) == Corpus(["bad", "good"], ["neg", "pos"], None, ["test", "train"])


def test_a_class_of_other_files_is_refused(written):
    root = written(pos__1_dot_txt="good", pos__2_dot_csv="text\nbad\n")
    with pytest.raises(ValueError, match=r"must be a folder of \.txt files only.*2\.csv"):
        read(root)


def test_a_folder_of_nothing(written):
    root = written(report_dot_pdf="x")
    with pytest.raises(ValueError, match=r"train, valid or test files .* holds \['report.pdf'\]"):
        read(root)


def test_vectors_of_words(written):
    root = written(a_dot_js='var words = {\n"in":[1,2],\n"it\\"s":[0.5,-1e-3]\n}\n')
    found = word_vectors(root / "a.js")
    assert list(found) == ["in", 'it"s']
    assert np.array_equal(np.stack(list(found.values())), [[1, 2], [0.5, -1e-3]])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('var a={\n"x":[1,2],\n"y":[1],\n};', "line 3 of a.js .*a vector of 2 numbers, got \"'y'"),
        ('var a={\n"x":[1],\n"x":[1],\n};', "line 3 of a.js .*a new word"),
        ('var a={\n"x":[1,2],\n', "line 2 of a.js .*followed by the end"),
        ('var a={\n"x":[1,NaN],\n};', "line 2 of a.js .*must be a line such as"),
        ('var a={\n"x":["1"],\n};', "line 2 of a.js"),
        ('var a={\nx:[1],\n};', "line 2 of a.js"),
        ("hello", "line 1 of a.js"),
        ("", "line 1 of a.js"),
        ("var a={\n};", "line 2 of a.js")
    ]
)  # fmt: skip
def test_malformed_vectors_are_named(written, content, said):
    with pytest.raises(ValueError, match=said):
        word_vectors(written(a_dot_js=content) / "a.js")
