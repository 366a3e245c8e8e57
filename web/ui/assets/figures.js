// The row of figures at the top of a page. Each is {id, term, value, detail}:
// what is shown is changed in place, so that a screen reader keeps its spot.
import { make, setText } from "./dom.js";

export class Figures {
  #shown = new Map();

  constructor(list) {
    this.list = list;
  }

  /** detail is text, or a node with a key that tells when it changed. */
  set(id, { term, value, estimate = false, detail = "", key = detail, title = "" }) {
    let entry = this.#shown.get(id);
    if (!entry) {
      entry = { term: make("dt"), value: make("span"), tag: make("span", { class: "tag" }, "estimate"), detail: make("dd", { class: "detail" }), key: null };
      this.list.append(make("div", { data: { figure: id } }, entry.term, make("dd", { class: "value" }, entry.value, entry.tag), entry.detail));
      this.#shown.set(id, entry);
    }
    setText(entry.term, term);
    setText(entry.value, value);
    entry.value.title = title;
    entry.tag.hidden = !estimate;
    if (entry.key !== key) entry.detail.replaceChildren(detail);
    entry.key = key;
  }
}
