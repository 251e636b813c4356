"""What the package shows, the two tables of mechanisms, the stub, what an import loads."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from shared_noises import make_example

import dpcore
from dpcore import _core, calibration, mechanisms, published
from dpcore.mechanisms.declarations import NATIVE
from dpcore.mechanisms.native import describe_natively

PACKAGE = Path(dpcore.__file__).parent


def test_the_package_re_exports_and_nothing_else():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    kinds = {type(node) for node in tree.body}
    assert kinds == {ast.Expr, ast.ImportFrom, ast.Assign, ast.FunctionDef}
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions == ["_read_homes", "__getattr__", "__dir__"]
    assert all(hasattr(dpcore, name) for name in dpcore.__all__)
    with pytest.raises(AttributeError, match=r"^module 'dpcore' has no attribute 'nothing'$"):
        dpcore.nothing  # noqa: B018
    # A file named like a public function would turn it into a module (`find_reserved_names`).
    assert callable(dpcore.audit)
    assert callable(dpcore.sample)


# What must not be taken for a way to release data.

FIGURES = {
    "COUNTEREXAMPLES", "Counterexample", "MaskedWords", "RealEpsilon", "gaussian_delta",
    "gaussian_epsilon", "noise_errors", "real_epsilon", "word_dropout",
}  # fmt: skip
"""Of `calibration`, what neither is noise nor makes any."""

NOISES = [getattr(calibration, name) for name in calibration.__all__ if name not in FIGURES]


@pytest.mark.parametrize(
    "thing",
    [dpcore.sample, mechanisms, calibration, published, *mechanisms.PRIMITIVES, *NOISES],
    ids=lambda thing: thing.__name__,
)
def test_what_draws_says_first_that_it_is_not_for_releases(thing):
    summary, first, *_ = inspect.getdoc(thing).split("\n\n")
    assert summary
    assert "for audits and experiments, not for releasing data" in " ".join(first.lower().split())


# The table of the core and the classes of Python.


@pytest.mark.parametrize("cls", NATIVE.values())
def test_the_core_accepts_the_description_of_every_class(cls):
    mechanism = make_example(cls)
    description = describe_natively(mechanism, 3)
    assert description[0] in _core.NOISES
    out = np.full((5, 3), np.nan)
    _core.sample(description, np.zeros(3), out, (1, 3, 0, 100), 0, 1)
    assert np.isfinite(out).all()
    reason = _core.no_integer_route(description)
    assert (reason is None) == (cls is not dpcore.Gaussian)
    assert reason is None or "not a monotone function of one random integer" in reason


def test_every_native_class_is_in_the_table():
    found = {
        value
        for module in (mechanisms, published)
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, mechanisms.Native)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
        and is_dataclass(value)
    }
    # Bases of the systems, which are none themselves.
    found -= {published.System, published.Sensitive, published.Clipped}
    assert found == set(NATIVE.values())


@pytest.mark.parametrize(
    "description",
    [
        ("Nothing", [], "", None, 1.0),
        ("Laplace", [], "two_branch", None, 1.0),
        ("Laplace", [-1.0], "two_branch", None, 1.0),
        ("Laplace", [1.0], "both", None, 1.0),
        ("Laplace", [1.0], "two_branch", ("l3", 1.0), 1.0),
        ("Laplace", [1.0], "two_branch", ("l1", 0.0), 1.0),
        ("Laplace", [1.0], "two_branch", None, 0.0),
        ("Uniform", [1.0, 0.0], "", None, 1.0),
        ("DPTextNoise", [1.0], "", None, 1.0),
    ],
)
def test_the_core_checks_descriptions_too(description):
    with pytest.raises(ValueError, match="must be"):
        _core.sample(description, np.zeros(3), np.empty((5, 3)), (1, 3, 0, 100), 0, 1)


# The stub and the binary.


def stub():
    return ast.parse((PACKAGE / "_core.pyi").read_text()).body


def public(module):
    return {name for name in dir(module) if not name.startswith("__")} | {"__version__"}


def test_the_stub_names_what_the_binary_has():
    functions = {node.name for node in stub() if isinstance(node, ast.FunctionDef)}
    values = {
        node.target.id: ast.unparse(node.annotation)
        for node in stub()
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert functions | {*values} == public(_core)
    assert all(callable(getattr(_core, name)) for name in functions)
    for name, kind in values.items():
        assert type(getattr(_core, name)).__name__ == kind.partition("[")[0]


@pytest.mark.parametrize(
    "node", [n for n in stub() if isinstance(n, ast.FunctionDef)], ids=lambda n: n.name
)
def test_the_stub_has_the_parameters_of_the_binary(node):
    names = [argument.arg for argument in node.args.args]
    signature = inspect.signature(getattr(_core, node.name))
    assert list(signature.parameters) == names
    assert all(p.default is p.empty for p in signature.parameters.values())
    assert ast.get_docstring(node)


# What an import loads.

HEAVY = (
    "scipy", "matplotlib", "typer", "rich", "torch", "IPython", "pandas", "pyarrow", "sklearn",
    "opendp", "diffprivlib", "pytest", "hypothesis",
)  # fmt: skip


def loaded(code):
    script = code + "\nimport sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_the_stub_of_the_package_is_its_list_of_names():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="ascii"))
    first, *imports = tree.body
    assert isinstance(first, ast.Expr)
    assert all(isinstance(node, ast.ImportFrom) and len(node.names) == 1 for node in imports)
    homes = {node.names[0].name: f".{node.module or ''}" for node in imports}
    # Without the second name a type checker takes the first for private.
    assert all(node.names[0].asname == node.names[0].name for node in imports)
    assert (dpcore._HOMES, dir(dpcore)) == (homes, sorted(homes))
    shown = {}
    exec("from dpcore import *", shown)
    assert {*shown} - {"__builtins__"} == {*dpcore.__all__} == {*homes} - {"torch"}
    for name in dpcore.__all__:
        home = import_module(homes[name], "dpcore")
        assert shown[name] is getattr(home, name), name


def test_import_loads_nothing_and_an_audit_nothing_heavy():
    # numpy is loaded by the first use of a name.
    assert not loaded("import dpcore") & {"numpy", *HEAVY}
    names = loaded("import dpcore; dpcore.audit")
    assert {"dpcore", "numpy"} <= names
    assert not names & set(HEAVY)
    # The control: the same look finds what is loaded.
    assert "matplotlib" in loaded("import dpcore, matplotlib.figure")


def test_an_audit_and_its_report_load_no_plot_and_no_statistics_package():
    code = """
import sys, dpcore
print(dpcore.audit(dpcore.published.HalfNoise(1.0), trials=1000, rng=1))
assert "scipy.special" in sys.modules and "scipy.stats" not in sys.modules
"""
    assert not loaded(code) & {"matplotlib", "typer", "rich", "torch", "IPython"}
