"""Charts, by their specification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from analysis import charts, marks, theme
from analysis.theme import SeriesNames

SIZES = (64, 1024, 4096)


def bound(size: int, issue: float, work: float, **changes: Any) -> dict[str, Any]:
    """A row of `bounds` with intervals of 2 % and a wall time that keeps the law."""
    times = {"wall_us": max(issue, work), "overhead_us": issue, "work_us": work}
    row: dict[str, Any] = {
        "point_id": f"p{size}",
        "environment_id": "env",
        "workload": "matmul_add",
        "size": size,
        "dtype": "bf16",
        "batch": None,
        "compile": "false",
        "warmup": "true",
        "device": "cuda",
        "params": "{}",
        "status": "ok",
        "bound": "overhead-bound" if issue > work else "compute-bound",
        "sentence": f"point {size} in words",
    }
    for name, value in times.items():
        row |= {name: value, f"{name}_low": 0.98 * value, f"{name}_high": 1.02 * value}
    return row | changes


EAGER = [bound(64, 18, 5), bound(1024, 18, 9), bound(4096, 20, 220)]
FOUND = {"axis": "size", "status": "found", "value": 1620.4321987, "low": 1024, "high": 4096, "reason": None}


def drawn(points: list[dict[str, Any]] = EAGER, **changes: Any) -> dict[str, Any]:
    """Specification of the crossover chart of a series."""
    on = charts.rulers(points, "size", charts.LARGE)
    return charts.crossover(points, FOUND | changes, "matmul_add", charts.LARGE, on).to_dict()


def layers(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    """Layers of a specification that draw the mark named."""
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == mark]


def rows_of(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    """The data rows that a layer draws."""
    data = layer.get("data", spec.get("data"))
    return list(spec["datasets"][data["name"]])


def words(value: object) -> Iterator[str]:
    """Every string of a specification."""
    if isinstance(value, dict):
        for each in value.values():
            yield from words(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from words(each)
    elif isinstance(value, str):
        yield value


def test_crossover_draws_every_time_of_every_point() -> None:
    """Three quantities of three points are nine rows, each with its value and interval to six digits."""
    spec = drawn()
    rows = rows_of(spec, layers(spec, "point")[0])
    assert {(row["x"], row["quantity"]) for row in rows} == {
        (size, name) for size in SIZES for name in ("wall", "issue", "device")
    }
    wall = next(row for row in rows if row["x"] == 4096 and row["quantity"] == "wall")
    assert (wall["value"], wall["low"], wall["high"]) == (220, 215.6, 224.4)
    assert wall["says"] == "220 µs (216 µs to 224 µs)"


def test_crossover_marks_the_crossing_at_its_value_with_its_bracket() -> None:
    """The rule stands at the stated value, the band from low to high."""
    spec = drawn()
    rule = next(each for each in layers(spec, "rule") if each["encoding"]["x"]["field"] == "value")
    (row,) = rows_of(spec, rule)
    assert (row["value"], row["low"], row["high"], row["label"]) == (1620.43, 1024, 4096, "1,620")


def test_crossover_names_both_regimes_on_their_sides() -> None:
    """Overhead binds left of the crossing and the device right of it."""
    spec = drawn()
    names = {row["words"]: layer["encoding"]["x"]["value"] for layer, row in texts(spec)}
    assert names["overhead-bound"] < names["device-bound"]


def texts(spec: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Text layers that hold fixed words, each with its row."""
    pairs = [(layer, row) for layer in layers(spec, "text") for row in rows_of(spec, layer)]
    return [(layer, row) for layer, row in pairs if "words" in row]


def test_crossover_swaps_the_regimes_where_overhead_binds_above() -> None:
    """A series that is bound by the device first has its regimes the other way round."""
    spec = drawn([bound(64, 5, 18), bound(4096, 220, 20)])
    names = {row["words"]: layer["encoding"]["x"]["value"] for layer, row in texts(spec)}
    assert names["device-bound"] < names["overhead-bound"]


def test_a_bracketed_crossing_has_a_band_and_no_rule() -> None:
    """Where no value is stated none is drawn; the label names the bracket."""
    spec = drawn(status="bracketed", value=None)
    assert not [each for each in layers(spec, "rule") if each["encoding"]["x"]["field"] == "value"]
    assert "1,024 … 4,096" in set(words(spec["datasets"]))
    assert spec["title"]["subtitle"] == ["crosses between size 1,024 and 4,096"]


@pytest.mark.parametrize(("status", "regime"), [("above", "overhead-bound"), ("below", "device-bound")])
def test_a_series_that_never_crosses_names_the_one_regime(status: str, regime: str) -> None:
    """Above and below mean one regime throughout; there is no crossing to mark."""
    spec = drawn(status=status, value=None, low=None, high=None)
    assert [row["words"] for _, row in texts(spec)] == [regime]
    assert regime in spec["title"]["subtitle"][0]


def test_an_unknown_crossing_says_why_and_claims_no_regime() -> None:
    """Without a verdict the plot names no side, and the subtitle gives the reason."""
    spec = drawn(status="unknown", value=None, low=None, high=None, reason="issue time unknown at 64")
    assert texts(spec) == []
    assert "issue time unknown at 64" in " ".join(spec["title"]["subtitle"])


def test_crossover_axes_are_logarithmic_with_units_and_hold_every_interval() -> None:
    """Both scales are logarithmic, ticks of x are measured sizes, and no interval leaves the domain of y."""
    spec = drawn()
    encoding = layers(spec, "point")[0]["encoding"]
    assert encoding["x"]["scale"]["type"] == encoding["y"]["scale"]["type"] == "log"
    assert encoding["x"]["axis"]["values"] == list(SIZES)
    assert encoding["x"]["axis"]["title"] == "size"
    assert "µs" in encoding["y"]["axis"]["labelExpr"]
    low, high = encoding["y"]["scale"]["domain"]
    assert low < 0.98 * 5
    assert high > 1.02 * 220


def test_lines_differ_in_more_than_colour() -> None:
    """Colour, dash and marker each tell the three quantities apart."""
    spec = drawn()
    looks = layers(spec, "line")[0]["encoding"] | layers(spec, "point")[0]["encoding"]
    for channel in ("color", "strokeDash", "shape"):
        scale = looks[channel]["scale"]
        assert scale["domain"] == ["wall", "issue", "device"]
        assert len({json.dumps(each) for each in scale["range"]}) == 3


def test_the_cpu_speaks_of_floor_and_work() -> None:
    """On the CPU overhead is the floor and what lies above it is work."""
    spec = drawn([bound(size, 3, 9, device="cpu") for size in SIZES])
    quantities = {row["quantity"] for row in rows_of(spec, layers(spec, "point")[0])}
    assert quantities == {"wall", "floor", "work"}


def test_a_failed_point_is_a_cross_with_its_reason() -> None:
    """A point without times stays in the chart, on the axis, with the reason on hover."""
    lost = bound(8192, 0, 0, status="oom", reason="out of memory", wall_us=None, overhead_us=None, work_us=None)
    spec = drawn([*EAGER, lost])
    crosses = [row for layer in layers(spec, "text") for row in rows_of(spec, layer) if row.get("letter") == "×"]
    assert [(row["x"], row["says"]) for row in crosses] == [(8192, "out of memory")]


def test_a_time_of_one_unknown_part_stays_a_row_without_value() -> None:
    """Issue time may be unknown; the row is kept and its value is null, never zero."""
    spec = drawn([bound(64, 18, 5, overhead_us=None, overhead_us_low=None, overhead_us_high=None), *EAGER[1:]])
    row = next(row for row in rows_of(spec, layers(spec, "point")[0]) if row["x"] == 64 and row["quantity"] == "issue")
    assert (row["value"], row["says"]) == (None, "–")


def test_work_of_zero_or_less_has_no_place_on_a_logarithmic_axis() -> None:
    """Work within the noise may be negative: it is kept in words, not drawn, and its interval ends at the axis."""
    noisy = bound(64, 3, 1) | {"work_us": -0.3, "work_us_low": -0.7, "work_us_high": 0.5}
    spec = drawn([noisy, bound(1024, 3, 9)])
    layer = layers(spec, "point")[0]
    row = next(row for row in rows_of(spec, layer) if row["x"] == 64 and row["quantity"] == "device")
    assert row["value"] is None
    assert row["low"] == pytest.approx(layer["encoding"]["y"]["scale"]["domain"][0])
    assert (row["high"], row["says"]) == (0.5, "−0.300 µs (−0.700 µs to 0.500 µs)")


def test_charts_below_one_heading_share_their_rulers() -> None:
    """Two series on the same rulers have equal domains, so that they can be compared."""
    fast, slow = EAGER, [bound(256, 60, 5), bound(2048, 60, 30)]
    on = charts.rulers([*fast, *slow], "size", charts.MEDIUM)
    specs = [charts.crossover(each, FOUND, "x", charts.MEDIUM, on).to_dict() for each in (fast, slow)]
    domains = [layers(spec, "line")[0]["encoding"]["x"]["scale"]["domain"] for spec in specs]
    assert domains[0] == domains[1]
    assert domains[0][0] < 64
    assert domains[0][1] > 4096


def test_an_axis_of_the_params_can_be_drawn() -> None:
    """A numeric axis that is no column is read from params."""
    points = [bound(64, 18, 5, params=json.dumps({"ops": ops})) for ops in (1, 8)]
    on = charts.rulers(points, "ops", charts.LARGE)
    spec = charts.crossover(points, FOUND | {"axis": "ops"}, "x", charts.LARGE, on).to_dict()
    assert {row["x"] for row in rows_of(spec, layers(spec, "point")[0])} == {1, 8}


def test_a_point_without_the_axis_is_refused_by_name() -> None:
    """A chart never drops a point in silence: one that is not on the axis is an error that names it."""
    with pytest.raises(ValueError, match="p64 has no number on the axis batch"):
        charts.rulers(EAGER, "batch", charts.LARGE)


def test_an_axis_with_zero_is_linear() -> None:
    """Zero has no logarithm; the axis is linear then and keeps the point."""
    points = [bound(64, 18, 5, params=json.dumps({"depth": depth})) for depth in (0, 4)]
    ruler = charts.rulers(points, "depth", charts.LARGE).x
    assert ruler.kind == "linear"
    assert ruler.low < 0


def test_the_map_has_a_cell_for_every_point_with_colour_and_letter() -> None:
    """Bounds and failures are cells; colour and letter both name the bound."""
    failed = bound(8192, 0, 0, status="failed", reason="no kernel", bound="unknown", sentence=None)
    points = [*EAGER, failed, bound(64, 9, 9, bound="balanced", compile="true")]
    spec = charts.bounds_map(points, "size", SeriesNames(points)).to_dict()
    cells = spec["datasets"][spec["data"]["name"]] if "data" in spec else rows_of(spec, layers(spec, "rect")[0])
    assert len(cells) == len(points)
    assert {(row["column"], row["letter"]) for row in cells} >= {
        ("64", "O"),
        ("4,096", "C"),
        ("8,192", "×"),
        ("64", "="),
    }
    scale = layers(spec, "rect")[0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))["C  compute-bound"] == "#0072b2"
    assert next(row["says"] for row in cells if row["column"] == "8,192") == "no kernel"


def test_a_large_map_has_no_strokes() -> None:
    """Above a thousand cells strokes cost more than they show."""
    few, many = ([bound(size, 9, 5) for size in range(1, count)] for count in (10, 1200))
    specs = [charts.bounds_map(points, "size", SeriesNames(points)).to_dict() for points in (few, many)]
    assert [layers(spec, "rect")[0]["mark"]["stroke"] for spec in specs] == [theme.FAINT, None]


def test_cold_start_draws_the_steps_in_order_against_the_warm_step() -> None:
    """Samples are numbered from 1 in the order taken; the warm step is a labelled rule."""
    steps = [{"position": place, "value": value} for place, value in ((1, 40.0), (0, 9000.0), (2, 20.0))]
    spec = charts.cold_start(steps, EAGER[0], "matmul_add").to_dict()
    assert [(row["x"], row["value"]) for row in rows_of(spec, layers(spec, "line")[0])] == [(1, 9000), (2, 40), (3, 20)]
    assert rows_of(spec, layers(spec, "rule")[0])[0]["value"] == 18
    assert spec["title"]["subtitle"] == ["first step 9.00 ms, 500× the warm step"]


def test_cold_start_without_a_warm_twin_says_so() -> None:
    """There is nothing to compare with, and no rule."""
    spec = charts.cold_start([{"position": 0, "value": 5.0}], None, "matmul_add").to_dict()
    assert layers(spec, "rule") == []
    assert "warm point was not measured" in spec["title"]["subtitle"][0]


def test_law_counts_the_points_within_five_percent() -> None:
    """The band is ±5 %; the sentence counts the points in it and names the worst."""
    rows = [
        bound(size, 18, 5) | {"model_us": 18.0, "deviation": off}
        for size, off in zip(SIZES, (0.01, -0.05, 0.08), strict=True)
    ]
    spec = charts.law(rows, SeriesNames(rows)).to_dict()
    assert rows_of(spec, layers(spec, "rect")[0]) == [{"low": -0.05, "high": 0.05}]
    assert len(rows_of(spec, layers(spec, "point")[0])) == 3
    assert spec["title"]["subtitle"] == ["within 5 % on 2 of 3 points; off by 5.0 % in the median, 8.0 % at worst"]


def test_a_png_of_two_series_needs_no_browser() -> None:
    """Two charts side by side become one picture with twice as many pixels as its size in CSS pixels."""
    on = charts.rulers(EAGER, "size", charts.MEDIUM)
    pair = [charts.crossover(EAGER, FOUND, name, charts.MEDIUM, on) for name in ("eager", "compiled")]
    picture = charts.png(charts.side_by_side(pair))
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) > 2 * 2 * charts.MEDIUM.width


def test_names_hold_what_tells_series_apart() -> None:
    """What all rows share beyond the usual axes is left out; a param that differs is in every name."""
    rows = [bound(64, 9, 5, params=json.dumps({"bias": bias, "l2": "warm"})) for bias in (1, 2)]
    assert [SeriesNames(rows)(row) for row in rows] == [
        "matmul_add · bf16 · eager · bias 1",
        "matmul_add · bf16 · eager · bias 2",
    ]


def test_what_differs_by_warm_up_alone_is_in_no_name() -> None:
    """A cold point has a schedule of its own; between cold and warm it tells nothing apart."""
    warm = bound(64, 9, 5, params='{"schedule": "1/1/20/1"}')
    cold = bound(64, 9, 5, params='{"schedule": "0/0/20/1"}', warmup="false")
    assert SeriesNames([warm, cold])(cold) == "matmul_add · bf16 · eager · cold"


def test_a_cold_point_is_called_cold() -> None:
    """A name says cold where no step was run before."""
    row = bound(64, 9, 5, warmup="false", batch=8, compile="reduce-overhead")
    assert SeriesNames([row], axis="")(row) == "matmul_add · size 64 · bf16 · batch 8 · reduce-overhead · cold"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (4.9, "4.90 µs"),
        (9.996, "10.0 µs"),
        (18.04, "18.0 µs"),
        (999.4, "999 µs"),
        (999.6, "1.00 ms"),
        (1500.0, "1.50 ms"),
        (2.5e6, "2.50 s"),
        (None, "–"),
    ],
)
def test_times_are_shown_in_the_unit_that_reads_best(value: float | None, shown: str) -> None:
    """Three significant digits, in µs, ms or s; an unknown time is a dash."""
    assert theme.time_us(value) == shown


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_unknown(value: float) -> None:
    """JSON has no NaN: such a number is null."""
    assert theme.rounded(value) is None


def luminance(colour: str) -> float:
    """Relative luminance of a colour (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("bound", theme.BOUNDS.values(), ids=lambda bound: bound.name)
def test_letters_are_legible_on_their_colour(bound: theme.Bound) -> None:
    """Contrast of at least 4.5 to 1, as WCAG asks of text."""
    assert contrast(bound.colour, bound.ink) >= 4.5


@pytest.mark.parametrize("line", [theme.OVERHEAD_LINE, theme.WORK_LINE], ids=["overhead", "work"])
def test_words_in_the_plot_are_legible(line: theme.Line) -> None:
    """The names of the regimes reach the same contrast on white."""
    assert contrast(line.ink, theme.WHITE) >= 4.5


def test_bounds_differ_in_letter_and_colour() -> None:
    """No two bounds share either."""
    bounds = theme.BOUNDS.values()
    assert len({bound.letter for bound in bounds}) == len({bound.colour for bound in bounds}) == len(bounds)


# --- where every series crosses ---------------------------------------------------------------------------------------


def crossing(compile: str, status: str, **ends: Any) -> dict[str, Any]:
    """A row of `crossovers` over size."""
    row = {"p": f"{compile}|env", "workload": "matmul_add", "dtype": "bf16", "batch": None, "compile": compile}
    row |= {
        "axis": "size",
        "warmup": "true",
        "params": "{}",
        "status": status,
        "value": None,
        "low": None,
        "high": None,
    }
    return row | ends


STATED = [
    crossing("reduce-overhead", "above", low=4096),
    crossing("false", "found", value=1767.0, low=1728, high=1824),
    crossing("max-autotune", "below", high=64),
    crossing("true", "bracketed", low=2048, high=4096),
]


def test_crossings_stand_in_the_order_of_where_they_are() -> None:
    """Bound by the device throughout, then by the crossing, then never; a bracket has no dot; the words are short."""
    spec = charts.crossings(STATED, "size", SeriesNames(STATED)).to_dict()
    rows = rows_of(spec, layers(spec, "text")[0])
    assert [(row["kind"], row["value"], row["label"]) for row in rows] == [
        ("device-bound", None, "device-bound from 64"),
        ("crosses", 1767, "1,767  (1,728 to 1,824)"),
        ("crosses", None, "between 2,048 and 4,096"),
        ("overhead-bound", None, "overhead-bound up to 4,096"),
    ]
    assert spec["layer"][0]["mark"]["type"] == "text"  # its rows give the axis their order
    assert "2 cross" in " ".join(spec["title"]["subtitle"])


def test_a_long_name_takes_two_lines() -> None:
    """What tells it from others may stand at its end; rows are higher then, and short names stay as they are."""
    short, long = [{**row, "workload": name} for name, row in zip(["a", "train_step " * 8], STATED, strict=False)]
    few = charts.crossings([short], "size", SeriesNames([short])).to_dict()
    both = charts.crossings([short, long], "size", SeriesNames([short, long])).to_dict()
    assert (few["height"]["step"], both["height"]["step"]) == (24, marks.TWO_LINES)
    axis = both["layer"][0]["encoding"]["y"]["axis"]
    assert "split(replace(datum.label" in axis["labelExpr"] and axis["labelExpr"].endswith(": datum.label")
    assert axis["labelBaseline"]["condition"]["value"] == "bottom" and axis["labelBaseline"]["value"] == "middle"


def test_rows_belong_to_their_points() -> None:
    """Each row of a point carries its key, by which a page filters; a rule or a ground does not."""
    spec = drawn()
    (times,) = {rows_of(spec, layer)[0]["p"] for layer in layers(spec, "point")}
    assert times == "p64|env"
    assert not any("p" in row for layer in layers(spec, "rect") for row in rows_of(spec, layer))


def test_more_points_than_can_be_told_apart_are_counted_in_cells() -> None:
    """The chart holds every point, draws cells of them, and says so; a few are drawn one by one."""
    many = marks.MOST_DOTS + 1
    rows = [bound(64 + place, 18, 5) | {"model_us": 18.0 + place, "deviation": 0.01} for place in range(many)]
    spec = charts.law(rows, SeriesNames(rows)).to_dict()
    cells = spec["layer"][2]
    assert cells["mark"]["type"] == "rect" and len(rows_of(spec, cells)) == many
    assert {"points"} == {each["as"] for step in cells["transform"] for each in step.get("aggregate", ())}
    assert "drawn as cells" in " ".join(spec["title"]["subtitle"])
    assert charts.law(rows[:-1], SeriesNames(rows)).to_dict()["layer"][2]["mark"]["type"] == "point"


def test_a_chart_of_many_series_asks_for_the_first() -> None:
    """What draws a chart without filters keeps the rows of the first series that it asks for."""
    spec = {"usermeta": marks.first_of("series", 2), "datasets": {"d": [{"series": each} for each in "abcab"]}}
    assert marks.drawn(spec)["datasets"]["d"] == [{"series": each} for each in "abab"]
    assert marks.drawn({"datasets": {}}) == {"datasets": {}}
