"""Names of others cannot forge a report: each kind of name in each kind of output."""

import json
import re
import shlex
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpcore
from dpcore.cli.app import main
from dpcore.errors import invalid
from dpcore.progress import Progress
from dpcore.report.figures import save_picture
from dpcore.visible import make_visible

# ESC, a line end, a bell, an override and an isolate of direction, zero width, a line separator,
# and half of a surrogate pair.
HOSTILE = "m\n  verdict      fine\x1b[2J\x07\u202eevil\u2066\u200b\u2028\x85\ud800"
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
FORGED = re.compile(r"^\s*verdict +fine", re.MULTILINE)
FEW = {"trials": 1000, "rng": 1, "progress": False}


def add_noise(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def audit_mechanism(name=HOSTILE):
    def mechanism(x, size, rng):
        return add_noise(x, size, rng)

    mechanism.__name__ = mechanism.__qualname__ = name
    return dpcore.audit(mechanism, dpcore.Pair([0.0], [1.0]), claim=1.0, **FEW)


def audit_key():
    def answer(x, rng):
        return {HOSTILE: float(x[0] + rng.laplace())}

    mechanism = dpcore.repeat(answer)
    return dpcore.audit(mechanism, dpcore.Pair([0.0], [9.0]), claim=1.0, **FEW)


def audit_text():
    def answer(x, rng):
        return x if rng.random() < 0.9 else "other"

    mechanism = dpcore.repeat(answer)
    return dpcore.audit(mechanism, dpcore.Pair(HOSTILE, "plain"), claim=1.0, **FEW)


def audit_file(folder):
    name = HOSTILE.replace("/", "").replace("\ud800", "")
    rng, column = np.random.default_rng(1), json.dumps("a\x1b[2J\u202eb", ensure_ascii=False)
    paths = [folder / f"{name}{side}.csv" for side in (0, 1)]
    for side, path in enumerate(paths):
        rows = "\n".join(f"{value:.3f}" for value in rng.laplace(side, size=200))
        path.write_text(f"{column}\n{rows}\n")
    return dpcore.audit_outputs(*paths, rows="independent", claim=1.0, rng=1)


def audit_table():
    return replace(dpcore.audit_table(np.array([[0.5, 0.5], [0.2, 0.8]]), claim=1.0), name=HOSTILE)


RESULTS = {
    "mechanism": lambda _: audit_mechanism(),
    "mechanism in a JSON": lambda _: load({"mechanism": {"repr": HOSTILE}}),
    "attack in a JSON": lambda _: load({"attack": HOSTILE}),
    "event in a JSON": lambda _: load({"event": {"repr": HOSTILE}}),
    "note": lambda _: replace(audit_mechanism("noise"), notes=(HOSTILE,)),
    "check": lambda _: replace(audit_mechanism("noise"), checks=(HOSTILE,)),
    "relation": lambda _: replace(audit_mechanism("noise"), neighbour=HOSTILE),
    "key": lambda _: audit_key(),
    "text": lambda _: audit_text(),
    "file and column": audit_file,
    "table": lambda _: audit_table(),
}


def load(fields):
    record = json.loads(audit_mechanism("noise").to_json())
    return dpcore.Audit.from_json(json.dumps({**record, **fields}))


def plot_to_svg(result, folder):
    from dpcore.report.figures import use_own_style

    with use_own_style(letters="none") as figure:
        result.plot(ax=figure)
        save_picture(figure, folder / "a.svg")
    return (folder / "a.svg").read_text(encoding="utf-8")


WRITTEN = {
    "str": lambda result, _: str(result),
    "repr": lambda result, _: repr(result),
    "card": lambda result, _: result._repr_html_(),
    "page": lambda result, _: result.to_html(),
    "JSON and back": lambda result, _: str(type(result).from_json(result.to_json())),
    "picture": plot_to_svg,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", RESULTS)
def test_names_are_visible_wherever_they_are_written(tmp_path, monkeypatch, kind):
    # A page takes seconds to draw, and its picture is an output of its own here.
    monkeypatch.setattr("dpcore.report.page._picture_to_svg", lambda *_: "")
    result = RESULTS[kind](tmp_path)
    texts = {output: write(result, tmp_path) for output, write in WRITTEN.items()}
    for output, text in texts.items():
        assert HIDDEN.findall(text) == [], (output, text[:2000])
        assert FORGED.findall(text) == [], (output, text[:2000])
        text.encode()
    # Nothing is left out, and the first row is the verdict of the result.
    assert any(r"\x1b[2J" in text for text in texts.values())
    assert texts["str"].splitlines()[1].split()[0] == "verdict"


def test_the_hostile_name_would_be_seen():
    # Controls of the two searches above.
    assert len(HIDDEN.findall(HOSTILE)) == 8
    assert FORGED.findall(HOSTILE)


def test_letters_of_all_languages_stay():
    for text in ("Übung", "机制 噪声", "שלום", "مرحبا", "noise 🎲", "e\u0301", "a\\n"):
        assert make_visible(text) == text
    visible = make_visible(HOSTILE)
    assert visible.isprintable()
    assert make_visible(visible) == visible
    assert visible == repr(HOSTILE)[1:-1]


@pytest.mark.parametrize(
    "words",
    [
        ["audit", HOSTILE],
        ["audit", f"{HOSTILE}.py:noise", "--x", "0", "--x-prime", "1", "--claim", "1"],
        ["audit", "laplace", "--epsilon", "1", "--html", f"/nowhere/{HOSTILE}"],
        ["audit", "laplace", f"--{HOSTILE}"],
        [
            "audit",
            "--command",
            f"false {shlex.quote(HOSTILE)}",
            "--x",
            "0",
            "--x-prime",
            "1",
            "--claim",
            "1",
        ],
        ["trace", f"{HOSTILE}.py:noise", "--x", "0", "--x-prime", "1", "--claim", "1"],
        ["merge", f"{HOSTILE}"],
        ["count", f"{HOSTILE}", "--part", "1/1", "--out", "a"],
        ["audit-outputs", HOSTILE, HOSTILE, "--rows", "independent", "--claim", "1"],
        ["audit-table", HOSTILE, "--claim", "1"],
        ["reproduce", HOSTILE],
    ],
)
def test_messages_of_the_command_line_are_visible(capsys, words):
    assert main([word.replace("\ud800", "") for word in words]) in (2, 3)
    text = "".join(capsys.readouterr())
    assert HIDDEN.findall(text) == []
    assert FORGED.findall(text) == []
    assert r"\x1b[2J" in text


class Namesake:
    def __repr__(self):
        return HOSTILE


def test_errors_and_bars_are_visible(capsys):
    texts = [str(invalid(HOSTILE, HOSTILE, value)) for value in (HOSTILE, Namesake(), [HOSTILE])]
    with Progress(HOSTILE, 1.0, True) as bar:
        bar.say(HOSTILE.replace("\n", " ").replace("\ud800", ""))
        texts.append(bar._state.label)
    for text in texts:
        assert HIDDEN.findall(text) == []
    # The bar itself holds colours of a terminal.
    assert r"\x07\u202eevil" in capsys.readouterr().err


def test_warnings_are_visible():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from dpcore.auditing.run import warn_of

        warn_of((HOSTILE,))
    assert HIDDEN.findall(str(caught[0].message)) == []
