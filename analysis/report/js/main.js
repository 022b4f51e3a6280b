// The order in which the page comes to life, and what its address shows: the report, or the page of one point.

const POINT_TOOLS = {
  el,
  tip: { show: tipShow, hide: tipHide },
  time: timeText,
  number: numberText,
  bytes: bytesText,
  vega: (target, spec) => vegaEmbed(target, spec, FIGURE_OPTIONS),
};
let openedAt = 0;

function pointPlain(points, point) {
  const columns = points.columns;
  const facts = [
    ["wall", timeText(columns.wall[point])],
    ["overhead", timeText(columns.overhead[point])],
    ["work", timeText(columns.work[point])],
  ];
  const key = columns.key[point];
  return [
    el("p", { class: "sentence" }, badge(points.bounds[columns.bound[point]]), " ", columns.sentence[point] ?? ""),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    el("p", { class: "note" }, "This report holds no page of its samples, kernels and timeline; a report with it is made by ", el("code", {}, `python -m analysis report --points ${key}`), ", and ", el("code", {}, `python -m analysis findings ${key}`), " tells what its trace says."),
  ];
}

async function pointOpen(page, key) {
  const { points, pages } = page;
  const article = document.getElementById("point");
  const point = points.columns.key.findIndex((each) => each === key || each.startsWith(`${key} environment_id=`));
  if (point < 0) return pointShut();
  if (document.body.dataset.view !== "point") openedAt = window.scrollY;
  pointClose(article);
  document.body.dataset.view = "point";
  const back = el("a", { href: "#points", class: "back" }, "← All points");
  const title = el("h2", { id: "point-title", tabindex: -1 }, columnName(points, point));
  const body = el("div", { class: "point" });
  article.replaceChildren(back, title, body);
  article.hidden = false;
  window.scrollTo(0, 0);
  title.focus({ preventScroll: true });
  if (pages[key]) pointDraw(body, await inflated(pages[key]), POINT_TOOLS);
  else body.replaceChildren(...pointPlain(points, point));
  article.dataset.opened = key;
}

function columnName(points, point) {
  const size = points.columns.size[point];
  return points.columns.name[point] + (size === null ? "" : ` · size ${sizeText(size)}`);
}

function pointShut() {
  const article = document.getElementById("point");
  if (document.body.dataset.view !== "point") return;
  pointClose(article);
  article.replaceChildren();
  article.hidden = true;
  delete document.body.dataset.view;
  delete article.dataset.opened;
  figuresDraw();
  const asked = document.getElementById(window.location.hash.slice(1));
  if (openedAt || !asked) window.scrollTo(0, openedAt);
  else asked.scrollIntoView();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // what is no encoding of a name may be a name itself
  }
}

function follow(page) {
  const asked = /^#point=(.+)$/.exec(window.location.hash);
  return asked ? pointOpen(page, decoded(asked[1])) : pointShut();
}

async function start() {
  themeStart();
  const page = await inflated(document.getElementById("data").textContent);
  const points = page.points;
  points.columns = Object.fromEntries(Object.entries(points.columns).map(([name, packed]) => [name, unpackedColumn(packed)]));
  const { name, sentence, bound, status, size, key } = points.columns;
  const text = name.map((each, point) => `${each} ${size[point] ?? ""} ${points.bounds[bound[point]].name} ${status[point]} ${key[point]} ${sentence[point] ?? ""}`.toLowerCase());
  figuresStart(page.figures);
  tableStart(page.tables, points);
  document.querySelectorAll("thead button").forEach((button) => button.addEventListener("click", () => tableSort(button.parentElement)));
  follow(page); // first: charts that are not seen are not drawn
  filterStart({ count: name.length, text, facets: page.facets });
  window.addEventListener("hashchange", () => follow(page));
  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(figuresRefit, 200);
  });
}

start();
