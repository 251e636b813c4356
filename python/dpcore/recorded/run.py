"""Audit of recorded outputs: outputs of independent runs, or canary scores of one run.

A canary is a training example that was included in the run, or left out, by a coin flip. The audit
guesses from the order of the scores which canaries were included. The numbers of guesses are fixed
before the scores are seen.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping, Sequence, Sized
from typing import Any, Final, Literal, TypedDict

import numpy as np

from .. import errors
from ..advice import suggest_word
from ..attacks import Attack, AttackName, Auto, named
from ..attacks.threshold import Coordinate
from ..auditing.pilot import name_columns
from ..auditing.provenance import provenance_of
from ..bounds import RecordedBound
from ..bounds.binomial import find_declaration
from ..claims.trade_off import GDP, Claim, unrefutable_eps_delta
from ..events import Above
from ..files.columns import Column, Request, selects_all_columns
from ..files.formats import Reader, is_path
from ..files.opened import STDIN
from ..mechanisms.answers import answer_rows, to_object_array
from ..pairs.differences import inputs_equal, pair_lists_to_float_arrays
from ..progress import Progress
from ..records import Array, Counts, Pair
from ..results.guesses import OUTPUTS_BOUNDS, ROWS, Guesses, Rows
from ..results.outputs_audits import UNKNOWN, OutputsAudit
from ..sampling.columns import refuse_clocks, refuse_row_numbers
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from .independent_rows import (
    choose_and_count,
    cross_side_dependence_doubts,
    doubts_of_order,
    make_keyed_generator,
    repeat_doubts_and_notes,
)
from .matching import add_number_format_columns, align_fields_and_units
from .sides import (
    Sides,
    get_display_name,
    group_labels_to_integers,
    is_str_or_int,
    read_and_align,
    refuse_labels,
    refuse_unlike_missing_marks,
    split_outputs_by_label,
)

_MATRIX_CELLS: Final = ("tp", "fn", "fp", "tn")
_MATRIX_REMARK: Final = (
    "an output is a guess, 1 for a row of x and 0 for one of x'; the bound holds only if the "
    "threshold of the guesses was fixed before these outputs were seen"
)

_NUMBER_PATTERN: Final = re.compile("0|[1-9][0-9]{0,17}")
_TIE_STREAM: Final = 18
"""Key of the random stream that orders equal scores."""

_COIN_P_VALUE: Final = 1e-6
"""p-value below which the number of included canaries contradicts fair coins."""

_REPORT_DELTA: Final = 1e-5
"""Delta at which reports of one run state an epsilon, in addition to a claim that is a curve."""


def guess_included_canaries(
    sides: Sides, requested: int | float | tuple[int, int] | None, seed: int
) -> tuple[Guesses, str]:
    """Guess from scores which canaries were included in a training run, and count correct guesses.

    A canary is a training example. For each canary, a fair coin decided if it was included.

    The canaries with the highest scores are guessed to be included. The canaries with the lowest
    scores are guessed to be left out. Equal scores are put in a random order that does not depend
    on which canaries were included. The guesses are therefore post-processing of the scores, as
    theorem 5.2 of Steinke, Nasr and Jagielski (2023) requires.

    Args:
        sides: scores of the included canaries, and scores of the canaries that were left out. Each
            array has shape `(size,)`.
        requested: number of guesses (an int), or number of guesses divided by the number of
            canaries (a float). A tuple states how many canaries are guessed to be included, and how
            many to be left out. None means a guess for every canary.
        seed: seed for the random order of equal scores.

    Returns:
        A pair. The first element contains the number of guesses and the number of correct guesses.
        The second element is a text that describes how the guesses were made.

    Raises:
        TypeError: if the scores are not numbers, or if `requested` has the wrong type.
        ValueError: if a score is NaN, if a canary has more than one score, or if `requested` is out
            of range.
    """
    scores = np.concatenate([*map(_read_scores, ("outputs", "outputs_prime"), sides)])
    included = np.arange(scores.size) < len(sides[0])
    guessed_in, guessed_out = _split_guesses(requested, scores.size)
    order = make_keyed_generator(seed, _TIE_STREAM).permutation(scores.size)
    ranked = included[order[np.argsort(scores[order], kind="stable")]]
    correct_in = int(np.count_nonzero(ranked[scores.size - guessed_in :]))
    correct_out = guessed_out - int(np.count_nonzero(ranked[:guessed_out]))
    guesses = Guesses(guessed_in, correct_in, guessed_out, correct_out, scores.size)
    how = f"the {guessed_in:,} highest scores guessed in, the {guessed_out:,} lowest out"
    return guesses, how


def _read_scores(name: str, side: Array) -> Array:
    """Read one real number per canary; raise an error for NaN, because NaN has no rank."""
    flat = side[:, 0] if side.ndim == 2 and side.shape[1] == 1 else side
    if flat.dtype.kind not in "buif":
        raise errors.mistyped(name, "one real number for each canary", flat.dtype)
    if flat.ndim != 1:
        raise errors.invalid(name, "one score for each canary, shape (size,)", flat.shape)
    scores = flat.astype(np.float64)
    if np.isnan(scores).any():
        row = int(np.isnan(scores).argmax())
        requirement = "scores that can be ranked (-inf or inf for the least or most likely)"
        raise errors.invalid(name, requirement, f"NaN in row {row + 1}")
    return scores


def _split_guesses(requested: Any, canaries: int) -> tuple[int, int]:
    """Return the number of canaries guessed to be included, and the number guessed to be left out.

    `requested` is an integer, a share of all canaries, a tuple of the two numbers, or None for all.
    """
    if isinstance(requested, tuple):
        if len(requested) != 2:
            raise errors.invalid("guesses", "a number, a share, or a tuple (in, out)", requested)
        with errors.tag_errors("guesses"):
            guessed_in = errors.integer("guesses in", requested[0], 0, canaries)
            least = 0 if guessed_in else 1
            return guessed_in, errors.integer(
                "guesses out", requested[1], least, canaries - guessed_in
            )
    if requested is None:
        total = canaries
    elif isinstance(requested, (float, np.floating)):
        share = errors.real("guesses", requested, low=0.0, high=1.0, open_low=True)
        total = max(1, round(share * canaries))
    else:
        total = errors.integer("guesses", requested, 1, canaries)
    return (total + 1) // 2, total // 2


def unfair_coin_doubts(sides: tuple[Sized, Sized]) -> tuple[str, ...]:
    """Check if the number of included canaries contradicts the assumption of fair coins.

    A canary is a training example. For each canary, a fair coin should decide if the canary is
    included in the training.

    If k of m canaries were included, the p-value is ``2 exp(-2 (k - m/2)^2 / m)`` (Hoeffding,
    1963).

    Args:
        sides: scores of the included canaries, and scores of the canaries that were left out.

    Returns:
        A tuple with one sentence for the report if the p-value is below 1e-6, otherwise an empty
        tuple.
    """
    included, canaries = len(sides[0]), len(sides[0]) + len(sides[1])
    if 2.0 * math.exp(-2.0 * (included - canaries / 2.0) ** 2 / canaries) >= _COIN_P_VALUE:
        return ()
    return (f"{included:,} of {canaries:,} canaries were included, which fair coins do not give",)


class OutputsOptions(TypedDict, total=False):
    """Types of the keyword arguments of `dpcore.audit_outputs`, for type checkers.

    Functions that pass these arguments on to `audit_outputs` use this class in annotations. In this
    class, the claim is called `epsilon`.
    """

    rows: Rows
    epsilon: float | Claim | None
    delta: float
    confidence: float | None
    attack: Attack | AttackName | None
    bound: RecordedBound | None
    pair: Pair | tuple[Any, Any] | None
    count_share: float | None
    guesses: int | float | tuple[int, int] | None
    column: Column | Sequence[Column] | None
    exclude: Column | Sequence[Column] | None
    dtype: str | Mapping[Column, str] | None
    label: Any
    label_x: Any
    groups: Any
    groups_prime: Any
    paired: bool
    arranged: bool
    rng: Rng
    source: bool
    header: Literal["auto", "yes", "no"]
    sep: str | None
    encoding: str | None
    format: str | None
    progress: bool | None


@explain_argument_errors
def audit_outputs(
    outputs: Any,
    outputs_prime: Any = None,
    *,
    rows: Rows | None = None,
    claim: float | Claim | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    attack: Attack | AttackName | None = None,
    bound: RecordedBound | None = None,
    pair: Pair | tuple[Any, Any] | None = None,
    count_share: float | None = None,
    guesses: int | float | tuple[int, int] | None = None,
    column: Column | Sequence[Column] | None = None,
    exclude: Column | Sequence[Column] | None = None,
    dtype: str | Mapping[Column, str] | None = None,
    label: Any = None,
    label_x: Any = None,
    groups: Any = None,
    groups_prime: Any = None,
    paired: bool = False,
    arranged: bool = False,
    rng: Rng = None,
    source: bool = True,
    header: Literal["auto", "yes", "no"] = "auto",
    sep: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    progress: bool | None = None,
) -> OutputsAudit:
    """Certify a lower bound on epsilon from recorded outputs of a mechanism.

    The argument `outputs` contains outputs on an input x. The argument `outputs_prime` contains
    outputs on a neighbouring input x'. Each row is one output. The argument `rows` must state how
    the rows were made.

    With `rows="independent"`, each row is the output of a separate run of the mechanism. Record
    only one row per training run, document or person. If there are several rows, pass `groups=` to
    state which rows belong together. dpcore cannot detect these three violations of independence:

    - a shift of all rows on x, or of all rows on x', by the same random amount;
    - several rows per run or document, if the file is in random order;
    - copies of rows with small changes.

    The rows are shuffled and divided. The attack is fitted on a quarter of the rows. From another
    quarter, the attack chooses an event, that is, a set of outputs such as "output > 2". The
    outputs in the event are counted among the remaining half of the rows. The event has a
    probability on x and a probability on x'. The bound on epsilon is a bound on the logarithm of
    the ratio of these two probabilities. The attack also chooses which of the two probabilities is
    the numerator.

    With `rows="one_run"`, all rows are scores of canaries from one training run. A canary is a
    training example. For each canary, a separate fair coin decided if the canary was included in
    the run or left out. Then `outputs` contains the scores of the included canaries, and
    `outputs_prime` contains the scores of the canaries that were left out. A higher score means
    that the canary was more likely included. The audit guesses that the canaries with the highest
    scores were included. The audit guesses that equally many canaries with the lowest scores were
    left out. The audit does not guess for the other canaries. You must fix the number of guesses
    before you see the scores. Equal scores are put in a random order.

    Rows on x must also be independent of rows on x', unless `paired=True`. With `paired=True`, row
    i of `outputs` and row i of `outputs_prime` may come from the same seed. The two rows are then
    both used to choose the event, or both counted. The bound uses Clopper-Pearson limits. These
    limits are valid for any dependence between rows on x and rows on x'.

    Args:
        outputs: outputs on x, shape `(size, ...)`, in one of these forms:

            - an array or a torch tensor;
            - a list of outputs of any type, such as numbers, strings, tuples, or lists of different
              lengths;
            - a table or a column of pandas, polars or pyarrow;
            - the path of a file (see `format`); "-" is standard input.

            In all forms, None means a missing output. There are three special cases:

            - With `rows="one_run"`, `outputs` contains the scores of the included canaries, shape
              `(size,)`.
            - With `label`, `outputs` contains all outputs, on x and on x'.
            - If you have guessed for each output if it came from x or from x', pass a mapping with
              the confusion matrix of your guesses: the counts `tp` and `fn` (rows on x), and `fp`
              and `tn` (rows on x'). The audit uses all guesses. Therefore the threshold of the
              guesses must have been fixed before the scores were seen.
        outputs_prime: outputs on x', shape `(size', ...)`, in one of the first four forms of
            `outputs`. `size'` may differ from `size`.
        rows: "independent" or "one_run", as explained above. This argument is required.
        claim: claimed epsilon, or a curve of `dpcore.claims` such as `GDP(1.0)`. None means that no
            claim is tested.
        delta: delta of the claim, in [0, 1). If the claim is a curve, `delta` must be 0, because
            the curve states a delta for every epsilon.
        confidence: probability that the bound holds, strictly between 0 and 1.
        attack: for independent rows, the method that chooses the event. The method is an object of
            `dpcore.attacks`, the name of such an object, or any function
            `(outputs, outputs_prime, pair) -> event`. Defaults to "auto".
        bound: name of the statistical method for the bound. For independent rows, the default is
            "clopper_pearson". "exact" is also possible if the claim is a number. For one run, the
            default is "one_run" if the claim is a number, and "one_run_curve" if the claim is a
            curve. "one_run_fdp" is possible if the claim is a `GDP` curve. For the Gaussian
            mechanism, it is also possible if the claim is a number.
        pair: for independent rows, the two inputs (x, x'), if the attack should use these inputs.
        count_share: for independent rows, the fraction of the rows that are counted. The event is
            chosen from the other rows. Defaults to 0.5.
        guesses: for one run, the number of canaries with a guess (an int), or the fraction of
            canaries with a guess (a float up to 1.0). Half of the guesses are "included", and half
            are "left out". A tuple states the two numbers of guesses, in this order. None means a
            guess for every canary.
        column: column or columns of a file or data frame that contain the outputs, by name or by
            number from 0. Required if there are several columns with names. (Otherwise, a column
            that contains the input, the time or the row number would look like a leak.) "*" takes
            all columns, a pattern such as "o*" takes the columns with matching names, and "3-50"
            takes the columns 3 to 50. If the name of a column is exactly such a text, only this
            column is taken. If `outputs` and `outputs_prime` both have column names, columns with
            the same name are compared. Numbers then refer to the columns of `outputs`.
        exclude: column or columns that are not read as outputs, in the same form as `column`. If
            `column` is not given, all other columns are outputs.
        dtype: type of the cells of text files: "number", "whole", "decimal" or "text" for all
            columns, or a mapping from columns to these types. By default, a column has the type
            "number" if float64 can represent all digits of its cells, on x and on x'. Otherwise
            dpcore chooses another type that keeps all digits. The report states the type.
        label: labels for the case that `outputs_prime` is None. A label states if a row of
            `outputs` is an output on x or on x'. The argument is an array with one label per row,
            or the name or number of a column of the file or data frame. The labels 1, True, "in"
            and "x" mean outputs on x. The labels 0, False, "out" and "x_prime" mean outputs on x'.
        label_x: the label that means an output on x. Needed only if `label` contains two values
            other than the values above.
        groups: for independent rows, the group of each row of `outputs`. Use groups if several rows
            come from the same run, document or person. The argument is a list with one hashable
            value per row, or the name or number of a column of both `outputs` and `outputs_prime`.
            Either all rows of a group are used to choose the event, or one random row of the group
            is counted. With `label`, `groups` contains the groups of all rows.
        groups_prime: the group of each row of `outputs_prime`, as a list. None if `groups` is a
            column. A group must not occur in both lists, `groups` and `groups_prime`.
        paired: for independent rows, True if row i of `outputs` and row i of `outputs_prime` came
            from the same seed.
        arranged: for independent rows, True if the rows were sorted after all runs, by a property
            that is not part of the outputs. dpcore then does not test if a row depends on the row
            before it.
        rng: source of the random order in which the rows are divided: None (a new random seed,
            which the result records), an int seed in [0, 2**63) (`--seed` on the command line), or
            a numpy Generator.
        source: True to store additional data in the result. These data are the source text and hash
            of a custom attack, up to five outputs in the event, and the columns, number of rows and
            SHA-256 of files. If False, these data are stored neither in the result nor in its HTML
            page and JSON.
        header: for CSV files and files of lines: "yes" if the first row contains names of columns,
            "no" if it contains outputs. With "auto", dpcore decides. In CSV, the first row counts
            as names unless one of its cells is a number or occurs again in the same column. In a
            file of lines, the first line counts as a name if all other lines are numbers.
        sep: separator between the cells of a CSV file: one character or "tab". By default, dpcore
            detects the separator.
        encoding: character encoding of a text file. By default, the byte order mark at the
            beginning of the file determines the encoding. A file without a byte order mark is read
            as UTF-8.
        format: name of a format, such as "csv", "lines" (one output per line) or "npz".
            `dpcore.files.formats.FORMATS` lists all names. By default, the ending of the file's
            name determines the format. A file may be compressed with gzip.
        progress: True to show a progress bar. By default, dpcore shows a progress bar for long work
            on a terminal or in a notebook.

    Returns:
        The `OutputsAudit`, with the certified bound and the verdict on the claim.

    Raises:
        TypeError: if an argument has the wrong type, or if `rows` is not given.
        ValueError: for one of these reasons:

            - a value is out of range, or an argument is not allowed for this value of `rows`;
            - the outputs on x and on x' have different shapes, or there are too few rows;
            - `outputs` or `outputs_prime` seems to contain labels instead of outputs;
            - the score of a canary is NaN.
        MemoryError: if memory cannot hold the outputs of a file. This error is raised before the
            file is read.
        OSError: if a file cannot be read.
        ImportError: if a parquet file needs a package that is not installed.

    Warns:
        AssumptionWarning: for one of these reasons:

            - rows are repeated more often than chance allows;
            - row i on x and row i on x' are correlated, and `paired` is False;
            - successive rows are correlated, and `arranged` is False;
            - the number of included canaries contradicts fair coins.

            In these cases, the result contains no valid bound. The reason is in the attribute
            `doubts` of the result, and the verdict of the result is "invalid: ...".

    Source:
        Jagielski, Ullman and Oprea (2020) for independent rows. Steinke, Nasr and Jagielski (2023),
        theorem 5.2, and Mahloujifar, Melis and Chaudhuri (2025) for one run.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> noise = rng.laplace(size=(2, 10_000))
        >>> report = audit_outputs(noise[0], 2.0 + noise[1], rows="independent", claim=1.0, rng=1)
        >>> report.verdict, 1.7 < report.epsilon_lower < 2.0
        ('refuted', True)
        >>> scores = rng.normal(size=(2, 500))
        >>> one = audit_outputs(2.0 + scores[0], scores[1], rows="one_run", guesses=100, rng=1)
        >>> one.guesses, one.canaries, one.epsilon_lower > 2.0
        (100, 1000, True)
    """
    made = provenance_of(attack, source, "attack")
    kind = _check_rows_option(rows)
    delta, confidence = errors.delta_level(delta), errors.confidence_level(confidence)
    curve = claim if isinstance(claim, Claim) else None
    if curve is None:
        claim = None if claim is None else errors.check_epsilon(claim)
    elif delta:
        raise errors.invalid("delta", f"left out where claim is a curve ({curve})", delta)
    _refuse_arguments_of_mode(
        kind, attack=attack, pair=pair, count_share=count_share, guesses=guesses, groups=groups,
        groups_prime=groups_prime, paired=errors.flag("paired", paired),
        arranged=errors.flag("arranged", arranged),
    )  # fmt: skip
    limit = _choose_bound(kind, bound, delta, curve, paired)
    if paired and groups is not None:
        requirement = "False where groups are given (keep one row of each pair of groups)"
        raise errors.invalid("paired", requirement, paired)
    stated: dict[str, Any] = {
        "rows": kind, "claim": claim, "delta": delta, "confidence": confidence, "bound": limit,
        "seed": to_seed(rng), "paired": paired, "arranged": arranged, "provenance": (made,),
    }  # fmt: skip
    matrix = _read_confusion_matrix(outputs) if outputs_prime is None and label is None else None
    if matrix is not None:
        _refuse_with_matrix(
            attack=attack, count_share=count_share, guesses=guesses, groups=groups,
            groups_prime=groups_prime, column=column, exclude=exclude, dtype=dtype,
            label_x=label_x, sep=sep, encoding=encoding, format=format,
            header=None if header == "auto" else header,
        )  # fmt: skip
        return _audit_matrix(matrix, _as_pair(pair), stated)
    with Progress("reading", None, progress) as bar:
        reader = Reader(format, header=header, sep=sep, encoding=encoding, bar=bar, dtype=dtype)
        request = Request("", column, exclude=exclude)
        sides, names, titles, numbers, notes = _read_sides(
            outputs, outputs_prime, request, label, label_x, (groups, groups_prime), reader
        )
    if kind == "independent":
        for side, name in zip(sides, names, strict=True):
            refuse_row_numbers(side, name, titles)
        if selects_all_columns(column) or request.has_pattern_or_exclusion:
            refuse_clocks(sides, titles)
    stated |= {
        "names": names,
        "groups": numbers and (int(numbers[0].max()) + 1, int(numbers[1].max()) + 1),
        "files": tuple(reader.tables) if source else (),
    }
    with Progress(f"auditing {len(sides[0]):,} and {len(sides[1]):,} rows", None, progress):
        if stated["rows"] == "one_run":
            report, warned = _audit_canaries(sides, guesses, stated), tuple[str, ...]()
        else:
            report, warned = _audit_independent_rows(
                sides, numbers, attack, _as_pair(pair), count_share, source, titles, notes, stated
            )
    for doubt in (*report.doubts, *warned):
        warnings.warn(doubt, errors.AssumptionWarning, stacklevel=3)
    return report


def _read_confusion_matrix(outputs: Any) -> tuple[int, int, int, int] | None:
    """Return the counts (tp, fn, fp, tn) of a confusion matrix, or None for other outputs."""
    if not isinstance(outputs, Mapping):
        return None
    cells = {str(key).lower(): value for key, value in outputs.items()}
    if not cells.keys() & set(_MATRIX_CELLS):
        return None
    if cells.keys() != set(_MATRIX_CELLS):
        raise errors.invalid("outputs", f"a mapping with {', '.join(_MATRIX_CELLS)}", outputs)
    tp, fn, fp, tn = (errors.integer(name, cells[name], 0) for name in _MATRIX_CELLS)
    errors.integer("tp + fn", tp + fn, 1)
    errors.integer("fp + tn", fp + tn, 1)
    return tp, fn, fp, tn


def _refuse_with_matrix(**others: Any) -> None:
    """Raise an error if an argument is given that has no effect with a confusion matrix."""
    for name, value in others.items():
        if value is not None:
            raise errors.invalid(name, "None where outputs are a confusion matrix", value)


def _audit_matrix(
    matrix: tuple[int, int, int, int], pair: Pair, stated: dict[str, Any]
) -> OutputsAudit:
    """Audit a confusion matrix of guesses that the user counted.

    For independent rows, the event is that the guess is 1.
    """
    tp, fn, fp, tn = matrix
    stated |= {
        "names": ("confusion matrix",) * 2,
        "attack": "guesses counted before",
        "remarks": (_MATRIX_REMARK,),
    }
    _store_tangent_epsilon(stated)
    if stated["rows"] == "one_run":
        doubts = unfair_coin_doubts((range(tp + fn), range(fp + tn)))
        return OutputsAudit(
            **stated, evidence=Guesses(tp + fp, tp, fn + tn, tn, sum(matrix)), doubts=doubts
        )
    sides: tuple[Literal["above", "below"], ...] = "above", "below"
    audits = [
        OutputsAudit(
            **stated,
            evidence=Counts(hits, tp + fn, hits_prime, fp + tn),
            pair=pair,
            event=Above(Coordinate(0), 0.5, side),
            direction=direction,
        )
        for side, hits, hits_prime, direction in zip(
            sides, (tp, fn), (fp, tn), ("x", "x_prime"), strict=True
        )
    ]
    # A bound from two limits holds for both guesses at once. Other bounds hold for one guess only.
    declared = find_declaration(OUTPUTS_BOUNDS[stated["rows"]][stated["bound"]])
    has_limits = declared.curves == "point"
    return max(audits, key=lambda audit: audit.epsilon_lower) if has_limits else audits[0]


def _audit_canaries(sides: Sides, guesses: Any, stated: dict[str, Any]) -> OutputsAudit:
    evidence, how = guess_included_canaries(sides, guesses, stated["seed"])
    _store_tangent_epsilon(stated)
    return OutputsAudit(**stated, evidence=evidence, attack=how, doubts=unfair_coin_doubts(sides))


def _store_tangent_epsilon(stated: dict[str, Any]) -> None:
    """Store epsilon and delta of a tangent to the claim's curve in the fields of the result.

    This tangent has delta 1e-5 if the curve has a finite epsilon at this delta.
    """
    if isinstance(stated["claim"], Claim):
        stated |= {"delta": _REPORT_DELTA, "tangent": stated["claim"].epsilon(_REPORT_DELTA)}
        # If the curve implies no finite epsilon at this delta, another tangent is taken.
        if not math.isfinite(stated["tangent"]):
            start = 0.0, float(stated["claim"].delta(0.0))
            remote = unrefutable_eps_delta(stated["claim"])
            stated["tangent"], stated["delta"] = start if start[1] < 1.0 else remote


@np.errstate(over="ignore", invalid="ignore")
def _audit_independent_rows(
    sides: Sides,
    groups: Sides | None,
    attack: Any,
    pair: Pair,
    share: float | None,
    source: bool,
    titles: tuple[str, ...],
    notes: tuple[str, ...],
    stated: dict[str, Any],
) -> tuple[OutputsAudit, tuple[str, ...]]:
    attack = Auto() if attack is None else attack
    attack = named(attack, "attack") if isinstance(attack, str) else attack
    if not callable(attack):
        raise errors.mistyped(
            "attack", "a callable (outputs, outputs_prime, pair) -> event", attack
        )
    settings, paired = (stated["delta"], stated["confidence"]), stated["paired"]
    claim = stated["claim"]
    if claim is not None and not isinstance(claim, Claim):
        claim *= pair.distance
    vectors = pair_lists_to_float_arrays(pair)
    counted = choose_and_count(
        sides, attack, vectors, share, stated["seed"], settings, paired, groups, claim
    )
    sides, fitted = counted.separate, counted.fitted
    if counted.tangent is not None:
        stated |= dict(zip(("tangent", "delta"), counted.tangent, strict=True))
    doubts, remarks = repeat_doubts_and_notes(sides)
    doubts += () if paired else cross_side_dependence_doubts(sides, fitted.event)
    doubts += () if stated["arranged"] else doubts_of_order(sides)
    # pandas also uses numbers as column names, and tables hold them as texts.
    names = (str(ast.literal_eval(title.removeprefix("column "))) for title in titles)
    plain = (int(name) if _NUMBER_PATTERN.fullmatch(name) else name for name in names)
    report = OutputsAudit(
        **stated,
        evidence=counted.counts,
        attack=counted.attack,
        event=name_columns(fitted.event, tuple(plain)),
        direction=fitted.direction,
        pair=pair,
        pilot=counted.pilot,
        remarks=(*fitted.remarks, *fitted.notes, *remarks, *notes),
        doubts=doubts,
        read=fitted.read,
        inside=fitted.inside if source else (),
        constant=fitted.constant,
        floating_point=counted.finding,
    )
    return report, fitted.remarks


def _check_rows_option(rows: Any) -> str:
    """Return "independent" or "one_run"; raise an error for other values of the argument `rows`."""
    if isinstance(rows, str) and rows in ROWS:
        return rows
    options = "; ".join(f"{name!r}: {meaning}" for name, meaning in ROWS.items())
    text = f"rows must be {' or '.join(map(repr, ROWS))}, got {errors.show(rows)} ({options})"
    if isinstance(rows, str):
        raise errors.tag_error(ValueError(text + suggest_word(rows, ROWS)), "rows")
    raise errors.tag_error(TypeError(text), "rows")


def _choose_bound(rows: str, bound: Any, delta: float, curve: Claim | None, paired: bool) -> str:
    declared = {name: find_declaration(of) for name, of in OUTPUTS_BOUNDS[rows].items()}
    bound_name = (
        next(iter(declared)) if bound is None else errors.choice("bound", bound, list(declared))
    )
    if rows == "one_run" and curve is not None:
        curves = {name: declaration.curves for name, declaration in declared.items()}
        return _choose_curve_bound(curves, curve, None if bound is None else bound_name)
    if declared[bound_name].curves == "only":
        raise errors.invalid("bound", "another where claim is a number", bound_name)
    declared[bound_name].check_bound_allows_delta(bound_name, delta)
    if paired and not declared[bound_name].paired:
        # With common seeds, the exact test refuted 220 of 1,500 true claims at a nominal 10 %.
        requirement = "'clopper_pearson' where paired = True (it alone holds for dependent sides)"
        raise errors.invalid("bound", requirement, bound_name)
    return bound_name


def _choose_curve_bound(curves: Mapping[str, str], claim: Claim, bound: str | None) -> str:
    """Return the name of a bound for one run that can test a claimed curve, or raise an error.

    Args:
        curves: mapping from the name of each bound to a word for the curves that it can test.
        claim: the claimed curve.
        bound: name of the requested bound, or None for the default.
    """
    usual = next(name for name, kind in curves.items() if kind == "only")
    gaussian = bound is not None and curves[bound] == "gaussian"
    if bound in (None, usual) or (gaussian and isinstance(claim, GDP)):
        return bound or usual
    reason = "knows one (epsilon, delta): give claim.epsilon(delta), a number, and delta"
    reason = "concerns only Gaussian claims" if gaussian else reason
    requirement = f"{usual!r}, or left out, for this claim ({bound!r} {reason})"
    raise errors.invalid("bound", requirement, bound)


def _refuse_arguments_of_mode(rows: str, **arguments: Any) -> None:
    """Raise an error for arguments without a meaning for `rows` ("independent" or "one_run")."""
    for name, value in arguments.items():
        usual = False if name in ("paired", "arranged") else None
        if (name == "guesses") == (rows == "independent") and value is not usual:
            raise errors.invalid(name, f"{usual} where rows = {rows!r}", value)


def _as_pair(pair: Any) -> Pair:
    pair = Pair(*pair) if isinstance(pair, tuple) and len(pair) == 2 else pair
    if pair is not None and not isinstance(pair, Pair):
        raise errors.mistyped("pair", "a Pair, a tuple (x, x_prime) or None", pair)
    return UNKNOWN if pair is None else pair


def _read_sides(
    outputs: Any,
    outputs_prime: Any,
    request: Request,
    label: Any,
    label_x: Any,
    groups: tuple[Any, Any],
    reader: Reader,
) -> tuple[Sides, tuple[str, str], tuple[str, ...], Sides | None, tuple[str, ...]]:
    """Read the outputs on x and on x'.

    Returns:
        The outputs on x and on x', their names, the names of their columns, the groups of the rows
        as integers (or None), and notes.
    """
    _check_groups(label, *groups)
    if label is not None:
        if outputs_prime is not None:
            raise errors.invalid("outputs_prime", "None where label is given", outputs_prime)
        sides, titles, listed, notes = split_outputs_by_label(
            outputs, label, request, label_x, groups[0], reader
        )
        first, second = (_as_output_rows("outputs", side) for side in sides)
        names = (get_display_name(outputs, "outputs"),) * 2
        return (first, second), names, titles, listed and group_labels_to_integers(*listed), notes
    if label_x is not None:
        raise errors.invalid("label_x", "None where label is not given", label_x)
    if outputs_prime is None:
        requirement = "the outputs on x', or label= the labels of outputs"
        raise errors.mistyped("outputs_prime", requirement, None)
    sources = {"outputs": outputs, "outputs_prime": outputs_prime}
    if all(is_path(rows) and str(rows) == STDIN for rows in sources.values()):
        raise errors.invalid(
            "outputs_prime", "a file where outputs are standard input", outputs_prime
        )
    # A column of groups belongs to both sides.
    groups = groups if groups[1] is not None else (groups[0], groups[0])
    read, notes = read_and_align(sources, request, groups, reader)
    first, second = map(_as_output_rows, sources, (side.rows for side in read))
    _refuse_same_outputs(sources, reader, first)
    cells, titles = [side.cells for side in read], read[0].titles
    (first, second), titles, spellings = add_number_format_columns((first, second), cells, titles)
    first, second, other_notes = align_fields_and_units(first, second)
    if first.shape[1:] != second.shape[1:] and object in (first.dtype, second.dtype):
        # Lists may have equal lengths by chance. If one side is an array of objects, both become
        # one.
        first, second = (
            rows if rows.ndim == 1 else to_object_array(rows.tolist()) for rows in (first, second)
        )
    refuse_labels((first, second))
    refuse_unlike_missing_marks((first, second))
    kinds = {side.dtype.kind in "buif" for side in (first, second) if side.dtype != object}
    if first.shape[1:] != second.shape[1:] or len(kinds) > 1:
        form = f"{first.dtype} of shape (size{''.join(f', {d}' for d in first.shape[1:])})"
        raise errors.invalid("outputs_prime", f"like outputs, {form}", (second.dtype, second.shape))
    names = get_display_name(outputs, "outputs"), get_display_name(outputs_prime, "outputs_prime")
    rows, other = read[0].groups, read[1].groups
    numbers = None if rows is None or other is None else group_labels_to_integers(rows, other)
    return (first, second), names, titles, numbers, notes + other_notes + spellings


def _refuse_same_outputs(sources: dict[str, Any], reader: Reader, rows: Array) -> None:
    """Raise an error if `outputs` and `outputs_prime` are one object or equal files.

    Outputs that are all equal are accepted.
    """
    outputs, outputs_prime = sources.values()
    digests = [table.sha256 for table in reader.tables]
    is_file = is_path(outputs) and is_path(outputs_prime) and len(digests) == 2
    is_same = outputs is outputs_prime or (is_file and digests[0] == digests[1])
    if is_same and not all(inputs_equal(row, rows[0]) for row in rows):
        reason = "both files are the same (equal SHA-256)" if is_file else "both are one object"
        need = f"the outputs on x', and not those on x ({reason})"
        raise errors.invalid("outputs_prime", need, outputs_prime)


def _check_groups(label: Any, groups: Any, groups_prime: Any) -> None:
    """Raise an error unless either no row has a group, or each row on x and on x' has one group."""
    if groups_prime is not None and (groups is None or label is not None):
        other = "label is" if groups is not None else "groups are not"
        raise errors.invalid("groups_prime", f"None where {other} given", groups_prime)
    if groups_prime is not None and is_str_or_int(groups) != is_str_or_int(groups_prime):
        # A file with a column of groups has one more column than the other file.
        raise errors.invalid(
            "groups_prime", "a column, or None, where groups are one", groups_prime
        )
    if groups_prime is None and label is None and groups is not None and not is_str_or_int(groups):
        requirement = "the groups of outputs_prime where groups are not a column of both"
        raise errors.mistyped("groups_prime", requirement, None)


def _as_output_rows(name: str, value: Any) -> Array:
    """Convert the outputs on one input to an array with one row per output."""
    requirement = "an array with one row an output, or the path of a file"
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise errors.invalid(name, "an array without masked entries", value)
    array = answer_rows(name, value, requirement)
    if array.ndim == 0:
        raise errors.mistyped(name, requirement, value)
    if len(array) == 0:
        raise errors.invalid(name, "at least one row", value)
    if array.dtype == object and all(entry is None for entry in array.ravel().tolist()):
        raise errors.invalid(name, "at least one output that is not missing", value)
    return array
