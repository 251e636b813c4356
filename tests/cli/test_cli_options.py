"""The command line: every option is declared once, and errors are told apart by their argument."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from contextlib import nullcontext
from dataclasses import fields
from types import SimpleNamespace

import pytest
from shared_extras import needs

import dpcore
from dpcore import _core, errors
from dpcore.cli import options
from dpcore.cli.audits import SYSTEMS, connect_to_dask_cluster
from dpcore.cli.endings import Usage, to_usage_errors

ARGUMENTS = [
    (options.AuditArguments, dpcore.audit, {"mechanism", "pair", "executor", "rng"}),
    # Of files, --groups names the column of both.
    (options.OutputsArguments, dpcore.audit_outputs,
     {"outputs", "outputs_prime", "pair", "rng", "groups_prime"}),
    (options.PlanArguments, dpcore.plan, {"mechanism", "pair", "rng"}),
    (options.TraceArguments, dpcore.trace, {"f", "pair", "rng"}),
]  # fmt: skip
"""Options, their function, and its arguments that no option passes on: inputs, and no text."""


@pytest.mark.parametrize(("kind", "function", "own"), ARGUMENTS)
def test_every_argument_is_an_option(kind, function, own):
    named = {field.name for field in fields(kind)}
    missing = sorted(set(inspect.signature(function).parameters) - named - own)
    assert not missing, f"{kind.__name__} needs an option for {missing}"
    assert "seed" in named


def test_every_option_of_plan_is_an_argument():
    described = {field.name for field in fields(options.MechanismArguments)}
    named = {field.name for field in fields(options.PlanArguments)} - described
    assert named - {"seed", "plot", "as_json"} <= set(inspect.signature(dpcore.plan).parameters)


def test_every_argument_of_a_system_is_an_option():
    named = {field.name for field in fields(options.AuditArguments)}
    for system in SYSTEMS.values():
        missing = sorted({field.name for field in fields(system)} - named)
        assert not missing, f"AuditArguments needs an option for {missing} of {system.__name__}"


def test_the_defaults_of_options_are_those_of_the_arguments():
    spelled = {options.AuditArguments: {"start": "0", "attack": "auto"}}
    for kind, function, _ in ARGUMENTS:
        parameters = inspect.signature(function).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        defaults |= spelled.get(kind, {})
        for field in fields(kind):
            repeated = ("column", "exclude", "dtype")
            if field.name in defaults and field.name not in (*repeated, "rows"):
                assert field.default == defaults[field.name], field.name


def test_options_are_spelled_as_their_arguments():
    assert options.OPTIONS["x_prime"] == "--x-prime"
    assert options.OPTIONS["rng"] == options.OPTIONS["seed"] == "--seed"
    assert (options.OPTIONS["null"], options.OPTIONS["as_json"]) == ("--null", "--json")
    assert "target" not in options.OPTIONS


@pytest.mark.parametrize("raised", [
    lambda: errors.real("count_share", 2.0, high=1.0),
    lambda: errors.real("count_share", "2"),
    lambda: errors.choice("count_share", 3, ("a",)),
    lambda: errors.integer("count_share", -1, 0),
])  # fmt: skip
def test_an_error_knows_its_argument(raised):
    with pytest.raises((TypeError, ValueError)) as caught:
        raised()
    error = caught.value
    # The built-in exceptions themselves, for whoever asks for their class.
    assert type(error) in (TypeError, ValueError)
    assert error.argument == "count_share"
    assert pickle.loads(pickle.dumps(error)).argument == "count_share"
    with pytest.raises(Usage, match=r"^--count-share must be"), to_usage_errors():
        raise error


def test_a_message_is_never_read():
    """Who writes the same words, but is not dpcore, is quoted as it stands."""
    with pytest.raises(Usage, match=r"^trials must be lucky \(null=True\)$"), to_usage_errors():
        raise ValueError("trials must be lucky (null=True)")


def test_a_part_of_an_argument_and_what_a_message_proposes():
    with pytest.raises(Usage, match=r"^--guesses in must be"), to_usage_errors():  # noqa: SIM117
        with errors.tag_errors("guesses"):
            errors.integer("guesses in", -1, 0)
    error = ValueError("pair must be near (neighbour=L1(1.0)), or null=True, or claim=, said")
    text = r"^pair must be near \(--neighbour l1=1\.0\), or --null, or --claim, said$"
    with pytest.raises(Usage, match=text), to_usage_errors():
        raise errors.tag_error(error, "pair")


@pytest.mark.extras
def test_workers_that_are_killed_while_they_start_are_waited_for(monkeypatch):
    dask, given, key = needs("dask", "distributed"), [], "distributed.deploy.lost-worker-timeout"

    class Client(nullcontext):
        def __init__(self, **options):
            super().__init__(self)
            given.append(options)

    monkeypatch.setattr("distributed.Client", Client)
    before = dask.config.get(key)
    for address, sent in (("local:2", "n_workers"), ("tcp://here:8786", "address")):
        with connect_to_dask_cluster(address) as client:
            assert isinstance(client, Client)
            assert dask.config.get(key) == "5 minutes" != before
        assert dask.config.get(key) == before
        assert sent in given.pop()
    with connect_to_dask_cluster(None) as client:
        assert (client, given) == (None, [])


# The command line: lists, experiments, the environment, and help.


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
        assert all(row[name] == getattr(cls, name) for name in ("norm", "sound", "fault", "source"))


def test_plot(run, tmp_path):
    status, _, err = run(f"audit laplace --epsilon 1 --trials 100 --plot {tmp_path / 'a.svg'}")
    assert status == 0
    assert "wrote" in err
    assert "<svg" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize("partial", [False, True])
def test_reproduce(run, tmp_path, monkeypatch, partial):
    asked, record = [], {"partial": partial}

    def reproduce(name, out, **options):
        asked.append((name, {key: value for key, value in options.items() if value}))
        (out / f"{name}.json").write_text("{}")
        return SimpleNamespace(table=lambda: "the table", to_dict=lambda: record, **record)

    monkeypatch.setattr("dpcore.experiments.reproduce", reproduce)
    words = f"reproduce published-systems --out {tmp_path / 'a'} --trials 1e3 --seed 5 --threads 1"
    status, out, _ = run(words)
    assert status == (130 if partial else 0)
    assert asked == [("published-systems", {"trials": "1e3", "seed": 5, "threads": 1})]
    assert "the table" in out
    assert str(tmp_path / "a" / "published-systems.json") in out
    assert json.loads(run(f"{words} --json")[1]) == record


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
    names = {field.name for field in fields(options.AuditArguments)} - {"target", "as_json"}
    for name in names | {"json", "list", "traceback", "no_progress"}:
        assert re.search(rf"--{name.replace('_', '-')}\b", out), name


def test_without_words_the_help_and_2(run):
    status, out, err = run("")
    assert (status, err) == (2, "")
    assert "Examples" in plain(out)
