"""Infinite, extreme and adjacent outputs: refuted, or a note states why not; never an error."""

from __future__ import annotations

import math
import pathlib
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import dpcore
from dpcore import Counts, Pair
from dpcore.attacks.attack import Goal
from dpcore.attacks.bins import place_between
from dpcore.auditing.event_choice import choose_by_stated_ratio
from dpcore.bounds import clopper_pearson
from dpcore.calibration import L2Laplace
from dpcore.mechanisms.declarations import StatedLogRatio
from dpcore.text import words

TRIALS = 2000
UNIT = Pair([0.0], [1.0])
LAWS = {"nine of ten": (0.9, 0.1), "disjoint": (1.0, 0.0)}
NOTED = "rounding explains", "signs of their zeros"
FLOATS = "f2", "f4", "f8", "g", "c8", "c16", pytest.param("G", marks=pytest.mark.sweep)
WHOLE = "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "M8[s]", "m8[s]"
MOST, BIG = 1.7976931348623157e308, 10**400


def list_floats(kind):
    """Two values of each kind of extreme, of one format."""
    one, info = kind(1), np.finfo(kind)
    return [
        *[(info.smallest_subnormal, kind(0)), (info.smallest_subnormal, -info.smallest_subnormal)],
        *[(one, np.nextafter(one, kind(2))), (info.max, -info.max)],
        *[(info.max, np.nextafter(info.max, one)), (kind("inf"), info.max)],
        *[(kind("inf"), -kind("inf")), (-kind("inf"), kind(0)), (kind("inf"), info.max / kind(2))],
        *[(kind("nan"), one), (kind("nan"), kind("inf")), (kind(0), -kind(0))],
    ]


def list_pairs(code):
    dtype = np.dtype(code)
    if dtype.kind == "f":
        return list_floats(dtype.type)
    if dtype.kind == "c":
        pairs = np.array(list_floats(dtype.type(0).real.dtype.type))
        upright = np.zeros(pairs.shape, dtype)
        upright.imag = pairs
        return [*pairs.astype(dtype), *upright[::4]]
    if dtype.kind == "b":
        return [(True, False)]
    whole = np.iinfo("i8" if dtype.kind in "mM" else dtype)
    ends = whole.max, whole.min + (dtype.kind in "mM")
    pairs = [*zip(ends, (ends[0] - 1, ends[1] + 1), strict=True), ends, (5, 6), (ends[0], 1)]
    pairs += [(whole.max // 2 + 1, whole.max // 2 + 2)]
    values = np.array(pairs, "i8" if dtype.kind in "mM" else dtype).astype(dtype)
    return [*values, *([(dtype.type("NaT"), values[0][0])] if dtype.kind in "mM" else [])]


OBJECTS = [
    *[(float(a), float(b)) for a, b in list_floats(np.float64)], (None, 1.0), (math.inf, "a"),
    (2**63, 2**63 + 1), (2**53, 2**53 + 1), (BIG, BIG + 1), (BIG, 1.0), (-BIG, BIG),
    (Fraction(1, 3), Fraction(1, 3) + Fraction(1, BIG)), (Fraction(BIG), Fraction(1)),
    *[(Decimal(text), Decimal(1)) for text in ("1e400", "inf", "nan", "sNaN")],
    (bytearray(b"a"), b"b"), (bytearray(b"a"), bytearray(b"b")), ([bytearray(b"a")], [b"b"]),
    (memoryview(b"a"), b"b"), (complex(math.nan, 1), 1j), (complex(math.inf, 1), 1j),
    ([math.inf], [MOST]), ([math.nan, 1.0], [2.0, 1.0]), ([1.0], [1.0 + 2**-52]),
    ({"a": math.inf}, {"a": MOST}), ({5e-324}, {0.0}), ([2**63], [2**63 + 1]),
    (np.uint64(2**64 - 1), np.uint64(2**64 - 2)), (np.datetime64("NaT"), np.datetime64("2020")),
]  # fmt: skip


def draw(values, share, size, rng):
    """Return the first value with a probability, else the second."""
    return values[(rng.random(size) >= share).astype(int)]


def audit_live(values, shares):
    def mechanism(x, size, rng):
        return draw(values, shares[int(x[0])], size, rng)

    return dpcore.audit(mechanism, UNIT, claim=0.5, trials=TRIALS, rng=1)


def audit_recorded(values, shares):
    rng = np.random.default_rng(3)
    sides = [draw(values, share, 2 * TRIALS, rng) for share in shares]
    return dpcore.audit_outputs(*sides, rows="independent", claim=0.5, rng=1)


def find_fault(report, shares, dtype):
    """Return what is wrong with a report on two values; an empty text if nothing is."""
    n = report.counts.n
    hits = [round(n * share) for share in shares]
    best = clopper_pearson(Counts(hits[0], n, hits[1], n))
    if report.refuted and report.epsilon_lower >= 0.75 * best:
        return ""
    floats = getattr(report, "floating_point", None)
    if floats is not None and floats.epsilon_lower >= 0.75 * best:
        return ""
    texts = NOTED + (("compared as float64",) if np.dtype(dtype).char in "gG" else ())
    noted = any(text in note for note in report.notes for text in texts)
    return "" if noted else f"{report.epsilon_lower} of {best}, notes {report.notes}"


def list_faults(pairs, dtype, laws=LAWS):
    faults = []
    for pair in pairs:
        values = np.empty(2, dtype)
        values[0], values[1] = pair
        for law, shares in laws.items():
            for run in (audit_live, audit_recorded):
                if run is audit_recorded and law == "disjoint" and pair[0] is None:
                    continue  # A side where every output is missing is refused by name.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", dpcore.errors.AssumptionWarning)
                    fault = find_fault(run(values, shares), shares, dtype)
                faults += [(pair, law, run.__name__, fault)] if fault else []
    return faults


@pytest.mark.parametrize("code", FLOATS + WHOLE)
def test_extreme_numbers_of_every_format_are_refuted_or_noted(code):
    assert list_faults(list_pairs(code), code) == []


@pytest.mark.parametrize("pair", OBJECTS, ids=lambda pair: repr(pair).partition(" at 0x")[0][:40])
def test_extreme_objects_are_refuted_or_noted(pair):
    assert list_faults([pair], object) == []


def test_the_grid_reports_laws_that_do_not_differ():
    faults = list_faults([(math.inf, 1.0)], "f8", {"one law": (0.9, 0.9)})
    assert [fault[2] for fault in faults] == ["audit_live", "audit_recorded"]


@pytest.mark.parametrize(
    ("low", "high"),
    [(-MOST, MOST), (-1.7e308, 1.7e308), (5e-324, 1e-323), (1.0, 1.0 + 2**-52), (0.0, 5e-324),
     (-5e-324, 0.0), (np.nextafter(MOST, 0.0), MOST), (-MOST, 0.0)],
)  # fmt: skip
def test_a_threshold_lies_above_the_low_end_of_its_gap_and_not_above_the_high_end(low, high):
    assert low < place_between(low, high) <= high < math.inf


def test_a_threshold_in_an_ordinary_gap_has_the_bits_of_its_formula():
    rng = np.random.default_rng(5)
    low, high = np.sort(rng.normal(size=(2, 10**5)) * 10.0 ** rng.integers(-300, 300, 10**5), 0)
    expected = low + 0.381966011250105 * (high - low)
    np.testing.assert_array_equal(place_between(low, high), expected)


VECTORS = words.Embedding([f"w{i}" for i in range(40)], np.arange(40.0)[:, None] ** 1.1)
PUBLIC = words.SanTextPlus(VECTORS, 1.0, VECTORS.words[:20], p=0.5)
INFINITE = {
    "CusText": (words.CusText(VECTORS, 1.0, k=5), "w0", "w30"),
    "SanTextPlus": (PUBLIC, "w30", "w0"),
}
"""Mechanisms of an infinite loss, by class."""
FINITE = {
    "MetricExponential": words.SanText, "SanText": words.SanText, "TEM": words.TEM,
    "MetricLaplaceOnLine": words.MetricLaplace, "VickreyOnLine": words.Vickrey,
}  # fmt: skip
"""Classes whose densities are above 0 everywhere; `L2Laplace` is another one."""


def list_stating_classes():
    """All classes of the package that state log ratios, and the files that define the method."""
    root = pathlib.Path(dpcore.__file__).parent
    files = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "def log_ratio(self" in path.read_text(encoding="utf-8")
    }
    bases = {L2Laplace, *(kind for kind in words.SanText.__mro__ if "log_ratio" in vars(kind))}
    names, stack = set(), list(bases)
    while stack:
        kind = stack.pop()
        names.add(kind.__name__)
        stack += kind.__subclasses__()
    return names, files


def test_the_classes_that_state_log_ratios_are_all_audited_here():
    names, files = list_stating_classes()
    assert names == {*INFINITE, *FINITE, "L2Laplace", "TableMechanism"}
    assert files == {"calibration/pure.py", "text/words/mechanism.py"}


@pytest.mark.parametrize("name", INFINITE)
@pytest.mark.parametrize("turned", [False, True])
def test_a_pair_of_infinite_stated_loss_is_refuted(name, turned):
    mechanism, *inputs = INFINITE[name]
    pair = mechanism.pair(*(reversed(inputs) if turned else inputs))
    assert mechanism.loss(pair) == math.inf
    report = dpcore.audit(mechanism, pair, claim=0.1, trials=5000, rng=1)
    assert report.refuted
    assert report.epsilon_lower * pair.distance > 4.0
    assert dpcore.Audit.from_json(report.to_json()).event == str(report.event)


@pytest.mark.parametrize("name", FINITE)
def test_a_pair_of_a_stated_loss_of_thousands_is_refuted(name):
    mechanism = FINITE[name](VECTORS, 1000.0)
    pair = mechanism.pair("w0", "w39")
    report = dpcore.audit(mechanism, pair, claim=0.05, trials=5000, rng=1)
    assert mechanism.loss(pair) > 10**3 or isinstance(mechanism, words.TEM)
    assert report.refuted
    assert report.epsilon_lower * pair.distance > 7.0


def test_l2_laplace_of_a_huge_loss_is_refuted():
    report = dpcore.audit(L2Laplace(1e-3), Pair([0.0, 0.0], [5.0, 0.0]), claim=1.0, trials=5000)
    assert report.refuted


class Stated:
    """Rows of 2,000 values, of which a rare half only one input has; the ratio is stated."""

    def __init__(self, owner):
        self.owner = owner

    def __call__(self, x, size, rng):
        own = (x[0] == self.owner) & (rng.random(size) < 0.03)
        return np.where(own, rng.integers(1000, 2000, size), rng.integers(0, 1000, size))

    def log_ratio(self, outputs, pair):
        sign = 1.0 if pair.x[0] == self.owner else -1.0
        usual = -sign * math.log(1.0 / 0.97)
        return np.where(np.asarray(outputs) >= 1000, sign * math.inf, usual)


@pytest.mark.parametrize(("owner", "text"), [(0.0, "is inf"), (1.0, "is -inf")])
def test_an_infinite_ratio_of_a_function_is_an_event_above_every_finite_one(owner, text):
    score = dpcore.audit(Stated(owner), UNIT, claim=1.0, trials=5000, rng=1)
    assert score.refuted
    score = StatedLogRatio(Stated(owner), UNIT)
    choice = choose_by_stated_ratio(score, tuple(map(score, sides_of(owner))), Goal(5000))
    assert str(choice.event) == f"log ratio that the mechanism states {text}"
    assert (
        choice.event._decide_from_scores(np.array([-math.inf, -1e9, 0.0, 1e9, math.inf])).sum() == 1
    )


def sides_of(owner):
    rng = np.random.default_rng(2)
    return tuple(Stated(owner)(np.array([end]), 2000, rng) for end in (0.0, 1.0))


@pytest.mark.parametrize("values", [(2**63, 2**63 + 1), (2**64 - 1, 0), (2**63 - 1, 2**63)])
def test_whole_numbers_of_64_bits_in_files_are_read_exactly(tmp_path, values):
    rng, paths = np.random.default_rng(4), []
    for share in (0.9, 0.1):
        paths.append(tmp_path / f"{share}.parquet")
        column = draw(np.array(values, "u8"), share, 4000, rng)
        parquet.write_table(pyarrow.table({"count": column}), paths[-1])
    report = dpcore.audit_outputs(*paths, rows="independent", claim=0.5, rng=1)
    assert report.refuted
    assert report.epsilon_lower > 1.5


def test_adjacent_numbers_of_a_text_file_keep_their_digits(tmp_path):
    rng, paths = np.random.default_rng(4), []
    for share in (0.9, 0.1):
        paths.append(tmp_path / f"{share}.csv")
        rows = draw(np.array([2**60, 2**60 + 1]), share, 2000, rng).tolist()
        paths[-1].write_text("count\n" + "\n".join(map(str, rows)))
    report = dpcore.audit_outputs(*paths, rows="independent", claim=1.0, rng=1)
    assert report.refuted
    assert report.files[0].kinds == (
        "whole numbers of 19 digits, which are read digit by digit, too",
    )


@pytest.mark.parametrize("scale", [MOST, 1e-310, 5e-324])
def test_noise_layers_of_extreme_numbers_are_inspected(scale):
    def layer(x, size, rng):
        return rng.choice([-scale, scale], (size, 3))

    for x in (np.zeros(3), np.full(3, MOST)):
        assert dpcore.structure.inspect(layer, x, rng=1, clean=False).dim == 3
