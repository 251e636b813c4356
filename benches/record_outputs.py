"""Measure what recorded outputs are accused of, and write the tables kept in benches/record.

Usage: python benches/record_outputs.py [--sets 20] [--audits 200] [--clean 250] [--halves 200]
    [--out FILE]

Without options it writes benches/record/outputs.md. Both sides of every set of files have the same
law. Rows that depend on each other must give no verdict, columns that leak by what they are must
be refused, and clean files must raise no doubt.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import gzip
import pathlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import stats

import dpcore
from dpcore.mechanisms.answers import answer_rows
from dpcore.recorded.independent_rows import doubts_of_order, repeat_doubts_and_notes
from dpcore.sampling.columns import refuse_clocks, refuse_row_numbers

FIRST_SEED = 2_900_001
"""No test uses this seed or one of the next thousands."""

SIZE = 4000
CONFIDENCE = 0.95
_ALPHA = 1e-3
"""Significance of the binomial test of refuted claims."""

_FOLDER = tempfile.TemporaryDirectory()
"""Removed at the end."""

Sides = tuple[Any, Any]
Random = np.random.Generator


def choose_half_line(outputs: Any, outputs_prime: Any, pair: Any) -> Callable[[Any], Any]:
    """Choose the values above, or below, the median of a number: the cheapest of attacks."""
    numbers, primes = _to_numbers(outputs), _to_numbers(outputs_prime)
    middle = float(np.median(np.concatenate([numbers, primes])))
    sign = 1.0 if (numbers > middle).mean() >= (primes > middle).mean() else -1.0
    return lambda rows: sign * (_to_numbers(rows) - middle) > 0


def _to_numbers(rows: Any) -> Any:
    flat = rows if rows.ndim == 1 else rows.sum(axis=1) if rows.dtype != object else rows[:, -1]
    return np.array([_to_number(row) for row in flat]) if rows.dtype == object else flat


def _to_number(row: Any) -> float:
    while isinstance(row, (tuple, list, dict)):
        row = list(row.values())[-1] if isinstance(row, dict) else row[-1]
    return float(row)


def audit(sides: Sides, claim: float, seed: int, **settings: Any) -> Any:
    """Audit with the cheapest attack."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpcore.audit_outputs(
            *sides,
            rows="independent",
            claim=claim,
            confidence=CONFIDENCE,
            attack=choose_half_line,
            rng=seed,
            **settings,
        )


# Columns that leak by what they are: what is said of them.


def write_csv(rng: Random, column: str, size: int = SIZE) -> Sides:
    """Write two files with a column beside the answers."""
    folder, found = pathlib.Path(_FOLDER.name), []
    for side in range(2):
        beside = {
            "id": np.arange(size) + 1,
            "run": side * size + rng.permutation(size),
            "time": 1.7e9 + side * 1e5 + np.cumsum(rng.exponential(5.0, size)),
            "input": np.full(size, side),
        }[column]
        answers = rng.choice(["never", "weekly", "daily"], size)
        lines = [f"{one},{answer}" for one, answer in zip(beside, answers, strict=True)]
        (folder / f"{side}.csv").write_text("\n".join([f"{column},answer", *lines]))
        found.append(folder / f"{side}.csv")
    return found[0], found[1]


def make_log(rng: Random) -> Sides:
    """Return lines of a log with the number of the run."""
    return tuple(
        [f"run {side * SIZE + i}: {x:.3f} s" for i, x in enumerate(rng.exponential(size=SIZE))]
        for side in range(2)
    )  # type: ignore[return-value]


def make_numbered(rng: Random) -> Sides:
    """Return arrays with a column of run numbers."""
    return tuple(
        np.stack([side * SIZE + rng.permutation(SIZE), rng.laplace(size=SIZE)], axis=1)
        for side in range(2)
    )  # type: ignore[return-value]


REFUSED: dict[str, tuple[Callable[[Random], Sides], Any, str]] = {
    **{
        f"files, column `{name}`, no choice": (
            lambda rng, name=name: write_csv(rng, name), None, "column must be given",
        )
        for name in ("id", "run", "time", "input")
    },
    "files, all columns, `id`": (lambda rng: write_csv(rng, "id"), "*", "numbers the rows"),
    "files, all columns, `run`": (lambda rng: write_csv(rng, "run"), "*", "numbers the rows"),
    "files, all columns, `time`": (lambda rng: write_csv(rng, "time"), "*", "shows when a row"),
    "arrays with a run number": (make_numbered, None, "numbers the rows"),
    "log lines with a run number": (make_log, None, "numbers the rows"),
}  # fmt: skip


def measure_refused(sets: int) -> list[str]:
    """Return a line for each kind: how often the right error was raised."""
    lines = ["| columns | right error |", "| --- | ---: |"]
    for title, (make, column, message) in REFUSED.items():
        right = 0
        for seed in range(FIRST_SEED, FIRST_SEED + sets):
            sides = make(np.random.default_rng(seed))
            try:
                audit(sides, 0.1, seed, **({} if column is None else {"column": column}))
            except (TypeError, ValueError) as error:
                right += message in str(error)
        lines.append(f"| {title} | {right} of {sets} |")
    return lines


# Rows that depend on each other.


def walk(rng: Random, phi: float) -> Any:
    """Return an autoregression of the first order; a random walk for 1."""
    noise = rng.normal(size=SIZE)
    rows = np.empty(SIZE)
    rows[0] = noise[0] if phi == 1.0 else noise[0] / np.sqrt(1.0 - phi**2)
    for place in range(1, SIZE):
        rows[place] = phi * rows[place - 1] + noise[place]
    return rows


def share_runs(rng: Random, runs: int) -> Any:
    """Return records of which those of one run share its noise."""
    return np.repeat(rng.normal(size=runs), SIZE // runs) + rng.normal(size=SIZE)


def write_documents(rng: Random, documents: int = 30, dim: int = 16) -> Any:
    """Return vectors of the sentences of documents, one document after the other."""
    lengths = rng.multinomial(SIZE, np.full(documents, 1.0 / documents))
    own = np.repeat(rng.normal(size=(documents, dim)), lengths, axis=0)
    return own + rng.normal(size=(SIZE, dim))


def resample(rng: Random, kind: str) -> Any:
    """Return 400 rows resampled to 4,000."""
    values = rng.laplace(size=400)
    if kind == "jitter":
        return values[rng.integers(400, size=SIZE)] + 1e-3 * rng.normal(size=SIZE)
    rows = [_FORMS[kind](value) for value in values.tolist()]
    base = np.array(rows, dtype=object) if kind == "a frame" else answer_rows("rows", rows, "rows")
    return base[rng.integers(400, size=SIZE)]


def resample_amounts(rng: Random, rows: int, decimals: int) -> Any:
    """Return rounded amounts resampled to 4,000."""
    return np.round(rng.laplace(0.0, 10.0, rows), decimals)[rng.integers(rows, size=SIZE)]


_FORMS: dict[str, Callable[[float], Any]] = {
    "tuples": lambda x: ("never" if x < 0 else "daily", x),
    "dicts": lambda x: {"answer": "yes", "score": x},
    "Decimals": lambda x: Decimal(repr(x)),
    "a frame": lambda x: ["never" if x < 0 else "daily", x],
}
DEPENDENT: dict[str, tuple[Callable[[Random], Any], float, str]] = {
    "random walks": (lambda rng: walk(rng, 1.0), 0.1, "neighbours"),
    **{
        f"AR(1) {phi}": (lambda rng, phi=phi: walk(rng, phi), 0.1, "neighbours")
        for phi in (0.9, 0.99, 0.999)
    },
    **{
        f"{runs} runs of {SIZE // runs} records": (
            lambda rng, runs=runs: share_runs(rng, runs), 0.1, "neighbours",
        )
        for runs in (20, 100)
    },
    "sentences of 30 documents": (write_documents, 0.5, "neighbours"),
    **{
        f"400 rows resampled, {kind}": (
            lambda rng, kind=kind: resample(rng, kind), 0.1, "rows are repeated",
        )
        for kind in (*_FORMS, "jitter")
    },
    **{
        f"{rows:,} amounts of {decimals} decimals resampled": (
            lambda rng, rows=rows, decimals=decimals: resample_amounts(rng, rows, decimals),
            0.1, "rows are repeated",
        )
        for rows in (400, 1000) for decimals in (2, 3, 4)
    },
}  # fmt: skip


def measure_dependent(sets: int) -> list[str]:
    """Return a line for each kind: verdicts "invalid", and what would be refuted otherwise."""
    lines = [
        "| rows | invalid for the right reason | bound above the claim |", "| --- | ---: | ---: |",
    ]  # fmt: skip
    for title, (make, claim, reason) in DEPENDENT.items():
        invalid = beyond = 0
        for seed in range(FIRST_SEED, FIRST_SEED + sets):
            rng = np.random.default_rng(seed)
            found = audit((make(rng), make(rng)), claim, seed)
            invalid += found.verdict.startswith("invalid") and reason in found.verdict
            beyond += found.epsilon_lower > claim
        lines.append(f"| {title} (claim {claim}) | {invalid} of {sets} | {beyond} of {sets} |")
    return lines


def measure_groups(audits: int) -> list[str]:
    """Return a line for each kind: how often a true claim, epsilon 0, is refuted."""
    most = int(stats.binom.isf(_ALPHA, audits, 1.0 - CONFIDENCE))
    lines = [
        f"| rows | `groups=` | one row a run | rows taken for runs | allowed of {audits} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for runs in (20, 100, 400):
        counts = collections.Counter[str]()
        groups = np.repeat(np.arange(runs), SIZE // runs)
        for seed in range(FIRST_SEED, FIRST_SEED + audits):
            rng = np.random.default_rng(seed)
            sides = share_runs(rng, runs), share_runs(rng, runs)
            given = {"groups": groups, "groups_prime": groups + runs}
            counts["groups"] += audit(sides, 0.0, seed, **given).refuted is not False
            first = tuple(side[:: SIZE // runs] for side in sides)
            counts["one"] += audit(first, 0.0, seed).refuted is not False  # type: ignore[arg-type]
            counts["control"] += bool(audit(sides, 0.0, seed, arranged=True).refuted)
        title = f"{runs} runs of {SIZE // runs} records"
        lines.append(
            f"| {title} | {counts['groups']} | {counts['one']} | {counts['control']} | {most} |"
        )
    return lines


# Clean files.


def sort_by_column(rng: Random, x: int) -> Any:
    """Return rows sorted by a column of theirs."""
    rows = rng.normal(size=(SIZE, 3)) + x
    rows[:, 1] += rows[:, 0]
    return rows[np.argsort(rows[:, 0])]


def make_words(rng: Random, x: int) -> Any:
    """Return words of a list of 400, the first of them more often on x'."""
    ranks = np.minimum(rng.zipf(1.3, SIZE) - 1, 399)
    return [_WORDS[one] for one in np.where(rng.random(SIZE) < 0.3 * x, 0, ranks)]


_AMOUNTS: dict[str, Callable[[Random], Any]] = {
    "Laplace": lambda rng: rng.laplace(0.0, 10.0, SIZE),
    "Gaussian": lambda rng: rng.normal(0.0, 10.0, SIZE),
    "exponential": lambda rng: rng.exponential(10.0, SIZE),
    "uniform": lambda rng: rng.uniform(0.0, 50.0, SIZE),
    "Cauchy": lambda rng: 10.0 * rng.standard_cauchy(SIZE),
    "log-normal": lambda rng: rng.lognormal(2.0, 3.0, SIZE),
    "scales .3 and 100": lambda rng: rng.laplace(size=SIZE) * rng.choice([0.3, 100.0], SIZE),
    "whole and cents": lambda rng: np.where(
        rng.random(SIZE) < 0.5, np.rint(noise := rng.laplace(0.0, 10.0, SIZE)), noise
    ),
}
_WORDS = ["".join(np.random.default_rng([9, n]).choice(list("abcdefgh"), 7)) for n in range(400)]
_DAYS = np.arange("2023-01-01", "2024-12-31", dtype="datetime64[D]")
CLEAN: dict[str, Callable[[Random, int], Any]] = {
    "independent": lambda rng, x: x + rng.laplace(size=SIZE),
    "sorted": lambda rng, x: np.sort(x + rng.laplace(size=SIZE)),
    "sorted by a column": sort_by_column,
    "rounded": lambda rng, x: np.round(x + rng.normal(size=SIZE), 1),
    "clipped": lambda rng, x: np.clip(x + rng.normal(size=SIZE), -0.5, 0.5),
    "Zipf": lambda rng, x: rng.zipf(2.0, SIZE) + x,
    "Poisson": lambda rng, x: rng.poisson(3.0 + x, SIZE),
    "dates": lambda rng, x: _DAYS[rng.integers(365, size=SIZE) + 30 * x].tolist(),
    "words": make_words,
    "float16": lambda rng, x: (x + rng.normal(size=SIZE)).astype(np.float16),
    "frame with words": lambda rng, x: np.stack(
        [np.array(make_words(rng, x), dtype=object), rng.poisson(3.0 + x, SIZE)], axis=1
    ),
    "1,000 columns": lambda rng, x: x + rng.normal(size=(400, 1000)),
    **{
        f"amounts, no value on both sides, {title}": lambda rng, x, law=law: np.round(
            5000.0 - 1000.0 * x + law(rng), int(rng.integers(5))
        )
        for title, law in _AMOUNTS.items()
    },
}


def measure_clean(sets: int) -> tuple[list[str], int]:
    """Return a line for each kind, and how many clean pairs of files were doubted or refused."""
    lines, wrong = ["| files | doubted or refused |", "| --- | ---: |"], 0
    for title, make in CLEAN.items():
        found = 0
        for seed in range(FIRST_SEED, FIRST_SEED + sets):
            rng = np.random.default_rng(seed)
            sides = tuple(answer_rows("outputs", make(rng, x), "rows") for x in range(2))
            found += is_doubted(sides)  # type: ignore[arg-type]
        wrong += found
        lines.append(f"| {title} | {found} of {sets} |")
    return lines, wrong


# Shuffled halves of one sample, in files of every kind.

HALF = 1000
"""Rows per side."""
_HALVES_CONFIDENCE = 0.9
_HALVES_ALPHA = 1e-6
"""Significance of the binomial test of refuted halves."""


def draw_words(rng: Random, words: Sequence[str]) -> list[str]:
    """Return as many words as both halves have rows."""
    return rng.choice(words, 2 * HALF).tolist()


def write_each(pattern: str, values: Any) -> list[str]:
    """Return numbers in one format."""
    return [pattern.format(value) for value in values.tolist()]


def draw_laplace(rng: Random) -> Any:
    """Return as many numbers as both halves have rows."""
    return rng.laplace(size=2 * HALF)


def mix_spellings(rng: Random) -> list[str]:
    """Return numbers that are written in one of two ways by chance."""
    values = rng.integers(0, 9, 2 * HALF) + 0.5
    ways = rng.random(2 * HALF) < 0.5
    return [f"{x:.2f}" if way else f"{x}" for x, way in zip(values, ways, strict=True)]


def draw_objects(rng: Random) -> list[str]:
    """Return JSON objects with a key that some lack, and numbers in two spellings."""
    rows = zip(mix_spellings(rng), draw_laplace(rng), rng.random(2 * HALF) < 0.3, strict=True)
    return [f'{{"w": {a}{f", {chr(34)}o{chr(34)}: {b}" if has else ""}}}' for a, b, has in rows]


HALVES: dict[str, tuple[str, Callable[[Random], list[str]]]] = {
    "shortest digits": ("csv", lambda rng: write_each("{!r}", draw_laplace(rng))),
    "two decimals": ("csv", lambda rng: write_each("{:.2f}", draw_laplace(rng))),
    "%.18e": ("csv", lambda rng: write_each("{:.18e}", draw_laplace(rng))),
    "whole numbers": ("csv", lambda rng: write_each("{}", rng.poisson(30.0, 2 * HALF))),
    "12 digits": ("csv", lambda rng: write_each("{}", rng.integers(10**11, 10**12, 2 * HALF))),
    "20 digits": ("csv", lambda rng: [
        f"{a}{b:010d}" for a, b in rng.integers(10**9, 10**10, (2 * HALF, 2)).tolist()
    ]),
    "padded": ("csv", lambda rng: write_each("{:04d}", rng.integers(0, 2000, 2 * HALF))),
    "padded or not": ("csv", lambda rng: draw_words(rng, ["007", "7", "70"])),
    "decimals of 20 digits": ("csv", lambda rng: write_each("0.1234567890{:010d}", rng.integers(
        0, 10**10, 2 * HALF))),
    "words": ("csv", lambda rng: draw_words(rng, ["never", "weekly", "daily"])),
    "numbers with NA": ("csv", lambda rng: [
        "NA" if x < -2 else f"{x:.3f}" for x in draw_laplace(rng).tolist()
    ]),
    "dates": ("csv", lambda rng: list(map(str, _DAYS[rng.integers(365, size=2 * HALF)]))),
    "thousands": ("tsv", lambda rng: write_each("{:,}", rng.poisson(3000.0, 2 * HALF))),
    "percent": ("csv", lambda rng: write_each("{}%", rng.poisson(30.0, 2 * HALF))),
    "two spellings": ("csv", mix_spellings),
    "signed zeros": ("csv", lambda rng: write_each("{:.2f}", 0.02 * draw_laplace(rng))),
    "exponents": ("csv", lambda rng: draw_words(rng, ["1e10", "10000000000", "1E10", "2e10"])),
    "one odd cell": ("csv", lambda rng: [
        *write_each("{}", rng.poisson(30.0, 2 * HALF - 1)), "1_000"
    ]),
    "texts with blanks": ("txt", lambda rng: draw_words(rng, ["a", " a", "a b", "b"])),
    "numbers, lines": ("txt", lambda rng: write_each("{!r}", draw_laplace(rng))),
    "tabs": ("tsv", lambda rng: write_each("{:.3f}", draw_laplace(rng))),
    "UTF-16": ("utf16.csv", lambda rng: write_each("{:.3f}", draw_laplace(rng))),
    "gzip": ("csv.gz", lambda rng: write_each("{:.3f}", draw_laplace(rng))),
    "JSON objects": ("objects.jsonl", draw_objects),
    "JSON numbers": ("jsonl", lambda rng: write_each("{!r}", np.round(draw_laplace(rng), 1))),
}  # fmt: skip


def write_halves(folder: pathlib.Path, title: str, rng: Random) -> Sides:
    """Write the shuffled halves of one sample; a table has its columns in two orders."""
    end, draw = HALVES[title]
    cells = draw(rng)
    cells = [cells[place] for place in rng.permutation(2 * HALF)]
    paths = []
    for side in range(2):
        lines = cells[side * HALF : (side + 1) * HALF]
        if "csv" in end or "tsv" in end:
            sep = "\t" if "tsv" in end else ";"
            rest = rng.integers(9, size=HALF).tolist()
            pairs = [("w", "v"), *zip(lines, map(str, rest), strict=True)]
            lines = [sep.join(pair[:: 1 - 2 * side]) for pair in pairs]
        data = ("\n".join(lines) + "\n").encode("utf-16" if "16" in end else "utf-8")
        paths.append(folder / f"{side}.{end}")
        paths[-1].write_bytes(gzip.compress(data, 1) if end.endswith("gz") else data)
    return paths[0], paths[1]


def count_refuted_halves(title: str, audits: int, seed: int = FIRST_SEED) -> int:
    """Return how often the claim of epsilon 0 is refuted for halves of one sample."""
    refuted, folder = 0, pathlib.Path(_FOLDER.name)
    end = HALVES[title][0]
    column = None if end in ("txt", "jsonl") else "*"
    for each in range(seed, seed + audits):
        sides = write_halves(folder, title, np.random.default_rng(each))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refuted += bool(dpcore.audit_outputs(
                *sides, column=column, rows="independent", claim=0.0, arranged=True,
                confidence=_HALVES_CONFIDENCE, rng=each,
            ).refuted)  # fmt: skip
    return refuted


def limit_refuted_halves(audits: int) -> int:
    """Return the number of refuted halves that is exceeded with probability 1e-6."""
    return int(stats.binom.isf(_HALVES_ALPHA, audits, 1.0 - _HALVES_CONFIDENCE))


def measure_halves(audits: int) -> tuple[list[str], int]:
    """Return a line for each kind of files, and how many kinds are refuted too often."""
    most = limit_refuted_halves(audits)
    lines = [f"| files | refuted (at most {most}) |", "| --- | ---: |"]
    wrong = 0
    for title, (end, _) in HALVES.items():
        refuted = count_refuted_halves(title, audits)
        wrong += refuted > most
        lines.append(f"| {title}, .{end} | {refuted} of {audits} |")
    return lines, wrong


def is_doubted(sides: Sides) -> bool:
    """Return True if a check of columns, of repetitions or of neighbours alarms."""
    try:
        for side in sides:
            refuse_row_numbers(side, "outputs")
        refuse_clocks(sides)
    except ValueError:
        return True
    return bool(repeat_doubts_and_notes(sides)[0] or doubts_of_order(sides))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; return 1 if a clean file was doubted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=20, help="sets of files of each kind")
    parser.add_argument("--audits", type=int, default=200, help="audits with groups")
    parser.add_argument("--clean", type=int, default=250, help="clean pairs of files of each kind")
    parser.add_argument("--out", type=pathlib.Path, help="file of the tables")
    parser.add_argument("--halves", type=int, default=200, help="halves of each kind of files")
    settings = parser.parse_args(arguments)
    default = pathlib.Path(__file__).parent / "record" / "outputs.md"
    clean, wrong = measure_clean(settings.clean)
    halves, too_often = measure_halves(settings.halves)
    text = [
        "# Recorded outputs: what is accused, and what is not",
        "",
        f"{datetime.date.today()}, dpcore {dpcore.__version__}, path `{dpcore._core.cpu()}`, seeds",
        f"from {FIRST_SEED}. Remade by `python benches/record_outputs.py`. {SIZE:,} rows a side of",
        "equal laws; the attack takes the better half line of a number, confidence .95.",
        "",
        "## Columns that leak by what they are",
        "",
        *measure_refused(settings.sets),
        "",
        "## Rows that depend on each other",
        "",
        "Jitter of 1e-3 is reported only: a law of 400 narrow peaks looks the same.",
        "",
        *measure_dependent(settings.sets),
        "",
        "## Runs that share their noise, with groups",
        "",
        "How often the claim of epsilon 0, which is true, is refuted; the control says",
        "`arranged=True` of rows that are no runs.",
        "",
        *measure_groups(settings.audits),
        "",
        "## Clean files, of laws that differ between the sides",
        "",
        *clean,
        "",
        "## Shuffled halves of one sample, in files of every kind",
        "",
        f"How often the claim of epsilon 0 is refuted at confidence .9, {HALF:,} rows a side; a",
        "table has its columns in another order on each side. The limit is that of the binomial",
        "distribution at 1e-6.",
        "",
        *halves,
        "",
    ]
    (settings.out or default).write_text("\n".join(text))
    return int(wrong > 0 or too_often > 0)


if __name__ == "__main__":
    sys.exit(main())
