// The timeline of a point: threads of the host above the streams of its devices, on one canvas.
// Times are nanoseconds from the start of the window. Blocks come ordered by lane, depth and start, so that one row of
// a lane is a slice of the arrays, and what is in view is found by bisection.

const timelineAxis = 34;
const timelineHead = 18;
const timelineLeast = 50;
const timelineFont = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif";
const timelineKeys =
  "W and S or up and down zoom, A and D or left and right move, 0 or Home shows all, N and P or ] and [ go to " +
  "the next and previous event of a lane, Enter selects what is in the middle, Escape lets go. The wheel zooms, " +
  "with Shift it moves; dragging moves.";
const timelineStrength = {
  user_annotation: 0.16,
  python_function: 0.12,
  cpu_op: 0.42,
  kernel: 0.55,
  gpu_memcpy: 0.3,
  gpu_memset: 0.3,
  overhead: 0.3,
};
let timelineCount = 0;

// Draw `data` (timeline of the page) into `holder`. Returns select(event id), which also shows it, and close().
function timelineOpen(holder, data, names, tools) {
  const state = timelineState(data, names, tools);
  const canvas = tools.el("canvas", {
    class: "timeline-canvas",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label": `Timeline of ${data.from.length} blocks in ${data.lanes.length} lanes`,
    "aria-describedby": `timeline-keys-${++timelineCount}`,
  });
  const panel = tools.el("div", { class: "timeline-panel", "aria-live": "polite" });
  const keys = tools.el(
    "p",
    { class: "timeline-keys", id: `timeline-keys-${timelineCount}` },
    `Keys: ${timelineKeys}`,
  );
  holder.append(timelineBar(state), canvas, panel, keys);
  Object.assign(state, { canvas, panel, context: canvas.getContext("2d") });
  timelineTell(state);
  const closers = [...timelineListen(state), timelineWatch(state)];
  return { select: (id) => timelineShowEvent(state, id), close: () => closers.forEach((close) => close()) };
}

function timelineState(data, names, tools) {
  const from = Float64Array.from(data.from);
  const end = Float64Array.from(data.dur, (dur, place) => from[place] + dur);
  const length = Math.max(1, data.length_ns);
  const low = Math.min(
    0,
    from.reduce((least, each) => Math.min(least, each), 0),
  );
  const state = {
    data,
    names,
    tools,
    from,
    end,
    low: Math.max(low, -0.05 * length),
    high: length,
    view: [...data.view],
    hovered: -1,
    selected: -1,
    drawn: 0,
    together: new Map(data.together.map(([place, ...rest]) => [place, rest])),
    places: new Map(data.id.map((id, place) => [id, place])),
  };
  state.rows = timelineRows(state);
  state.launched = timelineLaunched(data.launch);
  timelineFit(state, state.view[0], state.view[1]);
  return state;
}

// Slices of the arrays, one a row of a lane: [lane, depth, first, behind]; reach[i] is the latest end up to i.
function timelineRows(state) {
  const { data, from, end } = state;
  state.reach = Float64Array.from(end);
  const rows = [];
  for (let place = 0; place < from.length; place++) {
    const last = rows[rows.length - 1];
    if (last && last.lane === data.lane[place] && last.depth === data.depth[place]) {
      last.behind = place + 1;
      state.reach[place] = Math.max(state.reach[place - 1], end[place]);
    } else {
      rows.push({ lane: data.lane[place], depth: data.depth[place], first: place, behind: place + 1 });
    }
  }
  return rows;
}

function timelineLaunched(launch) {
  const launched = new Map();
  launch.forEach((call, place) => {
    if (call >= 0) launched.set(call, [...(launched.get(call) ?? []), place]);
  });
  return launched;
}

// --- layout ----------------------------------------------------------------------------------------------------------

// Rows are as high as leaves the whole below about 560 pixels, and never below 8.
function timelineLayout(state) {
  const { lanes } = state.data;
  const rows = lanes.reduce((sum, lane) => sum + lane.rows, 0);
  const free = 560 - timelineAxis - lanes.length * (timelineHead + 6);
  state.rowHeight = Math.max(8, Math.min(20, Math.floor(free / Math.max(1, rows))));
  let y = timelineAxis;
  state.laneTop = lanes.map((lane) => {
    const top = y + timelineHead;
    y = top + lane.rows * state.rowHeight + 6;
    return top;
  });
  state.height = y + 2;
}

function timelineX(state, ns) {
  return ((ns - state.view[0]) / (state.view[1] - state.view[0])) * state.width;
}

function timelineNs(state, x) {
  return state.view[0] + (x / state.width) * (state.view[1] - state.view[0]);
}

function timelineY(state, place) {
  return state.laneTop[state.data.lane[place]] + state.data.depth[place] * state.rowHeight;
}

// Set the view, kept within the window and not narrower than a few nanoseconds.
function timelineFit(state, first, last) {
  const whole = state.high - state.low;
  const width = Math.min(whole * 1.02, Math.max(timelineLeast, last - first));
  const middle = (first + last) / 2;
  const start = Math.min(Math.max(middle - width / 2, state.low - 0.01 * whole), state.high + 0.01 * whole - width);
  state.view = [start, start + width];
}

function timelineZoom(state, factor, ns) {
  const [first, last] = state.view;
  timelineFit(state, ns - (ns - first) * factor, ns + (last - ns) * factor);
  timelineAsk(state);
}

function timelineMove(state, share) {
  const step = (state.view[1] - state.view[0]) * share;
  timelineFit(state, state.view[0] + step, state.view[1] + step);
  timelineAsk(state);
}

// --- drawing ---------------------------------------------------------------------------------------------------------

function timelineAsk(state) {
  if (!state.asked) state.asked = requestAnimationFrame(() => timelineDraw(state));
}

function timelineColours(canvas) {
  const style = getComputedStyle(canvas);
  const read = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  return {
    ink: read("--ink", "#1b1f24"),
    muted: read("--muted", "#59636e"),
    faint: read("--faint", "#d9dee3"),
    ground: read("--ground", "#f6f8fa"),
    paper: read("--paper", "#fff"),
    accent: read("--accent", "#0a5a96"),
    host: read("--host", "#d55e00"),
    device: read("--device", "#0072b2"),
    gap: read("--gap", "#b8c0c8"),
  };
}

function timelineSize(state) {
  const { canvas } = state;
  const scale = window.devicePixelRatio || 1;
  state.width = Math.max(50, canvas.clientWidth);
  timelineLayout(state);
  canvas.style.height = `${state.height}px`;
  canvas.width = Math.round(state.width * scale);
  canvas.height = Math.round(state.height * scale);
  state.scale = scale;
  state.colours = timelineColours(canvas);
  state.context.font = `11px ${timelineFont}`;
  state.letter = state.context.measureText("abcdefghij_mnopqrstu").width / 20;
  state.hatch = timelineHatch(state);
  const { host, device, muted } = state.colours;
  state.stripes = {
    host: timelineStripes(state, host),
    device: timelineStripes(state, device),
    profiler: timelineStripes(state, muted),
  };
}

function timelinePattern(state, draw) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6 * state.scale;
  const context = tile.getContext("2d");
  context.scale(state.scale, state.scale);
  draw(context);
  const pattern = state.context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / state.scale));
  return pattern;
}

function timelineHatch(state) {
  return timelinePattern(state, (context) => {
    context.strokeStyle = state.colours.gap;
    context.lineWidth = 1;
    context.beginPath();
    for (const shift of [-6, 0, 6]) {
      context.moveTo(shift, 6);
      context.lineTo(shift + 6, 0);
    }
    context.stroke();
  });
}

function timelineStripes(state, colour) {
  return timelinePattern(state, (context) => {
    context.fillStyle = colour;
    context.globalAlpha = 0.12;
    context.fillRect(0, 0, 6, 6);
    context.globalAlpha = 0.3;
    context.fillRect(0, 0, 1, 6);
    context.fillRect(3, 0, 1, 6);
  });
}

function timelineDraw(state) {
  state.asked = 0;
  const { context, colours, scale, width, height } = state;
  if (!width) return;
  const begun = performance.now();
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.font = `11px ${timelineFont}`;
  context.textBaseline = "middle";
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, width, height);
  timelineDrawBands(state);
  timelineDrawAxis(state);
  timelineDrawGaps(state);
  state.visible = 0;
  for (const row of state.rows) timelineDrawRow(state, row);
  timelineDrawLanes(state);
  timelineDrawArrows(state);
  timelineOutline(state, state.hovered, 1);
  timelineOutline(state, state.selected, 2);
  state.canvas.dataset.from = String(state.view[0]);
  state.canvas.dataset.to = String(state.view[1]);
  state.canvas.dataset.drawMs = (performance.now() - begun).toFixed(2);
}

// Steps: shaded in turn behind the host's lanes, and named where there is room.
function timelineDrawBands(state) {
  const { context, colours, data } = state;
  const bands = data.bands;
  let free = 0;
  bands.step.forEach((step, place) => {
    const left = timelineX(state, bands.from_ns[place]);
    const right = timelineX(state, bands.to_ns[place]);
    if (right < 0 || left > state.width) return;
    const shown = Math.max(0, left);
    if (place % 2 === 0) {
      context.fillStyle = colours.ground;
      context.fillRect(shown, timelineAxis - 15, Math.min(state.width, right) - shown, state.height);
    }
    context.fillStyle = colours.faint;
    if (left >= 0) context.fillRect(left, timelineAxis - 15, 1, state.height);
    const words = `step ${step}${bands.is_typical[place] && bands.step.length > 1 ? " (typical)" : ""}`;
    const room = Math.min(state.width, right) - Math.max(shown, free) - 8;
    context.fillStyle = bands.is_typical[place] ? colours.ink : colours.muted;
    if (room > words.length * state.letter) {
      context.fillText(words, Math.max(shown, free) + 4, timelineAxis - 7);
      free = Math.max(shown, free) + words.length * state.letter + 8;
    }
  });
}

function timelineDrawAxis(state) {
  const { context, colours } = state;
  const wanted = (state.view[1] - state.view[0]) / Math.max(2, state.width / 110);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const tick = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= wanted);
  context.fillStyle = colours.muted;
  context.strokeStyle = colours.faint;
  for (let ns = Math.ceil(state.view[0] / tick) * tick; ns <= state.view[1]; ns += tick) {
    const x = timelineX(state, ns);
    const words = timelineTick(ns, tick);
    context.beginPath();
    context.moveTo(x, 14);
    context.lineTo(x, 19);
    context.stroke();
    const half = context.measureText(words).width / 2;
    context.fillText(words, Math.min(Math.max(0, x - half), state.width - 2 * half), 7);
  }
}

// A place on the axis, in the unit of the ticks and with as many decimals as they need.
function timelineTick(ns, tick) {
  const [divisor, unit] =
    tick >= 1e8 ? [1e9, "s"] : tick >= 1e5 ? [1e6, "ms"] : tick >= 100 ? [1e3, "µs"] : [1, "ns"];
  const decimals = Math.max(0, -Math.floor(Math.log10(tick / divisor) + 1e-9));
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return `${(((Math.round(ns / tick) || 0) * tick) / divisor).toLocaleString("en", options)} ${unit}`;
}

// Top and bottom of the lanes of a device.
function timelineDeviceSpan(state, device) {
  const lanes = state.data.lanes;
  const own = lanes
    .map((lane, place) => [lane, place])
    .filter(([lane]) => lane.side === "device" && lane.device === device);
  if (!own.length) return null;
  const [last, place] = own[own.length - 1];
  return [state.laneTop[own[0][1]], state.laneTop[place] + last.rows * state.rowHeight];
}

function timelineDrawGaps(state) {
  const { context, colours, data } = state;
  const spans = new Map();
  data.gaps.start_ns.forEach((start, place) => {
    const left = Math.max(0, timelineX(state, start));
    const right = Math.min(state.width, timelineX(state, start + data.gaps.dur_ns[place]));
    if (right - left < 2) return;
    const device = data.gaps.device[place];
    if (!spans.has(device)) spans.set(device, timelineDeviceSpan(state, device));
    const span = spans.get(device);
    if (!span) return;
    context.fillStyle = state.hatch;
    context.fillRect(left, span[0], right - left, span[1] - span[0]);
    const cause = data.gaps.causes[data.gaps.cause[place]];
    const words = timelineClipped(state, cause, right - left - 10);
    if (words.length < cause.length) return;
    const room = context.measureText(words).width;
    const x = (left + right - room) / 2;
    context.fillStyle = colours.paper;
    context.fillRect(x - 4, span[0] + 2, room + 8, Math.min(16, span[1] - span[0] - 4));
    context.fillStyle = colours.ink;
    context.fillText(words, x, span[0] + Math.min(10, (span[1] - span[0]) / 2));
  });
}

// The first place of a row whose block, or one before it, reaches into the view.
function timelineFirst(state, row, ns) {
  let low = row.first;
  let high = row.behind;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (state.reach[middle] < ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

function timelineDrawRow(state, row) {
  const { context, from, end, view, width } = state;
  const y = state.laneTop[row.lane] + row.depth * state.rowHeight;
  const factor = width / (view[1] - view[0]);
  let covered = -1;
  for (let place = timelineFirst(state, row, view[0]); place < row.behind && from[place] <= view[1]; place++) {
    const right = Math.min(width, (end[place] - view[0]) * factor);
    state.visible++;
    if (right <= covered && right - covered > -1) continue; // below a pixel, and that pixel is drawn
    const left = Math.max(0, (from[place] - view[0]) * factor);
    const wide = Math.max(1, right - left - (right - left > 3 ? 0.5 : 0));
    timelineFill(state, place, left, y, wide);
    covered = Math.max(covered, Math.floor(left) + 1);
    if (wide > 24 && state.rowHeight >= 12) timelineLabel(state, place, left, y, wide);
  }
  context.globalAlpha = 1;
}

function timelineFill(state, place, left, y, wide) {
  const { context, colours, data } = state;
  const side = data.lanes[data.lane[place]].side;
  if (state.together.has(place)) {
    context.globalAlpha = 1;
    context.fillStyle = state.stripes[side];
  } else {
    context.globalAlpha = timelineStrength[data.categories[data.category[place]]] ?? 0.75;
    context.fillStyle = side === "device" ? colours.device : side === "profiler" ? colours.muted : colours.host;
  }
  context.fillRect(left, y + 0.5, wide, state.rowHeight - 1);
}

function timelineLabel(state, place, left, y, wide) {
  const words = timelineClipped(state, timelineName(state, place), wide - 8);
  if (words.length < 2) return;
  state.context.globalAlpha = 1;
  state.context.fillStyle = state.colours.ink;
  state.context.fillText(words, left + 4, y + state.rowHeight / 2 + 0.5);
}

function timelineName(state, place) {
  const name = state.names[state.data.name[place]];
  const together = state.together.get(place);
  if (!together) return name;
  return together[1] === 1
    ? `${together[0].toLocaleString("en")} × ${name}`
    : `${together[0].toLocaleString("en")} events`;
}

function timelineClipped(state, words, room) {
  const letters = Math.floor(room / state.letter);
  if (words.length <= letters) return words;
  return letters > 2 ? `${words.slice(0, letters - 1)}…` : "";
}

function timelineDrawLanes(state) {
  const { context, colours, data } = state;
  data.lanes.forEach((lane, place) => {
    const y = state.laneTop[place] - timelineHead / 2 + 1;
    const words = timelineClipped(state, lane.name, state.width - 8);
    context.globalAlpha = 0.85;
    context.fillStyle = colours.paper;
    context.fillRect(0, y - 8, context.measureText(words).width + 10, 15);
    context.globalAlpha = 1;
    context.fillStyle = lane.side === "device" ? colours.device : lane.side === "host" ? colours.host : colours.muted;
    context.fillRect(0, y - 5, 3, 10);
    context.fillStyle = colours.muted;
    context.fillText(words, 7, y);
  });
}

// From each launch to what it started: of what is pointed at or selected, and all where few are in view.
function timelineDrawArrows(state) {
  const { data, view } = state;
  const shown = new Set();
  for (const place of [state.hovered, state.selected]) {
    if (place < 0) continue;
    if (data.launch[place] >= 0) shown.add(place);
    for (const work of state.launched.get(place) ?? []) shown.add(work);
  }
  const inView = [];
  for (const row of state.rows) {
    if (data.lanes[row.lane].side !== "device" || inView.length > 40) continue;
    for (
      let place = timelineFirst(state, row, view[0]);
      place < row.behind && state.from[place] <= view[1];
      place++
    ) {
      if (data.launch[place] >= 0) inView.push(place);
      if (inView.length > 40) break;
    }
  }
  const strong = new Set(shown);
  if (inView.length <= 40) inView.forEach((place) => shown.add(place));
  for (const place of shown) timelineArrow(state, data.launch[place], place, strong.has(place));
}

function timelineArrow(state, call, work, isStrong) {
  const { context, colours } = state;
  const x = timelineX(state, state.from[call]);
  const y = timelineY(state, call) + state.rowHeight;
  const toX = timelineX(state, state.from[work]);
  const toY = timelineY(state, work);
  if (Math.max(x, toX) < 0 || Math.min(x, toX) > state.width) return;
  const bend = Math.max(12, (toY - y) / 2);
  context.strokeStyle = context.fillStyle = isStrong ? colours.accent : colours.muted;
  context.globalAlpha = isStrong ? 1 : 0.5;
  context.lineWidth = isStrong ? 1.6 : 0.8;
  context.beginPath();
  context.moveTo(x, y);
  context.bezierCurveTo(x, y + bend, toX, toY - bend, toX, toY - 4);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY);
  context.lineTo(toX - 3, toY - 5);
  context.lineTo(toX + 3, toY - 5);
  context.fill();
  context.globalAlpha = 1;
}

function timelineOutline(state, place, wide) {
  if (place < 0) return;
  const left = timelineX(state, state.from[place]);
  const right = timelineX(state, state.end[place]);
  if (right < 0 || left > state.width) return;
  state.context.strokeStyle = wide > 1 ? state.colours.accent : state.colours.ink;
  state.context.lineWidth = wide;
  state.context.strokeRect(left, timelineY(state, place), Math.max(2, right - left), state.rowHeight);
}

// --- what is at a place ----------------------------------------------------------------------------------------------

function timelineAt(state, x, y) {
  const ns = timelineNs(state, x);
  const slack = ((state.view[1] - state.view[0]) / state.width) * 2;
  const row = state.rows.find((each) => {
    const top = state.laneTop[each.lane] + each.depth * state.rowHeight;
    return y >= top && y < top + state.rowHeight;
  });
  if (!row) return -1;
  let best = -1;
  for (
    let place = timelineFirst(state, row, ns - slack);
    place < row.behind && state.from[place] <= ns + slack;
    place++
  ) {
    if (state.from[place] <= ns && state.end[place] >= ns) return place;
    if (best < 0 && state.end[place] >= ns - slack) best = place;
  }
  return best;
}

function timelineGapAt(state, x, y) {
  const { gaps } = state.data;
  const ns = timelineNs(state, x);
  return gaps.start_ns.findIndex((start, place) => {
    const span = timelineDeviceSpan(state, gaps.device[place]);
    return span && y >= span[0] && y < span[1] && ns >= start && ns <= start + gaps.dur_ns[place];
  });
}

function timelineLines(state, place) {
  const { data, tools } = state;
  const time = (ns) => tools.time(ns / 1000);
  const together = state.together.get(place);
  const lines = [["", timelineName(state, place)]];
  if (together) {
    const [events, names, busy] = together;
    lines.push(["holds", `${tools.number(events)} events of ${tools.number(names)} names, ${time(busy)} in all`]);
    if (names > 1) lines.push(["most often", state.names[data.name[place]]]);
  }
  lines.push([together ? "from first to last" : "lasts", time(data.dur[place])]);
  lines.push(["starts at", time(state.from[place])], ["kind", data.categories[data.category[place]]]);
  if (data.in_step[place] !== null) lines.push(["step", String(data.in_step[place])]);
  if (data.launch[place] >= 0) {
    const wait = state.from[place] - state.from[data.launch[place]];
    lines.push(["launched by", `${timelineName(state, data.launch[place])}, ${time(wait)} before`]);
  }
  const works = state.launched.get(place) ?? [];
  if (works.length)
    lines.push([
      "launches",
      works
        .slice(0, 3)
        .map((work) => timelineName(state, work))
        .join(", "),
    ]);
  if (data.details[data.detail[place]]) lines.push(["with", data.details[data.detail[place]]]);
  return lines;
}

function timelineGapLines(state, place) {
  const { gaps } = state.data;
  return [
    ["", "the device stands still"],
    ["lasts", state.tools.time(gaps.dur_ns[place] / 1000)],
    ["cause", gaps.causes[gaps.cause[place]]],
    ["seen", gaps.details[gaps.detail[place]] || "–"],
  ];
}

// --- selecting -------------------------------------------------------------------------------------------------------

function timelineSelect(state, place) {
  state.selected = place;
  state.canvas.dataset.selected = place < 0 ? "" : String(state.data.id[place]);
  timelineTell(state);
  timelineAsk(state);
}

// The panel: what is selected, and the ways from it along its launch.
function timelineTell(state) {
  const { tools, panel, selected } = state;
  if (selected < 0) {
    panel.replaceChildren(
      tools.el("p", {}, "Select an event to see what it is, what launched it and what it launches."),
    );
    return;
  }
  const [[, name], ...lines] = timelineLines(state, selected);
  const facts = lines.map(([title, words]) =>
    tools.el("div", {}, tools.el("dt", {}, title), tools.el("dd", {}, words)),
  );
  const goals = [
    [state.data.launch[selected], "to its launch"],
    [state.launched.get(selected)?.[0] ?? -1, "to what it launches"],
  ];
  const ways = goals
    .filter(([place]) => place >= 0)
    .map(([place, words]) => timelineButton(tools, words, () => timelineReach(state, place)));
  ways.push(timelineButton(tools, "zoom to it", () => timelineAround(state, selected)));
  panel.replaceChildren(
    tools.el("h5", {}, name),
    tools.el("dl", {}, ...facts),
    tools.el("p", { class: "timeline-ways" }, ...ways),
  );
}

function timelineButton(tools, words, act) {
  const button = tools.el("button", { type: "button", class: "point-button" }, words);
  button.addEventListener("click", act);
  return button;
}

// Select an event and move the view until it is seen.
function timelineReach(state, place) {
  const [first, last] = state.view;
  const wide = last - first;
  if (state.end[place] < first + 0.02 * wide || state.from[place] > last - 0.02 * wide) {
    const middle = (state.from[place] + state.end[place]) / 2;
    timelineFit(state, middle - wide / 2, middle + wide / 2);
  }
  timelineSelect(state, place);
}

function timelineAround(state, place) {
  const room = Math.max(timelineLeast, state.end[place] - state.from[place]);
  timelineFit(state, state.from[place] - room, state.end[place] + room);
  timelineAsk(state);
}

function timelineShowEvent(state, id) {
  const place = state.places.get(id);
  if (place === undefined) return false;
  const ends = [place, state.data.launch[place]].filter((each) => each >= 0);
  const first = Math.min(...ends.map((each) => state.from[each]));
  const last = Math.max(...ends.map((each) => state.end[each]));
  const room = Math.max(timelineLeast, last - first);
  timelineFit(state, first - room, last + room);
  timelineSelect(state, place);
  state.canvas.scrollIntoView({ block: "center" });
  state.canvas.focus({ preventScroll: true });
  return true;
}

// The next or previous event of the lane of what is selected, in the order of their starts.
function timelineStep(state, way) {
  const { data, from } = state;
  const lane = state.selected < 0 ? 0 : data.lane[state.selected];
  const order = timelineOrder(state, lane);
  const middle = (state.view[0] + state.view[1]) / 2;
  const at =
    state.selected < 0
      ? order.findIndex((place) => from[place] >= middle) - (way > 0 ? 1 : 0)
      : order.indexOf(state.selected);
  const next = order[Math.min(order.length - 1, Math.max(0, at + way))];
  if (next !== undefined) timelineReach(state, next);
}

function timelineOrder(state, lane) {
  state.orders ??= new Map();
  if (!state.orders.has(lane)) {
    const own = [...state.data.lane.keys()].filter((place) => state.data.lane[place] === lane);
    state.orders.set(
      lane,
      own.sort(
        (one, other) => state.from[one] - state.from[other] || state.data.depth[one] - state.data.depth[other],
      ),
    );
  }
  return state.orders.get(lane);
}

// --- hands -----------------------------------------------------------------------------------------------------------

function timelineBar(state) {
  const { tools } = state;
  const middle = () => (state.view[0] + state.view[1]) / 2;
  const all = () => {
    timelineFit(state, state.low, state.high);
    timelineAsk(state);
  };
  const first = () => {
    timelineFit(state, ...state.data.view);
    timelineAsk(state);
  };
  return tools.el(
    "div",
    { class: "timeline-bar" },
    timelineButton(tools, "zoom in", () => timelineZoom(state, 0.5, middle())),
    timelineButton(tools, "zoom out", () => timelineZoom(state, 2, middle())),
    timelineButton(tools, "all", all),
    timelineButton(tools, "first view", first),
    ...timelineKey(tools),
  );
}

function timelineKey(tools) {
  const kinds = [
    ["host", "host"],
    ["device", "device"],
    ["gap", "device idle, and why"],
    ["together", "short events together"],
  ];
  return kinds.map(([kind, words]) => tools.el("span", { class: `timeline-kind timeline-kind-${kind}` }, words));
}

function timelinePointer(state, event) {
  const box = state.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function timelineOn(target, name, act, options) {
  target.addEventListener(name, act, options);
  return () => target.removeEventListener(name, act, options);
}

function timelineListen(state) {
  const { canvas, tools } = state;
  return [
    timelineOn(canvas, "wheel", (event) => timelineWheel(state, event), { passive: false }),
    timelineOn(canvas, "pointerdown", (event) => timelineDown(state, event)),
    timelineOn(canvas, "pointermove", (event) => timelinePoint(state, event)),
    timelineOn(canvas, "pointerup", (event) => timelineUp(state, event)),
    timelineOn(canvas, "pointercancel", () => (state.drag = null)),
    timelineOn(canvas, "pointerleave", () => {
      state.hovered = -1;
      tools.tip.hide();
      timelineAsk(state);
    }),
    timelineOn(canvas, "keydown", (event) => timelineKeyDown(state, event)),
    timelineOn(document, "themechange", () => {
      state.restyle = true;
      timelineResize(state);
    }),
    () => state.asked && cancelAnimationFrame(state.asked),
  ];
}

function timelineWatch(state) {
  const observer = new ResizeObserver(() => timelineResize(state));
  observer.observe(state.canvas);
  return () => observer.disconnect();
}

function timelineResize(state) {
  if (!state.canvas.clientWidth || (!state.restyle && state.canvas.clientWidth === state.width)) return;
  state.restyle = false;
  timelineSize(state);
  timelineDraw(state);
}

function timelineWheel(state, event) {
  event.preventDefault();
  const amount = event.deltaMode === 1 ? 16 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    timelineMove(state, ((event.deltaX || event.deltaY) * amount) / state.width);
    return;
  }
  timelineZoom(
    state,
    Math.exp(Math.max(-240, Math.min(240, event.deltaY * amount)) / 400),
    timelineNs(state, timelinePointer(state, event)[0]),
  );
}

function timelineDown(state, event) {
  if (event.button !== 0) return;
  state.drag = { x: event.clientX, view: [...state.view], moved: false };
  state.canvas.setPointerCapture(event.pointerId);
}

function timelinePoint(state, event) {
  if (state.drag) {
    const far = event.clientX - state.drag.x;
    state.drag.moved ||= Math.abs(far) > 3;
    if (!state.drag.moved) return;
    const shift = (far / state.width) * (state.drag.view[1] - state.drag.view[0]);
    timelineFit(state, state.drag.view[0] - shift, state.drag.view[1] - shift);
    state.tools.tip.hide();
    timelineAsk(state);
    return;
  }
  const [x, y] = timelinePointer(state, event);
  const place = timelineAt(state, x, y);
  const gap = place < 0 ? timelineGapAt(state, x, y) : -1;
  if (place >= 0) state.tools.tip.show(event, timelineLines(state, place));
  else if (gap >= 0) state.tools.tip.show(event, timelineGapLines(state, gap));
  else state.tools.tip.hide();
  if (place !== state.hovered) {
    state.hovered = place;
    timelineAsk(state);
  }
}

function timelineUp(state, event) {
  const drag = state.drag;
  state.drag = null;
  if (drag && !drag.moved) timelineSelect(state, timelineAt(state, ...timelinePointer(state, event)));
}

function timelineKeyDown(state, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const middle = (state.view[0] + state.view[1]) / 2;
  const acts = {
    w: () => timelineZoom(state, 0.7, middle),
    s: () => timelineZoom(state, 1 / 0.7, middle),
    a: () => timelineMove(state, -0.15),
    d: () => timelineMove(state, 0.15),
    arrowup: () => timelineZoom(state, 0.7, middle),
    arrowdown: () => timelineZoom(state, 1 / 0.7, middle),
    arrowleft: () => timelineMove(state, -0.15),
    arrowright: () => timelineMove(state, 0.15),
    n: () => timelineStep(state, 1),
    p: () => timelineStep(state, -1),
    "]": () => timelineStep(state, 1),
    "[": () => timelineStep(state, -1),
    enter: () => timelineSelectMiddle(state),
    escape: () => timelineSelect(state, -1),
    0: () => timelineAll(state),
    home: () => timelineAll(state),
  };
  const act = acts[event.key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
}

function timelineAll(state) {
  timelineFit(state, state.low, state.high);
  timelineAsk(state);
}

// Select what is pointed at, else what lies deepest in the middle of the view, else what is nearest to it.
function timelineSelectMiddle(state) {
  if (state.hovered >= 0) return timelineSelect(state, state.hovered);
  const ns = (state.view[0] + state.view[1]) / 2;
  let best = -1;
  let far = Infinity;
  for (let place = 0; place < state.from.length; place++) {
    const away = Math.max(0, state.from[place] - ns, ns - state.end[place]) - state.data.depth[place] * 1e-6;
    if (away < far) [best, far] = [place, away];
  }
  return timelineSelect(state, best);
}
