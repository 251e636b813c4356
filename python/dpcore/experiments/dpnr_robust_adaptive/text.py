"""The models with the study's figures, as text and as plain data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any

from ...report.encoding import encode_float
from ..text import aligned, make_record_head
from . import published
from .cases import DATA, LINES, MASKS, MU_EPSILON
from .compared import Gain, compute_gains, compute_mean_sd, crossing_epsilon, true_epsilon
from .experiment import NAME, Result, Size
from .jobs import Model, Test

_STUDY_LABEL = "  the study"

_NOISE_GLOSSARY = """\
Test accuracy; in brackets the standard deviation over seeds in units of the last digit.
claimed: noise of scale 1/epsilon on rows of min-max, as published. true: the epsilon that this
noise gives any two texts, d times the claim (for b = d/epsilon it is the claim itself).
robust: a model for each epsilon, tested at it. All other lines: one model, used at every noise.
<unk>: unknown words and pairs are one row that nothing has trained, as in the study's code."""

_MASKS_GLOSSARY = f"""\
Words masked at claimed epsilon {MU_EPSILON:g}, and without noise. test: in the test alone; both: in
training too. left out: masked words and their pairs leave the mean. id 0: what the study's code
does, words and pairs one by one become number 0, an untrained row that is averaged in."""

_TRAINING_GLOSSARY = """\
Robust training, each model at its own epsilon: the loss of the last epoch in nats (that of
guessing is ln of the number of labels), and accuracy without noise in the test."""


def write_table(result: Result) -> str:
    """Format the tables and the conclusions."""
    config = result.config
    seeds = "1 seed" if config.seeds == 1 else f"{config.seeds} seeds"
    parts = [
        f"DPNR with training noise: {seeds} from {config.seed}, at least {config.trials:,} noisy "
        f"texts\nbehind every accuracy\n" + "\n".join(map(_describe_size, result.sizes))
    ]
    if config.data is None:
        parts.append(
            "WITHOUT DATA: generated texts stand for AG news and Yelp; the study's figures are of\n"
            "others, and left out. With --data DIR the corpora are read."
        )
    if result.partial:
        parts.append("INTERRUPTED: only the models that were done are shown")
    parts.append(_NOISE_GLOSSARY)
    cells = [(size, dim) for size in result.sizes for dim in config.dims]
    parts += [_format_lines(result, size, dim) for size, dim in cells]
    masked = [row for size, dim in cells for row in _make_mask_rows(result, size, dim)]
    if masked:
        columns = [f"mu {mu:g}" for mu in config.mus]
        parts += [_MASKS_GLOSSARY, aligned([("", *columns), *masked])]
    learnt = [row for size, dim in cells for row in _make_loss_rows(result, size, dim)]
    if learnt:
        levels = [f"{level:g}" for level in config.epsilons]
        parts += [_TRAINING_GLOSSARY, aligned([("claimed", *levels), *learnt])]
    parts.append("\n".join(_describe_comparisons(result)))
    if config.data is not None:
        parts.append(f"The study: {published.SOURCE}; its Yelp are long reviews, ours sentences.")
    return "\n\n".join(part for part in parts if part)


def _describe_size(size: Size) -> str:
    return (
        f"  {size.data}: {size.origin}; {size.train:,} training and {size.test:,} test texts, "
        f"{size.labels} labels, chance {size.chance:.3f}"
    )


def _table_title(size: Size, dim: int, result: Result) -> str:
    name = DATA[size.data] if result.config.data is not None else f"generated, for {size.data}"
    return f"{name}, d = {dim}"


def format_mean_sd(values: tuple[float, ...]) -> str:
    """Format the mean and, in units of the last digit, the standard deviation; a dash if empty."""
    if not values:
        return "-"
    mean, wide = compute_mean_sd(values)
    return f"{mean:.3f}" + (f"({1000 * wide:.0f})" if len(values) > 1 else "")


def _format_study(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _format_lines(result: Result, size: Size, dim: int) -> str:
    """Format a line for each way of training, with the study's figures below it."""
    levels = (None, *result.config.epsilons)
    title = _table_title(size, dim, result)
    head = (title, "no noise", *(f"{level:g}" for level in levels if level is not None))
    true = [f"{true_epsilon(level, dim):g}" for level in levels if level is not None]
    rows = [head, ("true epsilon", "", *true)]
    for name in result.config.lines:
        values = [result.values(size.data, dim, name, level) for level in levels]
        if any(values):
            rows.append((name, *map(format_mean_sd, values)))
        of = LINES[name].study
        known = [published.published_accuracy(size.data, dim, of, level) for level in levels]
        if result.config.data is not None and any(known):
            rows.append((f"{_STUDY_LABEL}, {of}", *map(_format_study, known)))
    return aligned(rows)


def _make_mask_rows(result: Result, size: Size, dim: int) -> Iterator[tuple[str, ...]]:
    mus = result.config.mus
    shown = []
    for line in ("not robust", "robust"):
        for trained in (False, True):
            for mask, title in MASKS.items():
                for level in (MU_EPSILON, None):
                    tests = [Test(level, mu, mask) for mu in mus]
                    values = [result.masked(size.data, dim, line, t, trained) for t in tests]
                    if any(values):
                        where = "both" if trained else "test"
                        noise = "no noise" if level is None else f"epsilon {level:g}"
                        shown.append(
                            (f"{line}, {title}, {where}, {noise}", *map(format_mean_sd, values))
                        )
        known = [published.published_accuracy(size.data, dim, line, MU_EPSILON, mu) for mu in mus]
        if shown and result.config.data is not None and any(known):
            shown.append((f"{_STUDY_LABEL}, {line}", *map(_format_study, known)))
    if shown:
        yield (_table_title(size, dim, result), *("" for _ in mus))
        yield from shown


def _make_loss_rows(result: Result, size: Size, dim: int) -> Iterator[tuple[str, ...]]:
    levels = result.config.epsilons
    models = [result.of(size.data, dim, "robust", level) for level in levels]
    if any(models):
        title = _table_title(size, dim, result)
        losses = (format_mean_sd(tuple(model.loss for model in ones)) for ones in models)
        yield (f"{title}: loss (guessing {math.log(size.labels):.3f})", *losses)
        yield (
            f"{title}: accuracy",
            *(format_mean_sd(tuple(m.clean for m in ones)) for ones in models),
        )


def _describe_comparisons(result: Result) -> Iterator[str]:
    """Describe crossings and comparisons in words."""
    real = result.config.data is not None
    for size in result.sizes:
        for dim in result.config.dims:
            title = _table_title(size, dim, result)
            if not result.values(size.data, dim, "robust", result.config.epsilons[-1]):
                continue
            at = crossing_epsilon(result, size.data, dim)
            where = "at no epsilon" if at is None else f"from epsilon {at:g}"
            study = published.CROSSINGS.get((size.data, dim)) if real else None
            known = "" if study is None else f" (the study: {study:g})"
            yield f"{title}: robust is better than not robust {where}{known}."
            compared = compute_gains(result, size.data, dim)
            if compared:
                yield _describe_gains("better", [g for g in compared if g.beyond and g.mean > 0])
                yield _describe_gains("worse", [g for g in compared if g.beyond and g.mean < 0])


def _describe_gains(word: str, found: list[Gain]) -> str:
    """Describe where lines are better, or worse, than the control beyond the spread."""
    lines: dict[str, list[str]] = {}
    for gain in found:
        lines.setdefault(gain.line, []).append(f"{gain.epsilon:g} ({gain.mean:+.3f})")
    listed = "; ".join(f"{line} at {', '.join(at)}" for line, at in lines.items()) or "none"
    told = f"{word} than one model trained at 5, beyond both spreads: {listed}"
    return textwrap.fill(told, 98, initial_indent="  ", subsequent_indent="    ")


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    cells = [(size.data, dim) for size in result.sizes for dim in result.config.dims]
    epsilons = result.config.epsilons
    return {
        **make_record_head(NAME, result),
        "corpora": [
            {name: getattr(size, name) for name in Size.__dataclass_fields__}
            for size in result.sizes
        ],
        "true": [
            {"dim": dim, "claimed": level, "true": encode_float(true_epsilon(level, dim))}
            for dim in result.config.dims
            for level in epsilons
        ],
        "models": [_trained_to_dict(model) for model in result.models],
        "crossings": [
            {"data": data, "dim": dim, "epsilon": crossing_epsilon(result, data, dim)}
            for data, dim in cells
        ],
        "against_constant": [
            {
                "data": data, "dim": dim, "line": gain.line, "epsilon": gain.epsilon,
                "mean": gain.mean, "spreads": gain.noise, "beyond": gain.beyond,
            }
            for data, dim in cells
            for gain in compute_gains(result, data, dim)
        ],
        "study": _list_study_figures(result) if result.config.data is not None else [],
    }  # fmt: skip


def _trained_to_dict(model: Model) -> dict[str, Any]:
    job = {name: getattr(model.job, name) for name in type(model.job).__dataclass_fields__}
    tests = [
        {"epsilon": test.epsilon, "mu": test.mu, "mask": test.mask, "accuracy": value}
        for test, value in model.accuracies
    ]
    return {**job, "loss": encode_float(model.loss), "clean": model.clean, "accuracies": tests}


def _list_study_figures(result: Result) -> list[dict[str, Any]]:
    """Return the figures of the study that are shown with ours."""
    tests = [(level, 0.0) for level in (None, *result.config.epsilons)]
    tests += [(MU_EPSILON, mu) for mu in result.config.mus]
    return [
        {"data": size.data, "dim": dim, "line": line, "epsilon": level, "mu": mu, "accuracy": value}
        for size in result.sizes
        for dim in result.config.dims
        for line in (published.PLAIN, published.ROBUST, published.ADAPTIVE)
        for level, mu in tests
        if (value := published.published_accuracy(size.data, dim, line, level, mu)) is not None
    ]
