// The empirical distribution of an objective: which share of the trials has at
// most a value, beside those of other studies with the same budget.
import { get, identity, referenceOf, studyPath } from "./api.js";
import { Plane } from "./canvas.js";
import { fairRange, fillLegend, palette, remark } from "./chart.js";
import { byId, make, setText } from "./dom.js";
import { offerDownloads } from "./download.js";
import { budget, count, measured, number, share } from "./format.js";
import { linearScale } from "./scales.js";
import { label } from "./trials.js";

const most = 4; // other studies: more could not be told apart
const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2]];

export class DistributionChart {
  #own = null; // {name, values, shares, trials}
  #others = new Map(); // reference -> the same
  #measurements = null;

  constructor(study) {
    this.study = study;
    this.plane = new Plane(byId("edf-chart"), 300);
    byId("edf-others").addEventListener("toggle", () => byId("edf-others").open && this.#offer());
    offerDownloads(byId("edf"), { of: study.name, where: () => this.#measurements.where(), name: "distribution", tables: [["Shares", () => this.#table()]] });
  }

  /** Draws the distribution that came with the measurements. */
  async draw(measurements, distribution) {
    const moved = this.#measurements && (this.#measurements.rung !== measurements.rung || this.#measurements.place !== measurements.place);
    this.#measurements = measurements;
    this.#own = curve(this.study.name, distribution);
    if (moved) {
      this.#others.clear();
      if (byId("edf-others").open) await this.#offer();
    }
    this.#draw();
  }

  #curves() {
    return [this.#own, ...this.#others.values()];
  }

  #draw() {
    const curves = this.#curves();
    const { metric, objective } = this.#measurements;
    const { range, outside } = fairRange(curves.flatMap((one) => one.values));
    const x = linearScale(metric, range);
    const y = linearScale("share of the trials", [0, 1], share);
    const points = curves.flatMap((one, place) => one.values.map((value, index) => ({ x: x.at(value), y: one.shares[index], value, share: one.shares[index], name: one.name, place })));
    this.plane.draw({
      x, y, points,
      paint: (context, at, colours, area) => {
        curves.forEach((one, place) => steps(context, at, colourOf(colours, place), dashes[place], one, x, area));
        if (curves.length > 1) curves.forEach((one, place) => named(context, at, colours, one, place, x));
      },
      lines: (point) => [`${point.name}: ${measured(point.value)}`, `${share(point.share)} of the trials have at most this`],
    }, curves.map((one) => `${one.name}: half of ${one.trials} trials have at most ${measured(middle(one))}`).join("; "));
    const colours = palette();
    fillLegend(byId("edf-legend"), curves.map((one, place) => ({ colour: colourOf(colours, place), text: `${one.name} (${count(one.trials)})`, line: true })));
    const diverged = this.#measurements.of - this.#own.trials;
    remark(byId("edf-note"), [
      objective.direction === "maximize" ? "The further to the right, the better." : "The further to the left, the better.",
      diverged > 0 ? `${count(diverged)} ${diverged === 1 ? "trial" : "trials"} of this study measured no finite number and ${diverged === 1 ? "is" : "are"} left out.` : "",
      outside > 0 ? "Some values are beyond the ends of the axis." : "",
      curves.length > 1 ? "Studies measure alike only where their scripts and data are the same." : "",
    ].filter(Boolean).join(" "));
  }

  /** Lists the studies that measured the same with the same budget. */
  async #offer() {
    const box = byId("edf-list");
    const { metric, objective, budget: spent } = this.#measurements;
    let studies;
    try {
      const { scope } = await identity();
      ({ studies } = scope === "link" ? { studies: [] } : await get("/studies")); // who has a link sees one
    } catch (error) {
      setText(box, error.message);
      return;
    }
    const fits = studies.filter((other) => other.id !== this.study.id).flatMap((other) => {
      const place = other.definition.objective.findIndex((one) => label(one) === metric && one.direction === objective.direction);
      const rung = other.rungs.find((one) => same(one.budget, spent));
      return place >= 0 && rung && other.progress.created > 0 ? [{ other, place, rung: rung.index }] : [];
    });
    const reference = ({ other }) => referenceOf(other);
    box.replaceChildren(...(fits.length > 0 ? fits.slice(0, 50).map((one) => make("label", { class: "check" }, this.#box(one, reference(one)), reference(one)))
      : [make("p", { class: "muted" }, `No other study has measured ${metric} with ${budget(spent)} of the data.`)]));
  }

  #box({ place, rung }, reference) {
    const field = make("input", { type: "checkbox", on: { change: async () => {
      this.#others.delete(reference);
      if (field.checked && this.#others.size >= most) field.checked = false;
      if (field.checked) {
        try {
          const { distribution } = await get(studyPath(reference, `/columns?rung=${rung}&objective=${place}&limit=1`));
          this.#others.set(reference, curve(reference, distribution));
        } catch (error) {
          field.checked = false;
          remark(byId("edf-note"), `${reference} could not be read. ${error.message}`);
          return;
        }
      }
      this.#draw();
    } } });
    field.checked = this.#others.has(reference);
    return field;
  }

  #table() {
    return { columns: ["study", this.#measurements.metric, "share_with_at_most"], rows: this.#curves().flatMap((one) => one.values.map((value, index) => [one.name, value, one.shares[index]])) };
  }
}

const curve = (name, { values, shares, trials }) => ({ name, values: values.map(number), shares, trials });

const same = (a, b) => ["epochs", "data_fraction", "seconds", "joules"].every((amount) => (a[amount] ?? 0) === (b[amount] ?? 0));

const middle = ({ values, shares }) => values[shares.findIndex((one) => one >= 0.5)] ?? NaN;

const colourOf = (colours, place) => [colours.accent, colours.warn, colours.good, colours.bad, colours.muted][place];

/** Its name beside a curve, each at another height. */
function named(context, at, colours, { name, values, shares }, place, x) {
  const index = shares.findIndex((one) => one >= 0.3 + 0.13 * place);
  if (index < 0) return;
  const [left, top] = at(x.at(values[index]), shares[index]);
  context.textAlign = "left";
  context.lineWidth = 4;
  context.strokeStyle = colours.surface;
  context.strokeText(name, left + 7, top + 4);
  context.fillStyle = colours.text;
  context.fillText(name, left + 7, top + 4);
}

/** A staircase from 0 to 1. */
function steps(context, at, colour, dash, { values, shares }, x, { left, right }) {
  if (values.length === 0) return;
  context.save();
  context.setLineDash(dash);
  context.lineWidth = 2;
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(left, at(0, 0)[1]);
  values.forEach((value, index) => {
    const [place, height] = at(x.at(value), shares[index]);
    context.lineTo(place, at(0, index > 0 ? shares[index - 1] : 0)[1]);
    context.lineTo(place, height);
  });
  context.lineTo(right, at(0, 1)[1]);
  context.stroke();
  context.restore();
}
