"""Messages of wrong calls of `dpcore.auditing`: the argument, and a word of the remedy."""

from __future__ import annotations

import inspect
import math
import pickle
from dataclasses import fields

import numpy as np
import pytest
from shared_audits import UNIT, noisy
from shared_messages import check_messages

import dpcore
from dpcore import Gaussian, Laplace, Pair, audit, audit_outputs, pairs
from dpcore.attacks import NAMES, Coordinatewise, MajorityVote
from dpcore.auditing.arguments import Arguments
from dpcore.auditing.request import Request
from dpcore.calibration import L2Laplace
from dpcore.claims import GDP, ZCDP
from dpcore.cli.options import AuditArguments
from dpcore.mechanisms.declarations import StatedLogRatio
from dpcore.pairs import L1, Box, search
from dpcore.runs import merge_parts

PAIR = ([0.0], [1.0])

CLAIMED = {"claim": 1.0, "rng": 1}
EARLY = {"stop": "refuted", "trials": 1000, **CLAIMED}


def one_noise(x, size, rng):
    """One noise for all rows of a call."""
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))


def replaying(x, size, rng):
    return x + np.random.default_rng(7).laplace(size=(size, len(x)))


def audit_laplace(**change):
    """Return the call of a short audit of Laplace noise with some wrong arguments."""
    return lambda: audit(**{"mechanism": Laplace(1.0), "trials": 1000} | change)


def audit_noise(*pair, **change):
    return lambda: audit(noisy, *(pair or [PAIR]), **change)


def audit_scores(**change):
    return lambda: audit_outputs([1.0], [2.0], rows="one_run", **change)


def plan_trials(**change):
    return lambda: dpcore.plan(**{"claim": 1.0} | change)


TRIALS = "a whole number at least 1 and below 2**63, got "

VALUE_ERRORS = [
    # Arguments of `audit`, one by one.
    (audit_laplace(claim=-1.0), "claim", "a finite number at least 0, got -1.0"),
    (audit_laplace(claim=math.inf), "claim", "a finite number at least 0, got inf"),
    (audit_laplace(delta=1.0), "delta", "a finite number at least 0 and below 1, got 1.0"),
    (audit_laplace(delta=-1e-9), "delta", "a finite number at least 0 and below 1, got -1e-09"),
    (audit_laplace(confidence=1.0), "confidence", "a finite number above 0 and below 1, got 1.0"),
    (audit_laplace(confidence=95), "confidence", "below 1 (did you mean 0.95?), got 95"),
    (audit_laplace(trials=0), "trials", f"{TRIALS}0"),
    (audit_laplace(trials="abc"), "trials", f"{TRIALS}'abc'"),
    (audit_laplace(trials=1.5), "trials", f"{TRIALS}1.5"),
    (audit_laplace(trials=2**63), "trials", f"{TRIALS}{2**63}"),
    (audit_laplace(trials=2**63 // 3 + 1, pair=pairs.zeros_ones(3)), "trials", "trials x dim is"),
    (audit_laplace(trials=100, start=2**63 - 100), "trials", "trials x dim is below 2**63, got"),
    (audit_laplace(start=-1), "start", "an integer at least 0, got -1"),
    (audit_laplace(route="fast"), "route", "one of 'auto', 'integer', 'sampled', got 'fast'"),
    # It compares votes with thresholds on random integers, and knows no other event.
    (audit_laplace(route="integer"), "route",
     "'sampled' or 'auto' for any attack but MajorityVote, got 'integer'"),
    (audit_laplace(mechanism=Gaussian(1.0), attack=MajorityVote(), route="integer"), "route",
     "'sampled' or 'auto' here ("),
    (audit_laplace(block=0), "block", f"an integer from 1 to {2**40}, got 0"),
    (audit_laplace(threads=0), "threads", "an integer from 1 to 1024, got 0"),
    (audit_laplace(attack="best"), "attack", f"one of {', '.join(map(repr, NAMES))}, got 'best'"),
    (audit_laplace(bound="best"), "bound", "'clopper_pearson', 'exact', 'conditional', 'anytime'"),
    (audit_laplace(bound="conditional", delta=0.1), "bound", "another than 'conditional' wh"),
    (audit_laplace(stop="soon"), "stop", "one of 'fixed', 'refuted', got 'soon'"),
    (audit_laplace(pilot=1), "pilot", f"an integer from 2 to {2**63 - 1}, got 1"),
    (audit_laplace(mechanism=noisy), "pair", "given, because the mechanism has no default_pair"),
    (audit_laplace(mechanism=noisy, pair=UNIT, route="integer"), "route", "'auto' for a Python"),
    (audit_laplace(mechanism=noisy, pair=UNIT, start=7, block=5), "start", "a multiple of block"),
    # Usual mistakes.
    (audit_noise(attack="treshold"), "attack", "one of"),
    (audit_noise(bound="clopper"), "bound", "did you mean"),
    (lambda: audit(one_noise, PAIR, trials=1000, claim=1.0), "", "size"),
    (audit_noise(rng=-1), "rng", "an integer from 0"),
    (lambda: dpcore.repeat(lambda: 1.0), "fn", "a lambda"),
    # Verdicts on claims that are curves: who is refuted, how often, and what is certified.
    (audit_noise(claim=GDP(1.0), delta=0.1), "delta", "left out where"),
    (audit_noise(claim=GDP(1.0), bound="conditional"), "bound", "left out, or one that has a form"),
    (audit_noise(Pair(*PAIR, 2.0), claim=GDP(1.0)), "distance of the pair", "1 where claim is a c"),
    (audit_scores(claim=GDP(1.0), delta=0.1), "delta", "left out where claim is a curve"),
    (audit_scores(claim=GDP(1.0), bound="one_run"), "bound", "knows one"),
    (audit_scores(claim=ZCDP(1.0),
     bound="one_run_fdp"), "bound", "concerns only Gaussian claims"),
    (audit_scores(claim=1.0, delta=0.1,
     bound="one_run_curve"), "bound", "another where claim is a number"),
    (audit_noise(claim=GDP(1.0), attack=Coordinatewise()),
     "attack", "one that counts one event where claim"),
    (plan_trials(claim=GDP(1.0), true_epsilon=2.0), "true_epsilon", "None"),
    (plan_trials(claim=GDP(1.0), factor=0.9, guesses=100), "guesses", "None where claim"),
    # The default audit: a portfolio of attacks, the choice of pair and event, and what is refused.
    (audit_noise([UNIT, UNIT], attack=MajorityVote(), **CLAIMED), "attack", "one that makes sc"),
    (lambda: audit(replaying, UNIT, trials=10**5, **CLAIMED), "", "drawn anew in every call"),
    # Audits that stop when the claim is refuted: sound at every look, and quicker than a fixed n.
    (audit_noise(stop="refuted", trials=100), "claim", "given, where stop is 'refuted'"),
    (audit_noise(attack=MajorityVote(), **EARLY), "attack", "one that makes scores, where"),
    (lambda: audit(noisy, PAIR, **EARLY).epsilon_lower_at(0.1), "delta", "0, the one that the"),
    (lambda: audit(noisy, PAIR, **EARLY) + audit(noisy, PAIR, **EARLY), "audits", "early stop"),
    # Claims, pairs and distances: what an audit tests, and when it refuses to.
    (audit_laplace(pair=[]), "pair", "at least one Pair"),
    (audit_laplace(pair=([0.0], [1.0, 2.0])), "pair", "two inputs of equal"),
    (audit_laplace(pair=([0.0], [0.0])), "pair", "different in"),
    (audit_laplace(pair=([0.0], [math.nan])), "x_prime", "a non-empty vector"),

        # `dpcore.plan`: known numbers, the power that it promises, its arguments.
    (plan_trials(true_epsilon=1.0), "true_epsilon", "above claim = 1 (no"),
    (plan_trials(true_epsilon=math.inf), "true_epsilon", "a finite number"),
    (plan_trials(true_epsilon=2.0, factor=0.9), "factor", "None where"),
    (plan_trials(factor=1.0), "factor", "a finite number above 0 and below 1"),
    (plan_trials(claim=0.0, factor=0.9), "claim", "above 0 where factor is given"),
    (plan_trials(factor=0.9, mass=0.0), "mass", "a finite number above 0"),
    (plan_trials(factor=0.9, mass=0.1, delta=0.1), "mass", "a finite"),
    (plan_trials(factor=0.9, mass=1.5), "mass", "at most 1"),
    (plan_trials(factor=0.9, mass=0.5, delta=1e-5), "mass", "such that"),
    (plan_trials(factor=0.9, mass=1e-300), "mass", "such that the event shows"),
    (plan_trials(claim=700.0, true_epsilon=800.0), "true_epsilon", "such that the event"),
    (plan_trials(factor=0.9, power=1.0), "power", "a finite number"),
    (plan_trials(factor=0.9, pair=([0.0], [1.0])), "pair", "None without"),
    (plan_trials(factor=0.9, rng=1), "rng", "None without a mechanism"),
    (plan_trials(factor=0.9, canaries=10, mass=0.5), "mass", "None where"),
    (plan_trials(factor=0.9, canaries=10, guesses=11), "guesses", "an integer"),
    (plan_trials(factor=0.9, guesses=1.5), "guesses", "a finite number above 0"),
    (plan_trials(factor=0.9, guesses=1.0, delta=0.3), "delta", "small enough"),
    (plan_trials(mechanism=Laplace(1.0), mass=0.5), "mass", "None where"),
    (plan_trials(mechanism=Laplace(1.0), canaries=5), "canaries", "None where a mechanism"),
    (plan_trials(mechanism=Laplace(0.5), attack=Coordinatewise()), "attack", "one that"),
    # What a long audit says while it runs and after: its steps and draws, and what is to come.
    (lambda: search(Box(0, 1, 2), L1(1.0), seconds=0.0), "seconds", "a finite number above 0"),

    (lambda: search(Box(0, 1, 2), L1(1.0), seconds=float("nan")), "seconds", "a finite"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: merge_parts([], partial="yes"), "partial", "True or False, got 'yes'"),
    # Arguments of `audit`, one by one.
    (audit_laplace(claim="1"), "claim", "a finite number at least 0, got '1'"),
    (audit_laplace(claim=True), "claim", "a finite number at least 0, got True"),
    (audit_laplace(trials=True), "trials", f"{TRIALS}True"),
    (audit_laplace(start=0.5), "start", "an integer at least 0, got 0.5"),
    (audit_laplace(rng="1"), "rng", "None, an int in [0, 2**63) or a numpy.random.Generator"),
    (audit_laplace(progress=1), "progress", "True, False or None, got 1"),
    (audit_laplace(attack=3), "attack", "a callable (outputs, outputs_prime, pair) -> event"),
    (audit_laplace(null=1), "null", "True or False, got 1"),
    (audit_laplace(neighbour="l3"), "neighbour", "(dpcore.pairs.L1(1.0), L2(1.0), Linf(1.0), Rep"),
    (audit_laplace(floats=1), "floats", "True or False, got 1"),
    (audit_laplace(source=0), "source", "True or False, got 0"),
    (audit_laplace(executor=2), "executor", "a concurrent.futures.Executor, a Dask client or None"),
    (audit_laplace(mechanism=3), "mechanism", "a callable (x, size, rng) -> outputs, got 3"),
    # Usual mistakes.
    (plan_trials(claim=None, mechanism=noisy, pair=PAIR), "claim", "given"),
    (audit_noise(trails=3), "", "did you mean 'trials'"),
    (lambda: audit(dpcore.Laplace, PAIR), "mechanism", "an instance"),
    (lambda: audit(lambda x: x, PAIR), "mechanism", "dpcore.repeat"),
    (lambda: audit_outputs([0.0], rows="independent"), "outputs_prime", "label="),
    (lambda: audit_outputs([0.0], [1.0]), "rows", "independent"),
    # Verdicts on claims that are curves: who is refuted, how often, and what is certified.
    (plan_trials(claim=GDP(1.0)), "factor", "given"),
    (lambda: dpcore.audit_table(np.eye(2), claim=GDP(1.0)), "claim", "a finite number at least 0"),
    # The default audit: a portfolio of attacks, the choice of pair and event, and what is refused.
    (audit_noise(UNIT, trials=100, **CLAIMED, pilot=1.5), "pilot", "an integer"),
    (audit_noise(UNIT, trials=100, **CLAIMED, bound=None), "bound", "one of"),
    # Claims, pairs and distances: what an audit tests, and when it refuses to.
    *((audit_laplace(mechanism=noisy, pair=wrong), "pair", "a Pair, a tuple")
      for wrong in (3.0, [1, 2, 3], np.zeros(3), {})),
    (audit_laplace(pair="ab"), "pair", "a Pair, a tuple (x, x_prime)"),
    (audit_laplace(pair=[[0.0], [1.0]]), "pair", "a Pair, a tuple"),
    (audit_laplace(pair=([0.0],)), "pair", "a Pair, a tuple"),
    (audit_laplace(pair=("text", "other")), "x", "a non-empty vector"),

    # Outputs that are no real numbers: what a score written by hand certifies, `auto` certifies
    (lambda: audit_outputs(["a", "b"], ["c", "d"], rows="one_run"), "outputs", "one real"),
    (lambda: audit_outputs([1j, 2j], [3j, 4j], rows="one_run"), "outputs", "one real"),
    # `dpcore.plan`: known numbers, the power that it promises, its arguments.
    (plan_trials(), "true_epsilon", "given, or factor"),
    (plan_trials(claim=None, factor=0.9), "claim", "given where there is no mechanism"),
    (plan_trials(claim=None, mechanism=Laplace(1.0)), "claim", "given for"),
    # A mechanism's own log ratio as one more score of `auto`, and its own loss in the report.
    (lambda: StatedLogRatio(L2Laplace(1.0), "pair"), "pair", "a Pair"),
    (lambda: StatedLogRatio(print, UNIT), "mechanism", "one with log_ratio"),
]  # fmt: skip
MEMORY_ERRORS = [
    # Rubbish in: a ValueError or a TypeError comes out, or a result, and soon.
    (lambda: dpcore.sample(Laplace(1.0), [0.0], 2**59), "", "Unable to allocate 4.00 EiB"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(MemoryError, MEMORY_ERRORS)


# Arguments of `audit`: one list, each is checked by its name, and what is forgotten is named.


ARGUMENTS = tuple(inspect.signature(dpcore.audit).parameters)
GIVEN = {"mechanism": dpcore.Laplace(1.0), "trials": 100, "rng": 1}


def test_the_list_of_arguments_is_that_of_audit():
    own = inspect.signature(Arguments).parameters
    assert inspect.signature(dpcore.audit).parameters == own
    assert [*ARGUMENTS] == [field.name for field in fields(Arguments)]
    # A request has all of them, checked.
    assert {*ARGUMENTS} <= {field.name for field in fields(Request)}
    assert pickle.loads(pickle.dumps(dpcore.audit)) is dpcore.audit


def test_every_argument_has_an_option_with_its_default():
    options = {option.name: option.default for option in fields(AuditArguments)}
    spelled = {"rng": "seed", "executor": "dask"}
    defaults = {
        spelled.get(argument.name, argument.name): argument.default
        for argument in fields(Arguments)
        if argument.name not in ("mechanism", "pair")
    }
    # Whoever types nothing gets the same, written as text.
    defaults |= {"attack": "auto", "start": "0"}
    assert {name: options.get(name, "no option") for name in defaults} == defaults


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
