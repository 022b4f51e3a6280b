// The page of a point: its times, samples, steps, kernels, findings, operators, timeline, call paths and memory.
// `data` is what analysis/report/point.py makes of a run. Names are hostile: they become text nodes or canvas text.

const pointOpened = new Map();
const pointSvgSpace = "http://www.w3.org/2000/svg";

// Draw the page of a point into `target`; pointClose undoes it.
function pointDraw(target, data, tools) {
  pointClose(target);
  const page = { data, tools, closers: [], timeline: null };
  pointOpened.set(target, page);
  const body = tools.el("div", { class: "point" });
  target.append(body);
  const sections = [
    pointVerdict,
    pointSamples,
    pointSteps,
    ...(data.phases ? [phasesSection] : []),
    pointKernels,
    pointFindings,
    pointOperators,
    pointTimeline,
    pointFlame,
    pointMemory,
  ];
  for (const section of sections) body.append(section(page));
}

// Remove the pages in `target`, or at it, and every listener outside of them.
function pointClose(target) {
  for (const [element, page] of pointOpened) {
    if (!target.contains(element)) continue;
    page.closers.forEach((close) => close());
    pointOpened.delete(element);
    element.replaceChildren();
  }
}

// --- pieces ----------------------------------------------------------------------------------------------------------

// A section: a title that says what it shows, how to read it, what was left away, the content, and its queries.
function pointSection(page, key, title, reading, content, queries = [key]) {
  const { el } = page.tools;
  const notes = (page.data.notes[key] ?? []).map((words) => el("p", { class: "point-note" }, words));
  const sql = queries
    .map((name) => page.data.sql[name])
    .filter(Boolean)
    .join("\n\n");
  return el(
    "section",
    { class: `point-section point-${key}`, "data-section": key },
    el("h4", {}, title),
    el("p", { class: "point-reading" }, reading),
    ...notes,
    ...content,
    el(
      "details",
      { class: "point-sql" },
      el("summary", {}, "SQL"),
      el("pre", { tabindex: "0" }, el("code", {}, sql)),
    ),
  );
}

function pointNone(page, words) {
  return [page.tools.el("p", { class: "point-none" }, words)];
}

function pointSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(pointSvgSpace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

// A box whose drawing is made anew for every width that it gets: draw(width) -> an element.
function pointSized(page, kind, draw) {
  const box = page.tools.el("div", { class: `point-drawing ${kind}` });
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === width) return;
    width = box.clientWidth;
    box.replaceChildren(draw(width));
  });
  observer.observe(box);
  page.closers.push(() => observer.disconnect());
  return box;
}

// A bar of a share (0 to 1), with its words beside it.
function pointBar(page, share, tone, words) {
  const { el } = page.tools;
  const fill = el("span", { class: `point-fill point-fill-${tone}` });
  fill.style.width = `${100 * Math.max(0, Math.min(1, share || 0))}%`;
  return el(
    "span",
    { class: "point-bar" },
    el("span", { class: "point-track", "aria-hidden": "true" }, fill),
    el("span", {}, words),
  );
}

// A table: heads are [words, is it a number]; rows are lists of [shown, what sorts it]. It sorts where `sorts` is set.
function pointTable(page, label, heads, rows, sorts = false) {
  const { el } = page.tools;
  const head = heads.map(([words, isNumber]) => {
    const content = sorts ? el("button", { type: "button" }, words) : words;
    return el("th", { scope: "col", class: isNumber ? "point-number" : null }, content);
  });
  const body = el("tbody", {}, ...rows.map((row) => pointTableRow(page, heads, row)));
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...head)), body);
  if (sorts)
    head.forEach((cell, place) =>
      cell.firstChild.addEventListener("click", () => pointSort(head, body, rows, place)),
    );
  rows.forEach((row, place) => (row.element = body.children[place]));
  return el("div", { class: "point-scroll", role: "region", tabindex: "0", "aria-label": label }, table);
}

function pointTableRow(page, heads, row) {
  const { el } = page.tools;
  const cells = row.map(([shown], place) => el("td", { class: heads[place][1] ? "point-number" : null }, shown));
  return el("tr", { class: row.kind ?? null }, ...cells);
}

// Unknown values come last whatever the direction; numbers begin with the largest.
function pointSort(head, body, rows, place) {
  const isNumber = rows.some((row) => typeof row[place][1] === "number");
  const was = head[place].getAttribute("aria-sort");
  const sign = was === null ? (isNumber ? -1 : 1) : was === "ascending" ? -1 : 1;
  const order = [...rows].sort((one, other) => {
    const [a, b] = [one[place][1], other[place][1]];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (isNumber ? a - b : String(a).localeCompare(String(b), "en"));
  });
  head.forEach((cell) => cell.removeAttribute("aria-sort"));
  head[place].setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  body.replaceChildren(...order.map((row) => row.element));
}

function pointKnown(value) {
  return value !== null && value !== undefined;
}

function pointTime(page, us) {
  return us === null || us === undefined ? "–" : page.tools.time(us);
}

function pointNumber(page, value) {
  return value === null || value === undefined ? "–" : page.tools.number(value);
}

function pointShare(page, share) {
  return share === null || share === undefined ? "–" : `${page.tools.number(100 * share)} %`;
}

function pointFacts(page, pairs) {
  const { el } = page.tools;
  return el(
    "dl",
    { class: "point-facts" },
    ...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

function pointMedian(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// --- 1: times and verdict --------------------------------------------------------------------------------------------

const pointTones = {
  issue: "host",
  floor: "host",
  blocked: "host",
  device: "device",
  replay: "device",
  busy: "device",
};

function pointVerdict(page) {
  const { data } = page;
  const { el } = page.tools;
  const reading =
    "Times are of one step, without a profiler but for busy; the thin line is the 95 % interval. The longer one " +
    "of issue (the host) and device decides the bound.";
  const content = [
    el(
      "p",
      { class: "point-sentence" },
      data.verdict.sentence ?? data.run.reason ?? "No verdict: a first call, or nothing was timed.",
    ),
    ...pointCertainty(page),
    ...(data.quality.length ? [pointQuality(page)] : []),
    data.times.length ? pointTimes(page) : el("p", { class: "point-none" }, "Nothing was timed without a profiler."),
    el(
      "div",
      { class: "point-places" },
      pointFold(page, "What was measured", [
        ...data.run.axes,
        ["run", data.run.run_id],
        ["started", data.run.started_at ?? "–"],
      ]),
      pointFold(page, "Where it was measured", data.environment),
    ),
  ];
  return pointSection(page, "times", "How long a step takes, and what binds it", reading, content);
}

function pointFold(page, title, pairs) {
  const { el } = page.tools;
  return el("details", {}, el("summary", {}, title), pointFacts(page, pairs));
}

function pointCertainty(page) {
  const { verdict } = page.data;
  const words = [];
  if (verdict.margin !== null) {
    const span =
      verdict.margin_low === null
        ? ""
        : ` (${pointNumber(page, verdict.margin_low)} to ${pointNumber(page, verdict.margin_high)})`;
    words.push(`overhead / work ${pointNumber(page, verdict.margin)}${span}`);
  }
  if (verdict.confidence !== null)
    words.push(`confidence ${verdict.confidence > 0.999 ? "above 99.9 %" : pointShare(page, verdict.confidence)}`);
  if (verdict.gain !== null) words.push(`without overhead ${pointNumber(page, verdict.gain)} times as fast`);
  if (verdict.ok_runs > 1) words.push(`from ${verdict.ok_runs} runs of the point`);
  if (verdict.issue_points) words.push(`issue time shared by ${verdict.issue_points} points that launch the same`);
  return words.length ? [page.tools.el("p", { class: "point-certainty" }, words.join(" · "))] : [];
}

function pointQuality(page) {
  const { el } = page.tools;
  return el(
    "ul",
    { class: "point-quality", "aria-label": "What to mind about these figures" },
    ...page.data.quality.map((words) => el("li", {}, words)),
  );
}

function pointTimes(page) {
  const { el } = page.tools;
  const most = Math.max(...page.data.times.map((time) => time.high ?? time.value ?? 0)) || 1;
  return el(
    "div",
    { class: "point-times", role: "table", "aria-label": "Times of a step" },
    ...page.data.times.map((time) => pointTimeRow(page, time, most)),
  );
}

function pointTimeRow(page, time, most) {
  const { el } = page.tools;
  const known = time.value !== null;
  const bar = el("span", { class: "point-track", "aria-hidden": "true" });
  if (known) {
    const fill = el("span", { class: `point-fill point-fill-${pointTones[time.name] ?? "plain"}` });
    fill.style.width = `${(100 * time.value) / most}%`;
    bar.append(fill);
    if (time.low !== null && time.high !== null) {
      const whisker = el("span", { class: "point-whisker" });
      whisker.style.left = `${(100 * time.low) / most}%`;
      whisker.style.width = `${(100 * (time.high - time.low)) / most}%`;
      bar.append(whisker);
    }
  }
  const span = known && time.low !== null ? `${page.tools.time(time.low)} to ${page.tools.time(time.high)}` : "";
  return el(
    "div",
    { class: "point-time", role: "row" },
    el("span", { class: "point-time-name", role: "rowheader" }, time.name),
    el("span", { role: "cell" }, bar),
    el(
      "span",
      { class: "point-time-value", role: "cell" },
      known ? page.tools.time(time.value) : "–",
      el("small", {}, span),
    ),
    el("span", { class: "point-time-meaning", role: "cell" }, known ? time.meaning : time.reason),
  );
}

// --- 2: samples ------------------------------------------------------------------------------------------------------

const pointStrips = {
  first: "first calls, the warm-up",
  issue_half: "issue, half as many steps",
  doubled: "issue, twice as many steps",
  profiled: "host time of profiled steps",
};
const pointStripOrder = [
  "first",
  "wall",
  "issue",
  "device",
  "replay",
  "single",
  "blocked",
  "floor",
  "issue_half",
  "doubled",
  "profiled",
];

function pointSamples(page) {
  const { data, tools } = page;
  const strips = [...data.samples].sort(
    (one, other) => pointStripOrder.indexOf(one.name) - pointStripOrder.indexOf(other.name),
  );
  const reading =
    "A dot is one sample, in the order taken from left to right; a cross was disturbed by something else and " +
    "taken again. The line is their median, the band the 95 % interval of the time above, which all runs of the " +
    "point make together. Each strip has a scale of its own; all are microseconds a step. Clock, power and " +
    "temperature are recorded once a run, not with every sample.";
  const content = strips.length
    ? [tools.el("div", { class: "point-strips" }, ...strips.map((strip) => pointStrip(page, strip)))]
    : pointNone(page, data.run.is_import ? "A trace holds no times without a profiler." : "No sample was stored.");
  if (data.condition.length)
    content.push(tools.el("h5", {}, "The device meanwhile"), pointFacts(page, data.condition));
  return pointSection(page, "samples", "Every sample, in the order it was taken", reading, content);
}

function pointStrip(page, strip) {
  const { el } = page.tools;
  const disturbed = new Set(strip.disturbed);
  const good = strip.value.filter((value, place) => value !== null && !disturbed.has(place));
  const time = page.data.times.find((each) => each.name === strip.name);
  const middle = good.length ? pointMedian(good) : null;
  const count = `${strip.value.length} samples${disturbed.size ? `, ${disturbed.size} disturbed` : ""}`;
  const caption = el(
    "figcaption",
    {},
    el("strong", {}, pointStrips[strip.name] ?? strip.name),
    ` ${pointTime(page, middle)}`,
    el("small", {}, count),
  );
  return el(
    "figure",
    { class: "point-strip" },
    caption,
    pointSized(page, "point-strip-drawing", (width) => pointStripDraw(page, strip, disturbed, middle, time, width)),
  );
}

function pointStripDraw(page, strip, disturbed, middle, time, width) {
  const height = 92;
  const [left, top, bottom] = [46, 6, height - 16];
  const values = strip.value.filter((value) => value !== null);
  const ends = [Math.min(...values, time?.low ?? Infinity), Math.max(...values, time?.high ?? -Infinity)];
  const isLog = ends[0] > 0 && ends[1] / ends[0] > 20;
  const scale = isLog ? Math.log : (value) => value;
  const room = (scale(ends[1]) - scale(ends[0])) * 0.06 || Math.abs(scale(ends[1])) * 0.05 || 1;
  const [low, high] = [scale(ends[0]) - room, scale(ends[1]) + room];
  const y = (value) => bottom - ((scale(value) - low) / (high - low)) * (bottom - top);
  const x = (place) => left + 5 + ((place + 0.5) / strip.value.length) * (width - left - 10);
  const svg = pointSvg("svg", {
    width,
    height,
    role: "img",
    "aria-label": `${strip.name}: ${values.length} samples, ${ends.map((end) => pointTime(page, end)).join(" to ")}`,
  });
  svg.append(...[ends[0], ends[1]].flatMap((value) => pointTick(page, value, y(value), left, width)));
  if (time && time.low !== null && time.high !== null) {
    svg.append(
      pointSvg("rect", {
        class: "point-band",
        x: left,
        width: width - left,
        y: y(time.high),
        height: Math.max(1, y(time.low) - y(time.high)),
      }),
    );
  }
  if (middle !== null)
    svg.append(pointSvg("line", { class: "point-middle", x1: left, x2: width, y1: y(middle), y2: y(middle) }));
  const tone = pointTones[strip.name] ?? "plain";
  strip.value.forEach((value, place) => {
    if (value !== null)
      svg.append(
        disturbed.has(place)
          ? pointCross(x(place), y(value))
          : pointSvg("circle", { class: `point-dot point-dot-${tone}`, cx: x(place), cy: y(value), r: 2 }),
      );
  });
  const rounds = strip.round.filter((round) => round !== null);
  const words =
    rounds.length > 1 && rounds[rounds.length - 1] > rounds[0]
      ? [`round ${rounds[0]}`, `round ${rounds[rounds.length - 1]}`]
      : ["first", "last"];
  svg.append(pointSvg("text", { class: "point-tick", x: left + 5, y: height - 3 }, words[0]));
  svg.append(
    pointSvg(
      "text",
      { class: "point-tick", x: width - 4, y: height - 3, "text-anchor": "end" },
      words[1] + (isLog ? ", logarithmic" : ""),
    ),
  );
  return svg;
}

function pointTick(page, value, y, left, width) {
  return [
    pointSvg("line", { class: "point-grid", x1: left, x2: width, y1: y, y2: y }),
    pointSvg("text", { class: "point-tick", x: left - 5, y: y + 3.5, "text-anchor": "end" }, pointTime(page, value)),
  ];
}

function pointCross(x, y) {
  return pointSvg("path", { class: "point-cross", d: `M${x - 2.5} ${y - 2.5}l5 5m0 -5l-5 5` });
}

// --- 3: steps --------------------------------------------------------------------------------------------------------

function pointSteps(page) {
  const { steps } = page.data;
  const title = steps
    ? `What each of the ${steps.all} profiled ${steps.all === 1 ? "step" : "steps"} took`
    : "Profiled steps";
  const reading =
    "Host time of the step and time that the device was busy for it, both under the profiler, which slows the " +
    "host. The step in bold is the typical one: operators and call paths below are of it.";
  if (!steps)
    return pointSection(page, "steps", title, reading, pointNone(page, "No step was found in a trace of this run."));
  const most = Math.max(...steps.host_us, ...steps.busy_us, 0) || 1;
  const rows = steps.step.map((step, place) => {
    const isTypical = place === steps.typical;
    const row = [
      [[step, steps.kind[place], isTypical && steps.all > 1 ? "typical" : null].filter(pointKnown).join(" · "), step],
      [
        pointBar(page, steps.host_us[place] / most, "host", pointTime(page, steps.host_us[place])),
        steps.host_us[place],
      ],
      [
        pointBar(page, steps.busy_us[place] / most, "device", pointTime(page, steps.busy_us[place])),
        steps.busy_us[place],
      ],
      [pointTime(page, steps.wall_us[place]), steps.wall_us[place]],
      [pointNumber(page, steps.launches[place]), steps.launches[place]],
      [pointNumber(page, steps.kernels[place]), steps.kernels[place]],
    ];
    row.kind = isTypical ? "point-typical" : null;
    return row;
  });
  const heads = [
    ["step"],
    ["host time"],
    ["device busy"],
    ["until the next", true],
    ["launches", true],
    ["kernels", true],
  ];
  return pointSection(page, "steps", title, reading, [pointTable(page, "Profiled steps", heads, rows, true)]);
}

// --- 4: kernels ------------------------------------------------------------------------------------------------------

function pointKernels(page) {
  const { kernels } = page.data;
  const title = "What ran on the device, and how it fills it";
  const reading =
    "A row is a kernel with its launch shape, the largest total first, over the whole profiled window. Occupancy: " +
    "share of a multiprocessor's threads that its blocks can use, at most. Waves below 1 leave multiprocessors " +
    "without work.";
  if (!kernels.length)
    return pointSection(
      page,
      "kernels",
      title,
      reading,
      pointNone(page, "The trace of this run holds no kernels, or there is none."),
    );
  const heads = [
    ["kernel"],
    ["calls", true],
    ["median", true],
    ["share of time"],
    ["grid × block"],
    ["registers"],
    ["shared memory"],
    ["occupancy"],
    ["waves"],
  ];
  const most = (name) => Math.max(...kernels.map((kernel) => kernel[name] ?? 0)) || 1;
  const tops = {
    registers: Math.max(255, most("registers_per_thread")),
    shared: most("shared_memory_bytes"),
    waves: most("waves"),
  };
  const rows = kernels.map((kernel) => pointKernelRow(page, kernel, tops));
  return pointSection(page, "kernels", title, reading, [pointTable(page, "Kernels", heads, rows, true)]);
}

function pointKernelRow(page, kernel, tops) {
  const { el } = page.tools;
  const { names } = page.data;
  const chips = kernel.decoded.map((words) => el("span", { class: "point-chip" }, words));
  const shape = (values) => (values ? values.join(" × ") : "–");
  const bar = (value, top, words) => [value === null ? "–" : pointBar(page, value / top, "device", words), value];
  return [
    [
      el(
        "div",
        { class: "point-kernel" },
        el("code", { title: names[kernel.name] }, names[kernel.name]),
        el("div", {}, ...chips),
      ),
      names[kernel.name],
    ],
    [pointNumber(page, kernel.calls), kernel.calls],
    [
      el(
        "span",
        {},
        pointTime(page, kernel.median_us),
        el("small", {}, `${pointTime(page, kernel.min_us)} to ${pointTime(page, kernel.max_us)}`),
      ),
      kernel.median_us,
    ],
    [
      pointBar(
        page,
        kernel.share,
        "device",
        `${pointShare(page, kernel.share)} · ${pointTime(page, kernel.total_us)}`,
      ),
      kernel.share,
    ],
    [el("span", {}, shape(kernel.grid), el("small", {}, `× ${shape(kernel.block)}`)), kernel.blocks],
    bar(kernel.registers_per_thread, tops.registers, String(kernel.registers_per_thread)),
    bar(kernel.shared_memory_bytes, tops.shared, page.tools.bytes(kernel.shared_memory_bytes)),
    bar(kernel.occupancy, 1, pointShare(page, kernel.occupancy)),
    bar(kernel.waves, tops.waves, pointNumber(page, kernel.waves)),
  ];
}

// --- 5: findings -----------------------------------------------------------------------------------------------------

const pointSeverities = { misleads: ["!", "misleads"], costs: ["−", "costs time"], explains: ["i", "explains"] };

function pointFindings(page) {
  const { data } = page;
  const { el } = page.tools;
  const [told, explaining] = [[], []];
  data.findings.forEach((finding) => (finding.severity === "explains" ? explaining : told).push(finding));
  const topics = Map.groupBy ? Map.groupBy(told, (finding) => finding.topic) : pointGroups(told);
  const content = [...topics].map(([topic, findings]) =>
    el(
      "div",
      { class: "point-topic" },
      el("h5", {}, topic),
      ...findings.map((finding) => pointFinding(page, finding)),
    ),
  );
  if (!told.length)
    content.push(
      ...pointNone(
        page,
        data.findings.length ? "No rule found something that costs time or misleads." : "No rule fired.",
      ),
    );
  if (explaining.length) {
    const words = explaining.length === 1 ? "finding explains" : "findings explain";
    const summary = `${explaining.length} more ${words} why the trace looks as it does`;
    content.push(
      el(
        "details",
        { class: "point-explaining" },
        el("summary", {}, summary),
        ...explaining.map((finding) => pointFinding(page, finding)),
      ),
    );
  }
  if (data.cures.length) content.push(el("h5", {}, "Cures, measured and predicted"), pointCures(page));
  const title = told.length
    ? `${told.length === 1 ? "One thing" : `${told.length} things`} that cost time or mislead, and what helps`
    : "What the rules found";
  const reading =
    "The most severe first. A gain says how many times as fast a step would be without it; where none stands it " +
    "cannot be computed.";
  return pointSection(page, "findings", title, reading, content, ["findings", "cures"]);
}

function pointGroups(findings) {
  const groups = new Map();
  findings.forEach((finding) => groups.set(finding.topic, [...(groups.get(finding.topic) ?? []), finding]));
  return groups;
}

function pointFinding(page, finding) {
  const { el } = page.tools;
  const [sign, words] = pointSeverities[finding.severity];
  const parts = [
    el(
      "p",
      { class: "point-found" },
      el(
        "span",
        { class: `point-severity point-${finding.severity}` },
        el("b", { "aria-hidden": "true" }, sign),
        words,
      ),
      " ",
      finding.sentence,
      finding.gain !== null ? el("strong", { class: "point-gain" }, ` × ${pointNumber(page, finding.gain)}`) : null,
    ),
  ];
  if (finding.cure) parts.push(el("p", { class: "point-cure" }, el("span", {}, "Cure: "), finding.cure));
  if (finding.source) parts.push(el("p", { class: "point-source" }, "From ", el("code", {}, finding.source)));
  parts.push(pointEvidence(page, finding));
  if (finding.also.length) {
    const summary = `${finding.also.length} more ${finding.also.length === 1 ? "side" : "sides"} of the same`;
    parts.push(
      el("details", {}, el("summary", {}, summary), ...finding.also.map((each) => pointFinding(page, each))),
    );
  }
  return el("article", { class: "point-finding", "data-rule": finding.rule }, ...parts);
}

// Buttons that show the first events of the evidence in the timeline, and the figures that decided.
function pointEvidence(page, finding) {
  const { el } = page.tools;
  const known = new Set(page.data.timeline?.id ?? []);
  const shown = finding.events.filter((id) => known.has(id)).slice(0, 3);
  const buttons = shown.map((id, place) => {
    const button = el(
      "button",
      { type: "button", class: "point-button", "data-event": String(id) },
      place ? `and ${place + 1}` : "show in the timeline",
    );
    button.addEventListener("click", () => page.timeline?.select(id));
    return button;
  });
  const lost =
    finding.events.length && !shown.length
      ? el("span", {}, "Its events lie outside of what the timeline draws.")
      : null;
  return el(
    "p",
    { class: "point-evidence" },
    ...buttons,
    lost,
    finding.reason ? el("span", {}, finding.reason) : null,
  );
}

function pointCures(page) {
  const { el } = page.tools;
  const rows = page.data.cures.map((cure) => {
    const span =
      cure.gain_low === null ? "" : `${pointNumber(page, cure.gain_low)} to ${pointNumber(page, cure.gain_high)}`;
    const savesNothing = cure.memory_gain === null || Math.abs(Math.log(cure.memory_gain)) < Math.log(1.05);
    const gain = el(
      "span",
      {},
      cure.gain === null ? "–" : `× ${pointNumber(page, cure.gain)}`,
      el("small", {}, span),
      savesNothing ? null : el("small", {}, `memory × ${pointNumber(page, cure.memory_gain)}`),
    );
    const words = el(
      "div",
      {},
      cure.sentence,
      cure.command ? el("code", { class: "point-command" }, cure.command) : null,
    );
    return [
      [cure.cure, cure.cure],
      [gain, cure.gain],
      [cure.basis, cure.basis],
      [words, cure.sentence],
    ];
  });
  return pointTable(page, "Cures", [["cure"], ["gain", true], ["basis"], ["what it rests on"]], rows, true);
}

// --- 6: operators ----------------------------------------------------------------------------------------------------

function pointOperators(page) {
  const { operators, names, timeline } = page.data;
  const step = timeline && timeline.step !== null ? `step ${timeline.step}` : "the whole trace";
  const title = operators ? `Where the host's time goes, by name, in ${step}` : "Where the host's time goes";
  const reading =
    "Self time leaves out what lies inside, so that self times add up; totals hold it. Device: the work that an " +
    "operator launched itself, and all work launched in it. All under the profiler. A heading sorts.";
  if (!operators)
    return pointSection(
      page,
      "operators",
      title,
      reading,
      pointNone(page, "The trace of this run holds no host events, or there is none."),
    );
  const most = Math.max(...operators.self_host_us) || 1;
  const rows = operators.name.map((name, place) => [
    [page.tools.el("code", {}, names[name]), names[name]],
    [operators.category[place], operators.category[place]],
    [pointNumber(page, operators.calls[place]), operators.calls[place]],
    [
      pointBar(page, operators.self_host_us[place] / most, "host", pointTime(page, operators.self_host_us[place])),
      operators.self_host_us[place],
    ],
    ...["host_us", "self_device_us", "device_us"].map((column) => [
      pointTime(page, operators[column][place]),
      operators[column][place],
    ]),
  ]);
  const heads = [
    ["name"],
    ["kind"],
    ["calls", true],
    ["host, self"],
    ["host, total", true],
    ["device, self", true],
    ["device, total", true],
  ];
  return pointSection(page, "operators", title, reading, [pointTable(page, "Operators", heads, rows, true)]);
}

// --- 7, 8: timeline, call paths --------------------------------------------------------------------------------------

function pointTimeline(page) {
  const { timeline, names, quality, run } = page.data;
  const reading =
    "Threads of the host above, streams of the device below, time to the right. What lies under an event happened " +
    "inside it; an arrow leads from a launch to what it started; hatched is where the device stood still, with " +
    "the cause.";
  const title = "What happened when: the host, and the device that it feeds";
  if (!timeline)
    return pointSection(page, "timeline", title, reading, pointNone(page, pointNoTrace(run, quality)), []);
  const holder = page.tools.el("div", { class: "timeline" });
  const opened = timelineOpen(holder, timeline, names, page.tools);
  page.timeline = opened;
  page.closers.push(opened.close);
  return pointSection(page, "timeline", title, reading, [holder], ["timeline", "gaps"]);
}

function pointNoTrace(run, quality) {
  const why = quality.find((words) => words.startsWith("There is no trace"));
  return (
    why ??
    (run.status === "ok"
      ? "There is no trace: the run was measured without a profile."
      : `There is no trace: the run is ${run.status}.`)
  );
}

function pointFlame(page) {
  const { flame, names } = page.data;
  const step = flame && flame.step !== null ? `step ${flame.step}` : "the whole trace";
  const reading =
    "The width of a block is its time with all that lies in it; below it stands what it calls, and under that the " +
    "device work that was launched there. Click zooms, Escape leaves. Under the profiler.";
  const title = flame ? `Which calls the time of ${step} goes to` : "Which calls the time goes to";
  if (!flame)
    return pointSection(
      page,
      "flame",
      title,
      reading,
      pointNone(page, "The trace of this run holds no calls, or there is none."),
    );
  const holder = page.tools.el("div", { class: "flame" });
  page.closers.push(flameOpen(holder, flame, names, page.tools));
  return pointSection(page, "flame", title, reading, [holder]);
}

// --- 9: memory -------------------------------------------------------------------------------------------------------

function pointMemory(page) {
  const { memory } = page.data;
  const title = "Memory of the device over time";
  const reading =
    "What the allocator had given out (filled) and had reserved from the device (dashed), over the whole trace; " +
    "the dot is the peak.";
  if (!memory.length) {
    return pointSection(
      page,
      "memory",
      title,
      reading,
      pointNone(page, "The profiler did not record memory: profiler.profile_memory=true does."),
    );
  }
  const drawings = memory.map((device) =>
    pointSized(page, "point-memory-drawing", (width) => pointMemoryDraw(page, device, width)),
  );
  return pointSection(page, "memory", title, reading, drawings);
}

function pointMemoryDraw(page, device, width) {
  const height = 220;
  const [left, top, bottom] = [64, 22, height - 22];
  const times = device.at_ns;
  const [first, last] = [times[0], times[times.length - 1]];
  const most = Math.max(...device.allocated_bytes, ...device.reserved_bytes.map((each) => each ?? 0)) || 1;
  const x = (ns) => left + ((ns - first) / Math.max(1, last - first)) * (width - left - 12);
  const y = (bytes) => bottom - (bytes / most) * (bottom - top);
  const line = (values) =>
    values
      .map((value, place) => (place ? `H${x(times[place])}V${y(value ?? 0)}` : `M${x(first)} ${y(value ?? 0)}`))
      .join("");
  const peak = device.allocated_bytes.indexOf(Math.max(...device.allocated_bytes));
  const svg = pointSvg("svg", {
    width,
    height,
    role: "img",
    "aria-label": `Memory of device ${device.device}: peak ${page.tools.bytes(device.allocated_bytes[peak])}`,
  });
  for (const share of [0, 0.5, 1]) svg.append(...pointMemoryTick(page, share * most, y(share * most), left, width));
  const allocated = line(device.allocated_bytes);
  svg.append(
    pointSvg("path", { class: "point-area", d: `${allocated}V${bottom}H${x(first)}Z` }),
    pointSvg("path", { class: "point-line", d: allocated }),
  );
  svg.append(pointSvg("path", { class: "point-line point-dashed", d: line(device.reserved_bytes) }));
  svg.append(
    pointSvg("circle", { class: "point-peak", cx: x(times[peak]), cy: y(device.allocated_bytes[peak]), r: 4 }),
  );
  const side = x(times[peak]) > width / 2 ? "end" : "start";
  const after = page.tools.time((times[peak] - first) / 1000);
  const words = `peak ${page.tools.bytes(device.allocated_bytes[peak])} after ${after}`;
  svg.append(
    pointSvg(
      "text",
      {
        class: "point-peak-words",
        x: x(times[peak]) + (side === "end" ? -8 : 8),
        y: Math.max(12, y(device.allocated_bytes[peak]) - 8),
        "text-anchor": side,
      },
      words,
    ),
  );
  svg.append(pointSvg("text", { class: "point-tick", x: left, y: height - 6 }, `device ${device.device ?? "?"}`));
  svg.append(
    pointSvg(
      "text",
      { class: "point-tick", x: width - 12, y: height - 6, "text-anchor": "end" },
      `${page.tools.time((last - first) / 1000)} in all`,
    ),
  );
  return svg;
}

function pointMemoryTick(page, bytes, y, left, width) {
  return [
    pointSvg("line", { class: "point-grid", x1: left, x2: width, y1: y, y2: y }),
    pointSvg("text", { class: "point-tick", x: left - 6, y: y + 3.5, "text-anchor": "end" }, page.tools.bytes(bytes)),
  ];
}
