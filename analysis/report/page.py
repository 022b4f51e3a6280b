"""Sections to one HTML page: charts as data beside one copy of Vega, under a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import vl_convert

from analysis import theme
from analysis.charts import styled
from analysis.report import html
from analysis.report.sections import Figures, Section

_RESOURCES = files("analysis.report")


def page(sections: Sequence[Section]) -> str:
    """The whole page. Charts are numbered in their order; `report.js` draws each into the figure of its number."""
    specs: list[dict[str, Any]] = []
    body = "\n".join(_section(section, specs) for section in sections)
    style = _resource("report.css") + _bound_styles()
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub misses that a snippet is optional
    scripts = [_as_script(bundle), _as_script(_resource("report.js"))]
    return Template(_resource("template.html")).substitute(
        policy=_policy(style, scripts),
        style=style,
        contents="".join(f'<li><a href="#{each.anchor}">{html.text(each.title)}</a></li>' for each in sections),
        body=body,
        bounds=_bound_readings(),
        figures=_as_data([packed(spec) for spec in specs]),
        bundle=scripts[0],
        script=scripts[1],
    )


def _section(section: Section, specs: list[dict[str, Any]]) -> str:
    parts = "\n".join(part if isinstance(part, str) else _figures(part, specs) for part in section.parts)
    heading = f'<h2 id="{section.anchor}-title">{html.text(section.title)}</h2>'
    return f'<section id="{section.anchor}" aria-labelledby="{section.anchor}-title">{heading}\n{parts}\n</section>'


def _figures(figures: Figures, specs: list[dict[str, Any]]) -> str:
    start = len(specs)
    specs += [styled(chart, **figures.config).to_dict(validate=False) for chart in figures.charts]
    drawn = "".join(_figure(place, specs[place]) for place in range(start, len(specs)))
    return f'<div class="figures">{drawn}</div>'


def _figure(place: int, spec: dict[str, Any]) -> str:
    label = html.text(spec["description"])
    return f'<figure class="chart" tabindex="0" aria-label="{label}" data-figure="{place}"></figure>'


# --- charts as data ---------------------------------------------------------------------------------------------------


def packed(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification with each data set by columns, and texts that repeat as numbers of a list of words.

    That is a third of the size of rows. (Vega's own CSV reader compiles a function for each table, which the page's
    policy forbids.)
    """
    return spec | {"datasets": {name: _columns(rows) for name, rows in spec.get("datasets", {}).items()}}


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    fields = dict.fromkeys(field for row in rows for field in row)
    return {field: _column([row.get(field) for row in rows]) for field in fields}


def _column(values: list[Any]) -> list[Any] | dict[str, Any]:
    words = list(dict.fromkeys(values))
    if 2 * len(words) > len(values) or not all(isinstance(word, str) for word in words):
        return values
    codes = {word: code for code, word in enumerate(words)}
    return {"words": words, "codes": [codes[value] for value in values]}


def _as_data(value: object) -> str:
    """JSON that can end neither the script element it stands in nor open a comment: `<` only occurs as an escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


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


def _as_script(source: str) -> str:
    """Script text fit for a script element. Raises ValueError where it could end the element before its end."""
    if re.search(r"</script|<!--", source, re.IGNORECASE):
        raise ValueError("a script of the report holds </script or <!--, which would end it early")
    return source


# --- looks of the theme -----------------------------------------------------------------------------------------------


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
