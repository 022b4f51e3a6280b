// Charts: each is drawn from its specification with the rows of the points that are chosen, those in view first.

const FIGURE_OPTIONS = { actions: false, ast: true, defaultStyle: false, mode: "vega-lite", renderer: "svg", tooltip: figureTip };
const FIGURE_SHRUNK = 1.3;
const figureList = [];
let figuresBusy = false;

// Vega's own tooltip adds a style sheet, which the policy forbids; this one only ever writes text.
function figureTip(handler, event, item, value) {
  if (value === null || value === undefined || value === "") tipHide();
  else tipShow(event, typeof value === "object" ? Object.entries(value) : [["", value]]);
}

function figuresStart(specs) {
  for (const target of document.querySelectorAll("[data-figure]")) {
    const spec = specs[target.dataset.figure];
    const datasets = Object.fromEntries(Object.entries(spec.datasets).map(([name, table]) => [name, unpackedRows(table)]));
    const points = new Set(Object.values(datasets).flat().map((row) => row.p).filter((p) => p !== undefined));
    const plot = target.querySelector(".plot");
    if (typeof spec.height === "number") plot.style.minHeight = `${spec.height + 90}px`;
    figureList.push({ target, plot, spec, datasets, points, drawn: null, view: null });
  }
}

// Rows that belong to a point are drawn while it is chosen; all others (rules, grounds, words) always.
function figureRows(figure, chosen) {
  const rows = (table) => table.filter((row) => row.p === undefined || row.p === null || chosen.has(row.p));
  const first = figure.spec.usermeta?.first;
  const shown = (table) => (first ? figureFirst(rows(table), first) : rows(table));
  return Object.fromEntries(Object.entries(figure.datasets).map(([name, table]) => [name, shown(table)]));
}

// The rows with the first so many values of a field: a chart with a line for each of thousands is not to be read.
function figureFirst(rows, { field, count }) {
  const kept = new Set();
  for (const row of rows) if (kept.size < count) kept.add(row[field]);
  return rows.filter((row) => kept.has(row[field]));
}

function figureShown(figure, chosen) {
  if (!figure.points.size) return true;
  for (const point of figure.points) if (chosen.has(point)) return true;
  return false;
}

// A plot wider than its place is drawn narrower, with all that stands at a place counted in pixels moved along.
function figureFitted(spec, room) {
  const width = spec.width;
  if (typeof width !== "number" || width + 70 <= room) return spec;
  const narrow = Math.max(180, Math.floor(room - 70));
  const moved = (layer) => {
    const encoding = { ...layer.encoding };
    for (const channel of ["x", "x2"]) {
      const value = encoding[channel]?.value;
      if (typeof value === "number") encoding[channel] = { ...encoding[channel], value: (value * narrow) / width };
    }
    return { ...layer, encoding, ...(layer.layer ? { layer: layer.layer.map(moved) } : {}) };
  };
  return { ...spec, width: narrow, title: figureTitle(spec.title, narrow), layer: spec.layer?.map(moved) };
}

function figureTitle(title, width) {
  if (!title || typeof title !== "object") return title;
  const folded = (lines, letter) => figureFolded([lines].flat().join(" "), Math.max(24, Math.floor(width / letter)));
  return { ...title, text: folded(title.text, 7), subtitle: folded(title.subtitle ?? [], 5.6) };
}

function figureFolded(text, letters) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= letters || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

async function figureDraw(figure, chosen, version) {
  figure.drawn = version;
  figure.target.hidden = !figureShown(figure, chosen);
  if (figure.target.hidden) return;
  figure.view?.finalize();
  const spec = figureFitted(figure.spec, figure.target.parentElement.clientWidth);
  try {
    const result = await vegaEmbed(figure.plot, { ...spec, datasets: figureRows(figure, chosen) }, FIGURE_OPTIONS);
    figure.view = result.view;
  } catch (error) {
    figure.view = null;
    figure.plot.replaceChildren(el("p", { class: "missing" }, `This chart could not be drawn: ${error.message}`));
  }
  figure.plot.style.minHeight = "";
  figureWiden(figure);
}

// What would be shrunk until it cannot be read scrolls sideways instead.
function figureWiden(figure) {
  const width = Number(figure.plot.querySelector("svg")?.getAttribute("width"));
  figure.target.classList.toggle("wide", width > FIGURE_SHRUNK * figure.target.parentElement.clientWidth);
}

function figureDistance(figure) {
  const box = figure.target.getBoundingClientRect();
  return Math.max(box.top - window.innerHeight, -box.bottom, 0);
}

// The figure to draw next: the nearest to what is in view; hidden ones are judged anew first, which costs nothing.
function figureNext(version) {
  const waiting = figureList.filter((figure) => figure.drawn !== version);
  return waiting.reduce((best, each) => {
    const distance = each.target.hidden ? 0 : figureDistance(each);
    return best === null || distance < best.distance ? { figure: each, distance } : best;
  }, null);
}

function figuresIdle() {
  return new Promise((done) => (window.requestIdleCallback ?? ((call) => setTimeout(call, 1)))(done, { timeout: 200 }));
}

// `data-ready` tells that all in view is drawn, `data-drawn` that everything is.
async function figuresDraw() {
  if (figuresBusy) return;
  figuresBusy = true;
  delete root.dataset.drawn;
  for (let next = figureNext(filterVersion); next && figuresSeen(); next = figureNext(filterVersion)) {
    if (next.distance > 0 && root.dataset.ready === undefined) root.dataset.ready = String(Math.round(performance.now()));
    if (next.distance > 0) await figuresIdle();
    await figureDraw(next.figure, filterChosen, filterVersion);
  }
  figuresBusy = false;
  root.dataset.ready ??= String(Math.round(performance.now()));
  root.dataset.drawn = String(figureList.length);
}

// While the page of a point is open the charts have no room: they are drawn when it is shut.
function figuresSeen() {
  return document.body.dataset.view !== "point";
}

function figuresRefit() {
  for (const figure of figureList) figure.drawn = null;
  figuresDraw();
}
