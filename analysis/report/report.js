"use strict";
(function () {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const tip = document.getElementById("tip");

  function column(packed) {
    return Array.isArray(packed) ? packed : packed.codes.map((code) => packed.words[code]);
  }

  function unpack(table) {
    const columns = Object.entries(table).map(([field, packed]) => [field, column(packed)]);
    const rows = columns.length ? columns[0][1] : [];
    return rows.map((_, row) => Object.fromEntries(columns.map(([field, values]) => [field, values[row]])));
  }

  function unpackAll(spec) {
    const datasets = Object.entries(spec.datasets).map(([name, table]) => [name, unpack(table)]);
    return { ...spec, datasets: Object.fromEntries(datasets) };
  }

  // Vega's own tooltip adds a style sheet, which the policy forbids; this one only ever writes text.
  function showTip(handler, event, item, value) {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    const lines = typeof value === "object" ? Object.entries(value) : [["", value]];
    tip.replaceChildren(...lines.map(tipLine));
    tip.hidden = false;
    place(event);
  }

  function tipLine([title, words]) {
    const line = document.createElement("div");
    const name = document.createElement("span");
    name.textContent = title;
    line.append(name, String(words));
    return line;
  }

  function place(event) {
    const right = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 14 + tip.offsetHeight < window.innerHeight;
    tip.style.left = Math.max(8, right) + "px";
    tip.style.top = (below ? event.clientY + 14 : event.clientY - tip.offsetHeight - 10) + "px";
  }

  const options = { actions: false, ast: true, defaultStyle: false, mode: "vega-lite", renderer: "svg", tooltip: showTip };

  async function drawAll() {
    for (const target of document.querySelectorAll("[data-figure]")) {
      await vegaEmbed(target, unpackAll(figures[target.dataset.figure]), options);
    }
    document.documentElement.dataset.drawn = String(figures.length);
  }

  function orderOf(row, column) {
    const cell = row.cells[column];
    return cell.classList.contains("number") ? Number(cell.dataset.order ?? NaN) : cell.textContent;
  }

  // What has no number comes last in either direction.
  function compare(one, other, sign) {
    if (typeof one === "string") return sign * one.localeCompare(other, "en", { numeric: true });
    if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other);
    return sign * (one - other);
  }

  function sortBy(head) {
    const table = head.closest("table");
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map((row) => [orderOf(row, head.cellIndex), row]);
    rows.sort((one, other) => compare(one[0], other[0], sign));
    table.querySelectorAll("th[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    table.tBodies[0].replaceChildren(...rows.map(([, row]) => row));
  }

  document.querySelectorAll("th button").forEach((button) => {
    button.addEventListener("click", () => sortBy(button.parentElement));
  });
  drawAll();
})();
