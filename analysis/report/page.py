"""Sections to one HTML page: charts and points as data beside one copy of Vega, under a policy that lets nothing else
run."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from analysis import theme
from analysis.charts import styled
from analysis.report import html
from analysis.report.parts import Figure, Figures, PointTable, Section
from analysis.report.points import Points, bounds_as_data

_RESOURCES = files("analysis.report")
SMALL = 260
"""Plots up to this width (CSS pixels) stand three in a row."""
SCRIPTS = ("core", "figures", "filters", "table", "timeline", "flame", "phases", "point", "main")
"""Files of js/, each after those it uses when the page starts."""
STYLES = ("report", "point", "phases")


def page(sections: Sequence[Section], points: Points, pages: Callable[[], Mapping[str, Any]], bundle: str) -> str:
    """The whole page.

    Figures and tables are numbered in their order; the scripts fill the place of each number. pages: gives what the
    page of a point shows, by the point's key (points.py), and is asked after all else; each is packed on its own, and
    unpacked when it is opened. bundle: the script of Vega.
    """
    writer = _Writer(points)
    body = "\n".join(writer.section(section) for section in sections)
    style = "".join(_resource(f"{name}.css") for name in STYLES) + _colours() + _bound_styles()
    scripts = [_as_script(bundle), _as_script(_closure(_resource(f"js/{name}.js") for name in SCRIPTS))]
    data = {
        "figures": writer.specs,
        "tables": writer.tables,
        "points": {
            "columns": {name: _column(list(values)) for name, values in points.columns.items()},
            "bounds": bounds_as_data(),
        },
        "facets": points.facets,
        "pages": {key: _packed(each) for key, each in pages().items()},
    }
    return Template(_resource("template.html")).substitute(
        policy=_policy(style, scripts),
        style=style,
        contents="".join(f'<li><a href="#{each.anchor}">{html.text(each.title)}</a></li>' for each in sections),
        body=body,
        bounds=_bound_readings(),
        data=_packed(data),
        bundle=scripts[0],
        script=scripts[1],
    )


class _Writer:
    """Sections to HTML; the specifications and tables that it meets are numbered and kept."""

    def __init__(self, points: Points) -> None:
        self.specs: list[dict[str, Any]] = []
        self.tables: list[dict[str, Any]] = []
        self._place = points.place

    def section(self, section: Section) -> str:
        parts = "\n".join(map(self._part, section.parts))
        heading = f'<h2 id="{section.anchor}-title">{html.text(section.title)}</h2>'
        none = '<p class="none unseen">None of the points chosen is in this section.</p>'
        attributes = f'id="{section.anchor}" aria-labelledby="{section.anchor}-title"'
        return f"<section {attributes}>{heading}\n{none}{parts}\n</section>"

    def _part(self, part: str | Figures | PointTable) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Figures):
            start = len(self.specs)
            drawn = "".join(map(self._figure, part.figures))
            small = all(isinstance(spec.get("width"), int) and spec["width"] <= SMALL for spec in self.specs[start:])
            return f'<div class="figures{" small" if small else ""}">{drawn}</div>'
        heads = [{"key": each.key, "label": each.label, "kind": each.kind, "note": each.note} for each in part.heads]
        rows = sorted(self._place[theme.point_key(row)] for row in part.rows)
        self.tables.append({"label": part.label, "heads": heads, "rows": rows})
        return f'<div data-table="{len(self.tables) - 1}"></div>'

    def _figure(self, figure: Figure) -> str:
        spec = specification(figure)
        self.specs.append(packed(spec, self._place))
        label = html.text(spec["description"])
        plot = f'<div class="plot" tabindex="0" role="group" aria-label="{label}"></div>'
        fold = (
            f"<details><summary>How to read it, and its SQL</summary>{html.paragraph(figure.reading)}"
            f"<pre><code>{html.text(figure.sql)}</code></pre></details>"
        )
        return (
            f'<figure class="chart" data-figure="{len(self.specs) - 1}">{plot}<figcaption>{fold}</figcaption></figure>'
        )


def specification(figure: Figure) -> dict[str, Any]:
    """The chart of a figure as Vega-Lite, in the page's looks."""
    found: dict[str, Any] = styled(figure.chart, **figure.config).to_dict(validate=False)
    return found


# --- charts as data ---------------------------------------------------------------------------------------------------


def packed(spec: dict[str, Any], place: Mapping[str, int]) -> dict[str, Any]:
    """A specification with each data set by columns, texts that repeat as numbers of a list of words, points as their
    places, and colours as the page's own, which turn with it from light to dark.

    (Vega's own CSV reader compiles a function for each table, which the page's policy forbids.)
    """
    datasets = {name: _columns(_placed(rows, place)) for name, rows in spec.get("datasets", {}).items()}
    return {key: _coloured(value) for key, value in spec.items() if key != "datasets"} | {"datasets": datasets}


def _placed(rows: Sequence[dict[str, Any]], place: Mapping[str, int]) -> list[dict[str, Any]]:
    return [row if row.get("p") is None else row | {"p": place.get(row["p"])} for row in rows]


def _coloured(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _coloured(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_coloured(each) for each in value]
    return f"var({_variable(value)})" if isinstance(value, str) and value in theme.AT_NIGHT else value


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    fields = dict.fromkeys(field for row in rows for field in row)
    return {field: _column([row.get(field) for row in rows]) for field in fields}


def _column(values: list[Any]) -> list[Any] | dict[str, Any]:
    if not all(isinstance(value, str) for value in values):
        return values
    words = list(dict.fromkeys(values))
    if 2 * len(words) > len(values):
        return values
    codes = {word: code for code, word in enumerate(words)}
    return {"words": words, "codes": [codes[value] for value in values]}


def _packed(value: object) -> str:
    """A value as compressed JSON in letters that can end no element. Raises ValueError where a number is not finite."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "surrogatepass"), 6, mtime=0)).decode()


# --- policy -----------------------------------------------------------------------------------------------------------


def _policy(style: str, scripts: Sequence[str]) -> str:
    """The Content-Security-Policy: nothing is loaded, and only the page's own scripts and style sheet count, by hash.

    Neither `unsafe-inline` nor `unsafe-eval` is needed: Vega reads its expressions with its interpreter, draws SVG with
    attributes, and its tooltips and default style sheet are replaced by the page's own.
    """
    hashes = " ".join(_hash(script) for script in scripts)
    rules = [
        "default-src 'none'",
        f"script-src {hashes}",
        f"style-src {_hash(style)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _closure(sources: Iterable[str]) -> str:
    """Scripts as one, whose names are its own."""
    return '"use strict";\n(function () {\n' + "\n".join(sources) + "\n})();\n"


def _as_script(source: str) -> str:
    """Script text fit for a script element. Raises ValueError where it could end the element before its end."""
    if re.search(r"</script|<!--", source, re.IGNORECASE):
        raise ValueError("a script of the report holds </script or <!--, which would end it early")
    return source


# --- looks of the theme -----------------------------------------------------------------------------------------------


def _variable(colour: str) -> str:
    return f"--c-{colour.removeprefix('#')}"


def _colours() -> str:
    """The colours that charts refer to, by day and by night; paper is always light."""
    day = ";".join(f"{_variable(colour)}:{colour}" for colour in theme.AT_NIGHT)
    night = ";".join(f"{_variable(colour)}:{other}" for colour, other in theme.AT_NIGHT.items())
    return f":root{{{day}}}\n@media screen{{:root[data-theme=dark]{{{night}}}}}\n"


def _bound_styles() -> str:
    rule = ".b-{name}{{background:{colour};color:{ink}}}\n"
    return "".join(
        rule.format(name=html.css_name(bound), colour=bound.colour, ink=bound.ink) for bound in theme.BOUNDS.values()
    )


def _bound_readings() -> str:
    return "".join(
        f"<dt>{html.badge(bound)}</dt><dd>{html.text(bound.reading)}</dd>" for bound in theme.BOUNDS.values()
    )


def _resource(name: str) -> str:
    return (_RESOURCES / name).read_text(encoding="utf-8")
