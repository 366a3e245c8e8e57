// The leaderboard's columns: what each shows, and what the server sorts by.
import { keyHint, keyTag, keyText } from "./confidential.js";
import { badge, make, rungMark, tagWords } from "./dom.js";
import { budget, count, duration, energy, joules, measured, missed, nothing, parameter } from "./format.js";
import { referenceOf, studyPath } from "./api.js";
import { margin } from "./repeats.js";
import { estimatedBy, label, newest, violation } from "./trials.js";

/** Why a trial failed; "" if it did not. */
const failure = (trial) => (trial.state === "failed" || trial.state === "lost" ? (trial.reason ?? "") : "");

/**
 * Columns of a study. The id is what the server sorts by, text(trial) is what is
 * shown, fill(cell, trial) puts more than text into the cell. "first" is the order
 * of the first click, "unsorted" says that the server does not sort by it; pick(trial) is what chooses a trial for a comparison.
 */
export function columns(study, pick) {
  const [objective] = study.definition.objective;
  const rungs = study.rungs.length;
  return [
    { id: "rank", title: "Rank", numeric: true, text: (trial) => (trial.rank ? String(trial.rank) : nothing) },
    {
      id: "number", title: "Trial", text: (trial) => [`#${trial.number}`, ...(trial.tags ?? [])].join(" "),
      fill: (cell, trial) => cell.replaceChildren(pick(trial), make("a", { href: studyPath(referenceOf(study), `/trials/${trial.number}`) }, `#${trial.number}`),
        ...(trial.repeat_of === undefined ? [] : [make("span", { class: "tag", title: "trains the same parameters again; the trial it repeats has the rank" }, `repeats #${trial.repeat_of}`)]),
        ...(trial.retry_of === undefined ? [] : [make("span", { class: "tag", title: "tries the parameters of a failed trial again" }, `retries #${trial.retry_of}`)]), ...tagWords(trial.tags)),
    },
    {
      id: "state", title: "State", text: (trial) => trial.state + (trial.stalled ? ", stalled" : "") + (keyTag(trial).length > 0 ? ", attesting" : "") + failure(trial),
      fill: (cell, trial) => cell.replaceChildren(badge(trial.state), ...keyTag(trial), ...(trial.stalled ? [make("span", { class: "tag", title: trial.reason }, "stalled")] : []),
        ...(failure(trial) ? [make("span", { class: "sub failure", title: trial.reason }, failure(trial))] : [])),
    },
    ...study.definition.objective.map((one, index) => ({
      id: index === 0 ? "value" : `value.${index}`, title: label(one), numeric: true, first: one.direction === "maximize" ? "desc" : "asc",
      help: "value of the newest rung it completed; of a repeated trial the mean of its trainings",
      text: (trial) => (newest(trial) ? (estimatedBy(one, trial) ? "≈ " : "") + measured((trial.repeated?.mean ?? newest(trial).values)[index]) + margin(trial.repeated, index) : nothing),
      hint: (trial) => (trial.repeated ? `mean of ${trial.repeated.results} trainings and its standard error; the trial's own came to ${measured(newest(trial).values[index])}` : estimatedBy(one, trial) || null),
    })),
    ...((study.definition.constraints ?? []).length === 0 ? [] : [{
      id: "violation", title: "Violation", numeric: true, help: "by how much it misses the constraints, in parts of their bounds",
      text: (trial) => (newest(trial) ? (violation(trial) > 0 ? missed(violation(trial)) : "none") : nothing),
    }]),
    {
      id: "rung", title: "Rung", first: "desc", help: "the rung it is on, or was last on",
      text: (trial) => String(trial.rung),
      fill: (cell, trial) => cell.replaceChildren(rungMark(trial.rung, rungs)),
    },
    ...(study.definition.confidential ? [{ id: "key", title: "Key", unsorted: true, text: keyText, hint: (trial) => keyHint(study, trial) }] : []),
    ...study.definition.space.parameters.map((one) => ({
      id: "params." + one.name, title: one.name, numeric: (one.values ?? [0]).every((value) => typeof value === "number"), parameter: true,
      text: (trial) => parameter(trial.params[one.name], one.type),
      hint: (trial) => (trial.params[one.name] === undefined ? "does not exist in this configuration" : String(trial.params[one.name])),
    })),
    {
      id: "budget", title: "Budget", first: "desc", wide: true, help: "epochs and share of the data on its rung",
      text: (trial) => budget(trial.budget, true),
    },
    // A formula has no value between the rungs.
    ...(objective.metric === undefined ? [] : [{
      id: "latest", title: "Latest", numeric: true, first: objective.direction === "maximize" ? "desc" : "asc", wide: true,
      help: `${objective.metric} of its newest epoch`,
      text: (trial) => measured(trial.last?.[objective.metric]),
    }]),
    { id: "epochs", title: "Epochs", numeric: true, first: "desc", text: (trial) => count(trial.epochs) },
    { id: "seconds", title: "Time", numeric: true, first: "desc", text: (trial) => (trial.epochs ? duration(trial.seconds) : nothing) },
    {
      id: "joules", title: "Energy", numeric: true, first: "desc",
      text: (trial) => (energy(trial.energy) ? (energy(trial.energy).estimate ? "≈ " : "") + joules(trial.energy.joules) : nothing),
      hint: (trial) => trial.energy?.method,
    },
  ];
}
