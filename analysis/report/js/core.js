// What every part of the page uses: the data, elements made without markup, numbers in words, and the tip.
// All files of this folder are one closure; names begin with what they are part of.

const root = document.documentElement;
const tipBox = document.getElementById("tip");

async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// An element with attributes and children; texts become text nodes, so nothing of a store is ever read as markup.
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  const shown = children.flat(Infinity).filter((child) => child !== null && child !== undefined);
  element.append(...shown.map((child) => (child instanceof Node ? child : visibleText(child))));
  return element;
}

// Marks that turn the direction of text would turn the words around a name as well: they are shown, not obeyed.
function visibleText(text) {
  return String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, (mark) => `\\u${mark.codePointAt(0).toString(16)}`);
}

function unpackedColumn(packed) {
  return Array.isArray(packed) ? packed : packed.codes.map((code) => packed.words[code]);
}

function unpackedRows(table) {
  const columns = Object.entries(table).map(([field, packed]) => [field, unpackedColumn(packed)]);
  const rows = columns.length ? columns[0][1] : [];
  return rows.map((_, row) => Object.fromEntries(columns.map(([field, values]) => [field, values[row]])));
}

// Three significant digits with thousands separators, as analysis/theme.py writes them; unknown is an en dash.
function measureText(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || !Number.isFinite(value)) return String(value);
  if (Math.abs(value) < 1e-9 || Math.abs(value) >= 1e21) return value.toExponential(digits - 1).replaceAll("-", "−");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return text.replace("-", "−");
}

// The same of what may be a count, which has no digits behind the point.
function numberText(value, digits = 3) {
  return Number.isInteger(value) ? value.toLocaleString("en").replace("-", "−") : measureText(value, digits);
}

function timeScale(us) {
  return Math.abs(us) >= 999.5e3 ? [1e6, "s"] : Math.abs(us) >= 999.5 ? [1e3, "ms"] : [1, "µs"];
}

function timeText(us) {
  if (us === null || us === undefined) return "–";
  const [divisor, unit] = timeScale(us);
  return `${measureText(us / divisor)} ${unit}`;
}

function timeSpan(us, low, high) {
  if ([us, low, high].some((each) => each === null || each === undefined)) return "";
  const [divisor] = timeScale(us);
  return `${measureText(low / divisor)} to ${measureText(high / divisor)}`;
}

function sizeText(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : numberText(value);
}

function bytesText(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const [divisor, unit] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]].find(([each]) => Math.abs(bytes) >= each) ?? [1, "B"];
  return `${divisor === 1 ? bytes : measureText(bytes / divisor)} ${unit}`;
}

function badge(bound) {
  const letter = el("span", { class: `badge b-${bound.css}`, "aria-hidden": "true" }, bound.letter);
  return el("span", { class: "bound" }, letter, bound.name);
}

// --- the tip ---------------------------------------------------------------------------------------------------------

function tipHide() {
  tipBox.hidden = true;
}

function tipShow(event, lines) {
  tipBox.replaceChildren(...lines.map(([title, words]) => el("div", {}, el("span", {}, title), String(words))));
  tipBox.hidden = false;
  const right = Math.min(event.clientX + 14, window.innerWidth - tipBox.offsetWidth - 8);
  const below = event.clientY + 14 + tipBox.offsetHeight < window.innerHeight;
  tipBox.style.left = `${Math.max(8, right)}px`;
  tipBox.style.top = `${below ? event.clientY + 14 : event.clientY - tipBox.offsetHeight - 10}px`;
}

// --- light and dark --------------------------------------------------------------------------------------------------

function themeStored() {
  try {
    return window.localStorage.getItem("crossover-theme");
  } catch {
    return null; // a page may be opened where it may store nothing
  }
}

function themeSet(name) {
  root.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Show the page ${name === "dark" ? "light" : "dark"}`);
  document.dispatchEvent(new Event("themechange"));
}

function themeStart() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  themeSet(themeStored() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => themeStored() ?? themeSet(system.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => {
    const name = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      window.localStorage.setItem("crossover-theme", name);
    } catch {
      // then it holds until the page is closed
    }
    themeSet(name);
  });
}
