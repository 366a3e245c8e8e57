// What models are worth against what they cost, as a chart in which points can be
// chosen by pointer and by keys.
import { Chart, axis, common, hover, inside, stroke, valueAxis } from "./chart.js";

export class EdgeChart {
  #points = [];
  #selected = null;
  #settings = null;

  /** tell(point) says what the tip has; select(point) is called for the chosen one. */
  constructor(box, { tell, select }) {
    this.tell = tell;
    this.select = select;
    this.chart = new Chart(box, 300, (colours) => this.#build(colours));
    box.addEventListener("keydown", (event) => this.#key(event));
  }

  /**
   * Draws points {x, y, front, own, band}: front, if none beats it; own, if it is
   * a trial's best deployment; band [low, high] of x. Settings: across and up
   * (names), and label (the chart in words).
   */
  draw(points, selected, settings) {
    this.#points = points.toSorted((a, b) => a.x - b.x || a.y - b.y);
    this.#selected = selected;
    this.#settings = settings;
    this.x = whole(points.map(({ x }) => x));
    this.y = whole(points.map(({ y }) => y));
    this.chart.draw(settings.label);
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined || this.#points.length === 0) return;
    event.preventDefault();
    const at = this.#points.indexOf(this.#selected);
    this.select(this.#points[at < 0 ? 0 : Math.min(this.#points.length - 1, Math.max(0, at + step))]);
  }

  #build(colours) {
    const column = (wanted) => this.#points.map((point) => (wanted(point) ? point.y : null));
    const data = [this.#points.map(({ x }) => x), column(({ own, front }) => !own && !front), column(({ own, front }) => !own && front), column(({ own, front }) => own && !front), column(({ own, front }) => own && front)];
    const { across, up } = this.#settings;
    const dots = (fill, edge, size) => ({ paths: () => null, points: { show: true, size, width: 1.25, fill, stroke: edge } });
    const named = (label) => ({ label, labelSize: 16, labelFont: colours.font });
    const options = {
      ...common,
      scales: { x: { time: false, range: () => this.x }, y: { range: () => this.y } },
      axes: [axis(colours, { ...valueAxis(colours), size: 28, space: 64, ...named(across) }), { ...valueAxis(colours), ...named(up) }],
      series: [{}, dots(colours.surface, colours.muted, 4), dots(colours.accent, colours.accent, 4), dots(colours.surface, colours.strong, 9), dots(colours.accent, colours.strong, 9)],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => this.#mark(plot, colours)] },
      plugins: [hover({ points: () => this.#points, lines: (point) => this.tell(point), open: (point) => this.select(point) })],
    };
    return { shape: `${across}/${up}`, options, data };
  }

  /** A ring around the selected point, and its band. */
  #mark(plot, colours) {
    const point = this.#selected;
    if (!point) return;
    inside(plot, (context, scale) => {
      const [x, y] = [plot.valToPos(point.x, "x", true), plot.valToPos(point.y, "y", true)];
      stroke(context, colours.strong, 2 * scale);
      context.beginPath();
      context.arc(x, y, 8 * scale, 0, 2 * Math.PI);
      context.stroke();
      if (!point.band) return;
      stroke(context, colours.strong, scale, [3, 3]);
      context.beginPath();
      context.moveTo(plot.valToPos(point.band[0], "x", true), y);
      context.lineTo(plot.valToPos(point.band[1], "x", true), y);
      context.stroke();
    });
  }
}

/** The range of all values, with a margin: nothing a reader may choose lies outside. */
function whole(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return values.length === 0 ? [0, 1] : [low - margin, high + margin];
}
