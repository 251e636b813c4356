"""Optional packages: a module that another thread is importing is not there yet."""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

import dpcore
from dpcore import progress
from dpcore.adapters import adapt
from dpcore.errors import has_masked
from dpcore.packages import get_loaded_module, use_one_blas_thread
from dpcore.sensitivity.search import is_torch_module
from dpcore.streams import Generators, seeded_globals, torch_generators


@pytest.fixture
def half(monkeypatch):
    """Plants a module as `sys.modules` shows it while it is being imported: with nothing in it."""

    def plant(name):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__spec__._initializing = True
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return plant


def test_masked_arrays_are_looked_for_once_they_are_imported(half):
    options = {"claim": 1.0, "trials": 10**4, "threads": 2}
    # What an audit imports when it is first run needs the whole of numpy.
    dpcore.audit(dpcore.Laplace(1.0), ([0.0], [1.0]), **options)
    module = half("numpy.ma")
    assert not has_masked([1.0])
    assert dpcore.audit(dpcore.Laplace(1.0), ([0.0], [1.0]), **options).counts.n == 10**4
    # The control: that module is asked as soon as its import has ended, and has no answer.
    module.__spec__._initializing = False
    with pytest.raises(AttributeError, match="is_masked"):
        has_masked([1.0])


def test_half_of_another_package_is_none_of_it(half):
    half("IPython")
    assert not progress.in_notebook()
    half("torch")
    half("torch.nn.modules.module")
    assert not is_torch_module(abs)
    assert torch_generators() == []
    assert adapt(abs) is None
    with seeded_globals(np.random.default_rng(1)), Generators.collect_from_memory():
        pass


def test_a_module_is_loaded_when_its_import_has_ended(tmp_path, monkeypatch):
    name = "imported_by_another_thread"
    (tmp_path / f"{name}.py").write_text(
        "import sys\nsys.begun.set()\nassert sys.goes_on.wait(60)\nanswer = 42\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "begun", threading.Event(), raising=False)
    monkeypatch.setattr(sys, "goes_on", threading.Event(), raising=False)
    importing = threading.Thread(target=importlib.import_module, args=(name,))
    importing.start()
    try:
        assert sys.begun.wait(60)
        assert name in sys.modules
        assert get_loaded_module(name) is None
    finally:
        sys.goes_on.set()
        importing.join()
    try:
        assert get_loaded_module(name).answer == 42
    finally:
        del sys.modules[name]


def test_what_stands_in_for_a_module_counts_as_loaded(monkeypatch):
    stand_in = object()
    monkeypatch.setitem(sys.modules, "stands_in", stand_in)
    assert get_loaded_module("stands_in") is stand_in
    # An import that is forbidden so.
    monkeypatch.setitem(sys.modules, "stands_in", None)
    assert get_loaded_module("stands_in") is None


def count_blas_threads():
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_fit_takes_one_blas_thread_and_gives_the_others_back(monkeypatch):
    from threadpoolctl import threadpool_limits

    from dpcore.attacks import Discriminant

    numbers = []
    fit = Discriminant.make_scores
    monkeypatch.setattr(
        Discriminant,
        "make_scores",
        lambda *rows: (numbers.append(count_blas_threads()), fit(*rows))[1],
    )
    with threadpool_limits(2, user_api="blas"):
        dpcore.audit(dpcore.Laplace(2.0), ([0.0] * 3, [1.0] * 3), claim=1.0, trials=2000, rng=1)
        assert numbers
        assert set().union(*numbers) == {1}
        assert count_blas_threads() == {2}
        # Contexts of two threads overlap: the first to begin is the first to end.
        first, second = use_one_blas_thread(), use_one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert count_blas_threads() == {1}
        second.__exit__(None, None, None)
        assert count_blas_threads() == {2}
