// What a study will do, before it is created.
import { make, rungMark } from "./dom.js";
import { budget, count, duration, joules, measured, nothing } from "./format.js";

/** The plan as nodes. */
export function planOf(plan) {
  const spent = plan.seconds ? duration(plan.seconds) : plan.joules ? joules(plan.joules) : `${count(plan.epochs)} epochs, ${measured(plan.data_passes)} passes over the data${plan.most_data_passes ? ` (four of five studies make ${measured(plan.fewest_data_passes)} to ${measured(plan.most_data_passes)})` : ""}`;
  const bound = plan.upper_bound ? "at most " : "";
  const sum = plan.trials === 0
    ? "Nothing bounds the number of trials, so that nothing can be counted beforehand: give stop.trials."
    : `${count(plan.trials)} trials, ${bound}${count(plan.trainings)} trainings: ${bound}${spent}.`;
  return [make("p", {}, sum), saving(plan), ladder(plan), brackets(plan), costs(plan), plan.system ? make("p", { class: "muted" }, plan.system.join(" ")) : null].filter(Boolean);
}

/** What the ladder saves against training every trial in full. */
function saving({ full_epochs: full, data_passes: passes, full_data_passes: whole }) {
  if (!whole || passes >= whole) return null;
  return make("p", { class: "muted" }, `The same trials in full: ${count(full)} epochs, ${measured(whole)} passes. The ladder trains ${Math.round((passes / whole) * 100)}\u00a0% of that.`);
}

function ladder({ stages }) {
  const row = (stage) => make("tr", {},
    make("th", { scope: "row" }, rungMark(stage.index, stages.length)), make("td", {}, budget(stage.budget, true), stage.from_scratch ? make("span", { class: "tag", title: "trials begin again from epoch 1 here" }, "from scratch") : null),
    make("td", { class: "number" }, count(stage.started)), make("td", { class: "number" }, count(stage.promoted)),
    make("td", { class: "number" }, stage.seconds ? duration(stage.seconds) : stage.joules ? joules(stage.joules) : count(stage.epochs)));
  return make("table", { class: "plain", id: "plan-ladder" },
    make("caption", { class: "unseen" }, "Expected work on each rung"),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Rung"), make("th", { scope: "col" }, "Budget"), make("th", { scope: "col", class: "number" }, "Start"), make("th", { scope: "col", class: "number" }, "Come up"), make("th", { scope: "col", class: "number" }, "Work"))),
    make("tbody", {}, ...stages.map(row)));
}

function brackets({ brackets: list }) {
  if (!list || list.length < 2) return null;
  return make("p", { class: "muted" }, `Brackets: ${list.map((one) => `${count(one.trials)} trials from rung ${one.start}${one.sizes ? ` (${one.sizes.join(" → ")})` : ""}`).join("; ")}.`);
}

/** What it takes: an estimate, and said to be one. */
function costs({ costs: known }) {
  if (!known) return make("p", { class: "muted" }, "What it takes in time and energy is not known before an epoch was measured. Choose a study like it above for an estimate.");
  const parts = [known.elapsed_seconds && `${duration(known.elapsed_seconds)} with ${known.workers === 1 ? "one trial" : `${count(known.workers)} trials`} at once`, known.trial_seconds && `${duration(known.trial_seconds)} of training`, known.joules && joules(known.joules)].filter(Boolean);
  return make("p", {}, `It takes about ${parts.join(", ") || nothing}`, make("span", { class: "tag", title: known.method }, "estimate"), make("span", { class: "field-hint" }, known.method.replace(/^estimate: /, "")));
}
