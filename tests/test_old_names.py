"""Public names that have moved: whoever uses an old one reads the new one."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec

import pytest

from dpcore.errors import NEW_NAMES

NEED_TORCH = ("dpcore.torch.", "dpcore.text.systems.", "dpcore.text.ADePT", "dpcore.text.DPText")
"""Beginnings of names that are found only where torch is installed."""


@pytest.mark.parametrize(("name", "new"), NEW_NAMES.items())
def test_an_old_name_states_the_new_one(name, new):
    package, _, last = name.rpartition(".")
    if name.startswith(NEED_TORCH) and find_spec("torch") is None:
        pytest.skip("without torch")
    module = import_module(package)
    with pytest.raises(AttributeError) as caught:
        getattr(module, last)
    assert str(caught.value).endswith(f"(it is {new} now)")
    if hasattr(module, "__path__"):
        with pytest.raises(ModuleNotFoundError) as caught:
            exec(f"from {package} import {last}", {})
        assert str(caught.value).endswith(f"(it is {new} now)")


def test_the_new_names_exist():
    for new in NEW_NAMES.values():
        needs_torch = "dpnr_table" in new or new.startswith(NEED_TORCH)
        if not needs_torch or find_spec("torch") is not None:
            pkgutil.resolve_name(new.partition(",")[0])
