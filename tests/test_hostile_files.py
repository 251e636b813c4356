"""Files from somebody else: nothing that dpcore reads imports, starts or runs what it names."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_extras import needs

import dpcore
from dpcore.auditing import run_files
from dpcore.auditing.run_files import join_shell_words, read_run, seal_record
from dpcore.cli.app import main
from dpcore.results.audit_json import make_script
from dpcore.runs import merge_parts

EVIL = """
import pathlib
pathlib.Path(__file__).with_name("marker").write_text("")
def noisy(x, size, rng):
    return x + rng.laplace(scale=0.5, size=(size, len(x)))
"""
WORDS = "--x 0 --x-prime 1 --claim 1 --trials 2000 --seed 7 --no-progress"


class Opener:
    """Pickled, it writes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Current folder with a mechanism whose import leaves a marker."""
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the mechanism and three run files of it: whole, begun only, and of a part."""
    place = tmp_path_factory.mktemp("built")
    (place / "evil.py").write_text(EVIL)
    count = "count begun.json evil.py:noisy --part 1/2 --out part.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for more in ("whole.json", "begun.json --fit-only"):
            line = f"audit evil.py:noisy {WORDS} --checkpoint {more}"
            assert main(line.split()) in (0, 1)
        assert main(count.split()) == 0
    assert (place / "marker").exists()
    return place


@pytest.fixture
def evil(folder, built):
    """The run files, in the current folder; nothing is marked."""
    for file in built.glob("*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def edit_asked(path, **options):
    record = json.loads(path.read_text())
    record["asked"].update(options)
    path.write_text(json.dumps(seal_record(record)))


TOUCH = f"{sys.executable} evil.py {{x}} {{size}}"


@pytest.mark.parametrize("asked", [
    {}, {"target": None, "command": TOUCH}, {"target": "laplace", "command": TOUCH},
    {"target": "./evil.py:noisy"}, {"attack": "evil.py:noisy"}, {"catch": "evil.Error"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("line", [
    "audit --resume whole.json", "audit other.py:noisy --resume whole.json",
    "audit --command true --resume whole.json", "count begun.json --part 1/2 --out new.json",
    "count begun.json --part 1/2 --out part.json",
    "count begun.json --command true --part 1/2 --out new.json",
    "audit laplace --resume whole.json",
])  # fmt: skip
def test_what_runs_stands_on_the_command_line(evil, capsys, line, asked):
    for name in ("whole.json", "begun.json"):
        edit_asked(evil / name, **asked)
    capsys.readouterr()
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert not (evil / "marker").exists()
    assert not (evil / "new.json").exists()
    asked = {"target": "evil.py:noisy", "command": None, **asked}
    named = asked["target"] if asked["command"] is None else f"--command '{asked['command']}'"
    ends = {"audit": f"audit {named} --resume whole.json", "count": f"count begun.json {named} --p"}
    assert f"type: dpcore {ends[line.split()[0]]}" in printed.err
    assert printed.out == ""


def test_the_line_that_is_printed_goes_on(evil, capsys):
    assert main(["audit", "evil.py:noisy", "--resume", "whole.json"]) == 1
    assert main(["count", "begun.json", "--part", "2/2", "--out", "part-2.json"]) == 2
    line = capsys.readouterr().err.strip().partition("type: dpcore ")[2]
    assert main(line.split()) == 0
    assert main(["merge", "part.json", "part-2.json"]) == 1
    for files, line in (
        (["part.json"], "count begun.json evil.py:noisy --part 2/2 --out part-2.json"),
        (["begun.json"], "audit evil.py:noisy --resume begun.json"),
    ):
        assert main(["merge", *files]) == 4
        assert f"go on with dpcore {line}\n" in capsys.readouterr().err


def test_a_system_and_a_command_go_on(folder, capsys):
    tool = "import sys, random\nfor _ in range(int(sys.argv[1])): print(random.random() < 0.5)"
    (folder / "tool.py").write_text(tool)
    command = ["--command", f"{sys.executable} tool.py {{size}} {{x}}"]
    for code, repeated in ((["laplace", "--epsilon", "1"], []), (command, command)):
        (folder / "run.json").unlink(missing_ok=True)
        line = ["audit", *code, *WORDS.split(), "--checkpoint", "run.json"]
        assert main(line) in (0, 3)
        assert main(["audit", *repeated, "--resume", "run.json"]) in (0, 3)
    assert main(["audit", "--resume", "run.json"]) == 2


def test_inputs_that_were_read_from_a_file_come_from_the_run_file(folder, monkeypatch):
    for name, value in (("x", 0.0), ("x_prime", 1.0)):
        np.save(folder / f"{name}.npy", np.full(2, value))
    line = ["audit", "evil.py:noisy", "--x", "@x.npy", "--x-prime", "@x_prime.npy", "--claim", "9"]
    line += ["--trials", "1000", "--checkpoint", "run.json"]
    assert main(line) in (0, 3)
    monkeypatch.delattr(np, "load")
    assert main(["audit", "evil.py:noisy", "--resume", "run.json"]) in (0, 3)


def test_options_of_a_file_are_of_the_kinds_that_they_are_declared_with(evil, capsys):
    for option in ({"trials": 3}, {"claim": {"repr": "x"}}, {"evil": 1}, {"timeout": "x"}):
        original = (evil / "whole.json").read_text()
        edit_asked(evil / "whole.json", **option)
        assert main(["audit", "evil.py:noisy", "--resume", "whole.json"]) == 2
        assert f"asked.{next(iter(option))} must be" in capsys.readouterr().err.replace(
            "asked must be", "asked.evil must be"
        )
        (evil / "whole.json").write_text(original)


@pytest.mark.parametrize("word", ["a b", "it's", "a\nb", "\x1b[31m", "\u202e", "\\'\n", "\x85"])
def test_no_word_of_a_line_hides_what_it_holds(word):
    line = join_shell_words("printf", "%s", word)
    assert line.isprintable()
    printed = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert printed.decode() == word


# What a file names is never imported.

NAMES = (
    {"record": "evil"}, {"record": "evil.noisy"}, {"native": "evil.noisy"}, {"format": "evil"},
    {"record": "evil:noisy"}, {"repr": "__import__('evil')"}, {"event": "evil.noisy"},
    {"record": "os.system", "command": "touch marker"}, {"dtype": "evil", "array": [1]},
)  # fmt: skip
"""Plain data that names a module."""


def put_everywhere(record, name):
    """Yield copies of plain data in which one entry of the first two levels is another."""
    for key, value in record.items():
        yield {**record, key: name}
        for inner in value if isinstance(value, dict) else ():
            yield {**record, key: {**value, inner: name}}


REPORT = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
RESULTS = [
    REPORT,
    dpcore.audit_table([[0.7, 0.3], [0.2, 0.8]], claim=1.0),
    dpcore.plan(1.0, true_epsilon=1.5, mass=0.5),
    dpcore.audit_outputs(
        *np.random.default_rng(1).normal(size=(2, 400)), rows="independent", claim=1.0, rng=1
    ),
]


@pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")
@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
@pytest.mark.parametrize("name", NAMES, ids=str)
def test_a_result_imports_nothing(folder, result, name):
    readings = 0
    for record in put_everywhere(result.to_dict(), name):
        try:
            type(result).from_dict(record).lines()
        except (TypeError, ValueError):
            readings += 1
    assert readings
    assert "evil" not in sys.modules
    assert not (folder / "marker").exists()


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_a_run_file_imports_nothing(evil, name):
    record = json.loads((evil / "part.json").read_text())
    readings = 0
    for part in ("fixed", "asked", "slices"):
        for inside in put_everywhere(record[part] or {"slices": []}, name):
            (evil / "part.json").write_text(json.dumps(seal_record({**record, part: inside})))
            for read in (read_run, merge_parts):
                try:
                    read(evil / "part.json")
                except (TypeError, ValueError):
                    readings += 1
    assert readings
    assert "evil" not in sys.modules
    assert not (evil / "marker").exists()


def write_pickles(folder):
    """Write pickles under the names of all kinds of files that are read."""
    content = pickle.dumps(Opener(folder / "marker"))
    array = np.array([Opener(folder / "marker")], dtype=object)
    np.save(folder / "a.npy", array, allow_pickle=True)
    np.savez(folder / "a.npz", outputs=array)
    for name in ("b.npy", "a.csv", "a.json", "a.jsonl", "a.txt", "a.parquet", "a.pkl"):
        (folder / name).write_bytes(content)
    with gzip.open(folder / "a.npy.gz", "wb") as file:
        file.write((folder / "a.npy").read_bytes())
    return sorted(folder.glob("[ab].*"))


def test_no_pickle_is_read(folder):
    pickle.loads(pickle.dumps(Opener(folder / "marker")))
    (folder / "marker").unlink()
    for path in write_pickles(folder):
        readers = (
            lambda path=path: dpcore.audit_outputs(path, path, rows="independent", claim=1.0),
            lambda path=path: dpcore.audit_table(path),
            lambda path=path: dpcore.text.read(path),
            lambda path=path: dpcore.Audit.load(path),
            lambda path=path: read_run(path),
        )
        for read in readers:
            with pytest.raises((TypeError, ValueError, ImportError)):
                read()
        line = ["audit-table", str(path), "--claim", "1"]
        assert main(line) in (2, 3)
    assert not (folder / "marker").exists()


@pytest.mark.extras
@pytest.mark.parametrize(
    "names",
    [("evil", "evil.noisy", "evil:noisy"), pytest.param(NAMES, marks=pytest.mark.sweep)],
    ids=["a user's file", "other modules"],
)
def test_a_saved_encoder_imports_nothing(folder, names):
    needs("torch", "safetensors")
    table, clip = {"a": [1.0], "b": [0.0]}, dpcore.torch.Clip("l1", 1.0)
    encoder = dpcore.torch.PrivateEncoder(table, clip, epsilon=1.0)
    encoder.save_pretrained(folder / "saved")
    config = json.loads((folder / "saved" / "config.json").read_text())
    readings = 0
    for name in names:
        for record in put_everywhere(config, name):
            (folder / "saved" / "config.json").write_text(json.dumps(record))
            try:
                dpcore.torch.PrivateEncoder.from_pretrained(folder / "saved", encoder=table)
            except (TypeError, ValueError):
                readings += 1
    assert readings
    assert "evil" not in sys.modules
    assert not (folder / "marker").exists()


@pytest.mark.extras
@pytest.mark.parametrize(("file", "settings"), [
    ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "evil.noisy"}]),
    ("config.json", {"auto_map": {"AutoModel": "evil.Model"}, "model_type": "bert"}),
    ("1_Dense/config.json", {"activation_function": "evil.noisy"}),
    ("evil.py", None),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["sentence-transformers", "transformers"])
def test_settings_of_a_saved_encoder_name_no_other_code(folder, kind, file, settings):
    needs("torch", "safetensors")
    clip = dpcore.torch.Clip("l1", 1.0)
    saved = dpcore.torch.PrivateEncoder({"a": [1.0], "b": [0.0]}, clip, epsilon=1.0)
    saved.save_pretrained(folder / "saved")
    config = json.loads((folder / "saved" / "config.json").read_text())
    config["encoder"] |= {"kind": kind, "width": 1, "pooling": "mean"}
    (folder / "saved" / "config.json").write_text(json.dumps(config))
    path = folder / "saved" / "encoder" / file
    path.parent.mkdir(parents=True)
    path.write_text(EVIL if settings is None else json.dumps(settings))
    with pytest.raises(ValueError, match=r"names? code|could hold a pickle or code"):
        dpcore.torch.PrivateEncoder.from_pretrained(folder / "saved")
    assert not list(folder.rglob("marker"))


def test_no_reader_can_run_text():
    assert not {"pickle", "eval", "exec", "importlib"} & set(vars(run_files))


@pytest.mark.parametrize("field", ["attack", "neighbour"])
@pytest.mark.parametrize("text", [
    "Auto(__import__('os').system('touch marker'))", "L1(__import__('evil'))()",
    "Auto()\nimport evil", "Auto(parts=(lambda: __import__('evil'))())", "L1(radius=1.0); evil",
])  # fmt: skip
def test_a_script_that_repeats_an_audit_holds_no_code_of_its_file(field, text):
    report = dpcore.Audit.from_dict({**REPORT.to_dict(), field: text})
    script = make_script(report)
    code = "\n".join(line.partition("#")[0] for line in script.splitlines())
    assert "evil" not in code
    assert "__import__" not in code
