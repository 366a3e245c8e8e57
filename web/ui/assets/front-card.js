// Several objectives: the first two of each trial as a chart, with the Pareto
// front, and the front as a table for those who cannot see or point.
import { Chart, axis, common, fairRange, fillLegend, hover, inside, leftOut, named, palette, remark, stroke, valueAxis } from "./chart.js";
import { referenceOf, studyPath } from "./api.js";
import { offerDownloads } from "./download.js";
import { byId, make, show } from "./dom.js";
import { measured, number } from "./format.js";
import { label } from "./trials.js";

export class FrontCard {
  #points = [];
  #front = [];
  #chart = null;
  // Stays when the table is another: who reads it by keys keeps the focus and the place.
  #frame = make("div", { class: "table-frame short", tabindex: "0", role: "group", "aria-labelledby": "front-title" });

  /** open(number) shows a trial. */
  constructor(study, measurements, open) {
    this.study = study;
    this.measurements = measurements;
    this.open = open;
    this.objectives = study.definition.objective;
    offerDownloads(byId("front"), { of: study.name, name: "pareto-front", tables: [["Trials", () => this.#data()]] });
  }

  /** Draws the front of a recommendation; hides the card where there is none. */
  draw({ pareto }) {
    const found = (pareto?.trials ?? []).length > 0;
    show(byId("front"), found);
    if (!found) return;
    this.#chart ??= new Chart(byId("front-chart"), 232, (colours) => this.#build(colours));
    this.#front = pareto.trials.map((one) => this.#point(one, one.values, true));
    const known = new Set(pareto.trials.map((one) => one.number));
    const others = this.measurements.results.filter((one) => !known.has(one.number) && one.rung === pareto.rung && !one.violation);
    this.#points = [...this.#front, ...others.map((one) => this.#point(one, one.values, false))].sort((a, b) => a.x - b.x);
    this.fair = { x: fairRange(this.#points.map(({ x }) => x)), y: fairRange(this.#points.map(({ y }) => y)) };
    const [across, up] = this.objectives.map(label);
    this.#chart.draw(`${pareto.trials.length} of ${pareto.measured} trials of rung ${pareto.rung} are on the Pareto front of ${across} and ${up}. The table below has them.`);
    const colours = palette();
    fillLegend(byId("front-legend"), [
      { colour: colours.accent, text: "on the front", line: this.objectives.length === 2 },
      { colour: colours.muted, text: "beaten", hollow: true },
    ]);
    const notFinite = this.#points.filter((point) => !finite(point)).length;
    const more = this.objectives.length > 2 ? `The chart has the first two of ${this.objectives.length} objectives, so a trial on the front may seem beaten.` : "";
    remark(byId("front-note"), [more, leftOut(this.#outside(), notFinite), this.measurements.choice()].filter(Boolean).join(" "));
    this.#table(pareto);
  }

  #point({ number: trial }, values, front) {
    return { number: trial, x: number(values[0]), y: number(values[1]), values, front };
  }

  #data() {
    return {
      columns: ["trial", "on_the_front", ...this.objectives.map(label)],
      rows: [...this.#points].sort((a, b) => a.number - b.number).map((point) => [point.number, point.front, ...point.values.map(number)]),
    };
  }

  #outside() {
    const beyond = (value, [low, high]) => value < low || value > high;
    return this.#points.filter((point) => finite(point) && (beyond(point.x, this.fair.x.range) || beyond(point.y, this.fair.y.range))).length;
  }

  #build(colours) {
    const points = this.#points.filter(finite);
    const column = (wanted) => points.map((point) => (wanted(point) ? point.y : null));
    const data = [points.map((point) => point.x), column((point) => !point.front), column((point) => point.front)];
    return { shape: "front", options: this.#options(colours), data };
  }

  #options(colours) {
    const [across, up] = this.objectives.map(label);
    const dots = (fill, edge, size) => ({ paths: () => null, points: { show: true, size, width: 1.25, fill, stroke: edge } });
    return {
      ...common,
      scales: { x: { time: false, range: () => this.fair.x.range }, y: { range: () => this.fair.y.range } },
      axes: [axis(colours, { ...valueAxis(colours), size: 28, space: 64, ...named(colours, across) }), { ...valueAxis(colours), ...named(colours, up) }],
      series: [{}, dots(colours.surface, colours.muted, 6), dots(colours.accent, colours.accent, 8)],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { drawAxes: [(plot) => this.objectives.length === 2 && this.#line(plot, colours)] },
      plugins: [
        hover({
          points: () => this.#points.filter(finite),
          lines: (point) => [`Trial ${point.number}${point.front ? ", on the front" : ""}`, ...this.objectives.map((one, index) => `${label(one)} ${measured(point.values[index])}`)],
          open: (point) => this.open(point.number),
        }),
      ],
    };
  }

  /** The front's steps: what lies behind them is beaten. */
  #line(plot, colours) {
    const points = this.#front.filter(finite).sort((a, b) => a.x - b.x);
    const rising = this.objectives[0].direction === "maximize";
    inside(plot, (context, scale) => {
      stroke(context, colours.accent, scale);
      context.globalAlpha = 0.5;
      context.beginPath();
      points.forEach((point, index) => {
        const [x, y] = [plot.valToPos(point.x, "x", true), plot.valToPos(point.y, "y", true)];
        const before = points[index - 1];
        if (before && rising) context.lineTo(plot.valToPos(before.x, "x", true), y);
        else if (before) context.lineTo(x, plot.valToPos(before.y, "y", true));
        context.lineTo(x, y);
      });
      context.stroke();
    });
  }

  #table({ trials, hypervolume, objectives }) {
    const cell = (value) => make("td", { class: "number", title: String(value) }, measured(value));
    const reference = objectives.map((one) => `${one.name} ${measured(one.reference)}${one.given ? "" : " (worst so far)"}`).join(", ");
    this.#frame.replaceChildren(make("table", { class: "plain" },
      make("caption", { class: "unseen" }, "The trials on the Pareto front, the best compromise first"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Trial"), ...this.objectives.map((one) => make("th", { scope: "col", class: "number", title: one.direction }, label(one))))),
      make("tbody", {}, ...trials.map((one) => make("tr", {},
        make("th", { scope: "row" }, make("a", { href: studyPath(referenceOf(this.study), `/trials/${one.number}`) }, `#${one.number}`)), ...one.values.map(cell))))));
    const body = byId("front-body");
    if (!this.#frame.isConnected) body.replaceChildren(this.#frame, make("p", { class: "chart-note" }));
    body.lastElementChild.textContent = hypervolume === undefined ? "" : `Hypervolume ${measured(hypervolume)}, measured from ${reference}.`;
  }
}

const finite = ({ x, y }) => Number.isFinite(x) && Number.isFinite(y);
