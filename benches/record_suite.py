"""Measure the test suite by stage, and its slowest tests; write benches/record/suite.md.

Usage: python benches/record_suite.py [--stages lint rust-test ...] [--all] [--out FILE]

A stage is a target of the Makefile; without options those of `make test`, with `--all` also those
that `make test-all` adds. Only the section "Measured now" is written: the rows of the runs before
issues were closed stay.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

import dpcore

ROOT = pathlib.Path(__file__).parent.parent
TARGET = ROOT / "benches/record/suite.md"
HEADING = "## Measured now"
SHORT_STAGES = ("lint", "rust-test", "smoke", "extras-test", "python-test")
FULL_STAGES = (
    "lint",
    "portable",
    "rust-test",
    "smoke",
    "benches",
    "docs",
    "all-extras",
    "all-python",
)
SLOWEST = 40


def measure_stage(stage: str, times: pathlib.Path) -> tuple[float, float, int]:
    """Run a target of the Makefile; return its CPU seconds, its seconds and its exit status."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "DPCORE_TEST_TIMES": str(times)}
    status = subprocess.run(["make", stage], cwd=ROOT, env=environment, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - start, status


def read_times(path: pathlib.Path) -> dict[str, float]:
    """Return the CPU seconds of each test, by its node id; those of a repeated test are added."""
    seconds: dict[str, float] = collections.defaultdict(float)
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        cpu, name = line.split("\t", 1)
        seconds[name] += float(cpu)
    return seconds


def format_section(stages: tuple[str, ...], folder: pathlib.Path) -> tuple[str, bool]:
    """Run the stages; return the section as Markdown, and whether all of them passed."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    lines = [
        HEADING, "",
        f"{datetime.date.today()}, commit {commit}, {os.cpu_count()} cores, "
        f"path `{dpcore._core.cpu()}`. Remade by `make record-suite`.", "",
        "| stage | CPU seconds | seconds | exit status |", "| --- | ---: | ---: | ---: |",
    ]  # fmt: skip
    rows: list[tuple[float, str, str]] = []
    passed = True
    for stage in stages:
        times = folder / f"{stage}.tsv"
        cpu, clock, status = measure_stage(stage, times)
        passed &= status == 0
        lines.append(f"| {stage} | {cpu:.0f} | {clock:.0f} | {status} |")
        rows += [(seconds, stage, name) for name, seconds in read_times(times).items()]
    rows.sort(reverse=True)
    lines += [
        "", f"The {SLOWEST} slowest of {len(rows):,} tests:", "",
        "| CPU seconds | stage | test |", "| ---: | --- | --- |",
    ]  # fmt: skip
    for seconds, stage, name in rows[:SLOWEST]:
        cell = name.replace("|", "\\|")
        lines.append(f"| {seconds:.1f} | {stage} | `{cell}` |")
    return "\n".join([*lines, ""]), passed


def main() -> int:
    """Measure and write; return 1 if a stage failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", nargs="+", help="targets of the Makefile")
    parser.add_argument("--all", action="store_true", help="the stages of make test-all")
    parser.add_argument("--out", type=pathlib.Path, default=TARGET)
    options = parser.parse_args()
    stages = tuple(options.stages or (FULL_STAGES if options.all else SHORT_STAGES))
    with tempfile.TemporaryDirectory() as folder:
        section, passed = format_section(stages, pathlib.Path(folder))
    earlier = options.out.read_text("utf-8") if options.out.exists() else "# The test suite\n"
    # A section ends where the next one begins.
    pattern = re.compile(rf"^{HEADING}$.*?(?=^## |\Z)", re.M | re.S)
    if pattern.search(earlier):
        text = pattern.sub(lambda _: section + "\n", earlier).rstrip() + "\n"
    else:
        text = f"{earlier.rstrip()}\n\n{section}"
    options.out.write_text(text, "utf-8")
    print(options.out)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
