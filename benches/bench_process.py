"""Whole processes: the import, the large audit and its memory."""

import json
import subprocess
import sys

import pytest

LARGE = """
import json, sys, time
import dpcore
from dpcore.attacks import MajorityVote
from dpcore.published import LaplaceMechanism
mechanism = LaplaceMechanism(1.0)
begun = time.perf_counter()
found = dpcore.audit(mechanism, mechanism.default_pair(128), attack=MajorityVote(),
                     trials=sys.argv[1], rng=1, route=sys.argv[2])
taken = time.perf_counter() - begun
# Not getrusage, whose peak is inherited from the process that started this one.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({"seconds": taken, "peak_mib": peak, "hat": found.epsilon_hat}))
"""


@pytest.mark.parametrize("module", ["numpy", "dpcore"])
def test_import(race, module):
    work = [sys.executable, "-c", f"import {module}"]
    race("import in a fresh process", lambda: subprocess.run(work, check=True), 1, 9)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("route", ["integer", "sampled"])
def test_hundred_million_trials(race, benchmark, tiny, route):
    """10^8 trials at dimension 128 on all cores, and the peak memory of the process."""
    trials = "1e5" if tiny else "1e8"

    def work() -> dict[str, float]:
        command = [sys.executable, "-c", LARGE, trials, route]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(run.stdout)

    found = race("10^8 trials at dimension 128, all cores", work, 1, 1)
    benchmark.extra_info.update(found)
    # The closed form is .0756; five standard errors of the log ratio.
    assert abs(found["hat"] - 0.0756) < (0.03 if tiny else 0.001)
