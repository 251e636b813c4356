"""Figures of audits, and figures and texts of experiments, need no matplotlib."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import dpcore

options = {"attack": dpcore.attacks.MajorityVote(), "trials": 1000, "rng": 1}
own = dpcore.audit(dpcore.Laplace(0.5), **options)
found = dpcore.audit_outputs([3, 1, 2, 4], [0, -1, 1.5, 2], rows="independent", claim=1.0, rng=1)
for one in (own, found, own + dpcore.audit(dpcore.Laplace(0.5), start=1000, **options)):
    one.epsilon_lower, one.epsilon_hat, one.verdict, one.exact, one.name, repr(one)
own.mu_lower, own.power, own.bound_counts, own.epsilon_lower_at(0.1)
higher = ("dpcore.cli", "dpcore.experiments", "matplotlib")
assert not [name for name in sys.modules if name.startswith(higher)]

from dpcore import divergence, experiments

found = divergence.renyi(range(50), range(9, 80), k=5, rng=1)
assert found.epsilon(0.1).delta == 0.1 and found.maximum.size
assert not any("habernal" in name for name in sys.modules)
for name in experiments.NAMES:
    experiments.get(name)
figure2 = experiments.get("habernal2022-figure2")
result = figure2.run(figure2.Config(trials=1000))
str(found), str(result), result.to_dict()
assert "matplotlib" not in sys.modules
"""


def test_figures_and_texts_need_no_picture():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
