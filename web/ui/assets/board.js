// The leaderboard: a table that sorts, filters, pages and changes while it is
// read. Rows are kept and moved, never drawn anew, so that the reader's place,
// selection and focus survive an update.
import { byId, make, setText, show } from "./dom.js";
import { columns, compareKeys } from "./columns.js";
import { count } from "./format.js";
import { Filter } from "./filter.js";

const pageSize = 100;

export class Board {
  #rows = new Map(); // trial number -> {row, shown: text of each cell}
  #page = 0;
  #first = true;

  constructor(study, trials) {
    this.trials = trials;
    this.columns = columns(study);
    const asked = new URLSearchParams(location.search);
    this.sort = this.columns.some((column) => column.id === asked.get("sort")) ? asked.get("sort") : "rank";
    this.order = asked.get("order") === "desc" ? "desc" : "asc";
    this.#page = Math.max(0, (Number.parseInt(asked.get("page"), 10) || 1) - 1);
    this.filter = new Filter(study, () => this.#chosen());
    this.#head();
    this.#pager();
  }

  #head() {
    this.heads = this.columns.map((column) => {
      const button = make("button", { type: "button", title: column.help, on: { click: () => this.#sortBy(column) } }, column.title);
      return make("th", { scope: "col", class: classes(column) }, button);
    });
    byId("board").tHead.rows[0].replaceChildren(...this.heads);
  }

  #sortBy(column) {
    if (this.sort === column.id) this.order = this.order === "asc" ? "desc" : "asc";
    else [this.sort, this.order] = [column.id, column.first ?? "asc"];
    this.#chosen();
  }

  #chosen() {
    this.#page = 0;
    this.draw();
    this.#remember();
  }

  #remember() {
    const address = new URL(location.href);
    const wanted = {
      ...this.filter.parameters(),
      sort: this.sort === "rank" ? "" : this.sort, order: this.order === "asc" ? "" : this.order,
      page: this.#page === 0 ? "" : String(this.#page + 1),
    };
    for (const [name, value] of Object.entries(wanted)) value === "" ? address.searchParams.delete(name) : address.searchParams.set(name, value);
    history.replaceState(null, "", address);
  }

  #pager() {
    const turn = (by) => () => {
      this.#page += by;
      this.draw();
      this.#remember();
      byId("board-frame").scrollIntoView({ block: "nearest" });
    };
    this.back = make("button", { type: "button", on: { click: turn(-1) } }, "Previous");
    this.forth = make("button", { type: "button", on: { click: turn(1) } }, "Next");
    this.extent = make("span", { class: "muted" });
    byId("pager").replaceChildren(this.extent, this.back, this.forth);
  }

  #selected() {
    const list = this.trials.ranked().filter(this.filter.matcher());
    const { key } = this.columns.find((column) => column.id === this.sort);
    const sign = this.order === "desc" ? -1 : 1;
    // Whatever the order: NaN comes behind every value, and what has no value last.
    const sortable = list.map((trial) => ({ trial, key: key(trial), behind: behind(key(trial)) }));
    sortable.sort((a, b) => a.behind - b.behind || (a.behind === 0 ? sign * compareKeys(a.key, b.key) : 0));
    return sortable.map(({ trial }) => trial);
  }

  /** Draws the present page. */
  draw() {
    const list = this.#selected();
    const pages = Math.max(1, Math.ceil(list.length / pageSize));
    this.#page = Math.min(this.#page, pages - 1);
    const start = this.#page * pageSize;
    this.heads.forEach((head, index) => {
      const sorted = this.columns[index].id === this.sort;
      if (sorted) head.setAttribute("aria-sort", this.order === "asc" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    this.#place(list.slice(start, start + pageSize));
    this.#say(list.length, start, pages);
    this.#first = false;
  }

  #place(trials) {
    const body = byId("board").tBodies[0];
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const wanted = new Set(trials.map((trial) => trial.number));
    for (const [number, { row }] of this.#rows) {
      if (wanted.has(number)) continue;
      row.remove();
      this.#rows.delete(number);
    }
    trials.forEach((trial, index) => {
      const { row } = this.#row(trial);
      if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
    });
    // Moving a row takes the focus out of it.
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  #row(trial) {
    let entry = this.#rows.get(trial.number);
    if (!entry) {
      const cells = this.columns.map((column) => make(column.id === "number" ? "th" : "td", { class: classes(column), scope: column.id === "number" ? "row" : null }));
      entry = { row: make("tr", { data: { number: trial.number } }, ...cells), cells, shown: [] };
      this.#rows.set(trial.number, entry);
      if (!this.#first) entry.row.classList.add("fresh");
    }
    this.columns.forEach((column, index) => {
      const text = column.text(trial);
      if (entry.shown[index] === text) return;
      if (entry.shown[index] !== undefined) flash(entry.cells[index]);
      entry.shown[index] = text;
      if (column.fill) column.fill(entry.cells[index], trial);
      else setText(entry.cells[index], text);
      if (column.hint) entry.cells[index].title = column.hint(trial) ?? "";
    });
    entry.row.classList.toggle("leader", trial.rank === 1);
    return entry;
  }

  #say(matching, start, pages) {
    const empty = byId("board-empty");
    show(empty, matching === 0);
    show(byId("board-frame"), matching > 0 || this.trials.size > 0);
    if (matching === 0) {
      setText(empty, this.trials.size === 0 ? "No trial yet. The first one starts as soon as a worker is free." : "No trial matches. Clear the search and the lists above to see all.");
    }
    const shown = Math.min(pageSize, matching - start);
    const all = this.filter.active ? ` (${count(this.trials.size)} in all)` : "";
    const which = pages > 1 ? `${count(start + 1)} to ${count(start + shown)} of ${count(matching)} trials` : `${count(matching)} ${matching === 1 ? "trial" : "trials"}`;
    setText(this.extent, which + all);
    show(this.back, pages > 1);
    show(this.forth, pages > 1);
    this.back.disabled = this.#page === 0;
    this.forth.disabled = this.#page >= pages - 1;
  }
}

const classes = (column) => [column.numeric ? "number" : "", column.parameter ? "parameter" : "", column.wide ? "roomy" : ""].filter(Boolean).join(" ") || null;

const behind = (key) => (key === undefined ? 2 : Number.isNaN(key) ? 1 : 0);

function flash(cell) {
  cell.classList.remove("changed");
  void cell.offsetWidth; // starts the animation again
  cell.classList.add("changed");
}
