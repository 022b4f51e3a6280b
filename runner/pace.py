"""How long points take: by what earlier ones have taken, else by rule of thumb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from runner.point import Point

RULE_OF_THUMB_S = {"idle": 0.003, "eager": 1.0, "compiled": 6.0, "cold": 12.0}
"""Seconds of a point, until one has been seen: its measuring, its compilation, two new processes."""


def kind_of(point: Point) -> str:
    """What decides how long a point takes: `idle`, `cold`, `compiled` or `eager`."""
    if point.spec.idle:
        return "idle"
    if point.cold:
        return "cold"
    return "eager" if point.compile is False else "compiled"


class Pace:
    """Mean seconds a point by its kind, of the points seen in this sweep; `history`: medians of earlier sweeps."""

    def __init__(self, history: Mapping[str, float]) -> None:
        self._before = {**RULE_OF_THUMB_S, **history}
        self._seconds: Counter[str] = Counter()
        self._points: Counter[str] = Counter()

    def learn(self, kind: str, seconds: float) -> None:
        """A point of a kind took so long, from one point's end to the next one's."""
        self._seconds[kind] += seconds  # type: ignore[assignment]
        self._points[kind] += 1

    def seconds(self, left: Mapping[str, int], devices: int = 1) -> float:
        """Seconds that so many points of each kind will take on so many devices at once."""
        return sum(count * self._of(kind) for kind, count in left.items()) / devices

    def _of(self, kind: str) -> float:
        seen = self._points[kind]
        return self._seconds[kind] / seen if seen else self._before[kind]
