"""Writes what is made from the package: pages of subpackages and commands, the layers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from layers import draw_layers
from site_names import Name, commands, names

import dpcore
from dpcore.files.formats import FORMATS

__all__ = [
    "every_name_has_its_page",
    "formats_table",
    "help_page",
    "inside_the_site",
    "linked_names",
    "package_page",
    "whole_sentence",
    "write",
    "write_signature",
]


def write(folder: Path) -> None:
    """Write all of them; a file that would not change is left alone, so that builds stay fast."""
    pages = {
        f"packages/{package}.rst": package_page(package, listed)
        for package, listed in names().items()
    }
    pages |= {"commands.md": help_page(), "formats.md": formats_table()}
    pages["layers.svg"] = draw_layers(Path(dpcore.__file__).parent)
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def package_page(package: str, listed: list[Name]) -> str:
    """Return a package's page: what it is, links to its functions and classes, its constants."""
    parts = [f"{package}\n{'=' * len(package)}", f".. automodule:: {package}\n   :no-members:"]
    for kind, title in (("function", "Functions"), ("class", "Classes")):
        found = [name.path.removeprefix(f"{package}.") for name in listed if name.kind == kind]
        if found:
            table = ".. autosummary::\n   :toctree: ../names\n   :nosignatures:\n\n"
            parts += [f".. rubric:: {title}", table + indented("\n".join(found))]
    constants = [name for name in listed if name.kind == "data"]
    parts += [".. rubric:: Constants"] if constants else []
    for name in constants:
        parts.append(
            f".. py:data:: {name.path.removeprefix(f'{package}.')}\n\n{indented(name.text)}"
        )
    return "\n\n".join(parts) + "\n"


def help_page() -> str:
    """Every command with its arguments and options, from the command line's own help."""
    return "\n\n".join(section(*named) for named in commands()) + "\n"


def formats_table() -> str:
    """Return the table of the formats of files: their endings, and what such files hold."""
    rows = (
        f"| {', '.join(f'`{end}`' for end in each.endings)} | {each.content} |"
        for each in FORMATS.values()
    )
    return "\n".join(("| ends in | holds |", "| --- | --- |", *rows)) + "\n"


def section(words: str, command: Any) -> str:
    """One command: what it does, how it is called, its options by their groups, its examples."""
    options = [one for one in command.params if one.param_type_name == "option"]
    arguments = [one for one in command.params if one not in options]
    called = [words, *(["[OPTIONS]"] if options else []), *(f"[{a.metavar}]" for a in arguments)]
    parts = [f"## {words}", escaped(plain(command.help or "")), literal(" ".join(called))]
    parts += [f"`{one.metavar}`\n: {escaped(one.help)}" for one in arguments]
    groups = dict.fromkeys(one.rich_help_panel for one in options)
    for group in groups:
        parts += [f"### {group}"] if group else []
        parts += [option(one) for one in options if one.rich_help_panel == group]
    return "\n\n".join([*parts, literal(plain(command.epilog or ""))])


def option(one: Any) -> str:
    """An option: how it is written, what it does, and what stands where it is not given."""
    value = "" if one.is_flag else one.metavar or one.type_descriptor.annotation.__name__.upper()
    default = "" if one.is_flag or one.default is None else f" [default: {one.default}]"
    written = f"{', '.join(one.opts)} {value}".rstrip()
    return f"`{written}`\n: {escaped(one.help + default)}"


def plain(text: str) -> str:
    """Without the marks of rich."""
    return re.sub(r"\[/?[a-z ]+\]", "", inspect.cleandoc(text))


def escaped(text: str) -> str:
    """As a sentence of Markdown, options as code."""
    return re.sub(r"(?<!\S)(--[a-z][\w-]*)", r"`\1`", re.sub(r"([*`_<[\\])", r"\\\1", text))


def literal(text: str) -> str:
    """A block that is shown as it is."""
    return f"```text\n{text}\n```" if text else ""


def indented(text: str) -> str:
    """As the content of a directive."""
    return "\n".join(f"   {line}" for line in text.splitlines())


def write_signature(
    app: Any, what: str, name: str, value: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Write a signature with its types as the source has them: aliases are short there."""
    from sphinx.util.inspect import stringify_signature

    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    held = [one for one in found.parameters.values() if one.name != "self"]
    shown, _, result = str(stringify_signature(found.replace(parameters=held))).partition(" -> ")
    return shown.replace("npt.", ""), "" if what == "class" else result.replace("npt.", "")


def whole_sentence(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """A property's "The claim: a number.", of which napoleon takes the half for a type."""
    if what in ("attribute", "data", "property"):
        for place, line in enumerate(lines):
            if line.startswith(":type: "):
                lines[0] = f"{line.removeprefix(':type: ')}: {lines[0]}"
                del lines[place]
                break


def inside_the_site(app: Any, name: str, text: list[str]) -> None:
    """Turn a page's links to what only the repository has into links of the site.

    Pages are read in the repository too, where the gallery is the scripts that it is made of.
    """
    text[0] = re.sub(r"\]\((?:\.\./)+examples/(\w+/\w+)\.py\)", r"](/gallery/\1.rst)", text[0])
    text[0] = re.sub(r"\]\((?:\.\./)+examples/\)", "](/gallery/index.rst)", text[0])


def linked_names(app: Any, tree: Any) -> None:
    """Make names such as `dpcore.audit` in a page links to their pages."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref

    if not app.env.docname.startswith("reference/generated"):
        for node in list(tree.findall(nodes.literal)):
            name = node.astext().removesuffix("()")
            if re.fullmatch(r"dpcore(\.\w+)+", name) and not isinstance(
                node.parent, (nodes.reference, pending_xref)
            ):
                link = pending_xref("", refdomain="py", reftype="obj", reftarget=name)
                link["refdoc"] = app.env.docname
                node.replace_self(link)
                link += node


def every_name_has_its_page(app: Any, exception: Exception | None) -> None:
    """Fail the build for a public name that no page documents."""
    documented = app.env.get_domain("py").objects
    missing = [
        name.path for listed in names().values() for name in listed if name.path not in documented
    ]
    if missing and exception is None:
        raise ValueError(f"public names without a page: {', '.join(missing)}")
