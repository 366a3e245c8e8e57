// The recommendation: the leading configuration, ready to be used elsewhere.
import { address, referenceOf, studyPath } from "./api.js";
import { copyButton } from "./copy.js";
import { byId, fillFacts, make } from "./dom.js";
import { budget, bytes, duration, energy, infeasible, measured, parameter, sentence } from "./format.js";
import { margin } from "./repeats.js";
import * as snippets from "./snippets.js";

/** Shows a recommendation; does nothing if it is the one shown already. */
export class Answer {
  #shown = "";
  #form = "json";

  /** findFailed() answers the newest trial that failed, or undefined, as a promise; a guest may download no checkpoint. */
  constructor(study, findFailed, guest) {
    this.study = study;
    this.findFailed = findFailed;
    this.guest = guest;
    this.box = byId("answer-body");
  }

  draw(answer) {
    if (!answer.best) {
      this.#none(answer);
      return;
    }
    const key = JSON.stringify(answer, (name, value) => (typeof value === "bigint" ? String(value) : value));
    if (key === this.#shown) return;
    this.#shown = key;
    this.box.replaceChildren(this.#lead(answer), this.#parameters(answer), this.#copy(answer), this.#facts(answer), this.#notes(answer));
  }

  /** What to do where nothing was measured. */
  async #none({ status }) {
    const say = (...words) => this.box.replaceChildren(make("p", { class: "muted" }, ["running", "paused"].includes(status) ? "Nothing yet: the first measured trial will stand here. " : "Nothing was measured. ", ...words));
    if (!this.failed) say();
    this.failed ??= await this.findFailed().catch(() => undefined); // the next event asks again
    if (this.#shown === "" && this.failed) say("The log of ", make("a", { href: studyPath(referenceOf(this.study), `/trials/${this.failed.number}`) }, `trial ${this.failed.number}`), " tells why it failed.");
  }

  #lead({ best, pareto, full_budget: full }) {
    const further = (pareto?.objectives ?? []).slice(1).flatMap((one, index) => [` · ${one.name} `, make("strong", {}, measured(best.values?.[index + 1]) + margin(best.repeated, index + 1))]);
    return make("p", { class: "answer-lead" },
      make("a", { href: studyPath(referenceOf(this.study), `/trials/${best.number}`) }, `Trial ${best.number}`),
      ` · ${best.metric} `, make("strong", {}, measured(best.value) + margin(best.repeated)), ...further,
      best.repeated?.results > 1 ? make("span", { class: "tag", title: `trials ${best.repeated.trials.join(", ")}: the same parameters with other seeds; ± is the standard error of the mean` }, `mean of ${best.repeated.results}`) : null,
      best.violation ? make("span", { class: "tag", title: "by how much it misses the constraints, in parts of their bounds" }, infeasible(best.violation)) : null,
      best.estimated ? make("span", { class: "tag", title: "joules that are an estimate went into the value" }, "estimate") : null,
      make("span", { class: full ? "tag good" : "tag" }, full ? "full budget" : budget(best.budget, true)));
  }

  #parameters({ best, system }) {
    const row = (name, kind, value, type) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "muted" }, kind), make("td", { class: "number", title: String(value) }, parameter(value, type)));
    const tuned = this.study.definition.space.parameters.filter((one) => one.name in best.params);
    return make("table", { class: "plain" },
      make("caption", { class: "unseen" }, "Recommended parameters"),
      make("tbody", {},
        ...tuned.map((one) => row(one.name, one.kind, best.params[one.name], one.type)),
        ...Object.entries(system ?? {}).map(([name, value]) => row(name, "system", value))));
  }

  #copy({ best, system }) {
    const { definition } = this.study;
    const forms = {
      json: ["JSON", snippets.json(definition, best), ""],
      python: ["Python", snippets.python(definition, best, system), "Trains with these values outside of a study, with the Python client."],
      shell: ["Shell", snippets.shell(definition, best, system), "For scripts that read the TANDEM_ variables themselves. With the Python client, take the Python form."],
    };
    const code = make("pre", { class: "code", tabindex: "0", "aria-label": "Recommended configuration" });
    const hint = make("p", { class: "chart-note" });
    const buttons = Object.keys(forms).filter((form) => forms[form][1] !== null).map((form) =>
      make("button", { type: "button", class: "small", data: { form }, on: { click: () => choose(form) } }, forms[form][0]));
    const choose = (form) => {
      this.#form = form;
      code.textContent = forms[form][1];
      hint.textContent = forms[form][2];
      hint.hidden = forms[form][2] === "";
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.form === form));
    };
    choose(forms[this.#form][1] === null ? "json" : this.#form);
    return make("div", { class: "copy" },
      make("div", { class: "copy-head" }, make("span", { class: "choice", role: "group", "aria-label": "Form" }, ...buttons), copyButton(() => code.textContent)),
      code, hint);
  }

  #facts({ best, metrics, checkpoint, seconds, energy: spent }) {
    const used = energy(spent);
    const list = make("dl", { class: "facts" });
    fillFacts(list, [
      ...Object.entries(metrics ?? {}).filter(([name]) => name !== best.metric).map(([name, value]) => [name, measured(value)]),
      ["Training time", duration(seconds)],
      ...(used ? [["Energy", make("span", { title: used.method }, used.text, used.estimate ? make("span", { class: "tag" }, "estimate") : null)]] : []),
      ...(checkpoint && !this.guest ? [["Checkpoint", make("a", { href: address(`/artifacts/${checkpoint.artifact}`), download: `trial-${best.number}-epoch-${checkpoint.epoch}.tar` }, `epoch ${checkpoint.epoch}, ${bytes(checkpoint.bytes)}`)]] : []),
    ]);
    return list;
  }

  #notes({ notes }) {
    return make("ul", { class: "notes" }, ...(notes ?? []).map((note) => make("li", {}, sentence(note).replace(/\.?$/, "."))));
  }
}
