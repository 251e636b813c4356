"""An experiment is its module and its name in `NAMES`: with both it works, without one it is named.

The toy is added to a copy of the package, as a contributor would add it to the package itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpcore
from dpcore import experiments
from dpcore.experiments import NAMES, get

TOY = '''
"""The toy: a share of heads.

Nothing else is counted.
"""

from dataclasses import dataclass

import numpy as np

from ..report.figures import apply_style
from .drawing import make_canvas, tidy_axes
from .presentation import Column, align_columns
from .running import Tabled, cell_seed, run_jobs, time_run
from .settings import SEED, Settings, setting


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    trials: int = 10**6
    seed: int = SEED
    seeds: int = setting(2, quick=1)


NAME = "toy-coin"
COLUMNS = (Column("coin", lambda coin: coin[0]), Column("heads", lambda coin: coin[1], ".2f"))


@time_run
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
        return self.make_record(NAME, shares=list(self.shares))

    def plot(self, ax=None):
        picture = make_canvas(2.0, ax)
        axes = picture.subplots()
        axes.plot(self.shares)
        tidy_axes(axes, "coin", y="share of heads")
        return apply_style(picture)
'''
LINE = '    "toy-coin",\n'


def forgotten(package: Path, names: tuple[str, ...]) -> set[str]:
    """Experiments with a module or folder and no line in `NAMES`, or with a line alone."""
    folder = package / "experiments"
    files = [*folder.glob("*.py"), *folder.glob("*/experiment.py")]
    found = {
        (path.parent if path.stem == "experiment" else path).stem.replace("_", "-")
        for path in files
        if any(line.startswith('NAME = "') for line in path.read_text("utf-8").splitlines())
    }
    return found ^ set(names)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package, with the module of the toy, and what runs Python on it."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        Path(dpcore.__file__).parent,
        root / "dpcore",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    module = root / "dpcore" / "experiments" / "toy_coin.py"
    module.write_text(TOY.lstrip(), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}

    def python(*words):
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True, text=True, check=False, timeout=120, cwd=root, env=environment,
        )  # fmt: skip

    return root / "dpcore", python


@pytest.fixture
def named(copy):
    """The copy, with the toy's line too."""
    package, python = copy
    file = package / "experiments" / "__init__.py"
    before = file.read_text(encoding="utf-8")
    first = "NAMES: tuple[str, ...] = (\n"
    file.write_text(before.replace(first, first + LINE), encoding="utf-8")
    yield package, python
    file.write_text(before, encoding="utf-8")


def test_every_experiment_has_its_module_and_its_line():
    missing = forgotten(Path(experiments.__file__).parent.parent, NAMES)
    assert not missing, f"a module and a line in NAMES of experiments/__init__.py: {missing}"


@pytest.mark.parametrize("name", NAMES)
def test_a_module_holds_what_an_experiment_is(name):
    module = get(name)
    assert {"NAME", "Config", "Result", "run"} <= set(vars(module))
    assert name == module.NAME
    assert module.Config.__doc__
    assert module.__doc__
    for method in ("plot", "table", "to_dict"):
        assert getattr(module.Result, method).__doc__


def test_a_module_and_a_line_are_enough(named, tmp_path):
    _, python = named
    asked = ("-m", "dpcore", "reproduce", "toy-coin", "--out", str(tmp_path), "--trials", "1000")
    done = python(*asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2].split() == ["coin", "heads"]
    assert {path.suffix for path in tmp_path.glob("toy-coin.*")} == {".json", ".png", ".svg"}
    found = json.loads((tmp_path / "toy-coin.json").read_text(encoding="utf-8"))
    assert (found["experiment"], found["config"]["trials"]) == ("toy-coin", 1000)
    assert abs(found["shares"][0] - 0.5) < 0.1
    listed = python("-m", "dpcore", "reproduce", "--list").stdout
    assert "toy-coin               The toy: a share of heads." in listed
    bad = python(*asked[:-1], "0")
    assert bad.returncode == 2
    assert "trials must be" in bad.stderr


def test_a_forgotten_line_is_named(copy, tmp_path):
    package, python = copy
    assert forgotten(package, NAMES) == {"toy-coin"}
    done = python("-m", "dpcore", "reproduce", "toy-coin", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "no such experiment: toy-coin (there are published-systems" in " ".join(
        done.stderr.split()
    )
    done = python("-c", "from dpcore.experiments import get; get('toy-coin')")
    assert done.stderr.splitlines()[-1].startswith("ValueError: name must be one of 'published-")


def test_a_forgotten_module_is_named(named):
    package, _ = named
    names = ("toy-coin", *NAMES)
    assert forgotten(package, names) == set()
    module = package / "experiments" / "toy_coin.py"
    module.rename(package / "aside")
    try:
        assert forgotten(package, names) == {"toy-coin"}
    finally:
        (package / "aside").rename(module)
