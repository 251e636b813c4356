"""The experiment on masked names."""

from __future__ import annotations

from functools import partial

from shared_experiments import run_experiment
from shared_extras import data

from dpcore.experiments.redaction_names import KINDS, POLICIES, TOPIC, list_masked

run = partial(run_experiment, "redaction-names", quick=True)


def test_a_masked_name_hides_where_nothing_else_speaks_of_the_person():
    result = run()
    assert result.targets == ("Alder", "Birk", TOPIC)
    for name in result.targets[:-1]:
        (clear,), (masked,) = (result.of(policy, "words", name) for policy in POLICIES[::2])
        # Without masks the name is there to read.
        assert clear.value[0] > 0.95
        assert clear.beats_floor
        # Generated sentences are the same for all people: over ten seeds -.31 to .02 above.
        assert masked.value[0] < masked.floor + 0.25
        assert not masked.beats_floor
        assert masked.value[0] < clear.value[0] - 0.2


def test_the_table_has_a_row_for_every_attacker():
    table = run().table()
    assert [label for _, _, label, _, _ in KINDS if f"\n{label} " not in table] == []


def test_the_topic_stays():
    for policy in POLICIES:
        # Over ten seeds .92 to 1.
        assert run().mean(policy, "words", TOPIC) > 0.75
        (cell,) = run().of(policy, "words", TOPIC)
        assert cell.beats_floor


def test_what_is_masked_is_counted():
    nothing, first, both = run().maskings
    assert (nothing.words, nothing.texts, nothing.named) == (0.0, 0.0, (1.0,) * 5)
    assert first.named == (0.0, 0.0, 0.0, 1.0, 1.0)
    assert both.named == (0.0,) * 5
    assert 0.0 < first.words < both.words < 0.1
    # Every generated text names someone.
    assert both.texts == 1.0
    assert list_masked(run(), first) == ["Alder", "Birk", "Cole"]
    assert run().cased == 1.0


def test_the_record_the_table_and_the_picture():
    result = run()
    record = result.to_dict()
    assert len(record["cells"]) == len(result.cells) == 2 * 3 * 3
    assert record["maskings"][0]["policy"] == "none"
    text = result.table()
    assert "generated texts: give --data" in text
    assert "100 % of the texts have capital letters" in text
    assert "With first names and people masked, 0 of 2 people" in text
    assert max(map(len, text.splitlines())) < 160
    picture = result.plot()
    assert "Alder, Birk, Cole" in picture.get_suptitle()
    people, topic = picture.axes
    assert [label.get_text() for label in people.get_xticklabels()] == ["Alder", "Birk"]
    assert "accuracy" in topic.get_ylabel()


def test_other_splits_are_new_ones():
    result = run(seeds=2, trials=300)
    first, second = result.of("none", "words", TOPIC)
    assert (first.number, second.number) == (0, 1)
    assert first != second
    assert "mean of 2 splits" in result.table()


def test_real_news():
    result = run(data=str(data()))
    assert list_masked(result, result.maskings[1]) == ["Kerry", "Blair", "Sharon"]
    assert list_masked(result, result.maskings[2]) == list(result.people)
    # Kerry in 600 texts, over ten seeds .60 to .90, and .83 to 1.00 unmasked; floors .17 to .51.
    (kerry,) = result.of("first names", "words", "Kerry")
    assert kerry.value[0] > kerry.floor
    assert result.mean("none", "words", "Kerry") > 0.7
    assert result.cased == 1.0
