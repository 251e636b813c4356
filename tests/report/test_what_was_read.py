"""What a report says of the reading of outputs: how much, what is inside the event, in words."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

import dpcore
from dpcore import Audit, audit_outputs
from dpcore.attacks import candidates
from dpcore.report.page import make_page

ANSWERS = np.array(["never", "weekly", "daily"])
FIELDS = [f"question_{number:02d}" for number in range(12)]


def draw_answers(answer, size, rng, kept=0.8):
    rows = ANSWERS[rng.integers(3, size=(size, len(FIELDS)))]
    rows[rng.random(size) < kept, 7] = answer
    return [dict(zip(FIELDS, row, strict=True)) for row in rows.tolist()]


def audited(mechanism=draw_answers, pair=("daily", "never"), **more):
    return dpcore.audit(mechanism, pair, **{"claim": 1.0, "trials": 2000, "rng": 1, **more})


@pytest.mark.parametrize(
    ("make", "left_out"),
    [
        (lambda i: {j % 3000 for j in range(7 * i, 7 * i + 40)}, 3000 - 1024),
        (lambda i: "".join(chr(256 + (i + j) % 100) for j in range(9)), 100 - 64),
        (lambda i: [f"word {j % 2000}" for j in range(5 * i, 5 * i + 30 + i % 2)], 2000 - 1024),
    ],
    ids=["members of sets", "letters", "members of lists"],
)
def test_what_is_left_out_at_one_place_is_counted(make, left_out):
    outputs = np.empty(2000, object)
    outputs[:] = [make(i) for i in range(2000)]
    read = candidates.parts_of(outputs, outputs, "outputs")[1]
    assert read.found - read.compared >= left_out
    assert candidates.parts_of(outputs[:9], outputs[:9], "outputs")[1].is_whole


def test_a_report_says_that_all_was_read():
    report = audited()
    assert report.read.is_whole
    assert report.read.found == report.read.compared > len(FIELDS)
    said = f"all {report.read.found:,} parts, in {report.read.outputs:,} pilot outputs a side"
    assert f"  read         {said}\n" in str(report)
    assert said in make_page(report)
    assert said in report._repr_html_()
    assert json.loads(report.to_json())["read"]["found"] == report.read.found
    assert Audit.from_json(report.to_json()).read == report.read


def test_what_is_left_out_is_counted_and_said(monkeypatch):
    whole = audited().read.found
    monkeypatch.setattr(candidates, "MOST_PARTS", 20)
    report = audited()
    assert (report.read.found, report.read.compared) == (whole, 20)
    assert not report.read.is_whole
    assert f"20 of {whole:,} parts" in str(report)


def test_the_middle_of_a_long_text_is_left_out_and_said():
    def texts(x, size, rng):
        return dpcore.mechanisms.answers.to_object_array(
            ["".join(row) for row in rng.choice(["a", "b"], size=(size, 3000)).tolist()]
        )

    report = audited(texts, trials=200)
    assert report.read.found - report.read.compared == 3000 - 2 * 1024


def test_outputs_inside_the_event_are_shown_with_their_counts():
    def word(answer, size, rng):
        return np.where(rng.random(size) < 0.8, answer, ANSWERS[rng.integers(3, size=size)])

    report = audited(word, trials=20_000)
    assert str(report.event) in ('output is "daily"', 'output is "never"')
    (one,) = report.inside
    assert one.text in ("'daily'", "'never'")
    assert max(one.k, one.k_prime) > 10 * min(one.k, one.k_prime) > 0
    assert f"  inside       {one.text} ({one.k:,} on x, {one.k_prime:,} on x')\n" in str(report)
    assert Audit.from_json(report.to_json()).inside == report.inside


def test_a_shown_output_is_cut_and_at_most_five_are_shown():
    report = audited()
    assert len(report.inside) == 5
    assert all(len(one.text) <= 80 for one in report.inside)
    # Distinct outputs, though cut they may look alike.
    assert len({one.text for one in report.inside}) <= 5


def test_without_source_no_output_is_shown():
    report = audited(source=False)
    assert report.inside == ()
    assert "inside" not in str(report)
    assert report.counts == audited().counts
    rng = np.random.default_rng(1)
    sides = [draw_answers(answer, 2000, rng) for answer in ("daily", "never")]
    recorded = partial(audit_outputs, *sides, rows="independent", claim=1.0, rng=1)
    assert len(recorded().inside) == 5
    assert recorded(source=False).inside == ()
    assert "  read         all " in str(recorded())


def test_real_numbers_that_do_not_repeat_are_not_shown():
    report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
    assert report.inside == ()
    # A single number needs no word on what was read.
    assert "  read " not in str(report)


def bits(x, size, rng):
    rest = rng.integers(2**40, size=size) & ~(1 << 37)
    flips = rng.random(size) < 0.1
    return rest | (np.where(flips, 1 - x, x) << 37)


def keyed(x, size, rng):
    towns = [f"town_{number:02d}" for number in range(30)]
    return [
        {town: 1 for town in [*rng.choice(towns, 20, False).tolist(), "great" if x else "small"]}
        for _ in range(size)
    ]


@pytest.mark.parametrize(
    ("mechanism", "pair", "words"),
    [
        (
            draw_answers, ("daily", "never"),
            ('key "question_07" is "daily"', 'key "question_07" is "never"'),
        ),
        (bits, (1, 0), ("bit 37 is 1", "bit 37 is 0")),
        (keyed, (1, 0), ('key "great" is there', 'key "small" is there')),
    ],
)  # fmt: skip
def test_an_event_is_told_in_the_words_of_the_user(mechanism, pair, words):
    assert str(audited(mechanism, pair, trials=20_000).event) in words
