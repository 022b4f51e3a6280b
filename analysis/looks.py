"""How bounds look in a chart: colour, shape and letter, with one legend for all three."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt

from analysis import theme
from analysis.theme import Bound

SHAPES: dict[str, str] = {
    "overhead-bound": "square",
    "compute-bound": "triangle-up",
    "memory-bound": "diamond",
    "device-bound": "circle",
    "serialized": "triangle-down",
    "input-bound": "triangle-right",
    "communication-bound": "triangle-left",
    "balanced": "cross",
    "unknown": "circle",
    "not measured": "cross",
}
"""Marker of each bound, the same in every chart."""


def bound_key(bound: Bound) -> str:
    """A bound as legends name it: its letter, then its name."""
    return f"{bound.letter}  {bound.name}"


def bound_colour(keys: Iterable[str], legend: alt.Legend | None) -> alt.Color:
    """Colours of the bounds that occur, in the order of the theme; keys: texts of `bound_key`, the field `key`."""
    looks = _present(keys)
    scale = alt.Scale(domain=[bound_key(look) for look in looks], range=[look.colour for look in looks])
    return alt.Color("key:N", scale=scale, legend=legend)


def bound_shape(keys: Iterable[str], legend: alt.Legend | None) -> alt.Shape:
    """Shapes of the bounds that occur: the same domain as that of their colours, so that one legend tells both."""
    looks = _present(keys)
    scale = alt.Scale(domain=[bound_key(look) for look in looks], range=[SHAPES[look.name] for look in looks])
    return alt.Shape("key:N", scale=scale, legend=legend)


def legend() -> alt.Legend:
    """A legend of bounds with a thin edge, since a pale colour would be lost on a light page."""
    return alt.Legend(symbolStrokeColor=theme.MUTED, symbolStrokeWidth=0.5)


def _present(keys: Iterable[str]) -> list[Bound]:
    present = set(keys)
    return [bound for bound in theme.BOUNDS.values() if bound_key(bound) in present]
