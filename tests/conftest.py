"""Settings and fixtures shared by all tests."""

import gc
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings
from shared_seeds import change_training_seeds

from dpcore import cli

# A deadline would measure the machine and the first import of scipy, not the code.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# No change is refused for what chance finds: `make search` looks, with other seeds at each call.
settings.register_profile("dpcore", derandomize=True, database=None, **UNTIMED)
settings.register_profile("search", max_examples=1000, print_blob=True, **UNTIMED)
settings.load_profile("dpcore")

# For the workers of xdist and the processes of tests: each of them has one core to itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

OF_TORCH = (
    "python/dpcore/torch",
    "python/dpcore/text/systems",
    "python/dpcore/text/lm",
    "python/dpcore/experiments/dpnr_table/defences.py",
)
"""Places that cannot be imported without torch, or whose examples train with it."""


OF_MANY_AUDITS = ("text", "torch_package")
"""Folders of tests whose audits do not look for generators that were there before the test."""


@pytest.fixture(autouse=True)
def few_objects(request):
    """Hide earlier objects from the search for generators where many audits run beside torch.

    Beside torch and scikit-learn the search takes most of the time of a small audit. Global
    generators are known without it, and a test's own are made after this.
    """
    if request.path.parent.name not in OF_MANY_AUDITS:
        yield
        return
    gc.freeze()
    yield
    gc.unfreeze()


class DoctestsOfTorch:
    """Doctests of what needs torch are collected where it is installed."""

    def pytest_ignore_collect(self, collection_path):
        return True if any(map(collection_path.match, OF_TORCH)) else None


def pytest_configure(config):
    # As a plugin: a hook of this file would not be asked about folders beside this one.
    if find_spec("torch") is None:
        config.pluginmanager.register(DoctestsOfTorch())
    if number := os.environ.get("DPCORE_TRAINING_SEED"):
        change_training_seeds(int(number))


OWN = """
import os
import helper_of_noisy
import numpy as np
from dpcore import Laplace, Pair

print("a module may print")

def release(x, size, rng):
    print("a mechanism too")
    return x + rng.laplace(scale=2.0, size=(size, len(x)))

def flat(x, size, rng):
    return x[0] + rng.laplace(scale=2.0, size=size)

def raising(x, size, rng):
    raise ValueError("block must be luckier")

def leaving(x, size, rng):
    raise SystemExit(0)

def wrong_rows(x, size, rng):
    return np.zeros((size + 1, 1))

def wrong_shape(x, size, rng):
    return np.zeros((size, 7))

def words(x, size, rng):
    return np.array(["a"] * size)

def ragged(x, size, rng):
    return [[0.0], [0.0, 1.0]] * size

def lazy(x, size, rng):
    import other_of_noisy
    return release(x, size, rng)

def slow(x, size, rng):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write("x")
    return release(x, size, rng)

class Claiming:
    claim = 0.5
    def default_pair(self):
        return Pair([0.0], [1.0])
    def __call__(self, x, size, rng):
        return release(x, size, rng)

class Broken(Claiming):
    @property
    def claim(self):
        raise ValueError("no claim today")

class Pairless(Claiming):
    def default_pair(self):
        return [0.0], [1.0]

class Space:
    mechanism = Claiming()

claiming, broken, pairless = Claiming(), Broken(), Pairless()
native = Laplace(0.5)
number = 3
"""


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    """What a test plotted is closed after it: pyplot warns of many open figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def own(tmp_path):
    """Path of a file with mechanisms of a user."""
    (tmp_path / "helper_of_noisy.py").write_text("")
    (tmp_path / "other_of_noisy.py").write_text("")
    (tmp_path / "noisy.py").write_text(OWN)
    return str(tmp_path / "noisy.py")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line here: (status, stdout, stderr)."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(words, *more):
        status = cli.main([*words.split(), *more])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def ctrl_c():
    """Interrupt this process in so many seconds, as Ctrl-C does.

    Whoever starts tests in the background ignores SIGINT, and so do those that they start.
    """
    before, timers = signal.signal(signal.SIGINT, signal.default_int_handler), []

    def later(seconds):
        main = threading.main_thread().ident
        timers.append(threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGINT)))
        timers[-1].start()

    yield later
    for timer in timers:
        timer.cancel()
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def process(tmp_path):
    """Run the command line as a process: (status, stdout, stderr)."""

    def call(words, *more):
        done = subprocess.run(
            [sys.executable, "-m", "dpcore", *words.split(), *more],
            capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return call
