"""Search for faults that need no computed privacy loss, such as an output without noise.

Ordinary runs of the function, without a trace, confirm that an output has no noise, or that the
noise cancels in a combination of outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..records import Floats, Ints
from ..streams import Generators
from .analysis import DrawTrace, mark_read_compared_or_returned
from .calls import TracedFunction
from .draws import use_original_random_functions
from .lines import find_value_lines_and_return
from .moves import Conditions, Owner
from .outcome import TraceFinding
from .replay import NoiseUse, PartedRuns, TracedRun, value_text
from .returned import CLEAR_TOLERANCE, NUMBER, RUN_TOLERANCE, Leaves, leaves_agree

_ORDINARY_RUNS: Final = 20
"""Number of runs per input that confirm a value without noise."""
_STRESSED_RUNS: Final = 16
"""Number of runs per input with noise of rare sizes."""

_MAX_DENSE_ROWS: Final = 400
"""Largest number of values for which a singular value decomposition looks for a combination without
noise."""

_MAX_MATCHED_ENTRIES: Final = 10_000
"""Largest number of entries of an output that are compared with the values that were read."""

_MAX_SHOWN_TERMS: Final = 4

Term = tuple[str, int, float]
"""Name of a returned value, index of an entry of this value, and coefficient of the entry."""

EARLY_KINDS: Final = "data in a noisy value", "data in a law", "control flow"
"""Kinds of findings that also occur in correct code if delta is above 0."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """An output (or a combination of outputs) that seems to contain no noise.

    The field `kind` is "no noise" or "shared noise" (noise that cancels). The field `terms` holds
    the terms of the combination. The field `path` is the name of a returned value that seems to
    contain no noise. The field `source` is a text that describes the noise that cancels.
    """

    kind: str
    terms: tuple[Term, ...]
    path: str = ""
    source: str = ""


def list_definite_findings(draw: DrawTrace) -> list[TraceFinding]:
    """List the faults that follow from comparing a run on x with a run on x', without more runs."""
    used = mark_read_compared_or_returned(draw)
    partings = [
        parting
        for parting in draw.partings
        if parting.kind != "uses"
        and (parting.last == 0 or used[parting.first : parting.last].any())
    ]
    flow = [parting for parting in partings if parting.kind == "control flow"]
    findings = [_make_finding(p.kind, p.place.short, p.text) for p in flow or partings]
    if flow or draw.rows is None:
        return findings[:1] if flow else findings
    findings += [
        _describe_uneven(draw, *pair) for pair in draw.rows.uneven[:1] if _is_read_or_return(*pair)
    ]
    findings += [_describe_non_finite_gap(*row) for row in draw.rows.undefined[:1]]
    return findings + _findings_above_declared_distance(draw)


def _make_finding(kind: str, place: str, text: str) -> TraceFinding:
    return TraceFinding(kind, f"{place}: {text}")


def _is_read_or_return(use: NoiseUse, other: NoiseUse) -> bool:
    return use.sense is None


def _describe_uneven(draw: DrawTrace, use: NoiseUse, other: NoiseUse) -> TraceFinding:
    """Describe the place at which data changed the coefficient of the noise in a value."""
    assert draw.replayed is not None
    first, second = draw.recorded.run.products, draw.replayed.run.products
    for place, products in first.items():
        for (how, factor), (_, twin) in zip(products, second.get(place, []), strict=False):
            if not leaves_agree(factor, twin, CLEAR_TOLERANCE):
                values = f"by {value_text(factor)} on x, by {value_text(twin)} on x'"
                text = f"a noisy value is {how} {values}"
                return _make_finding(
                    "data in a noisy value", f"{place.short} in {place.function}", text
                )
    place = use.meeting
    return _make_finding(
        "data in a noisy value",
        f"{place.short} in {place.function}",
        "the noise of a value has another coefficient on x than on x'",
    )


def _describe_non_finite_gap(use: NoiseUse, other: NoiseUse, entry: int) -> TraceFinding:
    values = [value_text(np.ravel(u.form[0])[entry]) for u in (use, other)]
    text = f"the noise is added to {values[0]} on x and {values[1]} on x'"
    return _make_finding("value", use.find_addition(entry).short, text)


def _findings_above_declared_distance(draw: DrawTrace) -> list[TraceFinding]:
    steps = draw.replayed.run.steps if draw.replayed else []
    return [
        _make_finding(
            "primitive",
            step.place.short,
            f"inputs of {step.name} are {step.distance:.3g} apart, declared {step.declared:.3g}",
        )
        for step in steps
        if step.declared is not None and step.distance > step.declared * (1 + RUN_TOLERANCE)
    ]


def find_noiseless_output(draw: DrawTrace) -> Suspicion | None:
    """Return an output, or a combination of outputs, that seems to contain no noise.

    None if every output has noise.
    """
    if draw.differing is not None:
        return Suspicion("no noise", (), draw.differing)
    if draw.rows is None or draw.move is None or not draw.move.failures:
        return None
    # The output does not include comparisons: a combination with one could not be confirmed.
    owners = [(row, draw.rows.noisy_number_of_condition(row)) for row in draw.move.failures]
    failures = [row for row, owner in owners if _is_read_or_return(owner.use, owner.other)]
    combination = find_noiseless_combination(draw.rows, failures)
    if not combination:
        return None
    matches = _index_output_numbers(draw)
    terms = []
    for row, weight in combination:
        owner = draw.rows.noisy_number_of_condition(row)
        term = _output_entry(owner, matches)
        if term is None:
            return None
        terms.append((*term, weight))
    terms.sort(key=lambda term: (term[0], term[1]))
    sign = 1.0 if terms[0][2] > 0 else -1.0
    signed = tuple((path, entry, sign * weight) for path, entry, weight in terms)
    if len(terms) == 1:
        return Suspicion("no noise", signed)
    return Suspicion(
        "shared noise", signed, source=_name_shared_noise_source(draw, [r for r, _ in combination])
    )


def _name_shared_noise_source(draw: DrawTrace, rows: list[int]) -> str:
    """Name the line whose noise occurs in several values."""
    assert draw.rows is not None
    column = draw.rows.columns[np.isin(draw.rows.rows, rows)][0]
    noise = max(
        (d for d in draw.recorded.run.draws if d.start <= column), key=lambda draw: draw.start
    )
    return f"the noise of {noise.place} is in both"


def _index_output_numbers(draw: DrawTrace) -> Mapping[float, tuple[str, int]]:
    """Return a mapping from each number in the output to its path and the index of its entry."""
    matches: dict[float, tuple[str, int]] = {}
    for path, leaf in draw.recorded.leaves.items():
        if isinstance(leaf, str | bytes | tuple):
            continue
        array = np.asarray(leaf)
        if array.dtype.kind == "f" and array.size <= _MAX_MATCHED_ENTRIES:
            for entry, value in enumerate(array.ravel().tolist()):
                matches.setdefault(value, (path, entry))
    return matches


def _output_entry(owner: Owner, matches: Mapping[float, tuple[str, int]]) -> tuple[str, int] | None:
    if owner.use.path:
        return owner.use.path, owner.entry
    result = np.asarray(owner.use.result)
    if owner.use.sense is not None or result.size <= owner.entry:
        return None
    return matches.get(float(result.ravel()[owner.entry]))


def find_noiseless_combination(rows: Conditions, failures: list[int]) -> list[tuple[int, float]]:
    """Find a linear combination of noisy values in which the noise cancels but the data remain.

    The combination has different values on x and x'.

    Args:
        rows: linear conditions on a change of the noise, one condition for each noisy value.
        failures: indices of the conditions whose noisy values may be combined.

    Returns:
        A list of pairs: the index of a condition, and the coefficient of its value. The list is
        empty if no combination qualifies.
    """
    equal = [row for row in failures if rows.senses[row] == 0]
    terms = _map_row_terms(rows, equal)
    forms: dict[Any, tuple[int, float]] = {}
    for row in equal:
        columns, weights = terms[row]
        if not columns.size:
            if rows.gaps[row]:
                return [(row, 1.0)]
            continue
        key = columns.tobytes(), np.round(weights / weights[0], 9).tobytes()
        first, scale = forms.setdefault(key, (row, float(weights[0])))
        ratio = float(weights[0]) / scale
        gap = rows.gaps[row] - ratio * rows.gaps[first]
        if abs(gap) > RUN_TOLERANCE * (abs(rows.gaps[row]) + abs(ratio * rows.gaps[first])):
            return [(first, -ratio), (row, 1.0)] if ratio != 1.0 else [(first, 1.0), (row, -1.0)]
    return _noiseless_svd_weights(rows, equal, terms)


def _map_row_terms(rows: Conditions, some: list[int]) -> dict[int, tuple[Ints, Floats]]:
    is_needed = np.isin(rows.rows, some)
    order = np.lexsort((rows.columns[is_needed], rows.rows[is_needed]))
    numbers, columns = rows.rows[is_needed][order], rows.columns[is_needed][order]
    weights = rows.weights[is_needed][order]
    ends = np.searchsorted(numbers, some), np.searchsorted(numbers, some, "right")
    spans = zip(some, *ends, strict=True)
    return {row: (columns[low:high], weights[low:high]) for row, low, high in spans}


def _noiseless_svd_weights(
    rows: Conditions, equal: list[int], terms: Mapping[int, tuple[Ints, Floats]]
) -> list[tuple[int, float]]:
    if not 1 < len(equal) <= _MAX_DENSE_ROWS:
        return []
    columns = np.unique(np.concatenate([terms[row][0] for row in equal]))
    matrix = np.zeros((len(equal), columns.size))
    for place, row in enumerate(equal):
        own, weights = terms[row]
        matrix[place, np.searchsorted(columns, own)] = weights
    left, sizes, _ = np.linalg.svd(matrix, full_matrices=True)
    rank = int(np.sum(sizes > RUN_TOLERANCE * sizes[0]))
    free, gaps = left[:, rank:], rows.gaps[equal]
    weights = free @ (free.T @ gaps)
    if np.abs(weights).max(initial=0.0) <= RUN_TOLERANCE * np.abs(gaps).max(initial=0.0):
        return []
    weights /= np.abs(weights).max()
    live = np.abs(weights) > RUN_TOLERANCE
    return [(row, float(w)) for row, w in zip(np.array(equal)[live], weights[live], strict=True)]


def confirm_suspicion(
    function: TracedFunction, suspicion: Suspicion, recorded: TracedRun
) -> tuple[TraceFinding | None, str, tuple[Term, ...]]:
    """Check by ordinary runs that an output is one constant on x and another constant on x'.

    The output may be a combination of outputs. The output must also be constant in runs with noise
    of unusual sizes. These runs are needed because a comparison in the code may hide noise in
    ordinary runs.

    Returns:
        Three values. The first entry is the confirmed fault, or None. The second entry is the
        reason why the fault was not confirmed, or "". The third entry holds the terms of the
        combination.
    """
    try:
        sides = _outputs_with_usual_and_rare_noise(function, recorded.calls)
    except (PartedRuns, Exception) as error:
        return None, f"an ordinary run raises {type(error).__name__}", ()
    if function.inner_calls and not recorded.calls:
        return None, "an ordinary generator is drawn from, a traced one is not", ()
    confirm = _confirm_constant_combination if suspicion.terms else _confirm_constant_output
    finding, reason, terms = confirm(suspicion, sides)
    if finding is None:
        return None, reason, ()
    # This is slow, because it searches all objects.
    generators = Generators.collect_from_memory()
    path, entry, _ = terms[0] if len(terms) == 1 else (suspicion.path, 0, 1.0)
    values = [_get_entry(leaves[0].get(path), entry) for leaves in sides]
    source = suspicion.source or _name_computing_line(function, values)
    function.run_without_trace(0, 0)
    if generators.global_and_other_changed()[1]:
        return None, "a generator that was made beforehand is drawn from", ()
    return TraceFinding(finding.kind, f"{finding.text}; {source}"), "", terms


def _outputs_with_usual_and_rare_noise(function: TracedFunction, limit: int) -> list[list[Leaves]]:
    """Return, for x and x', the outputs of ordinary runs and of runs with rare sizes of noise."""
    sides = []
    for side in (0, 1):
        with use_original_random_functions():
            ordinary = [function.run_without_trace(side, run) for run in range(_ORDINARY_RUNS)]
        rare = [function.run_rare_noise(side, run, limit) for run in range(_STRESSED_RUNS)]
        sides.append([*ordinary, *rare])
    return sides


def _name_computing_line(function: TracedFunction, values: list[Any]) -> str:
    """Name the line that computes a value on x and on x', or else the line that returns it."""
    computed, returned = zip(
        *(find_value_lines_and_return(function, side, values[side]) for side in (0, 1)), strict=True
    )
    common = [place for place in computed[0] if place in computed[1]]
    return f"computed at {common[0]}" if common else f"returned at {returned[0]}"


def _get_entry(leaf: Any, entry: int) -> Any:
    if leaf is None or isinstance(leaf, str | bytes | tuple | list):
        return leaf
    return np.asarray(leaf).ravel()[entry].item() if np.size(leaf) > entry else leaf


def _confirm_constant_combination(
    suspicion: Suspicion, sides: list[list[Leaves]]
) -> tuple[TraceFinding | None, str, tuple[Term, ...]]:
    values, sizes = [], []
    for runs in sides:
        for leaves in runs:
            try:
                parts = [w * float(np.ravel(leaves[p])[e]) for p, e, w in suspicion.terms]
            except (LookupError, TypeError, ValueError):
                return None, "the output changes its form between ordinary runs", ()
            values.append(sum(parts))
            sizes.append(sum(map(abs, parts)))
    count = len(sides[0])
    first, second = (np.array(values[start : start + count]) for start in (0, count))
    # Sums with large noise are less exact.
    slacks = RUN_TOLERANCE * np.array(sizes) if len(suspicion.terms) > 1 else np.zeros(2 * count)
    moved = np.concatenate([np.abs(side - side[0]) for side in (first, second)])
    if not np.all(moved <= slacks):
        return None, "what seems to have no noise varies in ordinary runs", ()
    if abs(first[0] - second[0]) <= slacks[0]:
        return None, "what seems to have no noise is equal in ordinary runs", ()
    shapes = sides[0][0]
    name = format_terms(suspicion.terms, shapes)
    shown = [value_text(round(float(side[0]), 9)) for side in (first, second)]
    text = f"{name} is {shown[0]} on x and {shown[1]} on x'"
    return TraceFinding(suspicion.kind, text), "", suspicion.terms


def _confirm_constant_output(
    suspicion: Suspicion, sides: list[list[Leaves]]
) -> tuple[TraceFinding | None, str, tuple[Term, ...]]:
    path = suspicion.path
    present = [[path in leaves for leaves in runs] for runs in sides]
    if not all(len(set(side)) == 1 for side in present):
        return None, f"{path} is there in some ordinary runs only", ()
    if present[0][0] != present[1][0]:
        text = f"{path} exists on {'x' if present[0][0] else chr(120) + chr(39)} only"
        return TraceFinding("no noise", text), "", ()
    if not present[0][0]:
        return None, f"{path} is missing in ordinary runs", ()
    values = [[leaves[path] for leaves in runs] for runs in sides]
    arrays = [array for array in map(_stack_numbers, values) if array is not None]
    if len(arrays) == len(values) and arrays[0].shape == arrays[1].shape:
        constant = np.all(arrays[0] == arrays[0][0], 0) & np.all(arrays[1] == arrays[1][0], 0)
        apart = np.flatnonzero(constant & (arrays[0][0] != arrays[1][0]))
        if not apart.size:
            return None, f"{path} varies in ordinary runs", ()
        place = int(apart[0])
        is_text = isinstance(values[0][0], str)
        terms: tuple[Term, ...] = () if is_text else ((path, place, 1.0),)
        name = f"number {place + 1} in {path}" if is_text else format_terms(terms, sides[0][0])
        shown = [
            f"{side[0][place]:.15g}" if is_text else value_text(np.ravel(v[0])[place])
            for side, v in zip(arrays, values, strict=True)
        ]
        text = f"{name} is {shown[0]} on x and {shown[1]} on x'"
        return TraceFinding("no noise", text), "", terms
    if not all(all(leaves_agree(side[0], v, 0.0) for v in side) for side in values):
        return None, f"{path} varies in ordinary runs", ()
    if leaves_agree(values[0][0], values[1][0], 0.0):
        return None, f"{path} is equal in ordinary runs", ()
    shown = [value_text(side[0]) for side in values]
    return TraceFinding("no noise", f"{path} is {shown[0]} on x and {shown[1]} on x'"), "", ()


def _stack_numbers(values: list[Any]) -> np.ndarray[Any, Any] | None:
    if any(isinstance(value, bytes | tuple | list) for value in values):
        return None
    if isinstance(values[0], str):
        values = [list(map(float, NUMBER.findall(value))) for value in values]
        if len({len(numbers) for numbers in values}) != 1:
            return None
    arrays = [np.asarray(value) for value in values]
    if len({array.shape for array in arrays}) != 1 or arrays[0].dtype.kind not in "biuf":
        return None
    return np.stack([array.ravel() for array in arrays])


def format_terms(terms: tuple[Term, ...], leaves: Leaves) -> str:
    """Return a linear combination of outputs as text, such as output[0] - output[1]."""
    text = ""
    for path, entry, weight in terms[:_MAX_SHOWN_TERMS]:
        shape = np.shape(leaves[path])
        place = ", ".join(map(str, np.unravel_index(entry, shape))) if shape else ""
        name = f"{path}[{place}]" if place else path
        size = "" if abs(abs(weight) - 1.0) < RUN_TOLERANCE else f"{abs(weight):.6g} "
        sign = " - " if weight < 0 else " + "
        text += (sign if text else sign.strip(" +")) + size + name
    return text + (" ..." if len(terms) > _MAX_SHOWN_TERMS else "")
