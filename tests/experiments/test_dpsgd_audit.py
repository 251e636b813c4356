"""What the experiment on faults of DP-SGD must see, and how it says that it did not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shared_extras import needs

from dpcore import training

needs("torch", "opacus")


@pytest.fixture(scope="module")
def result():
    from dpcore.experiments import dpsgd_audit

    return dpsgd_audit.run(dpsgd_audit.Config(quick=True, seed=1), progress=False)


def test_every_fault_is_seen_by_a_named_way_and_repaired_recipes_pass(result):
    assert result.unexpected == ()
    cells = {(cell.fault, cell.way): cell for cell in result.cells}
    assert cells["fixed batches", "many runs"].refuted
    assert not cells["Poisson batches", "many runs"].refuted
    # Far from each other: of .13, which the accountant says.
    assert cells["Poisson batches", "many runs"].certified < 0.13
    assert cells["fixed batches", "many runs"].certified > 0.3
    assert "As expected, one step refutes every fault of a step" in str(result)


def test_a_fault_that_passes_and_a_repaired_recipe_that_does_not_are_named(result):
    turned = {("half the noise", "one step"), ("Poisson batches", "many runs")}
    cells = tuple(
        replace(cell, refuted=not cell.refuted) if (cell.fault, cell.way) in turned else cell
        for cell in result.cells
    )
    other = replace(result, cells=cells)
    assert {(cell.fault, cell.way) for cell in other.unexpected} == turned
    assert "NOT AS EXPECTED" in str(other)
    for fault, way in turned:
        assert f"{fault} (generated, {way})" in str(other)


@pytest.mark.parametrize(
    ("records", "advice"),
    [
        (tuple(range(8)), "list(zip(x, y)) makes a list of records of two arrays"),
        (iter(range(8)), "list(records) makes a list"),
        (3, "a list of records, a numpy array or a torch tensor, got 3"),
    ],
)
def test_records_that_are_no_list_are_refused_with_what_makes_one(records, advice):
    def step(rows, rng):
        return np.sum(np.asarray(rows), axis=0) + rng.normal(size=3)

    with pytest.raises(TypeError, match=r"^records must be a list of records") as complaint:
        training.audit_step(step, records, sigma=1.0, clip=1.0)
    assert advice in str(complaint.value)


def test_a_loader_of_torch_is_refused_with_what_makes_a_list():
    import torch

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 3)))
    with pytest.raises(TypeError, match=r"list\(loader\.dataset\) makes a list"):
        training.audit_run(lambda rows: len, loader, canaries=[1, 2], guesses=2)


@pytest.mark.parametrize("step", [dict, lambda rows: rows])
def test_what_cannot_be_called_as_a_step_is_refused(step):
    with pytest.raises(TypeError, match=r"^step must be "):
        training.audit_step(step, [0.0, 1.0], sigma=1.0, clip=1.0)
