// What was sampled of one trial about once a second: a few metrics over the time that it
// trained, with a line where each epoch ended and the system configuration of the epochs.
import { get } from "./api.js";
import { Chart, common, hover, inside, named, scaledFont, stroke, timeAxis, valueAxis, write } from "./chart.js";
import { byId, make, setText, show } from "./dom.js";
import { offerDownloads } from "./download.js";
import { duration, measured, number } from "./format.js";

// What is drawn: [title, unit, the metrics that are added up, by what their sum is divided].
const charts = [
  ["Processor", "cores", ["tree.cpu_user", "tree.cpu_system"], 1],
  ["Memory", "GiB", ["tree.resident_bytes"], 2 ** 30],
  ["GPU", "% used", ["gpu.core_utilization"], 0.01],
  ["Power of the machine", "W", ["machine.watts"], 1],
];
const closest = 24; // CSS pixels between two lines of epochs

export class SamplesCard {
  #path;
  #known = "";
  #leases = [];
  #drawn = new Map(); // title -> chart

  /** path is that of the samples, of whose they are in a file's name. */
  constructor(path, of) {
    this.#path = path;
    offerDownloads(byId("samples-card"), { of, name: "samples", tables: [["Samples", () => this.#table()]] });
  }

  /** Asks for samples when the trial has new ones. */
  async draw(trial, reports) {
    const known = JSON.stringify(trial.samples ?? []);
    if (!trial.samples || known === this.#known) return;
    this.#known = known;
    this.#leases = (await get(this.#path)).leases;
    show(byId("samples-card"), true);
    const points = joined(this.#leases);
    const marks = epochsOf(points, reports);
    for (const [title, unit, metrics, scale] of charts) {
      const used = metrics.filter((name) => this.#leases.some((lease) => name in lease.metrics));
      if (used.length === 0) continue;
      if (!this.#drawn.has(title)) this.#drawn.set(title, new SampleChart(byId("samples"), title, unit));
      const values = points.map((point) => ({ ...point, y: used.reduce((sum, name) => sum + number(point.lease.metrics[name]?.[point.index] ?? NaN), 0) / scale }));
      this.#drawn.get(title).draw(values, marks, metrics[0] === "machine.watts" && this.#leases.some((lease) => lease.energy_method?.startsWith("estimate")));
    }
    const methods = [...new Set(this.#leases.map((lease) => lease.energy_method).filter(Boolean))];
    const total = points.at(-1)?.x ?? 0;
    setText(byId("samples-note"), `${points.length} samples of ${duration(total)}.${methods.length > 0 ? ` Power: ${methods.join("; ")}.` : ""}`);
  }

  /** Every metric, a row a sample. */
  #table() {
    const names = [...new Set(this.#leases.flatMap((lease) => Object.keys(lease.metrics)))].sort();
    return {
      columns: ["lease", "rung", "epoch", "seconds", "energy_method", ...names],
      rows: this.#leases.flatMap((lease) => lease.seconds.map((seconds, index) => [
        lease.lease_epoch, lease.rung, lease.epochs[index], seconds, lease.energy_method ?? "",
        ...names.map((name) => { const value = number(lease.metrics[name]?.[index] ?? NaN); return Number.isNaN(value) ? null : value; }),
      ])),
    };
  }
}

/** The samples of all leases behind each other: {x, lease, index}, x where one ends. */
function joined(leases) {
  let x = 0;
  return leases.flatMap((lease) => lease.seconds.map((seconds, index) => ({ x: (x += number(seconds)), lease, index })));
}

/** Where each epoch ended, and with which system configuration it ran. */
function epochsOf(points, reports) {
  const told = new Map(reports.map((report) => [`${report.rung} ${report.epoch}`, report.system ?? {}]));
  return points.flatMap(({ x, lease, index }, place) => {
    const epoch = lease.epochs[index];
    const next = points[place + 1];
    if (next && next.lease === lease && next.lease.epochs[next.index] === epoch) return [];
    const system = Object.entries(told.get(`${lease.rung} ${epoch}`) ?? {}).map(([name, value]) => `${name} ${value}`).join(", ");
    return [{ x, epoch, rung: lease.rung, system }];
  });
}

class SampleChart {
  #points = [];
  #marks = [];

  constructor(box, title, unit) {
    this.unit = unit;
    this.tag = make("span", { class: "tag", hidden: true }, "estimate");
    const area = make("div", { class: "chart" });
    box.append(make("div", { class: "curve" }, make("h3", {}, title, " ", this.tag), area));
    this.title = title;
    this.chart = new Chart(area, 150, (colours) => this.#build(colours));
  }

  draw(points, marks, estimate) {
    [this.#points, this.#marks] = [points, marks];
    show(this.tag, estimate);
    const values = points.map((point) => point.y).filter(Number.isFinite);
    if (values.length === 0) return;
    this.chart.draw(`${this.title} in ${points.length} samples: ${measured(Math.min(...values))} to ${measured(Math.max(...values))} ${this.unit}, over ${marks.length} epochs`);
  }

  #build(colours) {
    return {
      shape: this.unit,
      data: [this.#points.map((point) => point.x), this.#points.map((point) => (Number.isFinite(point.y) ? point.y : null))],
      options: {
        ...common,
        scales: { x: { time: false, range: (plot, low, high) => [0, high || 1] }, y: { range: (plot, low, high) => [0, (high || 1) * 1.1] } },
        axes: [timeAxis(colours), { ...valueAxis(colours), ...named(colours, this.unit) }],
        series: [{}, { stroke: colours.accent, width: 1.5, points: { show: false } }],
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        hooks: { drawAxes: [(plot) => this.#epochs(plot, colours)] },
        plugins: [hover({ points: () => this.#points.filter((point) => Number.isFinite(point.y)), lines: (point) => this.#lines(point) })],
      },
    };
  }

  #lines(point) {
    const mark = this.#marks.find(({ x }) => x >= point.x);
    return [`${measured(point.y)} ${this.unit} after ${duration(point.x)}`, `rung ${mark.rung}, epoch ${mark.epoch}`, ...(mark.system ? [mark.system] : [])];
  }

  /** A line where each epoch ended, as far as there is room, with its number. */
  #epochs(plot, colours) {
    inside(plot, (context, scale) => {
      const { top, height } = plot.bbox;
      stroke(context, colours.edge, scale, [3, 4]);
      context.font = scaledFont(colours, scale);
      context.textAlign = "right";
      let last = -Infinity;
      for (const { x, epoch } of this.#marks) {
        const at = plot.valToPos(x, "x", true);
        if (at - last < closest * scale) continue;
        last = at;
        context.beginPath();
        context.moveTo(at, top);
        context.lineTo(at, top + height);
        context.stroke();
        context.fillStyle = colours.muted;
        write(context, String(epoch), at - 3 * scale, top + 10 * scale, colours, scale);
      }
    });
  }
}
