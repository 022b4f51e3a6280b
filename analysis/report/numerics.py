"""How far the results of measured points are from float64: a fast wrong answer is worth nothing."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from analysis import theme
from analysis.report import html
from analysis.theme import Row

MOST_ROWS = 200
HEADS = (
    "workload",
    "dtype",
    "compile",
    "device",
    "results",
    "error",
    "error of eager",
    "share of what is allowed",
    "points",
    "why",
)
READING = (
    "Each workload's result was compared with that of the same step in float64: the error is the norm of the "
    "difference over the norm of the result, at the worst point. Allowed is twice the error of eager in the same "
    "dtype, plus its epsilon."
)


def numerics_parts(rows: Sequence[Row]) -> list[str]:
    """A sentence and a table, failures first; nothing where nothing was checked. rows: of the view numerics."""
    if not rows:
        return []
    kept = rows[:MOST_ROWS]
    rest = (
        [html.paragraph(f"The first {MOST_ROWS} of {len(rows):,} are shown.", "note")] if len(kept) < len(rows) else []
    )
    settings = _Settings(rows)
    table = html.table("Errors against float64", HEADS, [_cells(row, settings(row)) for row in kept])
    return [html.paragraph(_words(rows), "numerics"), html.paragraph(READING, "reading"), table, *rest]


def _words(rows: Sequence[Row]) -> str:
    """How many kinds of points are right, wrong and unknown."""
    wrong = sum(row["passed"] is False for row in rows)
    unknown = sum(row["passed"] is None for row in rows)
    right = len(rows) - wrong - unknown
    kinds = theme.plural(len(rows), "kind")
    told = [f"Of {kinds} of points (workload, settings, dtype, compile mode) the results of {right:,} are right"]
    told += [f"of {wrong:,} wrong"] if wrong else []
    told += [f"of {unknown:,} not known"] if unknown else []
    return f"{theme.listed(told)}."


class _Settings:
    """The settings of a kind of points in words: those in which the kinds of its workload differ."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._names = theme.SeriesNames([self._named(row) for row in rows], said=("workload",))

    def __call__(self, row: Row) -> str:
        return self._names(self._named(row))

    @staticmethod
    def _named(row: Row) -> Row:
        return {"workload": row["workload"], "params": row["settings"]}


def _cells(row: Row, settings: str) -> list[html.Cell]:
    small = f"<small>{html.text(settings)}</small>" if settings else ""
    return [
        html.Cell(html.text(row["workload"]) + small, str(row["workload"])),
        html.word(row["dtype"]),
        html.word(theme.compile_word(row["compile"])),
        html.word(row["device"]),
        html.word({True: "right", False: "wrong", None: "not known"}[row["passed"]]),
        html.figure(row["error"], _error(row["error"])),
        html.figure(row["eager_error"], _error(row["eager_error"])),
        html.figure(row["allowed_frac"], _share(row["allowed_frac"])),
        html.Cell(f"{row['checks']:,}{_worst(row)}", row["checks"], True),
        html.word(row["reason"]),
    ]


def _error(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{theme.number(100 * value)} %"


def _worst(row: Row) -> str:
    """A link to the page of the worst point."""
    key = str(row["point_id"])
    return f'<small><a href="#point={quote(key)}">{html.text(key[:8])}</a></small>'
