// What all charts share: colours from the style sheet, axes, ranges that an
// outlier cannot spoil, and what appears under the pointer. Drawing is uPlot's.
import uPlot from "./vendor/uplot/uPlot.js";
import { duration, measured } from "./format.js";
import { make, setText, show } from "./dom.js";
import { drawnBy } from "./picture.js";
import { pointing } from "./pointing.js";

export { uPlot };

/** The theme's colours as they are now; canvases cannot use CSS variables. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    text: colour("--text"), muted: colour("--muted"), line: colour("--line"), surface: colour("--surface"),
    accent: colour("--accent"), strong: colour("--text"), edge: colour("--edge"), idle: colour("--idle"), sunken: colour("--sunken"),
    good: colour("--good"), warn: colour("--warn"), bad: colour("--bad"), rungs: ["--rung-low", "--rung-middle", "--rung-high"].map(colour),
    font: `11px ${style.getPropertyValue("--font")}`,
  };
}

/** The colour of a rung: the dearer the budget, the darker, and from green over blue to violet. */
export function rungColour({ rungs }, rung, count) {
  const place = (count > 1 ? rung / (count - 1) : 1) * (rungs.length - 1);
  const from = Math.min(Math.floor(place), rungs.length - 2);
  const channels = [1, 3, 5].map((at) => {
    const [a, b] = [rungs[from], rungs[from + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * (place - from)).toString(16).padStart(2, "0");
  });
  return "#" + channels.join("");
}

/** A chart in a box: follows the box's width and the colour scheme. */
export class Chart {
  #plot = null;
  #shape = null;
  #build = null;

  /** build(colours) returns {shape, options, data}; equal shapes keep their options. */
  constructor(box, height, build) {
    this.box = box;
    this.height = height;
    this.#build = build;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", "Nothing is drawn yet"); // draw() says what is
    drawnBy(box, (scale) => this.#picture(scale));
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(box);
    addEventListener("themechange", () => {
      if (!this.#plot) return;
      this.#shape = null;
      this.draw();
    });
  }

  #size() {
    return { width: Math.max(200, this.box.clientWidth), height: this.height };
  }

  /** Shows in words that there is nothing to draw, in place of axes without points. */
  blank(text) {
    this.#plot?.destroy();
    this.#plot = this.#shape = null;
    this.box.setAttribute("aria-label", text);
    this.box.replaceChildren(make("p", { class: "blank" }, text));
  }

  /** Draws what there is now; label says it in words. */
  draw(label) {
    this.box.querySelector(".blank")?.remove();
    if (label !== undefined) this.box.setAttribute("aria-label", label);
    const { shape, options, data } = this.#build(palette());
    if (shape === this.#shape) {
      this.#plot.setData(data);
      return;
    }
    this.#plot?.destroy();
    this.#shape = shape;
    this.#plot = new uPlot({ ...this.#size(), ...options }, data, this.box);
  }

  /** The chart as it is now on a canvas of its own, with so many pixels for each CSS pixel. */
  async #picture(scale) {
    const { options, data } = this.#build(palette());
    const factor = scale / uPlot.pxRatio;
    const { width, height } = this.#size();
    const box = make("div");
    const plot = new uPlot({ width: width * factor, height: height * factor, ...enlarged(options, factor) }, data, box);
    await Promise.resolve(); // uPlot draws in a microtask
    const canvas = box.querySelector("canvas");
    plot.destroy();
    return canvas;
  }
}

/** The options of a chart that is so many times as large in everything, and that nobody points at. */
function enlarged(options, factor) {
  const times = (part, ...names) => part && Object.fromEntries(Object.entries(part).map(([name, value]) => [name, names.includes(name) && typeof value === "number" ? value * factor : value]));
  const font = (text) => text?.replace(/[\d.]+(?=px)/, (size) => String(size * factor));
  return {
    ...options,
    padding: options.padding.map((length) => length * factor),
    axes: options.axes.map((one) => ({ ...times(one, "size", "gap", "space", "labelSize"), font: font(one.font), labelFont: font(one.labelFont), grid: times(one.grid, "width") })),
    series: options.series.map((one) => ({ ...times(one, "width"), dash: one.dash?.map((length) => length * factor), points: times(one.points, "size", "width") })),
    cursor: { show: false },
    plugins: [{ hooks: { init: (plot) => { plot.enlarged = factor; } } }],
  };
}

/** Options every chart has. */
export const common = { legend: { show: false }, padding: [10, 22, 0, 0] };

/** An axis in the theme's colours. */
export function axis(colours, options) {
  return {
    stroke: colours.muted, font: colours.font, gap: 6,
    grid: { stroke: colours.line, width: 1 }, ticks: { show: false }, ...options,
  };
}

/** What gives an axis a name. */
export const named = (colours, text) => ({ label: text, labelSize: 16, labelFont: colours.font });

/** An axis of measured values: as many decimals as its steps need. */
export function valueAxis(colours) {
  return axis(colours, { size: 54, space: 36, values: (plot, splits, index, space, step) => splits.map((split) => tick(split, step)) });
}

function tick(value, step) {
  if (value !== 0 && (Math.abs(value) >= 1e5 || step < 1e-4)) return value.toExponential(step < Math.abs(value) / 10 ? 2 : 0).replace("e+", "e");
  let decimals = 0;
  while (decimals < 6 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6 * step * 10 ** decimals) decimals++;
  return value.toFixed(decimals).replace("-", "−");
}

/** An axis of seconds since a start, in steps that people count time in. */
export function timeAxis(colours) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
  const written = (seconds, step) => {
    if (seconds === 0) return "0";
    if (step < 60) return seconds < 60 ? `${seconds} s` : duration(seconds).replace(" 00 s", "").replace(" min ", ":").replace(" s", "");
    if (step < 3600) return `${Math.round(seconds / 60)} min`;
    return `${Math.round(seconds / 3600)} h`;
  };
  return axis(colours, { size: 28, space: 64, incrs: steps, values: (plot, splits, index, space, step) => splits.map((split) => written(split, step)) });
}

/**
 * The range of values to show, and how many fall outside. When single values
 * lie far away, such as a diverged loss, the range leaves them out.
 */
export function fairRange(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return { range: [0, 1], outside: 0 };
  let [low, high] = [sorted[0], sorted.at(-1)];
  const quantile = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [near, far] = [quantile(0.1), quantile(0.9)];
  const core = far - near;
  if (sorted.length >= 10 && core > 0) {
    if (high - far > 6 * core) high = far + core;
    if (near - low > 6 * core) low = near - core;
  }
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return { range: [low - margin, high + margin], outside: sorted.filter((value) => value < low || value > high).length };
}

/**
 * The range of a chart of progress. What is worse than the better half by more than
 * three times its span is left out: that would press all that matters into one line.
 */
export function goodRange(values, direction, target) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length < 20) return fairRange(values.concat(target ?? []));
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === (direction === "maximize" ? sorted.at(-1) : sorted[0])) return fairRange(values.concat(target ?? []));
  const worst = direction === "maximize" ? middle - 3 * (sorted.at(-1) - middle) : middle + 3 * (middle - sorted[0]);
  const good = sorted.filter((value) => (direction === "maximize" ? value >= worst : value <= worst)).concat(target ?? []);
  const [low, high] = [Math.min(...good), Math.max(...good)];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  const range = [low - margin, high + margin];
  return { range, outside: sorted.filter((value) => value < range[0] || value > range[1]).length };
}

/** A sentence on the values that a chart leaves out, or "". */
export function leftOut(outside, notFinite) {
  const parts = [];
  if (outside > 0) parts.push(`${outside} ${outside === 1 ? "is" : "are"} outside of the chart`);
  if (notFinite > 0) parts.push(`${notFinite} ${notFinite === 1 ? "is" : "are"} not a finite number`);
  return parts.length > 0 ? `Of the values, ${parts.join(", and ")}.` : "";
}

/** A horizontal line with a word, such as the target. */
export function markValue(plot, value, word, colours) {
  const y = plot.valToPos(value, "y", true);
  const { left, top, width, height } = plot.bbox;
  if (y < top || y > top + height) return;
  inside(plot, (context, scale) => {
    stroke(context, colours.muted, scale, [5, 4]);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.fillStyle = colours.muted;
    context.font = scaledFont(colours, scale);
    context.textAlign = "left";
    write(context, `${word} ${measured(value)}`, left + 6 * scale, y - 5 * scale, colours, scale);
  });
}

/** Draws with a clip to the plot's area; scale is pixels for each CSS pixel. */
export function inside(plot, draw) {
  const { ctx: context, bbox } = plot;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  draw(context, uPlot.pxRatio * (plot.enlarged ?? 1));
  context.restore();
}

/** Writes on what was drawn before, so that it stays readable. */
export function write(context, text, x, y, colours, scale) {
  context.save();
  context.setLineDash([]);
  context.lineJoin = "round";
  context.lineWidth = 4 * scale;
  context.strokeStyle = colours.surface;
  context.strokeText(text, x, y);
  context.restore();
  context.fillText(text, x, y);
}

export function stroke(context, colour, scale, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = scale;
  context.setLineDash(dash.map((length) => length * scale));
}

export const scaledFont = (colours, scale) => colours.font.replace(/^\d+/, (size) => String(size * scale));

/** Words beside a point of a chart, over whatever the chart is drawn on. */
export class Tip {
  constructor(over) {
    this.over = over;
    this.words = make("div", { class: "chart-tip", hidden: true });
    this.ring = make("div", { class: "chart-ring", hidden: true });
    over.append(this.ring, this.words);
  }

  /** Shows the lines at a place in CSS pixels; with a ring around it, unless told otherwise. */
  show(lines, x, y, ringed = true) {
    show(this.words, true);
    show(this.ring, ringed);
    this.words.replaceChildren(...lines.map((line) => make("div", {}, line)));
    const { clientWidth: width, clientHeight: height } = this.over;
    this.words.style.left = `${Math.min(Math.max(0, x + 12), Math.max(0, width - this.words.offsetWidth))}px`;
    this.words.style.top = `${y + this.words.offsetHeight + 14 > height ? y - this.words.offsetHeight - 10 : y + 12}px`;
    this.ring.style.left = `${x}px`;
    this.ring.style.top = `${y}px`;
  }

  hide() {
    show(this.words, false);
    show(this.ring, false);
  }
}

/** How near the pointer has to be to what it is about, in CSS pixels. */
export const reach = 28;

/** The point nearest to a place, if it is within reach: place(point) is [x, y]. */
export function nearestTo(points, place, x, y) {
  let found = null;
  let best = reach * reach;
  for (const point of points) {
    const [left, top] = place(point);
    const distance = (left - x) ** 2 + (top - y) ** 2;
    if (distance < best) [best, found] = [distance, { point, x: left, y: top }];
  }
  return found;
}

/**
 * Tells about the point nearest to the pointer: points() lists {x, y}, lines
 * (point) says what to write, and open(point), if given, goes there on a click,
 * or a second tap.
 */
export function hover({ points, lines, open }) {
  let tip = null;
  let nearest = null;
  const over = new AbortController();

  function move(plot) {
    const { left, top } = plot.cursor;
    nearest = left >= 0 ? nearestTo(points(), (point) => [plot.valToPos(point.x, "x"), plot.valToPos(point.y, "y")], left, top) : null;
    plot.over.style.cursor = nearest && open ? "pointer" : "default";
    if (nearest) tip.show(lines(nearest.point), nearest.x, nearest.y);
    else tip.hide();
  }

  function point(plot, event) {
    if (event.pointerType === "touch") { // a mouse is followed by uPlot
      const { left, top } = plot.over.getBoundingClientRect();
      plot.setCursor({ left: event.clientX - left, top: event.clientY - top });
    }
    return nearest && `${nearest.point.x} ${nearest.point.y}`;
  }

  return {
    hooks: {
      init: (plot) => {
        tip = new Tip(plot.over);
        pointing(plot.over, {
          point: (event) => point(plot, event),
          leave: () => plot.setCursor({ left: -10, top: -10 }),
          open: open && (() => nearest && open(nearest.point)),
          end: over.signal,
        });
      },
      setCursor: move,
      destroy: () => over.abort(),
    },
  };
}

/** Fills a legend: entries {colour, text, hollow}. */
export function fillLegend(box, entries) {
  const key = JSON.stringify(entries);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...entries.map(({ colour, text, line, hollow }) => {
    const swatch = make("i", { class: line ? "swatch-line" : hollow ? "swatch-hollow" : "swatch", "aria-hidden": "true" });
    swatch.style.setProperty("--swatch", colour);
    return make("span", {}, swatch, text);
  }));
}

/** Writes a chart's remark, or hides its line. */
export function remark(line, text) {
  show(line, text !== "");
  setText(line, text);
}
