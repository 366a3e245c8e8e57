// Which studies the list shows, and in which order. The choice is kept in the
// address, so that it survives a reload and can be sent to somebody.
import { byId, make, setText, show } from "./dom.js";
import { number } from "./format.js";
import { label } from "./trials.js";

const text = (pick) => (a, b) => pick(a).localeCompare(pick(b));
const amount = (pick) => (a, b) => (pick(a) ?? -Infinity) - (pick(b) ?? -Infinity);

/** The orders by name; each is given with its first direction. */
const orders = {
  study: { by: text((study) => study.name), first: "asc" },
  owner: { by: text((study) => study.owner), first: "asc" },
  status: { by: text((study) => study.status), first: "asc" },
  trials: { by: amount((study) => study.progress.created), first: "desc" },
  best: { by: amount((study) => (study.progress.best ? number(study.progress.best.value) : undefined)), first: "desc" },
  metric: { by: text((study) => label(study.definition.objective[0])), first: "asc" },
  epochs: { by: amount((study) => study.progress.epochs), first: "desc" },
  seconds: { by: amount((study) => number(study.progress.elapsed_seconds)), first: "desc" },
  joules: { by: amount((study) => (study.progress.energy ? number(study.progress.energy.joules) : undefined)), first: "desc" },
  created: { by: text((study) => study.created), first: "desc" },
};
const usual = { sort: "created", order: "desc" };

/** The groups that a study is in; "" is the one of those without any. */
const groupsOf = {
  owner: (study) => [study.owner],
  tag: (study) => (study.tags?.length > 0 ? study.tags : [""]),
  status: (study) => [study.status],
  metric: (study) => [label(study.definition.objective[0])],
};

export class StudyList {
  /** changed() is called after each change of the choice. */
  constructor(table, changed) {
    this.changed = changed;
    this.find = byId("find");
    this.lists = { status: byId("only-status"), owner: byId("owner"), tag: byId("tag") };
    const asked = new URLSearchParams(location.search);
    this.find.value = asked.get("find") ?? "";
    this.wanted = Object.fromEntries(Object.keys(this.lists).map((name) => [name, asked.get(name) ?? ""]));
    this.group = byId("group");
    if (Object.hasOwn(groupsOf, asked.get("group"))) this.group.value = asked.get("group");
    this.sort = Object.hasOwn(orders, asked.get("sort")) ? asked.get("sort") : usual.sort;
    this.order = { asc: "asc", desc: "desc" }[asked.get("order")] ?? orders[this.sort].first;
    this.heads = [...table.tHead.querySelectorAll("th[data-sort]")];
    this.sorts = byId("sort"); // where the table has no heads: on a phone
    for (const head of this.heads) {
      this.sorts.append(make("option", { value: head.dataset.sort }, `Sort by ${head.firstChild.textContent.toLowerCase()}`));
      head.replaceChildren(make("button", { type: "button", on: { click: () => this.#sortBy(head.dataset.sort) } }, head.firstChild), ...head.childNodes);
    }
    this.sorts.addEventListener("change", () => this.#sortBy(this.sorts.value));
    byId("reverse").addEventListener("click", () => this.#sortBy(this.sort));
    this.group.addEventListener("change", () => this.#chose());
    byId("show-all").addEventListener("click", () => this.#showAll());
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
    return this.find.value.trim() !== "" || Object.values(this.wanted).some((value) => value !== "");
  }

  /** The studies that are shown, in order. */
  of(studies) {
    this.#offer("tag", studies.flatMap((study) => study.tags ?? []), "All tags");
    this.#offer("status", studies.map((study) => study.status), "All states");
    this.#offer("owner", studies.map((study) => study.owner), "All owners");
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (study) => [study.name, study.id, study.owner, study.definition.description, ...(study.tags ?? [])].join(" ").toLowerCase();
    const { by } = orders[this.sort];
    return studies
      .filter((study) => Object.entries(this.wanted).every(([name, value]) => value === "" || groupsOf[name](study).includes(value))
        && words.every((word) => text(study).includes(word)))
      .sort((a, b) => (this.order === "asc" ? by(a, b) : by(b, a)) || b.created.localeCompare(a.created));
  }

  /** The studies by group, in the order of the names: [name, studies]; without groups one, whose name is null. */
  grouped(studies) {
    const of = groupsOf[this.group.value];
    if (!of) return [[null, studies]];
    const names = [...new Set(studies.flatMap(of))].sort((a, b) => (a === "") - (b === "") || a.localeCompare(b));
    return names.map((name) => [name, studies.filter((study) => of(study).includes(name))]);
  }

  #showAll() {
    this.find.value = "";
    for (const name of Object.keys(this.wanted)) this.wanted[name] = "";
    this.#chose();
    this.find.focus();
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
    this.sorts.value = this.sort;
    setText(byId("reverse"), this.order === "asc" ? "↑" : "↓");
    for (const head of this.heads) {
      if (head.dataset.sort === this.sort) head.setAttribute("aria-sort", this.order === "asc" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }

  #chose() {
    const here = new URL(location.href);
    const asIs = this.sort === usual.sort && this.order === usual.order;
    const chosen = { find: this.find.value.trim(), ...this.wanted, group: this.group.value, sort: asIs ? "" : this.sort, order: asIs || this.order === orders[this.sort].first ? "" : this.order };
    for (const [name, value] of Object.entries(chosen)) {
      if (value === "") here.searchParams.delete(name);
      else here.searchParams.set(name, value);
    }
    history.replaceState(null, "", here);
    this.changed();
  }
}
