// How many GPUs trials held and waited for, what was forecast of each minute
// five minutes before, and the fan of the minutes ahead.
import { line, Plane } from "./canvas.js";
import { fillLegend, palette } from "./chart.js";
import { byId, setText } from "./dom.js";
import { offerDownloads } from "./download.js";
import { moment } from "./format.js";
import { linearScale } from "./scales.js";

const minute = 60000; // milliseconds
const fans = [[0.1, 0.99, 0.16], [0.2, 0.9, 0.2], [0.3, 0.7, 0.24]]; // from, to, how strong

/** A number of GPUs: a decimal where it has one. */
export const gpus = (value) => String(Math.round(value * 10) / 10);

/** The hours and minutes of a moment. */
const clock = (at) => moment(new Date(at).toISOString(), false).slice(0, 5);

export class DemandChart {
  #told = null;
  #rows = []; // {at, demand, running, waiting, capacity, fan}: past and ahead, by time
  #selected = -1;

  constructor(box) {
    this.plane = new Plane(box, 300);
    box.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("themechange", () => this.#told?.minutes.length > 0 && this.#legend());
    offerDownloads(box.closest(".card"), { of: "pool", name: "demand", tables: [["Demand", () => this.#table()], ["Forecast", () => this.#ahead()]] });
  }

  draw(told) {
    this.#told = told;
    const past = told.minutes.map((one) => ({ at: Date.parse(one.at), demand: one.running + one.waiting, ...only(one), fan: one.told ?? null }));
    const ahead = told.ahead.map((one) => ({ at: Date.parse(one.at), fan: one.demand }));
    const chosen = this.#rows[this.#selected]?.at;
    this.#rows = [...past, ...ahead];
    this.#selected = this.#rows.findIndex(({ at }) => at === chosen);
    const [first, last] = [this.#rows[0].at, this.#rows.at(-1).at + minute];
    const highest = Math.max(1, ...this.#rows.map((row) => Math.max(row.demand ?? 0, row.capacity ?? 0, row.fan?.at(-1) ?? 0)));
    const x = timeScale(first, last);
    const y = linearScale(told.unit, [0, highest * 1.05]);
    const points = this.#rows.map((row, place) => ({ row, place, x: x.at(row.at + minute / 2), y: y.at(row.demand ?? middle(told, row)) }));
    this.plane.draw({
      x, y, points,
      paint: (context, at, colours) => this.#paint(context, (time, value) => at(x.at(time), y.at(value)), colours),
      lines: ({ row }) => this.#lines(row),
      mark: (context, at, colours, point) => this.#mark(context, at, colours, point),
    }, this.#label(past, ahead));
    this.#legend();
    this.#say();
  }

  #legend() {
    const colours = palette();
    fillLegend(byId("demand-legend"), [
      { colour: colours.strong, text: "held and waited for", line: true },
      { colour: colours.good, text: "there", line: true },
      { colour: colours.accent, text: "forecast: 10 to 99 %, 20 to 90 %, 30 to 70 %, and the median" },
    ]);
  }

  #label(past, ahead) {
    const now = past.at(-1);
    const next = ahead.at(-1);
    const told = next ? ` In ${ahead.length} minutes it is at most ${gpus(next.fan[this.#place(0.9)])} with 90 %: an estimate.` : "";
    return now ? `Demand of the last minutes, now ${gpus(now.demand)} ${this.#told.unit}, of ${gpus(now.capacity)} connected.${told} The arrow keys go from minute to minute.` : "Nothing was recorded";
  }

  #place(quantile) {
    return this.#told.quantiles.indexOf(quantile);
  }

  #lines(row) {
    const lines = [clock(row.at)];
    if (row.demand !== undefined) lines.push(`${gpus(row.running)} held, ${gpus(row.waiting)} waited for`, `${gpus(row.capacity)} there`);
    if (row.fan) {
      const [low, half, high] = [0.1, 0.5, 0.9].map((quantile) => gpus(row.fan[this.#place(quantile)]));
      lines.push(`${row.demand === undefined ? "estimate" : "forecast 5 minutes before"}: ${half}, ${low} to ${high} with 80 %`);
    }
    return lines;
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 15, PageUp: -15 }[event.key];
    if (step === undefined || this.#rows.length === 0) return;
    event.preventDefault();
    const from = this.#selected < 0 ? this.#rows.length - this.#told.ahead.length - 1 - step : this.#selected;
    this.#selected = Math.min(this.#rows.length - 1, Math.max(0, from + step));
    this.#say();
  }

  #say() {
    const row = this.#rows[this.#selected];
    setText(byId("demand-selected"), row ? this.#lines(row).join("; ") : "");
  }

  #paint(context, at, colours) {
    this.#hatch(context, at, colours);
    for (const stretch of stretches(this.#rows.filter((row) => row.fan))) this.#fan(context, at, colours, stretch);
    const seen = this.#rows.filter((row) => row.demand !== undefined);
    for (const stretch of stretches(seen)) {
      steps(context, stretch, at, "capacity", colours.good, 1.25, [5, 3]);
      steps(context, stretch, at, "demand", colours.strong, 1.75, []);
    }
    const now = seen.at(-1);
    if (!now) return;
    const [x, top] = at(now.at + minute, Infinity);
    line(context, colours.edge, x, Number.isFinite(top) ? top : 0, x, at(now.at, 0)[1]);
  }

  /** Where nobody looked. */
  #hatch(context, at, colours) {
    for (const gap of this.#told.gaps) {
      const [left, bottom] = at(Date.parse(gap.begin), 0);
      const [right] = at(Date.parse(gap.end), 0);
      for (let x = left - bottom; x < right; x += 7) {
        context.save();
        context.beginPath();
        context.rect(left, 0, Math.max(1, right - left), bottom);
        context.clip();
        line(context, colours.edge, x, bottom, x + bottom, 0);
        context.restore();
      }
    }
  }

  #fan(context, at, colours, stretch) {
    context.fillStyle = colours.accent;
    for (const [from, to, strength] of fans) {
      const [low, high] = [this.#place(from), this.#place(to)];
      context.globalAlpha = strength;
      context.beginPath();
      for (const row of stretch) edge(context, at, row, row.fan[high]);
      for (const row of stretch.toReversed()) edge(context, at, row, row.fan[low], true);
      context.closePath();
      context.fill();
    }
    context.globalAlpha = 1;
    const half = this.#place(0.5);
    steps(context, stretch.map((row) => ({ at: row.at, half: row.fan[half] })), at, "half", colours.accent, 1, []);
  }

  #mark(context, at, colours, point) {
    const [x, y] = at(point.x, point.y);
    context.beginPath();
    context.arc(x, y, 4, 0, 2 * Math.PI);
    context.fillStyle = colours.strong;
    context.fill();
  }

  #table() {
    const { minutes, quantiles } = this.#told;
    return {
      columns: ["at", "running", "waiting", "capacity", ...quantiles.map((quantile) => `foretold_${quantile}`)],
      rows: minutes.map((one) => [one.at, one.running, one.waiting, one.capacity, ...quantiles.map((_, place) => one.told?.[place])]),
    };
  }

  #ahead() {
    const { ahead, quantiles } = this.#told;
    return { columns: ["at", ...quantiles.map((quantile) => `estimate_${quantile}`)], rows: ahead.map((one) => [one.at, ...one.demand]) };
  }
}

const only = ({ running, waiting, capacity }) => ({ running, waiting, capacity });
const middle = (told, row) => row.fan[told.quantiles.indexOf(0.5)];

/** Runs of minutes without one missing. */
function stretches(rows) {
  const list = [];
  for (const row of rows) {
    const last = list.at(-1);
    if (last && row.at - last.at(-1).at <= minute) last.push(row);
    else list.push([row]);
  }
  return list;
}

/** The two corners of a minute; backwards, where the outline comes back. */
function edge(context, at, row, value, backwards = false) {
  const corners = [at(row.at, value), at(row.at + minute, value)];
  for (const corner of backwards ? corners.reverse() : corners) context.lineTo(...corner);
}

function steps(context, stretch, at, name, colour, width, dash) {
  context.save();
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  for (const row of stretch) edge(context, at, row, row[name]);
  context.stroke();
  context.restore();
}

/** An axis of moments, with whole hours or parts of them. */
function timeScale(first, last) {
  const span = last - first;
  const spans = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * minute);
  return {
    name: "time of day",
    at: (time) => (time - first) / span,
    ticks: (most) => {
      const step = spans.find((one) => span / one <= Math.max(2, most)) ?? spans.at(-1);
      const offset = new Date(first).getTimezoneOffset() * minute;
      const list = [];
      for (let time = Math.ceil((first - offset) / step) * step + offset; time <= last; time += step) list.push({ at: (time - first) / span, text: clock(time) });
      return list;
    },
  };
}
