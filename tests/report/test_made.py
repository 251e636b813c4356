"""How a result was made, on its page and in its JSON; and the report methods of both results."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import dpcore
from dpcore import Audit, OutputsAudit
from dpcore.attacks import MajorityVote
from dpcore.bounds import limits
from dpcore.results.evidence import Provenance

NASTY = "</pre></script><script>alert('1')</script> & \"x\" \x00\ud800"
MADE = Provenance(
    date="2026-11-22T12:00:00Z",
    origin=f"function {NASTY}",
    source=f"def noisy(x):\n    return '{NASTY}'\n",
    versions=(("Python", "3.13.0"), ("dpcore", NASTY)),
    cpu=NASTY,
    cores=2,
    system="Linux",
    architecture="x86_64",
    command=f"dpcore audit '{NASTY}'",
)
SIDES = np.random.default_rng(1).laplace(size=(2, 200))
REPORTS = {
    "audit": dpcore.audit(dpcore.Laplace(1.0), attack=MajorityVote(), trials=100, claim=1.0, rng=1),
    "independent": dpcore.audit_outputs(*SIDES, rows="independent", claim=1.0, rng=1),
    "one run": dpcore.audit_outputs(*SIDES, rows="one_run", guesses=20, claim=1.0, rng=1),
}
every = pytest.mark.parametrize("name", REPORTS)
SPACE = "{http://www.w3.org/1999/xhtml}"


def made(name, *provenance):
    return replace(REPORTS[name], provenance=provenance)


@every
def test_a_page_tells_how_its_result_was_made(name):
    page = made(name, replace(MADE, cpu="A CPU", command="dpcore audit laplace")).to_html()
    tree = ElementTree.fromstring(page.encode())
    rows = {
        "".join(row[0].itertext()): "".join(row[1].itertext())
        for row in tree.iter(f"{SPACE}tr")
        if len(row) == 2
    }
    assert (rows["begun"], rows["command"]) == ("2026-11-22T12:00:00Z", "dpcore audit laplace")
    assert (rows["SHA-256"], rows["machine"]) == (MADE.sha256, "A CPU, 2 cores, Linux, x86_64")
    assert rows["versions"].startswith("Python 3.13.0, dpcore ")
    source, _ = tree.iter(f"{SPACE}details")
    shown = "".join(source.find(f"{SPACE}pre").itertext())
    assert shown == MADE.source.replace("\x00", r"\x00").replace("\ud800", r"\ud800")
    assert source.get("open") is None


@every
def test_what_a_record_holds_stays_text(name):
    report = made(name, MADE)
    page = report.to_html()
    assert "<script>alert" not in page
    scripts = [node for node in ElementTree.fromstring(page.encode()).iter(f"{SPACE}script")]
    assert [json.loads(node.text) for node in scripts] == [report.to_dict()]
    again = type(report).from_json(report.to_json())
    assert (again.provenance, again) == ((MADE,), REPORTS[name])


@every
def test_json_holds_the_hash_and_refuses_nonsense(name):
    record = json.loads(made(name, MADE).to_json())
    assert record["derived"]["source_sha256"] == [MADE.sha256]
    assert record["provenance"][0]["date"] == MADE.date
    [one] = record["provenance"]
    for provenance in (5, "x", [5], [{"record": "Counts"}], [one | {"cpu": 5}]):
        with pytest.raises(ValueError, match="must be"):
            type(REPORTS[name]).from_dict(record | {"provenance": provenance})


def test_the_runs_of_a_merge_share_a_text():
    page = made("audit", MADE, replace(MADE, date="2026-11-23T12:00:00Z")).to_html()
    assert (page.count("Source text of"), page.count("<td>2026-11-2")) == (1, 2)
    assert "<h3>Run 2 of 2</h3>" in page
    # A record from before says that it does not tell.
    assert "This record does not tell." in made("audit").to_html()


def proof(report):
    """The steps of the proof on a page."""
    tree = ElementTree.fromstring(report.to_html().encode())
    return ["".join(step.itertext()) for step in tree.iter(f"{SPACE}li")]


def test_the_proof_of_recorded_outputs_can_be_checked_by_hand():
    shifted = dpcore.audit_outputs(SIDES[0], SIDES[1] + 3.0, rows="independent", claim=1.0, rng=1)
    c = shifted.counts.swapped() if shifted.direction == "x_prime" else shifted.counts
    up, down = ("x'", "x") if shifted.direction == "x_prime" else ("x", "x'")
    chosen, counted, limit, law, compared = proof(shifted)
    assert "chosen on 100 rows on x and 100 on x', which were not counted" in chosen
    assert f"{c.k:,} times in 100 on {up} and {c.k_prime:,} times in 100 on {down}" in counted
    low, high = limits(c.k, c.n, 0.025)[0], limits(c.k_prime, c.n_prime, 0.025)[1]
    assert f">= {low:.6g} and" in limit
    assert f"ln({low:.6g} / {high:.6g}) = {shifted.epsilon_lower:.4f}." in law
    assert compared == f"The certified {shifted.epsilon_lower:.4f} exceeds the claim 1."
    assert f"<td>{shifted.counts.k}</td><td>{shifted.counts.k_prime}</td>" in shifted.to_html()


def test_the_proof_of_one_run_and_of_none():
    run = REPORTS["one run"]
    guessed, right, bound, _ = proof(run)
    assert "Of 400 canaries, each in or out by its own fair coin, 20 were guessed" in guessed
    assert right == f"{run.correct} of 20 guesses are right."
    assert f"epsilon >= {run.epsilon_lower:.4f} (one training run)." in bound
    assert proof(replace(run, doubts=("coins are not fair",))) == ["coins are not fair"]


APART = {
    "outputs": "the outputs are the user's: nothing can be drawn again",
    "merge": "the event of each was chosen on its own rows, and they need not be the same",
    "plot_tradeoff": "needs the counts of a score, which are not recorded",
    "plot_profile": "needs the counts of a score, which are not recorded",
}
"""What an `Audit` offers and an audit of recorded outputs does not, and why."""

REPORT_METHODS = ("plot", "to_", "from_", "save_", "_repr_html_", "merge", "outputs")


def report_methods(kind):
    named = [name for name in dir(kind) if name.startswith(REPORT_METHODS)]
    return {name for name in named if callable(getattr(kind, name))}


def test_both_results_have_the_same_report_methods():
    assert report_methods(Audit) - report_methods(OutputsAudit) == set(APART)
    assert report_methods(OutputsAudit) <= report_methods(Audit)
    for name in report_methods(OutputsAudit):
        assert getattr(OutputsAudit, name).__doc__ or name == "_repr_html_"


@every
def test_every_report_method_works(name, tmp_path):
    report = REPORTS[name]
    assert report.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
    assert type(report).from_dict(report.to_dict()) == report
    assert "<table>" in report._repr_html_()
    assert report.plot().axes
