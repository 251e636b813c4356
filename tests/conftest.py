"""Settings and fixtures shared by all tests."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import zlib
from argparse import ArgumentTypeError
from importlib import import_module
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings
from shared_extras import NEEDING_MODULES, RUNNING
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


SLOW_DOCTESTS = ("dpcore.experiments.dpsgd_audit.run", "dpcore.experiments.searched_pairs.run")
"""Examples that take more than 3 CPU seconds: they have the marker `sweep`."""


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


def is_doctest_of_torch(path):
    """Return whether a path is one of OF_TORCH or lies in one of them."""
    return any(place.match(folder) for place in (path, *path.parents) for folder in OF_TORCH)


class DoctestsOfTorch:
    """Doctests of what needs torch are collected where it is installed."""

    def pytest_ignore_collect(self, collection_path):
        return True if is_doctest_of_torch(collection_path) else None


class TestTimes:
    """Append the CPU seconds of each test, those of its processes included, to a file."""

    __test__ = False

    def __init__(self, file):
        self.file = file

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            with open(self.file, "a", encoding="utf-8") as file:
                file.write(f"{sum(os.times()[:4]) - before:.3f}\t{item.nodeid}\n")


def pytest_configure(config):
    # As plugins: a hook of this file would not be asked about folders beside this one.
    if file := os.environ.get("DPCORE_TEST_TIMES"):
        config.pluginmanager.register(TestTimes(file))
    if find_spec("torch") is None:
        config.pluginmanager.register(DoctestsOfTorch())
    if number := os.environ.get("DPCORE_TRAINING_SEED"):
        change_training_seeds(int(number))


def pytest_addoption(parser):
    group = parser.getgroup("dpcore", "selection of tests")
    group.addoption("--part", metavar="i/n", type=read_part, help="run only part i of n, by files")
    group.addoption(
        "--extras-files", action="store_true", help="run only files with a test marked extras"
    )


def read_part(text):
    """Return (i, n) of "i/n"."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if match is None or int(match[1]) > int(match[2]):
        raise ArgumentTypeError(f"--part must be i/n with 1 <= i <= n, got {text!r}")
    return int(match[1]), int(match[2])


def is_in_part(name, part):
    """Return whether part (i, n) holds the file of a name, by a hash of that name."""
    return zlib.crc32(name.encode()) % part[1] == part[0] - 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark what needs optional packages; keep the files that the options select.

    This precedes pytest's own selection by `-m`, which sees these marks.
    """
    for item in items:
        module = getattr(item, "module", None)
        if getattr(module, "__name__", None) in NEEDING_MODULES or is_doctest_of_torch(item.path):
            item.add_marker("extras")
        if module is None and item.name in SLOW_DOCTESTS:
            item.add_marker("sweep")
    part, root = config.getoption("part"), config.rootpath
    extras = {item.path for item in items if item.get_closest_marker("extras")}

    def is_selected(path):
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        in_part = part is None or is_in_part(name, part)
        return in_part and (path in extras or not config.getoption("extras_files"))

    dropped = [item for item in items if not is_selected(item.path)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if is_selected(item.path)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    RUNNING[:] = [item]
    if item.get_closest_marker("gpu") and not import_module("torch").cuda.is_available():
        pytest.skip("there is no CUDA device")


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
