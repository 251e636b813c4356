"""Text in which every character is visible: names cannot move, hide or reorder a reader's lines.

Reports, pages, pictures and messages quote names of mechanisms, files, columns and events, notes,
and content of foreign JSON files. Each is made visible when it is written.
"""

from __future__ import annotations


def make_visible(text: str, layout: str = "") -> str:
    r"""Replace control characters, and other invisible characters, by their escapes in `repr`.

    These are ESC, line ends and other controls, controls of the direction of writing, spaces of
    zero width, surrogates, and all spaces except the plain one. Other letters and signs of any
    language are unchanged. A text that was already made visible is unchanged too.

    Args:
        text: any text.
        layout: characters that stay, such as line ends of dpcore's own layout.

    Returns:
        The text; the same object if it has no such character.

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
