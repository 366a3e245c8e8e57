// Which columns the leaderboard has. The choice is remembered for the study, and
// is part of the address, which has the last word.
import { byId, make, setText } from "./dom.js";
import { wireMenu } from "./menu.js";

// What every reader needs to find a trial again.
const always = ["rank", "number"];

export class ColumnChoice {
  #hidden;

  /** changed() is called after each change. */
  constructor(study, columns, changed) {
    this.columns = columns;
    this.key = `tandem-hidden-columns-${study.id}`;
    const given = new URLSearchParams(location.search).get("hide");
    const known = columns.map((column) => column.id).filter((id) => !always.includes(id));
    this.#hidden = new Set((given ?? remembered(this.key)).split(",").filter((id) => known.includes(id)));
    this.#menu(changed);
  }

  /** The columns that are shown. */
  shown() {
    return this.columns.filter((column) => !this.#hidden.has(column.id));
  }

  /** The ids of the others. */
  hidden() {
    return this.columns.map((column) => column.id).filter((id) => this.#hidden.has(id));
  }

  #menu(changed) {
    const boxes = this.columns.filter((column) => !always.includes(column.id)).map((column) => {
      const box = make("input", { type: "checkbox" });
      box.checked = !this.#hidden.has(column.id);
      box.addEventListener("change", () => this.#choose(column.id, box.checked, changed));
      return { column, box };
    });
    const all = make("button", { type: "button", class: "small", on: { click: () => {
      this.#hidden.clear();
      boxes.forEach(({ box }) => (box.checked = true));
      this.#changed(changed);
    } } }, "Show all");
    const menu = byId("columns");
    this.summary = menu.querySelector("summary");
    menu.querySelector("fieldset").append(...boxes.map(({ column, box }) => make("label", {}, box, column.title)), all);
    wireMenu(menu);
    this.#say();
  }

  #choose(id, shown, changed) {
    if (shown) this.#hidden.delete(id);
    else this.#hidden.add(id);
    this.#changed(changed);
  }

  #changed(changed) {
    remember(this.key, this.hidden().join(","));
    this.#say();
    changed();
  }

  #say() {
    setText(this.summary, this.#hidden.size === 0 ? "Columns" : `Columns (${this.#hidden.size} hidden)`);
  }
}

function remembered(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

function remember(key, text) {
  try {
    localStorage.setItem(key, text);
  } catch {
    // Then the choice lasts as long as the address.
  }
}
