"""What the experiment on faults of DP-SGD must see, and how it says that it did not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore import training

torch = needs("torch", "opacus")


@pytest.fixture(scope="module")
def result():
    from dpcore.experiments import dpsgd_audit

    return dpsgd_audit.run(dpsgd_audit.Config(quick=True, seed=1), progress=False)


@pytest.mark.sweep
def test_every_fault_is_seen_by_a_named_way_and_repaired_recipes_pass(result):
    assert result.unexpected == ()
    cells = {(cell.fault, cell.way): cell for cell in result.cells}
    assert cells["fixed batches", "many runs"].refuted
    assert not cells["Poisson batches", "many runs"].refuted
    # Far from each other: of .13, which the accountant says.
    assert cells["Poisson batches", "many runs"].certified < 0.13
    assert cells["fixed batches", "many runs"].certified > 0.3
    assert "As expected, one step refutes every fault of a step" in str(result)


@pytest.mark.sweep
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


def audit_step(records, step=lambda rows, rng: rng.normal(size=3)):
    return lambda: training.audit_step(step, records, sigma=1.0, clip=1.0)


def audit_loader():
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 3)))
    training.audit_run(lambda rows: len, loader, canaries=[1, 2], guesses=2)


TYPE_ERRORS = [
    (audit_step(tuple(range(8))), "records", "list(zip(x, y)) makes a list of records of two arr"),
    (audit_step(iter(range(8))), "records", "list(records) makes a list"),
    (audit_step(3), "records", "a list of records, a numpy array or a torch tensor, got 3"),
    (audit_loader, "records", "list(loader.dataset) makes a list"),
    (audit_step([0.0, 1.0], dict), "step", ""),
    (audit_step([0.0, 1.0], lambda rows: rows), "step", ""),
]


def test_messages():
    check_messages(TypeError, TYPE_ERRORS)
