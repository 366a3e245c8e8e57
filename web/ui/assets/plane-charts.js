// Two parameters at a time: an estimate of the objective over their plane, with
// the measured points in it, and the ranks of the trials as they were measured.
import { dot, line, Plane } from "./canvas.js";
import { fairRange, fillLegend, leftOut, palette, remark } from "./chart.js";
import { byId, make } from "./dom.js";
import { offerDownloads } from "./download.js";
import { count, measured } from "./format.js";
import { plainValue, rankLegend, shade, shades } from "./rung-measurements.js";
import { isolines, Smoothing } from "./smoothing.js";
import { spread } from "./slices.js";

const cells = 48; // of the estimate along an axis of numbers
const fewest = 5; // points that an estimate needs
const levels = 5;

export class PlaneCharts {
  #measurements = null;
  #grid = null; // {columns, rows, values}: the estimate as it was drawn

  /** chosen(x, y) is told the names of the parameters that the reader chose; wanted are those of the address. */
  constructor(study, { link, chosen, wanted }) {
    this.names = study.definition.space.parameters.map((one) => one.name);
    this.link = link;
    this.contour = new Plane(byId("contour-chart"), 380);
    this.ranks = new Plane(byId("rank-chart"), 380);
    const usual = telling(study.definition.space.parameters);
    this.places = [0, 1].map((side) => (this.names.includes(wanted[side]) ? this.names.indexOf(wanted[side]) : usual[side] ?? 0));
    this.selects = ["x", "y"].flatMap((axis, side) => ["contour", "rank"].map((card) => {
      const select = byId(`${card}-${axis}`);
      select.replaceChildren(...this.names.map((name, place) => make("option", { value: String(place) }, name)));
      select.addEventListener("change", () => {
        this.#choose(side, Number(select.value));
        chosen(...this.places.map((place) => this.names[place]));
      });
      return { select, side };
    }));
    this.#show();
    offerDownloads(byId("contour"), { of: study.name, where: () => this.#measurements.where(), name: "contour", tables: [["Measured", () => this.#measurements.table()], ["Estimate", () => this.#estimate()]] });
    offerDownloads(byId("rank"), { of: study.name, where: () => this.#measurements.where(), name: "ranks", tables: [["Trials", () => this.#measurements.table()]] });
  }

  /** Another parameter on a side; the one that was there goes to the other side if it would stand twice. */
  #choose(side, place) {
    if (this.places[1 - side] === place) this.places[1 - side] = this.places[side];
    this.places[side] = place;
    this.#show();
    if (this.#measurements) this.draw(this.#measurements);
  }

  #show() {
    for (const { select, side } of this.selects) select.value = String(this.places[side]);
  }

  draw(measurements) {
    this.#measurements = measurements;
    const [x, y] = this.places.map((place) => measurements.scales[place]);
    this.#drawContour(measurements, x, y);
    this.#drawRanks(measurements, x, y);
  }

  #hover(measurements, x, y) {
    return {
      lines: ({ row }) => [...measurements.lines(row), ...[x, y].map((scale, side) => `${scale.name} ${scale.text(row.parameters[this.places[side]])}`)],
      open: ({ row }) => location.assign(this.link(row.number)),
    };
  }

  #drawContour(measurements, x, y) {
    const [across, up] = this.places;
    const { rows, without } = measurements.finite();
    const set = rows.filter((row) => !Number.isNaN(row.parameters[across]) && !Number.isNaN(row.parameters[up]));
    const { range, outside } = fairRange(set.map((row) => row.value));
    const within = (value) => Math.min(range[1], Math.max(range[0], value));
    const points = set.map((row) => ({ row, x: x.at(row.parameters[across]), y: y.at(row.parameters[up]), value: within(row.value), weight: row.stands }));
    const enough = points.length >= fewest && across !== up;
    const smoothing = enough ? new Smoothing(points, { x: x.choices !== undefined, y: y.choices !== undefined }) : null;
    this.#grid = smoothing && gridOf(smoothing, x, y);
    const worth = goodness(measurements, points.map((point) => point.value));
    const shown = points.map((point) => ({ ...point, x: spread(x, point.row, across), y: spread(y, point.row, up) }));
    this.contour.draw({
      x: { ...x, missing: undefined }, y: { ...y, missing: undefined }, points: shown, ...this.#hover(measurements, x, y),
      paint: (context, at, colours) => {
        if (this.#grid) surface(context, at, colours, this.#grid, worth);
        for (const { row, x: left, y: top } of shown) dot(context, ...at(left, top), row.rank === 1 ? 6 : radius(points), row.rank === 1 ? colours.strong : shade(colours, worth(row.value)), row.violation > 0, colours.surface);
        if (this.#grid && !x.choices && !y.choices) contours(context, at, colours, this.#grid);
      },
    }, `${measurements.metric} over ${x.name} and ${y.name}: ${points.length} measured trials at ${measurements.where()}, and an estimate between them`);
    const error = smoothing?.error() ?? NaN;
    const values = points.map((point) => point.value).sort((a, b) => a - b);
    const middle = values.length > 0 ? values[Math.floor(values.length * 0.75)] - values[Math.floor(values.length * 0.25)] : NaN;
    remark(byId("contour-note"), [
      smoothing ? `The colours between the points are an estimate: a mean of the ${count(points.length)} measured trials around, whatever their other parameters.${Number.isFinite(error) ? ` Without a trial, it misses that one's value by ${measured(error)} in the median, where half of the values lie within ${measured(middle)} of each other.` : ""} Blank: no trial is near.`
        : `An estimate needs two parameters and ${fewest} trials that have both.`,
      rows.length > set.length ? `${count(rows.length - set.length)} trials do not have both parameters.` : "",
      measurements.chosen(), leftOut(outside, without),
    ].filter(Boolean).join(" "));
    this.#legend("contour-legend", measurements);
  }

  #drawRanks(measurements, x, y) {
    const [across, up] = this.places;
    const points = measurements.rows.map((row) => ({ row, x: spread(x, row, across), y: spread(y, row, up) })).sort((a, b) => b.row.rank - a.row.rank);
    this.ranks.draw({
      x, y, points, ...this.#hover(measurements, x, y),
      paint: (context, at, colours) => {
        for (const { row, x: left, y: top } of points) dot(context, ...at(left, top), (points.length > 500 ? 1.5 : 2.5) + (points.length > 500 ? 3 : 4) * row.good, shade(colours, row.good), row.violation > 0, colours.surface);
      },
    }, `Ranks of ${points.length} trials over ${x.name} and ${y.name} at ${measurements.where()}${measurements.best ? `; the best is trial ${measurements.best.number}` : ""}`);
    remark(byId("rank-note"), ["The better its rank, the larger and stronger a trial's dot.", measurements.chosen()].filter(Boolean).join(" "));
    this.#legend("rank-legend", measurements);
  }

  #legend(id, measurements) {
    const colours = palette();
    fillLegend(byId(id), [...rankLegend(colours), ...(measurements.constrained ? [{ colour: colours.muted, text: "infeasible", hollow: true }] : [])]);
  }

  #estimate() {
    const [x, y] = this.places.map((place) => this.#measurements.scales[place]);
    const { columns = [], rows = [], values = [] } = this.#grid ?? {};
    return {
      columns: [x.name, y.name, `estimate_of_${this.#measurements.metric}`],
      rows: rows.flatMap((up, row) => columns.map((across, column) => [plainValue(x, x.back(across)), plainValue(y, y.back(up)), Number.isNaN(values[row][column]) ? null : values[row][column]])),
    };
  }
}

/** The size of the dots: many get smaller. */
const radius = (points) => (points.length > 500 ? 2 : 3.25);

/** The places of the parameters, those first that an estimate says most about: numbers before choices, what always exists before what does not. */
function telling(parameters) {
  const cost = ({ values, when }) => (values ? 2 : 0) + ((when ?? []).length > 0 ? 1 : 0);
  return parameters.map((_, place) => place).sort((a, b) => cost(parameters[a]) - cost(parameters[b]) || a - b);
}

/** From 0 for the worst to 1 for the best of the values. */
function goodness({ objective }, values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const part = (value) => (high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 1);
  return objective.direction === "maximize" ? part : (value) => 1 - part(value);
}

/** Where an axis is estimated: at its choices, or evenly. */
function stations(scale) {
  return scale.choices ? scale.choices.map((_, place) => scale.at(place)) : Array.from({ length: cells }, (_, index) => index / (cells - 1));
}

function gridOf(smoothing, x, y) {
  const [columns, rows] = [stations(x), stations(y)];
  return { columns, rows, values: rows.map((up) => columns.map((across) => smoothing.at(across, up))) };
}

/** Fills the cells around the stations of a grid. */
function surface(context, at, colours, { columns, rows, values }, worth) {
  const edges = (list) => list.map((one, index) => [index > 0 ? (list[index - 1] + one) / 2 : Math.max(0, one - 0.5), index + 1 < list.length ? (one + list[index + 1]) / 2 : Math.min(1, one + 0.5)]);
  const [across, up] = [edges(columns), edges(rows)];
  context.globalAlpha = 0.5;
  values.forEach((row, r) => row.forEach((value, c) => {
    if (Number.isNaN(value)) return;
    const [left, bottom] = at(across[c][0], up[r][0]);
    const [right, top] = at(across[c][1], up[r][1]);
    context.fillStyle = shade(colours, Math.round(worth(value) * (shades - 1)) / (shades - 1));
    context.fillRect(Math.round(left), Math.round(top), Math.round(right) - Math.round(left), Math.round(bottom) - Math.round(top)); // cells meet without a seam
  }));
  context.globalAlpha = 1;
}

/** Draws lines of equal estimate, with their values. */
function contours(context, at, colours, { columns, rows, values }) {
  const all = values.flat().filter((value) => !Number.isNaN(value));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  if (!(high > low)) return;
  const place = ([row, column]) => at(column / (columns.length - 1), row / (rows.length - 1));
  context.textAlign = "center";
  context.textBaseline = "middle";
  const labels = [];
  for (let level = 1; level <= levels; level++) {
    const value = low + (level / (levels + 1)) * (high - low);
    const lines = isolines(values, value);
    context.globalAlpha = 0.55;
    for (const [from, to] of lines) line(context, colours.text, ...place(from), ...place(to));
    context.globalAlpha = 1;
    if (lines.length < 8) continue;
    // Where no other label is: first in the middle of the line, then towards its ends.
    const [x, y] = [0.5, 0.3, 0.7, 0.1, 0.9].map((part) => place(lines[Math.floor(lines.length * part)][0])).find(([left, top]) => labels.every(([l, t]) => Math.abs(l - left) > 52 || Math.abs(t - top) > 16)) ?? [NaN, NaN];
    if (Number.isNaN(x)) continue;
    labels.push([x, y]);
    context.lineWidth = 3;
    context.strokeStyle = colours.surface;
    context.strokeText(measured(value), x, y);
    context.fillStyle = colours.text;
    context.fillText(measured(value), x, y);
  }
}
