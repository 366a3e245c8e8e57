// Several lines in one chart, each with a colour, a dash and a letter of its own,
// so that no reader has to tell them apart by colour.
import { Chart, axis, common, hover, inside, scaledFont, uPlot, valueAxis, write } from "./chart.js";
import { make } from "./dom.js";

const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 5], [3, 6], [8, 3, 2, 3, 2, 3]];

/** How many lines can be told apart. */
export const mostLines = dashes.length;

/** The letter of the line at the place. */
export const letter = (place) => String.fromCharCode(65 + place);

/** The colour of the line at the place, from the style sheet. */
export const lineColour = (place) => getComputedStyle(document.documentElement).getPropertyValue(`--curve-${place + 1}`).trim();

/** A line's letter in its colour. */
export const lineMark = (place) => make("span", { class: "line-mark", data: { place: String(place + 1) } }, letter(place));

export class Lines {
  #lines = [];
  #settings = null;

  /** tell(point) returns what the tip says; open(point), if given, follows a click. */
  constructor(box, height, { tell, open }) {
    this.tell = tell;
    this.open = open;
    this.chart = new Chart(box, height, (colours) => this.#build(colours));
  }

  /**
   * Draws lines [{place, points: [{x, y}]}] as steps; a point with told: false is
   * only drawn. Settings: label (the chart in words), across {label, time} and
   * up {label} (the axes), and the ranges x and y.
   */
  draw(lines, settings) {
    this.#lines = lines.filter(({ points }) => points.length > 0);
    this.#settings = settings;
    this.chart.draw(settings.label);
  }

  /** Whether the line has so few points that each is marked: a single one is no line. */
  #few(place) {
    return this.#lines.find((line) => line.place === place)?.points.length <= 40;
  }

  #points() {
    return this.#lines.flatMap(({ place, points }) => points.filter(({ told }) => told !== false).map((point) => ({ ...point, place })));
  }

  #build(colours) {
    const tables = this.#lines.map(({ points }) => [points.map(({ x }) => x), points.map(({ y }) => y)]);
    const data = tables.length > 0 ? uPlot.join(tables) : [[]];
    const { across, up } = this.#settings;
    // What is fixed once the chart is made is its shape; the rest is read anew.
    const shape = JSON.stringify([this.#lines.map(({ place }) => place), across.label, up?.label]);
    const named = (label) => (label ? { label, labelSize: 16, labelFont: colours.font } : {});
    const options = {
      ...common,
      scales: { x: { time: false, range: () => this.#settings.x }, y: { range: () => this.#settings.y } },
      axes: [
        axis(colours, { ...(across.time ? across.time(colours) : { ...valueAxis(colours), size: 28, space: 64 }), ...named(across.label) }),
        { ...valueAxis(colours), ...named(up?.label) },
      ],
      series: [{}, ...this.#lines.map(({ place }) => ({
        stroke: lineColour(place), width: 2, dash: dashes[place], points: { show: () => this.#few(place), size: 5, width: 0, fill: lineColour(place) }, paths: uPlot.paths.stepped({ align: 1 }),
      }))],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => this.#letters(plot, colours)] },
      plugins: [hover({ points: () => this.#points(), lines: (point) => this.tell(point), open: this.open && ((point) => this.open(point)) })],
    };
    return { shape, data, options };
  }

  /** Writes each line's letter at its end. */
  #letters(plot, colours) {
    inside(plot, (context, scale) => {
      context.font = `600 ${scaledFont(colours, scale)}`;
      context.textAlign = "right";
      const { left, top, width } = plot.bbox;
      for (const { place, points } of this.#lines) {
        const last = points.at(-1);
        const [x, y] = [plot.valToPos(last.x, "x", true), plot.valToPos(last.y, "y", true)];
        context.fillStyle = lineColour(place);
        write(context, letter(place), Math.min(x, left + width) - 2 * scale, Math.max(y - 5 * scale, top + 11 * scale), colours, scale);
      }
    });
  }
}
