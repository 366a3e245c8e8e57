// Parallel coordinates: an upright axis for each parameter and objective, and a
// line for each trial. Ranges of the axes are chosen with the pointer on the
// chart or with the fields below it; what lies in all of them is listed.
import { between, inWords, wants } from "./brushes.js";
import { Canvas, fitted, line } from "./canvas.js";
import { fillLegend, palette, remark, Tip } from "./chart.js";
import { byId, make, setText, show } from "./dom.js";
import { offerDownloads } from "./download.js";
import { count, measured, several } from "./format.js";
import { pointing } from "./pointing.js";
import { RangeFields } from "./ranges.js";
import { rankLegend, shade } from "./rung-measurements.js";

const roomy = 96; // CSS pixels an axis needs
const near = { mouse: 14, pen: 14, touch: 16 }; // CSS pixels from an axis where a pointer takes hold of it
const listed = 10;

export class Parallel {
  #axes = [];
  #brushes = new Map(); // axis name -> brush
  #wanted = [];
  #drag = null;
  #dragged = false; // so that the click at its end opens nothing
  #all = false;
  #measurements = null;

  /** brushes(changed) is told the brushes by axis when the reader has changed them; link(number) is the address of a trial. */
  constructor(study, { changed, link }) {
    this.study = study;
    this.changed = changed;
    this.link = link;
    this.canvas = new Canvas(byId("parallel-chart"), 380, (context, size) => this.#paint(context, size));
    this.tip = new Tip(byId("parallel-chart"));
    this.fields = new RangeFields(byId("parallel-ranges"), (name, brush) => this.#brush(name, brush));
    byId("parallel-clear").addEventListener("click", () => {
      this.#brushes.clear();
      this.fields.update(this.#axes, this.#brushes);
      this.#refresh();
    });
    byId("parallel-more").addEventListener("click", () => {
      this.#all = !this.#all;
      this.#list();
    });
    const { element } = this.canvas;
    pointing(element, { point: (event) => this.#move(event), leave: () => this.#point(null), open: (event) => this.#open(event) });
    element.addEventListener("pointerdown", (event) => this.#press(event));
    element.addEventListener("pointerup", () => this.#release());
    element.addEventListener("pointercancel", () => (this.#drag = null));
    // A finger that comes down on an axis draws a range, and anywhere else scrolls.
    element.addEventListener("touchstart", (event) => {
      if (event.touches.length === 1 && this.#axisAt(this.canvas.place(event.touches[0])[0], near.touch)) event.preventDefault();
    }, { passive: false });
    offerDownloads(byId("parallel"), { of: study.name, where: () => this.#measurements.where(), name: "parallel-coordinates", tables: [["Trials", () => this.#measurements.table([["in_ranges", (row) => this.#wants(row)]])]] });
  }

  /** Takes brushes by axis, as an address has them: decode(scale) returns one or null. */
  restore(decode) {
    this.decode = decode;
  }

  draw(measurements) {
    this.#measurements = measurements;
    const objectives = this.study.definition.objective.map((_, place) => ({ scale: measurements.valueScale(place).scale, value: (row) => row.values[place] }));
    this.#axes = [...measurements.scales.map((scale, place) => ({ scale, value: (row) => row.parameters[place] })), ...objectives];
    if (this.decode) {
      for (const { scale } of this.#axes) {
        const brush = this.decode(scale);
        if (brush) this.#brushes.set(scale.name, brush);
      }
      this.decode = null;
    }
    this.fields.update(this.#axes, this.#brushes);
    this.canvas.least = this.#axes.length * roomy;
    this.#refresh(false);
  }

  #wants(row) {
    return this.#axes.every(({ scale, value }) => wants(scale, this.#brushes.get(scale.name), value(row)));
  }

  #brush(name, brush) {
    if (brush) this.#brushes.set(name, brush);
    else this.#brushes.delete(name);
    this.#refresh();
  }

  #refresh(byReader = true) {
    const { rows } = this.#measurements;
    this.#wanted = rows.filter((row) => this.#wants(row)).sort((a, b) => a.rank - b.rank);
    if (byReader) this.changed(this.#brushes);
    const ranges = this.#axes.filter(({ scale }) => this.#brushes.has(scale.name)).map(({ scale }) => `${scale.name} ${inWords(scale, this.#brushes.get(scale.name))}`);
    const what = ranges.length > 0 ? `${count(this.#wanted.length)} of ${count(rows.length)} trials have ${ranges.join(", ")}.` : `${rows.length === 1 ? "1 trial" : `All ${count(rows.length)} trials`}. Drag along an axis to choose a range of it.`;
    setText(byId("parallel-state"), what);
    show(byId("parallel-clear"), ranges.length > 0);
    this.canvas.draw(`${several(rows.length, "trial")} over ${this.#axes.map(({ scale }) => scale.name).join(", ")}. ${what} The table below has them.`);
    const { outside } = this.#measurements.valueScale();
    remark(byId("parallel-note"), [this.#measurements.chosen(), outside > 0 ? `${outside} ${outside === 1 ? "value is" : "values are"} beyond the end of the axis and drawn there.` : ""].filter(Boolean).join(" "));
    fillLegend(byId("parallel-legend"), rankLegend(palette()));
    this.#list();
  }

  #list() {
    const { study } = this;
    const { scales } = this.#measurements;
    const shown = this.#wanted.slice(0, this.#all ? 200 : listed);
    const objectives = study.definition.objective.map((_, place) => this.#measurements.valueScale(place).scale);
    const head = ["Place", "Trial", ...objectives.map((scale) => scale.name), ...scales.map((scale) => scale.name)];
    byId("parallel-list").replaceChildren(
      make("thead", {}, make("tr", {}, ...head.map((text, place) => make("th", { scope: "col", class: place === 1 ? "" : "number" }, text)))),
      make("tbody", {}, ...shown.map((row) => make("tr", {},
        make("td", { class: "number" }, count(row.rank)),
        make("th", { scope: "row" }, make("a", { href: this.link(row.number) }, `#${row.number}`)),
        ...row.values.map((value) => make("td", { class: "number", title: String(value) }, measured(value), row.violation > 0 && value === row.value ? make("span", { class: "tag" }, "infeasible") : null)),
        ...scales.map((scale, place) => make("td", { class: Number.isNaN(row.parameters[place]) ? "number muted" : "number" }, scale.text(row.parameters[place])))))));
    show(byId("parallel-frame"), shown.length > 0);
    show(byId("parallel-more"), this.#wanted.length > listed);
    setText(byId("parallel-more"), this.#all ? `Show the best ${listed}` : `Show ${this.#wanted.length > 200 ? "the best 200" : `all ${this.#wanted.length}`}`);
  }

  // Where things stand.

  #x(place, { width }) {
    const [left, right] = [46, width - 58];
    return this.#axes.length > 1 ? left + (place / (this.#axes.length - 1)) * (right - left) : (left + right) / 2;
  }

  #span({ height }) {
    const lane = this.#axes.some(({ scale }) => scale.missing) ? 26 : 8;
    return { top: 34, bottom: height - lane };
  }

  #y(scale, value, size) {
    const { top, bottom } = this.#span(size);
    if (Number.isNaN(value)) return bottom + 14;
    return bottom - Math.min(1, Math.max(0, scale.at(value))) * (bottom - top);
  }

  #unit(y) {
    const { top, bottom } = this.#span(this.canvas);
    return (bottom - y) / (bottom - top);
  }

  // Drawing.

  #paint(context, size) {
    if (!this.#measurements) return;
    const { colours } = size;
    const wanted = new Set(this.#wanted);
    context.lineJoin = "round";
    const rows = [...this.#measurements.rows].sort((a, b) => b.rank - a.rank);
    context.globalAlpha = 0.8;
    for (const row of rows) if (!wanted.has(row)) this.#trace(context, size, row, colours.line, 1);
    context.globalAlpha = rows.length > 400 ? 0.55 : 0.8;
    for (const row of rows) if (wanted.has(row)) this.#trace(context, size, row, shade(colours, row.good), row.rank === 1 ? 2.5 : 1.25);
    context.globalAlpha = 1;
    this.#axes.forEach((axis, place) => this.#axis(context, size, axis, place));
  }

  #trace(context, size, row, colour, width) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    this.#axes.forEach(({ scale, value }, place) => context.lineTo(this.#x(place, size), this.#y(scale, value(row), size)));
    context.stroke();
  }

  #axis(context, size, { scale }, place) {
    const { colours } = size;
    const x = this.#x(place, size);
    const { top, bottom } = this.#span(size);
    line(context, colours.muted, x, top, x, bottom);
    const brush = this.#brushes.get(scale.name);
    if (brush) this.#handle(context, size, scale, brush, x);
    context.textBaseline = "middle";
    context.textAlign = "left";
    const ticks = scale.ticks(6);
    const texts = ticks.map(({ at, text }) => ({ y: bottom - at * (bottom - top), text }));
    if (scale.missing) texts.push({ y: bottom + 14, text: scale.missing });
    for (const { y, text } of texts) {
      line(context, colours.muted, x, y, x + 4, y);
      this.#written(context, colours, fitted(context, text, 62), x + 7, y, colours.muted);
    }
    context.textAlign = place === 0 ? "left" : place === this.#axes.length - 1 ? "right" : "center";
    const edge = place === 0 ? -40 : place === this.#axes.length - 1 ? 54 : 0;
    context.font = `600 ${colours.font}`;
    this.#written(context, colours, fitted(context, scale.name, this.#room(size)), x + edge, 14, colours.text);
    context.font = colours.font;
  }

  #room(size) {
    return this.#axes.length > 1 ? this.#x(1, size) - this.#x(0, size) - 8 : size.width;
  }

  #written(context, colours, text, x, y, colour) {
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = colours.surface;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  /** What is chosen of an axis, as a box on it. */
  #handle(context, size, scale, brush, x) {
    const { colours } = size;
    const { top, bottom } = this.#span(size);
    const box = (high, low) => {
      context.globalAlpha = 0.25;
      context.fillStyle = colours.accent;
      context.fillRect(x - 6, high, 12, low - high);
      context.globalAlpha = 1;
      context.strokeStyle = colours.accent;
      context.lineWidth = 1.5;
      context.strokeRect(x - 6, high, 12, low - high);
    };
    const y = (unit) => bottom - unit * (bottom - top);
    if (brush.places) for (const place of brush.places) box(y(scale.at(place)) - 7, y(scale.at(place)) + 7);
    else box(y(brush.high), Math.max(y(brush.low), y(brush.high) + 2));
    if (brush.missing) box(bottom + 7, bottom + 21);
  }

  // The pointer.

  #axisAt(x, within) {
    const place = this.#axes.findIndex((_, index) => Math.abs(this.#x(index, this.canvas) - x) <= within);
    return place < 0 ? null : this.#axes[place];
  }

  #press(event) {
    this.#dragged = false;
    const [x, y] = this.canvas.place(event);
    const axis = this.#axisAt(x, near[event.pointerType] ?? near.mouse);
    if (event.button !== 0 || !event.isPrimary || !axis) return;
    this.#drag = { axis, from: y, moved: false };
    this.canvas.element.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  #move(event) {
    const [x, y] = this.canvas.place(event);
    if (!this.#drag) return this.#point([x, y], near[event.pointerType]);
    this.#drag.moved ||= Math.abs(y - this.#drag.from) > 3;
    if (!this.#drag.moved) return null;
    const { scale } = this.#drag.axis;
    this.#brush(scale.name, between(scale, this.#unit(this.#drag.from), this.#unit(y)));
    this.fields.update(this.#axes, this.#brushes);
    return null;
  }

  #release() {
    const drag = this.#drag;
    this.#drag = null;
    this.#dragged = drag !== null;
    if (!drag || drag.moved) return;
    this.#brush(drag.axis.scale.name, null);
    this.fields.update(this.#axes, this.#brushes);
  }

  #open(event) {
    const row = this.#dragged ? null : this.#nearest(this.canvas.place(event));
    if (row) location.assign(this.link(row.number));
  }

  /** Shows the line under the pointer, and returns its trial's number, or null. */
  #point(at, within = near.mouse) {
    const axis = at && this.#axisAt(at[0], within);
    const row = at && !axis ? this.#nearest(at) : null;
    this.canvas.element.style.cursor = axis ? "ns-resize" : row ? "pointer" : "default";
    if (!row) {
      this.tip.hide();
      this.canvas.overlay(() => {});
      return null;
    }
    this.canvas.overlay((context, size) => this.#trace(context, size, row, size.colours.strong, 2.5));
    this.tip.show(this.#measurements.lines(row), at[0], at[1], false);
    return row.number;
  }

  /** The wanted trial whose line passes nearest to a place, if it does within 8 pixels. */
  #nearest([x, y]) {
    const size = this.canvas;
    const right = this.#axes.findIndex((_, place) => this.#x(place, size) > x);
    if (right <= 0) return null;
    const [a, b] = [this.#axes[right - 1], this.#axes[right]];
    const part = (x - this.#x(right - 1, size)) / (this.#x(right, size) - this.#x(right - 1, size));
    let [best, found] = [8, null];
    for (const row of this.#wanted) {
      const height = this.#y(a.scale, a.value(row), size) * (1 - part) + this.#y(b.scale, b.value(row), size) * part;
      if (Math.abs(height - y) < best) [best, found] = [Math.abs(height - y), row];
    }
    return found;
  }
}
