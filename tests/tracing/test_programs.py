"""Traces of a table of functions: outcomes, losses and lines; and over 100 seeds no false alarm."""

from __future__ import annotations

import numpy as np
import pytest
from shared_programs import CORRECT, FAULTY, UNFOLLOWED

import dpcore

PROGRAMS = [*FAULTY, *CORRECT, *UNFOLLOWED]


def trace_program(program, rng, **options):
    pair = program.x, program.x_prime
    settings = {"claim": program.claim, "delta": program.delta, "rng": rng, **options}
    return dpcore.trace(program.function, pair, **settings)


def name_programs(programs):
    return [pytest.param(program, id=program.name) for program in programs]


def test_the_table_has_the_sizes_of_the_issue():
    """The shares below are those of 20 faulty, 41 correct and 4 untraceable functions."""
    assert (len(FAULTY), len(CORRECT), len(UNFOLLOWED)) == (20, 41, 4)


@pytest.mark.parametrize("program", name_programs(PROGRAMS))
def test_outcome_loss_and_line(program):
    """Each function has its outcome, its loss and what the loss covers; faulty lines are named."""
    report = trace_program(program, 1)
    assert report.outcome in program.outcomes, str(report)
    if program.loss is not None:
        assert report.loss == pytest.approx(program.loss, rel=1e-9)
    if program.kind is not None and report.outcome == "a finding":
        assert [finding.kind for finding in report.findings] == [program.kind]
    if program.cover is not None:
        begin = {"every": "every noise: one move in 4 draws", "seen": "the noise seen in 4 draws: "}
        assert report.covers.startswith(begin[program.cover])
    assert bool(program.fault_lines) == (program in FAULTY)
    for place in program.fault_lines:
        assert place in str(report)


@pytest.mark.sweep
@pytest.mark.parametrize("program", name_programs([*CORRECT, *UNFOLLOWED]))
def test_correct_functions_do_not_fail_with_few_or_many_draws(program):
    """No correct function has exit status 1, whatever the number of draws."""
    for draws in (1, 9):
        assert trace_program(program, 3, draws=draws).exit_status != 1


@pytest.mark.sweep
@pytest.mark.parametrize("program", name_programs([*CORRECT, *UNFOLLOWED]))
def test_correct_functions_do_not_fail_in_100_seeds(program):
    """No correct function has exit status 1 in any of 100 seeds."""
    assert [trace_program(program, seed).exit_status == 1 for seed in range(100)] == [False] * 100


@pytest.mark.sweep
def test_faulty_functions_fail_in_100_seeds():
    """The faults are found whatever the noise is."""
    for program in FAULTY:
        for seed in range(100):
            assert trace_program(program, seed).outcome in program.outcomes, (program.name, seed)


@pytest.mark.sweep
def test_random_pairs_of_correct_mechanisms_have_no_finding():
    """480 random neighbours of 12 correct mechanisms: no finding, and all losses are checked."""
    exact = [
        program
        for program in CORRECT
        if program.cover in ("every", "seen") and isinstance(program.x, list)
        and program.delta == 0 and all(type(value) is int for value in program.x)
        and program.function.__name__ not in ("pass_a_seed_on", "release_prefix_sums")
    ][:12]  # fmt: skip
    assert len(exact) == 12
    draw = np.random.default_rng(5)
    for program in exact:
        for _ in range(40):
            x = draw.integers(0, 3, size=len(program.x)).tolist()
            other = list(x)
            other[int(draw.integers(len(x)))] = int(draw.integers(0, 3))
            if other == x:
                continue
            report = dpcore.trace(program.function, (x, other), rng=int(draw.integers(2**31)))
            assert not report.findings, (program.name, x, other)
            assert report.checked == report.draws == 4
