"""Checks that compare the noise of coordinates, at several inputs, and in two modes."""

from __future__ import annotations

import numpy as np

from ._ranks import Floats, at_least, two_samples
from ._records import Check, check_from_p_value, check_from_rule
from ._seeing import Seen


def check_scale(seen: Seen, level: float) -> Check:
    """Check that the noise is not larger or smaller at other inputs.

    Differences of two rows are free of the clean vector, whatever it is.
    """
    name = "scale"
    if seen.varying.size == 0:
        return check_from_rule(name, "no noise within a call to look at")
    if not seen.others:
        said = f": {', '.join(seen.refused)}" if seen.refused else ""
        return check_from_rule(name, f"no other input to compare with{said}")
    here = _difference_sizes(seen.first[: len(seen.others[0].outputs)])
    best, label, ratio = 1.0, "", 1.0
    for other in seen.others:
        there = _difference_sizes(other.outputs)
        p, column = two_samples(here, there, seen.rng)
        if p <= best:
            best, label = p, other.label
            base = float(here[:, column].mean())
            ratio = float(there[:, column].mean()) / base if base else np.inf
    labels = ", ".join(other.label for other in seen.others)
    refused = f" (refused: {', '.join(seen.refused)})" if seen.refused else ""
    bad = f"the noise depends on the input: at {label} it is {ratio:.4g} times as large{refused}"
    good = f"the noise is as large at {labels} as at x{refused}"
    p = best * len(seen.others)
    return check_from_p_value(name, p, level, bad, good, at=label, ratio=ratio)


_SMALL_SCALE_SHARE = 0.1
"""Share of the usual size of the noise below which that of a coordinate is small."""


def column_scale(seen: Seen, level: float) -> Check:
    """Return whether the noise of a coordinate is less than a tenth of that of most others."""
    name, columns = "column_scale", seen.varying
    if columns.size < 2:
        return check_from_rule(name, "fewer than two noisy coordinates: nothing to compare")
    outputs = seen.first[:, columns]
    sizes = np.abs(outputs - np.median(outputs, axis=0))
    medians = np.median(sizes, axis=0)
    usual = float(np.median(medians))
    if usual == 0.0:
        return check_from_rule(name, "most of the noise is one value: not checked")
    # Half of the draws lie within the median size: more of them say that it is smaller.
    hits = (sizes <= _SMALL_SCALE_SHARE * usual).sum(axis=0)
    worst = int(hits.argmax())
    p = columns.size * at_least(int(hits[worst]), len(sizes), 0.5)
    ratio, count = float(medians[worst]) / usual, int((medians < _SMALL_SCALE_SHARE * usual).sum())
    bad = (
        f"the noise of coordinate {int(columns[worst])} is {ratio:.2g} times as large as that of "
        f"most coordinates{f', {count} are so small' if count > 1 else ''}: by design only where "
        "the sensitivity is smaller there too"
    )
    good = f"the noise of no coordinate is less than {_SMALL_SCALE_SHARE} times as large as that of most"
    return check_from_p_value(
        name, p, level, bad, good, coordinate=int(columns[worst]), ratio=ratio
    )


def _difference_sizes(outputs: Floats) -> Floats:
    """Return sizes of differences of disjoint row pairs: by coordinate, and their mean."""
    half = len(outputs) // 2
    size = np.abs(outputs[0 : 2 * half : 2] - outputs[1 : 2 * half : 2])
    return np.concatenate([size, size.mean(axis=1, keepdims=True)], axis=1)


def check_modes(seen: Seen, level: float) -> Check:
    """Check that the noise in train mode equals that in eval mode."""
    name, mode = "modes", seen.mode
    if mode is None:
        return check_from_rule(name, "no train and eval mode")
    if mode.outputs is None:
        return check_from_rule(
            name, f"in {mode.here} mode; not run in {mode.there} mode: {mode.why}"
        )
    if mode.outputs.shape[1] != seen.first.shape[1]:
        shapes = f"{seen.first.shape[1]} and {mode.outputs.shape[1]}"
        return check_from_rule(name, f"outputs of {shapes} numbers in the two modes", True)
    noisy = seen.varying.size > 0, bool((mode.outputs != mode.outputs[0]).any())
    if noisy[0] != noisy[1]:
        with_noise, without = (mode.here, mode.there)[:: 1 if noisy[0] else -1]
        return check_from_rule(name, f"noise in {with_noise} mode, none in {without} mode", True)
    if not noisy[0]:
        return check_from_rule(name, "no noise in either mode")
    first = seen.first[: len(mode.outputs)]
    values = two_samples(first, mode.outputs, seen.rng)[0]
    sizes = two_samples(_difference_sizes(first), _difference_sizes(mode.outputs), seen.rng)[0]
    bad = "outputs have another law in train mode than in eval mode"
    good = "outputs have the same law in train and eval mode"
    return check_from_p_value(name, 2 * min(values, sizes), level, bad, good)
