"""The site is whole: links, names, contents, the API, the page of the command line."""

from __future__ import annotations

import ast
import importlib
import re
import struct
import tomllib
from collections import defaultdict
from fnmatch import fnmatch
from itertools import pairwise
from types import ModuleType

import pytest
import site_names
import site_pages
import site_pictures
from matplotlib.figure import Figure
from shared_layers import LAYERS
from shared_site import PAGES, ROOT, SCRIPTS, blocks, name_of, needed

from dpcore.experiments import NAMES
from dpcore.structure import CHECKS

README, DOCS = ROOT / "README.md", ROOT / "docs"
SITE = [page for page in PAGES if page != README]


def unfenced(page):
    """A page without its fenced blocks."""
    return re.sub(r"^ *(```+).*?^ *\1$", "", page.read_text("utf-8"), flags=re.M | re.S)


def prose(page):
    """A page without code."""
    return re.sub(r"`[^`\n]+`", "code", unfenced(page))


def anchors(page):
    """The anchors of a page's headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.+)$", unfenced(page), re.M)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {title.strip().replace(" ", "-") for title in plain}


REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"][
    "Repository"
]


def broken(page, text):
    """The links of a page that lead nowhere; an absolute link to the repository is a path in it."""
    found = []
    text = re.sub(rf"{re.escape(REPOSITORY)}/(?:blob|tree)/main/", f"{ROOT.as_posix()}/", text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    assert broken(page, prose(page)) == []


def test_a_link_that_leads_nowhere_is_found():
    text = "[a](docs/index.md) [b](docs/index.md#a-report) [c](docs/no.md) [d](#nothing)"
    assert broken(README, text) == ["docs/no.md", "#nothing"]
    absolute = f"[a]({REPOSITORY}/blob/main/README.md) [b]({REPOSITORY}/blob/main/no.md)"
    assert broken(README, absolute) == [(ROOT / "no.md").as_posix()]


def test_links_of_the_readme_work_on_an_index_page():
    targets = re.findall(r"\]\(([^)\s]+)\)", README.read_text("utf-8"))
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith(f"{REPOSITORY}/")] == []


def unknown(text):
    """The names of dpcore in a text that do not exist, as far as can be told here."""
    packages = "|".join(sorted(package for row in LAYERS for package in row.split()))
    dotted = re.findall(
        rf"\bdpcore(?:\.[A-Za-z_]\w*)+|(?<=`)(?:{packages})(?:\.[A-Za-z_]\w*)+", text
    )
    found = []
    files = {name for name in dotted if name.endswith((".py", ".rs"))}
    for name in sorted({*dotted} - files):
        # In the prose of a page `report` is what an audit returns.
        path = re.sub(r"^report\.", "Audit.", name.removeprefix("dpcore.")).split(".")
        try:
            value = importlib.import_module("dpcore")
            for part in path:
                inside = isinstance(value, ModuleType) and not hasattr(value, part)
                at = f"{value.__name__}.{part}" if inside else ""
                value = importlib.import_module(at) if inside else getattr(value, part)
        except (AttributeError, ModuleNotFoundError) as error:
            if "torch" not in str(error) or "dpcore" in str(error).split("'")[1:2]:
                found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_exist(page):
    assert unknown(page.read_text("utf-8")) == []


def test_a_name_that_does_not_exist_is_found():
    text = "`dpcore.audit` `dpcore.adit` `calibration.laplace` `bounds.lapse` dpcore.Audit.counts"
    text += " `exact.py` `bounds.rs`"
    assert unknown(text) == ["bounds.lapse", "dpcore.adit"]


def test_every_page_is_in_the_contents():
    listed = []
    for page in SITE:
        for inner in re.findall(r"```{toctree}\n(.*?)```", page.read_text("utf-8"), re.S):
            lines = [line for line in inner.split("\n") if line and not line.startswith(":")]
            entries = [re.sub(r".+ <(.+)>", r"\1", line) for line in lines]
            listed += [(page.parent / entry).relative_to(DOCS).as_posix() for entry in entries]
    for page in SITE:
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        assert name == "index" or any(fnmatch(name, entry) for entry in listed), name


def test_a_how_to_asks_a_question():
    for page in (DOCS / "howto").glob("*.md"):
        first = page.read_text("utf-8").split("\n", 1)[0]
        assert re.fullmatch(r"# .+\?", first), page.name


def test_a_how_to_has_at_most_2000_words():
    lengths = {page.name: len(page.read_text("utf-8").split()) for page in SITE}
    pages = {page.name for page in (DOCS / "howto").glob("*.md")}
    assert [name for name in pages if lengths[name] > 2000] == []


def test_code_of_the_first_page_fits_a_narrow_screen():
    text = (DOCS / "index.md").read_text("utf-8")
    lines = "\n".join(re.findall(r"^```\w+\n(.*?)^```$", text, re.M | re.S)).split("\n")
    assert len(lines) > 30
    assert [line for line in lines if len(line) > 76] == []


def test_every_check_of_a_noise_layer_is_explained():
    page = (DOCS / "howto" / "noise-layer.md").read_text("utf-8")
    assert [name for name in CHECKS if f"`{name}`" not in page] == []


def test_the_readme_is_short():
    assert len(README.read_bytes()) <= 6000


def test_every_public_name_has_its_page():
    pages = {
        package: site_pages.package_page(package, of) for package, of in site_names.names().items()
    }
    shown = {name.path: name for of in site_names.names().values() for name in of}
    objects = [site_names.found(path) for path in shown]
    packages = {package for row in LAYERS for package in row.split()} - {*site_names.INNER}
    assert packages <= {package.partition(".")[2] for package in [*pages, "dpcore.torch"]}
    for package in ["dpcore", *pages]:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                assert any(value is one for one in objects), f"{package}.{name}"
    for path in shown:
        package, _, name = path.rpartition(".")
        assert re.search(rf"^ *(\.\. py:data:: )?{name}$", pages[package], re.M), path


SHARED_NAMES = {
    "Clip": "transforms of arrays and of tensors, which are the same",
    "MinMax": "transforms of arrays and of tensors, which are the same",
    "Normalise": "transforms of arrays and of tensors, which are the same",
    "Result": "the protocol of an experiment's result, and the class of each experiment",
    "link": "the question which document it was, for any mechanism and for word mechanisms",
    "sensitivity": "a package and its function",
}
"""Public names that may stand in several places, and what they mean there."""


def find_shared_names(root):
    """Return the public names that have two paths, or that two files of the package define."""
    paths, files = defaultdict(set), defaultdict(set)
    names = [name.path for of in site_names.names().values() for name in of]
    for path in (*names, *site_names.find_public_packages()):
        paths[path.rpartition(".")[2]].add(path)
    for file in root.rglob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in paths:
                files[node.name].add(file)
    return {name for name in paths if len(paths[name]) > 1 or len(files[name]) > 1}


def test_a_public_name_means_one_thing(tmp_path):
    found = find_shared_names(ROOT / "python" / "dpcore")
    assert found <= set(SHARED_NAMES)
    assert "Result" in found
    assert "sensitivity" in found
    # The control: a class of another file with the name of a public one.
    for file in ("one.py", "two.py"):
        (tmp_path / file).write_text("class Histogram: ...\ndef own(): ...\n")
    assert "Histogram" in find_shared_names(tmp_path)
    assert "own" not in find_shared_names(tmp_path)


def find_broken_lists(text):
    """Return the lines of a docstring at which the site's parser would miss a list or a code."""
    lines = text.splitlines()
    broken = [line for line in lines if line.count("`") % 2]
    for before, line in pairwise(lines):
        item = re.match(r"( *)- \S", line)
        if item and before.strip() and not re.match(rf"{item[1]}(- |  )", before):
            broken.append(line)
    return broken


def test_lists_in_docstrings_have_a_blank_line_before_them():
    files = sorted((ROOT / "python/dpcore").rglob("*.py"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    broken = [
        f"{file.stem}: {line.strip()}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, kinds)
        for line in find_broken_lists(ast.get_docstring(node) or "")
    ]
    assert broken == []
    # The control: a list without the blank line, a nested item, and a code span on two lines.
    assert find_broken_lists("Args:\n    kind: one of\n        - a") == ["        - a"]
    assert find_broken_lists("Values:\n\n- a\n  - b") == ["  - b"]
    assert find_broken_lists("The call `f(x,\ny)`.") == ["The call `f(x,", "y)`."]
    assert find_broken_lists("Values:\n\n- a\n  of b\n- c") == []


def test_constants_say_what_they_are():
    names = [name for of in site_names.names().values() for name in of if name.kind == "data"]
    assert [name.path for name in names if not name.text] == []


@pytest.mark.parametrize("words", [words for words, _ in site_names.commands()])
def test_the_page_of_the_command_line_has_every_option(words, run):
    _, help_text, _ = run(f"{words} --help".removeprefix("dpcore "))
    page = site_pages.section(words, dict(site_names.commands())[words])
    options = set(re.findall(r"(?<=│ )(--[a-z][\w-]*)", help_text)) - {"--help"}
    assert options
    assert {option for option in options if f"`{option}" not in page} == set()


def test_a_script_of_the_gallery_can_be_shortened():
    for script in SCRIPTS:
        text = script.read_text("utf-8")
        assert ast.get_docstring(ast.parse(text)).split("\n")[1].startswith("="), script.name
        assert "trials=" not in re.sub(r"trials=TRIALS", "", text), script.name


def test_every_script_of_the_gallery_is_in_a_group():
    assert len(SCRIPTS) > 20
    assert {script.parent.name for script in SCRIPTS} == {*site_pictures.GROUPS}
    for group in site_pictures.GROUPS:
        assert (ROOT / "examples" / group / "GALLERY_HEADER.rst").exists()


def test_a_thumbnail_is_the_first_panel(tmp_path):
    figure = Figure(figsize=(12, 9))
    first, _ = figure.subplots(1, 2)
    for number in range(6):
        first.plot([0, 1], [0, number], label=f"line {number}")
    first.set(title="a title", xlabel="a label that is longer than a thumbnail is wide")
    first.legend()
    site_pictures.draw_small(figure, tmp_path / "small.png")
    assert figure.axes == [first]
    assert (first.get_title(), first.get_legend()) == ("", None)
    assert first.get_xlabel().count("\n") == 1
    width, height = struct.unpack(">II", (tmp_path / "small.png").read_bytes()[16:24])
    assert (width, height) == (400, 280)


def test_what_is_needed_is_read_from_the_page():
    page = "# A question?\n\n<!-- needs: torch, opendp -->\n\n```python\nimport torch\n```\n"
    assert needed(page) == ["torch", "opendp"]
    assert needed('# needs: torch\n"""Title."""\n') == ["torch"]
    assert needed("It needs: torch") == []
    kept = list(blocks(page + "<!-- not run: no network -->\n```python\nfetch()\n```\n"))
    assert [(one.language, one.line) for one in kept] == [("python", 5)]


ORIGINS = re.compile(
    "habernal|adept|dptext|dpnr|word2vec|word-dp|redaction|renyi-vs|closeness|dpsgd"
)
"""Parts of the names of experiments that remake the five sources."""


def test_every_experiment_of_the_sources_is_on_their_page_and_no_other_is():
    page = (DOCS / "reference" / "sources.md").read_text("utf-8")
    proposed = set(re.findall(r"dpcore reproduce ([\w-]+)", page))
    assert proposed <= set(NAMES)
    assert {name for name in NAMES if ORIGINS.search(name)} <= proposed
    scripts = re.findall(r"python (benches/[\w.]+)", page)
    assert scripts
    assert all((ROOT / script).exists() for script in scripts)
