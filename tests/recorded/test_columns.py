"""Columns of two sides: matched by name in every format; units and zones; many columns."""

from __future__ import annotations

import json
import warnings
from datetime import UTC

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

import dpcore
from dpcore import OutputsAudit, audit_outputs
from dpcore.cli import main
from dpcore.recorded.sides import read_outputs

SETTINGS = {"rows": "independent", "claim": 0.5, "rng": 1}
SIZE = 1500


def draw(seed, names=("v", "w"), size=SIZE, shift=0.0):
    """Columns with different laws; the first is shifted."""
    rng = np.random.default_rng(seed)
    columns = {name: 9.0 * at + rng.normal(size=size) for at, name in enumerate(("v", "w", "u"))}
    return {name: columns[name] + shift * (name == "v") for name in names}


def write_json_lines(columns, path):
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    path.write_text(
        "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    )


def write_json_objects(columns, path):
    path.write_text(json.dumps(pd.DataFrame(columns).to_dict("records")))


def make_fields(columns):
    return np.array(pd.DataFrame(columns).to_records(index=False))


FILES = {
    "csv": lambda columns, path: pd.DataFrame(columns).to_csv(path, index=False),
    "tsv": lambda columns, path: pd.DataFrame(columns).to_csv(path, index=False, sep="\t"),
    "json": lambda columns, path: path.write_text(
        json.dumps({name: values.tolist() for name, values in columns.items()})
    ),
    "objects.json": write_json_objects,
    "jsonl": write_json_lines,
    "npz": lambda columns, path: np.savez(path, **columns),
    "npy": lambda columns, path: np.save(path, make_fields(columns)),
    "parquet": lambda columns, path: parquet.write_table(pyarrow.table(columns), path),
}
FRAMES = {"pandas": pd.DataFrame, "pyarrow": pyarrow.table, "fields": make_fields}
FORMATS = [*FILES, *FRAMES, "polars"]


@pytest.fixture
def make(tmp_path):
    def put(columns, kind, name="a"):
        if kind == "polars":
            return pytest.importorskip("polars").DataFrame(columns)
        if kind in FRAMES:
            return FRAMES[kind](columns)
        FILES[kind](columns, tmp_path / f"{name}.{kind}")
        return tmp_path / f"{name}.{kind}"

    return put


def audit(*sides, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit_outputs(*sides, **SETTINGS | options)


def list_read(report):
    return [text.partition("; SHA")[0] for label, text in report.lines() if label == "read from"]


# Names.


@pytest.mark.parametrize("kind", FORMATS)
def test_the_second_table_takes_the_order_of_the_first(make, kind):
    first = make(draw(1), kind)
    for shift, refuted in ((0.0, False), (1.5, True)):
        swapped = make(draw(2, ("w", "v"), shift=shift), kind, f"b{shift}")
        same = make(draw(2, shift=shift), kind, f"c{shift}")
        choices = ["*", [0, 1], "0-1", "[vw]", ["v", "w"]]
        choices += [None] if kind in ("fields", "npy") else []
        for column in choices:
            report = audit(first, swapped, column=column)
            assert report.refuted is refuted, column
            assert report.counts == audit(first, same, column=column).counts
        if kind not in ("fields", "npy"):
            assert "columns 'v', 'w' of 'w', 'v'" in list_read(report)[1]
    # A number is that of a column of the first table.
    one = audit(first, make(draw(2, ("w", "v")), kind, "d"), column=1)
    assert (one.refuted, one.files[1].columns) == (False, ("w",))


@pytest.mark.parametrize("kind", FORMATS)
def test_other_names_are_an_error_or_a_missing_key(make, kind):
    first, second = make(draw(1), kind), make(draw(2, ("u", "v")), kind, "b")
    if kind in ("jsonl", "objects.json"):
        assert audit(first, second, column="*").refuted
    else:
        with pytest.raises(ValueError, match=r"outputs_prime must .* got 'w' only in .*; 'u' only"):
            audit(first, second, column="*")
        with pytest.raises(ValueError, match=r"column must be one of 'u', 'v' in .*, got 'w'"):
            audit(first, second, column=1)
    for options in ({"column": "v"}, {"column": 0}, {"exclude": ["w", "u"]}, {"exclude": "[wu]"}):
        assert audit(first, second, **options).refuted is False
    with pytest.raises(ValueError, match=r"exclude must be one of 'v', 'w'.* got 'x'"):
        audit(first, second, column="v", exclude="x")


def write_keys(path, seed, share, names=("v", "w")):
    """JSON lines with an optional key, in a share of the lines."""
    rng = np.random.default_rng(seed)
    values = rng.integers(3, size=(SIZE, 2)).tolist()
    rows = [dict(zip(names, row, strict=True)) for row in values]
    for row in rows:
        if rng.random() >= share:
            del row["w"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("shares", "refuted"), [((0.3, 0.3), 0), ((0.3, 0.0), 1), ((0, 0.3), 1)])
def test_optional_keys_are_missing_where_no_line_has_them(tmp_path, shares, refuted):
    paths = [
        write_keys(tmp_path / f"{name}.jsonl", seed, share, names)
        for name, seed, share, names in zip(
            "ab", (1, 2), shares, (["v", "w"], ["w", "v"]), strict=True
        )
    ]
    assert audit(*paths, column="*").refuted is bool(refuted)
    if refuted:
        with pytest.raises(ValueError, match="at least one output that is not missing"):
            audit(*paths, column="w")
    with pytest.raises(ValueError, match=r"column must be one of 'v', 'w'"):
        audit(*paths, column="typo")


def test_equal_names_are_matched_by_occurrence(tmp_path):
    for name, head in (("a", "y,y,z"), ("b", "y,y,z"), ("c", "z,y,y")):
        values = 9.0 * np.arange(3) + np.random.default_rng(ord(name)).normal(size=(SIZE, 3))
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",", header=head, comments="")
    same, other = ((tmp_path / "a.csv", tmp_path / f"{name}.csv") for name in "bc")
    assert audit(*same, column="*").refuted is False
    assert audit(*same, exclude="z").files[0].columns == ("y", "y")
    for column in ("*", 0):
        with pytest.raises(ValueError, match=r"repeated|several columns of c.csv"):
            audit(*other, column=column)


@pytest.mark.parametrize("kind", FORMATS)
def test_without_names_columns_are_matched_by_position(make, kind):
    values = np.column_stack([*draw(2).values()])
    for sides in ((make(draw(1), kind), values), (values, make(draw(1), kind))):
        report = audit(*sides, column="*")
        assert report.refuted is False
        assert "columns matched by position" in list_read(report)[0]
        assert OutputsAudit.from_json(report.to_json()).files == report.files
    assert "position" not in str(list_read(audit(sides[1], make(draw(2), kind, "c"), column="*")))


def test_files_without_a_header_are_matched_by_position(make, tmp_path):
    np.savetxt(tmp_path / "b.csv", np.column_stack([*draw(2).values()]), delimiter=",")
    report = audit(make(draw(1), "csv"), tmp_path / "b.csv", column=[1, 0])
    assert report.refuted is False
    assert all("columns matched by position" in text for text in list_read(report))
    with pytest.raises(ValueError, match=r"column must be a number, for b.csv has no names"):
        audit(make(draw(1), "csv"), tmp_path / "b.csv", column="v")


def test_groups_are_matched_by_name(make):
    def with_groups(columns, start, names):
        columns["run"] = np.arange(start, start + SIZE)
        return {name: columns[name] for name in names}

    first = make(with_groups(draw(1), 0, ["v", "run", "w"]), "csv")
    second = make(with_groups(draw(2), SIZE, ["w", "v", "run"]), "csv", "b")
    for groups in ("run", 1):
        report = audit(first, second, groups=groups, column="*")
        assert (report.refuted, report.groups) == (False, (SIZE, SIZE))
        assert audit(first, second, groups=groups, exclude="run").counts == report.counts


def test_keys_of_mappings_in_another_order_are_a_note():
    rows = [[dict(zip(c, r, strict=True)) for r in zip(*c.values(), strict=True)]
            for c in (draw(1), draw(2, ("w", "v")), draw(2, ("w", "v"), shift=1.5))]  # fmt: skip
    report = audit(rows[0], rows[1])
    assert (report.refuted, "whoever sees the order" in report.notes[0]) == (False, True)
    assert audit(rows[0], rows[2]).refuted
    # An order that changes within a side is a part of each output.
    rng = np.random.default_rng(3)
    mixed = [[row if rng.random() < share else dict(reversed(row.items())) for row in side]
             for side, share in zip(rows[:2], (0.9, 0.9), strict=True)]  # fmt: skip
    assert audit(*mixed).refuted


# Units and zones.


def draw_times(seed, kind="M8", shift=0, size=SIZE):
    steps = np.random.default_rng(seed).integers(10**6, size=size) + shift
    return steps.astype("m8[ms]") + (np.datetime64("2024-01-01", "ms") if kind == "M8" else 0)


def write_npz(times, path):
    np.savez(path, t=times)
    return path


TIMES = {
    "numpy": lambda times, path: times,
    "fields": lambda times, path: make_fields({"t": times}),
    "npy": lambda times, path: np.save(path, times) or path,
    "npz": write_npz,
    "pandas": lambda times, path: pd.DataFrame({"t": times}),
    "series": lambda times, path: pd.Series(times),
    "pyarrow": lambda times, path: pyarrow.table({"t": times}),
    "parquet": lambda times, path: parquet.write_table(pyarrow.table({"t": times}), path) or path,
    "polars": lambda times, path: pytest.importorskip("polars").DataFrame({"t": times}),
    "mixed": lambda times, path: pd.DataFrame({"t": times, "y": 1.5}),
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("letter", ["M8", "m8"])
def test_times_of_two_units_are_compared_in_the_finer(tmp_path, kind, letter):
    for shift, refuted in ((0, False), (10**6, True)):
        sides = [draw_times(1, letter), draw_times(2, letter, shift)]
        for units in (("us", "ns"), ("ns", "us"), ("ns", "ns")):
            values = [
                side.astype(f"{letter}[{unit}]") for side, unit in zip(sides, units, strict=True)
            ]
            ends = ".npy" if kind == "npy" else ".npz" if kind == "npz" else ".parquet"
            made = [TIMES[kind](one, tmp_path / f"{at}{ends}") for at, one in enumerate(values)]
            report = audit(*made, **({"column": "*"} if kind == "mixed" else {}))
            assert report.refuted is refuted, (units, shift)
            notes = [note for note in report.notes if "equal times are counted as one" in note]
            assert len(notes) == (units[0] != units[1])
            assert not notes or f"64[{units[0]}] on x" in notes[0]


ZONED = {
    "list": lambda times, zone: list(pd.Series(times).dt.tz_localize(zone)),
    "datetimes": lambda times, zone: [
        one.replace(tzinfo=zone and UTC) for one in times.tolist()
    ],
    "arrow": lambda times, zone: pd.DataFrame(
        {"t": pd.Series(times, dtype=pd.ArrowDtype(pyarrow.timestamp("us"))).dt.tz_localize(zone)}
    ),
    "pandas": lambda times, zone: pd.DataFrame({"t": pd.Series(times).dt.tz_localize(zone)}),
    "series": lambda times, zone: pd.Series(times).dt.tz_localize(zone),
    "pyarrow": lambda times, zone: pyarrow.table(
        {"t": pyarrow.array(times).cast(pyarrow.timestamp("us", zone))}
    ),
    "polars": lambda times, zone: pytest.importorskip("polars").DataFrame({"t": times})
    .to_series().dt.replace_time_zone(zone),
}  # fmt: skip


@pytest.mark.parametrize("kind", ZONED)
def test_a_zone_on_one_side_is_a_note(kind):
    for shift, refuted in ((0, False), (10**6, True)):
        values = [draw_times(1).astype("M8[us]"), draw_times(2, shift=shift).astype("M8[us]")]
        for zones, notes in (((None, "UTC"), 1), (("UTC", None), 1), (("UTC", "UTC"), 0)):
            report = audit(*(ZONED[kind](*each) for each in zip(values, zones, strict=True)))
            assert report.refuted is refuted, zones
            assert sum("us, UTC] on x" in note for note in report.notes) == notes
    # A frame against an array.
    assert "us, UTC]" in str(audit(ZONED[kind](values[0], "UTC"), values[1]).notes)


def test_instants_of_two_zones_are_compared_in_utc():
    series = [pd.Series(draw_times(seed)).dt.tz_localize("UTC") for seed in (1, 2)]
    series[1] = series[1].dt.tz_convert("Europe/Berlin")
    report = audit(*series)
    assert (report.refuted, "Europe/Berlin" in str(report.notes)) == (False, True)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_missing_times_are_outputs(zone):
    frames = []
    for seed, share in ((1, 0.3), (2, 0.3), (3, 0.8)):
        times = draw_times(seed).astype("M8[us]" if seed == 1 else "M8[ns]")
        times[np.random.default_rng(seed).random(SIZE) < share] = "NaT"
        frames.append(pd.DataFrame({"t": pd.Series(times).dt.tz_localize(zone)}))
    assert audit(*frames[:2]).refuted is False
    assert audit(frames[0], frames[2]).refuted


@pytest.mark.parametrize(
    "make_rows", [lambda times: times, lambda times: make_fields({"t": times})]
)
def test_the_order_of_bytes_is_no_part_of_a_time(make_rows):
    rows = make_rows(draw_times(1))
    swapped = make_rows(draw_times(2))
    report = audit(rows, swapped.astype(swapped.dtype.newbyteorder(">")))
    assert (report.refuted, report.notes) == (False, ())


@pytest.mark.parametrize("is_first", [True, False])
def test_times_that_the_finer_unit_cannot_hold_are_an_error(is_first):
    late, times = draw_times(1).astype("M8[s]"), draw_times(2).astype("M8[ns]")
    late[7] = "9999-01-01"
    sides, name = ((late, times), "outputs") if is_first else ((times, late), "outputs_prime")
    with pytest.raises(
        ValueError, match=rf"^{name} must hold times that fit datetime64\[ns\].*9999"
    ):
        audit(*sides)
    with pytest.raises(TypeError, match="outputs_prime must be times of the type timedelta64"):
        audit(draw_times(1, "m8").astype("m8[D]"), np.arange(SIZE).astype("m8[M]"))


UNITS = {"datetimes": "M8", "spans": "m8", "rows": "M8", "mappings": "M8"}


@pytest.mark.parametrize("kind", UNITS)
def test_units_are_no_events_of_repeat(kind):
    def answer(x, rng):
        step = np.timedelta64(int(rng.integers(10**6)) + int(x[1] * 10**5), "us")
        time = (step if kind == "spans" else np.datetime64("2024-01-01", "us") + step).astype(
            f"{UNITS[kind]}[{'us' if x[0] else 'ns'}]"
        )
        return [time] if kind == "rows" else {"t": time} if kind == "mappings" else time

    for shift, refuted in ((0.0, False), (4.0, True)):
        pair = np.array([0.0, 0.0]), np.array([1.0, shift])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = dpcore.audit(dpcore.repeat(answer), pair=pair, claim=0.5, trials=2000, rng=1)
        assert bool(report.refuted) is refuted, report
        is_named = "whoever sees the" in str(report.notes)
        assert is_named or kind in ("rows", "mappings")


# Many columns.


@pytest.mark.parametrize("kind", FORMATS)
def test_patterns_ranges_and_exclusions(make, kind):
    columns = {"id": np.arange(40) * 2, "o1": np.arange(40.0), "o2": np.ones(40), "x": np.zeros(40)}
    sides = [make(columns, kind, name) for name in "ab"]
    for options, names in (
        ({"column": "o*"}, ("o1", "o2")), ({"column": "1-2"}, ("o1", "o2")),
        ({"column": ["2-3", "o1"]}, ("o2", "x", "o1")), ({"column": "o[!2]"}, ("o1",)),
        ({"exclude": "id"}, ("o1", "o2", "x")), ({"exclude": [0, "x"]}, ("o1", "o2")),
        ({"exclude": "0-1"}, ("o2", "x")), ({"column": "?*", "exclude": "o*"}, ("id", "x")),
        ({"column": ["o*", "*1"]}, ("o1", "o2")), ({"column": ["o1", "o2"], "exclude": 1}, ("o2",)),
    ):  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dpcore.recorded.run.refuse_row_numbers", lambda *sides: None)
            patch.setattr("dpcore.recorded.run._refuse_same_outputs", lambda *sides: None)
            assert audit(*sides, **options).files[0].columns == names, options


@pytest.mark.parametrize(("options", "words"), [
    ({"column": "q*"}, r"column must be one of 'a', 'b' in a.csv, got 'q\*'"),
    ({"column": "1-7"}, r"column must be .*, got 7"),
    ({"column": "1-0"}, r"column must be .*, got 0"),
    ({"exclude": "q*"}, r"exclude must be one of 'a', 'b' in a.csv, got 'q\*'"),
    ({"exclude": 2}, "exclude must be .*, got 2"),
    ({"exclude": "1-2"}, "exclude must be .*, got 2"),
    ({"exclude": "*"}, r"exclude must be some of the columns of a.csv, not all, got '\*'"),
    ({"column": "a", "exclude": "a"}, "exclude must be some of the columns"),
    ({"exclude": []}, "exclude must be at least one column"),
    ({"exclude": 1.5}, "exclude must be a name or number"),
])  # fmt: skip
def test_bad_choices_name_the_argument_and_the_columns(tmp_path, options, words):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("a,b\n" + f"1.5,{ord(name)}\n" * 9)
    with pytest.raises((ValueError, TypeError), match=words):
        audit(tmp_path / "a.csv", tmp_path / "b.csv", **options)


def test_a_column_of_that_very_name_wins(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("*,0-1,o*,o2\n1,2,3,4\n5,6,7,8\n")
    for place, name in enumerate(("*", "0-1", "o*")):
        assert read_outputs(path, name).tolist() == [1.0 + place, 5.0 + place]


def test_a_range_is_no_name_that_makes_a_row_a_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("never,daily\nnever,weekly\ndaily,daily\n")
    assert read_outputs(path, "0-1").tolist()[0] == ["never", "daily"]


def test_clocks_are_refused_in_patterns_and_exclusions():
    start = np.cumsum(np.random.default_rng(1).uniform(1, 2, size=2 * SIZE))
    frames = [pd.DataFrame({"time": part} | draw(seed)) for seed, part in
              enumerate(np.split(start, 2))]  # fmt: skip
    for options in ({"column": "*"}, {"column": "[tvw]*"}, {"column": "0-2"}, {"exclude": "w"}):
        with pytest.raises(ValueError, match="time"):
            audit(*frames, **options)
    assert audit(*frames, exclude="time").refuted is False


def test_exclude_on_the_command_line(make, capsys):
    paths = [make(draw(seed) | {"id": np.arange(SIZE)}, "csv", f"{seed}") for seed in (1, 2)]
    options = ["--rows", "independent", "--claim", "1", "--seed", "1"]
    for choice in (["--exclude", "id"], ["--column", "0-1"], ["--exclude", "2", "--column", "*"]):
        assert main(["audit-outputs", *map(str, paths), *options, *choice]) == 0
        assert "columns 'v', 'w' of" in capsys.readouterr().out
