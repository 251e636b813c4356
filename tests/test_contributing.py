"""The recipes of CONTRIBUTING.md: a toy of each kind goes the whole way, a forgotten step is named.

A toy with a file of its own is a real file: it is loaded as a module of its package and entered in
the lists of this process. What a recipe edits is edited in one
copy of the package, and nothing else.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Literal, get_args

import numpy as np
import pytest
from shared_layers import LAYERS, PACKAGE

import dpcore
from dpcore import _core, attacks, bounds, calibration, exact, experiments, mechanisms, published
from dpcore.attacks.attack import AuditAttack
from dpcore.bounds import BOUNDS, ONE_RUN, binomial
from dpcore.bounds.binomial import Declared, find_declaration
from dpcore.mechanisms import native
from dpcore.mechanisms.declarations import NATIVE
from dpcore.mechanisms.native import Law, Primitive
from dpcore.results import audit_json
from dpcore.results.guesses import OUTPUTS_BOUNDS
from dpcore.sensitivity import Ball
from dpcore.structure import inspect

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
TOPS = (ROOT, PACKAGE, PACKAGE.parent)
"""Folders from which a recipe names a file."""
HALF, ONES = published.HalfNoise(1.0), dpcore.Pair(np.zeros(3), np.ones(3))


def list_written_layers(page):
    """Return the layers of the table of packages, in its order."""
    table = page.partition("| packages, from the lowest layer up |")[2].partition("\n\n")[0]
    rows = re.findall(r"(?m)^\| (`[^|]*) \|", table)
    return [" ".join(re.findall(r"`(\w+)`", layer)) for row in rows for layer in row.split(";")]


def test_the_table_of_packages_is_that_of_the_layers():
    page = CONTRIBUTING.read_text("utf-8")
    assert list_written_layers(page) == LAYERS
    # The control: a package that does not exist, and one in another layer.
    for wrong in ("`loaded` `errors`", "`packages` `errors`"):
        assert list_written_layers(page.replace("`errors`", wrong)) != LAYERS


def read_recipes():
    """Return the recipes of CONTRIBUTING.md by what they add."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^\| an? ([^|]*) \| (?!\[)(.*) \|$", text))


def test_every_recipe_has_its_toy():
    kinds = "score attack, bound, format of files, native noise, experiment"
    kinds += ", field of `Audit`, argument of `audit`"
    assert [*read_recipes()] == kinds.split(", ")


def list_named_files(recipe):
    """Return the files that a recipe names, each of which exists but for new ones."""
    files = re.findall(r"`((?!\S*NAME)[\w/]+/[\w.]+\.(?:pyi?|md))`", recipe)
    missing = [file for file in files if not any((top / file).is_file() for top in TOPS)]
    assert not missing, f"files of a recipe that do not exist: {missing}"
    return set(files)


def test_recipes_name_the_files_that_a_toy_edits():
    recipes = read_recipes()
    named = {kind: list_named_files(recipe) for kind, recipe in recipes.items()}
    assert {file for file, *_ in ARGUMENT} <= named["argument of `audit`"]
    assert {file for file, *_ in FIELD} <= named["field of `Audit`"]
    # The control: a file that was renamed is found.
    with pytest.raises(AssertionError, match=r"\['auditing/argument.py'\]"):
        list_named_files("its name in `auditing/argument.py`")


@pytest.mark.parametrize(
    ("kind", "name", "most"),
    [
        ("bound", "tail", 3),
        ("format of files", "cells", 2),
        ("native noise", "laplace", 7),
    ],
)
def test_a_recipe_names_files_that_exist_and_not_more_than_it_may(kind, name, most):
    text = CONTRIBUTING.read_text(encoding="utf-8")
    row = re.search(rf"(?m)^\| an? {kind} \| (.*) \|$", text)[1]
    section = text.partition(f"\n## A {kind}\n")[2].partition("\n## ")[0]
    paths = re.findall(r"`([\w./]+/[\w.-]+\.(?:pyi?|rs|md))`", row + section)
    assert len({*paths}) == most
    # The tests of the first noises stand together.
    old = [path for path in paths if path != "tests/mechanisms/test_NAME.py"]
    folders = ROOT, ROOT / "python" / "dpcore"
    for path in (path.replace("NAME", name) for path in old):
        assert any((folder / path).is_file() for folder in folders), path


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a text as a new file of a package, until the test ends."""

    def load_file(package, name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = spec_from_file_location(f"{package.__name__}.{name}", path)
        module = module_from_spec(spec)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load_file


@pytest.fixture
def audit_everywhere(run, dp_audit):
    """Take a false claim through reports, files, merging, the command line and pytest."""

    def audit(mechanism, pair, shown, command, **asked):
        asked |= {"trials": 20_000}
        first = dpcore.audit(mechanism, pair, rng=1, **asked)
        both = first + dpcore.audit(mechanism, pair, rng=1, start=20_000, **asked)
        read = dpcore.Audit.from_json(first.to_json())
        assert read == first == pickle.loads(pickle.dumps(first))
        assert (first.refuted, both.counts.n, str(read)) == (True, 40_000, str(first))
        status, out, _ = run(f"audit {command} --trials 2e4 --seed 1")
        assert status == 1
        found = dp_audit.refutes(mechanism, pair, **asked)
        with pytest.raises(pytest.fail.Exception) as failed:
            dp_audit(mechanism, pair, **asked)
        page, notebook, message = first.to_html(), first._repr_html_(), str(failed.value)
        texts = (str(first), str(both), page, notebook, out, str(found), message)
        assert all(shown in text for text in texts)
        return first, page

    return audit


def list_own(package):
    """List (file, name, value) of what the files of a package define."""
    for found in iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{found.name}")
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__:
                yield found.name, name, value


ATTACK = '''"""A toy: half-lines of one entry."""
from dataclasses import dataclass
from .attack import ScoreAttack
from .threshold import Coordinate

@dataclass(frozen=True, slots=True)
class Toy(ScoreAttack):
    """Half-lines of one entry."""
    entry: int = 0
    def candidates(self, outputs, outputs_prime, pair):
        return (Coordinate(self.entry),)
'''


PAGE_OF_ATTACKS = Path(__file__).parents[1] / "docs/howto/which-attack.md"


def add_attack(load, patch, without=None):
    toy = load(attacks, "toy", ATTACK).Toy
    if without != "NAMES":
        patch.setitem(attacks.NAMES, "toy", toy)
    if without != "AttackName":
        patch.setattr(attacks, "AttackName", Literal[attacks.AttackName, "toy", "Toy"])
    if without != "__all__":
        patch.setattr(attacks, "__all__", [*attacks.__all__, "Toy"])
    if without != "page":
        page = Path(attacks.__path__[-1], PAGE_OF_ATTACKS.name)
        text = PAGE_OF_ATTACKS.read_text("utf-8")
        page.write_text(text.replace("`Threshold`,", "`Threshold`, `Toy`,"), "utf-8")
        patch.setitem(globals(), "PAGE_OF_ATTACKS", page)
    return toy


def find_forgotten_attacks():
    [row] = re.findall(r"(?m)^\| `attack=` \|.*$", PAGE_OF_ATTACKS.read_text("utf-8"))
    for file, name, value in list_own(attacks):
        # `attack` holds what every attack is made of, and the slot for a user's function.
        if file != "attack" and isinstance(value, type) and issubclass(value, AuditAttack):
            named = {word for word, attack in attacks.NAMES.items() if attack is value} | {name}
            if name not in attacks.__all__:
                yield f"attacks/{file}.py: {name} is not in attacks.__all__"
            if value not in attacks.NAMES.values():
                yield f"attacks/{file}.py: {name} is not in attacks.NAMES"
            if not named <= {*get_args(attacks.AttackName)}:
                yield f"attacks/{file}.py: {name} is not in attacks.AttackName"
            if not named & {*re.findall(r"[`\"](\w+)[`\"]", row)}:
                yield f"attacks/{file}.py: {name} is not in the row `attack=` of which-attack.md"


def test_a_score_attack(load, monkeypatch, run, audit_everywhere):
    toy = add_attack(load, monkeypatch)
    pair = dpcore.Pair([0.0], [1.0])
    command = "half-noise --epsilon 1 --dim 1 --attack toy"
    first, page = audit_everywhere(HALF, pair, "entry 0", command, attack=toy())
    assert (first.attack, first.event.score.index, "Toy" in page) == ("Toy", 0, True)
    assert first.curve is not None
    assert attacks.named("toy") == attacks.named("Toy") == toy()
    assert attacks.Auto((toy(),)).members == (toy(),)
    assert run(f"plan {command} --claim 0.5 --pilot 4096 --seed 1")[0] == 0
    second = dpcore.audit(HALF, attack=toy(1), trials=2000, rng=1)
    assert second.attack == "Toy(entry=1)"
    assert dpcore.audit(
        lambda x, size, rng: x + rng.laplace(size=(size, 1)),
        pair, attack=toy(), claim=0.1, trials=4096, stop="refuted", rng=1,
    ).refuted  # fmt: skip
    outputs = first.outputs("x", 0, 4000), first.outputs("x_prime", 0, 4000)
    recorded = dpcore.audit_outputs(*outputs, rows="independent", attack=toy(), rng=1)
    assert (recorded.attack, recorded.epsilon_lower > 0) == ("Toy", True)


BOUND = '''"""A toy."""
from ..records import Counts
from .binomial import Declared, clopper_pearson

@Declared(title="never seen before", recorded=True)
def toy(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The bound of another name."""
    return clopper_pearson(counts, delta, confidence)
'''


def add_bound(load, patch, without=None):
    patch.setattr(binomial, "_PACKAGE_BOUNDS", {**binomial._PACKAGE_BOUNDS})
    text = re.sub("(?m)^@.*$", "", BOUND) if without == "declaration" else BOUND
    toy = load(bounds, "toy", text).toy
    if without != "BoundName":
        patch.setitem(BOUNDS, "toy", toy)
        if find_declaration(toy).recorded:
            patch.setitem(OUTPUTS_BOUNDS["independent"], "toy", toy)
    if without != "RecordedBound" and find_declaration(toy).recorded:
        words = (*get_args(bounds.RecordedBound), "toy")
        patch.setattr(bounds, "RecordedBound", Literal[words])
    if without != "__all__":
        patch.setattr(bounds, "__all__", [*bounds.__all__, "toy"])


def find_forgotten_bounds():
    for name, bound in {**BOUNDS, **ONE_RUN}.items():
        if not isinstance(getattr(bound, "declared", None), Declared):
            yield f"give bound {name} a title in its file: @Declared(title=...)"
        if (find_declaration(bound).name or bound.__name__) != name:
            yield f"call bound {name} what its function is called, {bound.__name__}"
    for _, name, bound in list_own(bounds):
        if isinstance(declared := getattr(bound, "declared", None), Declared):
            word, is_counted = declared.name or name, declared.rows == "independent"
            if is_counted and BOUNDS.get(word) is not bound:
                yield f"enter bound {name} in BoundName of dpcore/bounds/__init__.py"
            is_recorded = not is_counted or declared.recorded
            if is_recorded != (word in get_args(bounds.RecordedBound)):
                yield f"enter bound {name} in RecordedBound of dpcore/bounds/__init__.py"
            if name not in bounds.__all__:
                yield f"enter bound {name} in __all__ of dpcore/bounds"


@pytest.mark.parametrize("without", [None, "declaration"])
def test_a_bound(load, monkeypatch, audit_everywhere, without):
    """One that is not declared is named by a test below, and still no KeyError for a user."""
    add_bound(load, monkeypatch, without)
    title = "toy" if without else "never seen before"
    command = "half-noise --epsilon 1 --attack majority --bound toy"
    asked = {"bound": "toy", "attack": attacks.MajorityVote()}
    first, _ = audit_everywhere(HALF, None, title, command, **asked)
    assert (first.bound, "bound='toy'" in audit_json.format_call(first)) == ("toy", True)
    second = dpcore.audit(HALF, trials=20_000, start=20_000, rng=1, **asked)
    looked = first.merge(second, looked=True)
    assert (looked.bound, looked.stop, bool(str(looked))) == ("anytime", "looked", True)
    for more in ({"attack": "auto", "stop": "refuted"}, {"attack": attacks.Coordinatewise()}):
        with pytest.raises(ValueError, match=r"^bound must be left alone"):
            dpcore.audit(HALF, trials=20_000, claim=0.1, rng=1, **asked | more)
    outputs = [[(i + j) / 7 for j in range(400)] for i in (0, 300)]
    asked = {"rows": "independent", "bound": "toy", "rng": 1, "claim": 0.1}
    if without is None:
        recorded = dpcore.audit_outputs(*outputs, **asked)
        assert title in str(recorded)
        assert dpcore.OutputsAudit.from_json(recorded.to_json()) == recorded
    # What says nothing of recorded outputs is not offered for them.
    for more in [{"paired": True}, {"rows": "one_run"}, *([{}] if without else [])]:
        with pytest.raises(ValueError, match=r"^bound must be"):
            dpcore.audit_outputs(*outputs, **asked | more)


NOISE = '''"""Laplace noise by another name."""
import math
from dataclasses import dataclass
from .laplace import _laplace_log_tail_and_complement
from .native import Primitive, cost_over_scale, whole_real_line, register_law

@register_law(LAW)
@dataclass(frozen=True, slots=True)
class Toy(Primitive):
    """Laplace noise by another name."""
    scale: float
    variant: str = "two_branch"
'''
VOTES = "log_votes=_laplace_log_tail_and_complement"
COST = "cost=lambda noise, apart, entries: cost_over_scale(apart, noise.scale, 'l1')"
LAWS = {
    "nothing": "",
    "votes": VOTES,
    "one end": "support=lambda noise: (0.5, math.inf)",
    "other end": "support=lambda noise: (-math.inf, 0.0)",
    "cost": COST,
    "blind": "blind=True",
    "all": f"{VOTES}, support=whole_real_line, {COST}",
}


def add_noise(load, patch, without=None, law=LAWS["all"]):
    patch.setattr(native, "_LAWS", {**native._LAWS})
    # So that the name is gone after the test: declaring the law adds it.
    patch.setitem(NATIVE, "Toy", None)
    if without != "rust":
        # The core that is tested has no toy: it is asked for Laplace noise instead.
        def describe(mechanism, dim, describe=native.describe_natively):
            name, *rest = describe(mechanism, dim)
            return name.replace("Toy", "Laplace"), *rest

        for module in ("mechanisms.native", "auditing.request", "sampling.sources"):
            patch.setattr(f"dpcore.{module}.describe_natively", describe)
        patch.setattr(_core, "NOISES", [*_core.NOISES, "Toy"])
    if without == "class":
        return None
    text = NOISE.replace("@register_law(LAW)\n", "") if without == "law" else NOISE
    law = "" if without == "parts" else law
    toy = load(mechanisms, "toy", text.replace("LAW", law)).Toy
    for package in (mechanisms, dpcore):
        if package.__name__ != without:
            patch.setattr(package, "Toy", toy, raising=False)
            patch.setattr(package, "__all__", [*package.__all__, "Toy"])
    patch.setattr(mechanisms, "PRIMITIVES", native.list_declared())
    return toy


def find_forgotten_noises():
    found = {
        name: (cls, f"{name} of dpcore/mechanisms/{file}.py")
        for file, name, cls in list_own(mechanisms)
        if isinstance(cls, type) and Primitive in cls.__bases__
    }
    for name in sorted({*_core.NOISES} - {*found}):
        yield f"{name} is in the table of Rust, but no file of dpcore/mechanisms/ defines its class"
    for name, (cls, place) in found.items():
        if name not in _core.NOISES:
            yield f"{place} is not in the table of rust/mechanisms/"
        for package in (mechanisms, dpcore):
            if name not in package.__all__ or getattr(package, name, None) is not cls:
                file = mechanisms.__file__ if package is mechanisms else f"{dpcore.__file__}i"
                listing = Path(file).relative_to(PACKAGE.parent).as_posix()
                yield f"{place} is not re-exported by {listing}"
        law = native._LAWS.get(cls)
        if law is None:
            yield f"{place} is not declared by @register_law (above @dataclass)"
        if law == Law():
            yield f"{place} declares nothing of its law"


@pytest.mark.parametrize("law", LAWS)
def test_a_native_noise(load, monkeypatch, tmp_path, audit_everywhere, law):
    toy, twin = add_noise(load, monkeypatch, law=LAWS[law])(1.0), dpcore.Laplace(1.0)
    # The core draws what the description says, as for Laplace noise.
    assert toy([0.0], 4, 1).tolist() == twin([0.0], 4, 1).tolist()
    own = tmp_path / "own.py"
    own.write_text("import dpcore\ntoy = dpcore.Toy(1.0)\n", encoding="utf-8")
    command = f"{own}:toy --x 0,0,0 --x-prime 1,1,1 --claim 0.1 --attack majority"
    asked = {"attack": attacks.MajorityVote(), "claim": 0.1}
    audit, _ = audit_everywhere(toy, ONES, "Toy(scale=1.0", command, **asked)
    assert "Toy(scale=1.0, variant='two_branch')" in str(audit)
    assert "Toy" in str(dpcore.audit(toy, ONES, claim=9.0, trials=1000, rng=1))
    assert "Toy(scale=1.0" in str(inspect(toy, [0.0, 0.25, 1.0], draws=1000, rng=1))

    known = law in ("votes", "all")
    loss = exact.vote_loss(twin, ONES) if known else None
    found = [exact.vote_loss(toy, ONES), audit.exact, audit.to_dict()["derived"]["exact"]]
    assert found == [loss] * 3
    assert ("closed form" in str(audit)) == (known or "end" in law)
    for ball, apart in ((Ball("l1", 0.5, 3), 1.0), (Ball("l2", 1.0, 2), 2.0 * np.sqrt(2.0))):
        real = calibration.real_epsilon(toy, ball)
        expected = {"cost": apart, "all": apart, "blind": 0.0}.get(law, np.inf)
        assert real.value == pytest.approx(expected, rel=1e-12)
        assert str(real).endswith(f": {real.reason}")
        unknown = real.reason == "no epsilon of Toy noise is known (audit it)"
        assert (bool(real.reason), unknown) == (True, real.value == np.inf)
    never = "noise that is never"
    reasons = {
        "one end": f"{never} below 0.5: an output below 1.5 in entry 0 is possible on x alone",
        "other end": f"{never} positive: an output above 0 in entry 0 is possible on x' alone",
    }
    assert exact.explain_infinite_loss(toy, ONES) == reasons.get(law)


def test_lists_made_of_other_lists_hold_all_of_them(run):
    recorded = {name: of for name, of in BOUNDS.items() if find_declaration(of).recorded}
    assert {"independent": recorded, "one_run": ONE_RUN} == OUTPUTS_BOUNDS
    assert native.list_declared() == mechanisms.PRIMITIVES
    options = " ".join(run("audit --help")[1].replace("│", " ").split())
    for names in ([*attacks.NAMES][1:], [*BOUNDS]):
        assert f"{', '.join(names[:-1])} or {names[-1]}." in options


EXPERIMENT = '''"""The toy: a share of heads.

Nothing else is counted.
"""
from dataclasses import dataclass
import numpy as np
from .base import SEED, Column, Settings, align_columns, setting
from .drawing import empty_figure
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "toy-coin"
COLUMNS = (Column("coin", lambda coin: coin[0]), Column("heads", lambda coin: coin[1], ".2f"))

@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    trials: int = 10**6
    seed: int = SEED
    seeds: int = setting(2, quick=1)

@time_run()
def run(config, *, threads=None, progress=None):
    def share(number):
        rng = np.random.default_rng(cell_seed(config.seed, f"coin {number}"))
        return float((rng.random(config.trials) < 0.5).mean())
    shares, partial = run_jobs("coins", range(config.seeds), share, progress)
    return Result(config, shares, partial=partial)

@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    config: Config
    shares: tuple[float, ...]
    def table(self):
        return self.join_parts("A toy.", align_columns(COLUMNS, enumerate(self.shares)))
    def to_dict(self):
        return self.make_record(shares=list(self.shares))
    def plot(self, ax=None):
        return empty_figure(2.0, ax)
'''


def add_experiment(load, patch, without=None):
    if without != "module":
        load(experiments, "toy_coin", EXPERIMENT)
    if without != "NAMES":
        patch.setattr(experiments, "NAMES", (*experiments.NAMES, "toy-coin"))


def find_forgotten_experiments():
    """Yield experiments with a module and no line in `NAMES`, or with a line alone."""
    found = {
        (path if path.parent == folder else path.parent).stem.replace("_", "-")
        for folder in map(Path, experiments.__path__)
        for path in (*folder.glob("*.py"), *folder.glob("*/*.py"))
        if re.search(r'(?m)^NAME = "', path.read_text(encoding="utf-8"))
    }
    for name in sorted(found ^ {*experiments.NAMES}):
        yield f"a module and a line in NAMES of experiments/__init__.py: {name}"


def test_an_experiment(load, monkeypatch, run, tmp_path):
    add_experiment(load, monkeypatch)
    out = tmp_path / "out"
    status, printed, _ = run(f"reproduce toy-coin --out {out} --trials 1000")
    assert (status, printed.splitlines()[2].split()) == (0, ["coin", "heads"])
    assert {path.suffix for path in out.glob("toy-coin.*")} == {".json", ".png", ".svg"}
    found = json.loads((out / "toy-coin.json").read_text(encoding="utf-8"))
    assert (found["experiment"], found["config"]["trials"]) == ("toy-coin", 1000)
    assert abs(found["shares"][0] - 0.5) < 0.1
    listed = run("reproduce --list")[1].splitlines()
    assert "toy-coin               The toy: a share of heads." in listed
    status, _, err = run(f"reproduce toy-coin --out {out} --trials 0")
    assert (status, "trials must be" in err) == (2, True)


FIND = {
    add_attack: find_forgotten_attacks, add_bound: find_forgotten_bounds,
    add_noise: find_forgotten_noises, add_experiment: find_forgotten_experiments,
}  # fmt: skip
TOY = "Toy of dpcore/mechanisms/toy.py"
LINES = "a module and a line in NAMES of experiments/__init__.py: toy-coin"


@pytest.mark.parametrize("add", FIND)
def test_nothing_is_forgotten_with_and_without_the_toy(load, monkeypatch, add):
    assert list(FIND[add]()) == []
    add(load, monkeypatch)
    assert list(FIND[add]()) == []


@pytest.mark.parametrize(
    ("add", "step", "sentence"),
    [
        (add_attack, "__all__", "attacks/toy.py: Toy is not in attacks.__all__"),
        (add_attack, "NAMES", "attacks/toy.py: Toy is not in attacks.NAMES"),
        (add_attack, "AttackName", "attacks/toy.py: Toy is not in attacks.AttackName"),
        (add_attack, "page",
         "attacks/toy.py: Toy is not in the row `attack=` of which-attack.md"),
        (add_bound, "declaration", "give bound toy a title in its file: @Declared(title=...)"),
        (add_bound, "BoundName", "enter bound toy in BoundName of dpcore/bounds/__init__.py"),
        (add_bound, "RecordedBound",
         "enter bound toy in RecordedBound of dpcore/bounds/__init__.py"),
        (add_bound, "__all__", "enter bound toy in __all__ of dpcore/bounds"),
        (add_noise, "rust", f"{TOY} is not in the table of rust/mechanisms/"),
        (add_noise, "class",
         "Toy is in the table of Rust, but no file of dpcore/mechanisms/ defines its class"),
        (add_noise, "law", f"{TOY} is not declared by @register_law (above @dataclass)"),
        (add_noise, "dpcore.mechanisms",
         f"{TOY} is not re-exported by dpcore/mechanisms/__init__.py"),
        (add_noise, "dpcore", f"{TOY} is not re-exported by dpcore/__init__.pyi"),
        (add_noise, "parts", f"{TOY} declares nothing of its law"),
        (add_experiment, "module", LINES),
        (add_experiment, "NAMES", LINES),
    ],
)  # fmt: skip
def test_a_forgotten_step_is_named(load, monkeypatch, add, step, sentence):
    add(load, monkeypatch, without=step)
    assert list(FIND[add]()) == [sentence]


FORMAT = '''"""A toy: numbers as Python writes them in hexadecimal, one a line."""
import numpy as np
from .columns import FileInfo, Request, Table
from .opened import HashedFile, Settings

def read_toy(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read one column without a name."""
    lines = file.open_text(settings.encoding).read().split()
    column = np.array([float.fromhex(line) for line in lines])
    return Table(file.name, None, (column,), FileInfo("toy", sha256=file.sha256))
'''

NEW_FILES = {
    "bounds/toy.py": BOUND,
    "files/toy.py": FORMAT,
    "mechanisms/toy.py": NOISE.replace("LAW", LAWS["all"]),
}

REMARK = "    remark: str = field(default='', metadata=field_rule(type_check_reader(str)))\n"
EDITS = (
    # A bound: import, words, public name.
    ("bounds/__init__.py", "from .tradeoff import", "from .toy import toy\n"),
    ("bounds/__init__.py", '"anytime"]', '"toy", '),
    ("bounds/__init__.py", '"one_run", "one_run_fdp", "one_run_curve"]', '"toy", '),
    ("bounds/__init__.py", '"tradeoff_band"', '"toy", '),
    # A format of files: import, line.
    ("files/formats.py", "\n\nclass Reader(", "from .toy import read_toy\n"),
    ("files/formats.py", '    "npy": Format(',
     '    "toy": Format((".toy",), "a number a line", read_toy),\n'),
    # A native noise: re-exports.
    ("__init__.pyi", "from .mechanisms import Uniform as", "from .mechanisms import Toy as Toy\n"),
    ("mechanisms/__init__.py", "# isort: on", "from .toy import Toy\n"),
    ("mechanisms/__init__.py", '    "Uniform",', '    "Toy",\n'),
)  # fmt: skip
ARGUMENT = (
    # Declared, checked, described, with its option.
    ("auditing/arguments.py", "    progress: bool | None = None\n", '    remark: str = ""\n'),
    ("auditing/arguments.py", '        errors.flag("same_bits"',
     '        errors.instance("remark", self.remark, str)\n'),
    ("auditing/run.py", "        progress: True to show a progress bar.",
     "        remark: a remark.\n"),
    ("cli/options.py", "    seed: int | None = _make_seed()\n    route",
     '    remark: str = _run_option("A remark.", default="")\n'),
)  # fmt: skip
FIELD = (
    # With the value of the argument: declared, filled, shown.
    ("results/evidence.py", "    threads: int = field(", REMARK),
    ("auditing/run.py", '        "notes": (*', '        "remark": request.remark,\n'),
    (
        "results/audit_text.py",
        '        ("seed", _describe_seed',
        '        ("remark", audit.remark),\n',
    ),
)  # fmt: skip
"""File, the text before which a step is inserted, and the step."""

IN_THE_COPY = """
import json
from pathlib import Path
import dpcore, pytest
from dpcore import cli

SETTINGS = dict(trials=1000, rng=1, attack=dpcore.attacks.MajorityVote(), claim=1.0, remark="noted")

def test_it(dp_audit, capsys):
    assert Path(dpcore.__file__).is_relative_to(Path(__file__).parent)
    first = dpcore.audit(dpcore.Laplace(1.0), **SETTINGS)
    both = first + dpcore.audit(dpcore.Laplace(1.0), start=1000, **SETTINGS)
    assert both.remark == dpcore.Audit.from_json(both.to_json()).remark == "noted"
    assert all("noted" in shown for shown in (str(both), both.to_html(), both._repr_html_()))
    with pytest.raises(TypeError, match="^remark must be a str, got 1$"):
        dpcore.audit(dpcore.Laplace(1.0), **SETTINGS | dict(remark=1))
    words = "audit laplace --epsilon 1 --trials 1000 --remark noted --json"
    assert cli.main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["remark"] == "noted"
    assert dp_audit(dpcore.Laplace(1.0), claim=1.0, trials=1000, remark="noted").remark == "noted"
    # Each format of results has one layout.
    before = json.loads(first.to_json())
    del before["remark"]
    with pytest.raises(ValueError, match="^record must be what Audit.to_dict wrote"):
        dpcore.Audit.from_dict(before)


def test_a_bound(capsys):
    assert dpcore.bounds.toy is dpcore.bounds.BOUNDS["toy"]
    report = dpcore.audit(dpcore.Laplace(1.0), **SETTINGS | dict(remark=""), bound="toy")
    assert "never seen before" in str(report)
    assert cli.main(["audit", "--help"]) == 0
    assert "exact, conditional, toy or anytime" in " ".join(capsys.readouterr().out.split())


def test_a_format(tmp_path, capsys):
    paths = [tmp_path / "x.toy", tmp_path / "y.toy"]
    for shift, path in enumerate(paths):
        path.write_text("".join(f"{(shift + i / 997).hex()}\\n" for i in range(997)))
    report = dpcore.audit_outputs(*paths, rows="independent", claim=0.1, rng=1)
    assert report.refuted and [table.kind for table in report.files] == ["toy"] * 2
    assert dpcore.OutputsAudit.from_json(report.to_json()) == report
    assert cli.main(["audit-outputs", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert ".jsonl, .toy, .npy, .npz or .parquet" in shown
    assert "json, jsonl, toy, npy" in shown
    with pytest.raises(ValueError, match=r"ends in one of .*\\.toy, \\.npy"):
        dpcore.audit_outputs("a.xyz", "b.xyz", rows="independent", rng=1)


def test_a_native_noise():
    noise = dpcore.Toy(1.0)
    assert dpcore.mechanisms.PRIMITIVES[-1] is dpcore.Toy
    pair = dpcore.Pair([0.0] * 3, [1.0] * 3)
    loss = dpcore.exact.vote_loss(dpcore.Laplace(1.0), pair)
    assert dpcore.exact.vote_loss(noise, pair) == loss is not None
    # The core of this process has no such noise.
    with pytest.raises(ValueError, match="^noise must be one of Identity, .* got .*Toy"):
        noise([0.0], 1)
"""


def test_what_the_recipes_name_is_enough(tmp_path):
    copy = tmp_path / "dpcore"
    # The compiled files of what is not edited serve the copy too.
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.pyc.*"))
    for file, text in NEW_FILES.items():
        (copy / file).write_text(text, encoding="utf-8")
    for file, before, step in (*EDITS, *ARGUMENT, *FIELD):
        text = (copy / file).read_text(encoding="utf-8")
        assert text.count(before) == 1, (file, before)
        (copy / file).write_text(text.replace(before, step + before), encoding="utf-8")
    (tmp_path / "test_it.py").write_text(IN_THE_COPY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "4 passed" in done.stdout, done.stdout + done.stderr
