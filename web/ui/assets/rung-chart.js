// Values by rung: where each trial stood when it was measured, and which went
// up. Only values of one rung compare: they were reached with the same budget.
import { Chart, axis, common, fairRange, fillLegend, hover, inside, leftOut, named, palette, remark, stroke, valueAxis } from "./chart.js";
import { offerDownloads } from "./download.js";
import { byId } from "./dom.js";
import { budget, measured, number } from "./format.js";
import { label } from "./trials.js";

export class RungChart {
  #points = [];

  /** leader() is the best trial of the study so far, as its view has it; open(number) shows a trial. */
  constructor(study, measurements, leader, open) {
    this.study = study;
    this.measurements = measurements;
    this.leader = leader;
    this.open = open;
    this.chart = new Chart(byId("rung-chart"), 248, (colours) => this.#build(colours));
    offerDownloads(byId("rung-chart").closest(".card"), { of: study.name, name: "values-by-rung", tables: [["Values", () => this.#table()]] });
  }

  draw() {
    const leader = this.leader();
    this.#points = this.measurements.results
      .map((one) => ({
        // Spread within the rung by the golden ratio: even, and always the same.
        x: one.rung + ((one.number * 0.618034) % 1) * 0.56 - 0.28,
        y: number(one.values[0]), rung: one.rung, number: one.number,
        up: one.promoted === true, leads: one.number === leader?.number && one.rung === leader.rung,
      }))
      .sort((a, b) => a.x - b.x);
    if (this.#points.length === 0) {
      this.chart.blank("No trial has been measured yet. Each will be a dot above its rung, with a line to the next where it went up.");
      fillLegend(byId("rung-legend"), []);
      remark(byId("rung-note"), "");
      return;
    }
    this.fair = fairRange(this.#points.map((point) => point.y));
    const summary = this.measurements.rungs.map((rung, index) => `rung ${index}: ${rung.measured} measured, ${rung.promoted} went up`);
    this.chart.draw(summary.join("; "));
    const colours = palette();
    fillLegend(byId("rung-legend"), [
      { colour: colours.accent, text: "went up" },
      { colour: colours.muted, text: "not so far", hollow: true },
      { colour: colours.strong, text: "leader" },
    ]);
    const notFinite = this.#points.filter((point) => !Number.isFinite(point.y)).length;
    remark(byId("rung-note"), [leftOut(this.fair.outside, notFinite), this.measurements.choice()].filter(Boolean).join(" "));
  }

  #table() {
    const objective = label(this.study.definition.objective[0]);
    return {
      columns: ["trial", "rung", "epochs", "data_fraction", objective, "went_up"],
      rows: [...this.#points].sort((a, b) => a.number - b.number || a.rung - b.rung).map((point) => {
        const { epochs, data_fraction: fraction } = this.study.rungs[point.rung].budget;
        return [point.number, point.rung, epochs, fraction, point.y, point.up];
      }),
    };
  }

  #build(colours) {
    const column = (wanted) => this.#points.map((point) => (Number.isFinite(point.y) && wanted(point) ? point.y : null));
    const data = [
      this.#points.map((point) => point.x),
      column((point) => !point.up && !point.leads),
      column((point) => point.up),
      column((point) => point.leads),
    ];
    return { shape: "rungs", options: this.#options(colours), data };
  }

  #options(colours) {
    const { rungs } = this.study;
    const dots = (fill, edge, size) => ({ paths: () => null, points: { show: true, size, width: 1.25, fill, stroke: edge } });
    return {
      ...common,
      scales: { x: { time: false, range: () => [-0.5, rungs.length - 0.5] }, y: { range: () => this.fair.range } },
      axes: [
        axis(colours, {
          size: 40, ...named(colours, "rung: what its trials had spent"), splits: () => rungs.map((rung) => rung.index), grid: { show: false },
          values: (plot, splits) => splits.map((rung) => budget(rungs[rung].budget, true).replace(" · ", "\n")),
        }),
        { ...valueAxis(colours), ...named(colours, label(this.study.definition.objective[0])) },
      ],
      series: [{}, dots(colours.surface, colours.muted, 6), dots(colours.accent, colours.accent, 6), dots(colours.strong, colours.surface, 10)],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { drawAxes: [(plot) => this.#connect(plot, colours)] },
      plugins: [
        hover({
          points: () => this.#points.filter((point) => Number.isFinite(point.y)),
          lines: (point) => [`Trial ${point.number}: ${measured(point.y)}`, `rung ${point.rung}${point.up ? ", went up" : ""}`],
          open: (point) => this.open(point.number),
        }),
      ],
    };
  }

  /** Lines between the results of each trial that went up. */
  #connect(plot, colours) {
    const byTrial = grouped(this.#points);
    inside(plot, (context, scale) => {
      stroke(context, colours.accent, scale);
      context.globalAlpha = 0.3;
      for (const points of byTrial.values()) {
        const path = points.filter((point) => Number.isFinite(point.y)).sort((a, b) => a.rung - b.rung);
        if (path.length < 2) continue;
        context.beginPath();
        for (const point of path) context.lineTo(plot.valToPos(point.x, "x", true), plot.valToPos(point.y, "y", true));
        context.stroke();
      }
    });
  }
}

function grouped(points) {
  const groups = new Map();
  for (const point of points) groups.set(point.number, [...(groups.get(point.number) ?? []), point]);
  return groups;
}
