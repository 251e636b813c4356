"""The page of errors and warnings explains what the package can say: no more, nothing forgotten."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
import site_errors
import site_pages
from site_errors import MET, NOTES, PAGE, REASONS, Said, entries, exists, explained, fits, messages

import dpcore
from dpcore import errors
from dpcore.structure import CHECKS

ENTRIES = entries()
QUOTED = {words for entry in ENTRIES for words in entry.quoted}


def unexplained(said):
    """The messages that no entry explains."""
    return sorted(one for one in set(said) if explained(one) is None)


def unsaid(entry, known):
    """What an entry quotes or names that the package does not say."""
    named = entry.arguments - known - {entry.title}
    return named | {words for words in entry.quoted if not exists(words)}


def test_what_the_page_quotes_is_said():
    known = {one.argument for one in messages()} | {*CHECKS, "fork"}
    assert len(QUOTED) > 250
    assert {entry.title: unsaid(entry, known) for entry in ENTRIES if unsaid(entry, known)} == {}


def test_what_nobody_says_is_found():
    invented = {"trials must be a prime number", "tirals"}
    entry = site_errors.Entry("trials", frozenset({"trials", "tirals"}), frozenset(invented))
    assert unsaid(entry, {"trials"}) == invented
    assert exists("… must be a whole number at least 1")


def test_every_message_of_an_audit_is_explained():
    said = [one for one in messages() if one.package in MET]
    assert len(said) > 400
    assert {one.package for one in said} >= {*MET} - {"hints"}
    assert unexplained(said) == []


def test_a_message_without_an_entry_is_found():
    text = 'def check(a):\n    wanted = "a prime"\n    raise invalid("tirals", wanted, a)\n'
    made = site_errors.read("auditing/new.py", ast.parse(text))
    assert unexplained(made) == [
        Said("tirals", "tirals must be a prime, got …", "auditing", "auditing/new.py:3")
    ]


def unread(read):
    """Files outside of `errors` with a complaint of which no message was read."""
    found = set()
    for file, tree in site_errors.trees():
        for node in ast.walk(tree) if file != "errors.py" else ():
            called = getattr(getattr(node, "func", None), "id", "")
            if called in ("invalid", "mistyped", "Usage") and f"{file}:{node.lineno}" not in read:
                found.add(file)
    return found


def test_every_complaint_is_read():
    read = {one.place for one in messages()}
    # What passes on the text of another exception, or of its caller.
    passing_on = {
        "cli/audits.py",
        "cli/app.py",
        "cli/status.py",
        "mechanisms/answers.py",
        "training/run.py",
    }
    assert unread(read) == passing_on
    assert unread({place for place in read if "pairs/differences" not in place}) - passing_on == {
        "pairs/differences.py"
    }


def test_the_reasons_of_an_invalid_verdict_and_the_notes_are_explained():
    raised = [one.text for one in messages()]
    said = [one for one in site_errors.sentences(*REASONS, *NOTES) if one.count(" ") > 8]
    told = [Said("", one, MET[0], "") for one in said if not any(one in text for text in raised)]
    assert len(told) > 25
    assert unexplained(told) == []
    assert explained(Said("", "rows are blue: no bound holds of such", MET[0], "")) is None


def test_every_structural_check_and_warning_is_named():
    named = {name for entry in ENTRIES for name in entry.arguments}
    assert {*CHECKS, "fork"} <= named
    assert f"`dpcore.{errors.AssumptionWarning.__name__}`" in PAGE.read_text("utf-8")


def test_entries_stand_in_order_and_once():
    titles = [re.sub(r"\W", " ", entry.title.lower()).split() for entry in ENTRIES]
    assert titles == sorted(titles)
    assert len({entry.anchor for entry in ENTRIES}) == len(ENTRIES)
    for words in QUOTED:
        # Enough not to be not part of everything.
        assert len(re.sub(r"must be|got|[^a-z]", "", words.lower())) >= 3, words


def test_a_pattern_is_what_is_raised():
    pattern = "trials must be a whole number at least 1 and below 2**63, got …"
    for given in (0, "many", None):
        with pytest.raises((TypeError, ValueError)) as caught:
            errors.count("trials", given)
        assert fits(pattern, str(caught.value))
    assert pattern in {one.text for one in messages()}


def test_the_page_of_all_messages_links_to_entries():
    page = site_pages.messages_page(messages())
    assert all(f"- `{one.text}` (" in page for one in messages() if one.argument == "pair")
    links = set(re.findall(r"errors\.md#([\w-]+)\)", page))
    assert links <= {entry.anchor for entry in ENTRIES}
    assert len(links) > 60


def one_noise(x, size, rng):
    """One noise for all rows of a call."""
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))


def noise(x, size, rng):
    return x + rng.laplace(size=(size, 1))


PAIR = ([0.0], [1.0])
MISTAKES = {
    "attack": lambda: dpcore.audit(noise, PAIR, attack="treshold"),
    "bound": lambda: dpcore.audit(noise, PAIR, bound="clopper"),
    "claim": lambda: dpcore.plan(None, mechanism=noise, pair=PAIR),
    "did you mean": lambda: dpcore.audit(noise, PAIR, trails=3),
    "fn": lambda: dpcore.repeat(lambda: 1.0),
    "instance, not a class": lambda: dpcore.audit(dpcore.Laplace, PAIR),
    "mechanism": lambda: dpcore.audit(lambda x: x, PAIR),
    "outputs of a mechanism": lambda: dpcore.audit(one_noise, PAIR, trials=1000, claim=1.0),
    "outputs_prime": lambda: dpcore.audit_outputs([0.0], rows="independent"),
    "pair": lambda: dpcore.audit(noise, claim=1.0),
    "rng": lambda: dpcore.audit(noise, PAIR, rng=-1),
    "rows": lambda: dpcore.audit_outputs([0.0], [1.0]),
    "trials": lambda: dpcore.audit(noise, PAIR, trials=0.5),
}


@pytest.mark.parametrize("title", MISTAKES)
def test_a_usual_mistake_leads_to_its_entry(title):
    with pytest.raises((TypeError, ValueError)) as caught:
        MISTAKES[title]()
    text, entry = str(caught.value), next(one for one in ENTRIES if one.title == title)
    assert any(fits(words, text) for words in entry.quoted), text
