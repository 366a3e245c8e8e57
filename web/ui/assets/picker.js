// Choosing studies, on pages that show several: they stand in the address, one
// "study" each, in the reader's order.
import { referenceOf, studyPath } from "./api.js";
import { byId, make, show } from "./dom.js";
import { lineMark } from "./lines.js";
import { label } from "./trials.js";

/** What is asked for in the address; put(values) changes it. */
export class Address {
  #values = new URLSearchParams(location.search);

  /** changed() is called behind every change. */
  constructor(changed) {
    this.changed = changed;
  }

  get(name, otherwise = "") {
    return this.#values.get(name) ?? otherwise;
  }

  get studies() {
    return [...new Set(this.#values.getAll("study"))];
  }

  set studies(references) {
    this.#values.delete("study");
    for (const one of references) this.#values.append("study", one);
    this.#write();
  }

  /** Changes values by name; an empty one is taken out. */
  put(values) {
    for (const [name, value] of Object.entries(values)) {
      if (value === "") this.#values.delete(name);
      else this.#values.set(name, value);
    }
    this.#write();
  }

  toString() {
    return String(this.#values);
  }

  #write() {
    history.replaceState(null, "", this.#values.size > 0 ? `?${this.#values}` : location.pathname);
    this.changed();
  }
}

export class Picker {
  /** At most so many studies. */
  constructor(address, most) {
    this.address = address;
    this.most = most;
    byId("picker").addEventListener("submit", (event) => {
      event.preventDefault();
      if (byId("add").value) address.studies = [...this.chosen, byId("add").value];
    });
  }

  /** The studies to show. */
  get chosen() {
    return this.address.studies.slice(0, this.most);
  }

  /** all: every study there is; shown: [{reference, study, error}] as chosen. */
  draw(all, shown) {
    show(byId("chooser"), all.length > 0);
    const options = all.filter((study) => !this.chosen.includes(referenceOf(study))).map((study) => [referenceOf(study), `${referenceOf(study)} (${label(study.definition.objective[0])})`]);
    fillSelect(byId("add"), options, byId("add").value);
    const full = this.chosen.length >= this.most;
    byId("add").disabled = options.length === 0 || full;
    byId("add-button").disabled = byId("add").disabled;
    show(byId("full"), full);
    byId("picked").replaceChildren(...shown.map((one, place) => this.#item(one, place)));
  }

  #item({ reference, study, error }, place) {
    const others = () => this.chosen.filter((one) => one !== reference);
    return make("li", {},
      study ? lineMark(place) : null,
      study ? make("a", { href: studyPath(reference) }, study.name) : make("span", { class: "muted" }, `${reference}: ${error}`),
      study && study.owner !== "admin" ? make("span", { class: "muted" }, study.owner) : null,
      make("button", { type: "button", class: "quiet", "aria-label": `Take ${reference} out`, on: { click: () => (this.address.studies = others()) } }, "×"));
  }
}

/** The study that is meant: by its reference, its id, or its name alone; or undefined. */
export const findStudy = (studies, reference) => studies.find((study) => referenceOf(study) === reference || study.id === reference) ?? studies.find(({ name }) => name === reference);

/** Fills a list of choices [value, text] without taking it from a reader's hand. */
export function fillSelect(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...options.map(([one, text]) => make("option", { value: one }, text)));
  }
  if (options.some(([one]) => one === value)) select.value = value;
}
