// Shows the facts of a build. Words from the build reach the page as text
// only, never as markup.

const byId = (id) => document.getElementById(id);
const facts = JSON.parse(byId("facts").textContent);
const { summary, detail } = facts;
const LANGUAGES = { hip: "HIP", "opencl-c": "OpenCL C", assembly: "Assembly", shared: "Made" };
const languageName = (language) => LANGUAGES[language] ?? language;

const jobs = detail.rows.map((row) => ({
  name: detail.names[row[0]],
  arguments: detail.arguments[row[1]],
  target: detail.targets[row[2]],
  language: detail.languages[row[3]],
  worker: row[4],
  start: row[5],
  time: row[6],
  cpu: row[7],
  memory: row[8] * 1024,
  size: row[9],
  group: row[10],
  output: row[11],
  place: detail.places[row[12]],
}));

// What was made for several jobs takes time and memory like one.
const shared = detail.shared.map((one) => ({
  ...one,
  name: one.what.replaceAll("-", " "),
  arguments: `shared by kernels in ${languageName(one.language)}`,
  language: "shared",
  group: -1,
}));
const timed = [...jobs, ...shared];

// Elements and words

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function time(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 999.5 && unit + 1 < units.length) {
    count /= 1000;
    unit += 1;
  }
  return `${unit === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
}

const number = (value) => value.toLocaleString("en");
const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

// The head

function showHead() {
  byId("compilers").textContent = summary.compilers.join("; ");
  if (summary.error) {
    byId("build-error").hidden = false;
    byId("build-error").textContent = `The build ended early: ${summary.error}`;
  }
  const undone = summary.jobs - summary.cached - summary.compiled - summary.failed;
  const tiles = [
    ["Time", time(summary.milliseconds), plural(summary.workers, "worker")],
    ["Compiled", number(summary.compiled), `of ${plural(summary.jobs, "kernel")}`],
    ["From the cache", number(summary.cached), share(summary.cached, summary.jobs)],
    ["Failed", number(summary.failed), plural(summary.failures.length, "reason"), summary.failed],
    undone > 0 && ["Not done", number(undone), share(undone, summary.jobs), true],
    ["CPU time", time(summary.cpu_milliseconds), atOnce()],
    ["Most memory", bytes(summary.peak_memory), "of one kernel, at its peak"],
    ["Code objects", bytes(summary.size), "before compression"],
  ];
  for (const [label, value, note, bad] of tiles.filter(Boolean)) {
    const tile = element("div", { className: bad ? "bad" : "" });
    tile.append(element("dt", { textContent: label }), element("dd", { textContent: value }));
    tile.append(element("dd", { className: "note", textContent: note }));
    byId("tiles").append(tile);
  }
}

function share(part, whole) {
  return whole ? `${((100 * part) / whole).toFixed(part && part < whole ? 1 : 0)} %` : "–";
}

function atOnce() {
  const ran = end - begin;
  if (!jobs.length || ran <= 0) return "nothing was compiled";
  return `${(summary.compile_milliseconds / ran).toFixed(1)} kernels at once`;
}

// The timeline

let begin = Infinity;
let end = 0;
for (const job of timed) {
  begin = Math.min(begin, job.start);
  end = Math.max(end, job.start + Math.max(job.time, 1));
}
const view = { from: begin, to: end };
const lanes = [];
for (const job of timed) (lanes[job.worker] ??= []).push(job);
for (let worker = 0; worker < Math.max(summary.workers, lanes.length); worker++) {
  (lanes[worker] ??= []).sort((a, b) => a.start - b.start);
}
// Many workers share the height of a screen.
const laneHeight = Math.max(4, Math.min(24, Math.floor(640 / Math.max(lanes.length, 1))));
const gap = laneHeight > 8 ? 2 : 1;
const AXIS = 20;
const colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["hip", "opencl-c", "assembly", "failed", "memory", "lane", "line", "muted", "card", "text"];
  for (const name of names) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

const colour = (job) => (job.group >= 0 ? colours.failed : colours[job.language] ?? colours.muted);

function prepared(canvas, height) {
  const width = canvas.clientWidth;
  const ratio = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

function draw() {
  drawLanes();
  drawMemory();
}

function drawLanes() {
  const height = lanes.length * (laneHeight + gap) + AXIS;
  const [context, width] = prepared(byId("lanes"), height);
  const scale = width / (view.to - view.from);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colours.lane;
  for (let worker = 0; worker < lanes.length; worker++) {
    context.fillRect(0, worker * (laneHeight + gap), width, laneHeight);
  }
  // Under the jobs: a line through one would look like its end.
  drawAxis(context, width, scale, height);
  lanes.forEach((lane, worker) => {
    const top = worker * (laneHeight + gap);
    // Jobs narrower than a pixel are summed up where they fall.
    const small = new Map();
    for (const job of lane) {
      const from = (job.start - view.from) * scale;
      const to = (job.start + job.time - view.from) * scale;
      if (to < 0 || from > width) continue;
      if (to - from < 1.5) {
        const pixel = Math.floor(from);
        const sum = small.get(pixel) ?? { covered: 0, job };
        sum.covered += Math.max(to - from, 0.05);
        if (job.group >= 0 || (sum.job.group < 0 && job.time > sum.job.time)) sum.job = job;
        small.set(pixel, sum);
        continue;
      }
      const left = Math.max(from, -2);
      const right = Math.min(to, width + 2);
      context.fillStyle = colour(job);
      // A hair's breadth tells neighbours apart.
      const between = right - left > 4 ? 1 : 0;
      context.fillRect(left, top, right - left - between, laneHeight);
      if (right - left > 56 && laneHeight >= 14) label(context, job, left, right, top);
    }
    for (const [pixel, { covered, job }] of small) {
      context.globalAlpha = job.group >= 0 ? 1 : 0.25 + 0.75 * Math.min(covered, 1);
      context.fillStyle = colour(job);
      context.fillRect(pixel, top, 1, laneHeight);
    }
    context.globalAlpha = 1;
  });
}

function label(context, job, left, right, top) {
  context.save();
  context.beginPath();
  context.rect(left, top, right - left - 4, laneHeight);
  context.clip();
  context.fillStyle = colours.card;
  context.fillText(job.name, Math.max(left, 0) + 4, top + laneHeight / 2 + 0.5);
  context.restore();
}

function drawAxis(context, width, scale, height) {
  const span = (view.to - view.from) / 1000;
  const wanted = span / Math.max(2, Math.floor(width / 110));
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= wanted);
  context.strokeStyle = colours.line;
  for (let index = Math.ceil(view.from / 1000 / step); index * step * 1000 <= view.to; index++) {
    const x = (index * step * 1000 - view.from) * scale;
    context.globalAlpha = 0.7;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS + 4);
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = colours.muted;
    const text = `${Number((index * step).toPrecision(6))} s`;
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(x - half, 0), width - 2 * half), height - AXIS / 2 + 2);
  }
}

// Memory: what runs at a time, by starts and ends

const levels = (() => {
  const changes = [];
  for (const job of timed) {
    changes.push([job.start, job.memory], [job.start + Math.max(job.time, 1), -job.memory]);
  }
  // Ends before starts, so that a worker's next job is not added to its last.
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let level = 0;
  return changes.map(([at, change]) => [at, (level += change)]);
})();
const highest = levels.reduce((most, [, level]) => Math.max(most, level), 0);

function drawMemory() {
  const height = highest > 0 ? 90 : 0;
  byId("memory").hidden = !height;
  if (!height) return;
  const [context, width] = prepared(byId("memory"), height);
  const scale = width / (view.to - view.from);
  const foot = height - 2;
  const rise = (foot - 18) / highest;
  const peaks = new Float64Array(Math.ceil(width) + 1);
  levels.forEach(([at, level], index) => {
    const until = levels[index + 1]?.[0] ?? at;
    const first = Math.max(0, Math.floor((at - view.from) * scale));
    const last = Math.min(width, Math.ceil((until - view.from) * scale));
    for (let x = first; x < last; x++) peaks[x] = Math.max(peaks[x], level);
  });
  context.fillStyle = colours.memory;
  context.globalAlpha = 0.75;
  context.beginPath();
  context.moveTo(0, foot);
  for (let x = 0; x < width; x++) {
    context.lineTo(x, foot - peaks[x] * rise);
    context.lineTo(x + 1, foot - peaks[x] * rise);
  }
  context.lineTo(width, foot);
  context.fill();
  context.globalAlpha = 1;
  context.fillStyle = colours.muted;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  context.fillText(`memory, at most ${bytes(highest)}`, 0, 2);
  context.strokeStyle = colours.line;
  context.beginPath();
  context.moveTo(0, foot + 0.5);
  context.lineTo(width, foot + 0.5);
  context.stroke();
}

function show(from, to) {
  const least = Math.min(10, end - begin);
  const span = Math.min(Math.max(to - from, least), end - begin);
  view.from = Math.min(Math.max(from, begin), end - span);
  view.to = view.from + span;
  document.documentElement.dataset.view = `${Math.round(view.from)}-${Math.round(view.to)}`;
  draw();
}

function zoom(factor, around = (view.from + view.to) / 2) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

const moves = {
  in: () => zoom(0.5),
  out: () => zoom(2),
  left: () => show(view.from - (view.to - view.from) / 3, view.to - (view.to - view.from) / 3),
  right: () => show(view.from + (view.to - view.from) / 3, view.to + (view.to - view.from) / 3),
  all: () => show(begin, end),
};
const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };

function jobAt(event) {
  const area = byId("lanes").getBoundingClientRect();
  const lane = lanes[Math.floor((event.clientY - area.top) / (laneHeight + gap))];
  if (!lane) return undefined;
  const perPixel = (view.to - view.from) / area.width;
  const at = view.from + (event.clientX - area.left) * perPixel;
  let [low, high] = [0, lane.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].start <= at + perPixel / 2) low = middle + 1;
    else high = middle;
  }
  const job = lane[low - 1];
  return job && at <= job.start + job.time + perPixel ? job : undefined;
}

function showTip(event) {
  const tip = byId("tip");
  const job = jobAt(event);
  tip.hidden = !job;
  if (!job) return;
  const words = job.arguments.length > 400 ? `${job.arguments.slice(0, 400)}…` : job.arguments;
  tip.replaceChildren(
    element("b", { textContent: job.name }),
    element("span", { className: "key", textContent: words }),
    element("div", {
      textContent: [
        `${languageName(job.language)} for ${job.target}`,
        `${time(job.time)} (CPU ${time(job.cpu)}) from ${time(job.start)}`,
        ...(job.place ? [`on ${job.place}`] : []),
        `memory ${bytes(job.memory)}`,
        job.group >= 0 ? "failed" : job.size !== undefined && `size ${bytes(job.size)}`,
      ].filter(Boolean).join(" · "),
    }),
  );
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + height > innerHeight ? event.clientY - height - 12 : below}px`;
}

function watchTimeline() {
  const canvas = byId("lanes");
  const selection = byId("selection");
  let pressed;
  const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
  const moment = (x) => view.from + (x / canvas.clientWidth) * (view.to - view.from);
  canvas.addEventListener("pointerdown", (event) => {
    pressed = place(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const x = place(event);
    selection.hidden = pressed === undefined || Math.abs(x - pressed) < 4;
    selection.style.left = `${Math.min(x, pressed)}px`;
    selection.style.width = `${Math.abs(x - pressed)}px`;
    showTip(event);
  });
  canvas.addEventListener("pointerup", (event) => {
    const x = place(event);
    if (!selection.hidden) show(moment(Math.min(x, pressed)), moment(Math.max(x, pressed)));
    pressed = undefined;
    selection.hidden = true;
  });
  canvas.addEventListener("pointercancel", () => {
    pressed = undefined;
    selection.hidden = true;
  });
  canvas.addEventListener("pointerleave", () => (byId("tip").hidden = true));
  canvas.addEventListener("dblclick", moves.all);
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, moment(place(event)));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    const move = moves[KEYS[event.key]];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  });
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", moves[button.dataset.zoom]);
  }
  new ResizeObserver(draw).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    draw();
  });
}

function showLegend() {
  const counts = new Map();
  for (const job of jobs) {
    const kind = job.group >= 0 ? "failed" : job.language;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  for (const kind of ["hip", "opencl-c", "assembly", "failed"]) {
    if (!counts.has(kind)) continue;
    const mark = element("i");
    mark.style.background = `var(--${kind})`;
    const name = kind === "failed" ? "failed" : languageName(kind);
    byId("legend").append(element("li", {}, mark, `${name} (${number(counts.get(kind))})`));
  }
}

// Tables

function headRow(columns) {
  return element("tr", {}, ...columns.map(([title, , className]) => element("th", { scope: "col", className: className ?? "" }, title)));
}

function showGroups() {
  const most = Math.max(1, ...summary.groups.map((group) => group.compile_milliseconds));
  const columns = [
    ["Target", (group) => group.target],
    ["Language", (group) => languageName(group.language)],
    ["Compiled", (group) => number(group.compiled), "number"],
    ["From the cache", (group) => number(group.cached), "number"],
    ["Failed", (group) => number(group.failed), "number"],
    ["Time", (group) => time(group.compile_milliseconds), "number"],
    ["Each", (group) => (group.compiled + group.failed ? time(group.compile_milliseconds / (group.compiled + group.failed)) : "–"), "number"],
    ["CPU time", (group) => time(group.cpu_milliseconds), "number"],
    ["Most memory", (group) => (group.peak_memory ? bytes(group.peak_memory) : "–"), "number"],
    ["Size", (group) => bytes(group.size), "number"],
  ];
  const body = summary.groups.map((group) => {
    const cells = columns.map(([title, text, className]) => {
      const cell = element("td", { className: className ?? "" }, text(group));
      if (title === "Failed" && group.failed) cell.className += " bad";
      if (title === "Time") {
        const part = element("span", { className: "share" });
        part.style.width = `${(100 * group.compile_milliseconds) / most}%`;
        part.style.marginLeft = "auto";
        part.style.background = `var(--${CSS.escape(group.language)})`;
        cell.append(part);
      }
      return cell;
    });
    return element("tr", {}, ...cells);
  });
  byId("groups").append(element("thead", {}, headRow(columns)), element("tbody", {}, ...body));
}

const COLUMNS = [
  ["Kernel", "name", (job) => job.name, "name"],
  ["Target", "target", (job) => job.target],
  ["Language", "language", (job) => languageName(job.language)],
  ["Time", "time", (job) => time(job.time), "number"],
  ["CPU time", "cpu", (job) => time(job.cpu), "number"],
  ["Memory", "memory", (job) => bytes(job.memory), "number"],
  ["Size", "size", (job) => (job.group >= 0 ? "failed" : bytes(job.size)), "number"],
  ["Started", "start", (job) => time(job.start), "number"],
  ["Arguments", "arguments", (job) => job.arguments.trim(), "arguments"],
];
const PAGE_ROWS = 50;
const order = { column: "time", down: true };
let shown = PAGE_ROWS;

function showJobs() {
  const wanted = byId("filter").value.toLowerCase();
  const matching = jobs.filter((job) =>
    !wanted || `${job.name} ${job.arguments} ${job.target} ${languageName(job.language)}`.toLowerCase().includes(wanted));
  const { column, down } = order;
  const compare = (a, b) =>
    typeof a[column] === "number" ? a[column] - b[column] : a[column] < b[column] ? -1 : a[column] > b[column] ? 1 : 0;
  matching.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
  const heads = COLUMNS.map(([title, name, , className]) => {
    const button = element("button", { type: "button" }, title);
    button.dataset.sort = name;
    const head = element("th", { scope: "col", className: className === "number" ? className : "" }, button);
    if (name === column) head.ariaSort = down ? "descending" : "ascending";
    return head;
  });
  const rows = matching.slice(0, shown).map((job) => {
    const cells = COLUMNS.map(([, name, text, className]) => {
      const words = text(job);
      const cell = element("td", { className: className ?? "" }, words);
      if (name === "name" || name === "arguments") cell.title = words;
      if (name === "size" && job.group >= 0) cell.className += " bad";
      return cell;
    });
    return element("tr", {}, ...cells);
  });
  byId("jobs").replaceChildren(element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  byId("matches").textContent = `${number(rows.length)} of ${number(matching.length)} shown`;
  byId("more").hidden = rows.length === matching.length;
}

function watchJobs() {
  byId("jobs").addEventListener("click", (event) => {
    const column = event.target.closest("[data-sort]")?.dataset.sort;
    if (!column) return;
    // Numbers are looked at from the largest, words from the first.
    order.down = order.column === column ? !order.down : typeof jobs[0][column] === "number";
    order.column = column;
    showJobs();
    byId("jobs").querySelector(`[data-sort="${column}"]`).focus();
  });
  byId("filter").addEventListener("input", () => {
    shown = PAGE_ROWS;
    showJobs();
  });
  byId("more").addEventListener("click", () => {
    shown *= 4;
    showJobs();
  });
}

// Failures

const LISTED = 100;

function showFailures() {
  const failed = summary.failures.map(() => []);
  for (const job of jobs) if (job.group >= 0) failed[job.group].push(job);
  const groups = summary.failures.map((group, index) => {
    const title = group.reason ?? group.message;
    const open = element("details", { open: summary.failures.length <= 3 });
    open.append(element("summary", {}, element("b", {}, number(group.count)), ` × ${title}`));
    open.append(element("p", {}, `${group.message}. `, element("span", { className: "muted" }, "For example:")));
    if (group.example) {
      open.append(element("p", { className: "key" }, `${group.example.kernel_name} ${group.example.kernel_args}`));
    }
    if (group.output) open.append(element("pre", {}, group.output));
    const rest = failed[index];
    if (rest.length > 1) {
      const list = element("details", {});
      list.append(element("summary", {}, `All ${number(rest.length)} kernels`));
      // Filled when it is opened: there may be thousands.
      list.addEventListener("toggle", () => list.open && list.childElementCount === 1 && fill(list, rest, 0));
      open.append(list);
    }
    return open;
  });
  // The most frequent first.
  const sorted = groups.map((group, index) => [summary.failures[index].count, group]);
  sorted.sort((a, b) => b[0] - a[0]);
  byId("failure-groups").append(...sorted.map(([, group]) => group));
}

function fill(list, rest, from) {
  for (const job of rest.slice(from, from + LISTED)) {
    const key = element("span", { className: "key" }, `${job.name} ${job.arguments}`);
    if (job.output < 0) {
      list.append(element("div", {}, key));
      continue;
    }
    list.append(element("details", {}, element("summary", {}, key), element("pre", {}, detail.outputs[job.output])));
  }
  if (from + LISTED < rest.length) {
    const more = element("button", { type: "button" }, `Show more of ${number(rest.length)}`);
    more.addEventListener("click", () => {
      more.remove();
      fill(list, rest, from + LISTED);
    });
    list.append(more);
  }
}

// Keys that no compiler was asked for

function showUnbuildable(groups) {
  for (const group of groups) {
    const what = group.kind === "no-source" ? "source not found" : "can't be compiled";
    const list = element("details", {});
    const title = ` × ${group.reason}, for ${group.target} (${what})`;
    list.append(element("summary", {}, element("b", {}, number(group.count)), title));
    // Filled when it is opened: there may be thousands.
    list.addEventListener("toggle", () => list.open && list.childElementCount === 1 && list.append(
      ...group.keys.map((key) => element("div", { className: "key" }, `${key.kernel_name} ${key.kernel_args}`))));
    byId("unbuildable-groups").append(list);
  }
}

showHead();
showGroups();
if (summary.unbuildable?.length) {
  byId("unbuildable").hidden = false;
  showUnbuildable(summary.unbuildable);
}
if (summary.failures.length) {
  byId("failures").hidden = false;
  showFailures();
}
if (jobs.length) {
  byId("timeline").hidden = false;
  byId("kernels").hidden = false;
  byId("lanes").ariaLabel = `${plural(lanes.length, "worker")} over ${time(end - begin)}`;
  byId("memory").ariaLabel = `Memory of the kernels that run together, at most ${bytes(highest)}`;
  readColours();
  showLegend();
  watchTimeline();
  show(begin, end);
  watchJobs();
  showJobs();
}
document.documentElement.dataset.state ??= "ready";
