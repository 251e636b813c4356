"""Test that the outputs of a mechanism do not depend on the number of outputs per call.

An audit draws many outputs (rows) in one call. A user of the mechanism may draw only one output per
call. The audit is valid for this user only if the distribution of an output is the same in short
and long calls. Therefore dpcore makes some calls of size 1 and some longer calls before the audit.
It compares the outputs of the calls of size 1 with three samples: the first, the middle and the
last rows of the longer calls.

For each column and each of the three samples, three tests compare the sample with the outputs of
the calls of size 1. The tests use:

- the rank sum of the values (Mann and Whitney, 1947, Annals of Mathematical Statistics 18);
- the rank sum of the distances of the values from the pooled median;
- the share of the most frequent value.

If the distributions are equal, the probability that at least one test of the audit rejects is at
most 1e-9 (Bonferroni). The p-values are computed from the normal distribution. The exact
permutation distribution for two samples of equal size has lighter tails. Exact p-values were
compared with normal p-values below 1e-9, for 20 to 64 outputs per sample, with and without ties. In
all these cases, the exact p-value was smaller.

Every call has its own random stream. The order of the calls is drawn at random, because a mechanism
may change from call to call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from ..attacks.grains import column_tolerances
from ..mechanisms.answers import join_outputs
from ..mechanisms.callables import is_unbatched, make_generator
from ..records import Array, Floats
from ..sampling.columns import entries_differ, split_by_kind
from ..sampling.sources import Place
from ..streams import PROBE
from .pilot import repr_with_sorted_sets
from .randomness import TimedDraws

_MAX_CALLS: Final = 64
_MIN_CALLS: Final = 24
"""Least number of calls of each size per input. Fewer calls hardly give a p-value below 1e-9."""
_TRIALS_PER_CALL: Final = 64
_MAX_ROWS: Final = 256
_MIN_ROWS: Final = 16
_TRIALS_PER_ROW: Final = 256
"""Number of trials of the audit for each row of a longer call."""
MAX_CALL_SECONDS: Final = 0.1
_LEVEL: Final = 1e-9
_TESTS_PER_COLUMN: Final = 9
"""Number of tests for each column: three tests for each of the first, middle and last rows."""
_MAX_COLUMNS: Final = 2**10
"""Largest number of columns that are compared. They are evenly spread over all columns."""
_MIN_SLACK: Final = 1e-5
"""Smallest value of the relative tolerance for equal numbers. In torch and BLAS, the last bits
depend on the number of rows."""
_MAX_TEXT_CHARACTERS: Final = 2**12
_MAX_NUMBERS_PER_TEXT: Final = 64
_NUMBER_PATTERN: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_FORM_PATTERN: Final = re.compile(r" at 0x[0-9A-Fa-f]+|\bnp\.\w+|\barray\b|[\s()\[\],]+")
"""Parts of texts that are ignored: addresses of objects, and characters that may differ between a
single output and a row."""

_FIRST_CALL_NUMBER: Final = 2**22
"""Number of the first block that the calls of the test use."""
_ROW_NAMES: Final = ("first", "middle", "last")


def plan_call_size_test(block: int, trials: int) -> tuple[int, int]:
    """Plan a test that compares calls for one output with calls for many outputs.

    Args:
        block: number of outputs that the audit draws in one call.
        trials: number of trials of the audit. With few trials, the test is smaller.

    Returns:
        Two numbers. The first is the number of calls for one output on each input; the number of
        calls for many outputs is the same. The second is the number of outputs in a call for many
        outputs. The number of calls is 0 if `block` is 1, or if fewer than 24 calls of each kind
        are possible.
    """
    calls = min(_MAX_CALLS, trials // (2 * _TRIALS_PER_CALL))
    rows = min(_MAX_ROWS, block, max(_MIN_ROWS, trials // _TRIALS_PER_ROW))
    return (calls if calls >= _MIN_CALLS and rows > 1 else 0), rows


def compare_call_sizes(draws: TimedDraws, trials: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Test whether the distribution of an output depends on how many outputs a call makes.

    The test compares outputs of calls for one output with outputs of calls for many outputs.

    Args:
        draws: object that draws outputs of the mechanism, and knows how long earlier calls took.
        trials: number of trials of the audit. With few trials, the test makes fewer calls.

    Returns:
        Two tuples of sentences. The first tuple has one sentence if the distributions differ, and
        is empty if they do not. The second tuple has one sentence if the test was left out, because
        of few trials or slow calls. The second tuple also has one sentence if the test compared
        only some columns.
    """
    calls, rows = plan_call_size_test(draws.block, trials)
    if rows <= 1 or is_unbatched(draws.mechanism):
        return (), ()
    if not calls:
        few = f"below {2 * _TRIALS_PER_CALL * _MIN_CALLS:,} trials single outputs are not compared"
        return (), (f"{few} with rows of longer calls",)
    fixed, each = draws.course.fixed_and_output_seconds()
    if fixed + rows * each > MAX_CALL_SECONDS:
        return (), (
            f"a call takes more than {MAX_CALL_SECONDS} s: single outputs were not compared with "
            "rows of longer calls",
        )
    outputs = _draw_four_samples_per_input(draws, calls, rows)
    sides = [_columns_and_tolerances(side) for side in outputs]
    n_tests = _TESTS_PER_COLUMN * sum(side[0].shape[1] for side in sides)
    p_values = {}
    for place, name in enumerate(_ROW_NAMES, 1):
        chosen = np.r_[:calls, place * calls : (place + 1) * calls]
        p_values[name] = n_tests * min(
            _smallest_p_value_over_tests(side[chosen], slack) for side, slack in sides
        )
    columns = sum(table.shape[1] for table in split_by_kind(outputs[0]))
    if columns <= _MAX_COLUMNS:
        return _describe_differing_rows(p_values), ()
    compared = len(range(0, columns, -(-columns // _MAX_COLUMNS)))
    return _describe_differing_rows(p_values), (
        f"single outputs were compared with rows of longer calls in {compared:,} of {columns:,} "
        "columns",
    )


def _draw_four_samples_per_input(draws: TimedDraws, calls: int, rows: int) -> list[Array]:
    """Return four samples for each input, one after the other in one array.

    The samples are the outputs of calls of size 1, and the first, middle and last rows of calls
    with `rows` rows. Each sample has `calls` outputs.
    """
    parts: list[list[list[Array]]] = [[[], [], [], []] for _ in range(2)]
    # 2 in the place of the side names a stream that no call uses.
    orders = make_generator(draws.seed, PROBE, 2, _FIRST_CALL_NUMBER)
    for number in range(calls):
        for kind in orders.permutation(4).tolist():
            side, is_long = divmod(kind, 2)
            size = rows if is_long else 1
            block = _FIRST_CALL_NUMBER + 2 * number + is_long
            outputs = draws.draw(PROBE, side, Place(block, size, 0, size))
            places = zip((1, 2, 3), (0, rows // 2, rows - 1), strict=True)
            for part, row in places if is_long else ((0, 0),):
                parts[side][part].append(outputs[row : row + 1].copy())
    return [join_outputs([output for part in side for output in part]) for side in parts]


def _columns_and_tolerances(outputs: Array) -> tuple[Floats, Floats]:
    """Return outputs as columns of numbers, and each column's relative tolerance for equality.

    A text gives several columns: one for each number in the text, and one for the number of its
    category. The category is the text without its numbers. An object is read as its repr.
    """
    columns = [column for table in split_by_kind(outputs) for column in table.T]
    # The constant column is for outputs without a column.
    numbers: list[Array] = [np.zeros(len(outputs))]
    for column in columns[:: -(-len(columns) // _MAX_COLUMNS) or 1]:
        numbers.extend([column] if column.dtype.kind in "buif" else _categories_and_numbers(column))
    table = np.column_stack(numbers).astype(np.float64)
    bits = [g.bits or 53 for column in numbers for g in column_tolerances(*[column[:, None]] * 2)]
    return table, np.maximum(_MIN_SLACK, 2.0 ** (4.0 - np.array(bits)))


def _categories_and_numbers(text_column: Array) -> Iterator[Array]:
    """Yield columns of numbers for a column of texts: first categories, then numbers in the texts.

    The category of a text is the text without its numbers; equal categories get equal numbers. The
    i-th column of numbers in the texts has the i-th number of each text. It exists if all texts
    have at least i numbers.
    """
    whole = (repr_with_sorted_sets(value)[:_MAX_TEXT_CHARACTERS] for value in text_column.tolist())
    texts = [" ".join(_FORM_PATTERN.sub(" ", text).split()) for text in whole]
    yield np.unique([_NUMBER_PATTERN.sub("#", text) for text in texts], return_inverse=True)[1]
    numbers = [_NUMBER_PATTERN.findall(text)[:_MAX_NUMBERS_PER_TEXT] for text in texts]
    for place in range(min(map(len, numbers))):
        yield np.array([float(written[place]) for written in numbers])


def _smallest_p_value_over_tests(values: Floats, slack: Floats) -> float:
    """Return the smallest p-value of all tests that compare two samples of equal size.

    Args:
        values: the two samples, one after the other, shape `(2n, columns)`.
        slack: relative tolerance for equal numbers, shape `(columns,)`.
    """
    begins, ends, values = _tie_rank_ranges_and_minima(values, slack)
    with np.errstate(invalid="ignore", over="ignore"):
        # The lower median is a number of the samples. Infinity minus itself becomes NaN.
        distances = np.abs(values - np.sort(values, axis=0)[len(values) // 2 - 1])
    begins_far, ends_far, _ = _tie_rank_ranges_and_minima(distances, slack)
    commonest = np.take_along_axis(begins, (ends - begins).argmax(axis=0)[None], axis=0)
    return min(
        map(_min_permutation_p_value, (begins + ends, begins_far + ends_far, begins == commonest))
    )


def _tie_rank_ranges_and_minima(values: Floats, slack: Floats) -> tuple[Array, Array, Floats]:
    """Find, for each number, the numbers that equal it up to the tolerance.

    Returns:
        Three arrays of the shape of `values`. For each number, they describe the set of numbers
        that equal it: the first rank, the last rank plus 1, and the smallest value.
    """
    places = np.arange(len(values))[:, None]
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    differs = np.ones((len(values) + 1, values.shape[1]), np.bool_)
    differs[1:-1] = entries_differ(ordered[:-1], ordered[1:], slack)
    begins = np.maximum.accumulate(np.where(differs[:-1], places, 0), axis=0)
    backwards = np.where(differs[1:], places, len(values))[::-1]
    ends = np.minimum.accumulate(backwards, axis=0)[::-1]
    inverse = np.argsort(order, axis=0)
    begins, ends = (np.take_along_axis(ranks, inverse, axis=0) for ranks in (begins, ends))
    return begins, ends, np.take_along_axis(ordered, begins, axis=0)


def _min_permutation_p_value(scores: Array) -> float:
    """Return the smallest two-sided p-value, over all columns, of a permutation test.

    The test statistic is the sum of the first half of a column.
    """
    from scipy.special import erfc

    rows, centred = len(scores), scores - scores.mean(axis=0)
    sums = np.abs(centred[: rows // 2].sum(axis=0))
    # The variance is rows / (4 (rows - 1)) times the squares. For a constant it is 0.
    squares = np.maximum((centred**2).sum(axis=0), 1e-9)
    return float(erfc(sums / np.sqrt(squares * rows / (2.0 * (rows - 1)))).min())


def _describe_differing_rows(p_values: dict[str, float]) -> tuple[str, ...]:
    """Describe how rows of long calls differ in distribution from single outputs, or return ().

    Args:
        p_values: one p-value for each sample of rows. The keys are "first", "middle" and "last".
    """
    differing = [name for name, p_value in p_values.items() if p_value < _LEVEL]
    if not differing:
        return ()
    end = f"(p-value {min(p_values.values()):.1e}), and no bound holds"
    if len(differing) == len(p_values):
        return (f"the law depends on the size of the call {end}",)
    # A single output is both the first and the last row of its call.
    odd_rows = (
        differing if len(differing) == 1 else [name for name in p_values if name not in differing]
    )
    return (
        f"the {odd_rows[0]} row of every call has another distribution than the other rows {end}",
    )
