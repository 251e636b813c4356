"""What is installed, shipped and run by CI: extras, classifiers, source distribution, workflows."""

from __future__ import annotations

import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import licences
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dpcore
from dpcore.experiments.released_libraries.cases import ENVIRONMENTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
CLASSIFIERS = PROJECT["project"]["classifiers"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOWS = {
    path.name: path.read_text("utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")
}

FOLDERS = ("tests", "benches", "docs", "examples", ".cargo", ".github")
MADE = ("__pycache__", "gallery", "generated")


def asked(text):
    """The extras that a text tells a reader to install."""
    return {name for found in re.findall(r"dpcore\[([\w,]+)\]", text) for name in found.split(",")}


def test_the_extra_of_all_is_every_other_extra():
    [everything] = EXTRAS["all"]
    assert asked(everything) == set(EXTRAS) - {"all"}
    assert everything == f"dpcore[{','.join(sorted(asked(everything)))}]"


def test_every_extra_that_a_message_or_a_page_asks_for_exists():
    folders = (ROOT / "docs", Path(dpcore.__file__).parent)
    files = [
        file for folder in folders for file in folder.rglob("*") if file.suffix in (".py", ".md")
    ]
    found = set().union(*(asked(file.read_text("utf-8")) for file in files))
    assert {"torch", "text", "classifier"} <= found <= set(EXTRAS)
    # The control: what is asked for is read from the text.
    assert asked("pip install 'dpcore[torch,nothing]'") == {"torch", "nothing"}


def test_one_version_stands_everywhere():
    version = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert version[1] == CARGO["package"]["version"] == dpcore._core.__version__
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def minor(version):
    return int(version.split(".")[1].rstrip("t"))


def test_every_python_of_the_classifiers_is_run_by_ci():
    named = [name.rsplit(" ", 1)[1] for name in CLASSIFIERS if re.search(r":: 3\.\d+$", name)]
    tested = set(re.findall(r'python: "([\d.]+)"', WORKFLOWS["test.yml"]))
    assert set(named) == tested
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert named == [f"3.{n}" for n in range(minor(lowest), minor(named[-1]) + 1)]
    assert sys.version_info >= (3, minor(lowest))


@pytest.mark.parametrize(
    ("system", "runner"), [("Linux", "ubuntu"), ("MacOS", "macos"), ("Windows", "windows")]
)
def test_every_system_of_the_classifiers_is_run_by_ci(system, runner):
    assert any(name.startswith("Operating System") and system in name for name in CLASSIFIERS)
    for name in ("test.yml", "wheels.yml"):
        assert f"os: {runner}-" in WORKFLOWS[name]


def test_the_oldest_rust_is_run_by_ci():
    assert f'toolchain: "{CARGO["package"]["rust-version"]}.0"' in WORKFLOWS["test.yml"]


def test_every_workflow_calls_targets_that_exist_and_one_version_of_an_action():
    everything = "\n".join(WORKFLOWS.values())
    lines = re.findall(r"run: make (.+)", everything)
    called = {name for line in lines for name in line.split() if "=" not in name}
    assert called >= {"test", "search", "docs"}
    assert all(re.search(rf"^{name}:", MAKEFILE, re.M) for name in called)
    actions = {}
    for action, version in re.findall(r"uses: ([^@\s]+)@?(.*)", everything):
        actions.setdefault(action, set()).add(version)
    assert len(actions) == 7
    assert {action: versions for action, versions in actions.items() if len(versions) > 1} == {}
    # A tag can be moved to another commit, which then runs with the rights of the workflow.
    pin = re.compile(r"[0-9a-f]{40} # (v\d+\.\d+\.\d+|master)")
    assert not pin.fullmatch("v7")
    assert [action for action, [version] in actions.items() if not pin.fullmatch(version)] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_workflow_may_write_to_the_repository(name):
    assert "\npermissions: { contents: read }\n" in WORKFLOWS[name]


# The list of versions and hashes, and the licences.

LOCKED = (ROOT / "constraints.txt").read_text("utf-8")


def test_every_package_of_the_list_has_hashes():
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCKED, flags=re.M).strip())
    pattern = re.compile(r"[\w.-]+==[^ ]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert len(entries) > 150
    assert [entry for entry in entries if not pattern.fullmatch(entry)] == []
    assert not pattern.fullmatch("numpy==2.4.6")


def test_the_list_holds_every_requirement_in_a_version_that_is_allowed():
    versions = dict(re.findall(r"^([\w.-]+)==([^ ]+)", LOCKED, re.M))
    lines = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    lines += [line for extra, needs in EXTRAS.items() if extra != "all" for line in needs]
    groups = PROJECT["dependency-groups"]
    lines += [line for name, group in groups.items() if name != "field" for line in group]
    requirements = [Requirement(line) for line in lines]
    assert {requirement.name for requirement in requirements} >= {"maturin", "numpy", "pip"}
    for requirement in requirements:
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_released_packages_have_lock_files_with_hashes():
    folder = ROOT / "benches/released_libraries/locks"
    assert {path.stem for path in folder.iterdir()} == {*ENVIRONMENTS}
    for name, packages in ENVIRONMENTS.items():
        text = (folder / f"{name}.txt").read_text("utf-8")
        entries = re.split(r"\n(?=\S)", text.strip())
        pattern = re.compile(r"[\w.-]+==[^ ]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")
        assert [entry for entry in entries if not pattern.fullmatch(entry)] == []
        versions = dict(re.findall(r"^([\w.-]+)==([^ ]+)", text, re.M))
        assert {*packages} <= {*versions}
        for requirement in map(Requirement, PROJECT["dependency-groups"]["field"]):
            if name == "field":
                version = versions[canonicalize_name(requirement.name)]
                assert requirement.specifier.contains(version), requirement


def test_ci_installs_from_the_list_alone():
    everything = "\n".join([MAKEFILE, *(WORKFLOWS[name] for name in ("test.yml", "test-all.yml"))])
    lines = re.findall(r"(?:-m pip|\$\(PIP\)) (?:--\S+ )*(\S.*)", everything)
    lines = [line for line in lines if re.match(r"install|\$\(INSTALL\)", line)]
    listed = ("$(INSTALL)", "--constraint constraints.txt", "requirements.txt", "pip.txt")
    # What makes the list, what tests the oldest versions, and the package without its requirements.
    others = {
        "install uv", "install --upgrade 'pip>=25.1'", "install \\",
        "install --no-deps --no-build-isolation --editable .",
    }  # fmt: skip
    assert {line for line in lines if not any(words in line for words in listed)} == others


def test_the_page_of_licences_names_every_crate_and_requirement():
    _, *parts = (ROOT / "docs/reference/licences.md").read_text("utf-8").split("| --- |\n")
    pattern = re.compile(r"^\| (?!package)(\S+) \| ([^|]+) \|", re.M)
    crates, required, optional = (dict(pattern.findall(part)) for part in parts)
    assert set(crates) == licences.list_crates()
    requirements = licences.list_requirements()
    assert {name for name, extras in requirements.items() if "" in extras} <= set(required)
    assert set(requirements) <= {*required, *optional}
    # The terms that `cargo deny` allows are enough for each crate.
    terms = tomllib.loads((ROOT / ".cargo/deny.toml").read_text("utf-8"))["licenses"]["allow"]
    assert [name for name, text in crates.items() if not is_allowed(text, terms)] == []
    assert not is_allowed("GPL-3.0-only OR (MIT AND GPL-3.0-only)", terms)


def is_allowed(expression, terms):
    """Whether terms satisfy an SPDX expression."""
    words = {"AND": "and", "OR": "or"}
    pattern = r"[\w.-]+(?: WITH [\w.-]+)?"
    return eval(re.sub(pattern, lambda word: words.get(word[0], str(word[0] in terms)), expression))


# The source distribution: what is not there cannot build or test itself.


def shipped(file):
    """Whether a pattern of the source distribution, or of the crate in it, takes a file."""
    patterns = [entry["path"] for entry in PROJECT["tool"]["maturin"]["include"]]
    patterns += [pattern.removeprefix("/") for pattern in CARGO["package"]["include"]]
    return any(fnmatch(file, pattern.replace("**/", "*")) for pattern in patterns)


def test_all_that_builds_and_tests_the_package_is_in_the_source_distribution():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.is_file()]
    names = [file.relative_to(ROOT).as_posix() for file in files if not {*MADE} & {*file.parts}]
    names += ["Makefile", "CHANGELOG.md", "CITATION.cff", "constraints.txt", "rustfmt.toml"]
    assert len(names) > 250
    assert [name for name in names if not shipped(name)] == []
    assert not shipped("tests/reference.bin")
    assert not shipped("out/report.html")


def test_only_the_source_distribution_holds_more_than_the_package():
    assert {entry["format"] for entry in PROJECT["tool"]["maturin"]["include"]} == {"sdist"}


def test_every_fault_that_is_planted_lies_in_a_file_that_exists():
    config = tomllib.loads((ROOT / ".cargo/mutants.toml").read_text("utf-8"))
    found = {glob: [*ROOT.glob(glob)] for glob in config["examine_globs"]}
    folders = {Path(glob).parts[1].removesuffix(".rs") for glob, files in found.items() if files}
    assert folders == {"math", "random", "mechanisms", "run", "neighbours", "sensitivity"}
