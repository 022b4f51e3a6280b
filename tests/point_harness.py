"""A page that holds one point and nothing else, under the report's policy: scripts and styles count by their hash."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPORT = Path(__file__).parents[1] / "analysis" / "report"
SCRIPTS = ("timeline.js", "flame.js", "phases.js", "point.js")
STYLES = ("point.css", "phases.css")

COLOURS = """
:root { --ink: #1b1f24; --muted: #59636e; --faint: #d9dee3; --ground: #f6f8fa; --paper: #fff; --accent: #0a5a96;
  --host: #d55e00; --device: #0072b2; --gap: #b8c0c8; --warn: #a84300; }
:root[data-theme=dark] { color-scheme: dark; --ink: #e8ebee; --muted: #a5aeb8; --faint: #363e47; --ground: #1d2329;
  --paper: #14181d; --accent: #7cc4ff; --host: #f08a4b; --device: #4aa8e0; --gap: #4a535d; --warn: #ff9c5c; }
body { margin: 0 auto; padding: 1rem; max-width: 1072px; background: var(--paper); color: var(--ink);
  font: 16px/1.55 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
#tip { position: fixed; z-index: 9; max-width: 26rem; padding: .5rem .75rem; border: 1px solid var(--faint);
  background: var(--paper); font-size: 13px; pointer-events: none; overflow-wrap: anywhere; }
#tip span { display: inline-block; min-width: 4.5rem; margin-right: .75rem; color: var(--muted); }
"""

TOOLS = """
const tip = document.getElementById("tip");
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
function number(value) { return value === null ? "–" : Number(value.toPrecision(3)).toLocaleString("en"); }
function time(us) {
  const [size, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return number(us / size) + " " + unit;
}
function bytes(count) {
  const [size, unit] = count >= 1e9 ? [1e9, "GB"] : count >= 1e6 ? [1e6, "MB"] : count >= 1e3 ? [1e3, "kB"] : [1, "B"];
  return number(count / size) + " " + unit;
}
function show(event, lines) {
  tip.replaceChildren(...lines.map(([title, words]) => el("div", {}, el("span", {}, title), String(words))));
  tip.hidden = false;
  tip.style.left = Math.min(event.clientX + 14, innerWidth - 300) + "px";
  tip.style.top = event.clientY + 14 + "px";
}
const tools = { el, number, time, bytes, tip: { show, hide() { tip.hidden = true; } } };
const target = document.getElementById("target");
pointDraw(target, JSON.parse(document.getElementById("data").textContent), tools);
document.addEventListener("close-point", () => pointClose(target));
"""


def write_page(path: Path, page: Mapping[str, Any]) -> Path:
    """Write the page of a point as one HTML file; return its path."""
    style = COLOURS + "".join((REPORT / name).read_text(encoding="utf-8") for name in STYLES)
    code = "\n".join((REPORT / "js" / name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(function () {{\n{code}\n{TOOLS}\n}})();\n'
    data = json.dumps(page, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}"
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>point</title>'
        f'<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<style>{style}</style></head><body><div id="target"></div><div id="tip" role="tooltip" hidden></div>'
        f'<script type="application/json" id="data">{data}</script><script>{script}</script></body></html>',
        encoding="utf-8",
    )
    return path


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
