// Which trials the leaderboard shows. The choice is kept in the address, so
// that it survives a reload and can be sent to somebody.
import { byId, make, setText, show } from "./dom.js";
import { budget } from "./format.js";
import { states } from "./trials.js";

export class Filter {
  /** changed() is called after each change. */
  constructor(study, changed) {
    const asked = new URLSearchParams(location.search);
    this.query = byId("filter-query");
    this.wrong = ""; // the query that the server refused last
    this.state = byId("filter-state");
    this.rung = byId("filter-rung");
    this.state.append(
      make("option", { value: "" }, "All states"),
      make("option", { value: "active" }, "Active"),
      ...states.map((state) => make("option", { value: state }, state)),
    );
    this.rung.append(
      make("option", { value: "" }, "All rungs"),
      ...study.rungs.map((rung) => make("option", { value: String(rung.index) }, `Rung ${rung.index}: ${budget(rung.budget, true)}`)),
    );
    this.query.value = asked.get("query") ?? "";
    this.state.value = asked.get("state") ?? "";
    this.rung.value = asked.get("rung") ?? "";
    // A value from an old address that no option has selects nothing at all.
    for (const list of [this.state, this.rung]) if (list.selectedIndex < 0) list.value = "";
    for (const done of ["change", "search"]) { // not while it is typed: half a query is wrong
      this.query.addEventListener(done, () => {
        this.refuse(null);
        changed();
      });
    }
    this.state.addEventListener("change", changed);
    this.rung.addEventListener("change", changed);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
  }

  get active() {
    return this.query.value.trim() !== "" || this.state.value !== "" || this.rung.value !== "";
  }

  clear() {
    this.query.value = this.state.value = this.rung.value = "";
  }

  /** What goes into the address. */
  parameters() {
    return { query: this.query.value.trim(), state: this.state.value, rung: this.rung.value };
  }

  /** What is asked of the server: a query that it refused is left out. */
  asked() {
    const all = this.parameters();
    return { ...all, query: all.query === this.wrong ? "" : all.query };
  }

  /** Shows what is wrong with the query, and reports whether that is the error. */
  refuse(error) {
    const fault = error?.fields?.find((field) => field.path === "query");
    this.wrong = fault ? this.query.value.trim() : "";
    this.query.toggleAttribute("aria-invalid", Boolean(fault));
    setText(byId("query-error"), fault ? `All trials are shown, as the query is not valid: ${fault.message}` : "");
    show(byId("query-error"), Boolean(fault));
    return Boolean(fault);
  }
}
