"""Colours, shapes, words and number formats of every chart and page: their one home.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which stay apart under every common colour vision;
no meaning rests on colour alone: lines also differ in dash and marker, cells also carry a letter.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

Row = Mapping[str, Any]

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
INK = "#1b1f24"
MUTED = "#59636e"
FAINT = "#d9dee3"
PAPER, GRID, DOMAIN = "#ffffff", "#eceff2", "#b8c0c8"
WHITE, DARK = "#fefefe", "#10141a"
"""Inks on a coloured ground. They are no colour of the page, so that they stay as they are where the page is dark."""
SIGNIFICANT_DIGITS = 6
SEPARATOR = " · "


@dataclass(frozen=True)
class Bound:
    """How one bound looks and reads: its colour, the ink that is legible on it, its letter, what to do about it."""

    name: str
    colour: str
    ink: str
    letter: str
    reading: str


BOUNDS: dict[str, Bound] = {
    bound.name: bound
    for bound in (
        Bound(
            "overhead-bound",
            "#d55e00",
            DARK,
            "O",
            "issuing the step takes longer than the device needs for it: fewer or larger launches help, "
            "a faster kernel does not",
        ),
        Bound(
            "compute-bound",
            "#0072b2",
            WHITE,
            "C",
            "the device is busy, and the measured arithmetic roof explains its time: only fewer FLOPs or "
            "a cheaper dtype help",
        ),
        Bound(
            "memory-bound",
            "#009e73",
            DARK,
            "M",
            "the device is busy moving bytes at the measured bandwidth: fusing operations or smaller dtypes help",
        ),
        Bound(
            "device-bound",
            "#56b4e9",
            DARK,
            "D",
            "the device is busy, but neither roof explains its time; the reason says why "
            "(underfilled, inefficient, mixed, no cost model)",
        ),
        Bound(
            "serialized",
            "#cc79a7",
            DARK,
            "S",
            "host and device wait for each other, so their times add up: remove the blocking calls that are named",
        ),
        Bound("input-bound", "#e69f00", DARK, "I", "the step waits for its data: speed up loading or prefetch"),
        Bound(
            "communication-bound",
            "#5d3a9b",
            WHITE,
            "N",
            "the step waits for other devices: overlap communication with computation or send less",
        ),
        Bound(
            "balanced",
            "#f0e442",
            DARK,
            "=",
            "the interval of overhead / work holds 1: too close to the crossing to name a side",
        ),
        Bound(
            "unknown",
            "#c8ced4",
            DARK,
            "?",
            "not decided; the reason says what is missing or could not be measured",
        ),
        Bound("not measured", "#f3f5f7", DARK, "×", "the point failed or was skipped; the reason is listed"),
    )
}
NOT_MEASURED = BOUNDS["not measured"]


@dataclass(frozen=True)
class Line:
    """How one quantity is drawn: colour, ink of its words, dashes (pixels on, off), marker of Vega, width in pixels."""

    colour: str
    ink: str
    dash: tuple[int, ...]
    shape: str
    width: float


# Wall follows the larger of the other two: a wide pale line lies under them instead of hiding them.
WALL_LINE = Line("#9aa4ae", MUTED, (1, 0), "circle", 5.0)
OVERHEAD_LINE = Line("#d55e00", "#a84300", (7, 3), "square", 1.8)
WORK_LINE = Line("#0072b2", "#005c8f", (2, 3), "triangle-up", 1.8)

OVERHEAD_REGIME, DEVICE_REGIME = "overhead-bound", "device-bound"

AT_NIGHT: dict[str, str] = {
    PAPER: "#14181d",
    INK: "#e8ebee",
    MUTED: "#a5aeb8",
    FAINT: "#363e47",
    GRID: "#252b32",
    DOMAIN: "#59636e",
    OVERHEAD_LINE.ink: "#ff9c5c",
    WORK_LINE.ink: "#74c4f7",
}
"""Colours of page and charts, and what takes their place on a dark page. Every other colour is legible on both."""


def point_key(row: Row) -> str:
    """What the rows of charts carry as `p`, so that a page can tell to which point they belong."""
    return f"{row.get('point_id')}|{row.get('environment_id')}"


def overhead_word(row: Row) -> str:
    """What overhead is called for a point: issue time on an asynchronous device, the floor on the CPU."""
    return "floor" if row.get("device") == "cpu" else "issue"


def work_word(row: Row) -> str:
    """What work is called for a point: device time, or wall above the floor on the CPU."""
    return "work" if row.get("device") == "cpu" else "device"


def bound_of(row: Row) -> Bound:
    """The look of a row's bound; a bound this version does not know is drawn as unknown."""
    if row.get("status") not in (None, "ok"):
        return NOT_MEASURED
    return BOUNDS.get(row.get("bound") or "unknown", BOUNDS["unknown"])


def rounded(value: Any) -> Any:
    """A float cut to six significant digits; anything that is no finite float as it is (NaN and infinities: None)."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(value) else None


def number(value: float | int | None, digits: int = 3) -> str:
    """A figure of the given significant digits with thousands separators; an unknown one is an en dash."""
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")  # what rounds to a power of ten counts as one: 0.9996 is 1.00
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{value:,.{decimals}f}".replace("-", "−")
    return text.rstrip("0").rstrip(".") if "." in text and isinstance(value, int) else text


def size(value: float | int) -> str:
    """A value of a numeric axis: whole numbers in full, others of 100 and more rounded, else three digits."""
    return f"{round(value):,}" if abs(value) >= 100 or value == int(value) else number(value)


def time_us(value: float | None) -> str:
    """A time in the unit that reads best: µs, ms or s, three significant digits."""
    if value is None:
        return "–"
    for divisor, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= 0.9995 * divisor:
            return f"{number(value / divisor)} {unit}"
    return f"{number(value)} µs"


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """`value (low to high)` of a time, or the value alone where no interval is known."""
    if value is None or low is None or high is None:
        return time_us(value)
    return f"{time_us(value)} ({time_us(low)} to {time_us(high)})"


def rate(value: float | None, roof: str) -> str:
    """A ceiling in TFLOP/s or GB/s (powers of ten), as its kind asks."""
    if value is None:
        return "–"
    return f"{number(value / 1e12)} TFLOP/s" if roof == "flops" else f"{number(value / 1e9)} GB/s"


def roof_word(roof: str) -> str:
    """The kind of a ceiling in words."""
    words = {"flops": "arithmetic", "dram": "device memory", "l2": "second-level cache"}
    return words.get(roof, roof)


def span_us(value: float | None, low: float | None, high: float | None) -> str:
    """`low to high` of a time, in the unit of the value; empty where one is unknown."""
    if value is None or low is None or high is None:
        return ""
    divisor = next((size for size in (1e6, 1e3) if abs(value) >= 0.9995 * size), 1.0)
    return f"{number(low / divisor)} to {number(high / divisor)}"


def compile_word(mode: str | None) -> str:
    """The axis `compile` in words: eager, compiled, or the mode of torch.compile."""
    words = {None: "", "false": "eager", "true": "compiled"}
    return words.get(mode, str(mode))


def plural(count: int, noun: str) -> str:
    """`1 point`, `3 points`, `2 series`."""
    return f"{count:,} {noun}" if count == 1 or noun.endswith("s") else f"{count:,} {noun}s"


def listed(items: Sequence[str], conjunction: str = "and") -> str:
    """Items as a phrase: `a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {conjunction} {items[-1]}"


def json_params(row: Row) -> Mapping[str, Any]:
    """The further axes of a row, `params` read from its JSON text; none, or text that is no JSON object, is empty."""
    return _read_params(row.get("params") or "{}")


@lru_cache(maxsize=65_536)
def _read_params(text: str) -> Mapping[str, Any]:
    """Many points have the same further axes, and each is asked for them many times."""
    try:
        value = json.loads(text)
    except ValueError:
        return MappingProxyType({})
    return MappingProxyType(value if isinstance(value, dict) else {})


def _plain(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


USUAL = {"l2": "warm", "seed": 0, "schedule": "1/1/20/1"}
"""Further axes as they are when nobody sets them: not worth a word in a name."""


class SeriesNames:
    """Names series by what tells them apart.

    The workload, dtype, batch, compile mode and a warm-up that is not the usual one always stand in a name; a further
    setting only where the rows given of that workload disagree on it, so that what is common to all is not repeated in
    every title.
    """

    _SETTINGS = ("dynamic", "device")

    def __init__(self, rows: Iterable[Row], axis: str = "size", said: Sequence[str] = ()) -> None:
        """rows: all that need names; axis: what varies within a series; said: columns that a heading already names."""
        self.axis, self.said = axis, said
        rows = list(rows)
        self._settings = [
            name for name in self._SETTINGS if name not in said and len({row.get(name) for row in rows}) > 1
        ]
        # A cold point has a schedule of its own: what differs by warm-up alone tells nothing apart.
        kinds: dict[tuple[Any, Any], list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            kinds[row.get("workload"), row.get("warmup")].append(json_params(row))
        self._params: dict[Any, set[str]] = defaultdict(set)
        for (workload, _), params in kinds.items():
            keys = {key for each in params for key in each} - {axis}
            self._params[workload] |= {key for key in keys if len({_plain(each.get(key)) for each in params}) > 1}

    def __call__(self, row: Row) -> str:
        words = [
            None if "workload" in self.said else row.get("workload"),
            self._size(row),
            row.get("dtype"),
            self._batch(row),
        ]
        words += [compile_word(row.get("compile")), self._warmup(row)]
        words += [f"{name} {_plain(row[name])}" for name in self._settings if self._has(row, name)]
        params = json_params(row)
        told = sorted(self._params[row.get("workload")])
        words += [f"{key} {_plain(params[key])}" for key in told if params.get(key) not in (None, USUAL.get(key))]
        return SEPARATOR.join(str(word) for word in words if word)

    @staticmethod
    def _has(row: Row, name: str) -> bool:
        """Whether a setting means anything for a point: nothing is dynamic where nothing is compiled."""
        return row.get(name) is not None and not (name == "dynamic" and row.get("compile") == "false")

    def _warmup(self, row: Row) -> str | None:
        if "warmup" in self.said:
            return None
        words = {"true": None, None: None, "false": "cold"}
        return words.get(row.get("warmup"), f"{row.get('warmup')} warm-up steps")

    def _size(self, row: Row) -> str | None:
        return None if self.axis == "size" or row.get("size") is None else f"size {row['size']:,}"

    def _batch(self, row: Row) -> str | None:
        return None if self.axis == "batch" or row.get("batch") is None else f"batch {row['batch']:,}"


def config() -> dict[str, Any]:
    """The Vega-Lite configuration that every chart shares: light ground, one typeface, quiet grid."""
    text = {"labelColor": MUTED, "titleColor": MUTED, "labelFontSize": 11, "titleFontSize": 11}
    return {
        "background": PAPER,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **text,
            "titleFontWeight": "normal",
            "gridColor": GRID,
            "domainColor": DOMAIN,
            "tickColor": DOMAIN,
            "labelPadding": 5,
            "titlePadding": 8,
        },
        # Room for the widest label of a time, so that plots one below the other begin at the same place.
        "axisY": {"minExtent": 46},
        "legend": {**text, "title": None, "orient": "top", "symbolSize": 70, "symbolStrokeWidth": 0},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": INK,
            "fontSize": 13,
            "fontWeight": 600,
            "subtitleColor": MUTED,
            "subtitleFontSize": 11.5,
            "subtitlePadding": 4,
            "offset": 10,
        },
    }
