"""The report as a file: its content, its policy, and what stands where there is nothing to show."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from duckdb import DuckDBPyConnection

from analysis import marks, theme
from analysis.naming import named_runs
from analysis.report import chart_files, write_charts, write_report
from analysis.report.answer import answer
from analysis.report.chosen import representative
from analysis.report.files import replace_file
from analysis.report.imports import in_units
from analysis.report.parts import Section
from analysis.report.sections import MOST_ROWS, names_of_environments, sections
from analysis.report.series import Series, cold_points, series_of
from analysis.report.tables import Tables, read
from analysis.store import add, open_store
from tests.figures import ENVIRONMENT, cold, h200_store, warm
from tests.given import write_store

pytestmark = pytest.mark.usefixtures("script_made_once")

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>'


SWEEP = ["series", "map", "roofline", "pairs", "law"]
"""Sections that a sweep alone can fill."""


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> DuckDBPyConnection:
    """The store of the H200 sweep, open."""
    return open_store(h200_store(tmp_path_factory.mktemp("h200")))


@pytest.fixture(scope="module")
def tables(h200: DuckDBPyConnection) -> Tables:
    """Rows of the H200 sweep."""
    return read(h200)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the H200 sweep."""
    folder = tmp_path_factory.mktemp("report")
    return write_report(open_store(h200_store(folder / "store")), folder / "out" / "report.html").read_text()


@pytest.fixture(scope="module")
def empty_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a store without runs."""
    folder = tmp_path_factory.mktemp("empty")
    return write_report(open_store(write_store(folder / "store")), folder / "report.html").read_text()


def section(page: str, anchor: str) -> str:
    """The HTML of one section."""
    found = re.search(rf'<section id="{anchor}".*?</section>', page, re.DOTALL)
    assert found, f"no section {anchor}"
    return found.group()


def words(markup: str) -> str:
    """The text of some HTML, spaces joined."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def data_of(page: str) -> dict[str, Any]:
    """What the scripts of a page read, its columns unpacked."""
    found = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert found
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found.group(1))))
    points = data["points"]
    points["columns"] = {name: unpacked(column) for name, column in points["columns"].items()}
    return data


def unpacked(column: Any) -> list[Any]:
    """A column whose texts may be numbers of a list of words."""
    return column if isinstance(column, list) else [column["words"][code] for code in column["codes"]]


def figures(page: str) -> list[dict[str, Any]]:
    """The chart specifications that the page holds."""
    return data_of(page)["figures"]


def point_rows(page: str, label: str) -> list[dict[str, Any]]:
    """The rows of a table of points: the values of its columns, and those of the intervals."""
    data = data_of(page)
    columns, (table,) = data["points"]["columns"], [each for each in data["tables"] if each["label"].startswith(label)]
    bounds = [bound["name"] for bound in data["points"]["bounds"]]
    rows = [{name: column[row] for name, column in columns.items()} for row in table["rows"]]
    return [row | {"bound": bounds[row["bound"]]} for row in rows]


def sections_of(tables: Tables) -> list[Section]:
    """All sections of a report."""
    series = series_of(tables.crossovers, tables.bounds)
    return sections(tables, series, names_of_environments(tables))


def test_sections_stand_in_the_order_of_reading(page: str) -> None:
    """The answer comes first, the environment last, and the contents lead to each."""
    anchors = re.findall(r'<section id="(\w+)"', page)
    expected = ["answer", *SWEEP, "findings", "points", "failed", "quality", "environment"]
    assert anchors == expected
    assert re.findall(r'<li><a href="#(\w+)"', page) == expected


def test_the_answer_states_both_crossings_in_two_sentences(page: str) -> None:
    """The eager and the compiled series cross; nothing is left over."""
    text = words(section(page, "answer"))
    assert re.search(r"at size 1,6\d\d \(1,536 to 1,792\) for matmul_add bf16 eager", text)
    assert re.search(r"at size \d,\d{3} \(2,048 to 4,096\) for matmul_add bf16 compiled", text)
    assert "Every series crosses in the range measured." in text


def crossing(status: str, **changes: Any) -> Series:
    """A series of matmul_add over size with this status."""
    row = {"environment_id": "env", "workload": "matmul_add", "size": None, "dtype": "bf16", "batch": None}
    row |= {"compile": "false", "warmup": "true", "device": "cuda", "params": "{}", "axis": "size", "status": status}
    row |= {"value": None, "low": 64, "high": 256, "reason": "why"}
    return Series(row | changes, [{"point_id": "a", "bound": "overhead-bound"}])


def test_the_answer_names_series_that_never_cross() -> None:
    """The second sentence says of each other series what it does instead."""
    series = [crossing("found", value=100.0), crossing("above", dtype="fp16"), crossing("below", dtype="fp32")]
    assert answer(series, "H200") == [
        "On H200 the overhead stops binding at size 100 (64 to 256) for matmul_add bf16 eager.",
        "In the range measured, matmul_add fp16 eager stays overhead-bound throughout; "
        "matmul_add fp32 eager is bound by the device throughout.",
    ]


def test_the_answer_on_many_series_names_the_closest_looked_at() -> None:
    """Of more than four, those with a value and most points are named in order, the rest counted."""
    series = [crossing("found", value=100.0 * batch, batch=batch) for batch in (3, 1, 2, 5)]
    series.append(crossing("bracketed", batch=7))
    said = answer(series, "H200")[0]
    places = [
        said.index(f"size {100 * batch} (64 to 256) for matmul_add bf16 batch {batch} eager") for batch in (1, 2, 3, 5)
    ]
    assert places == sorted(places)
    assert "batch 7" not in said
    assert said.endswith("; 5 of 5 series over size cross in all.")


def test_the_answer_without_a_value_gives_the_bracket() -> None:
    """A bracketed crossing is stated as lying between its ends."""
    assert "between size 64 and 256 for" in answer([crossing("bracketed")], "H200")[0]


def exactly(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its fractions, whose last bit hangs on the order in which threads add."""
    return {name: value for name, value in row.items() if not isinstance(value, float)}


def test_the_same_store_is_told_in_the_same_order() -> None:
    """Whatever order threads bring the rows in: which of many equals the answer and the charts name is no chance."""
    told = []
    for threads in (1, 4, 4):
        with open_store(Path("docs/results/h200_ladder")) as connection:
            connection.execute(f"SET threads = {threads}")
            told.append({name: [exactly(row) for row in rows] for name, rows in vars(read(connection)).items()})
    for relation, rows in told[0].items():
        assert all(each[relation] == rows for each in told), relation


def test_searches_narrow_wide_brackets_those_without_a_value_first(tables: Tables) -> None:
    """Each search once, six at most; where the others stand is told."""
    found = dict(next(row for row in tables.crossovers if row["axis"] == "size" and row["status"] == "found"))
    rows = [found | {"command": f"search {place}"} for place in (0, 0, 1, 2, 3, 4, 5)]
    rows.append(found | {"status": "bracketed", "value": None, "command": "search 6"})
    (shown,) = [each for each in sections_of(replace(tables, crossovers=rows)) if each.anchor == "series"]
    *_, listed, left_out = shown.parts
    assert re.findall(r"<code>(.*?)</code>", str(listed)) == [f"search {place}" for place in (6, 0, 1, 2, 3, 4)]
    assert words(str(left_out)).startswith("1 more searches are not shown here; python -m analysis crossovers --format")


def test_no_series_is_answered_with_a_command() -> None:
    """Where nothing can cross the reader is told what to run."""
    (sentence,) = answer([], "H200")
    assert "python -m runner -m size=" in sentence


def test_every_point_is_a_row_with_its_sentence(page: str, tables: Tables) -> None:
    """The table holds all measured points, cold ones included, with bound and sentence as the view gives them."""
    rows = {(row["key"], row["bound"], row["sentence"]) for row in point_rows(page, "All points")}
    measured = [row for row in tables.bounds if row["status"] == "ok"]
    assert rows == {(row["point_id"], row["bound"], row["sentence"]) for row in measured}
    assert len(rows) == 15


def test_failed_and_skipped_points_are_listed_with_the_reason(page: str) -> None:
    """Status and reason stand side by side; the reason does not repeat the status; their number stands above."""
    found = {(row["size"], row["status"], row["why"]) for row in point_rows(page, "Points without times")}
    assert found == {
        (65536, "oom", "CUDA out of memory: tried to allocate 8 GiB"),
        (65536, "skipped", "a step would take 9.1 s"),
    }
    assert "2 of 17 points have no times: 1 oom and 1 skipped." in words(section(page, "failed"))


def test_environment_and_roofs_are_shown_with_units(page: str) -> None:
    """Facts that are known, roofs with unit and interval, and why a roof is missing."""
    text = words(section(page, "environment"))
    assert "device name NVIDIA H200" in text
    assert "760 TFLOP/s 750 TFLOP/s to 770 TFLOP/s" in text
    assert "the L2 could not be isolated" in text
    assert "compute capability" not in text


def test_the_law_is_stated_in_a_sentence(page: str) -> None:
    """Share within 5 %, the worst point and the check by replay."""
    text = words(section(page, "law"))
    assert "holds within 5 % on 12 of 13 points (92.3 %), off by 5.35 % at worst" in text
    assert re.search(r"\d+ of \d+ bounds outside a 10 % band around the crossing agree with the replay", text)


def test_every_bound_can_be_looked_up(page: str) -> None:
    """The foot of the page explains each bound of the vocabulary."""
    footer = words(page[page.index("<footer>") : page.index("</footer>")])
    for name in (
        "overhead-bound",
        "compute-bound",
        "memory-bound",
        "device-bound",
        "serialized",
        "balanced",
        "unknown",
    ):
        assert name in footer


def test_every_chart_has_a_figure_with_a_label(page: str) -> None:
    """As many figures as specifications, numbered in order, each with words for those who cannot see it."""
    numbers = re.findall(r'<figure class="chart" data-figure="(\d+)"><div class="plot" [^>]*aria-label="[^"]+"', page)
    assert [int(number) for number in numbers] == list(range(len(figures(page))))
    assert all(spec["title"]["text"] and spec["description"] for spec in figures(page))


def test_every_chart_says_how_to_read_it_and_what_gives_its_rows(h200: DuckDBPyConnection, tables: Tables) -> None:
    """A sentence or two, and a query that gives rows when it is asked."""
    add(h200, "roofline", "pairs")
    found = [figure for each in sections_of(tables) for figure in each.figures]
    assert len(found) >= 10
    for figure in found:
        assert figure.reading.endswith("."), figure.name
        assert h200.execute(figure.sql).fetchall(), figure.name


def test_the_rows_of_a_chart_name_their_points(page: str) -> None:
    """What the filters choose by: each row of a point has its place among the points of the page, and no other."""
    count = len(data_of(page)["points"]["columns"]["key"])
    places = [
        place
        for spec in figures(page)
        for columns in spec["datasets"].values()
        for place in unpacked(columns.get("p", []))
    ]
    assert len(places) > 50
    assert {place for place in places if place is not None} <= set(range(count))


def test_filters_are_the_facets_that_points_differ_in(page: str) -> None:
    """Every facet has a code for every point; of dtype there is one value, of compile there are two."""
    data = data_of(page)
    facets = {facet["name"]: facet for facet in data["facets"]}
    assert {"workload", "dtype", "batch", "compile", "device", "environment", "bound", "sweep"} <= facets.keys()
    assert all(len(facet["codes"]) == len(data["points"]["columns"]["key"]) for facet in facets.values())
    assert [value["label"] for value in facets["compile"]["values"]] == ["eager", "compiled"]
    assert [value["label"] for value in facets["dtype"]["values"]] == ["bf16"]


def test_a_point_of_several_sweeps_is_found_by_each(tmp_path: Path) -> None:
    """The facet of sweeps holds all that measured a point, not the latest alone."""
    runs = [warm(64, 18, 18, 5, point_id="p", sweep_id=sweep) for sweep in ("first", "second")]
    runs.append(warm(64, 18, 18, 5, point_id="q", sweep_id="second"))
    page = page_of(tmp_path, runs=runs)
    (facet,) = [facet for facet in data_of(page)["facets"] if facet["name"] == "sweep"]
    keys = data_of(page)["points"]["columns"]["key"]
    assert {key: len(codes) for key, codes in zip(keys, facet["codes"], strict=True)} == {"p": 2, "q": 1}


def test_a_point_of_two_environments_has_two_names(tmp_path: Path) -> None:
    """The address of a point's page tells environments apart where one id alone would not."""
    runs = [warm(64, 18, 18, 5, point_id="p", environment_id=place) for place in ("here", "there")]
    keys = data_of(page_of(tmp_path, runs=runs))["points"]["columns"]["key"]
    assert sorted(keys) == ["p environment_id=here", "p environment_id=there"]


def test_colours_of_charts_turn_with_the_page(page: str) -> None:
    """No chart holds a colour that would not be legible on a dark page; the page defines each by day and by night."""
    text = json.dumps([{**spec, "datasets": None} for spec in figures(page)])
    for colour in theme.AT_NIGHT:
        assert f'"{colour}"' not in text
        assert page.count(f"--c-{colour[1:]}:") == 2


@pytest.mark.parametrize(
    ("anchor", "command"),
    [
        ("answer", "python -m runner -m size="),
        ("series", "python -m runner -m size="),
        ("map", "python -m runner -m size="),
        ("roofline", "python -m runner -m size="),
        ("pairs", "compile=false,true"),
        ("pairs", "warmup=false,true"),
        ("findings", "python -m analysis findings"),
        ("law", "device=cuda"),
        ("points", "python -m runner -m size="),
        ("environment", "python -m runner -m size="),
    ],
)
def test_an_empty_section_says_why_and_what_fills_it(empty_page: str, anchor: str, command: str) -> None:
    """No section of an empty store shows an empty chart: it names the command that would fill it."""
    markup = section(empty_page, anchor)
    assert "<figure" not in markup
    assert command in words(markup)


def test_an_empty_store_has_no_failed_points(empty_page: str) -> None:
    """None failed: that is said, not left blank."""
    assert "None" in words(section(empty_page, "failed"))


class Elements(HTMLParser):
    """Collects the names and attributes of all elements, and the content of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.contents.append((self.cdata_elem, data))


def parsed(page: str) -> Elements:
    """The elements of a page."""
    elements = Elements()
    elements.feed(page)
    elements.close()
    return elements


def test_the_policy_allows_the_pages_own_scripts_and_style_only(page: str) -> None:
    """default-src is none; each script and the style sheet is named by its hash; nothing unsafe is allowed."""
    elements = parsed(page)
    metas = [attributes for tag, attributes in elements.attributes if tag == "meta"]
    policy = next(str(each["content"]) for each in metas if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    hashes = set(re.findall(r"'sha256-([^']+)'", policy))
    run = [text for _, text in elements.contents if not re.fullmatch(r"[A-Za-z0-9+/=]*", text)]
    assert {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run} == hashes


def test_the_page_refers_to_nothing_outside(page: str) -> None:
    """No element has a source, and links stay on the page."""
    for tag, attributes in parsed(page).attributes:
        assert "src" not in attributes, tag
        assert "style" not in attributes, tag
        assert str(attributes.get("href", "#")).startswith("#")


def test_the_cpu_is_read_by_its_own_law(tmp_path: Path) -> None:
    """On the CPU wall is floor plus work; the page does not state the law of an asynchronous device there."""
    runs = [warm(64, 9, 3, 6), warm(16, 4, 3, 1)]
    runs = [run | {"device": "cpu", "issue_us": None, "device_us": None, "floor_us": 3.0} for run in runs]
    page = write_report(open_store(write_store(tmp_path / "store", runs=runs)), tmp_path / "report.html").read_text()
    text = words(section(page, "series"))
    assert "a step takes floor and work together" in text
    assert "asynchronous" not in text


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """Names and reasons that hold markup add no element, in tables, charts and labels alike."""
    runs = [warm(*each, workload=HOSTILE, params={"note": HOSTILE}) for each in ((64, 18, 18, 5), (4096, 220, 20, 220))]
    runs += [{"workload": HOSTILE, "size": 8192, "dtype": HOSTILE, "status": "failed", "reason": HOSTILE}]
    runs += [cold(64, 18.5, workload=HOSTILE)]
    store = write_store(tmp_path / "store", runs=runs, environments=[{"device": "cuda", "device_name": HOSTILE}])
    page = write_report(open_store(store), tmp_path / "report.html").read_text()
    elements = parsed(page)
    tags = [tag for tag, _ in elements.attributes]
    assert tags.count("script") == 3
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in elements.attributes for name in attributes)
    assert HOSTILE in " ".join(json.dumps(data_of(page), ensure_ascii=False).replace('\\"', '"').split())


def test_series_hold_their_points_in_the_order_of_the_axis(tables: Tables) -> None:
    """Each crossover is joined with its own points only, failed ones included."""
    sizes = {each.crossing["compile"]: [row["size"] for row in each.points] for each in _over_size(tables)}
    assert sizes == {
        "false": [64, 256, 1024, 1280, 1536, 1792, 2048, 2560, 4096, 65536],
        "true": [64, 256, 2048, 4096, 65536],
    }


def _over_size(tables: Tables) -> list[Series]:
    return [each for each in series_of(tables.crossovers, tables.bounds) if each.axis == "size"]


def test_of_a_cold_point_the_latest_run_counts() -> None:
    """Runs are ordered by their id; an older run of the same point is not mixed in."""
    axes = {"environment_id": "env", "workload": "matmul_add", "size": 64, "warmup": "false", "params": "{}"}
    samples = [axes | {"run_id": run, "position": place, "value": 1.0} for run in ("r1", "r2") for place in (1, 0)]
    (steps,) = cold_points(samples)
    assert [(step["run_id"], step["position"]) for step in steps] == [("r2", 0), ("r2", 1)]


def test_every_chart_is_written_as_a_picture(h200: DuckDBPyConnection, tables: Tables, tmp_path: Path) -> None:
    """PNG and SVG of each, named by what it shows; equal names are told apart."""
    written = write_charts(h200, tmp_path / "charts")
    count = sum(len(each.figures) for each in sections_of(tables))
    assert len(set(written)) == len(written) == 2 * count
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written if path.suffix == ".png")
    assert all(path.read_text().startswith("<svg") for path in written if path.suffix == ".svg")
    assert tmp_path / "charts" / "step-law.png" in written


def test_a_picture_shows_the_first_series_only(tables: Tables) -> None:
    """Who draws a chart without filters gets no thousand rows."""
    found = [Section("x", "x", sections_of(tables)[0].parts)]
    ((_, spec),) = chart_files(found)
    assert spec["usermeta"]["first"]["field"] == "series"
    assert marks.drawn(spec) == spec


def test_a_report_replaces_the_old_one_whole(tmp_path: Path) -> None:
    """The file is replaced in one step and nothing else is left in its folder."""
    path = tmp_path / "report.html"
    path.write_text("old")
    assert replace_file(path, b"new") == path
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_that_cannot_be_written_leaves_no_trace(tmp_path: Path) -> None:
    """Where the place is taken by a folder the error is raised and the temporary file is gone."""
    path = tmp_path / "report.html"
    path.mkdir()
    with pytest.raises(OSError, match=r"report\.html"):
        replace_file(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("contended", [True, False, None])
def test_contention_stands_beside_the_answer(tmp_path: Path, contended: bool | None) -> None:
    """Points measured on a busy host are counted right under the answer; what cannot be told is no caution."""
    runs = [
        {"size": size, "wall_us": 20, "issue_us": 20, "device_us": device, "facts": {"host_contended": contended}}
        for size, device in ((64, 5), (128, 40))
    ]
    with open_store(write_store(tmp_path / "store", runs=runs)) as connection:
        page = write_report(connection, tmp_path / "report.html").read_text()
    assert ("2 of 2 points were measured while something else used the host." in page) is (contended is True)


# --- imported traces --------------------------------------------------------------------------------------------------


def imported(workload: str, method: str = "profiler", kinds: Any = None, **changes: Any) -> dict[str, Any]:
    """A run as the import writes it: no axes, no times; by default its steps are the profiler's."""
    found: dict[str, Any] = {"method": method, "kinds": kinds or [{"kind": "ProfilerStep", "steps": [[0, 99]]}]}
    audit = {"line": changes.pop("line", "9 events: 8 kept")}
    rank: dict[str, Any] = {name: changes.pop(name) for name in ("rank", "world_size") if name in changes}
    axes: dict[str, Any] = dict.fromkeys(("size", "dtype", "compile", "dynamic", "warmup", "device"))
    facts: dict[str, Any] = {"import": {"file": f"{workload}.json.gz"}, "audit": audit, "steps": found, **rank}
    return {"source": "import", "workload": workload, "point_id": workload, **axes, "facts": facts, **changes}


def profiled_steps(
    run_id: str, wall_us: int, busy_us: int, steps: int, kernel: str = "gemm", mark: str = "ProfilerStep#0"
) -> list[dict[str, Any]]:
    """Events of steps that follow each other: a mark, a launch at its start, and a kernel that ends with it."""
    events: list[dict[str, Any]] = []
    for step in range(steps):
        start, wall, busy = 1000 * step * wall_us, 1000 * wall_us, 1000 * busy_us
        common = {"run_id": run_id, "step": step, "pid": "1", "tid": "1", "ts_ns": start, "is_device": False}
        launch = {"name": "cudaLaunchKernel", "category": "cuda_runtime", "dur_ns": 2000, "event_id": 3 * step + 1}
        work = {"name": kernel, "category": "kernel", "is_device": True, "device": 0, "stream": 7, "dur_ns": busy}
        events.append(common | {"name": mark, "category": "user_annotation", "dur_ns": wall, "event_id": 3 * step})
        events.append(common | launch)
        events.append(
            common | work | {"ts_ns": start + wall - busy, "launch_id": 3 * step + 1, "event_id": 3 * step + 2}
        )
    return events


IDLE = {"workload": "idle", "run_id": "r000", "environment_id": "card"}
BUSY = {"workload": "busy", "run_id": "r001", "environment_id": "card"}
CARD = {"environment_id": "card", "device": "cuda", "device_name": "NVIDIA B200"}


def page_of(folder: Path, **rows: Any) -> str:
    """The report of a store of these rows."""
    with open_store(write_store(folder / "store", **rows)) as connection:
        return write_report(connection, folder / "report.html").read_text()


@pytest.fixture(scope="module")
def traces_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of three imported traces: one whose device mostly idles, one that is busy, one without device work."""
    events = [*profiled_steps("r000", 10_000, 500, steps=3), *profiled_steps("r001", 1000, 990, steps=4)]
    events += [event for event in profiled_steps("r002", 100, 50, steps=2) if not event["is_device"]]
    runs = [imported(**IDLE, rank=1, world_size=8), imported(**BUSY), imported("host", environment_id="card")]
    return page_of(tmp_path_factory.mktemp("traces"), runs=runs, events=events, environments=[CARD])


def trace_row(page: str, workload: str) -> list[str]:
    """The cells of a trace in the table of imported traces, as text."""
    rows = re.findall(r"<tr[^>]*>.*?</tr>", section(page, "imports"), re.DOTALL)[1:]
    cells = [[words(cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)] for row in rows]
    (row,) = [row for row in cells if row[0].split()[0] == workload]
    return row


def test_of_imports_alone_what_only_a_sweep_fills_is_left_out(traces_page: str) -> None:
    """Neither a section nor an entry of the contents nor a command asks for a sweep."""
    anchors = re.findall(r'<section id="(\w+)"', traces_page)
    assert anchors == ["answer", "imports", "findings", "points", "quality", "environment"]
    assert re.findall(r'<li><a href="#(\w+)"', traces_page) == anchors
    assert "python -m runner -m" not in words(traces_page[traces_page.index("<main>") : traces_page.index("</main>")])


def test_the_answer_of_imports_counts_bounds_and_tells_the_most_idle(traces_page: str) -> None:
    """Traces of each bound, then the verdict on the one with most idle time, with its time in milliseconds."""
    text = words(section(traces_page, "answer"))
    assert "The store holds 3 imported traces: 1 overhead-bound, 1 device-bound and 1 unknown." in text
    assert "Idle time is longest in idle, taken on NVIDIA B200: 19.0 ms between" in text
    assert "Of a profiled step of 10.0 ms (ProfilerStep, median of 3) the device is busy 5.00 %" in text


def test_one_imported_trace_is_answered_by_its_sentence(tmp_path: Path) -> None:
    """Where the verdict is unknown the reason stands in the answer."""
    page = page_of(tmp_path, runs=[imported("host")])
    text = words(section(page, "answer"))
    assert "The store holds one imported trace, host, taken on env. Unknown: the trace has neither" in text


def test_a_trace_is_a_row_with_steps_share_cause_and_audit(traces_page: str) -> None:
    """What bounds, steps, gaps and audits say of a trace, in the units that read best."""
    assert trace_row(traces_page, "idle") == [
        "idle idle.json.gz rank 1 of 8",
        "O overhead-bound",
        "3 × ProfilerStep",
        "10.0 ms",
        "5.00 %",
        "host late 100 % of 19.0 ms",
        "9 events: 8 kept",
    ]


def test_what_a_trace_does_not_tell_is_unknown(traces_page: str) -> None:
    """Without device work there is no busy share, never 0 or 100 %, and no cause of idle time."""
    assert trace_row(traces_page, "host")[1:6] == ["? unknown", "2 × ProfilerStep", "100 µs", "–", "–"]


def test_kinds_of_step_are_told_apart(tmp_path: Path) -> None:
    """The kind that takes most of the time stands first; of a window it is said that no step was found."""
    kinds = [{"kind": "A", "steps": [[0, 0]]}, {"kind": "B", "steps": [[1, 3]]}]
    runs = [imported("two", method="sequence", kinds=kinds)]
    runs += [imported("none", method="window", kinds=[{"kind": "window", "steps": [[0, 9]]}])]
    events = [*profiled_steps("r000", 100, 50, steps=4), *profiled_steps("r001", 100, 50, steps=1)]
    page = page_of(tmp_path, runs=runs, events=events)
    assert trace_row(page, "two")[2] == "3 × sequence B 1 × sequence A"
    assert trace_row(page, "none")[2] == "none found, all of the trace"


def test_an_imported_row_says_where_its_host_time_is_from(traces_page: str) -> None:
    """No column is called issue, the estimate says what it is made of, and the gain that it is an upper limit."""
    (row,) = [row for row in point_rows(traces_page, "All points") if row["name"] == "idle"]
    assert [row[name] for name in ("overhead", "overhead_low", "overhead_high", "gain", "imported")] == [
        pytest.approx(5714.29), 3125, 10000, 20, 1]  # fmt: skip
    (table,) = data_of(traces_page)["tables"]
    head = next(head for head in table["heads"] if head["key"] == "overhead")
    assert (head["label"], head["note"]) == ("host, estimated", "from the profiled host")
    assert "nothing was timed without a profiler" in words(section(traces_page, "points"))


def test_a_sweep_answers_before_the_traces_beside_it(tmp_path: Path) -> None:
    """Every section stands, the sweep leads, and no sweep is asked of the card that traces alone are from."""
    runs = [warm(64, 18, 18, 5), warm(4096, 220, 20, 220), imported(**{**IDLE, "run_id": "trace"})]
    page = page_of(tmp_path, runs=runs, events=profiled_steps("trace", 10_000, 500, steps=3), environments=[CARD])
    expected = ["answer", *SWEEP, "imports", "findings", "points", "failed", "quality", "environment"]
    assert re.findall(r'<section id="(\w+)"', page) == expected
    leading, other = re.findall(r'<p class="(answer.*?)">(.*?)</p>', section(page, "answer"))
    assert leading[0] == "answer" and "the overhead stops binding" in leading[1]
    assert other[0] == "answer other" and "one imported trace, idle, taken on NVIDIA B200" in other[1]
    overheads = {round(row["overhead"]): row["imported"] for row in point_rows(page, "All points")}
    assert overheads == {18: 0, 20: 0, 5714: 1}


def test_imported_traces_beyond_the_limit_are_counted() -> None:
    """The table of traces ends at its limit, and the page says where the others are listed."""
    trace: dict[str, Any] = dict.fromkeys(("size", "dtype", "batch", "compile", "warmup", "params"))
    trace |= {"environment_id": "env", "workload": "rank", "status": "ok", "bound": "unknown"}
    rows = [trace | {"run_id": f"r{number}", "point_id": f"p{number}"} for number in range(MOST_ROWS + 2)]
    found = sections_of(Tables(rows, (), (), (), (), (), (), imports=rows))
    (shown,) = [each for each in found if each.anchor == "imports"]
    markup = "".join(part for part in shown.parts if isinstance(part, str))
    assert markup.count("<tr data-point=") == MOST_ROWS
    assert "2 more traces are not shown here; python -m analysis audits --format csv lists all." in words(markup)


def test_hostile_text_of_a_trace_stays_text(tmp_path: Path) -> None:
    """Names of files, steps and kernels and the audit line that hold markup add no element."""
    kinds = [{"kind": HOSTILE, "steps": [[0, 9]]}]
    runs = [imported(HOSTILE, kinds=kinds, method="annotation", line=HOSTILE, environment_id=HOSTILE)]
    page = page_of(tmp_path, runs=runs, events=profiled_steps("r000", 100, 50, steps=3, kernel=HOSTILE, mark=HOSTILE))
    tags = [tag for tag, _ in parsed(page).attributes]
    assert tags.count("script") == 3
    assert "img" not in tags
    for anchor in ("answer", "imports"):
        assert words(HOSTILE.replace("<", "&lt;")) in words(section(page, anchor))


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("for 1180000 us of a step", "for 1.18 s of a step"),
        ("5990 us and 50.0 us", "5.99 ms and 50.0 µs"),
        ("0.372 us, 0 us", "0.372 µs, 0 µs"),
        ("1.2.3 us v5 us 1e-05 us us", "1.2.3 us v5 us 1e-05 us us"),
    ],
)
def test_times_of_a_sentence_are_shown_in_units_that_read_well(told: str, shown: str) -> None:
    """Microseconds become milliseconds or seconds; what only looks like a time is left alone."""
    assert in_units(told) == shown


# --- what may come ----------------------------------------------------------------------------------------------------


def test_characters_that_xml_cannot_hold_end_no_picture(tmp_path: Path) -> None:
    """One of them in a name would end the whole process; it is replaced, and every chart is written."""
    runs = [warm(*each, workload="a\x00b\x1b") for each in ((64, 18, 18, 5), (4096, 220, 20, 220))]
    script = "import sys; from analysis.report import write_charts; from analysis.store import open_store; "
    script += "print(len(write_charts(open_store(sys.argv[1]), __import__('pathlib').Path(sys.argv[2]))))"
    store = write_store(tmp_path / "store", runs=runs, environments=[ENVIRONMENT])
    command = [sys.executable, "-c", script, str(store), str(tmp_path / "charts")]
    found = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert int(found.stdout) >= 8


def test_marks_that_turn_text_are_shown(tmp_path: Path) -> None:
    """A name with a right-to-left override would turn the words behind it."""
    runs = [warm(*each, environment_id="\u202ex") for each in ((64, 18, 18, 5), (4096, 220, 20, 220))]
    page = page_of(tmp_path, runs=runs)
    assert "\u202e" not in page
    assert "\\u202ex" in words(section(page, "answer"))


def test_a_point_is_told_by_its_latest_run_whichever_is_chosen(tmp_path: Path) -> None:
    """Who names an older run of a point gets the page of the point."""
    events = [*profiled_steps("r1", 100, 50, steps=2), *profiled_steps("r2", 100, 50, steps=2)]
    runs = [warm(64, 18, 18, 5, run_id=run, point_id="p") for run in ("r1", "r2")]
    with open_store(write_store(tmp_path / "store", runs=runs, events=events)) as connection:
        chosen = named_runs(connection, "r1")
        page = write_report(connection, tmp_path / "report.html", chosen).read_text()
    assert list(data_of(page)["pages"]) == ["p"]


def test_times_beyond_reckoning_cost_a_page_and_no_report(tmp_path: Path) -> None:
    """Events whose times cannot be subtracted: the other points keep their pages."""
    places = (-(10**18), 0, 2**62)
    far = [event | {"ts_ns": place} for event, place in zip(profiled_steps("odd", 1, 1, 1), places, strict=True)]
    runs = [warm(64, 18, 18, 5, run_id=name, point_id=name) for name in ("odd", "plain")]
    page = page_of(tmp_path, runs=runs, events=[*far, *profiled_steps("plain", 100, 50, steps=3)])
    assert "plain" in data_of(page)["pages"]
    assert len(point_rows(page, "All points")) == 2


def test_the_answers_of_many_environments_are_folded(tmp_path: Path) -> None:
    """The first stand open, all others in one fold."""
    runs = [
        warm(*each, environment_id=f"e{place}") for place in range(9) for each in ((64, 18, 18, 5), (128, 18, 18, 7))
    ]
    markup = section(page_of(tmp_path, runs=runs), "answer")
    opened, folded = markup.split("<details><summary>The answers", 1)
    assert opened.count('<p class="answer') == 4
    assert folded.count('<p class="answer') == 5


def test_points_of_many_kinds_get_a_page(tmp_path: Path) -> None:
    """Beside the longest series each bound of each workload has one, although others have more points."""
    runs = [warm(size, 18, 18, 5, run_id=f"a{size}") for size in (64, 128, 256, 512)]
    runs += [warm(size, 20, 20, 6, workload="addmm", run_id=f"b{size}") for size in (64, 128)]
    runs += [warm(4096, 220, 20, 220, workload="addmm", run_id="c")]
    events = [event for run in runs for event in profiled_steps(run["run_id"], 100, 50, steps=1)]
    with open_store(
        write_store(tmp_path / "store", runs=runs, events=events, environments=[ENVIRONMENT])
    ) as connection:
        tables = read(connection)
        found = representative(connection, tables, series_of(tables.crossovers, tables.bounds), 5)
    assert {"c"} & set(found) and any(run.startswith("a") for run in found)
    assert len(found) == 5
