// Where the time of a step goes, by call path: a flame graph, or the same one hanging down, of host or device time.
// Every node is a button, so that it can be reached by keys, clipped and printed; one of them takes part in Tab.

const flameRow = 20;

// Draw `data` (flame of the page) into `holder`. Returns close().
function flameOpen(holder, data, names, tools) {
  const state = { data, names, tools, focus: -1, isFlame: false, totals: flameTotals(data) };
  state.value = state.totals.host.all > 0 ? "host" : "device";
  state.box = tools.el("div", {
    class: "flame-box",
    role: "group",
    "aria-label": "Call paths; arrow keys walk, Enter zooms",
  });
  state.told = tools.el("p", { class: "flame-told", "aria-live": "polite" });
  holder.append(flameBar(state), state.told, state.box);
  const keys = (event) => flameKey(state, event);
  const observer = new ResizeObserver(() => flameResize(state));
  state.box.addEventListener("keydown", keys);
  observer.observe(holder);
  state.holder = holder;
  return () => {
    observer.disconnect();
    state.box.removeEventListener("keydown", keys);
  };
}

function flameTotals(data) {
  return { host: flameSums(data, data.host_us), device: flameSums(data, data.device_us) };
}

// Time of each node with all that lies in it; a node always comes behind the one that it lies in.
function flameSums(data, own) {
  const sums = Float64Array.from(own);
  let all = 0;
  for (let node = sums.length - 1; node >= 0; node--) {
    if (data.above[node] >= 0) sums[data.above[node]] += sums[node];
    else all += sums[node];
  }
  return { sums, all };
}

function flameBar(state) {
  const { tools } = state;
  const choice = (words, isOn, act) => {
    const button = tools.el(
      "button",
      { type: "button", class: "point-button", "aria-pressed": String(isOn()) },
      words,
    );
    button.addEventListener("click", () => {
      act();
      choices.forEach(([each, on]) => each.setAttribute("aria-pressed", String(on())));
      flameDraw(state);
    });
    return [button, isOn];
  };
  const show = (value) => () => {
    state.value = value;
  };
  const choices = [
    choice("host time", () => state.value === "host", show("host")),
    choice("device time", () => state.value === "device", show("device")),
    choice(
      "flame (callers below)",
      () => state.isFlame,
      () => {
        state.isFlame = !state.isFlame;
      },
    ),
  ];
  for (const [place, value] of [
    [0, "host"],
    [1, "device"],
  ]) {
    if (!state.totals[value].all) choices[place][0].disabled = true;
  }
  const out = tools.el("button", { type: "button", class: "point-button" }, "zoom out");
  out.addEventListener("click", () => flameZoom(state, -1));
  return tools.el("div", { class: "flame-bar" }, ...choices.map(([button]) => button), out);
}

function flameResize(state) {
  const width = state.holder.clientWidth;
  if (!width || width === state.width) return;
  state.width = width;
  flameDraw(state);
}

// Left edge, width (both 0 to 1) and row of every node that is drawn, by node.
function flamePlaces(state) {
  const { data, focus } = state;
  const { sums, all } = state.totals[state.value];
  const whole = focus < 0 ? all : sums[focus];
  const above = new Set();
  for (let node = focus; node >= 0; node = data.above[node]) above.add(node);
  const next = new Map();
  const placed = new Map();
  data.above.forEach((parent, node) => {
    if (!(sums[node] > 0)) return;
    if (above.has(node)) {
      placed.set(node, { left: 0, width: 1, row: parent < 0 ? 0 : placed.get(parent).row + 1 });
      return;
    }
    const around = placed.get(parent);
    if (parent >= 0 ? !around || (above.has(parent) && parent !== focus) : focus >= 0) return;
    const left = next.get(parent) ?? (around ? around.left : 0);
    const width = sums[node] / whole;
    next.set(parent, left + width);
    placed.set(node, { left, width, row: around ? around.row + 1 : 0 });
  });
  return placed;
}

function flameDraw(state) {
  const placed = flamePlaces(state);
  const shown = [...placed].filter(([, place]) => place.width * state.width >= 1.5);
  const rows = Math.max(1, ...shown.map(([, place]) => place.row + 1));
  state.shown = new Map(shown);
  state.box.style.height = `${rows * flameRow}px`;
  state.box.replaceChildren(...shown.map(([node, place]) => flameNode(state, node, place, rows)));
  const first = state.box.querySelector(`[data-node="${state.focus}"]`) ?? state.box.firstElementChild;
  if (first) first.tabIndex = 0;
  state.box.dataset.focus = String(state.focus);
  state.box.dataset.value = state.value;
  const { sums, all } = state.totals[state.value];
  const time = state.tools.time(state.focus < 0 ? all : sums[state.focus]);
  const what = state.focus < 0 ? `all ${state.value} time` : flameName(state, state.focus);
  const small = placed.size - shown.length;
  state.told.textContent = `${time}: ${what}${small ? `; ${small} paths are too narrow to draw until zoomed` : ""}.`;
}

function flameName(state, node) {
  return state.names[state.data.name[node]];
}

function flameNode(state, node, place, rows) {
  const { data, tools } = state;
  const tone = flameTone(data.categories[data.category[node]], data.device_us[node] > 0);
  const button = tools.el("button", {
    type: "button",
    class: `flame-node flame-${tone}`,
    tabindex: "-1",
    "data-node": String(node),
  });
  if (place.width * state.width > 22) button.textContent = flameName(state, node);
  button.setAttribute(
    "aria-label",
    flameLines(state, node)
      .map(([title, words]) => `${title} ${words}`)
      .join(", "),
  );
  button.style.left = `${100 * place.left}%`;
  button.style.width = `calc(${100 * place.width}% - 1px)`;
  button.style.top = `${(state.isFlame ? rows - 1 - place.row : place.row) * flameRow}px`;
  button.addEventListener("click", () => flameZoom(state, state.focus === node ? data.above[node] : node));
  button.addEventListener("pointermove", (event) => tools.tip.show(event, flameLines(state, node)));
  button.addEventListener("pointerleave", () => tools.tip.hide());
  return button;
}

function flameTone(kind, isWork) {
  if (kind === "folded") return "folded";
  if (isWork) return "device";
  return kind === "python_function" || kind === "user_annotation" ? "pale" : "host";
}

function flameLines(state, node) {
  const { data, tools } = state;
  const { sums, all } = state.totals[state.value];
  const own = state.value === "host" ? data.host_us[node] : data.device_us[node];
  return [
    ["", flameName(state, node)],
    [state.value, `${tools.time(sums[node])}, ${tools.number((100 * sums[node]) / all)} % of all`],
    ["itself", tools.time(own)],
    ["calls", tools.number(data.calls[node])],
  ];
}

function flameZoom(state, node) {
  state.focus = node;
  state.tools.tip.hide();
  flameDraw(state);
  const button = state.box.querySelector("[tabindex='0']");
  if (button) button.focus({ preventScroll: true });
}

// Arrow keys walk the tree that is drawn: across sisters, down into the first child, up to the caller.
function flameKey(state, event) {
  const at = Number(event.target.dataset.node ?? -1);
  if (at < 0) return;
  const { above } = state.data;
  const sisters = [...state.shown.keys()].filter((node) => above[node] === above[at]);
  const children = [...state.shown.keys()].filter((node) => above[node] === at);
  const [deeper, higher] = state.isFlame ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
  const goals = {
    ArrowRight: sisters[sisters.indexOf(at) + 1],
    ArrowLeft: sisters[sisters.indexOf(at) - 1],
    [deeper]: children[0],
    [higher]: above[at],
  };
  if (event.key === "Escape") flameZoom(state, -1);
  else if (!(event.key in goals)) return;
  event.preventDefault();
  const goal = state.box.querySelector(`[data-node="${goals[event.key] ?? at}"]`);
  if (!goal) return;
  event.target.tabIndex = -1;
  goal.tabIndex = 0;
  goal.focus({ preventScroll: true });
}
