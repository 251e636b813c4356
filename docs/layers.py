"""Picture of the layers of the package, drawn from the imports of its source. Needs no Sphinx.

A package stands one row above the highest package that it imports; imports in functions and for
type checkers count. Everything is drawn in the colour of the text around it, so that the picture
follows the colour scheme of the page.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

__all__ = ["Part", "draw_layers", "list_rows", "read_parts"]

ROOT, CORE = "dpcore", "_core"
"""Names of the package and of its compiled core, which is written in Rust."""
ENTRANCES = ("__init__", "__main__")
"""Files above all layers."""
WIDTH, HEIGHT, GAP = 112, 40, 8
"""Width and height of a box, and the space between two, in units of the picture."""
PER_LINE = 3
"""Boxes in a line of a row: their names can be read at the width of a phone."""
STYLE = """
.layers { display: block; width: 100%; max-width: 30rem; margin: 0 auto; color: inherit; }
.layers text { fill: currentColor; font: 12px sans-serif; text-anchor: middle; }
.layers .lines { font-size: 11px; }
.layers rect { fill: none; stroke: currentColor; stroke-opacity: .45; }
.layers .core rect { stroke-opacity: 1; stroke-width: 2; }
.layers rect.bar { fill: currentColor; fill-opacity: .15; stroke: none; }
.layers line { stroke: currentColor; stroke-opacity: .2; }
"""


@dataclass
class Part:
    """A package, or a file outside all packages: its lines of code, and what it imports."""

    lines: int = 0
    imports: set[str] = field(default_factory=set)
    calls_core: bool = False


def read_parts(texts: dict[str, str], trees: dict[str, ast.Module]) -> dict[str, Part]:
    """Read the packages, by name; the two files by which users enter are left out.

    Args:
        texts: text of each file, by its path below the root without suffix.
        trees: syntax tree of each file.
    """
    parts: dict[str, Part] = defaultdict(Part)
    for file, text in texts.items():
        if file not in ENTRANCES:
            part, nodes = parts[file.split("/")[0]], list(ast.walk(trees[file]))
            part.lines += count_code_lines(text, nodes)
            part.imports |= set(list_imports(nodes, file.split("/")[:-1]))
    for name, part in parts.items():
        part.calls_core = CORE in part.imports
        part.imports &= parts.keys() - {name}
    return dict(parts)


def list_imports(nodes: list[ast.AST], folders: list[str]) -> Iterator[str]:
    """Yield the first name below the root of every import in a file of some folders."""
    for node in nodes:
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
            yield from (module[1] for module in modules if module[0] == ROOT and module[1:])
        # Every file may read the version, which calls nothing.
        elif isinstance(node, ast.ImportFrom) and node.names[-1].name != "__version__":
            module = node.module.split(".") if node.module else []
            if node.level:
                module = [ROOT, *folders[: len(folders) - node.level + 1], *module]
            if module[0] == ROOT:
                yield from module[1:2] or (alias.name for alias in node.names)


def count_code_lines(text: str, nodes: list[ast.AST]) -> int:
    """Return the number of lines of a file without comments, docstrings and blank lines."""
    lines = enumerate(text.splitlines(), 1)
    code = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code)


def list_rows(parts: dict[str, Part]) -> list[list[str]]:
    """Return the names of the packages in rows from the lowest layer up.

    Raises:
        ValueError: if packages import each other in a circle.
    """
    rows: list[list[str]] = []
    below: set[str] = set()
    while len(below) < len(parts):
        rows.append(sorted(n for n in parts if n not in below and parts[n].imports <= below))
        if not rows[-1]:
            raise ValueError(f"packages must form no circle, got {sorted(parts.keys() - below)}")
        below |= set(rows[-1])
    return rows


def draw_layers(root: Path) -> str:
    """Draw the packages below a folder as boxes, the lowest row at the bottom, as SVG."""
    files = {file.relative_to(root).with_suffix(""): file for file in sorted(root.rglob("*.py"))}
    texts = {name.as_posix(): file.read_text("utf-8") for name, file in files.items()}
    parts = read_parts(texts, {name: ast.parse(text) for name, text in texts.items()})
    most, y, shapes = max(part.lines for part in parts.values()), 0, []
    width = PER_LINE * (WIDTH + GAP)
    for row in reversed(list_rows(parts)):
        for start in range(0, len(row), PER_LINE):
            names = row[start : start + PER_LINE]
            x = (width - len(names) * (WIDTH + GAP) + GAP) / 2
            for place, name in enumerate(names):
                box = draw_box(name, parts[name], parts[name].lines / most)
                shapes.append(f'<g transform="translate({x + place * (WIDTH + GAP):g},{y + GAP})">')
                shapes.append(f"{box}</g>")
            y += HEIGHT + GAP // 2
        y += GAP
        shapes.append(f'<line x1="0" x2="{width}" y1="{y + 2}" y2="{y + 2}"/>')
    shapes.pop()
    head = f'<svg class="layers" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}"'
    title = "Packages in rows, each above all that it imports"
    return "\n".join(
        [f'{head} role="img" aria-label="{title}">', f"<style>{STYLE}</style>", *shapes, "</svg>\n"]
    )


def draw_box(name: str, part: Part, share: float) -> str:
    """Draw a package: its name, its lines of code, and a bar of this share of its width."""
    imports = ", ".join(sorted(part.imports)) or "no other package"
    return (
        f'<g class="{"core" if part.calls_core else "plain"}">'
        f"<title>{escape(name)} imports {escape(imports)}</title>"
        f'<rect class="bar" width="{WIDTH * share:.1f}" height="{HEIGHT}" rx="4"/>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{WIDTH / 2:g}" y="17">{escape(name)}</text>'
        f'<text class="lines" x="{WIDTH / 2:g}" y="32">{part.lines:,}</text></g>'
    )
