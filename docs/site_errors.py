"""What the site reads of the package's messages: errors, warnings, notes. Needs no Sphinx.

The source is walked once. A message is a pattern: what is put in as it is made is `…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import dpcore

GAP = "…"
"""What stands for a value in a pattern."""

MET = (
    "adapters", "attacks", "auditing", "cli", "mechanisms", "pairs", "pytest_plugin",
    "sampling", "tables",
)  # fmt: skip
"""Packages whose messages all users of audits meet: each of these has its entry."""

REASONS = ("sampling/rows.py", "recorded/independent_rows.py")
"""Where the reasons stand that a verdict `invalid: ...` gives."""

NOTES = (
    "attacks/attack.py", "auditing/event_fitting.py", "report/text.py",
    "results/certificate.py", "sampling/slices.py",
)  # fmt: skip
"""Where the notes of a report, its advice and the forecast of a slow audit are written."""

WRITERS = {
    "sampling/rows.py": {
        "_NO_BOUND_REASON", "Evidence", "_describe_likeness", "_describe_variation",
        "varying_calls",
    },
    "report/text.py": {
        "_OTHER_TEXTS", "_OTHER_ROWS", "_ONE_ENTRY", "_TOO_MANY_TRIALS", "_NO_SUFFICIENT_NUMBER",
        "next_step", "_describe_step_without_trials", "_describe_more_trials", "more_rows",
        "size_for_a_tenth",
    },
}  # fmt: skip
"""What writes them in a file that holds the other rows of a report, too."""

PAGE = Path(__file__).parent / "reference" / "errors.md"
"""What is explained by hand."""

_BETWEEN = "\0"
"""Between texts that are searched together."""

_PACKAGE = Path(dpcore.__file__).parent
_ALWAYS = {
    "confidence_level": "a finite number above 0 and below 1",
    "count": "a whole number at least 1 and below 2**63",
    "delta_level": "a finite number at least 0 and below 1",
    "flag": "True or False",
    "vector": "a non-empty vector of finite numbers",
}
_GIVEN = ("choice", "instance", "integer", "invalid", "message", "mistyped", "numeric", "real")
_NAMELESS = {"confidence_level": "confidence", "delta_level": "delta"}
"""Checks that take the value first, and what they call it."""

_TOLD = ("Failure", "Usage", "fail", "say", "warn")
"""What else than an exception is called with a message."""

_Names = dict[str, tuple[str, ...]]
"""The patterns that a name may stand for."""


@dataclass(frozen=True, order=True)
class Said:
    """One message: the argument that it is about (empty for a sentence of its own), its pattern.

    Attributes:
        package: the package that gives it, such as `bounds`.
        place: file and line.
    """

    argument: str
    text: str
    package: str
    place: str


@cache
def messages() -> tuple[Said, ...]:
    """Every message that a check, an exception, a warning or the command line makes."""
    return tuple(one for file, tree in trees() for one in read(file, tree))


def read(file: str, tree: ast.Module) -> list[Said]:
    """The messages of one file, given its path in the package."""
    names: _Names = {}
    for one in tree.body:
        # Functions may read what stands below them.
        _assign(one, names)
    found = dict.fromkeys(_walk(tree.body, names))
    package = file.split("/")[0].removesuffix(".py")
    return [Said(name, text, package, f"{file}:{line}") for name, text, line in found]


@cache
def sentences(*files: str) -> frozenset[str]:
    """The patterns of all strings of the package, or of some files: not those of docstrings."""
    found: set[str] = set()
    for file, tree in trees():
        if not files or file in files:
            writers = WRITERS.get(file) if files else None
            for part in tree.body if writers else [tree]:
                if writers is None or writers & {*_defined_names(part)}:
                    for node in _strings(part):
                        found |= {*_patterns(node, {})}
    return frozenset(found)


def _defined_names(part: ast.AST) -> Iterator[str]:
    """The name of a function, or those of a constant."""
    if isinstance(part, ast.FunctionDef):
        yield part.name
    elif isinstance(part, ast.Assign | ast.AnnAssign):
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        yield from (one.id for one in targets if isinstance(one, ast.Name))


def exists(quoted: str) -> bool:
    """Whether the package still says what a page quotes: words of a message, `…` for anything."""
    return fits(quoted, _everything())


@cache
def _everything() -> str:
    return _BETWEEN.join({one.text for one in messages()} | sentences())


def fits(quoted: str, text: str) -> bool:
    """Whether what a page quotes is part of a message."""
    return _wanted(quoted).search(text) is not None


@cache
def _wanted(quoted: str) -> re.Pattern[str]:
    return re.compile(f"[^{_BETWEEN}]*".join(map(re.escape, quoted.split(GAP))))


@dataclass(frozen=True)
class Entry:
    """What the page explains under one heading.

    Attributes:
        title: the heading.
        arguments: all whose messages it is about: the heading, the line "Arguments: ...", and
            words without backticks with which a bullet begins.
        quoted: words of messages, with which its bullets begin, up to a colon.
    """

    title: str
    arguments: frozenset[str]
    quoted: frozenset[str]

    @property
    def anchor(self) -> str:
        """Of the heading, as GitHub and MyST make it."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")


@cache
def entries() -> tuple[Entry, ...]:
    """The entries of the page, in their order."""
    found = []
    for part in re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        named = re.search(r"^Arguments: ((?:`[^`]+`[,\s]*)+)", rest, re.M)
        bullets = re.findall(r"^- ((?:\w+,\s+)*)((?:`[^`]+`,?\s*)+):", rest, re.M)
        quoted = [words for _, bullet in bullets for words in re.findall("`([^`]+)`", bullet)]
        arguments = {title, *re.findall("`([^`]+)`", named[1] if named else "")}
        arguments |= {word for words, _ in bullets for word in re.findall(r"\w+", words)}
        found.append(Entry(title, frozenset(arguments), frozenset(quoted)))
    return tuple(found)


def explained(said: Said) -> Entry | None:
    """The entry about the argument of a message, or else the one that quotes most of it.

    An argument of another package may be another thing: there the very words must be quoted.
    """
    met = said.package in MET
    for entry in entries():
        if met and said.argument and said.argument in entry.arguments:
            return entry
    fitting = [
        (len(words), entry)
        for entry in entries()
        for words in entry.quoted
        if (fits(words, said.text) if met else words.removeprefix(f"{GAP} ") in said.text)
    ]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    """Every file of the package, by its path in it."""
    files = sorted(_PACKAGE.rglob("*.py"))
    return tuple(
        (one.relative_to(_PACKAGE).as_posix(), ast.parse(one.read_text("utf-8"))) for one in files
    )


def _walk(body: Sequence[ast.stmt], names: _Names) -> Iterator[tuple[str, str, int]]:
    """Argument, pattern and line of each message of some statements, which may set names."""
    for one in body:
        blocks = [getattr(one, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for part in getattr(one, "handlers", ())]
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            yield from _walk(one.body, {**names, **_parameters(one)})
            continue
        for node in _expressions(one):
            if isinstance(node, ast.Call):
                for argument, text in _said(node, names):
                    yield argument, text, node.lineno
        after = []
        for block in filter(None, blocks):
            own = {**names}
            yield from _walk(block, own)
            if not isinstance(block[-1], ast.Raise | ast.Return | ast.Continue):
                after.append(own)
        if isinstance(one, ast.If) and one.orelse and after:
            names.clear()
        for own in after:
            for name, found in own.items():
                names[name] = tuple(dict.fromkeys((*names.get(name, ()), *found)))
        _assign(one, names)


def _parameters(one: ast.FunctionDef | ast.ClassDef) -> _Names:
    """The parameters of a function: what they default to, and anything else."""
    if isinstance(one, ast.ClassDef):
        return {}
    places, named = [*one.args.posonlyargs, *one.args.args], one.args.kwonlyargs
    found = {each.arg: (GAP,) for each in [*places, *named]}
    defaults = one.args.defaults
    given = [*zip(places[len(places) - len(defaults) :], defaults, strict=True)]
    given += [pair for pair in zip(named, one.args.kw_defaults, strict=True) if pair[1]]  # type: ignore[misc]
    return found | {each.arg: _patterns(value, {}) for each, value in given}


def _expressions(one: ast.stmt) -> Iterator[ast.AST]:
    """What a statement computes itself, its blocks left out."""
    for node in ast.iter_child_nodes(one):
        if isinstance(node, ast.expr | ast.keyword | ast.withitem):
            yield from ast.walk(node)


def _assign(one: ast.stmt, names: _Names) -> None:
    if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
        names[one.targets[0].id] = _patterns(one.value, names)
    elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Tuple):
        values = getattr(one.value, "elts", ())
        for target, value in zip(one.targets[0].elts, values, strict=False):
            names[getattr(target, "id", "")] = _patterns(value, names)
    elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value:
        names[one.target.id] = _patterns(one.value, names)
    elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
        before = names.get(one.target.id, (GAP,))
        names[one.target.id] = _joined([before, _patterns(one.value, names)])


def _strings(node: ast.AST) -> Iterator[ast.AST]:
    """What makes a string, each as a whole; strings that stand alone are documentation."""
    for inner in ast.iter_child_nodes(node):
        whole = isinstance(inner, ast.Constant | ast.JoinedStr | ast.BinOp)
        if whole and not isinstance(node, ast.Expr):
            yield inner
        if not isinstance(inner, ast.JoinedStr | ast.BinOp):
            yield from _strings(inner)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _said(node: ast.Call, names: _Names) -> Iterator[tuple[str, str]]:
    """Argument and pattern of what a call says, if it makes a message."""
    called, given = _called(node), [*node.args]
    if called in _ALWAYS or called in _GIVEN:
        named: tuple[str, ...] = (GAP,)
        if called in _NAMELESS:
            given = [*given[1:], *(one.value for one in node.keywords)]
            named = (_NAMELESS[called],)
        if given:
            named = _patterns(given[0], names)
        for argument, wanted in product(named, _requirements(node, called, names)):
            if (argument, wanted) != (GAP, GAP):
                yield argument, f"{argument} must be {wanted}, got {GAP}"
    elif given and (called in _TOLD or called.endswith("Error")):
        # An error of the system has its number first.
        of_system = called.startswith("File") and len(given) > 1
        for text in _patterns(given[1] if of_system else given[0], names):
            if text.strip(f"{GAP} "):
                about = re.match(r"([\w' ]+) must be ", text)
                yield about[1] if about else "", text


def _requirements(node: ast.Call, called: str, names: _Names) -> Iterable[str]:
    """What a check asks for."""
    given, limits = node.args[2:], {one.arg: one.value for one in node.keywords}
    if called in _ALWAYS:
        return [_ALWAYS[called]]
    if called == "integer":
        low = given[0] if given else limits.get("low")
        high = given[1] if len(given) > 1 else limits.get("high")
        if high is not None:
            return [f"an integer from {_number(low)} to {_number(high)}"]
        return [f"an integer at least {_number(low)}"]
    if called == "real":
        ends = []
        for end, words in (("low", ("at least", "above")), ("high", ("at most", "below"))):
            if end in limits:
                ends.append(f"{words[f'open_{end}' in limits]} {_number(limits[end])}")
        return [f"a finite number {' and '.join(ends)}".rstrip()]
    if called == "choice":
        options = getattr(given[0], "elts", ()) if given else ()
        words = [repr(one.value) for one in options if isinstance(one, ast.Constant)]
        return [f"one of {', '.join(words) or GAP}"]
    if called == "instance":
        return [f"a {ast.unparse(given[0])}" if given else GAP]
    return _patterns(node.args[1], names) if len(node.args) > 1 else [GAP]


def _number(node: ast.expr | None) -> str:
    try:
        return f"{ast.literal_eval(node):g}"  # type: ignore[arg-type]
    except (ValueError, SyntaxError, TypeError):
        return GAP


def _patterns(node: ast.AST, names: _Names) -> tuple[str, ...]:
    """The patterns of what may be a string: several where it is one of several."""
    if isinstance(node, ast.Constant):
        return (node.value if isinstance(node.value, str) else GAP,)
    if isinstance(node, ast.JoinedStr):
        return _joined([_patterns(part, names) for part in node.values])
    if isinstance(node, ast.FormattedValue):
        return _patterns(node.value, names) if node.format_spec is None else (GAP,)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([_patterns(node.left, names), _patterns(node.right, names)])
    if isinstance(node, ast.IfExp):
        return (*_patterns(node.body, names), *_patterns(node.orelse, names))
    if isinstance(node, ast.Name):
        return names.get(node.id, (GAP,))
    if isinstance(node, ast.Call):
        inner = node.args[0] if _called(node) in ("str", "ValueError") and node.args else node
        if inner is not node:
            return _patterns(inner, names)
        if _called(node) in ("invalid", "message", "mistyped"):
            return tuple(text for _, text in _said(node, names)) or (GAP,)
    return (GAP,)


def _joined(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    whole = ("".join(chosen) for chosen in list(product(*parts))[:12])
    return tuple(dict.fromkeys(re.sub(f"{GAP}+", GAP, text) for text in whole))
