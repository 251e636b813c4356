"""Names of arguments and attributes in other packages, and the corresponding names in dpcore."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

FOREIGN_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "alpha": ("alphas", "confidence"),
    "b": ("scale",),
    "claim": ("epsilon",),
    "eps": ("claim", "epsilon"),
    "epsilon": ("claim",),
    "generator": ("rng", "seed"),
    "n": ("trials", "size"),
    "n_jobs": ("threads",),
    "max_grad_norm": ("clip",),
    "n_samples": ("trials",),
    "samples": ("trials",),
    "noise_multiplier": ("sigma",),
    "random_state": ("rng", "seed"),
    "rng": ("seed",),
    "scale": ("sigma",),
    "seed": ("rng",),
    "sigma": ("scale",),
    "std": ("sigma",),
    "verbose": ("progress",),
    "workers": ("threads",),
    "x": ("pair",),
    "x_prime": ("pair",),
}
"""Argument names of other packages, each with the names that the argument can have in dpcore.
dpcore suggests the first of these dpcore names that the called function has."""

SUGGESTED_FORMS: Final = {
    ("alpha", "confidence"): "confidence = 1 - alpha",
    ("x", "pair"): "pair = (x, x_prime)",
    ("x_prime", "pair"): "pair = (x, x_prime)",
}

MATRIX_ADVICE: Final = "counts are one argument, {'tp': 90, 'fn': 10, 'fp': 20, 'tn': 80}"
_SCALE_ADVICE: Final = "scale = sensitivity / epsilon, which dpcore.calibration.laplace computes"
ARGUMENT_ADVICE: Final[tuple[tuple[str, str, str], ...]] = (
    *(
        (name, "left_out", "the claim of one step is GDP(1/sigma), without a delta")
        for name in ("claim", "epsilon", "delta")
    ),
    *((name, "outputs_prime", MATRIX_ADVICE) for name in ("tp", "fn", "fp", "tn", "tpr", "fpr")),
    ("sensitivity", "neighbour", "neighbour= says which inputs are neighbours"),
    ("device", "pair", "the mechanism chooses it: dpcore.torch.mechanism(encoder, noise, device=)"),
    *(
        (name, owner, "noise has no place: the input is what it is added to")
        for name in ("loc", "mean")
        for owner in ("scale", "sigma")
    ),
    *((name, "scale", _SCALE_ADVICE) for name in ("epsilon", "sensitivity")),
    *(
        (name, "sigma", "sigma = dpcore.calibration.gaussian_analytic(...).sigma")
        for name in ("epsilon", "sensitivity", "delta")
    ),
)
"""Triples: an argument of another package, an argument that the called function must have, and the
advice."""

MISSING_ADVICE: Final[tuple[tuple[str, str], ...]] = (
    ("1 required positional argument: 'x_prime'", "two inputs are two arguments: Pair(x, x_prime)"),
    ("13 required positional arguments: 'pair'", "dpcore.audit(mechanism, pair) makes one"),
    ("12 required positional arguments: 'attack'", "dpcore.audit(mechanism, pair) makes one"),
)
"""Pairs: end of Python's message about missing arguments, and the advice."""

_ATTRIBUTES: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "passed ok success failed private is_private is_refuted is_safe result violation",
        (("refuted", "refuted (True, False or None)"), ("verdict", "verdict")),
    ),
    (
        "eps epsilon lower lower_bound eps_lower",
        tuple((name, name) for name in ("epsilon_lower", "epsilon_hat", "epsilon", "claim")),
    ),
    (
        "epsilon_upper eps_upper upper upper_bound",
        (("epsilon_lower", "epsilon_lower (no audit bounds epsilon from above)"),),
    ),
    (
        "pvalue p_value statistic ci confidence_interval",
        (("epsilon_lower", "epsilon_lower (a bound at confidence)"), ("refuted", "refuted")),
    ),
    (
        "show print summary savefig to_csv to_dataframe",
        (("lines", "print(report)"), ("plot", "plot()"), ("to_dict", "to_dict()")),
    ),
    ("n n_samples sample_size", (("trials", "trials"), ("counts", "counts"))),
    ("sample rvs draw randomise randomize release", (("steps", "dpcore.sample({}, x, size)"),)),
)
"""Expected attribute names, with pairs: the attribute that the class must have, and the advice."""


def advise_on_attribute(cls: type, name: str) -> str:
    """Return advice for a user who reads an attribute `name` that the class `cls` does not have.

    The user expects the attribute `name`, because it is common in other packages. The advice names
    the attributes of `cls` with the same meaning. The caller must replace the text "{}" in the
    advice by the name of the object. The result is "" if no advice applies.

    Example:
        >>> advise_on_attribute(complex, "eps")
        ''
    """
    answers = next((answers for names, answers in _ATTRIBUTES if name in names.split()), ())
    return " or ".join(words for attribute, words in answers if hasattr(cls, attribute))


def find_closest_word(word: str, words: Iterable[str]) -> str | None:
    """Find the element of `words` that is most similar to `word`, or None if none is similar.

    Upper and lower case are not distinguished.

    Example:
        >>> find_closest_word("Trails", ["trials", "threads"])
        'trials'
    """
    # The import is slow and is needed only after a mistake.
    from difflib import get_close_matches

    spelled = {other.lower(): other for other in words}
    closest = get_close_matches(word.lower(), spelled, n=1)
    return spelled[closest[0]] if closest else None


def suggest_word(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message that suggests the element of `words` closest to `word`.

    The result is "" if no element is similar to `word`.

    Example:
        >>> suggest_word("indep", ["independent", "one_run"])
        " (did you mean 'independent'?)"
    """
    closest = find_closest_word(word, words)
    return "" if closest is None else f" (did you mean {closest!r}?)"


def dpcore_argument_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name that dpcore uses for an argument of another package, or None.

    `name` is the name of the argument in the other package. `names` are the argument names of one
    dpcore function. The result is the element of `names` with the same meaning, or None if the
    function has no argument with this meaning.

    Example:
        >>> dpcore_argument_name("seed", ["claim", "rng"])
        'rng'
    """
    return next((other for other in FOREIGN_ARGUMENTS.get(name, ()) if other in names), None)
