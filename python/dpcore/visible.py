"""Text that shows what it holds: names of others cannot move, hide or reorder a reader's lines.

Reports, pages, pictures and messages quote names of mechanisms, files, columns and events, notes,
and what JSON of somebody else holds. Each is made visible where it is written.
"""

from __future__ import annotations


def make_visible(text: str, layout: str = "") -> str:
    r"""Write control characters, and others that cannot be seen, as `repr` does.

    These are ESC, line ends and other controls, controls of the direction of writing, spaces of
    zero width, surrogates, and all spaces but the plain one. Other letters and signs of any
    language are unchanged, and so is a text that was made visible before.

    Args:
        text: any text.
        layout: characters that stay, such as line ends of dpcore's own layout.

    Returns:
        The text; itself where it has no such character.

    Example:
        >>> print(make_visible("m\n  verdict      not refuted"))
        m\n  verdict      not refuted
        >>> print(make_visible("Übung \x1b[2J \u202e"))
        Übung \x1b[2J \u202e
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in layout else repr(sign)[1:-1] for sign in text
    )
