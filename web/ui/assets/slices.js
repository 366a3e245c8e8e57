// Slices: the objective against one parameter at a time, a chart for each.
import { dot, Plane } from "./canvas.js";
import { fillLegend, leftOut, palette, remark, rungColour } from "./chart.js";
import { byId, make } from "./dom.js";
import { offerDownloads } from "./download.js";
import { shades } from "./rung-measurements.js";

export class Slices {
  #planes = [];
  #measurements = null;

  constructor(study, link) {
    this.link = link;
    this.#planes = study.definition.space.parameters.map((parameter) => {
      const box = make("div", { class: "chart" });
      byId("slices").append(make("div", { class: "slice" }, make("h3", {}, parameter.name), box));
      return new Plane(box, 210);
    });
    offerDownloads(byId("slice"), { of: study.name, where: () => this.#measurements.where(), name: "slices", tables: [["Trials", () => this.#measurements.table()]] });
  }

  draw(measurements) {
    this.#measurements = measurements;
    const { rows, without } = measurements.finite();
    const { scale: value, outside } = measurements.valueScale();
    const newest = Math.max(1, ...rows.map((row) => row.number));
    const colour = (colours, row) => rungColour(colours, Math.round((row.number / newest) * (shades - 1)), shades);
    this.#planes.forEach((plane, place) => {
      const scale = measurements.scales[place];
      const points = rows.map((row) => ({ row, x: spread(scale, row, place), y: value.at(row.value) }));
      plane.draw({
        x: scale, y: { ...value, missing: undefined }, points,
        paint: (context, at, colours) => {
          for (const { row, x, y } of points) dot(context, ...at(x, y), points.length > 500 ? 2 : 3.25, colour(colours, row), row.violation > 0, colours.surface);
        },
        lines: ({ row }) => [...measurements.lines(row), `${scale.name} ${scale.text(row.parameters[place])}`],
        open: ({ row }) => location.assign(this.link(row.number)),
      }, `${measurements.metric} against ${scale.name}: ${rows.length} trials at ${measurements.where()}`);
    });
    const colours = palette();
    fillLegend(byId("slice-legend"), [
      { colour: rungColour(colours, 0, shades), text: "early trial" }, { colour: rungColour(colours, shades - 1, shades), text: "late trial" },
      ...(measurements.constrained ? [{ colour: colours.muted, text: "infeasible", hollow: true }] : []),
    ]);
    remark(byId("slice-note"), [measurements.chosen(), leftOut(outside, without)].filter(Boolean).join(" "));
  }
}

/** Where a trial stands on a parameter's axis: trials of one choice stand beside each other, always in the same way. */
export function spread(scale, row, place) {
  const value = row.parameters[place];
  if (Number.isNaN(value)) return NaN;
  if (!scale.choices) return scale.at(value);
  const width = 0.6 / scale.choices.length;
  return scale.at(value) + (((row.number * 0.618034) % 1) - 0.5) * width;
}
