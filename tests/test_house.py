"""The rules of the house, each with an offence planted in a copy of the package that it finds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from shared_house import DIRECT, DOORS, LAYERS, OTHERS, ROOT, RULES, House, repeated_names, room


@pytest.fixture(scope="module")
def house():
    return House()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(house, rule):
    assert rule(house) == []


DOOR = """
class Result:
    def plot(self):
        from ..report.text import figure

        return figure(self)
"""

OFFENCES = [
    ("circles", "errors", "from .records import Pair", "errors -> records -> errors"),
    ("circles", "records", "def f():\n    from .exact import loss", "exact"),
    ("circles", "errors", "if TYPE_CHECKING:\n    from . import Pair", "records -> errors"),
    ("upward", "bounds/binomial", "from ..attacks import Threshold", "attacks/threshold"),
    ("upward", "bounds/binomial", "import dpcore.attacks.auto", "attacks/auto"),
    ("upward", "errors", "from dpcore import records", "errors.py:"),
    ("upward", "pairs/norms", "from ..events import Vote", "pairs/norms.py:"),
    ("upward", "results/findings", "def text(self):\n    from ..report import page", "report"),
    ("upward", "extra/thing", "x = 1", "give extra a row in LAYERS"),
    ("private", "attacks/auto", "from ..bounds._cells import x", "bounds/_cells"),
    ("private", "attacks/auto", "from ..bounds.binomial import _hidden", "_hidden"),
    ("looks", "records", "sys.modules.get('torch')", "looks into sys.modules"),
    ("looks", "records", "from sys import modules", "imports from sys"),
    ("looks", "records", "loaded('dpcore').audit", "looks for 'dpcore'"),
    ("looks", "records", "loaded(name)", "looks for name"),
    ("crowded", "errors", "x = 1\n" * 800, "errors.py has"),
    ("misnamed", "auditing/plan", "", "auditing/plan"),
    ("unlisted", "bounds/extra", "x = 1", "bounds/extra.py has no __all__"),
    ("short_names", "errors", "\n".join(f"def f{n}(): ..." for n in range(900)), "errors.py: f0"),
    *[("repeated_names", f"errors/x{n}", "def spread(): ...\n", "") for n in range(0)],
    ("vague_heads", "errors", 'def f():\n    """How it is."""', "How it is."),
    ("unlisted", "extra/__init__", "def f(): ...", "extra/__init__.py has no __all__"),
]


@pytest.mark.parametrize(("rule", "file", "text", "said"), OFFENCES)
def test_a_planted_offence_is_found(rule, file, text, said):
    [check] = [found for found in RULES if found.__name__ == rule]
    found = check(House({file: text}))
    assert any(said in line for line in found), found


def test_names_that_many_files_define_are_found():
    planted = {
        f"pairs/new{n}": "\n".join(f"def see_{k}(): ..." for k in range(99)) for n in range(3)
    }
    assert any("see_98 is defined in pairs/new0" in one for one in repeated_names(House(planted)))


def test_only_a_method_of_one_import_and_one_call_is_a_door():
    others = [
        DOOR.replace("plot", "shown"),
        DOOR.replace("return figure(self)", "figure(self)\n        return None"),
        DOOR.replace("return figure(self)", "return other(self)"),
        DOOR.replace("class Result:\n    def plot(self):", "if True:\n    def plot(self):"),
    ]
    for text in [DOOR, *others]:
        [found] = House({"results/found": text}).imports("results/found")
        assert found.door == (text is DOOR), text


def test_every_row_and_exception_of_the_rules_is_needed(house):
    rooms = {room(file) for file in house.texts}
    assert rooms == {*" ".join(LAYERS).split(), *ROOT}
    assert {f"{file}.py" for file in house.texts} >= {*OTHERS, *DIRECT}
    assert any(DOORS.fullmatch(door.name) for file in house.texts for door in house.doors(file))


def test_no_file_of_tests_holds_what_two_should():
    lines = {
        path.name: len(path.read_text().splitlines())
        for path in Path(__file__).parent.rglob("*.py")
    }
    assert {name: size for name, size in lines.items() if size > 800} == {}
    # The control: the count sees files and their lines.
    assert lines[Path(__file__).name] > 50


def test_files_of_tests_have_names_of_their_own():
    """Without packages around them, pytest knows two files of one name as one module."""
    here = Path(__file__).parent
    names = [path.name for path in here.rglob("*.py") if path.name != "__init__.py"]
    shown = [
        name
        for page in [here.parent / "README.md", *(here.parent / "docs").rglob("*.md")]
        for name in re.findall(r"(?m)^# (test_\w+\.py)$", page.read_text("utf-8"))
    ]
    assert [name for name, times in Counter(names + sorted(set(shown))).items() if times > 1] == []
    # The control: both kinds of files are seen.
    assert Path(__file__).name in names
    assert "test_release.py" in shown
