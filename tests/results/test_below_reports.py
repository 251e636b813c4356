"""A result is imported, made and read without its reports, pictures and JSON."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import dpcore
from dpcore import results

CODE = """
import sys
import dpcore
from dpcore import results

own = dpcore.audit(dpcore.Laplace(0.5), attack=dpcore.attacks.MajorityVote(), trials=1000, rng=1)
found = dpcore.audit_outputs([3, 1, 2, 4], [0, -1, 1.5, 2], rows="independent", claim=1.0, rng=1)
for one in (own, found, own + dpcore.audit(dpcore.Laplace(0.5), trials=1000, start=1000, rng=1,
                                           attack=dpcore.attacks.MajorityVote())):
    print(one.epsilon_lower, one.epsilon_hat, one.verdict, one.exact, one.name, repr(one))
print(own.mu_lower, own.power, own.bound_counts, own.epsilon_lower_at(0.1))
higher = ("dpcore.report", "dpcore.cli", "dpcore.experiments", "matplotlib")
print([name for name in sys.modules if name.startswith(higher)])
"""


def test_figures_are_read_without_any_report():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_file_of_the_results_names_a_report_but_in_a_report_method():
    methods = ("__str__", "_repr_html_", "__add__", "merge", "outputs", "lines")
    for path in Path(results.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {}
        for method in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            inside |= {id(node): method for node in ast.walk(method)}
        for node in ast.walk(tree):
            names = isinstance(node, ast.ImportFrom) and node.level == 2 and node.module
            if not names or node.module.partition(".")[0] not in ("report", "auditing"):
                continue
            method = inside[id(node)]
            assert method.name in methods or method.name.startswith(("plot", "to_", "from_"))
            body = method.body[1:] if isinstance(method.body[0], ast.Expr) else method.body
            assert [type(line) for line in body] == [ast.ImportFrom, ast.Return], method.name
            assert isinstance(body[1].value, ast.Call)
            assert body[1].value.func.id == node.names[0].name


def test_the_package_shows_its_results():
    assert results.Audit is dpcore.Audit
    assert results.OutputsAudit is dpcore.OutputsAudit
    assert all(hasattr(results, name) for name in results.__all__)
