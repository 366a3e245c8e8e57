// Best so far: every measurement as a dot, and the leader's value as a line.
import { Chart, common, fillLegend, goodRange, hover, leftOut, markValue, palette, remark, rungColour, timeAxis, uPlot, valueAxis } from "./chart.js";
import { byId } from "./dom.js";
import { budget, duration, measured } from "./format.js";
import { better, label } from "./trials.js";

/** open(number) shows a trial. */
export class BestChart {
  constructor(study, history, open) {
    this.study = study;
    this.history = history;
    this.open = open;
    this.objective = study.definition.objective[0];
    this.chart = new Chart(byId("best-chart"), 232, (colours) => this.#build(colours));
  }

  /** Draws up to the present: seconds since the study was created. */
  draw(now) {
    this.now = now;
    const { measurements } = this.history;
    this.fair = goodRange(measurements.map((one) => one.value), this.objective.direction, this.objective.target);
    const leader = this.history.leaders().at(-1);
    this.chart.draw(
      leader === undefined || leader === null
        ? "No measurement yet"
        : `Best ${label(this.objective)} so far ${measured(leader)}, from ${measurements.length} measurements. The leaderboard has the values.`,
    );
    const colours = palette();
    const last = this.study.rungs.length - 1;
    fillLegend(byId("best-legend"), [
      { colour: colours.accent, text: "leader", line: true },
      ...this.study.rungs.filter((rung) => last < 5 || rung.index === 0 || rung.index === last).map((rung) => ({ colour: rungColour(colours, rung.index, last + 1), text: `rung ${rung.index}` })),
    ]);
    const notFinite = measurements.filter((one) => !Number.isFinite(one.value)).length;
    const stepsBack = this.history.leaders().some((value, at, all) => at > 0 && better(all[at - 1], value, this.objective.direction));
    const notes = [leftOut(this.fair.outside, notFinite), stepsBack ? "The line steps back where a higher rung was measured first: its values count more." : ""];
    remark(byId("best-note"), measurements.length === 0 ? "No trial has been measured yet." : notes.filter(Boolean).join(" "));
  }

  #build(colours) {
    const { measurements } = this.history;
    const rungs = this.study.rungs.length;
    const times = measurements.map((one) => one.seconds);
    const leaders = this.history.leaders();
    const dots = this.study.rungs.map((rung) => measurements.map((one) => (one.rung === rung.index && Number.isFinite(one.value) ? one.value : null)));
    const end = Math.max(this.now, times.at(-1) ?? 0, 1);
    times.push(end);
    leaders.push(leaders.at(-1) ?? null);
    dots.forEach((column) => column.push(null));
    return { shape: "best", options: this.#options(colours, rungs), data: [times, leaders, ...dots] };
  }

  #options(colours, rungs) {
    const points = (colour) => ({ show: true, size: 6, width: 0, fill: colour, stroke: colour });
    return {
      ...common,
      scales: { x: { time: false, range: (plot, low, high) => [0, (high || 1) * 1.01] }, y: { range: () => this.fair.range } },
      axes: [timeAxis(colours), valueAxis(colours)],
      series: [
        {},
        { stroke: colours.accent, width: 2, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) },
        ...Array.from({ length: rungs }, (_, rung) => ({ paths: () => null, points: points(rungColour(colours, rung, rungs)) })),
      ],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => this.objective.target !== undefined && markValue(plot, this.objective.target, "target", colours)] },
      plugins: [
        hover({
          points: () => this.history.measurements.filter((one) => Number.isFinite(one.value)).map((one) => ({ ...one, x: one.seconds, y: one.value })),
          lines: (one) => [`Trial ${one.number}: ${measured(one.value)}`, budget(this.study.rungs[one.rung].budget), `after ${duration(one.seconds)}`],
          open: (one) => this.open(one.number),
        }),
      ],
    };
  }
}
