"""Figures of estimates and experiments are read without their texts and pictures."""

from __future__ import annotations

import subprocess
import sys


def test_figures_need_no_text_and_no_picture():
    code = (
        "import sys\n"
        "from dpcore import divergence, experiments\n"
        "found = divergence.renyi(range(50), range(9, 80), k=5, rng=1)\n"
        "assert found.epsilon(0.1).delta == 0.1 and found.maximum.size\n"
        "for name in experiments.NAMES:\n"
        "    experiments.get(name)\n"
        "figure2 = experiments.get('habernal2022-figure2')\n"
        "result = figure2.run(figure2.Config(trials=1000))\n"
        "def shown():\n"
        "    mine = [n for n in sys.modules if n.startswith(('dpcore.div', 'dpcore.exp'))]\n"
        "    return sorted(n for n in mine if n.endswith(('.text', '.drawing')))\n"
        "print(shown(), 'matplotlib' in sys.modules)\n"
        "str(found), result.to_dict()\n"
        "print(shown(), 'matplotlib' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    texts = ["divergence.report", "experiments.habernal2022_figure2", "experiments"]
    after = sorted(f"dpcore.{folder}.text" for folder in texts)
    assert done.stdout.splitlines() == ["[] False", f"{after} False"]
