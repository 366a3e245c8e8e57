// Learning curves of one trial: a metric over the epochs, in one colour for
// each rung, with lines where the budget of a rung was reached.
import { Chart, axis, common, fairRange, hover, inside, leftOut, named, remark, rungColour, scaledFont, stroke, valueAxis, write } from "./chart.js";
import { make } from "./dom.js";
import { measured, number, share } from "./format.js";

export class CurveChart {
  #points = [];

  /** Appends itself to the box. */
  constructor(box, metric, rungs, height) {
    this.metric = metric;
    this.rungs = rungs;
    const area = make("div", { class: "chart" });
    this.note = make("p", { class: "chart-note", hidden: true });
    box.append(make("div", { class: "curve" }, make("h3", {}, metric), area, this.note));
    this.chart = new Chart(area, height, (colours) => this.#build(colours));
  }

  draw(reports, results) {
    this.results = results;
    this.#points = reports
      .filter((report) => this.metric in report.metrics)
      .map((report) => ({ x: report.epoch, y: number(report.metrics[this.metric]), rung: report.rung, seconds: report.seconds }));
    const values = this.#points.map((point) => point.y);
    this.fair = fairRange(values);
    const last = values.at(-1);
    this.chart.draw(`${this.metric} over ${this.#points.length} epochs, from ${measured(values[0])} to ${measured(last)}`);
    remark(this.note, leftOut(this.fair.outside, values.filter((value) => !Number.isFinite(value)).length));
  }

  #build(colours) {
    const epochs = [...new Set(this.#points.map((point) => point.x))].sort((a, b) => a - b);
    const place = new Map(epochs.map((epoch, index) => [epoch, index]));
    const columns = this.rungs.map(() => epochs.map(() => null));
    const set = (rung, point) => (columns[rung][place.get(point.x)] = Number.isFinite(point.y) ? point.y : null);
    this.#points.forEach((point, index) => {
      const before = this.#points[index - 1];
      // A rung that continues the one below starts where that one ended.
      if (before && before.rung !== point.rung && before.x < point.x) set(point.rung, before);
      set(point.rung, point);
    });
    const dotted = this.#points.length <= 80;
    return { shape: `curve ${dotted} ${this.rungs.length}`, options: this.#options(colours, dotted), data: [epochs, ...columns] };
  }

  #options(colours, dotted) {
    const count = this.rungs.length;
    return {
      ...common,
      scales: { x: { time: false, range: (plot, low, high) => this.#epochRange(low, high) }, y: { range: () => this.fair.range } },
      axes: [axis(colours, { size: 28, space: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000], ...named(colours, "epoch") }), { ...valueAxis(colours), ...named(colours, this.metric) }],
      series: [
        {},
        ...this.rungs.map((rung) => {
          const colour = rungColour(colours, rung.index, count);
          return { stroke: colour, width: 2, points: { show: dotted, size: 5, width: 0, fill: colour, stroke: colour } };
        }),
      ],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { drawAxes: [(plot) => this.#boundaries(plot, colours)], draw: [(plot) => this.#names(plot, colours)] },
      plugins: [
        hover({
          points: () => this.#points.filter((point) => Number.isFinite(point.y)),
          lines: (point) => [`Epoch ${point.x}: ${measured(point.y)}`, `rung ${point.rung}, ${share(this.rungs[point.rung].budget.data_fraction)} of the data`],
        }),
      ],
    };
  }

  #epochRange(low, high) {
    if (low === null || low === undefined) return [0, 1];
    const margin = low === high ? 0.9 : Math.max(0.25, (high - low) * 0.02);
    return [low - margin, high + margin];
  }

  /** The rungs measured at each epoch. */
  #measured() {
    const byEpoch = new Map();
    for (const { rung, budget, epoch = budget.epochs } of this.results) byEpoch.set(epoch, [...(byEpoch.get(epoch) ?? []), rung]);
    return byEpoch;
  }

  /** A line where each measured rung's budget was reached. */
  #boundaries(plot, colours) {
    inside(plot, (context, scale) => {
      const { top, height } = plot.bbox;
      stroke(context, colours.muted, scale, [3, 4]);
      for (const epoch of this.#measured().keys()) {
        const x = plot.valToPos(epoch, "x", true);
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x, top + height);
        context.stroke();
      }
    });
  }

  /** The rungs' names at those lines, on the side where the curve is not. */
  #names(plot, colours) {
    const finite = this.#points.filter((point) => Number.isFinite(point.y));
    const rises = finite.length > 0 && finite.at(-1).y > finite[0].y;
    inside(plot, (context, scale) => {
      const { left, top, width, height } = plot.bbox;
      context.fillStyle = colours.muted;
      context.font = scaledFont(colours, scale);
      let taken = Infinity; // names go from the right: the dearest rung's is never left out
      for (const [epoch, rungs] of [...this.#measured()].sort(([a], [b]) => b - a)) {
        const x = plot.valToPos(epoch, "x", true);
        if (taken - x < 46 * scale) continue;
        taken = x;
        const right = x > left + width / 2;
        context.textAlign = right ? "right" : "left";
        write(context, `rung ${rungs.join(", ")}`, x + (right ? -5 : 5) * scale, rises ? top + height - 7 * scale : top + 12 * scale, colours, scale);
      }
    });
  }
}
