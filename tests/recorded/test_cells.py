"""Every digit counts: kinds of columns of texts, spellings of numbers, and separators.

A leak at .9 against .1 must be refuted at claim 1, where 2.06 is certified. Its innocent twin, of
which both sides have one law, must not be refuted.
"""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import record_outputs
from record_outputs import limit_refuted_halves

from dpcore import audit_outputs
from dpcore.cli import main
from dpcore.files import cells as cell_files
from dpcore.files import opened
from dpcore.files.columns import Request
from dpcore.files.formats import Reader
from dpcore.recorded.sides import read_and_align, read_outputs

ROWS = 4000
SETTINGS = {"rows": "independent", "claim": 1.0, "arranged": True}


def draw_digits(rng, width, share, place=None):
    """Whole numbers of one width, of which one digit is 3 with a probability, else 7."""
    digits = rng.integers(0, 10, (ROWS, width))
    digits[:, 0] = rng.integers(1, 10, ROWS)
    digits[:, width // 2 if place is None else place] = np.where(rng.random(ROWS) < share, 3, 7)
    return ["".join(map(str, row)) for row in digits]


def choose(first, second):
    return lambda rng, share: np.where(rng.random(ROWS) < share, first, second).tolist()


def add_words(rng, share):
    numbers = [f"{value:.3f}" for value in rng.normal(size=ROWS)]
    hits = rng.random(ROWS) < share / 10
    return ["NA" if hit else number for hit, number in zip(hits, numbers, strict=True)]


def spell_twice(rng, share):
    """One side writes 1.5 as 1.50, too, if `share` is not 0."""
    values = rng.integers(0, 9, ROWS) + 0.5
    twice = rng.random(ROWS) < (share > 0.5) * 0.5
    return [f"{value:.2f}" if two else f"{value}" for value, two in zip(values, twice, strict=True)]


LEAKS = {
    "20 digits": (lambda rng, share: draw_digits(rng, 20, share), "whole numbers of 20 digits"),
    "12 digits": (lambda rng, share: draw_digits(rng, 12, share), "whole numbers of 12 digits"),
    "2^60": (choose("1152921504606846976", "1152921504606846977"), "whole numbers of 19 digits"),
    "2^60, other widths": (
        lambda rng, share: [
            *choose("1152921504606846976", "1152921504606846977")(rng, share)[:-1],
            "7",
        ],
        "whole numbers",
    ),
    "decimals": (choose("0.12345678901234567891", "0.12345678901234567892"), "decimals"),
    "padded": (choose("007", "7"), "texts, because line "),
    "exponent": (choose("1e10", "10000000000"), "numbers"),
    "words": (add_words, "numbers, and words such as 'NA'"),
    "thousands": (choose("1,234", "1,235"), "texts, because line 2 has '1,23"),
    "percent": (choose("5%", "6%"), "texts, because line 2 has "),
    "currency": (choose("$5", "$6"), "texts, because line 2 has '$"),
    "dates": (choose("2024-01-05", "2024-01-06"), "texts, because line 2 has '2024-01-0"),
    "underscore": (choose("1_000", "1000"), "texts, because line "),
}


def write_rows(path, cells, other="0.5"):
    """Write a table with a second column, or a text with one output a line."""
    sep = "\t" if ".tsv" in path.name else ";"
    head = ["w;v".replace(";", sep)]
    rows = cells if ".txt" in path.name else [*head, *(f"{cell}{sep}{other}" for cell in cells)]
    data = ("\n".join(rows) + "\n").encode("utf-16" if "16" in path.name else "utf-8")
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a16.csv", "a.csv.gz"])
@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_in_digits_are_refuted_and_their_twins_are_not(tmp_path, leak, name):
    make, kind = LEAKS[leak]
    rng = np.random.default_rng(3)
    column = None if "txt" in name else "w"
    for shares, is_leaky in (((0.9, 0.1), True), ((0.9, 0.9), False)):
        paths = [
            write_rows(tmp_path / f"{side}{name}", make(rng, share))
            for side, share in zip("xy", shares, strict=True)
        ]
        report = audit_outputs(*paths, column=column, rng=5, **SETTINGS)
        if is_leaky and leak != "words":
            assert report.epsilon_lower > 1.9, report
        assert report.refuted is (is_leaky or None) or (not is_leaky and not report.refuted), report
        shown = kind.replace("line 2", "line 1") if column is None else kind
        assert all(f": {shown}" in str(table) for table in report.files), report.files


JSON_LEAKS = {
    # Both texts, and whether sides with one text each are equal: then that is no leak of rows.
    "20 digits": ("0.12345678901234567891", "0.12345678901234567892", False),
    "nested": ("[0.12345678901234567891]", "[0.12345678901234567892]", False),
    "too large": ("1e400", "1e401", False),
    "whole": ("1152921504606846976", "1152921504606846977", False),
    "point": ("1.0", "1", True),
    "exponent": ("1e10", "10000000000", True),
    "zeros": ("1.50", "1.5", True),
    "small": ("1e-5", "0.00001", True),
    "capital": ("1E5", "1e5", True),
}
JSON_FORMS = {
    "rows.jsonl": lambda cells: "\n".join(f'{{"w": {cell}, "v": "a 0"}}' for cell in cells),
    "bare.jsonl": "\n".join,
    "rows.json": lambda cells: "[" + ",".join(map('{{"w": {}}}'.format, cells)) + "]",
    "columns.json": lambda cells: f'{{"w": [{", ".join(cells)}]}}',
}


@pytest.mark.parametrize("form", JSON_FORMS)
@pytest.mark.parametrize("leak", JSON_LEAKS)
def test_leaks_in_numbers_of_json_are_refuted_and_their_twins_are_not(tmp_path, leak, form):
    first, second, are_equal = JSON_LEAKS[leak]
    rng = np.random.default_rng(3)
    cases = [((0.9, 0.1), True), ((0.9, 0.9), False), ((1.0, 0.0), not are_equal)]
    for shares, is_leaky in cases:
        paths = []
        for side, share in zip("xy", shares, strict=True):
            paths.append(tmp_path / f"{side}.{form}")
            paths[-1].write_text(JSON_FORMS[form](choose(first, second)(rng, share)))
        column = None if "bare" in form else "w"
        report = audit_outputs(*paths, column=column, rng=5, **SETTINGS)
        assert bool(report.refuted) is is_leaky, report


@pytest.mark.parametrize("write", ["%.2f", "%g", "%.25g", "%.3e", "%r"])
def test_two_writers_of_json_are_no_leak(tmp_path, write):
    """One side as Python writes it, the other in another format; whole floats are among them."""
    values = np.round(np.random.default_rng(3).exponential(size=(2, ROWS)) * 4) / 4
    paths = [tmp_path / "x.jsonl", tmp_path / "y.jsonl"]
    for path, form, side in zip(paths, ("%r", write), values.tolist(), strict=True):
        path.write_text("".join(f'{{"w": {form % value}}}\n' for value in side))
    assert not audit_outputs(*paths, column="w", rng=5, **SETTINGS).refuted


def write_side(path, cells):
    """Write a table, or JSON of cells in which those that are no numbers there are texts."""
    if path.suffix == ".csv":
        return write_rows(path, cells)

    def quote(cell):
        try:
            json.loads(cell)
        except ValueError:
            return json.dumps(cell)
        return cell

    path.write_text(JSON_FORMS[path.name.removeprefix("x").removeprefix("y")](map(quote, cells)))
    return path


ZEROS = {
    # Shares of -0 per side, and whether only one side spells 0 in two ways.
    "zero once": (0.9, 0.0, True),
    "zero twice": (0.9, 0.1, False),
    "zero never": (1.0, 0.0, False),
}


@pytest.mark.filterwarnings("ignore:the two sides differ in the signs of their zeros")
@pytest.mark.parametrize("names", [
    ("xrows.jsonl", "y.csv"), ("x.csv", "ycolumns.json"), ("xrows.json", "yrows.jsonl"),
])  # fmt: skip
@pytest.mark.parametrize("leak", ["12 digits", "2^60", "padded", "exponent", "words", *ZEROS])
def test_json_is_compared_with_tables_and_with_json(tmp_path, leak, names):
    rng = np.random.default_rng(3)
    first, second, is_found = ZEROS.get(leak, (0.9, 0.1, True))
    for shares, is_leaky in (((first, second), is_found), ((first, first), False)):
        sides = [
            [*choose("-0", "0")(rng, share), "5"] if leak in ZEROS else LEAKS[leak][0](rng, share)
            for share in shares
        ]
        paths = [write_side(tmp_path / name, side) for name, side in zip(names, sides, strict=True)]
        report = audit_outputs(*paths, column="w", rng=5, **SETTINGS)
        assert bool(report.refuted) is is_leaky, report


def test_other_values_of_json_are_no_cells(tmp_path):
    (tmp_path / "x.csv").write_text("w\n1\n2\n")
    for value in ("true", "[1]", '{"a": 1}'):
        (tmp_path / "y.jsonl").write_text(f'{{"w": 1}}\n{{"w": {value}}}\n')
        with pytest.raises(ValueError, match=r"outputs in y.jsonl must be numbers and texts where"):
            audit_outputs(tmp_path / "x.csv", tmp_path / "y.jsonl", column="w", **SETTINGS)
        with pytest.raises(ValueError, match=r"dtype must be left out for column 'w' of y.jsonl"):
            read_outputs(tmp_path / "y.jsonl", "w", Reader(dtype={"w": "text"}))


def test_texts_of_json_are_those_of_a_table(tmp_path):
    """White space around a text and empty texts are none in a table."""
    words = [" a", "", "b\n", "7"]
    table = [["a", None, "b", "7"], "csv"]
    lines = [[" a", None, "b", "7"], "lines"]
    for form in ("rows.jsonl", "rows.json"):
        cells = [*map(json.dumps, words[:3]), "7"]
        path = tmp_path / form
        path.write_text(JSON_FORMS[form](cells))
        for column, kind in (table, lines):
            other = tmp_path / f"y.{'csv' if kind == 'csv' else 'txt'}"
            other.write_text('a\n""\nb\n7\n' if kind == "csv" else " a\n\nb\n7\n")
            report_rows = read_and_align(
                {"outputs": path, "outputs_prime": other}, Request("", 0), [None, None],
                Reader(header="no"),
            )[0]  # fmt: skip
            texts = [row and row.replace("\n", "") for row in report_rows[0].rows.tolist()]
            assert (texts, report_rows[1].rows.tolist()) == (column, column)


def test_one_side_that_spells_numbers_twice_is_refuted(tmp_path):
    rng = np.random.default_rng(3)
    for shares, is_leaky in (((0.9, 0.1), True), ((0.9, 0.9), False), ((0.1, 0.1), False)):
        paths = [
            write_rows(tmp_path / f"{side}.csv", spell_twice(rng, share))
            for side, share in zip("xy", shares, strict=True)
        ]
        report = audit_outputs(*paths, column="w", rng=5, **SETTINGS)
        assert bool(report.refuted) is is_leaky, report
        assert not is_leaky or "w, as written" in str(report.event)
        # One file with labels holds both sides.
        lines = [
            line for path, end in zip(paths, ("x", "x_prime"), strict=True)
            for line in [f"{row};{end}" for row in path.read_text().splitlines()[1:]]
        ]  # fmt: skip
        both = tmp_path / "both.csv"
        both.write_text("w;v;side\n" + "\n".join(lines))
        labelled = audit_outputs(both, column="w", label="side", rng=5, **SETTINGS)
        assert labelled.counts == report.counts


def test_two_writers_of_one_law_are_a_note(tmp_path):
    """`%.2f` against `repr` of one law was refuted at 3.58."""
    rng = np.random.default_rng(3)
    for seed in range(5):
        values = np.round(rng.laplace(size=(2, ROWS)), 2)
        cells = [
            [f"{value:.2f}" for value in values[0]],
            [repr(value) for value in values[1].tolist()],
        ]
        paths = [write_rows(tmp_path / f"{at}.csv", side) for at, side in enumerate(cells)]
        report = audit_outputs(*paths, column="w", rng=seed, **SETTINGS)
        assert not report.refuted
        assert "column 'w' is written in another way on each side" in str(report)


@pytest.mark.parametrize("write", ["%.18e", "%.17g", "%.6f", "%r", "%.3e", "%+.2f"])
def test_what_writers_of_numbers_write_are_numbers(tmp_path, write):
    values = np.random.default_rng(1).laplace(size=2000) * np.logspace(-12, 12, 2000)
    path = tmp_path / "a.csv"
    path.write_text("\n".join(write % value for value in values.tolist()))
    reader = Reader()
    column = read_outputs(path, 0, reader)
    assert reader.tables[0].kinds == ("numbers",)
    assert column.tolist() == [float(write % value) for value in values.tolist()]


def test_a_kind_follows_from_all_cells_of_both_sides(tmp_path, monkeypatch):
    """The last line of one side decides; files are read again with the same kind."""
    monkeypatch.setattr(cell_files, "_HEAD_BYTES", 64)
    monkeypatch.setattr(cell_files, "_SLICE_BYTES", 256)
    rng = np.random.default_rng(2)
    for end, kind in (("1_000", "texts"), ("9007199254740993", "whole numbers"), ("007", "texts")):
        sides = [list(map(str, rng.integers(0, 50, ROWS).tolist())) for _ in range(2)]
        sides[1][-1] = end
        paths = [write_rows(tmp_path / f"{at}.csv", side) for at, side in enumerate(sides)]
        report = audit_outputs(*paths, column="w", rng=1, **SETTINGS)
        assert not report.refuted, report
        assert all(table.kinds[0].startswith(kind) for table in report.files), report.files
        if kind == "texts":
            assert f"line 4,001 of 1.csv has '{end}'" in str(report.files[0])


@pytest.mark.parametrize("name", ["a.csv", *list(JSON_FORMS)[::2]])
def test_dtype_overrules(tmp_path, name):
    path = tmp_path / name
    cells = ["007", "7", "9007199254740993", "", "NA"]
    if name == "a.csv":
        path.write_text("id,v\n" + "".join(f"{cell},1\n" for cell in cells))
    else:
        quoted = ['"007"', "7", "9007199254740993", "null", '"NA"']
        path.write_text(JSON_FORMS[name](quoted).replace('"w"', '"id"'))
    for dtype, column in (
        ("text", ["007", "7", "9007199254740993", None, "NA"]),
        ("whole", [7, 7, 9007199254740993, None, "NA"]),
        ("number", [7.0, 7.0, 9007199254740992.0, None, "NA"]),
    ):
        for form in (dtype, {"id": dtype}, {0: dtype}):
            reader = Reader(dtype=form)
            assert read_outputs(path, "id", reader).tolist() == column
            assert reader.tables[0].kinds[0].endswith("as dtype= asks")
    (tmp_path / "b.csv").write_text("1\n1x\n")
    with pytest.raises(ValueError, match=r"row 2 of column 0 of b\.csv must be a number, got '1x'"):
        read_outputs(tmp_path / "b.csv", None, Reader(dtype="number"))
    with pytest.raises(ValueError, match="dtype must be"):
        Reader(dtype="float")
    np.save(tmp_path / "c.npy", np.ones(3))
    with pytest.raises(ValueError, match="dtype must be None where outputs are no text, such as"):
        read_outputs(tmp_path / "c.npy", None, Reader(dtype="text"))
    (tmp_path / "d.csv").write_text("never\ndaily\nnever\n")
    for dtype in ("number", "whole", "decimal"):
        with pytest.raises(ValueError, match=f"dtype must be 'text' for column 0 .* got '{dtype}'"):
            read_outputs(tmp_path / "d.csv", None, Reader(dtype=dtype))
    with pytest.raises(ValueError, match="dtype must be one of 'id'"):
        read_outputs(path, "id", Reader(dtype={"x": "text"}))
    if name == "a.csv":
        with pytest.raises(ValueError, match=r"dtype must be of a chosen column of a.csv \('id'\)"):
            read_outputs(path, "id", Reader(dtype={"id": "text", 1: "text"}))


def draw_texts(size):
    """Numbers as printers write them, and random digits with exponents to +-330."""
    rng = np.random.default_rng(4)
    values = rng.integers(0, 2**64, size, dtype=np.uint64).view(np.float64)
    values[::2] = rng.laplace(size=len(values[::2])) * 10.0 ** rng.integers(-9, 9, len(values[::2]))
    # Subnormal numbers.
    values[::7] = rng.integers(0, 2**52, len(values[::7])).view(np.float64)
    values = values[np.isfinite(values)]
    formats = ("%r", "%.17g", "%.18e", "%.6f", "%.3e")
    texts = [formats[at % 5] % value for at, value in enumerate(values.tolist())]
    lengths, powers = rng.integers(1, 26, size // 2), rng.integers(-330, 331, size // 2)
    for length, power in zip(lengths.tolist(), powers.tolist(), strict=True):
        digits = str(rng.integers(10**18)) + f"{rng.integers(10**9):09d}"
        texts.append(f"{digits[:1]}.{digits[1:length]}e{power}")
    # Halfway between two neighbours, and just beside.
    for whole in rng.integers(2**52, 2**53, size // 10).tolist():
        texts += [f"{whole}.5", f"{whole}.50000000000000001", f"{whole}.49999999999999999"]
    return texts


@pytest.mark.parametrize("size", [10_000, pytest.param(600_000, marks=pytest.mark.sweep)])
def test_bytes_are_those_of_pythons_float(tmp_path, size):
    """A million random texts in the sweep: 5 printers, 1 to 25 digits, subnormal, halfway."""
    texts = draw_texts(size)
    path = tmp_path / "a.txt"
    path.write_text("\n".join(texts))
    column = read_outputs(path, None, Reader(dtype="number", header="no"))
    assert np.array(column).tobytes() == np.array(list(map(float, texts))).tobytes()


BOMBS = {
    # What stands before zeros, the zeros, and how often.
    "a.csv": (b"1\n", b"0\n"), "b.csv": (b"", b"0"), "c.txt": (b"1\n", b"0"),
    "d.json": (b"[", b"0,"), "e.jsonl": (b"1\n", b"0\n"), "f.jsonl": (b"", b"0"),
    "g.npy": (b"", b"0"), "h.parquet": (b"", b"0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_more_than_memory_is_an_error(tmp_path, monkeypatch, name):
    head, zeros = BOMBS[name]
    path = tmp_path / f"{name}.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(160 // len(zeros)):
            file.write(zeros * 2**20)
    monkeypatch.setattr(opened, "measure_free_memory", lambda: 2.5e7)
    with pytest.raises((MemoryError, ValueError), match=r"memory|MiB long|shorter than"):
        read_outputs(path)


@pytest.mark.parametrize("sep", ["|", " ", "~", ":"])
def test_another_separator_must_be_named(tmp_path, sep):
    rng = np.random.default_rng(5)
    lines = [f"{value:.3f}{sep}{1000 + row}" for row, value in enumerate(rng.normal(size=100))]
    path = tmp_path / "a.csv"
    for head in ([], [f"w{sep}clock"]):
        path.write_text("\n".join([*head, *lines]))
        with pytest.raises(ValueError, match=r"^sep must be given, for nearly all lines of a\.csv"):
            read_outputs(path)
        assert read_outputs(path, 0, Reader(sep=sep)).shape == (100,)
        assert len(read_outputs(path, None, Reader(sep=",", header="no"))) == 100 + len(head)


@pytest.mark.parametrize("cell", ["12:30:05", "2024-01-05 12:30:00", "a b", "never", "3:4 pm"])
def test_dates_times_and_words_are_no_tables(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([cell] * 50))
    assert read_outputs(path).tolist() == [cell] * 50


@pytest.mark.parametrize("title", [
    pytest.param(title, marks=pytest.mark.sweep if i % 5 else ())
    for i, title in enumerate(record_outputs.HALVES)
])  # fmt: skip
def test_halves_of_one_sample_are_not_refuted(title):
    """Significance 1e-6 for each kind of files; the leaks above are the negative control."""
    assert record_outputs.count_refuted_halves(title, 10, 71) <= limit_refuted_halves(10)


@pytest.mark.parametrize(("words", "status"), [
    (["--dtype", "text"], 1), (["--dtype", "id=number"], 0), (["--dtype", "0=whole"], 0),
    (["--dtype", "float"], 2), (["--dtype", "text", "--dtype", "whole"], 2),
    (["--dtype", "id=text", "--dtype", "id=whole"], 2), ([], 1),
])  # fmt: skip
def test_the_command_takes_kinds_of_cells(tmp_path, capsys, words, status):
    rng = np.random.default_rng(6)
    for name, code in (("a", "007"), ("b", "7")):
        cells = rng.choice([code, "8"], 1000)
        (tmp_path / f"{name}.csv").write_text("\n".join(["id", *cells]))
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    usual = ["--rows", "independent", "--claim", "1", "--seed", "1"]
    assert main(["audit-outputs", *files, *usual, *words]) == status
