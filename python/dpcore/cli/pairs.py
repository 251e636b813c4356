"""Options of `dpcore audit` for its two inputs and the relation of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import choice, invalid
from ..pairs import L1, L2, WHICH, AddRemove, Linf, Neighbour, Replace, patterns
from ..records import Pair
from .options import AuditArguments
from .status import Usage, report_bad_usage

__all__ = [
    "parse_relation",
    "read_pairs",
]

_BALL_RELATIONS = {"l1": L1, "l2": L2, "linf": Linf}
_DATASET_RELATIONS = {"replace": Replace, "add-remove": AddRemove}


def parse_relation(text: str | None) -> Neighbour | None:
    """Parse the relation that `--neighbour` names.

    Args:
        text: "l1=1", "l2=1", "linf=1" (any radius), "replace", "add-remove", or None.

    Returns:
        A relation of `dpcore.pairs`, or None for None.

    Raises:
        Usage: for any other text.
    """
    if text is None:
        return None
    name, given, radius = text.lower().partition("=")
    if name in _DATASET_RELATIONS and not given:
        return _DATASET_RELATIONS[name]()
    try:
        return _BALL_RELATIONS[name](float(radius))
    except (KeyError, ValueError):
        requirement = "l1=RADIUS, l2=RADIUS, linf=RADIUS, replace or add-remove"
        raise Usage(str(invalid("--neighbour", requirement, text))) from None


def read_pairs(asked: AuditArguments) -> Pair | tuple[Pair, ...] | None:
    """Read the pair of `--x` and `--x-prime`, or those of `--patterns`; None without either.

    Raises:
        Usage: if options are missing or exclude each other, or are no such inputs.
    """
    if asked.patterns is not None:
        inputs = (asked.x, asked.x_prime, asked.text, asked.text_prime)
        if asked.dim is None or inputs != (None,) * 4:
            raise Usage("--patterns needs --dim, and no other inputs")
        with report_bad_usage():
            return patterns(asked.dim, choice("patterns", asked.patterns, WHICH))
    texts = (asked.text, asked.text_prime)
    if texts != (None, None):
        if None in texts:
            raise Usage("--text and --text-prime go together")
        if asked.dim is not None or asked.x is not None or asked.x_prime is not None:
            raise Usage("--text and --text-prime are the two inputs: no --x, --x-prime or --dim")
        return Pair(*texts)
    if asked.x is None and asked.x_prime is None:
        return None
    if asked.x is None or asked.x_prime is None:
        raise Usage("--x and --x-prime go together")
    if asked.dim is not None:
        raise Usage("--dim does not apply where --x and --x-prime give the pair")
    with report_bad_usage():
        return Pair(_read_vector("--x", asked.x), _read_vector("--x-prime", asked.x_prime))


def _read_vector(option: str, text: str) -> Any:
    if text.startswith("@"):
        try:
            return np.load(text[1:], allow_pickle=False)
        except (OSError, EOFError, ValueError) as error:
            raise Usage(f"{option} must name an .npy file, got {text} ({error})") from None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        requirement = "numbers separated by commas, or @FILE.npy"
        raise Usage(str(invalid(option, requirement, text))) from None
