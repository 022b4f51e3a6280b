"""Pieces of HTML. Every text passes `text` exactly once; nothing of a store reaches the page in another way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from analysis import theme

_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of text would turn the words around a name as well: they are shown, not obeyed."""


@dataclass(frozen=True)
class Cell:
    """A table cell: what it shows (HTML), the value that sorts it (None sorts last), and whether it is a number."""

    html: str
    order: float | str | None = None
    is_number: bool = False


def text(value: object) -> str:
    """A value as text of the page, whatever characters it holds."""
    return escape(_TURNS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", str(value)))


def code(value: object) -> str:
    """A command or name in a typewriter face."""
    return f"<code>{text(value)}</code>"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of text, with a class."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def missing(why: str, command: str) -> str:
    """One sentence in place of a section's content: why there is none, and the command that would fill it."""
    return f'<p class="missing">{text(why)} {code(command)} fills this section.</p>'


def badge(bound: theme.Bound) -> str:
    """A bound's letter on its colour, followed by its name."""
    letter = f'<span class="badge b-{text(css_name(bound))}" aria-hidden="true">{text(bound.letter)}</span>'
    return f'<span class="bound">{letter}{text(bound.name)}</span>'


def css_name(bound: theme.Bound) -> str:
    """The end of a bound's CSS class."""
    return bound.name.replace(" ", "-")


def word(value: object) -> Cell:
    """A cell of text."""
    return Cell(text("–" if value is None else value), None if value is None else str(value))


def time(value: float | None, low: float | None = None, high: float | None = None) -> Cell:
    """A cell of a time in microseconds with its interval on a second line."""
    span = theme.span_us(value, low, high)
    small = f"<small>{text(span)}</small>" if span else ""
    return Cell(text(theme.time_us(value)) + small, value, True)


def figure(value: float | int | None, shown: str | None = None) -> Cell:
    """A cell of a number, shown to three significant digits unless it says otherwise."""
    return Cell(text(theme.number(value) if shown is None else shown), value, True)


def table(
    label: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], points: Sequence[object] | None = None
) -> str:
    """A sortable table that scrolls sideways where the page is narrow. points: the id of each row's point, by which the
    page's filters choose rows; None for a table that does not follow them."""
    numbers = [bool(rows) and rows[0][place].is_number for place in range(len(heads))]
    head = "".join(_head(name, number) for name, number in zip(heads, numbers, strict=True))
    starts = ["<tr>" for _ in rows] if points is None else [f'<tr data-point="{text(point)}">' for point in points]
    body = "".join(
        f"{start}{''.join(_cell(cell) for cell in row)}</tr>" for start, row in zip(starts, rows, strict=True)
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(name: str, is_number: bool) -> str:
    kind = ' class="number"' if is_number else ""
    return f'<th scope="col"{kind}><button type="button">{text(name)}</button></th>'


def _cell(cell: Cell) -> str:
    kind = ' class="number"' if cell.is_number else ""
    order = theme.rounded(cell.order)
    key = "" if order is None or not cell.is_number else f' data-order="{text(order)}"'
    return f"<td{kind}{key}>{cell.html}</td>"


def facts(label: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[object]]]) -> str:
    """A table whose rows are named facts and whose columns are the things that have them."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in ("", *columns))
    body = "".join(
        f'<tr><th scope="row">{text(name)}</th>{"".join(f"<td>{text(value)}</td>" for value in values)}</tr>'
        for name, values in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}"><table class="facts">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
