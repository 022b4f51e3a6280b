// Which points are chosen: by words, and by the values of each facet. Everything on the page follows `filterChosen`.

let filterVersion = 0;
let filterChosen = new Set();
const filterState = { words: "", facets: new Map() };
const filterButtons = [];
let filterPoints = null; // {count, text: searchable text a point, facets: [{name, label, values, codes}]}

function filterFits(point) {
  const text = filterPoints.text[point];
  if (!filterState.words.split(/\s+/).every((word) => text.includes(word))) return false;
  return filterPoints.facets.every((facet) => {
    const asked = filterState.facets.get(facet.name);
    return !asked?.size || [facet.codes[point]].flat().some((code) => asked.has(code));
  });
}

function filterApply() {
  const chosen = new Set();
  for (let point = 0; point < filterPoints.count; point++) if (filterFits(point)) chosen.add(point);
  filterChosen = chosen;
  filterVersion += 1;
  const all = chosen.size === filterPoints.count;
  const noun = filterPoints.count === 1 ? "point" : "points";
  document.getElementById("chosen").textContent = all
    ? `${filterPoints.count.toLocaleString("en")} ${noun}`
    : `${chosen.size.toLocaleString("en")} of ${filterPoints.count.toLocaleString("en")} ${noun}`;
  document.getElementById("words").hidden = all;
  document.getElementById("clear").hidden = all && !filterState.words;
  for (const section of document.querySelectorAll("main > section")) section.classList.toggle("empty", false);
  filterDim();
  tableDrawAll();
  figuresDraw().then(filterMarkEmpty);
}

// Values that no point has that fits all other facets and the words are struck out: choosing them would leave nothing.
function filterDim() {
  for (const { facet, buttons } of filterButtons) {
    const asked = filterState.facets.get(facet.name);
    filterState.facets.set(facet.name, new Set());
    const left = new Set();
    for (let point = 0; point < filterPoints.count; point++) {
      if (filterFits(point)) [facet.codes[point]].flat().forEach((code) => left.add(code));
    }
    filterState.facets.set(facet.name, asked ?? new Set());
    buttons.forEach((button, code) => button.classList.toggle("without", !left.has(code)));
  }
}

// A section whose charts are all hidden says so, instead of standing there blank.
function filterMarkEmpty() {
  for (const section of document.querySelectorAll("main > section")) {
    const figures = [...section.querySelectorAll("figure.chart")];
    section.classList.toggle("empty", figures.length > 0 && figures.every((figure) => figure.hidden));
  }
}

function filterToggle(facet, code, button, summary) {
  const asked = filterState.facets.get(facet.name) ?? new Set();
  if (!asked.delete(code)) asked.add(code);
  filterState.facets.set(facet.name, asked);
  button.setAttribute("aria-pressed", String(asked.has(code)));
  filterSummary(facet, summary);
  filterApply();
}

function filterSummary(facet, summary) {
  const asked = [...(filterState.facets.get(facet.name) ?? [])].sort((one, other) => one - other);
  const said = asked.length > 2 ? `${asked.length} of ${facet.values.length}` : asked.map((code) => facet.values[code].label).join(", ");
  summary.textContent = asked.length ? `${facet.label}: ${said}` : facet.label;
  summary.parentElement.classList.toggle("asked", asked.length > 0);
}

// One facet as a button that opens its values; only one is open at a time, and Escape closes it.
function filterFacet(facet) {
  const summary = el("summary", {}, facet.label);
  const buttons = facet.values.map((value, code) => {
    const button = el("button", { type: "button", "aria-pressed": "false", title: value.title }, value.label);
    button.addEventListener("click", () => filterToggle(facet, code, button, summary));
    return button;
  });
  filterButtons.push({ facet, buttons });
  const values = el("div", { class: "values", role: "group", "aria-label": facet.label }, buttons);
  const details = el("details", { class: "facet", name: "facet" }, summary, values);
  details.addEventListener("toggle", () => {
    if (details.open) filterClose(details);
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    summary.focus();
  });
  return details;
}

function filterClose(except = null) {
  for (const details of document.querySelectorAll("#filters details[open]")) if (details !== except) details.open = false;
}

function filterStart(points) {
  filterPoints = points;
  const box = document.getElementById("filters");
  const search = el("input", {
    type: "search",
    placeholder: "Search points: bf16 4096 memory-bound …",
    "aria-label": "Search points by name, bound or words of the verdict",
  });
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      filterState.words = search.value.trim().toLowerCase();
      filterApply();
    }, 150);
  });
  const several = points.facets.filter((facet) => facet.values.length > 1);
  const clear = el("button", { type: "button", id: "clear", hidden: true }, "Show all");
  clear.addEventListener("click", () => {
    filterState.words = search.value = "";
    filterState.facets.clear();
    box.querySelectorAll("[aria-pressed]").forEach((button) => button.setAttribute("aria-pressed", "false"));
    box.querySelectorAll("details").forEach((details, place) => filterSummary(several[place], details.firstElementChild));
    filterApply();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#filters details")) filterClose();
  });
  const row = el("div", { class: "find" }, search, el("output", { id: "chosen", "aria-live": "polite" }), clear);
  const words = el("p", { id: "words", hidden: true }, "Charts and tables of points show those chosen; sentences, titles and tables of rules speak of all.");
  box.replaceChildren(row, words, el("div", { class: "facets" }, several.map(filterFacet)));
  filterApply();
}
