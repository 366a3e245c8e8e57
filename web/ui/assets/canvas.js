// Charts that are drawn by our own code: a canvas in a box that follows its
// width, the screen's pixels and the colours, and a plane with two axes on it.
import { nearestTo, palette, Tip } from "./chart.js";
import { make } from "./dom.js";
import { drawnBy } from "./picture.js";
import { pointing } from "./pointing.js";

/** A canvas in a box. paint(context, {width, height, colours}) draws it, in CSS pixels. */
export class Canvas {
  constructor(box, height, paint) {
    this.box = box;
    this.height = height;
    this.paint = paint;
    this.least = 180; // CSS pixels of width
    this.element = make("canvas");
    this.above = make("canvas", { class: "above" });
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", "Nothing is drawn yet"); // draw() says what is
    box.append(this.element, this.above);
    this.drawn = false;
    drawnBy(box, (scale) => this.#render(make("canvas"), scale));
    new ResizeObserver(() => this.drawn && this.draw()).observe(box);
    addEventListener("themechange", () => this.drawn && this.draw());
  }

  get width() {
    return Math.max(this.least, this.box.clientWidth);
  }

  /** Draws what there is now; label says it in words. */
  draw(label) {
    if (label !== undefined) this.box.setAttribute("aria-label", label);
    this.drawn = true;
    this.box.style.minWidth = `${this.least}px`;
    this.#render(this.element, devicePixelRatio);
    this.#render(this.above, devicePixelRatio, () => {});
    for (const canvas of [this.element, this.above]) {
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${this.height}px`;
    }
  }

  /** Paints above what is drawn, until the next draw or overlay. */
  overlay(paint) {
    this.#render(this.above, devicePixelRatio, paint);
  }

  #render(canvas, scale, paint = this.paint) {
    const { width, height } = this;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const colours = palette();
    context.font = colours.font;
    paint(context, { width, height, colours });
    return canvas;
  }

  /** The pointer's place in CSS pixels. */
  place(event) {
    const { left, top } = this.element.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }
}

const lane = 48; // CSS pixels for what is not set

/**
 * Two axes with something between them. Its content is {x, y, paint, points,
 * lines, open}: x and y are scales; paint(context, at, colours) draws, with
 * at(x, y) a place of two units in pixels; points are {x, y, ...} to point at,
 * lines(point) says what to write, mark(context, at, colours, point), if there,
 * shows more of it, and open(point), if there, goes on.
 */
export class Plane {
  #content = null;
  #marked = null; // the point that more is shown of

  constructor(box, height) {
    this.canvas = new Canvas(box, height, (context, size) => this.#paint(context, size));
    this.tip = new Tip(box);
    pointing(this.canvas.element, {
      point: (event) => this.#point(event),
      leave: () => this.#leave(),
      open: (event) => {
        const near = this.#nearest(event);
        if (near && this.#content.open) this.#content.open(near.point);
      },
    });
  }

  draw(content, label) {
    this.#content = content;
    this.#marked = null;
    this.tip.hide();
    this.canvas.draw(label);
  }

  /** Where the axes are: what a value that is not set gets is beside them. */
  #area({ width, height }) {
    const { x, y } = this.#content;
    const [left, bottom] = [(y.choices ? 84 : 62) + (x.missing ? lane : 0), height - 40 - (y.missing ? 24 : 0)];
    return { left, top: 10, right: width - 14, bottom };
  }

  #at(size) {
    const { left, top, right, bottom } = this.#area(size);
    return (x, y) => [Number.isNaN(x) ? left - lane / 2 : left + x * (right - left), Number.isNaN(y) ? bottom + 14 : bottom - y * (bottom - top)];
  }

  #nearest(event) {
    const at = this.#at(this.canvas);
    return nearestTo(this.#content?.points ?? [], (point) => at(point.x, point.y), ...this.canvas.place(event));
  }

  /** Shows the point at a place; returns what tells it from others, or null. */
  #point(event) {
    const near = this.#nearest(event);
    this.canvas.element.style.cursor = near && this.#content.open ? "pointer" : "default";
    if (!near) {
      this.#leave();
      return null;
    }
    this.tip.show(this.#content.lines(near.point), near.x, near.y);
    const { mark } = this.#content;
    if (mark && this.#marked !== near.point) this.canvas.overlay((context, size) => mark(context, this.#at(size), size.colours, near.point));
    this.#marked = near.point;
    return `${near.point.x} ${near.point.y}`;
  }

  #leave() {
    this.tip.hide();
    if (this.#marked !== null) this.canvas.overlay(() => {});
    this.#marked = null;
  }

  #paint(context, size) {
    if (!this.#content) return;
    const { colours } = size;
    const { x, y, paint } = this.#content;
    const area = this.#area(size);
    this.#across(context, area, size, x, colours);
    this.#up(context, area, y, colours);
    context.save();
    context.beginPath();
    const [left, below] = [x.missing ? lane : 4, y.missing ? 24 : 4];
    context.rect(area.left - left, area.top - 4, area.right - area.left + left + 4, area.bottom - area.top + below + 4);
    context.clip();
    paint(context, this.#at(size), colours, area);
    context.restore();
  }

  #across(context, { left, top, right, bottom }, { height }, scale, colours) {
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const below = height - (this.#content.y.missing ? 22 : 26);
    let free = scale.missing ? left - lane / 2 + context.measureText(scale.missing).width / 2 + 6 : -Infinity;
    for (const { at, text } of scale.ticks(Math.floor((right - left) / 64))) {
      const x = left + at * (right - left);
      line(context, colours.line, x, top, x, bottom);
      const half = Math.min(context.measureText(text).width, 110) / 2;
      const place = Math.min(Math.max(x, free + half), right + 12 - half);
      if (Math.abs(place - x) > half || place - half < free - 0.5) continue;
      free = place + half + 8;
      context.fillStyle = colours.muted;
      context.fillText(fitted(context, text, 110), place, below);
    }
    context.fillStyle = colours.muted;
    if (scale.missing) {
      line(context, colours.edge, left - lane, top, left - lane, bottom);
      context.fillText(scale.missing, left - lane / 2, below);
    }
    context.fillText(fitted(context, scale.name, right - left), (left + right) / 2, height - 6);
  }

  #up(context, { left, top, right, bottom }, scale, colours) {
    const edge = left - (this.#content.x.missing ? lane : 0) - 6;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = colours.muted;
    let free = Infinity;
    for (const { at, text } of scale.ticks(Math.floor((bottom - top) / 34))) {
      const y = bottom - at * (bottom - top);
      line(context, colours.line, left, y, right, y);
      if (y > free) continue;
      free = y - 13;
      context.fillStyle = colours.muted;
      context.fillText(fitted(context, text, edge - 18), edge, y);
    }
    if (scale.missing) context.fillText(scale.missing, edge, bottom + 14);
    context.save();
    context.translate(9, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(fitted(context, scale.name, bottom - top), 0, 0);
    context.restore();
  }
}

/** A straight line of one CSS pixel. */
export function line(context, colour, x1, y1, x2, y2, width = 1) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** The text, cut to what fits. */
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let kept = text.length;
  while (kept > 1 && context.measureText(`${text.slice(0, kept)}…`).width > width) kept--;
  return `${text.slice(0, kept)}…`;
}

/** A dot; hollow ones have the surface inside. */
export function dot(context, x, y, radius, colour, hollow, surface) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = hollow ? surface : colour;
  context.fill();
  context.lineWidth = hollow ? 1.25 : 0.75;
  context.strokeStyle = hollow ? colour : surface;
  context.stroke();
}
