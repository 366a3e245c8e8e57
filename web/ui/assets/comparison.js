// Choosing trials of the leaderboard to see them side by side. The choice stays
// while pages are turned, and is part of the address.
import { referenceOf, studyPath } from "./api.js";
import { byId, make, setText, show } from "./dom.js";

/** More curves than this cannot be told apart in one chart. */
export const mostCompared = 6;

/** The trials' numbers in a list such as "3,17": each once, the lowest first, none that is no number. */
export function numbersIn(text) {
  const numbers = (text ?? "").split(",").filter((one) => /^\d{1,9}$/.test(one)).map(Number);
  return [...new Set(numbers)].sort((a, b) => a - b).slice(0, mostCompared);
}

export class Comparison {
  #chosen;

  /** changed() is called after each change. */
  constructor(study, changed) {
    this.study = study;
    this.changed = changed;
    this.#chosen = new Set(numbersIn(new URLSearchParams(location.search).get("compare")));
    byId("compare-none").addEventListener("click", () => {
      this.#chosen.clear();
      this.#draw();
      byId("board-frame").focus();
    });
    this.#say();
  }

  /** The numbers of the chosen trials, the lowest first. */
  numbers() {
    return [...this.#chosen].sort((a, b) => a - b);
  }

  /** A box that chooses the trial. */
  box(number) {
    const box = make("input", { type: "checkbox", class: "pick", "aria-label": `Compare trial ${number}`, title: "Compare", data: { number } });
    box.addEventListener("change", () => {
      if (box.checked) this.#chosen.add(number);
      else this.#chosen.delete(number);
      this.#draw();
    });
    this.#mark(box);
    return make("label", {}, box);
  }

  #mark(box) {
    const number = Number(box.dataset.number);
    box.checked = this.#chosen.has(number);
    box.disabled = !box.checked && this.#chosen.size >= mostCompared;
  }

  #draw() {
    for (const box of document.querySelectorAll("#board .pick")) this.#mark(box);
    this.#say();
    this.changed();
  }

  #say() {
    const { size } = this.#chosen;
    const link = byId("compare");
    show(byId("compare-bar"), size > 0);
    show(link, size > 1);
    setText(byId("compare-note"), size === 1 ? `Trial ${this.numbers()[0]} is chosen. Choose others to compare.` : size >= mostCompared ? `At most ${mostCompared}.` : "");
    setText(link, `Compare ${size} trials`);
    link.href = studyPath(referenceOf(this.study), `/compare?trials=${this.numbers().join(",")}`);
  }
}
