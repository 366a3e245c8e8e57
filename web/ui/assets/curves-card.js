// Learning curves of a study's trials together, a colour for each rung. Only
// epochs of one rung compare: its trials had the same share of the data.
import { get, studyPath } from "./api.js";
import { Plane } from "./canvas.js";
import { fairRange, fillLegend, leftOut, palette, remark, rungColour } from "./chart.js";
import { byId, make } from "./dom.js";
import { offerDownloads } from "./download.js";
import { measured, number, share } from "./format.js";
import { sampleInWords } from "./rung-measurements.js";
import { linearScale } from "./scales.js";

export class CurvesCard {
  #answer = { metric: "", metrics: [], curves: [] };
  #metric = "";

  constructor(study, reference, link) {
    this.study = study;
    this.reference = reference;
    this.link = link;
    this.plane = new Plane(byId("curves-chart"), 300);
    byId("curves-metric").addEventListener("change", (event) => {
      this.#metric = event.target.value;
      this.fetch().catch((error) => remark(byId("curves-note"), error.message));
    });
    offerDownloads(byId("curves"), { of: study.name, name: "learning-curves", tables: [["Epochs", () => this.#table()]] });
  }

  /** Fetches the curves as they are now, and draws them. */
  async fetch() {
    const wanted = this.#metric;
    const answer = await get(studyPath(this.reference, `/curves?metric=${encodeURIComponent(wanted)}`));
    if (wanted !== this.#metric) return; // another one was chosen since
    this.#answer = answer;
    byId("curves").classList.toggle("awaiting", answer.curves.length === 0);
    this.#offer();
    this.#draw();
  }

  #offer() {
    const { metric, metrics } = this.#answer;
    const select = byId("curves-metric");
    if ([...select.options].map((option) => option.value).join("\n") !== metrics.join("\n")) select.replaceChildren(...metrics.map((name) => make("option", { value: name }, name)));
    select.value = metric;
  }

  #draw() {
    const { metric, sample } = this.#answer;
    const rungs = this.study.rungs;
    const curves = this.#answer.curves.map((one) => ({ ...one, values: one.values.map(number) }));
    const values = curves.flatMap((one) => one.values);
    const { range, outside } = fairRange(values);
    const last = Math.max(1, ...curves.flatMap((one) => one.epochs));
    const first = last > 1 ? 1 : 0;
    const margin = (last - first) * 0.02;
    const x = linearScale("epoch", [first - margin, last + margin]);
    const y = linearScale(metric, range);
    const points = curves.flatMap((curve) => curve.values.map((value, index) => ({ curve, index, value, x: x.at(curve.epochs[index]), y: y.at(value) }))).filter((point) => Number.isFinite(point.value));
    this.plane.draw({
      x, y, points,
      paint: (context, at, colours) => {
        context.globalAlpha = curves.length > 40 ? 0.45 : 0.8;
        for (const curve of [...curves].sort((a, b) => (b.rank || Infinity) - (a.rank || Infinity))) {
          for (const part of parts(curve)) trace(context, at, x, y, curve, part, rungColour(colours, part.rung, rungs.length), curve.rank === 1 ? 2.5 : 1.25);
        }
        context.globalAlpha = 1;
      },
      mark: (context, at, colours, { curve }) => {
        for (const part of parts(curve)) trace(context, at, x, y, curve, part, colours.strong, 2.5);
      },
      lines: ({ curve, index, value }) => [`Trial ${curve.number}, epoch ${curve.epochs[index]}: ${measured(value)}`, `rung ${curve.rungs[index]}, ${share(rungs[curve.rungs[index]].budget.data_fraction)} of the data`],
      open: ({ curve }) => location.assign(this.link(curve.number)),
    }, `${metric} over the epochs of ${curves.length} trials`);
    const colours = palette();
    const used = rungs.filter((rung) => curves.some((curve) => curve.rungs.includes(rung.index)));
    fillLegend(byId("curves-legend"), used.map((rung) => ({ colour: rungColour(colours, rung.index, rungs.length), text: `rung ${rung.index}`, line: true })));
    const chosen = sampleInWords(sample, curves.length);
    const fractions = new Set(rungs.map((rung) => rung.budget.data_fraction)).size > 1;
    remark(byId("curves-note"), [
      fractions ? "Rungs train on different shares of the data: compare within a colour." : "", chosen, leftOut(outside, values.filter((value) => !Number.isFinite(value)).length)].filter(Boolean).join(" "));
  }

  #table() {
    const { metric, curves } = this.#answer;
    return { columns: ["trial", "rung", "epoch", metric], rows: curves.flatMap((one) => one.values.map((value, index) => [one.number, one.rungs[index], one.epochs[index], number(value)])) };
  }
}

/** A curve rung by rung: a rung that goes on from the one below begins at its last epoch. */
function parts({ epochs, rungs }) {
  const list = [];
  for (let index = 0; index < epochs.length; index++) {
    const part = list.at(-1);
    if (part && part.rung === rungs[index] && epochs[index] > epochs[index - 1]) part.to = index;
    else list.push({ rung: rungs[index], from: part && epochs[index] > epochs[index - 1] ? index - 1 : index, to: index });
  }
  return list;
}

function trace(context, at, x, y, { epochs, values }, { from, to }, colour, width) {
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  let open = false;
  for (let index = from; index <= to; index++) {
    const place = at(x.at(epochs[index]), y.at(values[index]));
    if (!Number.isFinite(values[index])) open = false;
    else if (open) context.lineTo(...place);
    else {
      context.moveTo(...place);
      open = true;
    }
  }
  context.stroke();
  if (from !== to) return;
  const [left, top] = at(x.at(epochs[from]), y.at(values[from]));
  context.fillRect(left - 1.5, top - 1.5, 3, 3); // one epoch has no line
}
