"""Commands other than audits: lists, experiments, and the environment."""

from __future__ import annotations

import inspect
import json
import os
import platform
import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__, _core, experiments
from ..streams import threads_of
from .audits import SYSTEMS
from .options import ExperimentArguments
from .status import INTERRUPTED, NOT_REFUTED, Usage, report_bad_usage

__all__ = [
    "print_environment",
    "print_experiments",
    "print_systems",
    "run_experiment",
]


def print_systems(as_json: bool) -> int:
    """Print the published systems."""
    if as_json:
        print(json.dumps([_list_facts(name) for name in SYSTEMS]))
        return NOT_REFUTED
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("name, class", "claim\nnorm", "sound?", "fault, source", show_lines=True)
    for name in SYSTEMS:
        facts = _list_facts(name)
        options = "\n".join(facts["options"])
        table.add_row(
            Text.assemble((name, "bold"), "\n", facts["class"], "\n", (options, "dim")),
            _format_norm(facts["norm"]),
            Text("yes", "green") if facts["sound"] else Text("no", "red"),
            Text.assemble(facts["fault"], "\n", (facts["source"], "dim")),
        )
    Console(highlight=False).print(table)
    print(
        "claim norm: inputs at most the sensitivity apart in it are neighbours\n"
        "(any: every two inputs are, since the system clips them)"
    )
    return NOT_REFUTED


def _list_facts(name: str) -> dict[str, Any]:
    cls = SYSTEMS[name]
    return {
        "name": name,
        "class": cls.__name__,
        "norm": cls.norm,
        "sound": cls.sound,
        "fault": cls.fault,
        "source": cls.source,
        "options": [f"--{field.name}" for field in fields(cls)],
    }


def _format_norm(norm: str | None) -> str:
    return "any" if norm is None else norm.replace("l", "L", 1)


def print_experiments(as_json: bool) -> int:
    """Print the experiments."""
    about = {name: (inspect.getdoc(experiments.get(name)) or "") for name in experiments.NAMES}
    about = {name: " ".join(text.partition("\n\n")[0].split()) for name, text in about.items()}
    if as_json:
        print(json.dumps([{"name": name, "about": text} for name, text in about.items()]))
        return NOT_REFUTED
    for name, text in about.items():
        wrapped = textwrap.fill(f"{name:<22} {text}", 80, subsequent_indent=" " * 23)
        print(wrapped)
    return NOT_REFUTED


def run_experiment(asked: ExperimentArguments) -> int:
    """Run an experiment, print its table and the files that it wrote."""
    name, out = asked.name or "", Path("results" if asked.out is None else asked.out)
    if name not in experiments.NAMES:
        raise Usage(f"no such experiment: {name} (there are {', '.join(experiments.NAMES)})")
    words = ("trials", "seed", "data", "full", "quick", "seeds", "device")
    given = {word: getattr(asked, word) for word in words}
    with report_bad_usage():
        # Checked here, so that an error of the run itself is not taken for bad usage.
        experiments.config_of(name, **given)
        threads_of(asked.threads)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"--out must be a folder that can be written to, got {out}: {error}") from error
    try:
        result = experiments.reproduce(
            name, out, threads=asked.threads, progress=asked.progress, **given
        )
    except ModuleNotFoundError as error:
        # What it needs and how to install it, in the words of the experiment.
        raise Usage(str(error)) from error
    except (OSError, ValueError) as error:
        # Of all that a run can raise these are about the user's own files.
        if getattr(error, "argument", None) not in ("path", "data"):
            raise
        raise Usage(f"--data does not serve {name}: {error}") from error
    files = "\n".join(str(path) for path in sorted(out.glob(f"{name}.*")))
    if asked.as_json:
        print(json.dumps(result.to_dict(), allow_nan=False))
        print(f"wrote\n{files}", file=sys.stderr)
    else:
        print(f"{result.table()}\n\nwrote\n{files}")
    return INTERRUPTED if result.partial else NOT_REFUTED


def print_environment(as_json: bool) -> int:
    """Print versions, the CPU path and the number of threads."""
    forced = os.environ.get("DPCORE_CPU")
    found = {
        "version": __version__,
        "cpu": _core.cpu(),
        "cpus": _core.cpus(),
        "DPCORE_CPU": forced,
        "threads": _core.cores(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }
    if as_json:
        print(json.dumps(found))
        return NOT_REFUTED
    shown = {
        "dpcore": found["version"],
        "CPU path": f"{found['cpu']} (this CPU has {', '.join(_core.cpus())})",
        "DPCORE_CPU": forced or "not set",
        "threads": found["threads"],
        "Python": found["python"],
        "numpy": found["numpy"],
        "platform": found["platform"],
    }
    for label, value in shown.items():
        print(f"{label:<11} {value}")
    return NOT_REFUTED
