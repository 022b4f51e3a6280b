// Tables: those of points are made here, from columns, a hundred rows at a time; the others are sorted where they stand.

const TABLE_ROWS = 100;
const tableList = [];

function tableStart(definitions, points) {
  for (const target of document.querySelectorAll("[data-table]")) {
    const table = { target, ...definitions[target.dataset.table], points, sort: null, limit: TABLE_ROWS };
    tableList.push(table);
  }
}

function tableValue(table, column, point) {
  const values = table.points.columns[column.key];
  const value = values[point];
  return column.kind === "bound" ? table.points.bounds[value].name : value;
}

// What is unknown comes last in either direction.
function tableCompare(one, other, sign) {
  const unknown = (value) => value === null || value === undefined || Number.isNaN(value);
  if (unknown(one) || unknown(other)) return unknown(one) - unknown(other);
  if (typeof one === "string") return sign * one.localeCompare(other, "en", { numeric: true });
  return sign * (one - other);
}

function tableOrdered(table) {
  const rows = table.rows.filter((point) => filterChosen.has(point));
  if (!table.sort) return rows;
  const { column, sign } = table.sort;
  return rows.sort((one, other) => tableCompare(tableValue(table, column, one), tableValue(table, column, other), sign));
}

function tableCell(table, column, point) {
  const columns = table.points.columns;
  const value = columns[column.key]?.[point];
  const kind = column.kind === "time" || column.kind === "number" || column.kind === "size" || column.kind === "times" ? "number" : null;
  return el("td", { class: kind }, tableContent(table, column, point, value));
}

function tableContent(table, column, point, value) {
  const columns = table.points.columns;
  switch (column.kind) {
    case "name":
      return [
        el("a", { href: `#point=${encodeURIComponent(columns.key[point])}` }, value),
        el("small", {}, columns.key[point].slice(0, 12) + (columns.page[point] ? " · page with timeline" : "")),
      ];
    case "bound":
      return badge(table.points.bounds[value]);
    case "time": {
      const span = timeSpan(value, columns[`${column.key}_low`]?.[point], columns[`${column.key}_high`]?.[point]);
      const notes = [span, column.note && columns.imported[point] && value !== null ? column.note : ""];
      return [timeText(value), ...notes.filter(Boolean).map((note) => el("small", {}, note))];
    }
    case "size":
      return sizeText(value);
    case "times":
      return value === null ? "–" : `${columns.imported[point] ? "≤ " : ""}${measureText(value)}×`;
    case "number":
      return measureText(value);
    default:
      return value ?? "–";
  }
}

function tableHead(table, column) {
  const state = table.sort?.column === column ? (table.sort.sign === 1 ? "ascending" : "descending") : null;
  const button = el("button", { type: "button" }, column.label);
  button.addEventListener("click", () => {
    table.sort = { column, sign: state === "ascending" ? -1 : 1 };
    tableDraw(table);
    table.target.querySelectorAll("th button")[table.heads.indexOf(column)].focus();
  });
  const number = ["time", "number", "size", "times"].includes(column.kind) ? "number" : null;
  return el("th", { scope: "col", class: number, "aria-sort": state }, button);
}

function tableDraw(table) {
  const ordered = tableOrdered(table);
  const shown = ordered.slice(0, table.limit);
  const head = el("thead", {}, el("tr", {}, table.heads.map((column) => tableHead(table, column))));
  const body = el("tbody", {}, shown.map((point) => el("tr", {}, table.heads.map((column) => tableCell(table, column, point)))));
  const scroll = el("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": table.label }, el("table", {}, head, body));
  const rest = ordered.length - shown.length;
  const more = el("button", { type: "button", class: "more" }, `${shown.length.toLocaleString("en")} of ${ordered.length.toLocaleString("en")} are shown: show ${Math.min(rest, 10 * TABLE_ROWS).toLocaleString("en")} more`);
  more.addEventListener("click", () => {
    table.limit += 10 * TABLE_ROWS;
    tableDraw(table);
  });
  const none = el("p", { class: "none" }, "None of the points chosen.");
  table.target.replaceChildren(ordered.length ? scroll : none, ...(rest > 0 ? [more] : []));
}

function tableDrawAll() {
  tableList.forEach(tableDraw);
  const keys = tableList[0]?.points.columns.key ?? [];
  const left = new Set([...filterChosen].map((point) => keys[point].split(" environment_id=")[0]));
  for (const row of document.querySelectorAll("tr[data-point]")) row.hidden = keys.length > 0 && !left.has(row.dataset.point);
}

// --- tables that stand in the page -----------------------------------------------------------------------------------

function tableCellOrder(row, column) {
  const cell = row.cells[column];
  return cell.classList.contains("number") ? Number(cell.dataset.order ?? NaN) : cell.textContent;
}

function tableSort(head) {
  const table = head.closest("table");
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const rows = [...table.tBodies[0].rows].map((row) => [tableCellOrder(row, head.cellIndex), row]);
  rows.sort((one, other) => tableCompare(one[0], other[0], sign));
  table.querySelectorAll("th[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  table.tBodies[0].replaceChildren(...rows.map(([, row]) => row));
}
