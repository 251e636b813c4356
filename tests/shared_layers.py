"""The structure of the package, read from its source: files, imports, and breaches of rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent

LAYERS = [
    "packages",
    "advice annotations visible",
    "errors",
    "paths suggestions",
    "report",
    "records progress streams",
    "pairs events bounds",
    "claims",
    "mechanisms",
    "published",
    "adapters exact sensitivity",
    "calibration sampling",
    "attacks",
    "results structure",
    "files",
    "auditing divergence",
    "recorded runs tables",
    "tracing training",
    "torch",
    "text",
    "experiments pytest_plugin",
    "cli",
]
"""Layers of packages, from the lowest up.

A file imports from its own package and from lower layers. Packages of one layer are separate.
"""

ROOT = ["__init__", "__main__"]
"""Files above all layers: what `import dpcore` shows, and `python -m dpcore`."""

INNER = {
    "advice", "annotations", "auditing", "cli", "errors", "files", "packages", "paths", "progress",
    "recorded", "records", "report", "sampling", "streams", "suggestions", "tables", "visible",
}  # fmt: skip
"""Packages that users reach through others; `__all__` of the others says what is public."""

EXPERIMENT_PARTS = (
    "experiments/corpora",
    "experiments/dpnr_table/defences",
    "experiments/word2vec_leakage/leakage",
)
"""Public modules that their package does not load."""

RESERVED = {
    "audit", "sample", "repeat", "plan", "release", "command", "audit_table", "audit_outputs",
    "trace",
}  # fmt: skip
"""Public functions, today's and those to come: a file of that name would turn them into modules."""

OTHERS = {
    "packages.py": "the module that its caller names",
    # Whose objects an audit was handed is seen by what is loaded; nothing is imported for it.
    "adapters/__init__.py": "places of other packages",
    "results/audit_json.py": "the module of the user's mechanism",
    "auditing/provenance.py": "the libraries of the user's mechanism",
    # A trace replaces what draws in the package's layers of torch, if they are loaded.
    "tracing/own_noise.py": "the noise layers",
}
"""Files that ask what is loaded by no constant name, and for what they ask."""

DIRECT = {
    "packages.py": "knows what is half imported",
    # A user's file is loaded under a name of its own.
    "cli/user.py": "puts the user's module there",
}
"""Files that take `sys.modules` itself: another thread may be in the midst of an import."""


MOST_IN_A_CIRCLE = 3
"""Files of the largest circle of imports, those that a call makes counted."""

MODULE_NAME = re.compile(r"dpcore((?:\.\w+)+)(?::\w+)?")
"""A string that names a module of the package, for importlib."""

QUERIES = {
    "auditing/request.py: claim": "a mechanism with the claim None states its delta all the same",
}
"""Declared attributes that files ask for without the default, and why."""

VAGUE = re.compile(r"(What|How|Whether|Where|Everything|Who|Whose)\b")
"""Heads of docstrings that say what about, but not what a function does or what a value is."""


@dataclass(frozen=True)
class Import:
    """One imported name: by which file, from which file, where, and whether for types only."""

    file: str
    target: str
    name: str
    line: int
    is_for_types: bool

    def __str__(self) -> str:
        return f"{self.file}.py:{self.line} imports {self.name or 'all'} of {self.target}"


@cache
def read_files(package: Path) -> dict[str, str]:
    """Return the text of every file, by its path without suffix."""
    paths = sorted(package.rglob("*.py"))
    return {str(path.relative_to(package).with_suffix("")): path.read_text() for path in paths}


@cache
def parse_text(text: str) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(text)


@cache
def list_nodes(text: str) -> list[ast.AST]:
    """Return all nodes of the syntax tree of a file."""
    return list(ast.walk(parse_text(text)))


# What stands in one file is read once, however often the package is read with planted text.


@cache
def list_imported_names(file: str, text: str) -> list[tuple[ast.stmt, tuple[str, ...], ast.alias]]:
    """Return every imported name of dpcore, with the dotted path that it comes from."""
    package, found = file.split("/")[:-1], []
    for node in list_nodes(text):
        if isinstance(node, ast.ImportFrom):
            words = node.module.split(".") if node.module else []
            if node.level:
                base = [*package[: len(package) - node.level + 1], *words]
            elif words[:1] == ["dpcore"]:
                base = words[1:]
            else:
                continue
            found += [(node, tuple(base), alias) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found += [(node, tuple(n[1:]), ast.alias("")) for n in names if n[0] == "dpcore"]
    return found


class PackageFiles:
    """The files of a package, by their paths without suffix; `__init__` stands for its folder."""

    def __init__(self, planted: dict[str, str] | None = None, package: Path = PACKAGE) -> None:
        """Read the files of a package, and add planted text to them."""
        self.texts = dict(read_files(package))
        for name, text in (planted or {}).items():
            self.texts[name] = f"{self.texts.get(name, '')}\n{text}\n"
        self.trees = {name: parse_text(text) for name, text in self.texts.items()}
        # The package itself re-exports what its stub imports.
        listings = {name: text for name, text in self.texts.items() if name.endswith("__init__")}
        listings |= {"__init__": (package / "__init__.pyi").read_text()}
        self.shown = {
            name: {alias.asname or alias.name: (base, alias.name) for base, alias in froms}
            for name, text in listings.items()
            for froms in [[(b, a) for _, b, a in list_imported_names(name, text)]]
        }

    def _file(self, dotted: Iterable[str]) -> str | None:
        path = "/".join(dotted)
        inside = f"{path}/__init__" if path else "__init__"
        return path if path in self.texts else inside if inside in self.texts else None

    def _home(self, base: tuple[str, ...], name: str) -> str | None:
        """Return the file that defines a name, behind re-exports; a module is its own file."""
        inside = self._file([*base, name]) if name else None
        file = inside or self._file(base)
        if inside or not file or not file.endswith("__init__") or name not in self.shown[file]:
            return file
        following = self.shown[file][name]
        return file if following == (base, name) else self._home(*following)

    @cache  # noqa: B019
    def imports(self, file: str) -> list[Import]:
        """Return every import of dpcore in a file: at its top, in functions and for types."""
        for_types = list_inner_nodes(self.texts[file], is_for_types)
        found = []
        for node, base, alias in list_imported_names(file, self.texts[file]):
            home = self._home(base, alias.name)
            if home and home != file:
                found.append(Import(file, home, alias.name, node.lineno, id(node) in for_types))
        return found


def forget_files() -> None:
    """Forget the syntax trees: millions of objects, all of which audits ask for generators."""
    for cached in (
        read_files, parse_text, list_nodes, list_imported_names,
        list_named_modules, list_inner_nodes, PackageFiles.imports,
    ):  # fmt: skip
        cached.cache_clear()


def get_package(file: str) -> str:
    """Return the package of a file: its first folder, or the file itself."""
    return file.split("/")[0]


def find_import_circles(package: PackageFiles) -> list[str]:
    """Return circles of imports that run, each as a path of files."""
    after = {
        file: {found.target for found in package.imports(file) if not found.is_for_types}
        for file in package.texts
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


@cache
def list_named_modules(text: str) -> list[tuple[str, ...]]:
    """Return the modules of the package that strings of a file name, as dotted paths."""
    strings = [node.value for node in list_nodes(text) if isinstance(node, ast.Constant)]
    matches = [MODULE_NAME.fullmatch(value) for value in strings if isinstance(value, str)]
    return [tuple(match[1].split(".")[1:]) for match in matches if match]


@cache
def list_inner_nodes(text: str, is_outer: Callable[[ast.AST], bool]) -> set[int]:
    """Return the identities of the nodes inside some statements of a file."""
    outer = [node for node in list_nodes(text) if is_outer(node)]
    return {id(inner) for node in outer for inner in ast.walk(node)}


def is_for_types(node: ast.AST) -> bool:
    """Return True for the branch of a file that only type checkers read."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def is_lazy_lookup(node: ast.AST) -> bool:
    """Return True for a function `__getattr__`, by which a module loads names when asked."""
    return isinstance(node, ast.FunctionDef) and node.name == "__getattr__"


def list_lazy_homes(package: PackageFiles, file: str, name: str) -> set[str | None]:
    """Return the files from which the `__getattr__` of an `__init__` may take a name."""
    text = package.texts[file]
    inside = list_inner_nodes(text, is_lazy_lookup)
    return {
        package._home((*base, alias.name), name)
        for node, base, alias in list_imported_names(file, text)
        if id(node) in inside
    }


def list_loaded_files(package: PackageFiles, file: str) -> set[str]:
    """Return the files that a file loads at its top, in functions, by importlib and lazily."""
    text = package.texts[file]
    for_types = list_inner_nodes(text, is_for_types)
    loaded = {package._file(dotted) for dotted in list_named_modules(text)}
    for node, base, alias in list_imported_names(file, text):
        if id(node) not in for_types:
            home = package._home(base, alias.name)
            loaded.add(home)
            if home and home.endswith("__init__"):
                loaded |= list_lazy_homes(package, home, alias.name)
    return {home for home in loaded - {file, None} if not home.endswith("__init__")}


def find_large_circles(package: PackageFiles) -> list[list[str]]:
    """Return groups of more than MOST_IN_A_CIRCLE files each of which loads all others."""
    files = [file for file in package.texts if not file.endswith("__init__")]
    loaded = {file: list_loaded_files(package, file) for file in files}

    def reach(file: str) -> set[str]:
        reached, waiting = set(), [file]
        while waiting:
            new = loaded[waiting.pop()] - reached
            reached |= new
            waiting += new
        return reached

    reached = {file: reach(file) for file in files}
    circles = {
        tuple(other for other in files if other in reached[file] and file in reached[other])
        for file in files
    }
    return [[*circle] for circle in sorted(circles) if len(circle) > MOST_IN_A_CIRCLE]


def find_upward_imports(package: PackageFiles) -> list[str]:
    """Return imports from the own layer or a higher one, and packages without a layer."""
    rank = {name: layer for layer, names in enumerate(LAYERS) for name in names.split()}
    files = [file for file in package.texts if file not in ROOT]
    missing = {get_package(file) for file in files} - set(rank)
    if missing:
        return [f"give {name} a layer in LAYERS" for name in sorted(missing)]
    return [
        str(found)
        for file in files
        for found in package.imports(file)
        if get_package(found.target) != get_package(file)
        and ((found.target in ROOT and found.name not in ("_core", "__version__"))
             or rank.get(get_package(found.target), -1) >= rank[get_package(file)])
    ]  # fmt: skip


def find_private_imports(package: PackageFiles) -> list[str]:
    """Return imports of another package's private file or name."""
    return [
        str(found)
        for file in package.texts
        for found in package.imports(file)
        if get_package(found.target) != get_package(file)
        and found.name not in ("_core", "__version__")
        and any(
            part.startswith("_") and part != "__init__"
            for part in [*found.target.split("/"), found.name]
        )
    ]


def find_module_lookups(package: PackageFiles) -> list[str]:
    """Return lookups in `sys.modules`, and `get_loaded_module` of dpcore or of an unknown name."""
    found = []
    for file, text in package.texts.items():
        for node in list_nodes(text):
            match node:
                case ast.Attribute(value=ast.Name("sys"), attr="modules"):
                    if f"{file}.py" not in DIRECT:
                        found.append(f"{file}.py:{node.lineno} looks into sys.modules")
                case ast.ImportFrom(module="sys"):
                    found.append(f"{file}.py:{node.lineno} imports from sys")
                case ast.Call(
                    func=ast.Name("get_loaded_module" | "attribute_if_imported"), args=[key, *_]
                ):
                    constant = isinstance(key, ast.Constant)
                    if constant and not str(key.value).startswith("dpcore"):
                        continue
                    if constant or f"{file}.py" not in OTHERS:
                        found.append(f"{file}.py:{node.lineno} looks for {ast.unparse(key)}")
    return found


def find_long_files(package: PackageFiles) -> list[str]:
    """Return files of more than 800 lines."""
    lines = {file: len(text.splitlines()) for file, text in package.texts.items()}
    return [
        f"{file}.py has {size} lines"
        for file, size in lines.items()
        if size > 800 and not file.endswith("__init__")
    ]


def find_reserved_names(package: PackageFiles) -> list[str]:
    """Return files and folders with the name of a public function."""
    return [file for file in package.texts if RESERVED & set(file.split("/"))]


def list_public_files(package: PackageFiles) -> set[str]:
    """Return the files that users import by path: packages, and what their `__all__` names."""
    first = {get_package(file) for file in package.texts} - INNER - set(ROOT)
    waiting = [(name,) for name in first] + [tuple(part.split("/")) for part in EXPERIMENT_PARTS]
    found: set[str] = {"__init__"}
    while waiting:
        dotted = waiting.pop()
        file = package._file(dotted)
        if file and file not in found:
            found.add(file)
            waiting += [(*dotted, name) for name in list_shown_names(package.trees[file]) or ()]
    return found


def list_shown_names(tree: ast.Module) -> list[str] | None:
    """Return the names of a file's `__all__`; None if it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets):
                items = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
                return [str(one.value) for one in items]
    return None


def find_unlisted_names(package: PackageFiles) -> list[str]:
    """Return public files and packages with names that lack `__all__`, others that have it."""
    public, found = list_public_files(package), []
    for file, tree in package.trees.items():
        has_names = any(not isinstance(node, ast.Expr) for node in tree.body)
        is_listed = list_shown_names(tree) is not None
        needs_list = file in public or file.endswith("__init__")
        if has_names and needs_list and not is_listed:
            found.append(f"{file}.py has no __all__")
        elif is_listed and not needs_list:
            found.append(f"{file}.py has __all__, but is not public")
    return found


def find_vague_heads(package: PackageFiles) -> list[str]:
    """Return docstrings that begin with a word such as What or How instead of a verb or a noun."""
    return [
        f"{file}.py:{node.lineno}: {head}"
        for file, text in package.texts.items()
        for node in list_nodes(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for head in [(ast.get_docstring(node) or "").partition("\n")[0]]
        if VAGUE.match(head)
    ]


def find_attribute_queries(package: PackageFiles) -> list[str]:
    """Return `getattr` and `hasattr` of attributes that have a declared default."""
    classes = "MechanismAttributes", "ScoreAttributes"
    declared = {
        name.id
        for tree in package.trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name in classes
        for part in node.body
        if isinstance(part, ast.Assign)
        for target in part.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    } - {"name", "index", "norm", "words"}
    queries = [
        (file, node.lineno, argument.value)
        for file, text in package.texts.items()
        for node in list_nodes(text)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr", "has_all")
        for argument in node.args[1:]
        if isinstance(argument, ast.Constant)
    ]
    return [
        f"{file}.py:{line} asks for {name}: see MechanismAttributes, ScoreAttributes"
        for file, line, name in queries
        if name in declared and f"{file}.py: {name}" not in QUERIES
    ]


RULES = [
    find_import_circles, find_upward_imports, find_private_imports, find_module_lookups,
    find_long_files, find_reserved_names, find_unlisted_names, find_vague_heads,
    find_attribute_queries,
]  # fmt: skip
