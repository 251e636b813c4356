"""Many trainings: a bare loop, an audit in one process, and one in two processes.

`python benches/bench_trainings.py [--quick] [--out FILE]` measures once and writes the table kept
in benches/record. A training by Opacus takes about .6 s; the quick size is the one of `make smoke`.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import os
import pathlib
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpcore

RECORDS, FEATURES, BATCH, EPOCHS, SIGMA = 512, 16, 32, 10, 1.0
TRIALS, PILOT, BLOCK = 68, 32, 2
"""Two sides of 68 counted and 32 pilot trainings: 200."""
QUICK = 4, 4, 1

MODEL: list[Any] = []


def prepare() -> None:
    """Make the model that every training copies."""
    import torch

    torch.manual_seed(1)
    hidden = torch.nn.Linear(FEATURES, 64)
    MODEL[:] = [torch.nn.Sequential(hidden, torch.nn.ReLU(), torch.nn.Linear(64, 2))]


def train(records: Any, rng: np.random.Generator, epochs: int = EPOCHS) -> float:
    """Train with Opacus; return the loss of the first record, which is the canary on x."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(int(rng.integers(2**63)))
    x, y = torch.from_numpy(records[:, :-1]), torch.from_numpy(records[:, -1]).long()
    model = copy.deepcopy(MODEL[0])
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, y), batch_size=BATCH
        ),
        noise_multiplier=SIGMA,
        max_grad_norm=1.0,
    )
    loss = torch.nn.functional.cross_entropy
    for _ in range(epochs):
        for some, labels in loader:
            optimizer.zero_grad()
            loss(model(some), labels).backward()
            optimizer.step()
    canary = torch.full((1, FEATURES), 3.0)
    with torch.no_grad():
        return float(loss(model(canary), torch.tensor([0])))


def make_pair() -> tuple[Any, Any]:
    """Return records with and without a canary; both give batches of one expected share."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    x[0] = 3.0
    labels = (x[:, 0] > 0.0).astype(np.float32)
    labels[0] = 0.0
    records = np.column_stack([x, labels])
    return records, records[1:]


@dataclass(frozen=True)
class Took:
    """The seconds of one way to train many times.

    Args:
        wall: seconds by the clock.
        cpu: seconds of all processors, of this process and of those that it started.
        answer: what the way returned.
    """

    wall: float
    cpu: float
    answer: Any


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(work: Callable[[], Any]) -> Took:
    """Return how long some work takes."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    answer = work()
    return Took(time.perf_counter() - wall, _cpu_seconds() - cpu, answer)


def run_loop(trainings: int, epochs: int) -> float:
    """Train in a bare loop; return the mean loss."""
    pair, rng = make_pair(), np.random.default_rng(1)
    return float(np.mean([train(pair[i % 2], rng, epochs) for i in range(trainings)]))


def run_audit(sizes: tuple[int, int, int], epochs: int, processes: int) -> dpcore.Audit:
    """Audit with pilots and counts, in this process alone or in several others."""
    from opacus.accountants import RDPAccountant

    trials, pilot, block = sizes
    accountant = RDPAccountant()
    batches = RECORDS // BATCH
    accountant.history = [(SIGMA, 1 / batches, epochs * batches)]
    options = {
        "neighbour": dpcore.pairs.AddRemove(), "claim": dpcore.claims.of(accountant),
        "trials": trials, "pilot": pilot, "block": block, "rng": 1,
    }  # fmt: skip
    mechanism = dpcore.repeat(partial(train, epochs=epochs), seeded="rng")
    if processes == 1:
        return dpcore.audit(mechanism, make_pair(), **options)
    with dpcore.training.make_pool(processes, prepare) as pool:
        return dpcore.audit(mechanism, make_pair(), executor=pool, **options)


def measure_all(quick: bool) -> dict[str, Took]:
    """Measure the three ways, one after the other, each with one thread of torch a process."""
    import torch

    torch.set_num_threads(1)
    prepare()
    sizes, epochs = (QUICK, 1) if quick else ((TRIALS, PILOT, BLOCK), EPOCHS)
    run_loop(2, epochs)
    trainings = 2 * (sizes[0] + sizes[1])
    found = {
        "bare loop": measure(lambda: run_loop(trainings, epochs)),
        "audit, one process": measure(lambda: run_audit(sizes, epochs, 1)),
        "audit, two processes": measure(lambda: run_audit(sizes, epochs, 2)),
    }
    one, two = (found[f"audit, {name}"].answer for name in ("one process", "two processes"))
    assert one.counts == two.counts
    assert one.counts.n == sizes[0]
    assert one.randomness == two.randomness == "seed"
    # The training is private as Opacus accounts for it.
    assert True not in (one.refuted, two.refuted)
    spent = {step.step: step.outputs for step in one.spent}
    assert spent["fit"] + spent["count"] == trainings
    assert spent["probe"] <= 26
    return found


def format_table(found: dict[str, Took], load: tuple[float, float], epochs: int) -> str:
    """Return the table in Markdown.

    Args:
        found: name of each way -> what it took.
        load: of the machine, before and after: processes that want to run, mean of a minute.
        epochs: of a training.
    """
    first = found["audit, one process"]
    spent = {step.step: step.outputs for step in first.answer.spent}
    trainings = spent["fit"] + spent["count"]
    lines = [
        "# Many trainings: a bare loop and audits",
        "",
        f"{datetime.date.today()}, dpcore {dpcore.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores. One",
        f"measurement; load {load[0]:.1f} before it and {load[1]:.1f} after it. Remade by",
        "`python benches/bench_trainings.py`.",
        "",
        f"{trainings} trainings by Opacus, each of {epochs} epochs of {RECORDS // BATCH} batches; "
        f"the audits try",
        f"the function {spent['probe']} times more. The start of the processes is counted.",
        "",
        "| way | seconds | CPU seconds | of one process |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, took in found.items():
        lines.append(
            f"| {name} | {took.wall:.0f} | {took.cpu:.0f} | {took.wall / first.wall:.2f} |"
        )
    return "\n".join([*lines, ""])


# Opacus warns of its own random numbers.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_two_processes_count_what_one_process_counts():
    """The quick size; the times are measured by this file as a script."""
    pytest.importorskip("opacus")
    found = measure_all(quick=True)
    assert all(took.wall > 0.0 for took in found.values())


if __name__ == "__main__":
    # Spawned processes import the functions by the name of this module.
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import bench_trainings as here

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    target = pathlib.Path(__file__).parent / "record" / "trainings.md"
    parser.add_argument("--out", type=pathlib.Path, default=target)
    given = parser.parse_args()
    before = os.getloadavg()[0]
    measured = here.measure_all(given.quick)
    loads = before, os.getloadavg()[0]
    given.out.write_text(here.format_table(measured, loads, 1 if given.quick else EPOCHS))
    print(given.out.read_text())
