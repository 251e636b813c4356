"""What a new native noise touches in Python, and a toy that touches it in a copy of the package.

As a program it prints what the package that it imports has forgotten.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dpcore
from dpcore import _core, mechanisms, published
from dpcore.mechanisms import native
from dpcore.mechanisms.native import Law

PACKAGE = Path(dpcore.__file__).parent


def classes():
    """(file, class) of every noise that a file of mechanisms/ defines."""
    for path in sorted((PACKAGE / "mechanisms").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and "Primitive" in map(ast.unparse, node.bases):
                yield path.stem, node.name


def forgotten():
    """A sentence for every step that a native noise still lacks, with its place."""
    for name in sorted(set(_core.NOISES) - {name for _, name in classes()}):
        yield f"{name} is in the table of Rust, but no file of dpcore/mechanisms/ defines its class"
    for file, name in classes():
        place = f"dpcore/mechanisms/{file}.py"
        if name not in _core.NOISES:
            yield f"{name} of {place} is not in the table of rust/mechanisms/"
        for package in (mechanisms, dpcore):
            if name not in package.__all__ or not hasattr(package, name):
                folder = package.__name__.replace(".", "/")
                yield f"{name} of {place} is not re-exported by {folder}/__init__.py"
        law = native._LAWS.get(getattr(mechanisms, name, None))
        if law is None and hasattr(mechanisms, name):
            yield f"{name} of {place} is not declared by @with_law (above @dataclass)"
        if law == Law():
            yield f"{name} of {place} declares nothing of its law"
    if published.NATIVE != mechanisms.PRIMITIVES + published.SYSTEMS:
        yield "dpcore/published.py: NATIVE is not all primitives and systems"


TOY = '''"""Laplace noise by another name."""

from dataclasses import dataclass

from .laplace import _laplace_log_votes
from .native import Law, Primitive, over_scale, whole_line, with_law


@with_law(LAW)
@dataclass(frozen=True, slots=True)
class Toy(Primitive):
    """Laplace noise by another name."""

    scale: float
    variant: str = "two_branch"
'''

STEPS = ("rust", "class", "law", "mechanisms", "dpcore")
ALL = """Law(
    log_votes=_laplace_log_votes,
    support=whole_line,
    cost=lambda noise, apart: over_scale(apart, noise.scale, "l1"),
)"""


def copied(folder, law=ALL, without=None):
    """A copy of the package in which a toy noise has been added.

    Args:
        folder: where to put it.
        law: what the toy declares.
        without: the step, of `STEPS`, that was forgotten.

    Returns:
        The environment of a process that imports the copy.
    """
    root = Path(folder) / "dpcore"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    if without != "rust":
        # The core that is tested has no toy: in the copy it is told of Laplace noise instead.
        path, name = root / "mechanisms" / "native.py", "type(steps.noise).__name__"
        edit(path, f"return {name},", f'return {name}.replace("Toy", "Laplace"),')
        edit(path, "\n\ndef fill_outputs(", '\n\n_core.NOISES.append("Toy")\n\n\ndef fill_outputs(')
    if without != "class":
        toy = TOY.replace("@with_law(LAW)\n", "") if without == "law" else TOY
        (root / "mechanisms" / "toy.py").write_text(toy.replace("LAW", law), encoding="utf-8")
        for package, place in (("mechanisms", root / "mechanisms"), ("dpcore", root)):
            imported = "from .toy" if package == "mechanisms" else "from .mechanisms.toy"
            if package != without:
                exported = f'{imported} import Toy\n\n__all__ = [\n    "Toy",\n'
                edit(place / "__init__.py", "__all__ = [\n", exported)
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(Path(__file__).parent)))}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path.name, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(environment, *arguments):
    """What a Python process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=environment, capture_output=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    print(PACKAGE, *forgotten(), sep="\n")
