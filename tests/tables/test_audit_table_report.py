"""Reports of an audit of a table: text, notebook, page, picture, JSON, command line, pytest."""

from __future__ import annotations

import json
import math
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse
import shared_plugin
from shared_messages import check_messages
from shared_tables import ClosedRows, exponential_mechanism, points_and_distances, softmax_table

import dpcore
from dpcore import TableAudit, audit_table
from dpcore.report.figures import use_own_style

pytest_plugins = ["pytester"]

inner = shared_plugin.inner

COIN = np.array([[0.75, 0.25], [0.25, 0.75]])


@pytest.fixture(scope="module")
def metric():
    distances = points_and_distances(12, 1)
    return audit_table(ClosedRows(exponential_mechanism(distances, 3.0), distances, 3.0), claim=1.0)


def test_the_report_says_what_was_found(metric):
    text = str(metric)
    x, x_prime, output = metric.witness
    for line in (
        "Rows(...)",
        "  verdict      refuted",
        "  claim        epsilon <= 1 per unit of distance (the mechanism's own: 3)",
        f"  exact        epsilon = {metric.epsilon:.4f} per unit of distance",
        f"  witness      x = 'word {x}' ({x}), x' = 'word {x_prime}' ({x_prime}), output "
        f"'word {output}' ({output})",
        f"  loss         {metric.loss:.4f} nats at distance {metric.distance:g}",
        "  infinite     0 of 132 ordered pairs",
        "  table        12 inputs, 12 outputs",
    ):
        assert line in text.splitlines()
    assert f"{metric.excess:.4f} nats more than claim x distance" in text
    assert dict(metric.lines())["verdict"] == metric.verdict == "refuted"
    assert repr(metric) == f"<TableAudit of Rows(...): refuted, epsilon={metric.epsilon:.6g}>"
    assert "word" in metric._repr_html_()


def test_verdicts_are_those_of_tables():
    verdicts = [audit_table(COIN, claim=claim).verdict for claim in (None, 1.1, 1.0)]
    assert verdicts == ["no claim given", "holds for this table", "refuted"]
    assert audit_table(COIN).refuted is None
    assert "none given" in str(audit_table(COIN))


def test_json_keeps_everything_but_the_table(metric):
    infinite = audit_table([[1.0, 0.0], [0.5, 0.5]], claim=2.0)
    for found in (metric, infinite, audit_table(COIN)):
        again = TableAudit.from_json(found.to_json())
        assert (again, str(again), again.comparison) == (found, str(found), None)
        record = json.loads(found.to_json())
        assert record["format"] == "dpcore.audit_table/1"
        assert record["derived"]["verdict"] == found.verdict
    assert json.loads(infinite.to_json())["epsilon"] == "inf"
    assert infinite.epsilon == math.inf
    assert pickle.loads(pickle.dumps(infinite)) == infinite
    assert pickle.loads(pickle.dumps(infinite)).delta(0.0) == 0.5


def test_json_that_no_audit_wrote_is_refused():
    record = audit_table(COIN, claim=1.0).to_dict()
    read = lambda **change: lambda: TableAudit.from_dict(record | change)  # noqa: E731
    check_messages(ValueError, [
        (read(format="dpcore.audit/2"), "format", "'dpcore.audit_table/1'"),
        (read(inputs=3), "per_input", "3 numbers"),
        (read(excess=None), "excess", "given with a claim"),
        (read(infinite_pairs=9), "infinite_pairs", "at most 2"),
        (read(claim=-1.0), "claim", "a finite number at least 0"),
        (read(witness=[0, 1]), "witness", ""),
    ])  # fmt: skip


def test_the_page_is_well_formed_and_holds_all(metric, tmp_path):
    page = metric.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert ElementTree.fromstring(page.partition("\n")[2]).tag.endswith("html")
    for words in ("refuted", "Worst loss of every input", "epsilon, exact", "word "):
        assert words in page
    assert page == TableAudit.from_json(metric.to_json()).to_html()


def test_the_picture_shows_every_input_and_the_claim(metric):
    with use_own_style() as figure:
        metric.plot(ax=figure)
        (axes,) = figure.axes
        assert axes.get_lines()[0].get_ydata().tolist() == sorted(metric.per_input)[::-1]
        assert axes.get_lines()[1].get_ydata()[0] == 1.0
    mixed = audit_table([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    with use_own_style() as figure:
        mixed.plot(ax=figure)
        assert "2 infinite" in [text.get_text() for text in figure.axes[0].texts]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    distances = points_and_distances(12, 1)
    np.save("P.npy", np.exp(exponential_mechanism(distances, 3.0)))
    np.save("L.npy", exponential_mechanism(distances, 3.0))
    np.save("D.npy", distances)
    np.save("M.npy", np.eye(12, k=1, dtype=bool) | np.eye(12, k=-1, dtype=bool))
    scipy.sparse.save_npz("S.npz", scipy.sparse.csr_matrix(softmax_table(5, 5, 1, 0.6)))
    (tmp_path / "words.npy").write_text("no matrix")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("line", "status", "words"), [
    ("P.npy --distances D.npy --claim 5", 0, "holds for this table"),
    ("P.npy --distances D.npy --claim 1", 1, "refuted"),
    ("L.npy --log --distances D.npy --claim 5 --threads 1", 0, "12 inputs and 12 outputs of L.npy"),
    ("P.npy --claim 1 --neighbour l1=1", 1, "L1(radius=1.0) on the numbers of rows"),
    ("P.npy --claim 1 --neighbour M.npy --tolerance 99", 0, "a mask of 11 pairs of rows"),
    ("S.npz --no-claim", 0, "no claim given"),
])  # fmt: skip
def test_the_command_line_audits_files(run, line, status, words):
    found, out, err = run(f"audit-table {line}")
    assert (found, err) == (status, "")
    assert words in out


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("line", "message"), [
    ("P.npy", "give --claim EPSILON, or --no-claim to compute the loss only"),
    ("P.npy --claim 1 --no-claim", "--claim and --no-claim exclude each other"),
    ("absent.npy --claim 1", "FILE must be a file that can be read, got absent.npy"),
    ("words.npy --claim 1", "FILE must be a matrix of numbers"),
    ("P.npy --distances L.npy --claim 1", "--distances must be "),
    ("L.npy --claim 1", "table must be at least 0 (no --log)"),
    ("P.npy --claim 1 --neighbour near", "--neighbour must be l1=RADIUS"),
    ("P.npy --claim 1 --plot out.xyz", "--plot must end in one of"),
])  # fmt: skip
def test_bad_usage_is_status_2(run, line, message):
    status, out, err = run(f"audit-table {line}")
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.usefixtures("files")
def test_json_page_picture_and_warning_of_the_command(run, tmp_path):
    status, out, err = run("audit-table P.npy --claim 1 --json --html page.html --plot loss.png")
    assert status == 1
    assert TableAudit.from_json(out).refuted
    assert "wrote loss.png" in err
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "loss.png").stat().st_size > 1000
    np.save("U.npy", np.array([[1.0, 0.0], [1.0 - 1e-7, 1e-7]], dtype=np.float32))
    status, out, err = run("audit-table U.npy --claim 1")
    assert status == 1
    assert err.startswith("warning: a probability of zero against a positive one")


TABLES = """
COIN = [[0.75, 0.25], [0.25, 0.75]]

class Own:
    shape, claim = (2, 2), 2.0
    def log_rows(self, start, stop):
        import numpy as np
        return np.log(COIN[start:stop])

def test_stands(dp_audit):
    found = dp_audit.table(COIN, claim=1.2)
    print("SHOWN", found.verdict, found.provenance[0].command)

def test_metric(dp_audit):
    dp_audit.table(COIN, [[0, 2], [2, 0]], epsilon=0.6)

def test_own_claim(dp_audit):
    dp_audit.table(Own())

def test_caught(dp_audit):
    dp_audit.refutes_table(COIN, claim=1.0)

def test_bad(dp_audit):
    dp_audit.table(COIN, claim=1.0)

def test_not_caught(dp_audit):
    dp_audit.refutes_table(COIN, claim=1.2)

def test_no_claim(dp_audit):
    dp_audit.table(COIN)

def test_both(dp_audit):
    dp_audit.table(COIN, claim=1.0, epsilon=1.0)
"""


def test_tables_are_tested_in_pytest(inner):
    result = inner(TABLES, "-s", "-v")
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines_random(
        [
            "*SHOWN holds for this table pytest test_inner.py::test_stands",
            "epsilon <= 1 is refuted: exact epsilon = 1.0986 in table of 2 inputs and 2 outputs",
            "epsilon <= 1.2 is not refuted: exact epsilon = 1.0986 in table of *",
            "*claim must be given for a table without its own claim, got None",
            "*claim must be given once, as claim or as epsilon*",
            "test_inner.py::test_stands: table of * epsilon <= 1.2 holds for this table, exact *",
        ]
    )


def test_a_result_is_a_record():
    found = audit_table(COIN, claim=1.0)
    assert found == audit_table(COIN, claim=1.0, threads=1)
    assert found != audit_table(COIN, claim=1.1)
    assert not found.per_input.flags.writeable
    assert isinstance(found, dpcore.TableAudit)
