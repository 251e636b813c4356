"""The rules of the package's layers, each with a planted offence that it finds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import shared_layers
from layers import Part, draw_box, list_rows, read_parts
from shared_layers import LAYERS, RULES, PackageFiles


@pytest.fixture(scope="module")
def package():
    yield PackageFiles()
    shared_layers.forget_files()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(package, rule):
    assert rule(package) == []


OFFENCES = {
    "find_import_circles": [
        ("errors", "from .records import Pair", "errors -> records -> errors"),
        ("records", "def f():\n    from .exact import loss", "exact"),
    ],
    "find_upward_imports": [
        ("bounds/binomial", "from ..attacks import Threshold", "attacks/threshold"),
        ("bounds/binomial", "import dpcore.attacks.auto", "attacks/auto"),
        ("errors", "from dpcore import records", "errors.py:"),
        ("pairs/differences", "from ..events import Vote", "pairs/differences.py:"),
        ("results/findings", "def text(self):\n    from ..auditing import run", "auditing"),
        ("extra/thing", "x = 1", "give extra a layer in LAYERS"),
    ],
    "find_private_imports": [
        ("attacks/auto", "from ..__main__ import x", "__main__"),
        ("attacks/auto", "from ..bounds.binomial import _hidden", "_hidden"),
    ],
    "find_module_lookups": [
        ("records", "sys.modules.get('torch')", "looks into sys.modules"),
        ("records", "from sys import modules", "imports from sys"),
        ("records", "get_loaded_module('dpcore').audit", "looks for 'dpcore'"),
        ("records", "get_loaded_module(name)", "looks for name"),
        ("records", "attribute_if_imported('dpcore', 'audit')", "looks for 'dpcore'"),
    ],
    "find_long_files": [("errors", "x = 1\n" * 800, "errors.py has")],
    "find_reserved_names": [("auditing/plan", "", "auditing/plan")],
    "find_unlisted_names": [
        ("bounds/extra", "__all__ = ['x']", "bounds/extra.py has __all__, but is not public"),
        ("extra/__init__", "def f(): ...", "extra/__init__.py has no __all__"),
    ],
    "find_attribute_queries": [
        ("errors", "getattr(f, 'thread_safe', None)", "asks for thread_safe"),
        ("errors", "hasattr(f, 'on_device')", "asks for on_device"),
    ],
    "find_vague_heads": [("errors", 'def f():\n    """How it is."""', "How it is.")],
}


@pytest.mark.parametrize(
    ("rule", "file", "text", "said"),
    [(rule, *offence) for rule, offences in OFFENCES.items() for offence in offences],
)
def test_a_planted_offence_is_found(rule, file, text, said):
    [check] = [found for found in RULES if found.__name__ == rule]
    found = check(PackageFiles({file: text}))
    assert any(said in line for line in found), found


def test_no_large_circle_of_imports(package):
    """Imports in functions, by importlib and by `__getattr__` count, those for types do not."""
    assert shared_layers.find_large_circles(package) == []


LAZY = "def __getattr__(name):\n    from . import inner\n    return getattr(inner, name)"
FOUR = {
    "__init__": "", "__init__.pyi": "", "first": "from .second import x",
    "second": "def f():\n    from .third import x", "third": "from . import fourth",
    "lazy/__init__": LAZY, "lazy/inner/__init__": "from ...first import x",
}  # fmt: skip
"""Files of a package whose fourth file may close a circle."""


@pytest.fixture
def write_package(tmp_path):
    def write(files):
        (tmp_path / "lazy/inner").mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / name).with_suffix(Path(name).suffix or ".py").write_text(text)
        return PackageFiles(package=tmp_path)

    return write


@pytest.mark.parametrize(
    ("fourth", "is_found"),
    [
        ("from .first import x", True),
        ("def f():\n    from . import first", True),
        ("import_module('dpcore.first')", True),
        ("names = ['dpcore.first:x']", True),
        ("from .lazy import x", True),
        ("if TYPE_CHECKING:\n    from .first import x", False),
        ("from .lazy import inner", False),
        ("'dpcore.nowhere'", False),
    ],
)
def test_a_planted_circle_of_four_files_is_found(write_package, fourth, is_found):
    circles = shared_layers.find_large_circles(write_package(FOUR | {"fourth": fourth}))
    assert circles == ([["first", "fourth", "second", "third"]] if is_found else [])


def test_a_circle_of_three_files_is_allowed(write_package):
    package = write_package(FOUR | {"third": "from . import first"})
    assert shared_layers.find_large_circles(package) == []


def test_every_layer_and_exception_of_the_rules_is_needed(package):
    packages = {shared_layers.get_package(file) for file in package.texts}
    assert packages == {*" ".join(shared_layers.LAYERS).split(), *shared_layers.ROOT}
    assert {f"{file}.py" for file in package.texts} >= {
        *shared_layers.OTHERS,
        *shared_layers.DIRECT,
    }


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


@pytest.fixture(scope="module")
def parts(package):
    return read_parts(package.texts, package.trees)


def find_disagreements(parts, layers):
    """Return imports that rise, or stay level, in the rows of the picture or in the layers."""
    orders = [
        {name: height for height, row in enumerate(rows) for name in row}
        for rows in (list_rows(parts), [layer.split() for layer in layers])
    ]
    return [
        f"{name} imports {other}"
        for name, part in parts.items()
        for other in sorted(part.imports)
        if any(order[name] <= order[other] for order in orders)
    ]


def test_the_rows_of_the_picture_agree_with_the_layers(parts):
    rows = list_rows(parts)
    assert sorted(name for row in rows for name in row) == sorted(" ".join(LAYERS).split())
    assert find_disagreements(parts, LAYERS) == []
    # No package stands above its layer, since its row is the lowest that its imports allow.
    layers = {name: height for height, layer in enumerate(LAYERS) for name in layer.split()}
    assert all(height <= layers[name] for height, row in enumerate(rows) for name in row)
    # The control: layers upside down disagree.
    assert "cli imports experiments" in find_disagreements(parts, LAYERS[::-1])


def test_rows_of_a_small_package():
    parts = {"top": Part(1, {"low", "mid"}), "low": Part(1), "mid": Part(1, {"low"})}
    assert list_rows(parts) == [["low"], ["mid"], ["top"]]
    parts["low"].imports.add("top")
    with pytest.raises(ValueError, match="must form no circle"):
        list_rows(parts)
    assert "<title>top imports low, mid</title>" in draw_box("top", parts["top"], 0.5)
