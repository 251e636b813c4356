"""Public names that have moved: whoever uses an old one reads the new one."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import dpcore.text
from dpcore.errors import NEW_NAMES


def test_an_old_name_states_the_new_one():
    for name, new in NEW_NAMES.items():
        package, _, last = name.rpartition(".")
        inside = package == "dpcore.text.reading"
        with pytest.raises(AttributeError if inside else ModuleNotFoundError) as caught:
            getattr(import_module(package), last) if inside else import_module(name)
        assert str(caught.value).endswith(f"(it is {new} now)")
    for last in ("leakage", "Declustering"):
        with pytest.raises(AttributeError, match=r"\(it is dpcore.experiments"):
            getattr(dpcore.text, last)


def test_the_new_names_exist():
    for new in NEW_NAMES.values():
        if "dpnr_table" not in new:
            pkgutil.resolve_name(new.partition(",")[0])
