"""Outputs in files, what the result says, and the command."""

from __future__ import annotations

import html
import json
import math
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
from shared_outputs import canaries, laplace

from dpcore import Counts
from dpcore.bounds import one_run
from dpcore.cli import audits as _cli_outputs
from dpcore.cli.options import OutputsArguments, run_guarded
from dpcore.errors import AssumptionWarning
from dpcore.recorded.run import audit_outputs
from dpcore.results.outputs_audits import Guesses, OutputsAudit

# Files, shapes, and what the result says.


@pytest.fixture
def files(tmp_path):
    outputs, outputs_prime = laplace(np.random.default_rng(4), 3000, 2500)
    np.save(tmp_path / "x.npy", outputs)
    np.savetxt(tmp_path / "y.csv", 1.0 + outputs_prime, fmt="%.17g", header="score")
    labelled = np.array([*((v, 1) for v in outputs), *((v, 0) for v in 1.0 + outputs_prime)])
    np.savetxt(tmp_path / "both.csv", labelled, delimiter=",", header="score,member", fmt="%.17g")
    return tmp_path, outputs, 1.0 + outputs_prime


def test_files_give_what_arrays_give(files):
    folder, outputs, outputs_prime = files
    settings = {"rows": "independent", "claim": 1.0, "rng": 1}
    arrays = audit_outputs(outputs, outputs_prime, **settings)
    paths = audit_outputs(folder / "x.npy", str(folder / "y.csv"), **settings)
    label = audit_outputs(folder / "both.csv", label="member", **settings)
    mixed = audit_outputs(outputs.tolist(), folder / "y.csv", column="score", **settings)
    assert arrays.refuted
    for audit in (paths, label, mixed):
        for name in ("counts", "event", "direction"):
            assert getattr(audit, name) == getattr(arrays, name)
    assert (paths.names, paths.name) == (("x.npy", "y.csv"), "x.npy against y.csv")
    assert label.name == "both.csv"


def test_the_report_of_independent_rows():
    sides = laplace(np.random.default_rng(1), 2000, 1000)
    audit = audit_outputs(*sides, rows="independent", claim=2.5, rng=1)
    c, side = audit.counts, {"x": "x", "x_prime": "x'"}[audit.direction]
    # The plan is the last row.
    assert str(audit).splitlines()[:-1] == [
        "outputs against outputs_prime",
        "  verdict      not refuted by this attack",
        "  claim        epsilon <= 2.5",
        f"  certified    epsilon >= {audit.epsilon_lower:.4f} (95 % confidence, Clopper-Pearson)",
        f"  estimate     {audit.epsilon_hat:.4f} (certifies nothing)",
        f"  witness      {audit.event}, {side} in the numerator",
        f"  counts       {c.k:,} of 1,000 on x, {c.k_prime:,} of 500 on x'",
        "  rows         independent: each row is an output of its own run, drawn independently of "
        "all others",
        "  seed         1 (of the shuffle; 1,000 and 500 rows chose the event)",
        "  needed       outputs of another pair, another attack or an own score "
        "(dpcore.attacks.Threshold(score=...)). At these frequencies no number of rows is enough.",
    ]
    assert repr(audit).startswith("<OutputsAudit of outputs against outputs_prime: not refuted")
    assert audit.exact is None


def test_the_report_of_one_run():
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    audit = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=100, rng=1, delta=1e-6)
    g = audit.evidence
    lines = dict(line.strip().split(maxsplit=1) for line in str(audit).splitlines())
    assert lines["claim"] == "none given"
    assert lines["witness"] == "the 50 highest scores guessed in, the 50 lowest out"
    assert lines["counts"] == (
        f"{audit.correct} of 100 guesses right ({g.correct_in} of 50 in, {g.correct_out} of 50 "
        "out), 1,000 canaries"
    )
    assert lines["seed"] == "1 (decides ties between scores)"
    assert lines["rows"].startswith("one run: all rows are scores of canaries from a single run")


def audit_laplace(**settings):
    sides = laplace(np.random.default_rng(1), 1000, 1000)
    return audit_outputs(*sides, **{"rows": "independent", "claim": 0.1, "rng": 1} | settings)


@pytest.mark.parametrize("rows", ["independent", "one_run"])
def test_json_plot_and_pickle(rows):
    audit = audit_laplace(rows=rows)
    record = json.loads(audit.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert (record, record["format"]) == (audit.to_dict(), "dpcore.audit_outputs/1")
    assert (record["rows"], record["seed"]) == (rows, "1")
    derived = record["derived"]
    assert (derived["epsilon_lower"], derived["verdict"]) == (audit.epsilon_lower, audit.verdict)
    kind = Counts if rows == "independent" else Guesses
    assert kind(**record["evidence"]) == audit.evidence
    assert audit.verdict in audit.plot().axes[0].get_title(loc="left")
    assert pickle.loads(pickle.dumps(audit)) == audit
    assert OutputsAudit.from_json(audit.to_json()) == audit
    assert OutputsAudit.from_dict(record).verdict == audit.verdict


def test_json_that_was_written_before():
    """Records without the new field; doubts were in them already, and now leave no verdict."""
    record = audit_laplace().to_dict()
    del record["paired"]
    audit = OutputsAudit.from_json(json.dumps(record))
    assert audit.refuted
    assert not audit.paired
    record["doubts"] = ["rows are repeated"]
    doubted = OutputsAudit.from_dict(record)
    assert (doubted.refuted, doubted.verdict) == (None, "invalid: rows are repeated")


def test_an_event_of_ones_own_keeps_its_name_in_json():
    def attack(outputs, outputs_prime, pair):
        return lambda rows: rows > 0.0

    audit = audit_laplace(attack=attack)
    read = OutputsAudit.from_json(audit.to_json())
    assert read.epsilon_lower == audit.epsilon_lower
    assert "lambda" in read.event


@pytest.mark.parametrize(("change", "text"), [
    ({"format": "dpcore.audit/2"}, "format must be 'dpcore.audit_outputs/1'"),
    ({"rows": "both"}, "rows must be one of 'independent', 'one_run'"),
    ({"rows": "one_run"}, "record must be what OutputsAudit.to_dict wrote"),
    ({"bound": "one_run"}, "bound must be one of 'clopper_pearson', 'exact'"),
    ({"bound": "exact", "paired": True}, "bound must be 'clopper_pearson' where"),
    ({"paired": 1}, "paired must be a bool, got 1"),
    ({"direction": None}, "direction must be one of"),
    ({"confidence": 1.0}, "confidence must be"),
    ({"claim": -1.0}, "claim must be"),
    ({"delta": 1.0}, "delta must be"),
    ({"names": ["x"]}, "names must be two values"),
    ({"pilot": ["1", "2"]}, "pilot must be a int"),
    ({"doubts": "one"}, "doubts must be a list"),
    ({"evidence": {"k": 9, "n": 5, "k_prime": 0, "n_prime": 5}}, "k must be an"),
])  # fmt: skip
def test_json_that_is_refused(change, text):
    record = audit_laplace().to_dict()
    with pytest.raises(ValueError, match=text):
        OutputsAudit.from_dict({**record, **change})
    with pytest.raises(TypeError, match="record must be a mapping"):
        OutputsAudit.from_dict([record])


@pytest.mark.parametrize("rows", ["independent", "one_run"])
def test_the_page_and_the_table(rows, tmp_path):
    audit = audit_laplace(rows=rows)
    page = audit.to_html(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").read_text(encoding="utf-8") == page
    xml = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>"))
    words = " ".join("".join(xml.itertext()).split())
    table = audit._repr_html_()
    for label, line in audit.lines():
        assert label in words
        assert line in words
        assert html.escape(line) in table
    assert "dpcore.OutputsAudit.from_json reads it" in words
    assert page.count("<svg") == 2


def test_the_page_of_rows_that_no_bound_holds_for():
    smooth = np.random.default_rng(11).laplace(size=5000)
    with pytest.warns(AssumptionWarning):
        audit = audit_outputs(np.tile(smooth, 2), smooth[::-1], rows="independent", claim=1.0)
    page = audit.to_html()
    assert "<dt>epsilon certified</dt><dd>none</dd>" in page
    assert "No bound holds" in page


def test_infinite_estimates_are_strict_json_too():
    audit = audit_outputs([1.0] * 20, [0.0] * 20, rows="independent", rng=1)
    assert audit.epsilon_hat == math.inf
    assert math.isfinite(audit.epsilon_lower)
    assert json.loads(audit.to_json())["derived"]["epsilon_hat"] == "inf"
    assert "estimate     infinite" in str(audit)
    sure = audit_outputs(np.arange(50.0) + 100, np.arange(50.0), rows="one_run", rng=1)
    assert (sure.epsilon_hat, sure.epsilon_lower) == (math.inf, one_run(100, 100, 100))
    null = audit_outputs([1.0] * 20, [1.0] * 20, rows="independent", rng=1)
    assert (null.epsilon_hat, null.epsilon_lower) == (0.0, 0.0)


# The command's work, without its parser.


def command(*names, **change):
    options = {"rows": "independent", "claim": 0.5, "seed": 1, **change}
    asked = OutputsArguments(files=tuple(map(str, names)), **options)
    return run_guarded(lambda: _cli_outputs.run_outputs_audit(asked))


def test_the_command_prints_the_report_and_exits_with_the_verdict(files, capsys):
    folder = files[0]
    pair = folder / "x.npy", folder / "y.csv"
    assert command(*pair) == 1
    audit = audit_outputs(*pair, rows="independent", claim=0.5, rng=1)
    assert capsys.readouterr().out == f"{audit}\n"
    assert command(*pair, claim=9.0) == 0
    assert command(*pair, claim=None, no_claim=True) == 0
    assert "no claim given" in capsys.readouterr().out
    assert command(*pair, attack="threshold", bound="exact", count_share=0.4, as_json=True) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["bound"], record["evidence"]["n"]) == ("exact", 1200)
    plot = folder / "audit.png"
    assert command(*pair, plot=str(plot)) == 1
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(("guesses", "wanted"), [
    ("100", (50, 50)), ("0.02", (50, 50)), ("60,40", (60, 40)), (None, (2500, 2500)),
])  # fmt: skip
def test_the_command_for_one_run(tmp_path, capsys, guesses, wanted):
    path = tmp_path / "canaries.csv"
    included, others = canaries(np.random.default_rng(1), 5000)
    rows = [f"{score!r},7,in\n" for score in included.tolist()]
    rows += [f"{score!r},7,out\n" for score in others.tolist()]
    path.write_text("score,epoch,member\n" + "".join(rows))
    asked = {"rows": "one_run", "guesses": guesses, "label": "member", "column": ("score",)}
    assert command(path, claim=0.2, as_json=True, **asked) == 1
    record = json.loads(capsys.readouterr().out)["evidence"]
    assert (record["guessed_in"], record["guessed_out"]) == wanted
    assert command(path, claim=1.0, **asked) == 0


def test_the_command_says_doubts_on_stderr(tmp_path, capsys):
    smooth = np.random.default_rng(11).laplace(size=(2, 5000))
    np.save(tmp_path / "x.npy", np.tile(smooth[0], 2))
    np.save(tmp_path / "y.npy", smooth[1])
    assert command(tmp_path / "x.npy", tmp_path / "y.npy") == 3
    shown = capsys.readouterr()
    doubt = "rows are repeated: each row of outputs occurs 2 times or more"
    assert shown.err == f"warning: {doubt}\n"
    assert f"  verdict      invalid: {doubt}\n" in shown.out
    assert "  certified    nothing: no bound holds\n" in shown.out
    assert f"  note         {doubt}\n" in shown.out
    assert command(tmp_path / "y.npy", tmp_path / "x.npy", claim=None, no_claim=True) == 3


def test_the_command_takes_paired_rows(tmp_path, capsys):
    noise = np.random.default_rng(11).laplace(size=5000)
    np.save(tmp_path / "x.npy", noise)
    np.save(tmp_path / "y.npy", 1.0 + noise)
    files = tmp_path / "x.npy", tmp_path / "y.npy"
    assert command(*files) == 3
    assert "give paired=True" in capsys.readouterr().err
    assert command(*files, paired=True) == 1
    assert "; rows i of both sides come from one seed" in capsys.readouterr().out
    assert command(*files, paired=True, bound="exact") == 2


@pytest.mark.parametrize(("names", "change", "text"), [
    ((), {}, "name two files, the outputs on x and those on x' (or one, with --label COLUMN)"),
    (("x.npy",), {}, "name two files"),
    (("x.npy", "y.csv"), {"label": "member"}, "name one file where --label is given"),
    (("x.npy", "y.csv"), {"claim": None}, "give --claim EPSILON, or --no-claim to estimate"),
    (("x.npy", "y.csv"), {"no_claim": True}, "--claim and --no-claim exclude each other"),
    (("x.npy", "y.csv"), {"rows": None}, "--rows must be 'independent' or 'one_run', got None"),
    (("x.npy", "none.csv"), {}, "No such file or directory"),
    (("x.npy", "x.doc"), {}, "a file that ends in one of .csv"),
    (("x.npy", "y.csv"), {"attack": "luck"}, "--attack must be one of 'auto'"),
    (("x.npy", "y.csv"), {"guesses": "3"}, "--guesses must be None where rows"),
    (("x.npy", "y.csv"), {"rows": "one_run", "guesses": "a,b"}, "--guesses must be a number"),
    (("x.npy", "y.csv"), {"count_share": 2.0}, "--count-share must be a finite number"),
    (("x.npy", "y.csv"), {"claim": -1.0}, "--claim must be"),
    (("x.npy", "y.csv"), {"plot": "x.txt"}, "--plot must end in one of"),
    (("both.csv",), {"label": "side"}, "label must be one of 'score', 'member' in both.csv"),
    (("-", "y.csv"), {}, "--format must be given for standard input"),
    (("-", "-"), {"format": "csv"}, "a file where outputs are standard input"),
    (("x.npy", "y.csv"), {"header": "maybe"}, "--header must be one of 'auto', 'yes', 'no'"),
    (("x.npy", "y.csv"), {"sep": "::"}, "--sep must be one character, or 'tab', got '::'"),
    (("x.npy", "y.csv"), {"encoding": "utf-9"}, "--encoding must be an encoding that Python"),
    (("x.npy", "y.csv"), {"format": "xml"}, "--format must be one of 'csv', 'tsv', 'lines'"),
])  # fmt: skip
def test_bad_usage(files, capsys, names, change, text):
    paths = (name if name == "-" else files[0] / name for name in names)
    assert command(*paths, **change) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert text in shown.err
