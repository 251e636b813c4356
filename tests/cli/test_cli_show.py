"""The command line: lists, experiments, the environment, and help."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest

import dpcore
from dpcore import _core
from dpcore.cli.audits import SYSTEMS
from dpcore.cli.options import AuditArguments


def plain(text):
    """Help without the colours that typer forces on some CI services."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_list(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("audit --list")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    for name, cls in SYSTEMS.items():
        assert name in out
        assert cls.__name__ in out
    rows = json.loads(run("audit --list --json")[1])
    assert [row["name"] for row in rows] == list(SYSTEMS)
    for row in rows:
        cls = SYSTEMS[row["name"]]
        assert row["options"] == [f"--{field.name}" for field in fields(cls)]
        assert (row["norm"], row["sound"], row["fault"], row["source"]) == (
            cls.norm, cls.sound, cls.fault, cls.source,
        )  # fmt: skip


def test_plot(run, tmp_path):
    status, _, err = run(f"audit laplace --epsilon 1 --trials 100 --plot {tmp_path / 'a.svg'}")
    assert status == 0
    assert "wrote" in err
    assert "<svg" in (tmp_path / "a.svg").read_text()


class Remade:
    """The result of an experiment."""

    def __init__(self, partial):
        self.partial = partial

    def table(self):
        """Return the table."""
        return "the table"

    def to_dict(self):
        """Return plain data."""
        return {"partial": self.partial}


@pytest.mark.parametrize("partial", [False, True])
def test_reproduce(run, tmp_path, monkeypatch, partial):
    asked = []

    def reproduce(name, out, **options):
        asked.append((name, {key: value for key, value in options.items() if value}))
        (out / f"{name}.json").write_text("{}")
        return Remade(partial)

    monkeypatch.setattr("dpcore.experiments.reproduce", reproduce)
    words = f"reproduce published-systems --out {tmp_path / 'a'} --trials 1e3 --seed 5 --threads 1"
    status, out, _ = run(words)
    assert status == (130 if partial else 0)
    assert asked == [("published-systems", {"trials": "1e3", "seed": 5, "threads": 1})]
    assert "the table" in out
    assert str(tmp_path / "a" / "published-systems.json") in out
    assert json.loads(run(f"{words} --json")[1]) == {"partial": partial}


def test_reproduce_lists_the_experiments(run):
    from dpcore.experiments import NAMES

    for words in ("reproduce", "reproduce --list"):
        status, out, _ = run(words)
        assert status == 0
        assert all(name in out for name in NAMES)
    assert [row["name"] for row in json.loads(run("reproduce --json")[1])] == list(NAMES)


def test_info(run):
    status, out, _ = run("info")
    assert status == 0
    assert dpcore.__version__ in out
    assert _core.cpu() in out
    found = json.loads(run("info --json")[1])
    assert (found["version"], found["cpu"]) == (dpcore.__version__, _core.cpu())
    assert (found["cpus"], found["threads"]) == (_core.cpus(), _core.cores())


def test_version(run):
    assert run("--version") == (0, f"dpcore {dpcore.__version__}\n", "")


@pytest.mark.parametrize("command", ["", "audit", "reproduce", "info"])
def test_help_has_an_example_and_fits(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = run(f"{command} --help")
    out = plain(out)
    assert (status, err) == (0, "")
    assert "Examples" in out
    assert f"  dpcore {command}".rstrip() in out
    assert "Exit status" in out
    assert max(map(len, out.splitlines())) <= 80
    assert run(f"{command} -h")[0] == 0


def test_audit_help_names_every_option(run):
    out = plain(run("audit --help")[1])
    names = {field.name for field in fields(AuditArguments)} - {"target", "as_json"}
    for name in names | {"json", "list", "traceback", "no_progress"}:
        assert re.search(rf"--{name.replace('_', '-')}\b", out), name


def test_without_words_the_help_and_2(run):
    status, out, err = run("")
    assert (status, err) == (2, "")
    assert "Examples" in plain(out)
