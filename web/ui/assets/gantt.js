// Which trial ran where and when: a row for each trial that a worker has at a
// time, a bar for each lease, and a mark for how it ended.
import { get, studyPath } from "./api.js";
import { Canvas, fitted, line } from "./canvas.js";
import { fillLegend, palette, remark, rungColour, Tip } from "./chart.js";
import { byId, make, setText, show } from "./dom.js";
import { offerDownloads } from "./download.js";
import { count, duration, several, share } from "./format.js";
import { pointing } from "./pointing.js";
import { timeScale } from "./scales.js";

const mostRows = 120;
const fine = 1000; // steps of a slider
const everything = 1000000; // events
const troubled = ["failed", "lost"];

export class Gantt {
  #spans = [];
  #rows = []; // {worker, row, first}
  #answer = null;
  #names = new Map();
  #events = 0;
  range = [0, 1]; // seconds that are drawn
  each = 20; // CSS pixels of a row

  constructor(study, reference, link) {
    this.study = study;
    this.reference = reference;
    this.link = link;
    this.canvas = new Canvas(byId("gantt-chart"), 120, (context, size) => this.#paint(context, size));
    this.tip = new Tip(byId("gantt-chart"));
    pointing(this.canvas.element, {
      point: (event) => this.#point(event),
      leave: () => this.tip.hide(),
      open: (event) => {
        const span = this.#under(event);
        if (span) location.assign(this.link(span.number));
      },
    });
    for (const id of ["gantt-from", "gantt-to"]) byId(id).addEventListener("input", () => this.#window(id));
    byId("gantt-all").addEventListener("click", () => {
      this.#events = everything;
      this.fetch().catch((error) => remark(byId("gantt-note"), error.message));
    });
    offerDownloads(byId("gantt"), { of: study.name, name: "timeline", tables: [["Leases", () => this.#table()]] });
  }

  /** Fetches the timeline as it is now, and draws it; names is of the workers that are connected, by id. */
  async fetch(names = this.#names) {
    this.#names = names;
    const answer = await get(studyPath(this.reference, `/timeline${this.#events > 0 ? `?events=${this.#events}` : ""}`));
    this.#answer = answer;
    this.#spans = answer.numbers.map((number, index) => ({
      number, rung: answer.rungs[index], worker: answer.workplaces[index], begin: answer.begins[index], end: answer.ends[index], outcome: answer.outcomes[index], reason: answer.reasons[index],
    }));
    this.#arrange();
    this.#draw();
  }

  #name(place) {
    const { id, host } = this.#answer.workers[place];
    return this.#names.get(id) ?? host ?? id;
  }

  /** Gives every span a row: trials that a worker has at once stand below each other. */
  #arrange() {
    const rows = this.#answer.workers.map(() => []);
    for (const span of this.#spans) {
      const lanes = rows[span.worker];
      let lane = lanes.findIndex((end) => end <= span.begin + 1e-9);
      if (lane < 0) lane = lanes.push(0) - 1;
      lanes[lane] = span.end;
      span.lane = lane;
    }
    this.#rows = [];
    const firsts = rows.map((lanes, worker) => {
      const first = this.#rows.length;
      lanes.forEach((_, lane) => this.#rows.push({ worker, lane }));
      return first;
    });
    for (const span of this.#spans) span.row = firsts[span.worker] + span.lane;
  }

  get #range() {
    const [from, to] = ["gantt-from", "gantt-to"].map((id) => Number(byId(id).value) / fine);
    const [first, last] = [this.#answer.cut, Math.max(this.#answer.seconds, this.#answer.cut + 1)];
    return [first + from * (last - first), first + to * (last - first)];
  }

  #window(moved) {
    const [from, to] = [byId("gantt-from"), byId("gantt-to")];
    if (Number(to.value) - Number(from.value) < 10) {
      if (moved === "gantt-from") from.value = String(Math.max(0, Number(to.value) - 10));
      else to.value = String(Math.min(fine, Number(from.value) + 10));
    }
    this.#draw();
  }

  #draw() {
    const { workers, cut } = this.#answer;
    byId("gantt").classList.toggle("awaiting", this.#spans.length === 0);
    const shown = Math.min(this.#rows.length, mostRows);
    const each = shown > 60 ? 9 : shown > 24 ? 13 : 20;
    this.each = each;
    this.range = this.#range;
    this.canvas.height = Math.max(90, shown * each + 52);
    const lost = this.#spans.filter((span) => span.outcome === "lost").length;
    const failed = this.#spans.filter((span) => span.outcome === "failed").length;
    this.canvas.draw(`${several(this.#spans.length, "lease")} on ${several(workers.length, "worker")}; ${failed} failed, ${lost} lost. The table below has the workers.`);
    for (const [id, at] of [["gantt-from", 0], ["gantt-to", 1]]) byId(id).setAttribute("aria-valuetext", duration(this.range[at]));
    setText(byId("gantt-words"), `${duration(this.range[0])} to ${duration(this.range[1])} after the study was created`);
    const colours = palette();
    fillLegend(byId("gantt-legend"), [
      ...this.study.rungs.filter((rung) => this.#spans.some((span) => span.rung === rung.index)).map((rung) => ({ colour: rungColour(colours, rung.index, this.study.rungs.length), text: `rung ${rung.index}`, line: true })),
    ]);
    setText(byId("gantt-marks"), "At the end of a bar: ‖ paused, ✓ completed, ✕ lost, ! failed, ↺ given back, ↓ stopped early.");
    show(byId("gantt-all"), cut > 0);
    remark(byId("gantt-note"), [
      this.#rows.length > mostRows ? `${mostRows} of ${count(this.#rows.length)} rows are drawn: those of the first ${count(this.#rows[mostRows - 1].worker + 1)} of ${count(workers.length)} workers. The data has all.` : "",
      cut > 0 ? `From the study's newest events, since ${duration(cut)} after it was created.` : "",
    ].filter(Boolean).join(" "));
    this.#list();
  }

  /** What each worker did, as a table. */
  #list() {
    const { workers, seconds, cut } = this.#answer;
    const sums = workers.map((_, place) => ({ place, leases: 0, busy: 0, lost: 0, failed: 0 }));
    for (const span of this.#spans) {
      const sum = sums[span.worker];
      sum.leases++;
      sum.busy += span.end - span.begin;
      if (troubled.includes(span.outcome)) sum[span.outcome]++;
    }
    const top = sums.sort((a, b) => b.busy - a.busy).slice(0, 50);
    show(byId("gantt-frame"), top.length > 0);
    const number = (text) => make("td", { class: "number" }, text);
    byId("gantt-list").tBodies[0].replaceChildren(...top.map(({ place, leases, busy, lost, failed }) => make("tr", {},
      make("th", { scope: "row", title: workers[place].id }, this.#name(place)),
      number(count(leases)), number(duration(busy)), number((busy / Math.max(1e-9, seconds - cut)).toFixed(2)), number(count(failed)), number(count(lost)))));
  }

  #area({ width, height }) {
    return { left: width > 560 ? 118 : 64, top: 6, right: width - 14, bottom: height - 40 };
  }

  #x(seconds, size) {
    const { left, right } = this.#area(size);
    const [from, to] = this.range;
    return left + ((seconds - from) / (to - from)) * (right - left);
  }

  #paint(context, size) {
    if (!this.#answer) return;
    const { colours } = size;
    const area = this.#area(size);
    const { left, top, right, bottom } = area;
    const shown = Math.min(this.#rows.length, mostRows);
    const scale = timeScale("", this.range);
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (const { at, text } of scale.ticks(Math.floor((right - left) / 90))) {
      const x = left + at * (right - left);
      line(context, colours.line, x, top, x, bottom);
      context.fillStyle = colours.muted;
      context.fillText(text, Math.min(x, right - context.measureText(text).width / 2 + 12), bottom + 16);
    }
    context.fillText("time since the study was created", (left + right) / 2, bottom + 34);
    context.textBaseline = "middle";
    for (let row = 0; row < shown; row++) this.#label(context, size, area, row);
    context.save();
    context.beginPath();
    context.rect(left, 0, right - left + 12, size.height);
    context.clip();
    for (const span of this.#spans) if (span.row < shown && span.end >= this.range[0] && span.begin <= this.range[1]) this.#bar(context, size, area, span);
    context.restore();
  }

  #label(context, { colours }, { left, top, right }, row) {
    const { worker, lane } = this.#rows[row];
    const y = top + row * this.each;
    if (lane > 0) return;
    line(context, colours.line, left, y, right, y);
    context.textAlign = "right";
    context.fillStyle = colours.text;
    context.fillText(fitted(context, this.#name(worker), left - 10), left - 6, y + Math.max(this.each / 2, 5));
  }

  #bar(context, size, { top }, span) {
    const { colours } = size;
    const [from, to] = [this.#x(span.begin, size), this.#x(span.end, size)];
    const [y, height] = [top + span.row * this.each + 2, this.each - 4];
    const width = Math.max(1, to - from - 0.5);
    context.fillStyle = rungColour(colours, span.rung, this.study.rungs.length);
    context.globalAlpha = span.outcome === "running" ? 0.6 : 1;
    context.fillRect(from, y, width, height);
    context.globalAlpha = 1;
    if (troubled.includes(span.outcome)) {
      context.strokeStyle = colours.bad;
      context.lineWidth = 1.5;
      context.strokeRect(from + 0.75, y + 0.75, Math.max(1, width - 1.5), height - 1.5);
    }
    const mark = { paused: "‖", completed: "✓", lost: "✕", failed: "!", returned: "↺", pruned: "↓" }[span.outcome];
    if (!mark || (width < 12 && !troubled.includes(span.outcome)) || this.each < 12) return;
    context.textAlign = "right";
    context.lineWidth = 3;
    context.strokeStyle = colours.surface;
    context.strokeText(mark, to - 2, y + height / 2);
    context.fillStyle = troubled.includes(span.outcome) ? colours.bad : colours.text;
    context.fillText(mark, to - 2, y + height / 2);
  }

  #under(event) {
    if (!this.#answer) return null;
    const [x, y] = this.canvas.place(event);
    const { top, left } = this.#area(this.canvas);
    const row = Math.floor((y - top) / this.each);
    if (x < left) return null;
    return this.#spans.find((span) => span.row === row && x >= this.#x(span.begin, this.canvas) - 1 && x <= Math.max(this.#x(span.end, this.canvas), this.#x(span.begin, this.canvas) + 2)) ?? null;
  }

  #point(event) {
    const span = this.#under(event);
    this.canvas.element.style.cursor = span ? "pointer" : "default";
    if (!span) {
      this.tip.hide();
      return null;
    }
    const { data_fraction: fraction } = this.study.rungs[span.rung].budget;
    this.tip.show([
      `Trial ${span.number} on ${this.#name(span.worker)}: ${span.outcome}`,
      `rung ${span.rung}, ${share(fraction)} of the data, ${duration(span.end - span.begin)}`,
      `from ${duration(span.begin)} to ${duration(span.end)}`, ...(span.reason ? [fittedText(span.reason)] : []),
    ], ...this.canvas.place(event), false);
    return `${span.number} ${span.begin}`;
  }

  #table() {
    return {
      columns: ["trial", "rung", "worker", "worker_id", "begin_seconds", "end_seconds", "outcome", "reason"],
      rows: this.#spans.map((span) => [span.number, span.rung, this.#name(span.worker), this.#answer.workers[span.worker].id, span.begin, span.end, span.outcome, span.reason]),
    };
  }
}

const fittedText = (text) => (text.length > 90 ? `${text.slice(0, 89)}…` : text);
