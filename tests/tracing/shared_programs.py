# ruff: noqa: NPY002 (traces follow the legacy functions, too)
"""Functions to trace: faulty ones, correct ones, and ones that cannot be followed.

The line of a fault has the comment `# fault`.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import random
import secrets
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import gauss
from typing import Any

import numpy as np
from scipy import stats

ABOVE = "above the claim on this pair"
WITHIN = "within the claim on this pair"
FINDING = "a finding"
NO_LOSS = "no loss"
HIDDEN = "a step may be hidden"
UNTRACEABLE = "not traceable"


@dataclass(frozen=True)
class Program:
    """A function, its pair, its claim, and the outcome of its trace."""

    function: Any
    x: Any
    x_prime: Any
    outcome: str | tuple[str, ...]
    claim: float = 1.0
    delta: float = 0.0
    loss: float | None = None
    kind: str | None = None
    cover: str | None = None

    @property
    def name(self):
        return self.function.__name__

    @property
    def outcomes(self):
        return (self.outcome,) if isinstance(self.outcome, str) else self.outcome

    @property
    def fault_lines(self):
        """The places of the lines that are marked, as reports write them."""
        lines, start = inspect.getsourcelines(self.function)
        file = Path(__file__).name
        marked = [number for number, line in enumerate(lines) if "# fault" in line]
        return [f"{file}:{start + number}" for number in marked]


# Faulty.


def spend_twice(x, rng):
    first = len(x) + rng.laplace(scale=1.0)  # fault
    second = sum(x) + rng.laplace(scale=1.0)  # fault
    return first, second


def assume_small_records(x):
    return sum(x) + np.random.laplace(scale=1.0)  # fault


def divide_by_count(x, rng):
    total = sum(x) + rng.laplace(scale=1.0)
    return total / len(x)  # fault


def scale_by_data(x, rng):
    spread = max(x) - min(x)
    return sum(x) + rng.laplace(scale=spread)  # fault


def release_count(x, rng):
    count = len(x)  # fault
    return {"n": count, "sum": sum(x) + rng.laplace(scale=1.0)}


def share_noise(x, rng):
    noise = rng.laplace(scale=1.0)  # fault
    return np.array([sum(x), len(x)]) + noise


def reuse_noise_scaled(x, rng):
    noise = rng.laplace(scale=2.0)  # fault
    return sum(x) + noise, len(x) + 2 * noise


def switch_noise_off(x, rng):
    return sum(x) + rng.laplace(scale=0.0)  # fault


def fix_the_seed(x):
    rng = np.random.default_rng(7)
    return sum(x) + rng.laplace(scale=1.0)  # fault


def average_nothing(x, rng):
    with np.errstate(all="ignore"):
        mean = np.float64(sum(x)) / np.float64(len(x))
    return mean + rng.laplace(scale=1.0)  # fault


def draw_per_record(x, rng):
    return sum(value + rng.laplace(scale=1.0) for value in x)  # fault


def release_keys(x, rng):
    counts = Counter(x)
    return {key: counts[key] + rng.laplace(scale=1.0) for key in counts}  # fault


def compare_clear_queries(x, rng):
    threshold = 3 + rng.laplace(scale=1.0)
    for place, query in enumerate(x):
        if query >= threshold:  # fault
            return place
    return None


def release_greatest_value(x, rng):
    noisy = np.array(x) + rng.laplace(scale=1.0, size=len(x))  # fault
    return noisy.max()


def round_to_tens(x, rng):
    return 10 * round(sum(x) / 10) + rng.laplace(scale=1.0)  # fault


def add_one_sided_noise(x, rng):
    return sum(x) + rng.exponential(scale=1.0)  # fault


def replace_in_histogram(x, rng):
    counts = np.bincount(x, minlength=3)
    return counts + rng.laplace(scale=1.0, size=3)  # fault


def add_little_gaussian(x, rng):
    return np.sum(x, axis=0) + rng.normal(scale=0.5, size=2)  # fault


def stop_early(x, rng):
    if sum(x) > 3:
        return 0.0
    return sum(x) + rng.laplace(scale=1.0)  # fault


def write_clear_number(x, rng):
    return f"{10_000_000_000 + sum(x)} and {rng.laplace(scale=1.0):.3f}"  # fault


FAULTY = [
    Program(spend_twice, [1, 1], [1, 1, 1], ABOVE, loss=2.0),
    Program(assume_small_records, [1, 3], [1], ABOVE, loss=3.0),
    Program(divide_by_count, [1, 1, 1], [1, 1], FINDING, kind="data in a noisy value"),
    Program(scale_by_data, [1, 2, 5], [1, 2], FINDING, kind="data in a law"),
    Program(release_count, [1, 1], [1], FINDING, kind="no noise"),
    Program(share_noise, [1, 2], [1], FINDING, kind="shared noise"),
    Program(reuse_noise_scaled, [1, 2], [1], FINDING, kind="shared noise"),
    Program(switch_noise_off, [1, 2], [1], FINDING, kind="no noise"),
    Program(fix_the_seed, [1, 2], [1], FINDING, kind="no noise"),
    Program(average_nothing, [1], [], FINDING, kind="value"),
    Program(draw_per_record, [1, 1, 1], [1, 1], FINDING, kind="control flow"),
    Program(release_keys, [1, 1, 2], [1, 1], FINDING, kind="control flow"),
    Program(compare_clear_queries, [1, 2, 4, 1], [2, 3, 3, 2], NO_LOSS),
    Program(release_greatest_value, [3, 8, 4], [4, 6, 3], ABOVE),
    Program(round_to_tens, [3, 3], [3], ABOVE, loss=10.0),
    Program(add_one_sided_noise, [1], [0], ABOVE, loss=math.inf),
    Program(replace_in_histogram, [0, 1, 1], [0, 1, 2], ABOVE, loss=2.0),
    Program(add_little_gaussian, [[1, 0], [0, 1]], [[1, 0]], ABOVE, delta=1e-6),
    Program(stop_early, [2, 2], [2], (FINDING, NO_LOSS), kind="control flow"),
    Program(write_clear_number, [1, 1], [1], FINDING, kind="no noise"),
]


# Correct.


def add_laplace(x, rng):
    return sum(x) + rng.laplace(scale=1.0)


def add_laplace_vector(x, size, rng):
    return np.atleast_1d(x) + rng.laplace(scale=2.0, size=(size, 2))


def draw_globally(x):
    return sum(x) + np.random.laplace(0, 1.0)


def make_generator(x):
    return sum(x) + np.random.default_rng().laplace(scale=1.0)


def pass_a_seed_on(x, rng):
    return sum(x) + np.random.default_rng(int(rng.integers(2**62))).laplace(scale=1.0)


def use_legacy_state(x):
    return sum(x) + np.random.RandomState().laplace(scale=1.0)


def use_scipy(x, rng):
    return sum(x) + stats.laplace.rvs(scale=1.0, random_state=rng)


def subtract_exponentials(x):
    return sum(x) + random.expovariate(1.0) - random.expovariate(1.0)


def add_logistic(x, rng):
    return sum(x) + rng.logistic(scale=1.0)


def add_geometric(x, rng):
    p = 1 - math.exp(-1.0)
    return sum(x) + int(rng.geometric(p)) - int(rng.geometric(p))


def round_with_whole_noise(x, rng):
    return round(x + rng.geometric(0.5) - rng.geometric(0.5))


def average_with_public_count(x, rng):
    return (np.sum(x) + rng.laplace(scale=1.0)) / 3


def count_bins(x, rng):
    return np.bincount(x, minlength=4) + rng.laplace(scale=1.0, size=4)


def split_the_budget(x, rng):
    return {"n": len(x) + rng.laplace(scale=2.0), "sum": sum(x) + rng.laplace(scale=2.0)}


def limit_the_result(x, rng):
    return max(0.0, min(10.0, sum(x) + rng.laplace(scale=1.0)))


def clip_the_vector(x, rng):
    return np.clip(np.array(x) + rng.laplace(scale=1.0, size=3), 0, None)


def write_a_text(x, rng):
    return f"sum: {sum(x) + rng.laplace(scale=1.0):.6f}"


def write_json(x, rng):
    return json.dumps({"sum": sum(x) + rng.laplace(scale=1.0), "unit": "m"})


def fill_an_array(x, rng):
    result = np.zeros(2)
    result[0] = sum(x) + rng.laplace(scale=2.0)
    result[1] = len(x) + rng.laplace(scale=2.0)
    return result


def multiply_by_matrix(x, rng):
    matrix = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    return matrix @ (np.array(x) + rng.laplace(scale=1.0, size=3))


def release_prefix_sums(x, rng):
    tree = [sum(x[:2]) + rng.laplace(scale=2.0), sum(x[2:]) + rng.laplace(scale=2.0)]
    leaf = [value + rng.laplace(scale=2.0) for value in x]
    return leaf[0], tree[0], tree[0] + leaf[2], tree[0] + tree[1]


def find_noisy_maximum(x, rng):
    return int(np.argmax(np.array(x) + rng.laplace(scale=2.0, size=len(x))))


def find_maximum_by_exponential(x, rng):
    return int(np.argmax(np.array(x) + rng.exponential(scale=2.0, size=len(x))))


def find_maximum_by_gumbel(x, rng):
    return int(np.argmax(np.array(x) + rng.gumbel(scale=2.0, size=len(x))))


def find_maximum_in_mapping(x, rng):
    noisy = {place: value + rng.laplace(scale=2.0) for place, value in enumerate(x)}
    return max(noisy, key=noisy.get)


def find_maximum_by_equality(x, rng):
    noisy = np.array(x) + rng.laplace(scale=2.0, size=len(x))
    return int(np.flatnonzero(noisy == noisy.max())[0])


def find_maximum_in_list(x, rng):
    return int(np.argmax([value + rng.laplace(scale=2.0) for value in x]))


def find_first_above(x, rng):
    threshold = 3 + rng.laplace(scale=2.0)
    for place, query in enumerate(x):
        if query + rng.laplace(scale=4.0) >= threshold:
            return place
    return None


def repeat_until_positive(x, rng):
    while True:
        noisy = sum(x) + rng.laplace(scale=1.0)
        if noisy > 0:
            return float(noisy)


def choose_exponentially(x, rng):
    weights = np.exp(np.array(x) / 4.0)
    return int(rng.choice(len(x), p=weights / weights.sum()))


def add_gaussian(x, rng):
    return np.sum(x, axis=0) + 5.0 * rng.standard_normal(2)


def gauss_by_python(x):
    return sum(x) + random.gauss(0.0, 5.0)


def take_noisy_steps(x, rng):
    point = np.zeros(2)
    for _ in range(5):
        slopes = np.tanh(np.array(x) - point)
        sizes = np.maximum(1.0, np.linalg.norm(slopes, axis=1, keepdims=True))
        point = point + 0.1 * ((slopes / sizes).sum(axis=0) + rng.normal(scale=20.0, size=2))
    return point


def smooth_the_sensitivity(x, rng):
    values = np.sort(x)
    middle = len(values) // 2
    gaps = [
        math.exp(-0.1 * k) * (values[min(middle + k, len(values) - 1)] - values[max(middle - k, 0)])
        for k in range(len(values))
    ]
    return values[middle] + rng.laplace(scale=2 * max(gaps))


def cut_rare_keys(x, rng):
    counts = Counter(x)
    noisy = {key: counts[key] + rng.laplace(scale=1.0) for key in sorted(counts)}
    return {key: value for key, value in noisy.items() if value > 15}


def draw_without_use(x, rng):
    rng.random(len(x))
    return sum(x) + rng.laplace(scale=1.0)


def branch_without_trace(x, rng):
    total = 0
    if len(x) > 2:
        for value in x:
            total += value
    else:
        total = sum(x)
    return total + rng.laplace(scale=1.0)


def return_from_two_lines(x, rng):
    if not x:
        return 0.0 + rng.laplace(scale=1.0)
    return sum(x) + rng.laplace(scale=1.0)


def add_cauchy(x, rng):
    return sum(x) + 10 * rng.standard_cauchy()


def copy_the_generator(x, rng):
    return sum(x) + copy.deepcopy(rng).laplace(scale=1.0)


def check_the_generator(x, rng):
    return sum(x) + (rng.laplace(scale=1.0) if type(rng) is np.random.Generator else 0.0)


CORRECT = [
    Program(add_laplace, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(add_laplace_vector, [0.0, 1.0], [1.0, 0.0], WITHIN, loss=1.0, cover="every"),
    Program(draw_globally, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(make_generator, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(pass_a_seed_on, [1, 1], [1], WITHIN, loss=1.0, cover="seen"),
    Program(use_legacy_state, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(use_scipy, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(subtract_exponentials, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(add_logistic, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(add_geometric, [1, 1], [1], WITHIN, loss=1.0),
    Program(round_with_whole_noise, 0.6, 0, WITHIN, loss=math.log(2), cover="every"),
    Program(average_with_public_count, [1, 1, 1], [1, 1, 0], WITHIN, loss=1.0, cover="every"),
    Program(count_bins, [1, 1, 2], [1, 1], WITHIN, loss=1.0, cover="every"),
    Program(split_the_budget, [1, 1], [1], WITHIN, loss=1.0, cover="every"),
    Program(limit_the_result, [1, 1], [1], WITHIN, loss=1.0, cover="seen"),
    Program(clip_the_vector, [1, 1, 2], [1, 1, 1], WITHIN, cover="seen"),
    Program(write_a_text, [1, 1], [1], WITHIN, loss=1.0, cover="seen"),
    Program(write_json, [1, 1], [1], WITHIN, loss=1.0, cover="seen"),
    Program(fill_an_array, [1, 1], [1], WITHIN, loss=1.0, cover="seen"),
    Program(multiply_by_matrix, [1, 1, 2], [1, 1, 1], WITHIN, loss=1.0, cover="every"),
    Program(release_prefix_sums, [1, 1, 2, 0], [1, 0, 2, 0], WITHIN, cover="every"),
    Program(find_noisy_maximum, [3, 5, 4], [4, 4, 5], WITHIN, loss=1.0, cover="seen"),
    Program(find_maximum_by_exponential, [3, 5, 4], [4, 4, 5], WITHIN, loss=1.0, cover="seen"),
    Program(find_maximum_by_gumbel, [3, 5, 4], [4, 4, 5], WITHIN, loss=1.0, cover="seen"),
    Program(find_maximum_in_mapping, [3, 5, 4], [4, 4, 5], (WITHIN, HIDDEN), cover="seen"),
    Program(find_maximum_by_equality, [3, 5, 4], [4, 4, 5], (WITHIN, HIDDEN), cover="seen"),
    Program(find_maximum_in_list, [3, 5, 4], [4, 4, 5], (WITHIN, HIDDEN), cover="seen"),
    Program(find_first_above, [1, 2, 4, 1], [2, 3, 3, 2], WITHIN, cover="seen"),
    Program(repeat_until_positive, [1, 1], [1], (WITHIN, HIDDEN), cover="seen"),
    Program(choose_exponentially, [3, 5, 4], [4, 4, 5], WITHIN, cover="seen"),
    Program(add_gaussian, [[1, 0], [0, 1]], [[1, 0]], WITHIN, delta=1e-5, cover="every"),
    Program(gauss_by_python, [1, 1], [1], WITHIN, delta=1e-5, cover="every"),
    Program(take_noisy_steps, [[1, 0], [0, 1]], [[1, 0]], WITHIN, delta=1e-5, cover="seen"),
    Program(smooth_the_sensitivity, [1, 2, 3, 4, 9], [1, 2, 3, 4, 5], NO_LOSS, delta=1e-6),
    Program(cut_rare_keys, ["a", "a", "b"], ["a", "a"], NO_LOSS, delta=1e-6),
    Program(draw_without_use, [1, 1], [1], WITHIN, loss=1.0, cover="seen"),
    Program(branch_without_trace, [1, 1, 1], [1, 1], WITHIN, loss=1.0, cover="every"),
    Program(return_from_two_lines, [1], [], WITHIN, loss=1.0, cover="every"),
    Program(add_cauchy, [1, 1], [1], UNTRACEABLE),
    Program(copy_the_generator, [1, 1], [1], UNTRACEABLE),
    Program(check_the_generator, [1, 1], [1], UNTRACEABLE),
]


# Not to be followed.

_OWN_GENERATOR = np.random.default_rng(3)


def use_secrets(x):
    return sum(x) + secrets.randbelow(1000) / 100


def use_bound_name(x):
    return sum(x) + gauss(0.0, 1.0)


def use_earlier_generator(x):
    return sum(x) + _OWN_GENERATOR.laplace(scale=1.0)


def invert_uniform(x):
    share = random.random() - 0.5
    return sum(x) - math.copysign(1.0, share) * math.log(1 - 2 * abs(share))


UNFOLLOWED = [
    Program(use_secrets, [1, 1], [1], UNTRACEABLE),
    Program(use_bound_name, [1, 1], [1], UNTRACEABLE),
    Program(use_earlier_generator, [1, 1], [1], UNTRACEABLE),
    Program(invert_uniform, [1, 1], [1], UNTRACEABLE),
]
