"""Arguments of `audit`: one list, each is checked by its name, and what is forgotten is named."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

import dpcore
from dpcore.auditing.request import Arguments

ARGUMENTS = tuple(inspect.signature(dpcore.audit).parameters)
GIVEN = {"mechanism": dpcore.Laplace(1.0), "trials": 100, "rng": 1}


def test_the_list_of_arguments_is_that_of_audit():
    # The bar alone goes on by itself: nothing that is counted knows of it.
    # Those that a check leaves as they are come first, so that the order is another.
    assert sorted(field.name for field in fields(Arguments)) == sorted({*ARGUMENTS} - {"progress"})
    assert all(field.kw_only for field in fields(Arguments))


def refuse_wrong_value(audit, name):
    with pytest.raises(TypeError, match=f"^{name} must be "):
        audit(**GIVEN | {name: object()})


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_is_checked_by_name(name):
    refuse_wrong_value(dpcore.audit, name)


def test_an_argument_without_a_check_is_found():
    def audit(remark="", **given):
        return dpcore.audit(**given)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        refuse_wrong_value(audit, "remark")
