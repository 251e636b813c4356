"""Misspelt arguments are corrected, type checkers know the names, and some words are never used."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pickle
import re
import subprocess
import sys
import tokenize
import traceback
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import dpcore
from dpcore import Counts, Laplace, attacks, bounds, calibration, divergence, exact, pairs
from dpcore.bounds import RecordedBound
from dpcore.recorded.run import OutputsOptions
from dpcore.results.guesses import OUTPUTS_BOUNDS, ROWS, Rows
from dpcore.sensitivity import Ball, refute, sensitivity
from dpcore.suggestions import explain_argument_errors
from dpcore.text.reading import KINDS, Kind
from dpcore.text.templates import GENERATED
from dpcore.text.templates import Kind as Generated

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "attacks", "bounds", "calibration", "divergence", "events", "exact", "pairs", "published",
    "sensitivity", "structure", "text", "text.inference", "text.redaction",
    "text.schedules", "text.words", "experiments.corpora", "experiments.word2vec_leakage.leakage",
)  # fmt: skip
FOUND = {
    # Made by functions, never by users; or without a name to misspell.
    "Audit", "OutputsAudit", "TableAudit", "Raised", "Plan", "Searched", "Trace",
    "Band", "CalibratedGaussian", "RealEpsilon", "Counterexample",
    "Beside", "Converted", "Diagnostics", "Epsilon", "Estimate", "Line", "Declaration",
    "Refutation", "Sensitivity", "SensitivityError", "Check", "Fault", "Inspection", "Floor",
    "Group", "Inference", "Measured", "OfAttribute", "Leakage", "TextLoss",
    "WordCalibration",
    # Of one argument or two, given by place.
    "event_of", "can_core_draw", "member_strategy", "pair_strategy", "named", "usual",
    "word_vectors", "words_of", "split_words",
    "batch_or_epoch", "epsilon_of", "title_of", "loss",
}  # fmt: skip


def misspelt(function):
    """An argument's name without its last letter, or with one more; None without arguments."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        taken = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken):
        return None
    names = [one.name for one in taken if one.kind in kinds]
    return f"{max(names, key=len)}_" if names else None


def public():
    modules = [dpcore, *(importlib.import_module(f"dpcore.{package}") for package in PACKAGES)]
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            protocol = getattr(value, "_is_protocol", False)
            if callable(value) and not protocol and name not in FOUND and misspelt(value):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", list(public()))
def test_a_misspelt_argument_is_answered_with_the_one_meant(function):
    if isinstance(function, type) and issubclass(function, Warning):
        return
    wrong = misspelt(function)
    with pytest.raises(TypeError) as caught:
        function(**{wrong: 0})
    assert str(caught.value).endswith(f"argument {wrong!r} (did you mean {wrong[:-1]!r}?)")


@pytest.mark.parametrize(
    ("function", "given", "meant"),
    [
        (dpcore.audit, "epsilon", "'claim'"),
        (dpcore.audit, "seed", "'rng'"),
        (dpcore.audit, "random_state", "'rng'"),
        (dpcore.audit, "alpha", "confidence = 1 - alpha"),
        (dpcore.audit, "trails", "'trials'"),
        (dpcore.audit, "x", "pair = (x, x_prime)"),
        (dpcore.audit_outputs, "epsilon", "'claim'"),
        (dpcore.audit_table, "epsilon", "'claim'"),
        (dpcore.sample, "seed", "'rng'"),
        (divergence.renyi, "alpha", "'alphas'"),
        (dpcore.published.DPText, "claim", "'epsilon'"),
        (dpcore.Gaussian, "scale", "'sigma'"),
        (dpcore.text.TfidfSVD, "rng", "'seed'"),
    ],
)
def test_names_of_other_packages_are_known(function, given, meant):
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
        function(**{given: 1})
    assert str(caught.value).endswith(f"{given!r} (did you mean {meant}?)")


def test_a_name_like_no_other_and_a_mistake_within_are_left_as_they_are():
    def inner():
        return max(key=1, other=2)

    with pytest.raises(TypeError, match=r"argument 'zzz'$"):
        dpcore.audit(zzz=1)
    with pytest.raises(TypeError, match=r"^max") as caught:
        explain_argument_errors(lambda: inner())()
    # The frames below the function's own are all there.
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][-2:] == ["<lambda>", "inner"]


def test_a_hint_leaves_a_function_and_a_class_what_they_are():
    assert list(inspect.signature(dpcore.audit).parameters)[:2] == ["mechanism", "pair"]
    assert dpcore.audit.__doc__.startswith("Attack a mechanism")
    own_lines = "@explain_argument_errors\n@with_signature_of(Arguments)\ndef audit("
    assert inspect.getsource(dpcore.audit).startswith(own_lines)
    assert pickle.loads(pickle.dumps(dpcore.audit)) is dpcore.audit
    assert str(inspect.signature(Laplace)).startswith("(scale: 'float', variant: 'Variant'")
    assert is_dataclass(Laplace)
    assert replace(Laplace(1.0), scale=2.0) == pickle.loads(pickle.dumps(Laplace(2.0)))


def test_too_many_inputs_hear_of_the_tuple_and_others_of_names():
    with pytest.raises(TypeError, match=r"two inputs are one argument, a tuple: \(x, x_prime\)"):
        dpcore.audit(Laplace(1.0), [0.0], [1.0], claim=1.0)
    with pytest.raises(TypeError, match=r"\(by name: rows=, claim=, delta=\)$"):
        dpcore.audit_outputs([0.0], [1.0], "independent")


FEW = {"trials": 2000, "rng": 1}


def test_a_class_in_place_of_an_instance_is_told():
    pair = dpcore.Pair([0.0], [1.0])
    for call, made in [
        (lambda: dpcore.audit(Laplace), "Laplace"),
        (lambda: dpcore.audit(dpcore.published.DPText), "DPText"),
        (lambda: dpcore.audit(type("Own", (), {"__call__": print}), pair), "Own"),
        (lambda: dpcore.audit(Laplace(1.0), neighbour=pairs.L1), "L1"),
        (lambda: dpcore.audit(Laplace(1.0), dpcore.Pair), "Pair"),
        (lambda: dpcore.sample(Laplace, [0.0], 3), "Laplace"),
        (lambda: exact.vote_loss(Laplace, pair), "Laplace"),
        (lambda: sensitivity(Ball, "l1"), "Ball"),
        (lambda: dpcore.structure.inspect(Laplace, [0.0]), "Laplace"),
        (lambda: calibration.real_epsilon(Laplace, Ball("l1", 1.0, 2)), "Laplace"),
    ]:
        with pytest.raises(TypeError, match=rf"an instance and not the class \({made}\(\.\.\.\)"):
            call()
    with pytest.raises(TypeError, match=r"not its class \(Threshold\(\) makes one\)"):
        dpcore.audit(Laplace(1.0), attack=attacks.Threshold)


def test_a_function_of_one_answer_hears_of_repeat():
    class Own:
        # Of such a call Python 3.11 shows a signature that is one argument short.
        __call__ = staticmethod(lambda x, size, rng: x + rng.laplace(size=(size, 1)))

    for one in (lambda x, rng: 0.0, lambda x: 0.0, lambda x, *, rng: 0.0):
        with pytest.raises(TypeError, match=r"which dpcore\.repeat makes of a function of one an"):
            dpcore.audit(one, ([0.0], [1.0]))
    assert dpcore.audit(Own(), ([0.0], [1.0]), claim=1.0, **FEW).refuted is False


def test_attacks_have_one_list_of_names():
    words = get_args(attacks.AttackName)
    assert set(words) >= {*attacks.NAMES, *(cls.__name__ for cls in attacks.NAMES.values())}
    assert {type(attacks.named(word)) for word in words} == set(attacks.NAMES.values())
    wanted = dpcore.audit(Laplace(1.0), attack=attacks.MajorityVote(), **FEW)
    for name in ("majority", "MajorityVote", "majority-vote"):
        assert dpcore.audit(Laplace(1.0), attack=name, **FEW).counts == wanted.counts
    y0, y1 = np.random.default_rng(1).normal(size=(2, 400))
    given = {"rows": "independent", "rng": 1}
    named = dpcore.audit_outputs(y0, y1, attack="threshold", **given)
    assert named == dpcore.audit_outputs(y0, y1, attack=attacks.Threshold(), **given)
    with pytest.raises(ValueError, match=r"got 'coordwise' \(did you mean 'coordinatewise'\?\)$"):
        dpcore.audit(Laplace(1.0), attack="coordwise")


def test_lists_that_types_repeat_are_the_lists():
    assert set(get_args(RecordedBound)) == {name for of in OUTPUTS_BOUNDS.values() for name in of}
    assert get_args(Rows) == tuple(ROWS)
    assert set(get_args(Kind)) == set(KINDS)
    assert get_args(Generated) == tuple(GENERATED)
    taken = list(inspect.signature(dpcore.audit_outputs).parameters)[2:]
    assert set(OutputsOptions.__annotations__) == {*taken, "epsilon"} - {"claim"}


def test_parts_of_the_package_plug_together():
    noise = calibration.gaussian_analytic(1.0, 1e-5, sensitivity(Ball("l2", 0.5, 3), "l2"))
    assert noise == calibration.gaussian_analytic(1.0, 1e-5, 1.0)
    report = dpcore.audit(noise, **FEW)
    assert (report.claim, report.delta, report.refuted) == (1.0, 1e-5, False)
    weak = replace(noise, epsilon=0.01, delta=0.9, true_delta=0.0)
    assert weak.default_pair(2) == dpcore.Pair(np.zeros(2), np.eye(2)[0])
    assert dpcore.audit(replace(weak, sigma=0.1, delta=1e-9), **FEW).refuted is True
    found = calibration.real_epsilon(noise, Ball("l2", 0.5, 3))
    assert (found.claim, round(found.epsilon(1e-5), 6)) == (1.0, 1.0)
    widest = sensitivity(Ball("l1", 1.0, 3), "l1")
    assert calibration.laplace(1.0, widest) == 2.0
    assert refute(np.array, widest, "l1", Ball("l1", 1.0, 3), trials=100, rng=1).claimed == 2.0
    with pytest.raises(ValueError, match="sensitivity must be a sensitivity in l2, got 'one in l1"):
        calibration.l2_laplace(1.0, widest)
    counts = Counts(30, 100, 5, 100)
    assert bounds.epsilon_lower_at(counts, [0, 1e-3], bound="exact")[0] == bounds.berger_boos(
        counts
    )
    assert bounds.guesses_needed(1, "1e3", bound="one_run") == bounds.guesses_needed(1.0, 1000)
    assert pairs.distance(([0.0, 0.0], [1.0, 1.0]), "l1") == 2.0
    assert exact.vote_loss(Laplace(1.0), ([0.0], [1.0])) is not None
    few = dpcore.audit(Laplace(1.0), pilot="1e3", start=0.0, block=1e3, **FEW)
    assert (few.pilot, few.block) == (1000, 1000)
    y0, y1 = np.random.default_rng(1).normal(size=(2, 300))
    both = divergence.renyi(y0, y1, alphas=[1, 2], rng=1)
    assert both.value[:, 0].tolist() == both.kl.tolist()
    assert both.value[:, 1] == pytest.approx(divergence.renyi(y0, y1, alphas=2, rng=1).value[:, 0])


USER = """
import numpy as np
import numpy.typing as npt

import dpcore
from dpcore.pytest_plugin import DPAudit

Floats = npt.NDArray[np.float64]


def release(x: Floats, size: int, rng: np.random.Generator) -> Floats:
    return x + rng.laplace(size=(size, len(x)))


def event(outputs: Floats) -> npt.NDArray[np.bool_]:
    return outputs[:, 0] > 0.5


def own(outputs: Floats, outputs_prime: Floats, pair: dpcore.Pair) -> dpcore.Event:
    return event


mechanism: dpcore.Mechanism = dpcore.Laplace(1.0)
attack: dpcore.Attack = dpcore.attacks.Threshold()
dpcore.audit(release, ([0.0], [1.0]), attack=own, claim=1.0, rng=np.random.default_rng(1))
dpcore.audit(dpcore.Laplace(1.0, "sign"), attack="majority-vote", bound="exact", trials="1e6")
dpcore.audit_outputs([0.0], [1.0], rows="independent", attack="threshold", bound="exact")
dpcore.audit(dpcore.repeat(lambda x, rng: 1.0, seeded="rng"), attack=dpcore.attacks.Timing())


def test_it(dp_audit: DPAudit) -> None:
    print(dp_audit(release, ([0.0], [1.0]), claim=1.0, trials=3, attack="auto").epsilon_lower)
    dp_audit.refutes(release, epsilon=1.0, neighbour=dpcore.pairs.L1(1.0))
    dp_audit(release, trails=3)  # wrong
    dp_audit(release, seconds=3.0)  # wrong
    dp_audit.refutes(release, attack="theshold")  # wrong
    dp_audit.outputs([0.0], [1.0], rows="independant", claim=1.0)  # wrong


dpcore.audit(release, attack="coordwise")  # wrong
dpcore.audit(release, bound="clopper")  # wrong
dpcore.audit(release, stop="refute")  # wrong
dpcore.audit(release, route="integers")  # wrong
dpcore.audit(release, epsilon=1.0)  # wrong
dpcore.audit_outputs([0.0], [1.0], rows="indep")  # wrong
dpcore.audit_outputs([0.0], [1.0], rows="one_run", bound="anytime")  # wrong
dpcore.Laplace(1.0, variant="centered")  # wrong
dpcore.DPTextNoise(1.0, nan="zeros")  # wrong
dpcore.pairs.patterns(2, "ones")  # wrong
dpcore.pairs.distance(dpcore.Pair(0.0, 1.0), "L1")  # wrong
dpcore.repeat(release, seeded="seed")  # wrong
dpcore.sensitivity.Ball("l3", 1.0, 2)  # wrong
dpcore.divergence.renyi([0.0], [1.0], method="balls")  # wrong
dpcore.bounds.conditional(dpcore.Counts(1, 2, 0, 2), sides="fix")  # wrong
dpcore.text.Vocabulary(["a"], "drops")  # wrong
bad_event: dpcore.Event = own  # wrong
bad_attack: dpcore.Attack = event  # wrong
bad_mechanism: dpcore.Mechanism = event  # wrong
"""


@pytest.mark.sweep
def test_a_type_checker_finds_every_misspelt_word(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(USER)
    cache = ROOT / ".mypy_cache"
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent",
            "--cache-dir", str(cache), str(script),
        ],
        capture_output=True, text=True, cwd=ROOT, timeout=300, check=False,
    )  # fmt: skip
    wanted = [n for n, line in enumerate(USER.split("\n"), 1) if line.endswith("# wrong")]
    found = [line.split(":")[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert sorted({int(number) for number in found}) == wanted, done.stdout + done.stderr


NEVER = re.compile(r"(?<![a-z])(house|room|door)s?(?![a-z])", re.IGNORECASE)
"""Words that must not name parts of the package: write package, layer or report method instead."""

SOURCES = (
    "*.md", "*.toml", "Makefile", "benches/**/*.py", "docs/**/*.py", "docs/**/*.md",
    "docs/**/*.rst", "examples/**/*.py", "tests/**/*.py", "tests/**/*.rs", "python/dpcore/**/*.py",
    "python/dpcore/**/*.pyi",
)  # fmt: skip
"""Files that use such a word neither in prose nor, but for those of the package, in code."""

MADE = {"gallery", "generated"}
"""Folders of docs that a build writes."""

WORDS_ALLOWED = {
    "tests/test_vocabulary.py": "the words themselves",
    "python/dpcore/mechanisms/texts.py": "a text that is encoded",
}
"""Files that may use such a word, and why."""


def read_prose(source):
    """Yield the comments and strings of Python code, each with its line, without names in ` `."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"`[^`]*`", "", token.string)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, re.sub(r"`[^`]*`", "", node.value)


def find_words_in_prose(source):
    """Return the words of NEVER in the comments and strings of Python code, with their lines."""
    return [
        f"{line}: {found[0]}" for line, text in read_prose(source) for found in NEVER.finditer(text)
    ]


def find_words(name, text):
    """Return the words of NEVER in a file and its name."""
    if name.startswith("python/"):
        return find_words_in_prose(text)
    lines = enumerate([name, *text.splitlines()])
    return [f"{number}: {line.strip()}" for number, line in lines if NEVER.search(line)]


def test_parts_of_the_package_have_plain_names():
    paths = {path for pattern in SOURCES for path in ROOT.glob(pattern)}
    names = {path.relative_to(ROOT).as_posix(): path for path in paths}
    found = [
        f"{name}:{word}"
        for name, path in sorted(names.items())
        if name not in WORDS_ALLOWED and not MADE & set(path.parts)
        for text in [path.read_text("utf-8")]
        # To read the prose of a file takes long: only where there is such a word.
        if NEVER.search(name + text)
        for word in find_words(name, text)
    ]
    assert found == []
    # The control: every pattern finds files, and such a word is found in one of them.
    assert all(any(ROOT.glob(pattern)) for pattern in SOURCES)
    assert NEVER.search(names["tests/test_vocabulary.py"].read_text("utf-8"))


def test_a_word_that_must_not_stand_in_prose_is_found():
    assert find_words_in_prose("# the rooms above") == ["1: rooms"]
    assert find_words_in_prose('x = 1\n"""A Door of a result."""') == ["2: Door"]
    assert find_words_in_prose('raise ValueError(f"the house {x} has")') == ["1: house"]
    others = "room = 3\nraise ValueError(f'{room} warehouses, `room`, indoors')"
    assert find_words_in_prose(others) == []


PARTICIPLES = {"found", "known", "told", "given", "wanted", "said", "seen"}
MOST_PARTICIPLES = 50
"""Lines of the package that may assign to a participle in place of a noun."""
MOST_ONE_LOOPS = 20
"""Loops that may call their variable `one`."""
MOST_PHRASES = {
    r"\b(is|are) no\b": 4.2,
    r"\b(nobody|nothing)\b": 1.2,
    r"; None\b": 1.0,
    r"\bof which\b": 1.5,
    r"\balone\b": 1.0,
    r"\ba side\b": 1.0,
}
"""Most occurrences in 10,000 words of docstrings: three times those of other packages of the field,
1 where these have none."""


def count_vague_locals(nodes):
    """Count the lines that assign to a participle, and the loops over `one`."""
    lines, loops = set(), 0
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if node.id in PARTICIPLES:
                lines.add(node.lineno)
        elif isinstance(node, (ast.For, ast.comprehension)):
            loops += any(isinstance(n, ast.Name) and n.id == "one" for n in ast.walk(node.target))
    return len(lines), loops


def list_docstrings(nodes):
    """Return the docstrings of a file."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node, False) or "" for node in nodes if isinstance(node, kinds)]


def test_local_variables_and_docstrings_are_plain():
    files = Path(dpcore.__file__).parent.rglob("*.py")
    trees = [list(ast.walk(ast.parse(file.read_text("utf-8")))) for file in files]
    lines, loops = map(sum, zip(*map(count_vague_locals, trees), strict=True))
    assert lines <= MOST_PARTICIPLES, f"{lines} lines assign to a participle: use nouns"
    assert loops <= MOST_ONE_LOOPS, f"{loops} loops say `for one in`: name what it is"
    words = "\n".join(text for tree in trees for text in list_docstrings(tree))
    size = len(words.split())
    for phrase, most in MOST_PHRASES.items():
        rate = 1e4 * len(re.findall(phrase, words, re.IGNORECASE)) / size
        assert rate <= most, f"{phrase!r} stands {rate:.2f} times in 10,000 words: write it plainly"


def test_vague_locals_and_docstrings_are_seen():
    text = 'def f(given):\n    """Return it; None alone."""\n    found = [one for one in given]\n'
    nodes = list(ast.walk(ast.parse(text)))
    assert count_vague_locals(nodes) == (1, 1)
    [words] = filter(None, list_docstrings(nodes))
    assert [phrase for phrase in MOST_PHRASES if re.search(phrase, words)] == [
        r"; None\b", r"\balone\b"
    ]  # fmt: skip
