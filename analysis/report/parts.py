"""What the page is made of: sections, each of HTML, charts and tables of points, in the order of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from analysis.theme import Row


@dataclass(frozen=True)
class Figure:
    """A chart with what a reader may ask of it.

    name: of its file, where charts are written as pictures. reading: how to read it, one or two sentences. sql: a query
    that gives its rows. config: replaces parts of the common configuration of charts.
    """

    name: str
    chart: alt.TopLevelMixin
    reading: str
    sql: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """Figures that stand side by side."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Column:
    """A column of a table of points: the key of its values (see points.py), its heading, and how a value is shown.

    kind: name, bound, time (microseconds, with `key_low` and `key_high`), size, times (a factor), number, or text.
    note: what stands below a time of an imported trace.
    """

    key: str
    label: str
    kind: str = "text"
    note: str | None = None


@dataclass(frozen=True)
class PointTable:
    """A table of points that the page makes of the columns it holds; it follows the filters."""

    label: str
    heads: Sequence[Column]
    rows: Sequence[Row]


Part = str | Figures | PointTable


@dataclass(frozen=True)
class Section:
    """A section of the page: where links lead, its title, and its parts in order."""

    anchor: str
    title: str
    parts: Sequence[Part]

    @property
    def figures(self) -> list[Figure]:
        """All figures of the section, in order."""
        return [figure for part in self.parts if isinstance(part, Figures) for figure in part.figures]
