// The plan against what was done: for each rung how many trials were expected
// and how many were measured, and the sums.
import { remark } from "./chart.js";
import { byId, make } from "./dom.js";
import { offerDownloads } from "./download.js";
import { budget, count, duration, joules, nothing } from "./format.js";

export class PlanCard {
  #answer = null;

  constructor(study) {
    offerDownloads(byId("plan"), { of: study.name, name: "plan", tables: [["Rungs", () => this.#rungs()], ["Brackets", () => this.#brackets()]] });
  }

  draw(answer) {
    this.#answer = answer;
    const { plan, stages } = answer;
    const number = (text) => make("td", { class: "number" }, text);
    byId("plan-rungs").tBodies[0].replaceChildren(...plan.stages.map((stage, rung) => {
      const { planned, began, measured, active, ended } = stages[rung];
      return make("tr", {},
        make("th", { scope: "row" }, String(stage.index)), make("td", {}, budget(stage.budget, true)),
        make("td", { class: "progress" }, bar(measured, planned, `rung ${stage.index}`)),
        number(count(measured)), number(plan.trials > 0 ? `≈ ${count(planned)}` : nothing), number(`${count(began)}${plan.trials > 0 ? ` of ${count(stage.started)}` : ""}`), number(count(active)), number(count(ended)));
    }));
    byId("plan-sums").tBodies[0].replaceChildren(...this.#sums().map(([name, done, planned, write]) => make("tr", {},
      make("th", { scope: "row" }, name), make("td", { class: "progress" }, bar(done, planned, name)), number(write(done)), number(planned > 0 ? `≈ ${write(planned)}` : nothing))));
    remark(byId("plan-note"), [
      plan.trials > 0 ? "≈: what is expected if no trial fails and nothing ends the study early." : "Nothing bounds the trials beforehand, so that there is no plan to compare with.",
      plan.most_data_passes ? `Four of five studies make ${rounded(plan.fewest_data_passes)} to ${rounded(plan.most_data_passes)} passes over the data.` : "",
      plan.upper_bound ? "Trials may be stopped while they train: the plan is the most there can be." : "",
      answer.repeats > 0 || plan.repeats > 0 ? `${count(answer.repeats)} of ≈ ${count(plan.repeats ?? 0)} repeats are in the sums, not in the rungs.` : "",
    ].filter(Boolean).join(" "));
  }

  #sums() {
    const { plan, trials, epochs, data_passes: passes, seconds, joules: spent } = this.#answer;
    return [
      ["Trials", trials, plan.trials, count],
      ...(plan.seconds > 0 ? [["Training time", seconds, plan.seconds, duration]] : []),
      ...(plan.joules > 0 ? [["Energy", spent, plan.joules, joules]] : []),
      ...(plan.seconds > 0 || plan.joules > 0 ? [] : [["Epochs", epochs, plan.epochs, count], ["Passes over the data", passes, plan.data_passes, rounded]]),
    ];
  }

  #rungs() {
    const { plan, stages } = this.#answer;
    return {
      columns: ["rung", "epochs", "data_fraction", "planned", "planned_to_begin", "measured", "began", "active", "ended"],
      rows: stages.map((stage, rung) => {
        const { budget: spent, started } = plan.stages[rung];
        return [stage.rung, spent.epochs, spent.data_fraction, stage.planned, started, stage.measured, stage.began, stage.active, stage.ended];
      }),
    };
  }

  #brackets() {
    const { plan, stages } = this.#answer;
    return { columns: ["first_rung", "planned_trials", "began"], rows: (plan.brackets ?? []).map((bracket) => [bracket.start, bracket.trials, stages[bracket.start].began]) };
  }
}

const rounded = (value) => (value < 1000 ? String(Number(value.toPrecision(4))) : count(value));

/** How much of it is done, as a bar; more than planned is full. */
function bar(done, planned, name) {
  return make("progress", { max: String(Math.max(planned, done, 1)), value: String(done), "aria-label": `${name}: ${done} of about ${planned}`, title: `${done} of about ${planned}` });
}
