"""Every call that a message, note or row proposes is run where it is proposed.

A row of a table has words of the string in the source, the situation that brings it, the proposal
as a user reads it, and the call in which @ stands for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer
from shared_extras import needs

import dpcore
from dpcore import cli, published
from dpcore.cli.app import app
from dpcore.cli.audits import SYSTEMS
from dpcore.cli.options import OPTIONS, name_options
from dpcore.text.words import CusText, Embedding

pytestmark = pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")


def release(x, size, rng):
    return np.asarray(x) + rng.laplace(size=(size, len(x)))


def one_answer(x, rng):
    return x + rng.laplace(size=x.shape)


def of_two_lengths(x, size, rng):
    return rng.normal(size=(size, 1 if x[0] == 0.0 else 2))


def answer_of_two_lengths(x, rng):
    return rng.normal(size=1 if x[0] == 0.0 else 2)


def same_noise(x, size, rng):
    return x + np.repeat(rng.laplace(size=(1, len(x))), size, axis=0)


RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=4000)
NAMES = {
    **globals(),
    "few": {"trials": 500, "rng": 1},
    "independent": {"rows": "independent", "rng": 1},
    "P": (np.zeros(1), np.ones(1)),
    "E": ([0.0], [0.0]),
    "spread": dpcore.Pair([0.0] * 8, [1 / 8] * 8),
    "single": dpcore.Pair([0.0] * 8, [1.0] + [0.0] * 7),
    "mechanism": published.LaplaceMechanism(1.0),
    "m": CusText(Embedding(("a", "b", "c", "d"), [[0.0], [1.0], [5.0], [6.0]]), 1.0, k=2),
    "x": np.zeros(1),
    "size": 3,
    "near": ROWS + RNG.normal(size=4000) / 100,
    "drifting": np.arange(4000.0) + RNG.normal(size=4000),
    "late": np.arange(4000.0) + RNG.normal(size=4000),
    "labels": RNG.integers(2, size=4000),
    "scores": (RNG.normal(size=200) + 1, RNG.normal(size=200)),
}
CALLS = [
    ("pairs.zeros_ones({})", "dpcore.audit(release, dim=8)", "pair=dpcore.pairs.zeros_ones(8)",
     "dpcore.audit(release, @, claim=8, **few)"),
    ("one output a call and pass", "dpcore.audit(of_two_lengths, P, claim=1, **few)",
     "dpcore.repeat(function)",
     "function = answer_of_two_lengths; dpcore.audit(@, P, claim=1, **few)"),
    ("draw the noise with size=(size", "dpcore.audit(same_noise, P, claim=1, **few)",
     "dpcore.repeat(function)", "function = one_answer; dpcore.audit(@, P, claim=1, **few)"),
    ("draw the noise with size=(size", "dpcore.audit(same_noise, P, claim=1, **few)",
     "size=(size, len(x))", "dpcore.audit(lambda x, size, rng: x + rng.laplace(@), P, claim=1)"),
    ("which is then tested as it", "dpcore.audit(mechanism, ([0.0], [2.0]), **few)", "claim=",
     "dpcore.audit(mechanism, ([0.0], [2.0]), @2, **few)"),
    ("null=True allows two", "dpcore.audit(mechanism, E, **few)", "null=True",
     "dpcore.audit(mechanism, E, @, **few)"),
    ("1 where neighbour= is given",
     "dpcore.audit(release, dpcore.Pair([0.0], [1.0], 2.0), claim=1, neighbour='l1', **few)",
     "leave one of them out",
     "dpcore.audit(release, dpcore.Pair([0.0], [1.0], 2.0), claim=1, **few)"),
    ("give mass, and no mechanism",
     "dpcore.plan(1, mechanism=release, pair=P, attack='coordinatewise', factor=0.9)",
     "mass, and no mechanism", "dpcore.plan(1, mass=0.5, factor=0.9)"),
    ("give the loss to plan for", "dpcore.plan(1.5, mechanism=release, pair=P, rng=1)", "factor",
     "dpcore.plan(1.5, mechanism=release, pair=P, @=0.5, rng=1)"),
    ("dpcore.calibration.laplace", "dpcore.Laplace(epsilon=1, sensitivity=1)",
     "dpcore.calibration.laplace", "dpcore.Laplace(@(epsilon=1.0, sensitivity=1.0))"),
    ("dpcore.calibration.gaussian_analytic(", "dpcore.Gaussian(epsilon=1, sensitivity=1)",
     "dpcore.calibration.gaussian_analytic(...).sigma", "dpcore.Gaussian(@)"),
    ("dpcore.Counts(k, n", "dpcore.bounds.clopper_pearson(10, 100, 5, 100)",
     "dpcore.Counts(k, n, k_prime, n_prime)",
     "k = k_prime = 5; n = n_prime = 9; dpcore.bounds.clopper_pearson(@)"),
    ("claim={}, delta={}", "dpcore.audit(release, P, claim=(1, 1e-5))", "claim=1, delta=1e-05",
     "dpcore.audit(release, P, @, **few)"),
    ("neighbour= says which", "dpcore.audit(release, P, claim=1, sensitivity=1)", "neighbour=",
     "dpcore.audit(release, P, claim=1, @dpcore.pairs.L1(1.0), **few)"),
    ("one list alone: neighbour=m.same_list", "dpcore.audit_table(m)", "neighbour=m.same_list",
     "dpcore.audit_table(m, @)"),
    ("(dpcore.pairs.{})", "dpcore.audit(release, P, claim=1, neighbour='l3')", "pairs.L1(1.0)",
     "dpcore.audit(release, P, claim=1, neighbour=dpcore.@, **few)"),
    ("or a noise such as dpcore.Laplace", "dpcore.audit('laplace', P, claim=1)",
     "dpcore.Laplace(1.0)", "dpcore.audit(@, P, claim=1, **few)"),
    ("which dpcore.repeat makes", "dpcore.audit(one_answer, P, claim=1)", "dpcore.repeat",
     "dpcore.audit(@(one_answer), P, claim=1, **few)"),
    ("numpy.asarray(x{}) in", "dpcore.audit(dpcore.repeat(one_answer), ([0.0], [1.0]), claim=1)",
     "numpy.asarray(x)", "function = lambda x, rng: one_answer(@.astype(float), rng);"
     " import numpy; dpcore.audit(dpcore.repeat(function), ([0.0], [1.0]), claim=1, **few)"),
    ("outputs that were drawn before", "dpcore.audit(ROWS, near, claim=1)", "dpcore.audit_outputs",
     "@(ROWS, near + 1, claim=1, paired=True, **independent)"),
    ("give it a third argument rng", "dpcore.audit(lambda x, size: x, P, claim=1)", "rng",
     "dpcore.audit(lambda x, size, @: x + rng.laplace(size=(size, 1)), P, claim=1, **few)"),
    ("dpcore.sample({}, x, size)", "dpcore.Laplace(1.0).sample(10)",
     "dpcore.sample(Laplace(scale=1.0, variant='two_branch'), x, size)",
     "from dpcore import Laplace; @"),
    ("dpcore.audit(mechanism, pair) makes one", "dpcore.Audit(release, P)",
     "dpcore.audit(mechanism, pair)", "mechanism, pair = release, P; @"),
    ("dpcore.repeat(lambda x: {}(x, ...))", "dpcore.audit(np.mean, P)",
     "dpcore.repeat(lambda x: mean(x, ...))",
     "mean = lambda x, other: np.mean(x) + np.random.laplace(); dpcore.audit(@, P, **few)"),
    ("pairs.search(...)", "dpcore.audit(release, 3.0, claim=1)", "pairs.search(",
     "dpcore.audit(release, dpcore.@dpcore.pairs.Box(0, 1, 1), dpcore.pairs.L1(1.0)), claim=1,"
     " **few)"),
    ("give paired=True", "dpcore.audit_outputs(ROWS, near, claim=1, **independent)",
     "paired=True",
     "assert not dpcore.audit_outputs(ROWS, near, claim=1, @, **independent).doubts"),
    ("rows depend on their neighbours",
     "dpcore.audit_outputs(np.sort(drifting % 100 + drifting), late, claim=1, **independent)"
     ".doubts or 'arranged=True'",
     "arranged=True", "dpcore.audit_outputs(drifting, late, claim=1, @, **independent)"),
    ("label= the labels of outputs", "dpcore.audit_outputs(ROWS, claim=1, **independent)",
     "label=", "dpcore.audit_outputs(ROWS, @labels, claim=1, **independent)"),
    ("give claim.epsilon(delta)",
     "dpcore.audit_outputs(*scores, rows='one_run', claim=dpcore.claims.ZCDP(0.5),"
     " bound='one_run')",
     "claim.epsilon(delta)",
     "claim = dpcore.claims.ZCDP(0.5); delta = 1e-5; dpcore.audit_outputs(*scores, rows='one_run',"
     " claim=@, delta=delta, bound='one_run')"),
    ("pass logarithms (log=True)",
     "dpcore.audit_table(np.float32([[1.0, 0.0], [0.5, 0.5]]), claim=1)",
     "log=True", "dpcore.audit_table([[0.0, -800.0], np.log([0.5, 0.5])], claim=1, @)"),
    ("dpcore.pairs.patterns({dim}, \"one\")",
     "dpcore.audit(mechanism, spread, claim=1, trials=4000, rng=1)",
     'dpcore.pairs.patterns(8, "one")', "dpcore.audit(mechanism, @, claim=1, **few)"),
    ("dpcore.pairs.patterns({dim}, \"all\")",
     "dpcore.audit(release, single, claim=1.2, neighbour='linf', trials=4000, rng=1)",
     'dpcore.pairs.patterns(8, "all")',
     "dpcore.audit(release, @, claim=8, neighbour='linf', **few)"),
    ("another pair (dpcore.pairs.search)",
     "dpcore.audit(release, P, claim=1.2, trials=10**4, rng=1)", "dpcore.pairs.search",
     "dpcore.audit(release, @(dpcore.pairs.Box(0, 1, 1), dpcore.pairs.L1(1.0)), claim=1.2, **few)"),
    ("an own score (dpcore.attacks", "dpcore.audit(release, P, claim=5, trials=4000, rng=1)",
     "dpcore.attacks.Threshold(score=",
     "dpcore.audit(release, P, claim=5, attack=@lambda outputs: outputs[:, 0]), **few)"),
    ("attack=\"coordinatewise\" (for",
     "dpcore.audit(release, dpcore.Pair([0.0] * 8, [1.0] * 8), claim=40.0, trials=500, rng=1)",
     'attack="coordinatewise"',
     "dpcore.audit(release, dpcore.Pair([0.0] * 8, [1.0] * 8), claim=40.0, @, **few)"),
    ("dpcore.repeat(..., thread_safe=True)", "", "dpcore.repeat(..., thread_safe=True)",
     "dpcore.audit(dpcore.repeat(one_answer, thread_safe=True), P, claim=1, threads=2, **few)"),
    ("threads=8 makes eight", "", "threads=8",
     "release.thread_safe = True; dpcore.audit(release, P, claim=1, @, **few)"),
    ("share blocks of calls out", "", "block=", "dpcore.audit(release, P, claim=1, @64, **few)"),
    ("shared out, and {}: give block={}", "", "block=",
     "dpcore.audit(release, P, claim=1, @250, **few)"),
    ("a fresh audit with bound=", "", 'bound="clopper_pearson"',
     "dpcore.audit(release, P, claim=1, @, **few)"),
    ("dpcore.divergence.closed_forms", "dpcore.divergence.kl([0.5, 0.5], [0.1, 0.9])",
     "dpcore.divergence.closed_forms", "@.discrete_renyi([1.0], [0.5, 0.5], [0.1, 0.9])"),
    ("dpcore.trace(mechanism, pair) computes", "dpcore.audit(release, P, claim=0.4, **few)",
     "dpcore.trace(mechanism, pair)", "mechanism, pair = release, P; assert @.loss == 1.0"),
    ("give trials=", "dp_audit(release, P, claim=1, seconds=3)", "trials=",
     "dp_audit(release, P, claim=1, @500)"),
    ("outputs on x', and not those on x",
     "dpcore.audit_outputs(ROWS, ROWS, claim=1, **independent)",
     "outputs on x'", "dpcore.audit_outputs(ROWS, labels + ROWS[::-1], claim=1, **independent)"),
]  # fmt: skip


def run_situation(code, names):
    """Return what a user reads: the message of an error, or the report."""
    try:
        result = eval(code, names)
    except (TypeError, ValueError, AttributeError) as error:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    return str(result)


@pytest.mark.parametrize("row", CALLS, ids=[row[0] for row in CALLS])
def test_a_proposed_call_runs(row, dp_audit):
    _, situation, proposal, call = row
    names = {**NAMES, "dp_audit": dp_audit}
    if situation:
        assert proposal in run_situation(situation, names)
    exec(call.replace("@", proposal.replace("(...)", "(1.0, 1e-5, 1.0)")), names)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_pair_of_a_system_is_its_own(name):
    mechanism = SYSTEMS[name](epsilon=1.0)
    names = {**NAMES, "mechanism": mechanism}
    proposal = "pair=mechanism.default_pair(8)"
    assert proposal in run_situation("dpcore.audit(mechanism, dim=8)", names)
    exec(f"dpcore.audit(mechanism, {proposal}, trials=500, rng=1)", names)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("make", "pair", "relation"),
    [
        ("dp.m.make_laplace(*line, scale=2.0)", "P", "L1(1.0)"),
        ("dp.m.make_gaussian(*line, scale=2.0)", "P", "L1(1.0)"),
        ("dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)",
         "([0], [1])", "L1(1.0)"),
        ("dp.m.make_randomized_response_bool(prob=0.75)", "(True, False)", "Replace()"),
        ("records >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)", "([0.5, 1.0], [0.5])",
         "AddRemove()"),
        ("dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*line, scale=2.0)),"
         " 1e-5)", "P", "L1(1.0)"),
    ],
)  # fmt: skip
def test_the_advice_of_a_measurement(make, pair, relation):
    dp = needs("opendp.prelude")
    dp.enable_features("contrib")
    names = {**NAMES, "dp": dp, "line": (
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    ), "records": (
        dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0))), dp.symmetric_distance()
    )}  # fmt: skip
    exec(f"measurement = {make}", names)
    said = run_situation(f"dpcore.audit(measurement, {pair}, trials=100)", names)
    proposals = re.search(r"such as (neighbour=\S+\)), and (dpcore\..+?) shows it", said)
    assert proposals is not None
    assert relation in proposals[1]
    brought = eval(f"dpcore.audit(measurement, {pair}, {proposals[1]}, trials=100)", names)
    shown = eval(proposals[2], names)
    shown, delta = shown if isinstance(shown, tuple) else (shown, brought.delta)
    assert (brought.claim, brought.delta) == (shown, delta)


@pytest.mark.extras
def test_a_measurement_whose_map_is_no_single_claim_says_how_to_make_one():
    dp = needs("opendp.prelude")
    dp.enable_features("contrib")
    line = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*line, scale=2.0)
    measurement = dp.c.make_zCDP_to_approxDP(gaussian)
    P, unit = ([0.0], [1.0]), dpcore.pairs.L1(1.0)
    said = str(dpcore.audit(measurement, P, neighbour=unit, trials=100))
    assert "opendp.prelude.c.make_fix_delta(measurement, 1e-5)" in said
    fixed = dp.c.make_fix_delta(measurement, 1e-5)
    assert dpcore.audit(fixed, P, neighbour=unit, trials=100).delta == 1e-5
    at_one = dpcore.adapters.OpenDP(gaussian, d_in=1.0)
    assert "claim=dpcore.adapters.OpenDP(measurement, d_in=1.0).curve" in str(
        dpcore.audit(at_one, P, trials=100)
    )
    assert dpcore.audit(at_one, P, claim=at_one.curve, trials=100).claim == at_one.curve


# The command line.

LINES = [
    ("audit half-noise --eps 1", "--epsilon", "audit half-noise @ 1 --trials 500"),
    ("audit FILE:release --eps 1", "--claim", "audit FILE:release @ 1 --x 0 --x-prime 1"),
    ("audit half-noise --epsilon 1 --alpha .1", "--confidence",
     "audit half-noise --epsilon 1 @ .9 --trials 500"),
    ("audit FILE:release --x 0 --x-prime 1 --claim '(1, 1e-5)'", "--claim 1 --delta 1e-5",
     "audit FILE:release --x 0 --x-prime 1 @ --trials 500"),
    ("audit FILE:release --x 0 --x-prime 0 --claim 1", "--null",
     "audit FILE:release --x 0 --x-prime 0 --claim 1 @ --trials 500"),
    ("audit FILE:release --x 0 --x-prime 3 --claim 1 --neighbour l1=1", "--neighbour l1=1.0",
     "audit FILE:release --x 0 --x-prime 1 --claim 1 @ --trials 500"),
    ("audit laplace --epsilon 1 --dim 8 --trials 4000 --seed 1", "--patterns one --dim 8",
     "audit laplace --epsilon 1 @ --trials 500"),
    ("audit FILE:one_answer --x 0 --x-prime 1 --claim 1", "--repeat",
     "audit FILE:one_answer --x 0 --x-prime 1 --claim 1 @ --trials 500"),
    ("audit FILE:release --x 0 --x-prime 1 --claim .2 --trials 4000 --seed 1",
     "dpcore trace computes which line", "trace FILE:release --x 0 --x-prime 1 --claim .2"),
    ("audit-outputs A B --rows independent --claim 1", "--paired",
     "audit-outputs A B --rows independent --claim 1 @"),
    ("audit-outputs A A --rows independent --claim 1", "equal SHA-256",
     "audit-outputs A C --rows independent --claim 1"),
    ("audit-outputs A B --rows independent", "--no-claim",
     "audit-outputs A C --rows independent @"),
]  # fmt: skip


@pytest.mark.parametrize("row", LINES, ids=[row[0] for row in LINES])
def test_a_proposed_option_works(row, tmp_path, capsys):
    line, proposal, works = row
    own = "def release(x, size, rng):\n    return x + rng.laplace(size=(size, 1))\n"
    own += "\n\ndef one_answer(x, rng):\n    return x + rng.laplace(size=1)\n"
    (tmp_path / "own.py").write_text(own, "utf-8")
    drawn = {"A": ROWS, "B": NAMES["near"], "C": ROWS[::-1] + NAMES["near"][7]}
    for name, values in drawn.items():
        np.savetxt(tmp_path / f"{name}.csv", values)

    def run(words):
        words = [
            str(tmp_path / f"{word}.csv") if word in drawn
            else word.replace("FILE", str(tmp_path / "own.py"))
            for word in shlex.split(words)
        ]  # fmt: skip
        status = cli.main(words)
        captured = capsys.readouterr()
        return status, " ".join((captured.out + captured.err).split())

    _, said = run(line)
    assert proposal in said
    assert not re.search(r"(?<![\w.])(?:paired|null|neighbour|delta)=", said)
    status, said = run(works.replace("@", proposal))
    assert status in (0, 1), said


def test_the_help_of_recorded_outputs_states_no_claim_of_their_own(capsys):
    for command in ("audit-outputs", "audit-table"):
        cli.main([command, "--help"])
        assert "own claim" not in capsys.readouterr().out
    cli.main(["audit", "--help"])
    assert "own claim" in capsys.readouterr().out


# All strings of the package that propose something.

CALLS_OF = ("audit_json.py", "planned.py")
"""They write the call that repeats an audit, which tests of the report run."""

PACKAGE = Path(dpcore.__file__).parent
ARGUMENTS = "|".join([*OPTIONS, "floats", "executor"])
PROPOSES = re.compile(
    r"\bdpcore\.\w+\b(?!/)|\b(?:give|write|pass) [`\w(-]|\bpairs\.\w"
    rf"|(?<![\w.-])(?<!\w\()(?:{ARGUMENTS})=(?!\{{)"
)

ALLOWED = {
    "said in tests of their own: they need torch, a cluster, real files or minutes": [
        "an encoder of texts (write", "workers that give", "set NPY_DISABLE_CPU_FEATURES",
        "choose an attack= of dpcore's own", "OpenDP(measurement, d_in", "neighbour= brings",
        "claim= must say", "for a measurement on", "d_in={}", "the mechanism chooses it: dpcore",
        "null=True allows them", "{} draws its own randomness",
        "given, or neighbour= (", "of a transformer pass", "lm.fit with epsilon=",
        "sensitivity=, epsilon=, trainable", "others give audit_step", "the encoder has no rng=",
        "label= names an attribute", "give finer ones, or leave group out", "encoding=",
        "format=", "column=", "exclude=NAME", "sep={} splits", "as dtype= asks",
        "write nan where", "block= asks",
        "dpcore.text.split", "words_of, for functions",
        "COUNTEREXAMPLES", "read_corpus reads", "in dpcore.repeat(function, catch=...)",
        "dpcore.audit_table compares all", "again=True voids the first",
    ],
    "states a rule or a fact, and proposes no call": [
        "give different answers here", "hardly repeats (a seed?)",
        "same_bits=False): the seed", "left alone for stop='refuted'", "rows='independent', or",
        "files of runs with stop='fixed'", "the last bits of raw floats", "a dpcore.text.Corpus",
        "a class of mechanisms of", "without attackers of your own",
        "at least 0 (log=False)", "log=True takes", "source=False)", "label= is for labels",
        "others with label_x=",
        "executor= a Dask client", "has no argument", "one of dpcore.sensitivity's",
        "a relation of dpcore.pairs", "which dpcore.audit asks", "one of {} or a noise layer",
        "one of dpcore.torch, to be saved", "dpcore.audit takes the others",
        "dpcore.text.{}/1", "source=False", "stop='fixed'", "read -r event group",
        "the noise so moved does not give", "x, rng=",
    ],
}  # fmt: skip


def list_texts():
    """List the strings of the package with their places, f-strings with {} for their parts."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in ("cli", "experiments") or path.name in CALLS_OF:
            continue
        tree, skipped = ast.parse(path.read_text("utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                skipped.add(id(node.value))
            elif isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in skipped or not isinstance(node, (ast.Constant, ast.JoinedStr)):
                continue
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
            text = "".join(one for one in texts if isinstance(one, str))
            found.append((f"{path.name}:{node.lineno}", text))
    return found


def list_proposals():
    """List the strings that propose something; a name alone, as of a module, proposes nothing."""
    return [
        (place, text)
        for place, text in list_texts()
        if PROPOSES.search(text) and not re.fullmatch(r"[\w./-]+", text)
    ]


def test_every_proposal_of_the_package_is_run_or_excused():
    stated = [row[0] for row in CALLS] + [words for group in ALLOWED.values() for words in group]
    unknown = [one for one in list_proposals() if not any(words in one[1] for words in stated)]
    assert not unknown
    texts = [text for _, text in list_texts()]
    assert not [words for words in stated if not any(words in text for text in texts)]


def test_the_command_line_spells_every_argument_that_the_package_proposes():
    left = re.compile(rf"(?<![\w.-])(?<!\w\()(?:{ARGUMENTS})=(?!\{{)")
    for place, text in list_proposals():
        spelled = re.sub(r"[\w.]+\((?:[^()]|\([^()]*\))*\)", "", name_options(text))
        assert not left.search(spelled), (place, spelled)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("give paired=True", "give --paired"),
        ("same_bits=False accepts", "--no-same-bits accepts"),
        ("(claim=1, delta=1e-05)", "(--claim 1 --delta 1e-05)".replace("1 --d", "1, --d")),
        ("with format='lines')", "with --format lines)"),
        ("threads= or executor= share", "--threads or --dask share"),
        ('(dpcore.pairs.patterns(8, "all"))', "(--patterns all --dim 8)"),
        ("neighbour=dpcore.pairs.AddRemove()", "--neighbour add-remove"),
        ("neighbour=L2(radius=0.5)", "--neighbour l2=0.5"),
        ("rng=7 repeats", "--seed 7 repeats"),
        (
            "dpcore.repeat(f, trials=3) or x = [0., 1.]",
            "dpcore.repeat(f, trials=3) or x = [0., 1.]",
        ),
    ],
)
def test_arguments_become_options(text, spelled):
    assert name_options(text) == spelled


# What pages propose between backquotes; blocks of code are run with the pages.

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
OTHER_OPTIONS = re.compile(r"--dp-\w[\w-]*|--help|--steps|--release|--example|--cov\S*")


def list_inline_code(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", text)


def find_wrong_arguments(code):
    """List arguments, in the calls of dpcore that a piece of code makes, that no function has."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    wrong = []
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        name = ast.unparse(call.func)
        if not re.fullmatch(r"dpcore(\.\w+)+", name) or ".torch" in name or ".experiments" in name:
            continue
        names = inspect.signature(eval(name)).parameters
        wrong += [one.arg for one in call.keywords if one.arg not in names]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_inline_code_of_a_page_names_options_and_arguments_that_exist(page):
    command = typer.main.get_command(app)
    options = {
        name
        for one in (command, *command.commands.values())
        for option in one.params
        for name in (*option.opts, *option.secondary_opts)
    }
    for code in list_inline_code(page):
        words = re.findall(r"(?<![\w-])--[a-z][\w-]*", OTHER_OPTIONS.sub("", code))
        assert "pip " in code or {*words} <= options, code
        assert not find_wrong_arguments(code), code


def test_a_wrong_argument_of_inline_code_is_found():
    assert find_wrong_arguments("dpcore.audit(f, pair, claims=1)") == ["claims"]
