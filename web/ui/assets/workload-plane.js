// Known workloads in the plane in which their runs differ most: a dot for each
// run, and a circle around each workload in which a new run is taken for it.
import { Chart, axis, common, hover, inside, named, rungColour, scaledFont, stroke, valueAxis, write } from "./chart.js";
import { offerDownloads } from "./download.js";
import { several } from "./format.js";

const height = 320;
const axes = { across: 54 + 22, up: 44 + 10 }; // what axes and padding take of the box

export class WorkloadPlane {
  #workloads = [];
  #points = [];

  constructor(box) {
    this.box = box;
    this.chart = new Chart(box, height, (colours) => this.#build(colours));
    offerDownloads(box.closest(".card"), { of: "ground-truth", name: "known-workloads", tables: [["Runs", () => this.#data()], ["Circles", () => this.#circles()]] });
  }

  draw(workloads) {
    this.#workloads = workloads;
    this.#points = workloads
      .flatMap(({ workload, size, points }, rank) => points.map(({ x, y }) => ({ x, y, rank, workload, size })))
      .sort((a, b) => a.x - b.x);
    const sizes = workloads.slice(0, 8).map(({ workload, size }) => `${workload} with ${size}`);
    const more = workloads.length > sizes.length ? ` and ${workloads.length - sizes.length} more` : "";
    this.chart.draw(`${several(this.#points.length, "run")} in ${several(workloads.length, "workload")}: ${sizes.join(", ")}${more}. The table below has them.`);
  }

  #data() {
    return { columns: ["workload", "first_component", "second_component"], rows: this.#points.map(({ workload, x, y }) => [workload, x, y]) };
  }

  #circles() {
    return { columns: ["workload", "runs", "first_component", "second_component", "radius"], rows: this.#workloads.map(({ workload, size, x, y, radius }) => [workload, size, x, y, radius]) };
  }

  /** The ranges in which a circle is round, in the box as it is now. */
  #ranges() {
    const edges = (at) => this.#workloads.flatMap((one) => [one[at] - one.radius, one[at] + one.radius]).concat(this.#points.map((point) => point[at]));
    const [across, up] = ["x", "y"].map((at) => ({ low: Math.min(...edges(at)), high: Math.max(...edges(at)) }));
    const room = { across: Math.max(120, this.box.clientWidth - axes.across), up: height - axes.up };
    const unit = 1.06 * Math.max((across.high - across.low) / room.across, (up.high - up.low) / room.up);
    const around = ({ low, high }, pixels) => [(low + high - unit * pixels) / 2, (low + high + unit * pixels) / 2];
    return { x: around(across, room.across), y: around(up, room.up) };
  }

  #build(colours) {
    return { shape: "plane", options: this.#options(colours), data: [this.#points.map(({ x }) => x), this.#points.map(({ y }) => y)] };
  }

  #options(colours) {
    return {
      ...common,
      scales: { x: { time: false, range: () => this.#ranges().x }, y: { range: () => this.#ranges().y } },
      axes: [axis(colours, { ...valueAxis(colours), size: 28, space: 64, ...named(colours, "first component") }), { ...valueAxis(colours), size: 38, ...named(colours, "second component") }],
      series: [{}, { paths: () => null, points: { show: false } }],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => this.#paint(plot, colours)] },
      plugins: [
        hover({
          points: () => this.#points,
          lines: (point) => [`A run of workload ${point.workload}`, `one of ${point.size}`],
        }),
      ],
    };
  }

  #paint(plot, colours) {
    const at = ({ x, y }) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
    const colour = (rank) => rungColour(colours, this.#workloads.length - 1 - rank, this.#workloads.length);
    inside(plot, (context, scale) => {
      this.#workloads.forEach((one, rank) => {
        const [x, y] = at(one);
        const [right] = at({ x: one.x + one.radius, y: one.y });
        const [, top] = at({ x: one.x, y: one.y + one.radius });
        stroke(context, colour(rank), scale, [4, 3]);
        context.beginPath();
        context.ellipse(x, y, right - x, y - top, 0, 0, 2 * Math.PI);
        context.stroke();
      });
      context.setLineDash([]);
      for (const point of this.#points) {
        const [x, y] = at(point);
        context.beginPath();
        context.arc(x, y, 3.5 * scale, 0, 2 * Math.PI);
        context.fillStyle = colour(point.rank);
        context.fill();
        stroke(context, colours.surface, scale);
        context.stroke();
      }
      context.font = scaledFont(colours, scale);
      context.fillStyle = colours.text;
      context.textAlign = "center";
      for (const one of this.#workloads) {
        const [x] = at(one);
        const [, top] = at({ x: one.x, y: one.y + one.radius });
        write(context, one.workload, x, Math.max(top - 5 * scale, plot.bbox.top + 12 * scale), colours, scale);
      }
    });
  }
}
