// Which studies the list shows, and in which order. The choice is kept in the
// address, so that it survives a reload and can be sent to somebody.
import { byId, make, show } from "./dom.js";
import { number } from "./format.js";

const text = (pick) => (a, b) => pick(a).localeCompare(pick(b));
const amount = (pick) => (a, b) => (pick(a) ?? -Infinity) - (pick(b) ?? -Infinity);

/** The orders by name; each is given with its first direction. */
const orders = {
  study: { by: text((study) => study.name), first: "asc" },
  owner: { by: text((study) => study.owner), first: "asc" },
  status: { by: text((study) => study.status), first: "asc" },
  trials: { by: amount((study) => study.progress.created), first: "desc" },
  best: { by: amount((study) => (study.progress.best ? number(study.progress.best.value) : undefined)), first: "desc" },
  metric: { by: text((study) => study.definition.objective[0].metric ?? study.definition.objective[0].name), first: "asc" },
  epochs: { by: amount((study) => study.progress.epochs), first: "desc" },
  seconds: { by: amount((study) => number(study.progress.elapsed_seconds)), first: "desc" },
  joules: { by: amount((study) => (study.progress.energy ? number(study.progress.energy.joules) : undefined)), first: "desc" },
  created: { by: text((study) => study.created), first: "desc" },
};
const usual = { sort: "created", order: "desc" };

export class StudyList {
  /** changed() is called after each change of the choice. */
  constructor(table, changed) {
    this.changed = changed;
    this.find = byId("find");
    this.lists = { status: byId("only-status"), tag: byId("tag") };
    const asked = new URLSearchParams(location.search);
    this.find.value = asked.get("find") ?? "";
    this.wanted = { status: asked.get("status") ?? "", tag: asked.get("tag") ?? "" };
    this.sort = Object.hasOwn(orders, asked.get("sort")) ? asked.get("sort") : usual.sort;
    this.order = { asc: "asc", desc: "desc" }[asked.get("order")] ?? orders[this.sort].first;
    this.heads = [...table.tHead.querySelectorAll("th[data-sort]")];
    for (const head of this.heads) {
      head.replaceChildren(make("button", { type: "button", on: { click: () => this.#sortBy(head.dataset.sort) } }, head.firstChild), ...head.childNodes);
    }
    this.find.addEventListener("input", () => this.#chose());
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const [name, list] of Object.entries(this.lists)) {
      list.addEventListener("change", () => {
        this.wanted[name] = list.value;
        this.#chose();
      });
    }
    this.#mark();
  }

  /** Whether some studies may be left out. */
  get active() {
    return this.find.value.trim() !== "" || this.wanted.status !== "" || this.wanted.tag !== "";
  }

  /** The studies that are shown, in order. */
  of(studies) {
    this.#offer("tag", studies.flatMap((study) => study.tags ?? []), "All tags");
    this.#offer("status", studies.map((study) => study.status), "All states");
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (study) => [study.name, study.id, study.owner, study.definition.description, ...(study.tags ?? [])].join(" ").toLowerCase();
    const { by } = orders[this.sort];
    return studies
      .filter((study) => (this.wanted.status === "" || study.status === this.wanted.status)
        && (this.wanted.tag === "" || study.tags?.includes(this.wanted.tag))
        && words.every((word) => text(study).includes(word)))
      .sort((a, b) => (this.order === "asc" ? by(a, b) : by(b, a)) || b.created.localeCompare(a.created));
  }

  /** Offers what studies have; a list with one choice leaves nothing to choose. */
  #offer(name, has, all) {
    const [list, wanted] = [this.lists[name], this.wanted[name]];
    const words = [...new Set(wanted ? [...has, wanted] : has)].sort();
    show(list, words.length > (name === "tag" ? 0 : 1) || wanted !== "");
    const offered = ["", ...words];
    if (offered.join(" ") !== [...list.options].map((option) => option.value).join(" ")) {
      list.replaceChildren(...offered.map((word) => make("option", { value: word }, word === "" ? all : word)));
    }
    if (document.activeElement !== list) list.value = wanted;
  }

  #sortBy(name) {
    if (this.sort === name) this.order = this.order === "asc" ? "desc" : "asc";
    else [this.sort, this.order] = [name, orders[name].first];
    this.#mark();
    this.#chose();
  }

  #mark() {
    for (const head of this.heads) {
      if (head.dataset.sort === this.sort) head.setAttribute("aria-sort", this.order === "asc" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }

  #chose() {
    const here = new URL(location.href);
    const asIs = this.sort === usual.sort && this.order === usual.order;
    const chosen = { find: this.find.value.trim(), ...this.wanted, sort: asIs ? "" : this.sort, order: asIs || this.order === orders[this.sort].first ? "" : this.order };
    for (const [name, value] of Object.entries(chosen)) {
      if (value === "") here.searchParams.delete(name);
      else here.searchParams.set(name, value);
    }
    history.replaceState(null, "", here);
    this.changed();
  }
}
