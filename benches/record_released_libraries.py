"""Environments, records and page of the experiment `released-libraries`.

    python benches/record_released_libraries.py environments [NAME ...]
    python benches/record_released_libraries.py records [PACKAGE ...]
    python benches/record_released_libraries.py classifier
    python benches/record_released_libraries.py page

`environments` makes a virtual environment for each lock file, in which every package has the hash
of the lock file. `nprr` is compiled: it needs a C++ compiler, CMake and the headers of Boost.
`smartnoise` and `tmlt` need Java 17 for some of their rows. `records` audits the packages, slow
cases included, and writes a file for each. `classifier` audits the rows with a small bound again,
with boosted trees. `page` builds the page from the records only.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dpcore.attacks import Classifier
from dpcore.experiments.released_libraries import Config, Row, run
from dpcore.experiments.released_libraries.cases import ENVIRONMENTS, PACKAGES, list_mechanisms
from dpcore.experiments.released_libraries.experiment import FOLDER, RECORD_FORMAT, read_records
from dpcore.experiments.released_libraries.worker import build_mechanism, run_audit
from dpcore.report.rows import format_epsilon

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / FOLDER
CLASSIFIER_ROWS = DATA / "classifier.json"
PAGE = ROOT / "docs/explain/released-libraries.md"
COMPILED = {"nprr": ("pybind11<3", "setuptools<70", "cmake<4", "ninja", "wheel")}
"""What an environment needs to compile a package that has no wheels."""


def make_environments(names: Sequence[str]) -> None:
    for name in names or ENVIRONMENTS:
        folder = DATA / "environments" / name
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        if name in COMPILED:
            subprocess.run([*pip, *COMPILED[name]], check=True)
            pip.append("--no-build-isolation")
        lock = DATA / "locks" / f"{name}.txt"
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", lock], check=True)


def write_records(packages: Sequence[str]) -> None:
    """Audit packages and write `PACKAGE-VERSION.json`; the file of another version is kept."""
    for package in packages or PACKAGES:
        result = run(Config(packages=(package,), data=str(DATA), slow=True))
        rows = [row.to_dict() for row in result.rows]
        versions = {row.version for row in result.rows}
        if versions == {""}:
            print(f"{package} is not installed: its record was not written")
            continue
        record = {"format": RECORD_FORMAT, "package": package, "rows": rows}
        path = DATA / "records" / f"{package}-{max(versions)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        print(f"{package}: {len(rows)} rows", *result.differences, sep="\n")


CLASSIFIER_TRIALS = 50_000
"""Most draws per side of an audit with boosted trees."""

CLASSIFIER_SECONDS = 20.0
"""Longest time of all draws of a row that is audited with boosted trees."""


def write_classifier_rows() -> None:
    """Audit the rows again that certify less than half of their claim, with boosted trees.

    A small bound may mean that the attack is weak. A learner of another library tests this.
    """
    cases = {(case.package, case.name): case for name in PACKAGES for case in list_mechanisms(name)}
    entries = []
    for row in read_records(DATA / "records"):
        case = cases.get((row.package, row.name))
        if case is None or row.verdict != "not refuted" or row.certified >= 0.5 * row.claim:
            continue
        if row.draw_seconds * 2 * row.trials > CLASSIFIER_SECONDS:
            continue
        case = dataclasses.replace(case, attack=Classifier)
        try:
            mechanism = build_mechanism(case)
            report = run_audit(case, mechanism, {"trials": CLASSIFIER_TRIALS, "seed": 0}, run=3)
        # The package is not installed here, or the classifier does not accept its outputs.
        except (ImportError, TypeError, ValueError) as error:
            print(f"{row.package} {row.name}: {error}")
            continue
        entries.append({
            "package": row.package, "version": row.version, "name": row.name, "claim": row.claim,
            "certified": row.certified, "classifier": report.epsilon_lower,
            "trials": report.trials, "verdict": report.verdict,
        })  # fmt: skip
        print(entries[-1], flush=True)
    CLASSIFIER_ROWS.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def describe_classifier_rows() -> list[str]:
    """Return the lines of the page about the audits with boosted trees."""
    rows = json.loads(CLASSIFIER_ROWS.read_text("utf-8"))
    refuted = sum(row["verdict"] == "refuted" for row in rows)
    larger = sum(row["classifier"] > row["certified"] + 0.1 for row in rows)
    return [
        f"{len(rows)} rows that certify less than half of their claim were audited again with",
        "an attack by boosted trees (`dpcore.attacks.Classifier`), with at most",
        f"{CLASSIFIER_TRIALS:,} draws on each of the two inputs.",
        f"This attack refuted {refuted} of the claims.",
        f"In {larger} rows, its bound is larger than the first bound by more than .1.",
    ]


def make_page(rows: Sequence[Row], today: datetime.date) -> str:
    """Build the page. A row whose fault is not public yet is only counted."""
    public = [row for row in rows if row.is_publishable(today)]
    hidden = len(rows) - len(public)
    verdicts = Counter(row.verdict for row in public)
    packages = {row.package: None for row in rows}
    dates = sorted(row.date for row in rows if row.date)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    lines = [
        "# Released libraries",
        "",
        "The experiment `released-libraries` audits mechanisms of released packages. It calls each",
        "mechanism as users of the package do, and tests the claim of the authors of the package.",
        "The code of the packages is not changed. This page is built",
        "from the records in `benches/released_libraries/records`, which were made",
        f"on {dates[0]}." if dates[:1] == dates[-1:] else f"from {dates[0]} to {dates[-1]}.",
        f"This page was built on {today.isoformat()}.",
        "",
        f"The experiment calls mechanisms of {len(packages)} packages, and has one row for each of",
        f"the {len(rows)} calls.",
        f"In {hidden} rows the experiment found a fault that is not public yet. The authors "
        "are informed before the page names these rows."
        if hidden
        else "",
        f"Verdicts of the other rows: {counts}.",
        'The verdict "not refuted" does not prove the claim, because each row tries one pair of',
        'inputs and one attack. The verdict "violation" means that two audits with independent',
        'seeds refuted the claim, each with 99.9 % confidence. The verdict "relation unclear"',
        "means that the claim was refuted, but that the package does not state which inputs are",
        'neighbours. The verdict "failed" means that the call did not return outputs.',
        *describe_classifier_rows(),
        "",
        "```",
        "dpcore reproduce released-libraries --packages numpy,scipy",
        "```",
        "",
        "The command audits those of the named packages that are installed, and shows which",
        "verdicts differ from the record. Each version of a package has its own rows. The command",
        "prints a table with the columns that are explained below. Its JSON file also has the",
        "neighbouring relation, the pair of inputs, and the place where the claim is stated.",
        "",
        "In the tables, *draws* is the number of outputs that were counted on each of the two",
        "inputs. *Certified* is a lower bound on epsilon at 95 % confidence, and *share* is this",
        "bound divided by the claimed epsilon. *Rounding* is the bound from an event that reads",
        "the last bits of the outputs. The column *trace* shows the privacy loss that",
        "[`dpcore.trace`](../howto/which-line-leaks.md) computes. This loss is not certified. The",
        "page shows this loss only if it is at most the claimed epsilon.",
    ]
    named = [row for row in public if row.verdict not in ("not refuted", "failed")]
    if named:
        lines += ["", "## Refuted on these pairs", ""]
        for row in named:
            lines += [f"- {_describe_row(row)}"]
    failed = [row for row in public if row.failure]
    if failed:
        lines += ["", "## Rows that failed", ""]
        lines += [f"- {row.package} {row.version}, `{row.name}`: {row.failure}" for row in failed]
    lines += ["", "## All rows", ""]
    for package in packages:
        own = [row for row in public if row.package == package]
        if not own:
            continue
        version = ", ".join(sorted({row.version for row in own}))
        lines += [f"### {package} {version}", ""]
        lines += [
            "| mechanism | claim | certified | share | verdict | draws | µs per draw | rounding "
            "| event | trace |",
            "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- | --- |",
        ]
        lines += [_format_row(row) for row in own] + [""]
    return "\n".join(line for line in lines).rstrip("\n") + "\n"


def _describe_row(row: Row) -> str:
    loss = "" if row.true_loss is None else f" True loss: {format_epsilon(row.true_loss)}."
    hits = " and ".join(f"{k:,}" for k in row.hits)
    parts = [
        f"**{row.package} {row.version}, `{row.name}`**: {row.verdict}.",
        f"Claim: {_format_claim(row)} ({row.stated}). Neighbours: {row.relation}.",
        f"Refuted on this pair: `{row.pair}`.{loss} Event: {row.event}; {hits} of {row.trials:,}",
        f"outputs on x and on x'. Counted on {row.date}.",
        f"Reason: {row.cause}." if row.cause else "",
        f"Report: <{row.disclosure}>." if row.disclosure.startswith("https://") else "",
        f"Mended in version {row.fixed}." if row.fixed else "",
        f"Reply of the maintainers: {row.reply}." if row.reply else "",
    ]
    return " ".join(filter(None, parts))


def _format_claim(row: Row) -> str:
    return f"({row.claim:g}, {row.delta:g})" if row.delta else f"{row.claim:g}"


def _format_row(row: Row) -> str:
    share = "" if row.share is None else f"{100 * row.share:.0f} %"
    certified = "" if row.certified is None else format_epsilon(row.certified)
    seconds = "" if row.draw_seconds is None else f"{1e6 * row.draw_seconds:.3g}"
    rounding = "" if row.rounding is None else format_epsilon(row.rounding)
    trials = f"{row.trials:,}" if row.trials else ""
    trace = ""
    # A fault that only a trace shows is under the same embargo as a violation.
    if row.traced_loss is not None and row.traced.startswith("within"):
        place = f" at {row.traced_line}" if row.traced_line else ""
        trace = f"{format_epsilon(row.traced_loss)}{place}"
    cells = (
        f"`{row.name}`", _format_claim(row), certified, share, row.verdict, trials, seconds,
        rounding, row.event, trace,
    )  # fmt: skip
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step", choices=("environments", "records", "classifier", "page"))
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if asked.step == "environments":
        make_environments(asked.names)
    elif asked.step == "records":
        write_records(asked.names)
    elif asked.step == "classifier":
        write_classifier_rows()
    else:
        today = datetime.datetime.now(datetime.UTC).date()
        PAGE.write_text(make_page(read_records(DATA / "records"), today), encoding="utf-8")


if __name__ == "__main__":
    main()
