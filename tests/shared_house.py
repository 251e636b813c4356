"""How the package is built, read from its source: files, imports, doors, and what breaks a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent

LAYERS = [
    "hints loaded",
    "errors",
    "records progress streams",
    "pairs events bounds",
    "claims",
    "mechanisms",
    "published",
    "adapters exact sensitivity",
    "calibration sampling",
    "attacks results structure",
    "report",
    "auditing divergence",
    "recorded tables",
    "training",
    "torch",
    "text",
    "experiments pytest_plugin",
    "cli",
]
"""Rooms from low to high. A file imports its own room and lower rows; rooms of a row are apart."""

ROOT = ["__init__", "__main__"]
"""Above all rooms: what `import dpcore` shows, and `python -m dpcore`."""

DOORS = re.compile(
    r"__str__|__add__|_repr_html_|(plot|to_|from_|save_)\w*|merge|outputs|lines|table"
)
"""Methods through which a result reaches what stands above it."""

INNER = {
    "streams",
    "sampling",
    "results",
    "report",
    "auditing",
    "recorded",
    "tables",
    "cli",
    "pytest_plugin",
}
"""Rooms whose modules may move; those of the others are public paths."""

RESERVED = {
    "audit", "sample", "repeat", "plan", "release", "command", "audit_table", "audit_outputs",
}  # fmt: skip
"""Public functions, today's and those to come: a file of that name would turn them into modules."""

OTHERS = {
    # Whose objects an audit was handed is seen by what is loaded; nothing is imported for it.
    "adapters/__init__.py": "places of other packages",
    "report/script.py": "the module of the user's mechanism",
    "auditing/provenance.py": "the libraries of the user's mechanism",
}
"""Files that ask what is loaded by no constant name, and for what they ask."""

DIRECT = {
    "loaded.py": "knows what is half imported",
    # A user's file is loaded under a name of its own.
    "cli/user.py": "puts the user's module there",
}
"""Files that take `sys.modules` itself: another thread may be in the midst of an import."""


MOST_SHORT = 0.15
"""Share of functions whose name may be a single word."""

MOST_REPEATED = 0.08
"""Share of functions and classes whose name three files or more may define, but for SHARED."""

SHARED = {
    # Every experiment has these.
    "run", "Result", "Config", "Cell", "Row", "Case", "Job", "plain", "figure", "text", "legend",
    "row", "cells", "draw_figure", "write_plain_data", "write_table", "write_head", "write_cell",
    "make_cell",
    # Every published system has its law of votes.
    "log_votes",
}  # fmt: skip
"""Names that mean the same wherever they are defined."""

VAGUE = re.compile(r"(What|How|Whether|Where|Everything|Who|Whose)\b")
"""Heads of docstrings that say what about, but not what a function does or what a value is."""


@dataclass(frozen=True)
class Import:
    """One imported name: by which file, from which file, where, and whether through a door."""

    file: str
    target: str
    name: str
    line: int
    door: bool

    def __str__(self) -> str:
        return f"{self.file}.py:{self.line} imports {self.name or 'all'} of {self.target}"


@cache
def read(package: Path) -> dict[str, str]:
    """The text of every file, by its path without suffix."""
    paths = sorted(package.rglob("*.py"))
    return {str(path.relative_to(package).with_suffix("")): path.read_text() for path in paths}


@cache
def parsed(text: str) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(text)


class House:
    """The files of a package, by their paths without suffix; `__init__` stands for its folder."""

    def __init__(self, planted: dict[str, str] | None = None, package: Path = PACKAGE) -> None:
        """The files of a package, and planted ones: text that is added to theirs."""
        self.texts = dict(read(package))
        for name, text in (planted or {}).items():
            self.texts[name] = f"{self.texts.get(name, '')}\n{text}\n"
        self.trees = {name: parsed(text) for name, text in self.texts.items()}
        self.shown = {
            name: {alias.asname or alias.name: (base, alias.name) for base, alias in froms}
            for name in self.texts
            if name.endswith("__init__")
            for froms in [[(b, a) for _, b, a in self._froms(name)]]
        }

    def _file(self, dotted: Iterable[str]) -> str | None:
        path = "/".join(dotted)
        inside = f"{path}/__init__" if path else "__init__"
        return path if path in self.texts else inside if inside in self.texts else None

    def _froms(self, file: str) -> Iterator[tuple[ast.stmt, tuple[str, ...], ast.alias]]:
        """Every imported name of dpcore, with the dotted place that it comes from."""
        package = file.split("/")[:-1]
        for node in ast.walk(self.trees[file]):
            if isinstance(node, ast.ImportFrom):
                words = node.module.split(".") if node.module else []
                if node.level:
                    base = [*package[: len(package) - node.level + 1], *words]
                elif words[:1] == ["dpcore"]:
                    base = words[1:]
                else:
                    continue
                yield from ((node, tuple(base), alias) for alias in node.names)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    words = alias.name.split(".")
                    if words[0] == "dpcore":
                        yield node, tuple(words[1:]), ast.alias("")

    def _home(self, base: tuple[str, ...], name: str) -> str | None:
        """The file that defines a name: re-exports are followed, and a module is its own file."""
        inside = self._file([*base, name]) if name else None
        file = inside or self._file(base)
        if inside or not file or not file.endswith("__init__") or name not in self.shown[file]:
            return file
        following = self.shown[file][name]
        return file if following == (base, name) else self._home(*following)

    def doors(self, file: str) -> Iterator[ast.FunctionDef]:
        """Methods named like a door that are one import and one call of what it imported."""
        for node in ast.walk(self.trees[file]):
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef) and DOORS.fullmatch(method.name):
                    body = method.body[1:] if ast.get_docstring(method) else method.body
                    match body:
                        case [
                            ast.ImportFrom(names=[ast.alias(name=name, asname=None)]),
                            ast.Return(value=ast.Call(func=ast.Name(id=called))),
                        ] if name == called:
                            yield method

    @cache  # noqa: B019
    def imports(self, file: str) -> list[Import]:
        """Every import of dpcore in a file: at its top, in functions and for types."""
        through = {id(inner) for door in self.doors(file) for inner in ast.walk(door)}
        found = []
        for node, base, alias in self._froms(file):
            home = self._home(base, alias.name)
            if home and home != file:
                found.append(Import(file, home, alias.name, node.lineno, id(node) in through))
        return found

    def below(self, file: str) -> list[Import]:
        """What a file imports, doors left out."""
        return [found for found in self.imports(file) if not found.door]


def room(file: str) -> str:
    """The room of a file: its first folder, or the file itself."""
    return file.split("/")[0]


def circles(house: House) -> list[str]:
    """Circles of files, each as one path round it."""
    after = {
        file: {found.target for found in house.below(file)}
        for file in house.texts
        if not file.endswith("__init__")
    }
    found, done = [], set()

    def walk(file: str, path: list[str]) -> None:
        if file in path:
            found.append(" -> ".join([*path[path.index(file) :], file]))
        elif file not in done:
            for target in sorted(after.get(file, ())):
                walk(target, [*path, file])
            done.add(file)

    for file in after:
        walk(file, [])
    return found


def upward(house: House) -> list[str]:
    """Imports of the own row or of a higher one, and rooms without a row."""
    rank = {name: row for row, names in enumerate(LAYERS) for name in names.split()}
    files = [file for file in house.texts if file not in ROOT]
    missing = {room(file) for file in files} - set(rank)
    if missing:
        return [f"give {name} a row in LAYERS" for name in sorted(missing)]
    return [
        str(found)
        for file in files
        for found in house.below(file)
        if room(found.target) != room(file)
        and ((found.target in ROOT and found.name not in ("_core", "__version__"))
             or rank.get(room(found.target), -1) >= rank[room(file)])
    ]  # fmt: skip


def private(house: House) -> list[str]:
    """Imports of another room's private file or name."""
    return [
        str(found)
        for file in house.texts
        for found in house.imports(file)
        if room(found.target) != room(file)
        and found.name not in ("_core", "__version__")
        and any(
            part.startswith("_") and part != "__init__"
            for part in [*found.target.split("/"), found.name]
        )
    ]


def looks(house: House) -> list[str]:
    """Looks into `sys.modules`, and at dpcore, or at what nobody can tell, through `loaded`."""
    found = []
    for file, tree in house.trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name("sys"), attr="modules"):
                    if f"{file}.py" not in DIRECT:
                        found.append(f"{file}.py:{node.lineno} looks into sys.modules")
                case ast.ImportFrom(module="sys"):
                    found.append(f"{file}.py:{node.lineno} imports from sys")
                case ast.Call(func=ast.Name("loaded"), args=[key, *_]):
                    constant = isinstance(key, ast.Constant)
                    if constant and not str(key.value).startswith("dpcore"):
                        continue
                    if constant or f"{file}.py" not in OTHERS:
                        found.append(f"{file}.py:{node.lineno} looks for {ast.unparse(key)}")
    return found


def crowded(house: House) -> list[str]:
    """Files of more than 800 lines."""
    lines = {file: len(text.splitlines()) for file, text in house.texts.items()}
    return [
        f"{file}.py has {size} lines"
        for file, size in lines.items()
        if size > 800 and not file.endswith("__init__")
    ]


def misnamed(house: House) -> list[str]:
    """Files and folders that bear the name of a public function."""
    return [file for file in house.texts if RESERVED & set(file.split("/"))]


def unlisted(house: House) -> list[str]:
    """Modules of the public rooms, and rooms with names, that do not say which names are theirs."""
    found = []
    for file, tree in house.trees.items():
        *folders, name = file.split("/")
        public = len(folders) < 2 and room(file) not in INNER and not name.startswith("_")
        if not public and name != "__init__":
            continue
        shown = [
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ]
        named = [node for node in tree.body if not isinstance(node, ast.Expr)]
        if named and "__all__" not in shown:
            found.append(f"{file}.py has no __all__")
    return found


def definitions(house: House) -> list[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Functions and classes at the top of files, with their files."""
    return [
        (file, node)
        for file, tree in house.trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")
    ]


def short_names(house: House) -> list[str]:
    """Too many functions with a name of one word: each says too little in another file."""
    functions = [(f, one.name) for f, one in definitions(house) if isinstance(one, ast.FunctionDef)]
    short = [f"{file}.py: {name}" for file, name in functions if "_" not in name.strip("_")]
    return short if len(short) > MOST_SHORT * len(functions) else []


def repeated_names(house: House) -> list[str]:
    """Names that three files or more define, but for those of SHARED, if they are too many."""
    files: dict[str, list[str]] = {}
    for file, node in definitions(house):
        files.setdefault(node.name.strip("_"), []).append(file)
    kept = {name: found for name, found in files.items() if name not in SHARED}
    repeated = {name: found for name, found in kept.items() if len(set(found)) >= 3}
    if sum(map(len, repeated.values())) <= MOST_REPEATED * sum(map(len, files.values())):
        return []
    return [f"{name} is defined in {', '.join(found)}" for name, found in repeated.items()]


def vague_heads(house: House) -> list[str]:
    """Docstrings that begin with a word such as What or How in place of a verb or a noun."""
    return [
        f"{file}.py:{node.lineno}: {head}"
        for file, tree in house.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for head in [(ast.get_docstring(node) or "").partition("\n")[0]]
        if VAGUE.match(head)
    ]


RULES = [
    circles, upward, private, looks, crowded, misnamed, unlisted, short_names, repeated_names,
    vague_heads,
]  # fmt: skip
