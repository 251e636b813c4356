"""Figures and texts of estimates and experiments are read without matplotlib."""

from __future__ import annotations

import subprocess
import sys


def test_figures_and_texts_need_no_picture():
    code = (
        "import sys\n"
        "from dpcore import divergence, experiments\n"
        "found = divergence.renyi(range(50), range(9, 80), k=5, rng=1)\n"
        "assert found.epsilon(0.1).delta == 0.1 and found.maximum.size\n"
        "assert not any('habernal' in name for name in sys.modules)\n"
        "for name in experiments.NAMES:\n"
        "    experiments.get(name)\n"
        "figure2 = experiments.get('habernal2022-figure2')\n"
        "result = figure2.run(figure2.Config(trials=1000))\n"
        "print('matplotlib' in sys.modules)\n"
        "str(found), str(result), result.to_dict()\n"
        "print('matplotlib' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["False", "False"]
