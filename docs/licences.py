"""Write docs/reference/licences.md: the licences of the crates and packages that dpcore needs.

Usage: python docs/licences.py

Cargo states those of the crates, and the package index those of the Python packages: nothing is
installed. Versions are not in the tables, so that a table changes only with a name or a licence.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/licences.md"
LONGEST_LICENCE = 120
"""Characters of a licence's name: some packages state the whole text."""

TEXT = """\
# Licences of dependencies

dpcore has the licence Apache-2.0. dpcore needs crates (packages of Rust) and packages of Python,
which have their own licences. The tables below show the licence that each project states for
itself. The command `make licences` writes this page. Tools that only the developers of dpcore
install are not listed.

## Crates

These crates are compiled into the module `dpcore._core`, or are run when this module is compiled.
Some of them are used only on some operating systems.

{crates}

## Packages that are always installed

{required}

## Packages that an extra installs

An *extra* is an optional group of packages, such as `text` in `pip install 'dpcore[text]'`. The
last column names the extras that list the package. If this column is empty, another package of the
table needs the package. The packages of CUDA, the GPU software of NVIDIA, are installed together
with torch on Linux. Most of them have a licence of NVIDIA.

{optional}
"""


def list_crates() -> set[str]:
    """Return the names of the crates that the module needs, through Cargo.lock.

    The lock does not name features: crates that only the tests' features need are in the set, too.
    """
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    needs: dict[str, set[str]] = {}
    for crate in tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]:
        names = {name.split()[0] for name in crate.get("dependencies", [])}
        needs.setdefault(crate["name"], set()).update(names)
    return collect_reachable(manifest["dependencies"], needs)


def list_requirements() -> dict[str, set[str]]:
    """Return the extras of each direct requirement; a required package has the extra ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    requirements: dict[str, set[str]] = {}
    for extra, lines in extras.items():
        for name in (Requirement(line).name for line in lines if extra != "all"):
            requirements.setdefault(canonicalize_name(name), set()).add(extra)
    return requirements


def collect_reachable(names: Iterable[str], needs: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names and all that they need, directly or through others."""
    waiting, reachable = [*names], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in reachable:
            reachable.add(name)
            waiting += needs.get(name, ())
    return reachable


def read_crate_licences() -> dict[str, str]:
    """Return the licence of every crate of Cargo.lock, as its manifest states it."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--all-features"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    crates = json.loads(output)["packages"]
    return {crate["name"]: crate["license"].replace("/", " OR ") for crate in crates}


def read_package_metadata() -> dict[str, dict[str, Any]]:
    """Return the metadata of every package that dpcore with all extras would install here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [lines for extra, lines in project["optional-dependencies"].items() if extra != "all"]
    lines = [line for lines in (project["dependencies"], *extras) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        subprocess.run(
            [
                sys.executable, "-m", "pip", "install", "--quiet", "--dry-run",
                "--ignore-installed", "--constraint", ROOT / "constraints.txt",
                "--report", report, *lines,
            ],
            check=True,
        )  # fmt: skip
        packages = [entry["metadata"] for entry in json.loads(report.read_text("utf-8"))["install"]]
    return {canonicalize_name(package["name"]): package for package in packages}


def name_licence(metadata: Mapping[str, Any]) -> str:
    """Return the licence that a package states: an expression, a short text or a classifier."""
    text = metadata.get("license") or ""
    if len(text) > LONGEST_LICENCE or "\n" in text or text == "UNKNOWN":
        text = ""
    classifiers = [line for line in metadata.get("classifier", []) if line.startswith("License ::")]
    named = ", ".join(line.rpartition(" :: ")[2] for line in classifiers)
    return metadata.get("license_expression") or text or named or "not stated"


def list_needs(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what a package requires here without any of its extras."""
    for requirement in map(Requirement, metadata.get("requires_dist", [])):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield canonicalize_name(requirement.name)


def format_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table of Markdown."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def make_page() -> str:
    """Return the text of the page."""
    crates, packages = read_crate_licences(), read_package_metadata()
    requirements = list_requirements()
    needs = {name: {*list_needs(metadata)} for name, metadata in packages.items()}
    direct = [name for name, extras in requirements.items() if "" in extras]
    required = collect_reachable(direct, needs)
    licences = {name: name_licence(metadata) for name, metadata in packages.items()}
    return TEXT.format(
        crates=format_table(
            ("crate", "licence"), ((name, crates[name]) for name in sorted(list_crates()))
        ),
        required=format_table(
            ("package", "licence"),
            ((name, licences[name]) for name in sorted(required & {*packages})),
        ),
        optional=format_table(
            ("package", "licence", "extra"),
            (
                (name, licences[name], ", ".join(sorted(requirements.get(name, ()))))
                for name in sorted({*packages} - required)
            ),
        ),
    )


if __name__ == "__main__":
    PAGE.write_text(make_page(), "utf-8")
