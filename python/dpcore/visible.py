"""Replacement of invisible characters, which could hide or reorder the lines of a report.

Reports, pages, pictures and messages quote text from outside: names of mechanisms, files, columns
and events, notes, and content of JSON files. dpcore replaces invisible characters in such text when
it writes the text.
"""

from __future__ import annotations


def make_visible(text: str, layout: str = "") -> str:
    r"""Replace invisible characters in a text, such as control characters, by escape sequences.

    The escape sequences are those of `repr`, such as `\n` for a line end.

    The function replaces these characters:

    - ESC, line ends and other control characters;
    - characters that change the direction of writing;
    - spaces of zero width, and all other spaces except the ordinary space;
    - surrogates.

    Letters and signs of all languages are unchanged. A second call does not change the text.

    Args:
        text: any text.
        layout: characters that are not replaced, such as "\n" to keep the line ends.

    Returns:
        The new text. If no character is replaced, the result is the same object as `text`.

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
