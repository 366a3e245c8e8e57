// Best so far: measurements as dots, and the leader's value as a line.
import { Chart, common, fillLegend, goodRange, hover, leftOut, markValue, named, palette, remark, rungColour, timeAxis, uPlot, valueAxis } from "./chart.js";
import { offerDownloads } from "./download.js";
import { byId } from "./dom.js";
import { budget, count, duration, measured, number } from "./format.js";
import { better, label } from "./trials.js";

/** open(number) shows a trial. */
export class BestChart {
  #points = []; // {x, y, rung, number}, finite ones, the earliest first

  constructor(study, measurements, open) {
    this.study = study;
    this.measurements = measurements;
    this.open = open;
    this.objective = study.definition.objective[0];
    this.chart = new Chart(byId("best-chart"), 248, (colours) => this.#build(colours));
    offerDownloads(byId("best-chart").closest(".card"), { of: study.name, name: "best-so-far", tables: [["Measurements", () => this.#table()]] });
  }

  /** Draws up to the present: seconds since the study was created. */
  draw(now) {
    this.now = now;
    const { results, leaders, total, untimed } = this.measurements;
    const timed = results.filter((one) => one.seconds !== undefined).map((one) => ({ x: one.seconds, y: number(one.values[0]), rung: one.rung, number: one.number }));
    this.#points = timed.filter((one) => Number.isFinite(one.y));
    this.fair = goodRange(timed.map((one) => one.y), this.objective.direction, this.objective.target);
    const leader = leaders.at(-1);
    if (total === 0) {
      this.chart.blank("No trial has been measured yet. Each measurement will be a dot here, and the best so far a line.");
      fillLegend(byId("best-legend"), []);
      remark(byId("best-note"), "");
      return;
    }
    this.chart.draw(`Best ${label(this.objective)} so far ${leader === undefined ? "unknown" : measured(leader.value)}, from ${count(total)} measurements. The leaderboard has the values.`);
    const colours = palette();
    const last = this.study.rungs.length - 1;
    fillLegend(byId("best-legend"), [
      { colour: colours.accent, text: "leader", line: true },
      ...this.study.rungs.filter((rung) => last < 5 || rung.index === 0 || rung.index === last).map((rung) => ({ colour: rungColour(colours, rung.index, last + 1), text: `rung ${rung.index}` })),
    ]);
    const stepsBack = leaders.some((one, at, all) => at > 0 && better(number(all[at - 1].value), number(one.value), this.objective.direction));
    const notes = [
      this.study.definition.objective.length > 1 ? `The line is the best compromise's ${label(this.objective)}: another trial may have a better one.` : "",
      leftOut(this.fair.outside, timed.length - this.#points.length),
      stepsBack ? "The line steps back where a higher rung was measured first: its values count more." : "",
      this.measurements.choice(),
      untimed > 0 ? `${count(untimed)} results of an earlier version have no time and are not drawn.` : "",
    ];
    remark(byId("best-note"), notes.filter(Boolean).join(" "));
  }

  #table() {
    const { results, leaders } = this.measurements;
    const led = new Set(leaders.map((one) => `${one.number} ${one.rung}`));
    return {
      columns: ["seconds", "trial", "rung", label(this.objective), "violation", "took_the_lead"],
      rows: results.map((one) => [one.seconds, one.number, one.rung, number(one.values[0]), number(one.violation ?? 0), led.has(`${one.number} ${one.rung}`)]),
    };
  }

  #build(colours) {
    const rungs = this.study.rungs.length;
    // Dots and steps share the times; the line goes on from step to step.
    const moments = [...this.#points, ...this.measurements.leaders.map((one) => ({ x: one.seconds, leads: number(one.value) }))].sort((a, b) => a.x - b.x);
    let leads = null;
    const times = moments.map((one) => one.x);
    const leaders = moments.map((one) => (leads = one.leads ?? leads));
    const dots = this.study.rungs.map((rung) => moments.map((one) => (one.rung === rung.index ? one.y : null)));
    times.push(Math.max(this.now, times.at(-1) ?? 0, 1));
    leaders.push(leads);
    dots.forEach((column) => column.push(null));
    return { shape: "best", options: this.#options(colours, rungs), data: [times, leaders, ...dots] };
  }

  #options(colours, rungs) {
    const points = (colour) => ({ show: true, size: 6, width: 0, fill: colour, stroke: colour });
    return {
      ...common,
      scales: { x: { time: false, range: (plot, low, high) => [0, (high || 1) * 1.01] }, y: { range: () => this.fair.range } },
      axes: [{ ...timeAxis(colours), ...named(colours, "time since the study was created") }, { ...valueAxis(colours), ...named(colours, label(this.objective)) }],
      series: [
        {},
        { stroke: colours.accent, width: 2, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) },
        ...Array.from({ length: rungs }, (_, rung) => ({ paths: () => null, points: points(rungColour(colours, rung, rungs)) })),
      ],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => this.objective.target !== undefined && markValue(plot, this.objective.target, "target", colours)] },
      plugins: [
        hover({
          points: () => this.#points,
          lines: (one) => [`Trial ${one.number}: ${measured(one.y)}`, budget(this.study.rungs[one.rung].budget), `after ${duration(one.x)}`],
          open: (one) => this.open(one.number),
        }),
      ],
    };
  }
}
