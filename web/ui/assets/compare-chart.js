// Learning curves of several trials over each other. Each has a colour, a dash
// pattern and its number at its end.
import { Chart, axis, common, fairRange, fillLegend, hover, inside, leftOut, named, palette, remark, scaledFont, timeAxis, valueAxis, write } from "./chart.js";
import { offerDownloads } from "./download.js";
import { byId } from "./dom.js";
import { count, duration, measured, number, share } from "./format.js";

const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 4], [12, 5]];

/** The colours of the curves, as the theme has them now. */
export function curveColours() {
  const style = getComputedStyle(document.documentElement);
  return dashes.map((_, index) => style.getPropertyValue(`--curve-${index + 1}`).trim());
}

export class CompareChart {
  #curves = []; // {number, points: [{x, y, epoch, rung, fraction}]}

  constructor(study) {
    this.study = study;
    this.chart = new Chart(byId("curves"), 320, (colours) => this.#build(colours));
    offerDownloads(byId("curves").closest(".card"), { of: study.name, name: "compared-trials", tables: [["Reports", () => this.#table()]] });
  }

  /** Draws a metric of trials with their reports, over "epochs" or "seconds" of training. */
  draw(details, metric, over) {
    this.over = over;
    this.metric = metric;
    this.#curves = details.map(({ trial, reports }) => ({ number: trial.number, points: points(reports ?? [], metric, over, this.study.rungs) }));
    const values = this.#curves.flatMap(({ points: all }) => all.map((one) => one.y));
    this.fair = fairRange(values);
    const ends = this.#curves.filter(({ points: all }) => all.length > 0).map(({ number: at, points: all }) => `trial ${at} from ${measured(all[0].y)} to ${measured(all.at(-1).y)}`);
    this.chart.draw(ends.length === 0 ? `No epoch has been reported with ${metric}.` : `${metric}: ${ends.join("; ")}. The tables below have the results.`);
    const colours = curveColours();
    fillLegend(byId("curves-legend"), this.#curves.map(({ number: at }, index) => ({ colour: colours[index], text: `trial ${at}`, line: true })));
    const part = new Set(this.study.rungs.map((rung) => rung.budget.data_fraction)).size > 1;
    remark(byId("curves-note"), [
      leftOut(this.fair.outside, values.filter((value) => !Number.isFinite(value)).length),
      part ? "On lower rungs an epoch trains on a part of the data only." : "",
    ].filter(Boolean).join(" "));
  }

  #table() {
    return {
      columns: ["trial", "rung", "epoch", this.over === "seconds" ? "seconds_of_training" : "epochs_trained", this.metric],
      rows: this.#curves.flatMap(({ number: trial, points: all }) => all.map((one) => [trial, one.rung, one.epoch, one.x, one.y])),
    };
  }

  #build(colours) {
    const times = [...new Set(this.#curves.flatMap(({ points: all }) => all.map((one) => one.x)))].sort((a, b) => a - b);
    const place = new Map(times.map((x, index) => [x, index]));
    const columns = this.#curves.map(({ points: all }) => {
      const column = Array(times.length).fill(undefined); // no point of this trial: the line goes on
      for (const one of all) column[place.get(one.x)] = Number.isFinite(one.y) ? one.y : null; // a gap
      return column;
    });
    return { shape: `${this.metric} ${this.over} ${this.#curves.map((curve) => curve.number)}`, options: this.#options(colours, times.length <= 60), data: [times, ...columns] };
  }

  #options(colours, dotted) {
    const lines = curveColours();
    const epochs = axis(colours, { size: 28, space: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000] });
    return {
      ...common, padding: [10, 44, 0, 0],
      scales: { x: { time: false, range: (plot, low, high) => [0, (high || 1) * 1.02] }, y: { range: () => this.fair.range } },
      axes: [
        this.over === "seconds" ? { ...timeAxis(colours), ...named(colours, "training time") } : { ...epochs, ...named(colours, "epochs trained") },
        { ...valueAxis(colours), ...named(colours, this.metric) },
      ],
      series: [{}, ...this.#curves.map((_, index) => ({
        stroke: lines[index], width: 2, dash: dashes[index],
        points: { show: dotted, size: 5, width: 0, fill: lines[index], stroke: lines[index] },
      }))],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => this.#names(plot, colours, lines)] },
      plugins: [hover({
        points: () => this.#curves.flatMap(({ number: at, points: all }) => all.filter((one) => Number.isFinite(one.y)).map((one) => ({ ...one, number: at }))),
        lines: (one) => [`Trial ${one.number}: ${measured(one.y)}`, `epoch ${count(one.epoch)} on rung ${one.rung}, ${share(one.fraction)} of the data`, `after ${duration(one.seconds)} of training`],
      })],
    };
  }

  /** Each trial's number at the end of its curve. */
  #names(plot, colours, lines) {
    inside(plot, (context, scale) => {
      context.font = scaledFont(colours, scale);
      this.#curves.forEach(({ number: at, points: all }, index) => {
        const end = all.findLast((one) => Number.isFinite(one.y));
        if (!end) return;
        context.fillStyle = lines[index];
        const x = plot.valToPos(end.x, "x", true);
        const right = x > plot.bbox.left + 40 * scale; // there is room to the left
        context.textAlign = right ? "right" : "left";
        write(context, `#${at}`, x + (right ? -4 : 4) * scale, plot.valToPos(end.y, "y", true) - 6 * scale, colours, scale);
      });
    });
  }
}

/** A trial's points, by what it had trained when it reported them. */
function points(reports, metric, over, rungs) {
  let seconds = 0;
  return reports.map((report, index) => {
    seconds += number(report.seconds);
    return {
      x: over === "seconds" ? seconds : index + 1, y: number(report.metrics[metric]), has: metric in report.metrics,
      epoch: report.epoch, rung: report.rung, seconds, fraction: rungs[report.rung]?.budget.data_fraction ?? 1,
    };
  }).filter((one) => one.has);
}
