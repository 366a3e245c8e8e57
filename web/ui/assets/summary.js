// A study in numbers: figures, ladder and set-up of the study's page.
import { studyPath } from "./api.js";
import { badge, byId, fillFacts, make, rungMark, setText, show, stackedBar } from "./dom.js";
import { Figures } from "./figures.js";
import { budget, count, duration, energy, measured, moment, nothing, parameter, roughly } from "./format.js";
import { states } from "./trials.js";

const over = (study) => ["completed", "stopped", "failed"].includes(study.status);

export class Summary {
  #figures = new Figures(byId("figures"));

  /** Shows a study's view; at is when it was fetched. */
  draw(study, at) {
    this.study = study;
    this.at = at;
    setText(byId("name"), study.name);
    document.title = `${study.name} · Tandem`;
    byId("status").replaceChildren(badge(study.status));
    byId("status").title = study.reason ?? "";
    const lead = [study.definition.description, over(study) && study.reason].filter(Boolean).join(" · ");
    setText(byId("description"), lead);
    show(byId("description"), lead !== "");
    this.#best();
    this.#trials();
    this.#spent();
    this.tick();
  }

  /** Seconds since the study was created. */
  age() {
    const end = this.study.finished ? Date.parse(this.study.finished) : Date.now();
    return Math.max(0, (end - Date.parse(this.study.created)) / 1000);
  }

  #best() {
    const { best } = this.study.progress;
    const [objective] = this.study.definition.objective;
    const aim = objective.direction === "maximize" ? "Best (highest)" : "Best (lowest)";
    if (!best) {
      this.#figures.set("best", { term: `${aim} ${objective.metric}`, value: nothing, detail: "nothing measured yet" });
      return;
    }
    const link = make("a", { href: studyPath(this.study.name, `/trials/${best.number}`) }, `trial ${best.number}`);
    this.#figures.set("best", {
      term: `${aim} ${objective.metric}`, value: measured(best.value), title: String(best.value),
      detail: make("span", {}, link, `, ${budget(best.budget)} of data`), key: `${best.number} ${best.rung}`,
    });
  }

  #trials() {
    const { trials, created, max_trials: most } = this.study.progress;
    const present = states.filter((state) => trials[state] > 0);
    const words = present.map((state) => `${trials[state]} ${state}`).join(", ");
    const legend = make("span", { class: "states" }, ...present.map((state) => make("span", { data: { state } }, `${trials[state]} ${state}`)));
    const bar = stackedBar(present.map((state) => ({ state, weight: trials[state] })));
    this.#figures.set("trials", {
      term: "Trials", value: most > 0 ? `${count(created)} of ${count(most)}` : count(created),
      detail: present.length === 0 ? "none started yet" : make("span", {}, bar, legend), key: words,
    });
  }

  #spent() {
    const { epochs, data_passes: passes, energy: spent, promotions, resumes } = this.study.progress;
    this.#figures.set("epochs", { term: "Epochs", value: count(epochs), detail: `${passes < 1000 ? Number(passes.toPrecision(4)) : count(passes)} passes over all data · ${count(promotions)} promotions, ${count(resumes)} resumed` });
    const used = energy(spent);
    this.#figures.set("energy", used
      ? { term: "Energy", value: used.text, estimate: used.estimate, detail: used.method.replace(/^estimate: /, ""), title: used.method }
      : { term: "Energy", value: nothing, detail: "no worker meters it" });
  }

  /** Moves what depends on the time. */
  tick() {
    const { status, progress, finished } = this.study;
    const since = status === "running" ? (performance.now() - this.at) / 1000 : 0;
    this.#figures.set("elapsed", { term: status === "running" ? "Running for" : "Ran for", value: duration(Math.round(progress.elapsed_seconds + since)), detail: `${duration(progress.trial_seconds)} of training` });
    if (over(this.study)) {
      this.#figures.set("left", { term: "Ended", value: moment(finished, false), detail: moment(finished).slice(0, 10) });
      return;
    }
    const left = progress.remaining_seconds;
    if (left === undefined || left === null) {
      this.#figures.set("left", { term: "Time left", value: nothing, detail: status === "paused" ? "the study is paused" : "not known yet" });
    } else {
      this.#figures.set("left", { term: "Time left", value: roughly(Math.max(0, left - since)), estimate: true, detail: "at the pace so far" });
    }
  }
}

/** Fills the table of rungs. */
export function drawLadder(study, trials) {
  const tallies = trials.byRung();
  const most = Math.max(1, ...tallies.map((tally) => tally.measured));
  const rows = study.rungs.map((rung, index) => {
    const { measured: done, promoted, best } = tallies[index];
    const bar = make("progress", { max: most, value: done, "aria-hidden": "true" });
    const top = index === study.rungs.length - 1;
    return make("tr", {},
      make("th", { scope: "row" }, rungMark(rung.index, study.rungs.length)),
      make("td", {}, budget(rung.budget, true), rung.from_scratch ? make("span", { class: "tag", title: "a trial that comes up to this rung starts again at epoch 1" }, "afresh") : null),
      make("td", { class: "number" }, bar, count(done)),
      make("td", { class: "number" }, top ? nothing : count(promoted)),
      make("td", { class: "number" }, Number.isNaN(best) ? nothing : measured(best)));
  });
  byId("ladder").tBodies[0].replaceChildren(...rows);
}

/** Fills the facts about how the study was set up. */
export function drawSetup(study) {
  const { definition: set } = study;
  const aims = set.objective.map((one) => `${one.direction} ${one.metric}${one.target === undefined || one.target === null ? "" : `, target ${measured(one.target)}`}`);
  const ends = [set.stop.trials > 0 && `${count(set.stop.trials)} trials`, set.stop.seconds > 0 && duration(set.stop.seconds), set.stop.target_reached && "the target is reached"].filter(Boolean);
  fillFacts(byId("setup"), [
    ["Objective", aims.join("; ")],
    ["Search", `${set.search.method}, seed ${set.search.seed ?? nothing}`],
    ["Budget", `${set.budget.policy}, ${set.budget.growth}, eta ${set.budget.eta}`],
    ["Ends after", ends.length > 0 ? ends.join(" or ") : nothing],
    ["Command", set.command?.length ? make("code", {}, set.command.join(" ")) : "none: driven by ask and tell"],
    ["Created", moment(study.created)],
    ["Id", make("code", {}, study.id)],
    [`Space`, make("ul", { class: "space" }, ...set.space.parameters.map((one) => make("li", {}, make("code", {}, one.name), ` ${domain(one)}`)))],
  ]);
}

function domain(one) {
  if (one.values) return `${one.type} ${one.values.map(parameter).join(", ")}`;
  const extras = [one.log && "log", one.step > 0 && `step ${parameter(one.step)}`].filter(Boolean).map((extra) => `, ${extra}`).join("");
  return `${one.type} ${parameter(one.low)} to ${parameter(one.high)}${extras}`;
}
