"""Computed numbers in the JSON of an audit, and Python code that repeats the audit."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import attacks, pairs
from ..attacks.attack import AuditAttack
from ..bounds import BOUNDS
from ..bounds.binomial import find_declaration
from ..claims.renyi import RDP
from ..claims.trade_off import Claim
from ..mechanisms.commands import Tool
from ..mechanisms.declarations import can_core_draw, convert_pair
from ..packages import get_loaded_module
from ..pairs import distances
from ..pairs.differences import inputs_equal
from ..published import SYSTEMS
from ..records import get_attribute, has_equal_content
from ..report.plain import encode_value
from ..report.shown import on_one_line
from ..streams import block_trials
from .audit_text import describe_event, describe_neighbours
from .evidence import LEFT_OUT

if TYPE_CHECKING:
    from .audits import Audit
    from .outputs_audits import OutputsAudit

_MAX_SHOWN_ENTRIES = 16
"""Largest number of array entries that code contains. For longer arrays, the code contains a
name."""

_PARTIAL_RUN_COMMENT = (
    "# Not one whole run: the same trials again, but event and direction may be chosen on other "
    "pilot draws."
)
_UNREPEATED_COMMENTS = {
    "own": (
        "# The mechanism draws its own randomness: the seed does not repeat it, and the counts "
        "will be others."
    ),
    "rounding": "# The outputs repeat up to rounding, not bit for bit: counts may differ slightly.",
}

_DERIVED_FIGURES = (
    "epsilon_lower", "epsilon_hat", "ceiling", "exact", "verdict", "power", "draws_per_second",
)  # fmt: skip
_DERIVED_OUTPUTS_FIGURES: Final = (
    "epsilon_lower", "epsilon_hat", "ceiling", "guesses_needed", "refuted", "verdict",
)  # fmt: skip


def format_call(audit: Audit, mechanism: str = "mechanism", pair: str = "pair") -> str:
    """Return the call of `dpcore.audit` that repeats an audit, as one line of Python code.

    Args:
        audit: result of the audit.
        mechanism: code that stands for a mechanism that Python code cannot express, such as a
            lambda.
        pair: code that stands for the two inputs if they are too long for one line, or are not
            plain data.

    Returns:
        Python code. If the audit counted several separate ranges of trials, the code makes one call
        for each range, and adds the results. The code gives the same counts, unless
        `Audit.randomness` states that a run with the same seed does not give the same draws.

    Example:
        >>> import dpcore
        >>> report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
        >>> print(format_call(report))  # doctest: +NORMALIZE_WHITESPACE
        dpcore.audit(dpcore.Laplace(scale=1.0, variant='two_branch'),
            dpcore.Pair(np.array([0.0]), np.array([1.0])), attack=dpcore.attacks.Auto(),
            trials=1000, claim=1.0, confidence=0.95, rng=1, pilot=512)
        >>> eval(format_call(report)) == report
        True
    """
    inputs = [mechanism_expression(audit.mechanism) or mechanism, pair_expression(audit) or pair]
    calls = [
        f"dpcore.audit({', '.join(inputs + keywords)})" for keywords in kwargs_by_trial_range(audit)
    ]
    return " + ".join(calls)


def make_script(audit: Audit) -> str:
    """Return a Python script that repeats an audit.

    Args:
        audit: result of the audit.

    Returns:
        Python code. If the audit does not store an object (such as a lambda), the code contains
        `...` and a comment that names the object. If the two inputs are long, the code reads them
        from the JSON of the audit. If a run with the same seed does not give the same draws, a
        comment states this.
    """
    mechanism = mechanism_expression(audit.mechanism)
    pair = pair_expression(audit) or _code_to_load_stored_pair(audit)
    imports = [*["import numpy as np"] * ("np." in pair), "import dpcore"]
    if mechanism is not None and not mechanism.startswith("dpcore."):
        imports.insert(0, f"import {audit.mechanism.__module__}")
    lines = [*imports, ""]
    lines.append(f"mechanism = {mechanism or f'...  # {on_one_line(audit.name, 200)}'}")
    lines.append(f"pair = {pair}")
    if attack_expression(audit) is None:
        lines.append(f"attack = ...  # {on_one_line(audit.attack, 200)}")
    if audit.neighbour and relation_as_python(audit) is None:
        lines.append(f"neighbour = ...  # {on_one_line(audit.neighbour, 200)}")
    is_whole = len(audit.ranges) == 1 and audit.ranges[0][1] == audit.end and not audit.partial
    lines += [] if is_whole else [_PARTIAL_RUN_COMMENT]
    lines += filter(None, [_UNREPEATED_COMMENTS.get(audit.randomness)])
    calls = []
    for arguments in kwargs_by_trial_range(audit):
        body = "".join(f"    {argument},\n" for argument in ["mechanism", "pair", *arguments])
        calls.append(f"dpcore.audit(\n{body})")
    return "\n".join([*lines, f"report = {' + '.join(calls)}"])


def kwargs_by_trial_range(audit: Audit) -> list[list[str]]:
    """Return Python code of the keyword arguments with which `dpcore.audit` repeats an audit.

    An audit can have counted several separate ranges of trials. The result has one list of
    arguments for each range.
    """
    common = [f"claim={_claim_to_code_or_name(audit.claim)}"] if audit.claim is not None else []
    common += [f"delta={audit.delta!r}"] if audit.delta and audit.tangent is None else []
    common += [f"confidence={audit.confidence!r}", f"rng={audit.seed}"]
    common += [f"block={audit.block}"] if audit.block != block_trials(audit.elements) else []
    if get_attribute(AuditAttack, getattr(attacks, audit.attack, None), "by_ballot"):
        # The integer route gives the same counts, but only one of the two routes is the default.
        common += ["route='sampled'"] if audit.route == "sampled" else []
    else:
        common += [f"pilot={audit.pilot}"]
    common += [] if find_declaration(BOUNDS[audit.bound]).implied else [f"bound={audit.bound!r}"]
    common += ["stop='refuted'"] if audit.stop == "refuted" else []
    common += ["floats=True"] if audit.floats else []
    common += [f"neighbour={relation_as_python(audit) or 'neighbour'}"] * bool(audit.neighbour)
    inputs = convert_pair(audit.mechanism, audit.pair)
    common += ["null=True"] if inputs_equal(inputs.x, inputs.x_prime) else []
    common += ["source=False"] * any(run.origin == LEFT_OUT for run in audit.provenance)
    attack = f"attack={attack_expression(audit) or 'attack'}"
    return [
        [attack, f"trials={stop - start}", *([f"start={start}"] if start else []), *common]
        for start, stop in audit.ranges
    ]


def _claim_to_code_or_name(claim: Any) -> str:
    """Return the claim as Python code, or the name `claim` if the code would be too long."""
    if isinstance(claim, RDP) and claim.alphas.size <= _MAX_SHOWN_ENTRIES:
        return f"dpcore.claims.RDP({claim.alphas.tolist()}, {claim.epsilons.tolist()})"
    if isinstance(claim, Claim) and claim.parameter is not None:
        return f"dpcore.claims.{type(claim).__name__}({getattr(claim, claim.parameter)!r})"
    return "claim" if isinstance(claim, Claim) else repr(claim)


def attack_expression(audit: Audit) -> str | None:
    """Return the attack of an audit as Python code, such as "dpcore.attacks.Auto()".

    The result is None if the stored name of the attack does not determine the attack.
    """
    text = audit.attack if audit.attack.endswith(")") else f"{audit.attack}()"
    return f"dpcore.attacks.{text}" if _is_call_with_literals(text, attacks.__all__) else None


def relation_as_python(audit: Audit) -> str | None:
    """Return the neighbour relation of an audit as Python code.

    The result is None if the stored text of the relation is not a constructor call from
    `dpcore.pairs`.
    """
    text = audit.neighbour
    return f"dpcore.pairs.{text}" if _is_call_with_literals(text, pairs.__all__) else None


def _is_call_with_literals(text: str, names: Iterable[str]) -> bool:
    """Return True if a text is one call of a listed name, with literals as keyword arguments.

    The check is needed because the text may come from the file of another person, and the user may
    run a script that contains the text.
    """
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            return False
        for keyword in call.keywords:
            ast.literal_eval(keyword.value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return call.func.id in names and text.isprintable()


def mechanism_expression(mechanism: Any) -> str | None:
    """Return Python code for a mechanism, or None if code cannot express it.

    For a mechanism of dpcore, the code is a constructor call. For any other mechanism, the code is
    the name under which it can be imported.

    Example:
        >>> import numpy as np
        >>> mechanism_expression(np.linalg.norm), mechanism_expression(lambda x, size, rng: x)
        ('numpy.linalg.norm', None)
    """
    if can_core_draw(mechanism):
        place = type(mechanism).__module__ if type(mechanism) in SYSTEMS else "dpcore"
        return f"{place}.{mechanism!r}"
    if isinstance(mechanism, Tool):
        return f"dpcore.{mechanism!r}"
    module, name = (getattr(mechanism, key, None) for key in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(name, str)) or module == "__main__":
        return None
    target = get_loaded_module(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    return f"{module}.{name}" if target is mechanism else None


def pair_expression(audit: Audit) -> str | None:
    """Return the two inputs of an audit as Python code.

    The result is None if the inputs are too long for one line, or are not plain data.
    """
    inputs = [_value_to_code(audit.pair.x), _value_to_code(audit.pair.x_prime)]
    if None in inputs:
        return None
    apart = [f"distance={audit.pair.distance!r}"] if audit.pair.distance != 1.0 else []
    return f"dpcore.Pair({', '.join([str(text) for text in inputs] + apart)})"


def _value_to_code(value: Any) -> str | None:
    if isinstance(value, np.ndarray):
        return _short_vector_to_python_code(value)
    try:
        shown = repr(value)
        same = len(shown) <= 200 and has_equal_content(ast.literal_eval(shown), value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return shown if same else None


def _short_vector_to_python_code(array: np.ndarray[Any, Any]) -> str | None:
    """Return a finite float64 vector as code, or None for a long vector or another array."""
    if array.dtype != np.float64 or array.ndim != 1 or not array.size:
        return None
    entries: list[float] = array.tolist()
    if not all(map(math.isfinite, entries)):
        return None
    # Entries are compared by their text, because 0.0 and -0.0 differ.
    if len(entries) > 4 and len(set(map(repr, entries))) == 1:
        return f"np.array([{entries[0]!r}] * {len(entries)})"
    return f"np.array({entries!r})" if len(entries) <= _MAX_SHOWN_ENTRIES else None


def _code_to_load_stored_pair(audit: Audit) -> str:
    if '"repr"' not in json.dumps(encode_value(audit.pair)):
        return "dpcore.Audit.from_json(text).pair  # text: the JSON of this audit"
    return f"...  # {on_one_line(repr((audit.pair.x, audit.pair.x_prime)), 200)}"


def derive_audit_numbers(audit: Audit) -> dict[str, Any]:
    """Return the computed numbers and texts that the JSON of an audit contains.

    The JSON contains these numbers and texts in addition to the fields of the audit. An example is
    `epsilon_lower`.
    """
    apart = {name: encode_value(value) for name, value in distances(audit.pair).items()}
    return {
        **{name: getattr(audit, name) for name in _DERIVED_FIGURES},
        "source_sha256": [run.sha256 for run in audit.provenance],
        "distances": apart or None,
        "neighbours": describe_neighbours(audit),
    }


def derive_outputs_numbers(audit: OutputsAudit) -> dict[str, Any]:
    """Return the computed numbers and texts that the JSON of an audit contains.

    `audit` is an audit of recorded outputs. The JSON contains the numbers and texts in addition to
    the fields of the audit. An example is `epsilon_lower`.
    """
    return {
        **{name: getattr(audit, name) for name in _DERIVED_OUTPUTS_FIGURES},
        "source_sha256": [run.sha256 for run in audit.provenance],
        "witness": describe_event(audit),
    }
