// The phases of a step: what each costs host and device, nested, and who holds memory when it is at its peak.

const PHASES_ROW = 22;
const PHASES_LEFT = 74;
const phasesHolders = ["parameters", "gradients", "optimizer_state", "inputs", "activations", "temporaries", "other"];

function phasesSection(page) {
  const { phases } = page.data;
  const timed = phases.host_us.some(pointKnown) || phases.device_us.some(pointKnown);
  const watched = phases.memory.length > 0;
  const step = phases.steps === 1 ? "step" : `${phases.steps} steps`;
  const kind = phases.kind && phases.kind !== "window" ? ` (${phases.kind})` : "";
  const title = timed ? `Which phases the time of a step goes to${watched ? ", and who holds its memory" : ""}` : "Who holds the memory of a step";
  const reading = [
    timed ? `Means of ${step}${kind}, under the profiler, which slows the host. Device work counts for the phase that launched it, whichever thread did, and an overlap counts once, so that the outermost phases and what is outside add up to the step.` : null,
    watched ? "The lower bars show who holds the device's memory at the peak of each phase." : null,
  ];
  const content = [
    timed ? pointSized(page, "phases-drawing", (width) => phasesDraw(page, width)) : null,
    phasesTable(page),
    ...(watched ? phasesMemory(page) : []),
  ].filter(Boolean);
  return pointSection(page, "phases", title, reading.filter(Boolean).join(" "), content, watched ? ["phases", "holders"] : ["phases"]);
}

// --- the step, nested: host above, device below, on one scale ----------------------------------------------------------

function phasesDraw(page, width) {
  const { phases } = page.data;
  const lanes = [
    ["host", phases.host_us],
    ["device", phases.device_us],
  ].filter(([, times]) => times.some((time) => time > 0));
  const levels = Math.max(...phases.depth) + 1;
  const most = Math.max(...lanes.map(([, times]) => phasesTotal(phases, times)));
  const scale = (width - PHASES_LEFT - 4) / (most || 1);
  const deep = levels * PHASES_ROW;
  const height = lanes.length * deep + (lanes.length - 1) * 12 + 6;
  const words = lanes.map(([side, times]) => `${side} ${page.tools.time(phasesTotal(phases, times))}`).join(", ");
  const svg = pointSvg("svg", { width, height, role: "img", "aria-label": `Phases of a step: ${words}; the table below has every figure.` });
  lanes.forEach(([side, times], lane) => {
    const top = lane * (deep + 12) + 2;
    svg.append(pointSvg("text", { class: "point-tick", x: PHASES_LEFT - 8, y: top + 15, "text-anchor": "end" }, side));
    phasesBlocks(phases, times, scale).forEach((block) => svg.append(phasesBlock(page, side, block, top)));
  });
  return svg;
}

// The step's own time, else that of its outermost parts together.
function phasesTotal(phases, times) {
  const step = phases.part.indexOf("step");
  if (step >= 0 && times[step]) return times[step];
  return times.reduce((sum, time, place) => sum + (phases.depth[place] === 1 ? (time ?? 0) : 0), 0);
}

// Place and width of each phase: those in a phase stand below it, in order, from where it begins.
function phasesBlocks(phases, times, scale) {
  const reached = [PHASES_LEFT];
  const blocks = [];
  times.forEach((time, place) => {
    const depth = phases.depth[place];
    const shown = phases.part[place] === "step" ? phasesTotal(phases, times) : (time ?? 0);
    const x = reached[depth] ?? PHASES_LEFT;
    reached[depth] = x + shown * scale;
    reached[depth + 1] = x;
    if (shown > 0) blocks.push({ place, depth, x, width: shown * scale, us: shown });
  });
  return blocks;
}

function phasesBlock(page, side, block, top) {
  const { phases } = page.data;
  const name = phases.phase[block.place];
  const kind = phases.part[block.place] === "phase" ? `phases-${side}` : `phases-${phases.part[block.place]}`;
  const group = pointSvg("g", { class: "phases-block", "data-path": phases.path[block.place], "data-side": side });
  const y = top + block.depth * PHASES_ROW;
  group.append(pointSvg("rect", { class: kind, x: block.x, y, width: Math.max(0.5, block.width - 1), height: PHASES_ROW - 2 }));
  const words = `${name} ${page.tools.time(block.us)}`;
  const fitting = [words, name].find((each) => each.length * 6.4 + 8 < block.width);
  if (fitting) group.append(pointSvg("text", { class: "phases-words", x: block.x + 4, y: y + 14 }, fitting));
  group.addEventListener("pointermove", (event) => page.tools.tip.show(event, phasesTip(page, side, block)));
  group.addEventListener("pointerleave", () => page.tools.tip.hide());
  return group;
}

function phasesTip(page, side, block) {
  const { phases } = page.data;
  const { place } = block;
  const share = phases[`${side}_frac`][place];
  const lines = [
    [phases.path[place], ""],
    [`${side} `, `${page.tools.time(block.us)}${pointKnown(share) ? `, ${pointShare(page, share)} of the step` : ""}`],
  ];
  if (pointKnown(phases.launches[place])) lines.push(["launches ", pointNumber(page, phases.launches[place])]);
  if (pointKnown(phases.peak_bytes[place])) lines.push(["memory at most ", page.tools.bytes(phases.peak_bytes[place])]);
  return lines;
}

// --- every figure ------------------------------------------------------------------------------------------------------

function phasesTable(page) {
  const { phases } = page.data;
  const most = { host: Math.max(...phases.host_us, 0) || 1, device: Math.max(...phases.device_us, 0) || 1 };
  const bar = (side) => (value) => (pointKnown(value) ? pointBar(page, value / most[side], side, pointTime(page, value)) : "–");
  const columns = [
    ["host_us", ["host time"], bar("host")],
    ["device_us", ["device time"], bar("device")],
    ["launches", ["launches", true], (value) => pointNumber(page, value)],
    ["kernels", ["kernels", true], (value) => pointNumber(page, value)],
    ["idle_us", ["device idle in it", true], (value) => pointTime(page, value)],
    ["wait_us", ["host waits", true], (value) => pointTime(page, value)],
    ["peak_bytes", ["memory at most", true], (value) => (pointKnown(value) ? page.tools.bytes(value) : "–")],
  ].filter(([name]) => phases[name].some((value) => pointKnown(value) && (value !== 0 || name === "host_us" || name === "device_us")));
  const rows = phases.phase.map((name, place) => {
    const cells = columns.map(([column, , shown]) => [shown(phases[column][place]), phases[column][place]]);
    const row = [[phasesName(page, place), place], ...cells];
    row.kind = phases.part[place] === "step" ? "point-typical" : null;
    return row;
  });
  return pointTable(page, "Phases of a step", [["phase"], ...columns.map(([, head]) => head)], rows, true);
}

function phasesName(page, place) {
  const { phases } = page.data;
  const { el } = page.tools;
  const often = phases.calls[place];
  const name = el("span", { class: "phases-name", title: phases.path[place] }, phases.phase[place]);
  name.style.paddingLeft = `${Math.max(0, phases.depth[place] - 1) * 1.1}rem`;
  if (pointKnown(often) && often !== 1 && phases.part[place] === "phase") name.append(el("small", {}, `${pointNumber(page, often)} a step`));
  return name;
}

// --- who holds memory --------------------------------------------------------------------------------------------------

function phasesMemory(page) {
  const { el } = page.tools;
  const { memory, sums } = page.data.phases;
  const seen = new Set(memory.flatMap((phase) => phase.holders.map(([holder]) => holder)));
  const known = phasesHolders.filter((holder) => seen.has(holder));
  const keys = [...known, ...[...seen].filter((holder) => !known.includes(holder))];
  const legend = el(
    "div",
    { class: "phases-keys", "aria-hidden": "true" },
    ...keys.map((holder) => el("span", { class: `phases-key phases-fill-${phasesTone(holder)}` }, phasesWords(holder))),
  );
  const drawing = pointSized(page, "phases-memory-drawing", (width) => phasesMemoryDraw(page, keys, width));
  return [
    el("h5", {}, "Memory of the device at the peak of each phase, by holder"),
    legend,
    drawing,
    ...(sums ? [el("p", { class: "point-reading" }, sums)] : []),
  ];
}

function phasesTone(holder) {
  return phasesHolders.includes(holder) ? holder : "other";
}

function phasesWords(holder) {
  return holder.replaceAll("_", " ");
}

function phasesMemoryDraw(page, keys, width) {
  const { memory } = page.data.phases;
  const [left, row, right] = [Math.min(190, width * 0.3), 24, 104];
  const sum = (phase) => phase.holders.reduce((total, [, bytes]) => total + Math.max(0, bytes), 0);
  const scale = (width - left - right) / (Math.max(...memory.map((phase) => Math.max(sum(phase), phase.peak_bytes ?? 0))) || 1);
  const height = memory.length * row + 4;
  const peak = memory.find((phase) => phase.is_at_peak) ?? memory[0];
  const label = `Memory by holder in ${memory.length} phases; the peak is in ${peak.path}: ${phasesHeld(page, peak)}`;
  const svg = pointSvg("svg", { width, height, role: "img", "aria-label": label });
  memory.forEach((phase, place) => {
    const y = place * row + 3;
    const indent = Math.max(0, phase.depth - 1) * 12;
    svg.append(pointSvg("text", { class: `phases-label${phase.is_at_peak ? " phases-at-peak" : ""}`, x: indent, y: y + 13 }, phasesCut(phase.phase, (left - indent - 8) / 6.6)));
    let x = left;
    const group = pointSvg("g", { class: "phases-held", "data-path": phase.path });
    for (const holder of keys) {
      const bytes = Math.max(0, phase.holders.find(([name]) => name === holder)?.[1] ?? 0);
      if (!bytes) continue;
      group.append(pointSvg("rect", { class: `phases-fill-${phasesTone(holder)}`, "data-holder": holder, x, y, width: Math.max(0.5, bytes * scale - 0.5), height: row - 6 }));
      x += bytes * scale;
    }
    group.addEventListener("pointermove", (event) => page.tools.tip.show(event, phasesMemoryTip(page, phase)));
    group.addEventListener("pointerleave", () => page.tools.tip.hide());
    svg.append(group);
    const end = Math.max(x, left + (phase.peak_bytes ?? 0) * scale);
    if (phase.is_at_peak) svg.append(pointSvg("circle", { class: "point-peak", cx: end + 7, cy: y + (row - 6) / 2, r: 4 }));
    const words = page.tools.bytes(phase.peak_bytes ?? sum(phase));
    svg.append(pointSvg("text", { class: `phases-label${phase.is_at_peak ? " phases-at-peak" : ""}`, x: end + (phase.is_at_peak ? 15 : 6), y: y + 13 }, phase.is_at_peak ? `peak ${words}` : words));
  });
  return svg;
}

function phasesCut(name, letters) {
  return name.length <= letters ? name : `${name.slice(0, Math.max(1, Math.floor(letters) - 1))}…`;
}

function phasesMemoryTip(page, phase) {
  return [[phase.path, ""], ...phase.holders.map(([holder, bytes]) => [`${phasesWords(holder)} `, page.tools.bytes(bytes)])];
}

function phasesHeld(page, phase) {
  return phase.holders.map(([holder, bytes]) => `${phasesWords(holder)} ${page.tools.bytes(bytes)}`).join(", ");
}
