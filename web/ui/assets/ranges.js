// Fields that choose a range of each axis without a pointer: two sliders for
// numbers, boxes to tick for choices.
import { simplified } from "./brushes.js";
import { make, setText } from "./dom.js";

const fine = 1000; // steps of a slider

export class RangeFields {
  #shape = "";
  #axes = new Map(); // name -> what shows the brush

  /** changed(name, brush) is told what the reader chose; null: everything. */
  constructor(box, changed) {
    this.box = box;
    this.changed = changed;
  }

  /** Shows the axes [{scale}] with their brushes; fields that are there already stay, with the focus. */
  update(axes, brushes) {
    const shape = JSON.stringify(axes.map(({ scale }) => [scale.name, scale.choices ?? null, scale.missing ?? null]));
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#axes.clear();
      this.box.replaceChildren(...axes.map(({ scale }) => (scale.choices ? this.#choices(scale) : this.#numbers(scale))));
    }
    for (const { scale } of axes) this.#axes.get(scale.name)(scale, brushes.get(scale.name) ?? null);
  }

  #numbers(first) {
    let scale = first;
    const slider = (word) => make("input", { type: "range", min: "0", max: String(fine), step: "5", "aria-label": `${first.name} ${word}`, on: { input: () => change() } });
    const [low, high] = [slider("from"), slider("to")];
    const missing = first.missing ? make("input", { type: "checkbox", on: { change: () => change() } }) : null;
    const words = make("span", { class: "range-words" });
    const change = () => {
      // The slider that is moved pushes the other one along.
      if (Number(low.value) > Number(high.value)) (document.activeElement === low ? high : low).value = document.activeElement === low ? low.value : high.value;
      const brush = { low: Number(low.value) / fine, high: Number(high.value) / fine, missing: missing?.checked ?? false };
      say();
      this.changed(scale.name, simplified(scale, brush));
    };
    const say = () => {
      const [from, to] = [low, high].map((field) => scale.text(scale.back(Number(field.value) / fine)));
      low.setAttribute("aria-valuetext", from);
      high.setAttribute("aria-valuetext", to);
      setText(words, `${from} to ${to}`);
    };
    this.#axes.set(first.name, (now, brush) => {
      scale = now;
      low.value = String(Math.round((brush?.low ?? 0) * fine));
      high.value = String(Math.round((brush?.high ?? 1) * fine));
      if (missing) missing.checked = brush?.missing ?? true;
      say();
    });
    return make("fieldset", { class: "range" }, make("legend", {}, first.name), low, high, words, missing && make("label", { class: "check" }, missing, first.missing));
  }

  #choices(first) {
    let scale = first;
    const box = () => make("input", { type: "checkbox", on: { change: () => change() } });
    const boxes = first.choices.map(box);
    const missing = first.missing ? box() : null;
    const change = () => this.changed(scale.name, simplified(scale, {
      places: new Set(boxes.map((_, place) => place).filter((place) => boxes[place].checked)), missing: missing?.checked ?? false }));
    this.#axes.set(first.name, (now, brush) => {
      scale = now;
      boxes.forEach((one, place) => (one.checked = brush ? brush.places.has(place) : true));
      if (missing) missing.checked = brush?.missing ?? true;
    });
    const labelled = (field, text) => make("label", { class: "check" }, field, text);
    return make("fieldset", { class: "range" }, make("legend", {}, first.name), ...boxes.map((field, place) => labelled(field, first.choices[place])), missing && labelled(missing, first.missing));
  }
}
