"""Messages of wrong calls of `dpcore.experiments`: the argument, and a word of the remedy."""

from __future__ import annotations

import math

import numpy as np
from shared_messages import check_messages

from dpcore import _core, text
from dpcore.experiments import divergence_accuracy as accuracy
from dpcore.experiments import dp_sniper_table as table
from dpcore.experiments import get, renyi_of_mechanisms
from dpcore.experiments import habernal2021_figure1 as figure1
from dpcore.experiments.dp_sniper_table import mechanisms, truth
from dpcore.experiments.dpnr_robust_adaptive import Config
from dpcore.text import reading

INF = math.inf

VALUE_ERRORS = [
    # The experiment on ADePT: rewrites, what is told of them, and the epsilon that is true.
    (lambda: get("adept-rewrite").Config(seeds=0), "seeds", "an integer at least 1"),
    (lambda: get("adept-rewrite").Config(variants=("l2",)), "variants", "one of"),
    (lambda: get("adept-rewrite").Config(variants=()), "variants", "not empty and without"),
    (lambda: get("adept-rewrite").Config(claimed=(0.0,)), "claimed", "a finite number above 0"),
    (lambda: get("adept-rewrite").Config(claimed=(1.0, float("inf"))), "claimed", "a finite"),
    (lambda: get("adept-rewrite").Config(examples=-1), "examples", "an integer at least 0"),
    (lambda: get("adept-rewrite").Config(full=True, quick=True), "quick", "left out"),
    # Accuracy of divergences: against our own recorded values, with an estimator that must fail.
    (lambda: accuracy.Config(trials=0), "trials", "a whole number at least 1 and below"),
    (lambda: accuracy.Config(repetitions=1), "repetitions", "an integer at least 2"),
    (lambda: accuracy.Config(rows=99), "rows", "an integer at least 100"),
    (lambda: accuracy.Config(cases=("n1",)), "cases", "one of 'n1-half', 'n1-one', 'n2-wider'"),
    (lambda: accuracy.Config(cases=()), "cases", "not empty and without repetition"),
    (lambda: accuracy.Config(methods=("ball", "ball")), "methods", "not empty and without"),
    (lambda: accuracy.Config(certified=-1), "certified", "an integer at least 0"),
    (lambda: accuracy.Config(seed=-1), "seed", "an integer from 0 to 9223372036854775807"),
    # The benchmark's mechanisms: exact laws, with controls that must fail; the published figures.
    (lambda: mechanisms.laplace([1.0, 2.0], 10, np.random.default_rng(1)), "x", "a vector"),
    (lambda: mechanisms.truncated_geometric([1.5], 10, np.random.default_rng(1)), "x", "a whole"),
    (lambda: mechanisms.rappor([3], 10, np.random.default_rng(1)), "x", "0, 1 or 2, whose filters"),
    (lambda: mechanisms.svt1([math.nan], 10, np.random.default_rng(1)), "x", "a non-empty vector"),
    (lambda: truth.exact_supremum("SVT7", []), "name", "one of 'Laplace', 'TruncatedGeometric"),
    # The table of the benchmark, on audits that cost nothing: what is asked for, shown and flagged.
    (lambda: table.Config(trials=0), "trials", "a whole number at least 1 and below"),
    (lambda: table.Config(repeats=0), "repeats", "an integer at least 1"),
    (lambda: table.Config(seed=-1), "seed", "an integer from 0 to"),
    (lambda: table.Config(confidence=1.0), "confidence", "a finite number above 0 and"),
    (lambda: table.Config(mechanisms=()), "mechanisms", "not empty and without repetition"),
    (lambda: table.Config(mechanisms=("SVT1", "SVT1")), "mechanisms", "not empty and without"),
    (lambda: table.Config(mechanisms=("SVT7",)), "mechanisms", "one of 'Laplace'"),
    # Training with noise: the models are what they are called, and the figures those of the models.
    (lambda: Config(seeds=0), "seeds", "an integer at least 1"),
    (lambda: Config(dims=(1,)), "dims", "an integer at least 2"),
    (lambda: Config(dims=(8, 8)), "dims", "not empty"),
    (lambda: Config(epsilons=(0.0,)), "epsilons", "a finite number above 0"),
    (lambda: Config(mus=(1.0,)), "mus", "a finite number above 0 and below 1"),
    (lambda: Config(lines=("adaptive",)), "lines", "one of"),
    # What the experiments refuse.
    (lambda: get("published-systems").Config(trials=0), "trials", "a whole number at least 1"),
    (lambda: get("published-systems").Config(seed=-1), "seed", "an integer from 0"),
    (lambda: get("published-systems").Config(dims=(1,)), "dims", "an integer at least 2"),
    (lambda: get("published-systems").Config(dims=()), "dims", "not empty and without repetition"),
    (lambda: get("published-systems").Config(dims=(2, 2)), "dims", "not empty and without"),
    (lambda: get("published-systems").Config(epsilon=0), "epsilon", "a finite number above 0"),
    (lambda: get("published-systems").Config(confidence=1.0), "confidence", "a finite"),
    (lambda: get("habernal2022-figure1").Config(dims=(2, 2)), "dims", "not empty and without"),
    (lambda: get("habernal2022-figure1").Config(epsilons=()), "epsilons", "not empty and without"),
    (lambda: get("habernal2022-figure1").Config(epsilons=(INF,)), "epsilons", "a finite"),
    (lambda: get("habernal2022-figure1").Config(mechanisms=("ADEPT",)), "mechanisms", "one of 'no"),
    (lambda: get("habernal2022-figure2").Config(trials="many"), "trials", "a whole"),
    # The share of pairs that ADePT's noise does not protect: counts, comparison, files.
    (lambda: figure1.Config(trials=0), "trials", "a whole number at least 1 and below"),
    (lambda: figure1.Config(dims=()), "dims", "not empty"),
    (lambda: figure1.Config(dims=(2, 2)), "dims", "not empty and without repetition"),
    (lambda: figure1.Config(dims=(0,)), "dims", "an integer from 1 to 4096"),
    (lambda: figure1.Config(dims=(4097,)), "dims", "an integer from 1 to 4096"),
    (lambda: figure1.Config(radius=0), "radius", "a finite number at least 1e-90"),
    (lambda: figure1.Config(radius=-10.0), "radius", "a finite number at least 1e-90"),
    (lambda: figure1.Config(radius=math.nan), "radius", "a finite number at least 1e-90"),
    (lambda: figure1.Config(epsilon=0), "epsilon", "a finite number at least 1e-90"),
    (lambda: _core.pairs_beyond(("cauchy", 1.0), ("l2", 1.0), 2, 10, 1, 1), "law", '"uniform" or'),
    (lambda: _core.pairs_beyond(("normal", 0.0), ("l2", 1.0), 2, 10, 1, 1), "spread", "a number"),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("linf", 1.0), 2, 10, 1, 1), "norm",
     '"l1" or "l2"'),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("l2", 0.0), 2, 10, 1, 1), "radius", "a number"),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("l2", 1.0), 0, 10, 1, 1), "dim",
     "from 1 to 4096"),
    (lambda: _core.pairs_beyond(("normal", 1.0), ("l2", 1.0), 2, 10, 1, 0), "threads",
     "from 1 to 1024"),
    # The experiment on noise layers: faults are caught, layers without fault are not.
    (lambda: get("noise-layers").Config(seeds=0), "seeds", "an integer at least 1"),
    (lambda: get("noise-layers").Config(layers=("Laplace",)), "layers", "one of"),
    (lambda: get("noise-layers").Config(epsilon=math.inf), "epsilon", "a finite number above 0"),
    # Renyi divergences of our own samplers: the truth about each, and what estimates make of it.
    (lambda: renyi_of_mechanisms.Config(trials=99), "trials", "an integer at least 100"),
    (lambda: renyi_of_mechanisms.Config(trials="x"), "trials", "a whole number at least 1"),
    (lambda: renyi_of_mechanisms.Config(delta=0.0), "delta", "a finite number above 0"),
    (lambda: renyi_of_mechanisms.Config(delta=0.31), "delta", "a finite number above 0"),
    (lambda: renyi_of_mechanisms.Config(confidence=1.0), "confidence", "a finite number above 0"),
    (lambda: renyi_of_mechanisms.Config(seed=-1), "seed", "an integer from 0"),
]  # fmt: skip
TYPE_ERRORS = [
    # The experiment on ADePT: rewrites, what is told of them, and the epsilon that is true.
    (lambda: get("adept-rewrite").Config(device=3), "device", "a str"),
    (lambda: get("adept-rewrite").Config(data=3), "data", "a path of a folder"),
    # Accuracy of divergences: against our own recorded values, with an estimator that must fail.
    (lambda: accuracy.Config(rows=1e3), "rows", "an integer at least 100"),
    # The benchmark's mechanisms: exact laws, with controls that must fail; the published figures.
    (lambda: mechanisms.laplace(["a"], 10, np.random.default_rng(1)), "x", "a non-empty vector"),
    # The table of the benchmark, on audits that cost nothing: what is asked for, shown and flagged.
    (lambda: table.Config(mechanisms=(1,)), "mechanisms", "one of 'Laplace'"),
    # Training with noise: the models are what they are called, and the figures those of the models.
    (lambda: Config(data=3), "data", "a path of a folder, or None"),
    (lambda: Config(device=3), "device", "a str"),
    (lambda: Config(full=1), "full", "True or False"),
    # What the experiments refuse.
    (lambda: get("published-systems").Config(trials=True), "trials", "a whole number at least 1"),
    (lambda: get("dp-sniper-table").Config(mechanisms="SVT1"), "mechanisms", "a list or tuple"),
    (lambda: get("floating-point").Config(systems=None), "systems", "a list or tuple"),
    (lambda: get("published-systems").Config(dims=2), "dims", "a list or tuple"),
    (lambda: get("habernal2022-figure1").Config(dims={2}), "dims", "a list or tuple"),
    (lambda: get("habernal2022-figure2").Config(seed=1.5), "seed", "an integer from 0"),
    # The share of pairs that ADePT's noise does not protect: counts, comparison, files.
    (lambda: figure1.Config(dims=None), "dims", "a list or tuple"),
    (lambda: figure1.Config(dims={2, 3}), "dims", "a list or tuple"),
    (lambda: figure1.Config(dims=(2.0,)), "dims", "an integer"),
    (lambda: figure1.Config(seed="1"), "seed", "an integer from 0 to 9223372036854775807"),
    # The experiment on noise layers: faults are caught, layers without fault are not.
    (lambda: get("noise-layers").Config(device=3), "device", "a str"),
    # Renyi divergences of our own samplers: the truth about each, and what estimates make of it.
    (lambda: renyi_of_mechanisms.Config(delta="0.1"), "delta", "a finite number above 0"),
]  # fmt: skip
ATTRIBUTE_ERRORS = [
    # Public corpora by name: as many rows as their README says, malformed files, and guesses.
    (lambda: reading.ENTITIES, "", "'ENTITIES' (it"),
    (lambda: reading.OTHER, "", "has no attribute 'OTHER'"),
    # The attack on vectors of words: against plain loops, at chance where there is nothing, edges.
    (lambda: text.leakage, "", "it is"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(AttributeError, ATTRIBUTE_ERRORS)
