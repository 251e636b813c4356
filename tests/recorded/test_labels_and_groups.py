"""Labels beside outputs: taken as `label=`, refused where they stand for outputs."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from shared_messages import check_messages

from dpcore.attacks import MajorityVote, Threshold
from dpcore.bounds import clopper_pearson
from dpcore.errors import AssumptionWarning
from dpcore.recorded.run import audit_outputs
from dpcore.records import Counts
from dpcore.results.guesses import Guesses

RNG = np.random.default_rng(21)
SIZE = 4000
LABELS = RNG.random(SIZE) < 0.5
SCORES = 2.0 * LABELS + RNG.laplace(size=SIZE)
SETTINGS = {"rows": "independent", "claim": 1.0, "rng": 1}


@pytest.mark.parametrize("labels", [
    LABELS, LABELS * 1, LABELS * 1.0, (LABELS * 1).reshape(-1, 1), np.where(LABELS, "x", "x_prime"),
    np.where(LABELS, "in", "out").tolist(), np.where(LABELS, b"1", b"0"), pd.Series(LABELS),
    pd.Series(np.where(LABELS, "x", "x'")), pd.Series(LABELS).astype("boolean"),
    pd.Series(LABELS * 1).astype("category"), pd.DataFrame({"member": LABELS}),
], ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}")  # fmt: skip
def test_labels_of_many_kinds(labels):
    split = audit_outputs(SCORES[LABELS], SCORES[~LABELS], **SETTINGS)
    audit = audit_outputs(SCORES, label=labels, **SETTINGS)
    assert audit.refuted
    assert (audit.counts, audit.direction) == (split.counts, split.direction)
    assert audit.names == ("outputs", "outputs")


class Tensor:
    """What can be detached as a tensor of torch can."""

    dtype = "torch.float32"

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values


def test_frames_files_tensors_and_matrices(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    frame = pd.DataFrame({"score": SCORES, "row": range(SIZE), "member": LABELS})
    want = audit_outputs(SCORES, label=LABELS, **SETTINGS).counts
    matrix = np.stack([SCORES, LABELS * 1.0], axis=1)
    table = np.rec.fromarrays([SCORES, LABELS], names="score,member")
    for outputs, label, more in (
        (frame, "member", {"column": "score"}), (frame[["score", "member"]], "member", {}),
        (frame, LABELS, {"column": "score"}), (frame["score"], frame["member"], {}),
        (SCORES.tolist(), frame["member"], {}), (matrix, 1, {}),
        (np.asarray(table), "member", {}), (tmp_path / "scores.npy", LABELS, {}),
        (Tensor(SCORES), Tensor(LABELS), {}),
    ):  # fmt: skip
        assert audit_outputs(outputs, label=label, **more, **SETTINGS).counts == want
    assert audit_outputs(frame[LABELS], frame[~LABELS], column="score", **SETTINGS).counts == want
    both = audit_outputs(frame, label="member", column=["score", "row"], **SETTINGS)
    assert both.counts.n == want.n


def test_one_run_with_labels():
    settings = {"rows": "one_run", "guesses": 400, "rng": 1}
    split = audit_outputs(SCORES[LABELS], SCORES[~LABELS], **settings)
    assert audit_outputs(SCORES, label=LABELS, **settings).evidence == split.evidence


# The order of arguments in scikit-learn.


@pytest.mark.parametrize("rows", ["independent", "one_run"])
@pytest.mark.parametrize("labels", [
    LABELS, LABELS * 1, LABELS * 1.0, (LABELS * 1.0).astype(np.float32), LABELS.astype(np.uint8),
], ids=lambda labels: labels.dtype.name)  # fmt: skip
@pytest.mark.parametrize("scores", [
    SCORES, SCORES.astype(np.float32), np.round(SCORES, 1), np.rint(1e4 * SCORES).astype(int),
], ids=["float64", "float32", "one decimal", "integers"])  # fmt: skip
def test_scores_beside_labels_are_an_error(scores, labels, rows):
    with pytest.raises(ValueError, match=r"outputs_prime must be outputs on x' \(label= is for"):
        audit_outputs(scores, labels, rows=rows)
    with pytest.raises(ValueError, match=r"outputs must be outputs on x \(label= is for labels\)"):
        audit_outputs(labels, scores, rows=rows)


BITS = RNG.random((2, 500)) < [[0.7], [0.3]]


@pytest.mark.parametrize("sides", [
    BITS,
    BITS * 1,
    (BITS[0] * 1.0, BITS[1] * 1),
    (BITS[0] * 1, RNG.integers(3, size=500)),
    (BITS[0] * 1, RNG.integers(10, size=500)),
    (BITS[0] * 1, RNG.laplace(size=499)),
    (np.zeros(500), RNG.laplace(size=500)),
    (np.ones(500), RNG.laplace(size=500)),
    (np.clip(RNG.laplace(size=500), 0, 1), np.clip(RNG.laplace(size=500), 0, 1)),
])  # fmt: skip
def test_outputs_that_are_no_labels(sides):
    assert audit_outputs(*sides, rows="independent", rng=1).counts.n == 250


# Rows that belong together: groups stay together, and one row of each is counted.
#
# Soundness is tested on claims that are true: at a stated confidence of 80 %, so that a fault shows
# in few audits, the number of refuted claims may exceed 20 % by chance with probability 1e-6.


AUDITS = 100
MOST = int(stats.binom.isf(1e-6, AUDITS, 0.2))


def shared_runs(rng, runs=20, size=2000):
    """Return records of runs that share their noise, and the number of their run."""
    groups = np.repeat(np.arange(runs), size // runs)
    return 3.0 * rng.normal(size=runs)[groups] + rng.normal(size=size), groups


def above_median(outputs, outputs_prime, pair):
    """Choose the half line on the side of the larger mean."""
    middle = np.median(np.concatenate([outputs, outputs_prime]))
    if outputs.mean() > outputs_prime.mean():
        return lambda rows: rows > middle
    return lambda rows: rows < middle


def audit(*sides, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_outputs(*sides, **{"rows": "independent", "claim": 0.1, **settings})


def test_true_claims_about_runs_that_share_their_noise():
    """The control: with rows for runs almost every claim is refuted."""
    refuted = overclaims = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng([seed, 29])
        (x, groups), (x_prime, groups_prime) = (shared_runs(rng) for _ in range(2))
        settings = {"attack": above_median, "claim": 0.0, "confidence": 0.8, "rng": seed}
        given = {"groups": groups, "groups_prime": groups_prime + 20}
        found = audit(x, x_prime, **given, **settings)
        assert found.doubts == ()
        refuted += found.refuted
        overclaims += audit(x, x_prime, arranged=True, **settings).refuted
    assert refuted <= MOST
    assert overclaims > AUDITS / 2 > MOST


def test_a_leak_between_runs_is_refuted():
    rng = np.random.default_rng(1)
    (x, groups), (x_prime, groups_prime) = (shared_runs(rng, 200) for _ in range(2))
    found = audit(x, x_prime + 15.0, groups=groups, groups_prime=groups_prime + 200, rng=1)
    assert found.refuted
    assert (found.counts.n, found.counts.n_prime) == (100, 100)


def test_groups_stay_together_and_one_row_of_each_is_counted():
    seen, counted = [], []

    def attack(outputs, outputs_prime, pair):
        seen.extend([outputs, outputs_prime])

        def event(rows):
            counted.append(rows)
            return rows > 0

        return event

    sizes = np.random.default_rng(3).integers(1, 9, size=40)
    groups = np.random.default_rng(4).permutation(np.repeat(np.arange(40), sizes))
    side = np.arange(groups.size)
    other = side + 1000
    settings = {"groups": groups, "groups_prime": groups + 40, "arranged": True, "rng": 5}
    found = audit(side + 0.5, other + 0.5, attack=attack, **settings)
    for number, first in enumerate((0, 1000)):
        pilot = groups[seen[number].astype(int) - first]
        rows = next(one for one in counted if len(one) == 20 and one[0] // 1000 == first // 1000)
        kept = groups[rows.astype(int) - first]
        assert np.unique(kept).size == kept.size == 20
        assert not set(kept) & set(pilot)
        # All rows of a group that chooses do.
        assert len(pilot) == np.isin(groups, pilot).sum()
    assert found.counts.n == found.counts.n_prime == 20
    assert audit(side + 0.5, other + 0.5, attack=attack, **settings).evidence == found.evidence


def test_groups_of_one_row_change_nothing():
    noise = np.random.default_rng(2).laplace(size=(2, 1000))
    numbers = {"groups": np.arange(1000), "groups_prime": np.arange(1000) + 1000}
    one, other = (audit(noise[0], 1.0 + noise[1], rng=7, **given) for given in ({}, numbers))
    for name in ("evidence", "direction", "pilot"):
        assert getattr(one, name) == getattr(other, name)


def test_the_report_of_groups():
    rng = np.random.default_rng(1)
    (x, groups), (x_prime, _) = (shared_runs(rng) for _ in range(2))
    few = [("x_prime", one) for one in groups // 2]
    found = audit(x, x_prime, groups=groups, groups_prime=few, claim=1.0, rng=1)
    assert found.groups == (20, 10)
    assert found.ceiling == max(map(clopper_pearson, (Counts(5, 5, 0, 10), Counts(10, 10, 0, 5))))
    assert found.ceiling > found.epsilon_lower
    for shown in (str(found), found.to_html()):
        assert "20 groups on x and 10 on x" in shown
        reach = f"10 and 5 counted groups certify at most epsilon >= {found.ceiling:.4f}"
        assert reach in shown.replace("&gt;", ">")
        assert "undecided: 10 and 5 counted groups certify at most 0.438" in shown
    record = json.loads(found.to_json())
    assert (record["groups"], record["derived"]["ceiling"]) == ([20, 10], found.ceiling)
    assert type(found).from_json(found.to_json()) == found


# Columns of files and frames.


@pytest.fixture
def files(tmp_path):
    """Paths of two files, their values and their groups, on x and on x'."""

    def write(name, first, seed):
        values, groups = shared_runs(np.random.default_rng(seed))
        runs = [f"run {first + group}" for group in groups]
        lines = [f"{value},{run}" for value, run in zip(values, runs, strict=True)]
        (tmp_path / name).write_text("\n".join(["value,run", *lines]))
        return tmp_path / name, values, runs

    return list(zip(write("x.csv", 0, 1), write("x_prime.csv", 20, 2), strict=True))


def test_groups_are_a_column_of_files(files):
    paths, values, (groups, groups_prime) = files
    wanted = audit(*values, groups=groups, groups_prime=groups_prime, rng=1)
    # One column is left.
    assert audit(*paths, groups="run", rng=1).evidence == wanted.evidence
    assert audit(*paths, groups=1, column="value", rng=1).evidence == wanted.evidence
    found = audit(*paths, groups="run", groups_prime="run", column="*", rng=1)
    assert (found.evidence, found.groups) == (wanted.evidence, (20, 20))
    check_messages(ValueError, [
        (lambda: audit(*paths, groups="day", column="value"), "groups", "one of 'value', 'run' in"),
        (lambda: audit(*paths, groups=2, column="value"), "groups", "an integer from 0 to 1,"),
    ])  # fmt: skip


def test_groups_of_both_sides_with_labels(files, tmp_path):
    _, values, (groups, groups_prime) = files
    wanted = audit(*values, groups=groups, groups_prime=groups_prime, rng=1)
    every, runs, on = np.concatenate(values), groups + groups_prime, np.repeat([1, 0], 2000)
    lines = [f"{a},{b},{c},0.5" for a, b, c in zip(runs, on, every.tolist(), strict=True)]
    (tmp_path / "both.csv").write_text("\n".join(["run,on,value,seconds", *lines]))
    frame = pd.read_csv(tmp_path / "both.csv")
    columns = {"label": "on", "groups": "run", "column": "value"}
    for outputs, more in (
        (tmp_path / "both.csv", columns), (frame, columns), (every, {"label": on, "groups": runs}),
        (frame["value"], {"label": on, "groups": frame["run"]}),
    ):  # fmt: skip
        assert audit(outputs, **more, rng=1).evidence == wanted.evidence
    matrix = np.stack([every, np.repeat(np.arange(40), 100), on], axis=1)
    assert audit(matrix, label=2, groups=1, rng=1).groups == (20, 20)
    turned = frame["run"].sort_values()
    with pytest.raises(ValueError, match="groups must be groups with the index of outputs"):
        audit(frame["value"], label=on, groups=turned)


@pytest.mark.parametrize(("words", "status", "said"), [
    ("--column value", 3, "--groups (which rows belong together)"),
    ("--groups run", 3, "20 groups on x and 20 on x'"),
    ("--groups day", 2, "--groups must be one of 'value', 'run' in x.csv, got 'day'"),
])  # fmt: skip
def test_groups_on_the_command_line(files, run, words, status, said):
    options = f"--rows independent --claim 1 --seed 1 {words}"
    found, out, err = run(f"audit-outputs {options}", *map(str, files[0]))
    assert found == status
    assert said in (out if status == 3 and "groups on x" in said else err)


# Messages of wrong calls of `dpcore.recorded`: the argument, and a word of the remedy.


FRAME = pd.DataFrame({"score": SCORES, "member": LABELS})

OWN = np.arange(8.0)
RUNS = np.repeat(np.arange(10), 10)
HUNDRED = np.random.default_rng(1).normal(size=100)
TABLE = np.stack([HUNDRED, RUNS, RUNS % 2], axis=1)


class Unreachable:
    """A tensor on a device that numpy does not reach."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("copy it to the host first")


def labelled(label, outputs=SCORES, **more):
    return lambda: audit_outputs(outputs, label=label, **SETTINGS, **more)


def of_runs(outputs=OWN, outputs_prime=OWN, **more):
    # Another object with the same rows: one object for both sides is an error of its own.
    second = outputs_prime.copy() if outputs_prime is OWN else outputs_prime
    return lambda: audit_outputs(outputs, second, **{"rows": "independent", **more})


def of_canaries(outputs=OWN, outputs_prime=OWN, **more):
    second = outputs_prime.copy() if outputs_prime is OWN else outputs_prime
    return lambda: audit_outputs(outputs, second, **{"rows": "one_run", **more})


def grouped(groups=RUNS, groups_prime=None, **more):
    return of_runs(HUNDRED, HUNDRED[::-1], groups=groups, groups_prime=groups_prime, **more)


VALUE_ERRORS = [
    # What an audit of given outputs refuses.
    (of_runs(rows="both"), "rows", "each row is an output of its own"),
    (lambda: Guesses(0, 0, 0, 0, 5), "guessed_out", "an integer"),
    (lambda: Guesses(3, 4, 0, 0, 5), "correct_in", "an integer"),
    (lambda: Guesses(3, 3, 3, 3, 5), "guessed_out", "an integer"),
    (lambda: Guesses(1, 1, 0, 0, 0), "canaries", "an integer"),
    # Outputs of independent runs.
    (of_runs(OWN[:3]), "outputs", "at least 4 rows on each side, got (3, 8)"),
    (of_runs(outputs_prime=OWN[:3]), "outputs", "at least 4 rows on each side, got (8, 3)"),
    (of_runs([]), "outputs", "at least one row"),
    (of_runs(OWN * 1j), "outputs_prime", "like outputs"),
    (of_runs(np.ma.masked_less(OWN, 3)), "outputs", "without masked entries"),
    (of_runs(outputs_prime=np.ones((8, 2))), "outputs_prime", "float64 of shape (size)"),
    (of_runs(outputs_prime=list("abcdefgh")), "outputs_prime", "like outputs"),
    (of_runs(claim=-1.0), "claim", "a finite number at least 0"),
    (of_runs(delta=1.0), "delta", "below 1"),
    (of_runs(confidence=1.0), "confidence", "below 1"),
    (of_runs(bound="one_run"), "bound", "one of 'clopper_pearson', 'exact'"),
    (of_runs(attack=lambda *pilot: lambda rows: 3), "event", "a function that"),
    (of_runs(attack=Threshold(5)), "attack", "one that applies to these outputs"),
    (of_runs(count_share=1.0), "count_share", "a finite number above 0 and below"),
    (of_runs(guesses=4), "guesses", "None where rows = 'independent', got 4"),
    (of_runs(column=0), "column", "None where outputs are arrays"),
    (of_runs(label="side"), "outputs_prime", "None where label is given"),
    (of_runs(paired=True, bound="exact"), "bound", "'clopper_pearson' where"),
    (of_runs(OWN[:7], paired=True), "outputs", "as many rows on x as on x' where paired = True"),
    (of_runs(rng=-1), "rng", "an integer from 0"),
    # Canaries of one run.
    (of_canaries([0.0, np.nan]), "outputs", "(-inf or inf for the least or most likely), got 'NaN"),
    (of_canaries(np.ones((4, 2)), np.ones((4, 2))), "outputs", "one score"),
    (of_canaries(attack=Threshold()), "attack", "None where rows = 'one_run'"),
    (of_canaries(pair=([0], [1])), "pair", "None where rows = 'one_run'"),
    (of_canaries(count_share=0.5), "count_share", "None where rows = 'one_run'"),
    (of_canaries(groups=OWN, groups_prime=OWN), "groups", "None where rows = 'one_run'"),
    (of_canaries(arranged=True), "arranged", "False where rows = 'one_run'"),
    (of_canaries(paired=True), "paired", "False where rows = 'one_run'"),
    (of_canaries(bound="exact"), "bound", "one of 'one_run', 'one_run_fdp', 'one_run_curve'"),
    (of_canaries(bound="one_run_fdp"), "delta", "above 0 for the bound one_run_fdp"),
    (of_canaries(guesses=0), "guesses", "an integer from 1 to 16, got 0"),
    (of_canaries(guesses=17), "guesses", "an integer from 1 to 16, got 17"),
    (of_canaries(guesses=1.5), "guesses", "a finite number above 0 and at most 1"),
    (of_canaries(guesses=0.0), "guesses", "a finite number above 0"),
    (of_canaries(guesses=(1, 2, 3)), "guesses", "a number, a share, or a tuple"),
    (of_canaries(guesses=(0, 0)), "guesses", "guesses out must be an integer from 1 to 16"),
    (of_canaries(guesses=(9, 8)), "guesses", "guesses out must be an integer from 0 to 7"),
    # Labels beside outputs: taken as `label=`, refused where they stand for outputs.
    (labelled(LABELS[:-1]), "label", "one for each of the 4,000"),
    (labelled(np.ones(SIZE)), "label", "rows for both sides"),
    (labelled(np.zeros(SIZE)), "label", "rows for both sides"),
    (labelled(np.where(LABELS, 1, -1)), "label_x", "given: which of '-1', '1' stands for x"),
    (labelled(np.where(np.arange(SIZE) == 6, np.nan, LABELS)), "label", "1, true, in or x"),
    (labelled(pd.Series([None, *LABELS[1:].tolist()])), "label", "1, true"),
    (labelled([None, *LABELS[1:].tolist()]), "label", "1, true"),
    (labelled(LABELS, outputs_prime=SCORES), "outputs_prime", "None"),
    (labelled(np.ma.masked_array(LABELS, np.arange(SIZE) < 3)), "label", "labels without"),
    (labelled(FRAME["member"], FRAME["score"].sort_values()), "label",
     "labels with the index of outputs"),
    (labelled("side", FRAME), "label", "one of 'score'"),
    (labelled("member", FRAME.assign(row=0)), "column", "given where a file has 2 columns beside"),
    (labelled("member", FRAME, column=["score", 1]), "column", "another one than the label"),
    # Rows that belong together.
    (grouped(None, RUNS), "groups_prime", "None where groups are not given"),
    (grouped(RUNS, RUNS), "groups", "other groups on x than on x'"),
    (grouped(RUNS, RUNS + 9), "groups", "(1 are on both sides; where their numbers start anew"),
    (grouped(RUNS[:-1], RUNS + 10), "groups", "100 rows, got '99 "),
    (grouped(RUNS, RUNS[:-1] + 10), "groups_prime", "got '99 labels"),
    (grouped(RUNS * 0, RUNS + 1), "groups", "at least 4 groups on each side, got (1, 10)"),
    (grouped(RUNS, RUNS // 5 + 10), "groups", "at least 4 groups on each side, got (10, 2)"),
    (grouped([None, *RUNS[1:]], RUNS + 10), "groups", "got 'nothing in row 1'"),
    (grouped([np.nan, *RUNS[1:]], RUNS + 10), "groups", "none of them NaN"),
    (grouped(RUNS, RUNS + 10, paired=True), "paired", "False where"),
    (grouped("run", RUNS), "groups_prime", "a column, or None, where"),
    (grouped(np.ma.masked_equal(RUNS, 3), RUNS + 10), "groups", "masked entries"),
    (labelled(RUNS % 2, HUNDRED, groups=RUNS, groups_prime=RUNS), "groups_prime",
     "None where label is given"),
    (labelled(np.arange(100) % 2, HUNDRED, groups=RUNS), "groups", "other groups on x than on x'"),
    (labelled(2, TABLE, groups=2), "groups", "another column than the label"),
    (labelled(2, TABLE, groups=1, column=[0, 1]), "column", "another one than groups"),
]  # fmt: skip
TYPE_ERRORS = [
    # What an audit of given outputs refuses.
    (of_runs(rows=None), "rows", "'independent' or 'one_run'"),
    (of_runs(rows=["independent"]), "rows", "each row is an output"),
    (of_runs(1.0), "outputs", "an array with one row an output"),
    (of_runs(Unreachable()), "outputs", "an array with one row"),
    (of_runs(outputs_prime=None), "outputs_prime", "the outputs on x'"),
    (of_runs(bound=1), "bound", "one of"),
    (of_runs(attack=3), "attack", "a callable"),
    (of_runs(attack=lambda *pilot: 3), "event", "a callable"),
    (of_runs(attack=MajorityVote()), "x", "a non-empty vector"),
    (of_runs(pair=3), "pair", "a Pair"),
    (of_runs(count_share="half"), "count_share", "above 0"),
    (of_runs(paired=1), "paired", "True or False, got 1"),
    (of_canaries(source=0), "source", "True or False, got 0"),
    (of_canaries(progress="yes"), "progress", "True, False or None, got 'yes'"),
    (of_canaries(["a"], ["b"]), "outputs", "one real number for each canary"),
    (of_canaries(guesses=True), "guesses", "an integer"),
    (of_canaries(guesses="all"), "guesses", "an integer"),
    # Labels beside outputs: taken as `label=`, refused where they stand for outputs.
    (labelled([[1], [0, 1]]), "label", "a column's name or number"),
    (labelled(np.ones((SIZE, 2))), "label", "a column's name"),
    (labelled(True), "label", "a column's name"),
    (labelled("member"), "outputs", "a frame"),
    # Rows that belong together.
    (grouped(), "groups_prime", "the groups of outputs_prime"),
    (grouped("run"), "outputs", "a file, a frame or a matrix where groups is a column"),
    (grouped([[1]] * 100, RUNS), "groups", "hashable labels"),
    (grouped(3.5, RUNS), "groups", "hashable labels"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
