// What the pages know of trials: their states and values, and one page of a
// study's trials, as the server has sorted it, kept up to date from the events.
import { number } from "./format.js";

export const states = ["queued", "leased", "running", "paused", "completed", "pruned", "failed", "lost", "cancelled"];

/** The states of a trial that a worker has, or that waits for one. */
export const active = ["queued", "leased", "running"];

/** What an objective is shown under: a metric, or the name of a formula. */
export const label = (objective) => objective.metric ?? objective.name;

/**
 * What an objective's value of a trial was estimated by; "" where everything in it was
 * measured. What the script reports under a name goes before what the server knows.
 */
export function estimatedBy(objective, trial) {
  const names = (objective.expression ?? objective.metric).match(/[A-Za-z_][\w.]*/g) ?? [];
  const { inference, energy } = trial;
  const methods = names.filter((name) => trial.last?.[name] === undefined).map((name) => {
    if (["train_joules", "train_cost", "train_co2_g"].includes(name)) return energy?.method;
    if (!name.startsWith("edge.") && !name.startsWith("inference_")) return "";
    return name.includes("joules") ? inference?.energy_method || inference?.method : inference?.method;
  });
  return methods.find((method) => method?.startsWith("estimate")) ?? "";
}

/** The newest result of a trial, or undefined. */
export const newest = (trial) => trial.results?.at(-1);

/** Whether a beats b; NaN never does. */
export function better(a, b, direction) {
  if (Number.isNaN(a)) return false;
  if (Number.isNaN(b)) return true;
  return direction === "maximize" ? a > b : a < b;
}

/** By how much the newest result misses the constraints; 0 if it keeps to them. */
export const violation = (trial) => number(newest(trial)?.violation ?? 0);

export class Trials {
  #order = []; // numbers, as the server sorted them
  #byNumber = new Map();
  // The last event each trial already contains: no event counts twice,
  // whichever of a page of trials and the stream was faster.
  #contains = new Map();

  /** How many trials match what was asked for, and how many there are. */
  total = 0;
  all = 0;

  /** The study's view tells the objectives. */
  constructor(study) {
    this.objectives = study.definition.objective;
    this.constrained = (study.definition.constraints ?? []).length > 0;
  }

  /** Takes a page of the server in, in place of the one before. */
  take(page) {
    const [known, contained] = [this.#byNumber, this.#contains];
    this.#byNumber = new Map();
    this.#contains = new Map();
    for (const trial of page.trials) {
      const at = contained.get(trial.number) ?? 0;
      // Events may have told more of a trial than this page knows.
      const ahead = at > page.sequence;
      const { rank, repeated } = trial;
      this.#byNumber.set(trial.number, ahead ? { ...known.get(trial.number), rank, repeated } : trial);
      this.#contains.set(trial.number, Math.max(at, page.sequence));
    }
    this.#order = page.trials.map((trial) => trial.number);
    this.total = page.total;
    this.all = page.all;
  }

  /** The page's trials in the server's order. */
  rows() {
    return this.#order.map((at) => this.#byNumber.get(at));
  }

  /** Takes an event in; returns whether it changed a trial of the page. */
  apply(event) {
    const known = this.#byNumber.get(event.number);
    if (!known || event.sequence <= this.#contains.get(event.number)) return false;
    const next = this.#after(known, event);
    if (next === null) return false;
    this.#byNumber.set(event.number, next);
    this.#contains.set(event.number, event.sequence);
    return true;
  }

  #after(known, event) {
    switch (event.kind) {
      case "trial_state":
        return event.data ? { ...known, ...withoutGaps(event.data) } : { ...known, state: event.state, reason: event.reason };
      case "report":
        return event.data ? this.#reported(known, event) : null;
      case "checkpoint":
        return { ...known, checkpoint: event.data };
      case "annotation":
        return { ...known, tags: event.data?.tags, note: event.data?.note };
      default:
        return null;
    }
  }

  #reported(trial, event) {
    const report = event.data;
    const next = {
      ...trial,
      state: event.state || "running",
      epochs: trial.epochs + 1,
      last_epoch: report.epoch,
      last: report.metrics,
      seconds: number(trial.seconds) + number(report.seconds),
      energy: added(trial.energy, report.energy),
    };
    if (report.epoch === trial.budget.epochs && newest(trial)?.rung !== trial.rung) {
      const values = this.objectives.map((objective) => report.metrics[objective.metric]);
      // What is computed, a formula's value or a violation, comes with the
      // change of state that follows.
      if (!this.constrained && values.every((value) => value !== undefined)) next.results = [...(trial.results ?? []), { rung: trial.rung, budget: trial.budget, values }];
    }
    return next;
  }
}

// An event's trial has every field that is set; one that was unset since, such
// as the worker, is absent in it and must not survive from before.
function withoutGaps(trial) {
  return { reason: undefined, stalled: undefined, tags: undefined, note: undefined, checkpoint: undefined, finished: undefined, ...trial };
}

function added(sum, part) {
  if (!part?.method) return sum;
  if (!sum?.method || sum.method === part.method) return { joules: number(sum?.joules ?? 0) + number(part.joules), method: part.method };
  const estimate = sum.method.startsWith("estimate") || part.method.startsWith("estimate");
  return { joules: number(sum.joules) + number(part.joules), method: estimate ? "estimate: several methods" : "measured: several methods" };
}
