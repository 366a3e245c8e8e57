// The leaderboard: a table that the server sorts, filters and pages, and that
// changes while it is read. Rows are kept and moved, never drawn anew, so that the
// reader's place, selection and focus survive an update.
import { get, kept } from "./api.js";
import { byId, make, setText, show, showError, throttled } from "./dom.js";
import { ColumnChoice } from "./column-choice.js";
import { columns } from "./columns.js";
import { Comparison } from "./comparison.js";
import { count } from "./format.js";
import { Filter } from "./filter.js";
import { Trials } from "./trials.js";

const pageSize = 100;
// The answer to a question is shown at once; after an event the page is fetched
// again at most this often, in milliseconds. What the event itself tells of a row
// does not wait for that.
const refetch = 500;
const redraw = 100;

/** The query of the trials that the page's address asks for. */
export function asked(search) {
  const from = new URLSearchParams(search);
  const page = Math.max(0, (Number.parseInt(from.get("page"), 10) || 1) - 1);
  return queryOf({ query: (from.get("query") ?? "").trim(), state: from.get("state") ?? "", rung: from.get("rung") ?? "" },
    from.get("sort") ?? "rank", from.get("order") === "desc" ? "desc" : "asc", page);
}

function queryOf({ query: chosen, state, rung }, sort, order, page) {
  const query = new URLSearchParams({ sort, order, limit: pageSize, offset: page * pageSize });
  for (const [name, value] of Object.entries({ query: chosen, rung, state: state === "active" ? "queued,leased,running" : state })) if (value !== "") query.set(name, value);
  return "?" + query;
}

export class Board {
  #rows = new Map(); // trial number -> {row, cells, shown: text of each cell}
  #page = 0;
  #question = 0; // counts what the reader asked for: only answers to the newest are shown
  #shown = { question: -1, sequence: 0 }; // of the page that is shown
  #again;
  #redraw;

  /** address is that of the study's trials. */
  constructor(study, address) {
    this.address = address;
    this.trials = new Trials(study);
    this.none = study.definition.command?.length > 0
      ? "No trial yet. The first one starts as soon as a worker is free."
      : "No trial yet. The study has no command, so no worker starts one: run its trials from your own process, with optimize or with ask and tell.";
    this.comparison = new Comparison(study, () => this.#remember());
    this.all = columns(study, (trial) => this.comparison.box(trial.number));
    this.choice = new ColumnChoice(study, this.all, () => this.#choseColumns());
    const from = new URLSearchParams(location.search);
    this.sort = this.all.some((column) => column.id === from.get("sort") && !column.unsorted) ? from.get("sort") : "rank";
    this.order = from.get("order") === "desc" ? "desc" : "asc";
    this.#page = Math.max(0, (Number.parseInt(from.get("page"), 10) || 1) - 1);
    this.filter = new Filter(study, () => this.#ask(0));
    this.#again = throttled(refetch, () => this.#fetch(true));
    this.#redraw = throttled(redraw, () => this.#place(true));
    this.#head();
    this.#pager();
  }

  /** Shows the first page: the answer that was asked for before the study was known, if the query is the same. */
  async start(query, answer) {
    const own = this.#query();
    try {
      await this.#show(own === query ? answer : get(this.address + own), false, this.#question);
    } catch (error) {
      if (!this.filter.refuse(error)) throw error;
      await this.#show(get(this.address + this.#query()), false, this.#question);
    }
    this.#remember();
  }

  /** The last event that the page shown contains. */
  get sequence() {
    return this.#shown.sequence;
  }

  /** Takes an event of the study in. */
  apply(event) {
    if (this.trials.apply(event)) this.#redraw();
    if (event.kind === "trial_state" || event.kind === "report") this.#again();
  }

  #query() {
    return queryOf(this.filter.asked(), this.sort, this.order, this.#page);
  }

  /** Asks for a page because the reader wants it. */
  #ask(page) {
    this.#page = page;
    this.#remember();
    return this.#fetch(false);
  }

  async #fetch(live) {
    const frame = byId("board-frame");
    if (!live) {
      this.#question++;
      frame.setAttribute("aria-busy", "true");
    }
    const question = this.#question;
    try {
      await this.#show(get(this.address + this.#query()), live, question);
      showError(null, "board-error");
    } catch (error) {
      if (question === this.#question && this.filter.refuse(error)) this.#ask(0);
      else if (live) setTimeout(this.#again, 3000);
      else if (question === this.#question) showError(error, "board-error");
    }
    if (question === this.#question) frame.removeAttribute("aria-busy");
  }

  async #show(answer, live, question) {
    const page = await answer;
    if (question !== this.#question) return;
    if (question === this.#shown.question && page.sequence < this.#shown.sequence) return; // overtaken by a newer one
    this.#shown = { question, sequence: page.sequence };
    this.trials.take(page);
    const last = Math.max(0, Math.ceil(page.total / pageSize) - 1);
    if (this.#page > last) { // trials went, or the address was of another time
      await this.#ask(last);
      return;
    }
    this.#place(live);
    this.#say();
  }

  #head() {
    this.columns = this.choice.shown();
    this.heads = this.columns.map((column) => {
      if (kept || column.unsorted) return make("th", { scope: "col", class: classes(column) }, column.title); // a file cannot sort
      const button = make("button", { type: "button", title: column.help, on: { click: () => this.#sortBy(column) } }, column.title);
      return make("th", { scope: "col", class: classes(column) }, button);
    });
    byId("board").tHead.rows[0].replaceChildren(...this.heads);
    this.#mark();
  }

  #mark() {
    this.heads.forEach((head, index) => {
      if (this.columns[index].id === this.sort) head.setAttribute("aria-sort", this.order === "asc" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  }

  #sortBy(column) {
    if (this.sort === column.id) this.order = this.order === "asc" ? "desc" : "asc";
    else [this.sort, this.order] = [column.id, column.first ?? "asc"];
    this.#mark();
    this.#ask(0);
  }

  #choseColumns() {
    this.#head();
    for (const { row } of this.#rows.values()) row.remove();
    this.#rows.clear();
    this.#place(false);
    this.#remember();
  }

  #remember() {
    const address = new URL(location.href);
    const wanted = {
      ...this.filter.parameters(),
      sort: this.sort === "rank" ? "" : this.sort, order: this.order === "asc" ? "" : this.order,
      page: this.#page === 0 ? "" : String(this.#page + 1),
      hide: this.choice.hidden().join(","), compare: this.comparison.numbers().join(","),
    };
    for (const [name, value] of Object.entries(wanted)) value === "" ? address.searchParams.delete(name) : address.searchParams.set(name, value);
    history.replaceState(null, "", address);
  }

  #pager() {
    const turn = (by) => async () => {
      await this.#ask(this.#page + by);
      byId("board-frame").scrollTop = 0;
      byId("board-frame").scrollIntoView({ block: "nearest" });
    };
    this.back = make("button", { type: "button", on: { click: turn(-1) } }, "Previous");
    this.forth = make("button", { type: "button", on: { click: turn(1) } }, "Next");
    this.extent = make("span", { class: "muted" });
    byId("pager").replaceChildren(this.extent, this.back, this.forth);
  }

  /** Puts the rows in place; those that are new while the page is read are marked for a moment. */
  #place(live) {
    const body = byId("board").tBodies[0];
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const trials = this.trials.rows();
    const wanted = new Set(trials.map((trial) => trial.number));
    for (const [number, { row }] of this.#rows) {
      if (wanted.has(number)) continue;
      row.remove();
      this.#rows.delete(number);
    }
    trials.forEach((trial, index) => {
      const { row } = this.#row(trial, live);
      if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
    });
    // Moving a row takes the focus out of it.
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  #row(trial, live) {
    let entry = this.#rows.get(trial.number);
    if (!entry) {
      const cells = this.columns.map((column) => make(column.id === "number" ? "th" : "td", { class: classes(column), scope: column.id === "number" ? "row" : null }));
      entry = { row: make("tr", { data: { number: trial.number } }, ...cells), cells, shown: [] };
      this.#rows.set(trial.number, entry);
      if (live) entry.row.classList.add("fresh");
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

  #say() {
    const { total: matching, all } = this.trials;
    const empty = byId("board-empty");
    show(empty, matching === 0);
    show(byId("board-frame"), all > 0);
    if (matching === 0) {
      setText(empty, all === 0 ? this.none : "No trial matches. Clear the search, the query and the lists above to see all.");
    }
    const start = this.#page * pageSize;
    const pages = Math.max(1, Math.ceil(matching / pageSize));
    const inAll = this.filter.active ? ` (${count(all)} in all)` : "";
    const which = pages > 1 ? `${count(start + 1)} to ${count(Math.min(start + pageSize, matching))} of ${count(matching)} trials` : `${count(matching)} ${matching === 1 ? "trial" : "trials"}`;
    setText(this.extent, which + inAll);
    show(this.back, pages > 1);
    show(this.forth, pages > 1);
    this.back.disabled = this.#page === 0;
    this.forth.disabled = this.#page >= pages - 1;
  }
}

const classes = (column) => [column.numeric ? "number" : "", column.parameter ? "parameter" : "", column.wide ? "roomy" : ""].filter(Boolean).join(" ") || null;

function flash(cell) {
  cell.classList.remove("changed");
  void cell.offsetWidth; // starts the animation again
  cell.classList.add("changed");
}
