// The trials of one study, kept up to date from its events.
import { get, studyPath } from "./api.js";
import { number } from "./format.js";
import { arrange, pointOf } from "./pareto.js";
import { compareRepeated, standings } from "./repeats.js";

const pageSize = 2000;

export const states = ["queued", "leased", "running", "paused", "completed", "pruned", "failed", "lost", "cancelled"];

/** The states of a trial that a worker has, or that waits for one. */
export const active = ["queued", "leased", "running"];

/** What an objective is shown under: a metric, or the name of a formula. */
export const label = (objective) => objective.metric ?? objective.name;

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

/** What no objective decides: measured, feasible, highest measured rung. */
function compareClass(a, b) {
  const [x, y] = [newest(a), newest(b)];
  return Number(y !== undefined) - Number(x !== undefined)
    || Number(violation(a) > 0) - Number(violation(b) > 0)
    || (y?.rung ?? -1) - (x?.rung ?? -1);
}

const compareViolation = (a, b) => (violation(a) === violation(b) ? 0 : violation(a) - violation(b));

/** The leaderboard's order for one objective: then the best value, and the number. */
function compareRank(a, b, direction) {
  const byClass = compareClass(a, b);
  if (byClass !== 0) return byClass;
  const [x, y] = [newest(a), newest(b)];
  if (x && y) {
    const [v, w] = [number(x.values[0]), number(y.values[0])];
    const byDivergence = Number(Number.isNaN(v)) - Number(Number.isNaN(w)) || compareRepeated(a, b) || compareViolation(a, b);
    if (byDivergence !== 0) return byDivergence;
    if (better(v, w, direction)) return -1;
    if (better(w, v, direction)) return 1;
  }
  return a.number - b.number;
}

/** The leaderboard's order for several objectives: then front by front. */
function rankBySeveral(trials, objectives) {
  const entries = trials.map((trial) => ({ trial, point: newest(trial) ? pointOf(newest(trial).values, objectives) : null }));
  const compareGroup = (a, b) => compareClass(a.trial, b.trial) || Number(a.point === null) - Number(b.point === null) || compareViolation(a.trial, b.trial);
  entries.sort((a, b) => compareGroup(a, b) || a.trial.number - b.trial.number);
  const sorted = [];
  for (let first = 0, next = 0; first < entries.length; first = next) {
    while (next < entries.length && compareGroup(entries[first], entries[next]) === 0) next++;
    const group = entries.slice(first, next);
    if (group[0].point !== null && violation(group[0].trial) === 0) arrange(group);
    sorted.push(...group.map(({ trial }) => trial));
  }
  return sorted;
}

export class Trials {
  #byNumber = new Map();
  // The last event each trial already contains: no event counts twice,
  // whichever of a page of trials and the stream was faster.
  #contains = new Map();
  #ranked = null;

  /** The study's view tells the objectives. */
  constructor(study) {
    this.study = study;
    this.objectives = study.definition.objective;
    this.constrained = (study.definition.constraints ?? []).length > 0;
  }

  /** Fetches all trials; returns the event to follow the stream from. */
  async load() {
    let sequence = 0;
    for (let offset = 0, total = 1; offset < total; offset += pageSize) {
      const page = await get(studyPath(this.study.id, `/trials?sort=number&limit=${pageSize}&offset=${offset}`));
      total = page.total;
      if (offset === 0) sequence = page.sequence;
      for (const trial of page.trials ?? []) this.#put(trial, page.sequence);
    }
    return sequence;
  }

  #put(trial, sequence) {
    this.#byNumber.set(trial.number, trial);
    this.#contains.set(trial.number, sequence);
    this.#ranked = null;
  }

  /** Takes an event in; returns whether it changed a trial. */
  apply(event) {
    if (event.number === undefined || event.sequence <= (this.#contains.get(event.number) ?? 0)) return false;
    const known = this.#byNumber.get(event.number);
    switch (event.kind) {
      case "trial_state":
        if (event.data) this.#put({ ...known, ...withoutGaps(event.data) }, event.sequence);
        else if (known) this.#put({ ...known, state: event.state, reason: event.reason }, event.sequence);
        else return false; // the lease that follows brings the trial itself
        return true;
      case "report":
        if (!known || !event.data) return false;
        this.#put(this.#reported(known, event), event.sequence);
        return true;
      case "checkpoint":
        if (!known) return false;
        this.#put({ ...known, checkpoint: event.data }, event.sequence);
        return true;
      default:
        return false;
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

  get size() {
    return this.#byNumber.size;
  }

  /** Every trial, the leader first; rank is 0 for one never measured, and for a repeat. */
  ranked() {
    if (this.#ranked === null) {
      const direction = this.objectives[0].direction;
      const all = standings([...this.#byNumber.values()], this.objectives);
      const known = new Map(all.map((one) => [one.standing, one]));
      const list = all.map(({ standing }) => standing);
      const order = this.objectives.length > 1 ? rankBySeveral(list, this.objectives) : list.sort((a, b) => compareRank(a, b, direction));
      this.#ranked = order.map((standing, place) => {
        const { trial, repeated } = known.get(standing);
        trial.rank = standing.results?.length ? place + 1 : 0;
        trial.repeated = repeated;
        return trial;
      });
    }
    return this.#ranked;
  }

  /** What happened on each rung, and which trials are on it now: [{active, paused, measured, promoted, best}]. */
  byRung() {
    const direction = this.objectives[0].direction;
    const rungs = this.study.rungs.map(() => ({ active: 0, paused: 0, measured: 0, promoted: 0, best: NaN }));
    for (const trial of this.#byNumber.values()) {
      if (active.includes(trial.state)) rungs[trial.rung].active++;
      if (trial.state === "paused") rungs[trial.rung].paused++;
      if (trial.repeat_of !== undefined) continue; // its configuration is counted already
      for (const result of trial.results ?? []) {
        const rung = rungs[result.rung];
        rung.measured++;
        if (wentUp(trial, result.rung)) rung.promoted++;
        const value = number(result.values[0]);
        if (better(value, rung.best, direction)) rung.best = value;
      }
    }
    return rungs;
  }
}

/** Whether the trial was promoted from the rung. */
export const wentUp = (trial, rung) => trial.rung > rung;

// An event's trial has every field that is set; one that was unset since, such
// as the worker, is absent in it and must not survive from before.
function withoutGaps(trial) {
  return { reason: undefined, stalled: undefined, checkpoint: undefined, finished: undefined, ...trial };
}

function added(sum, part) {
  if (!part?.method) return sum;
  if (!sum?.method || sum.method === part.method) return { joules: number(sum?.joules ?? 0) + number(part.joules), method: part.method };
  const estimate = sum.method.startsWith("estimate") || part.method.startsWith("estimate");
  return { joules: number(sum.joules) + number(part.joules), method: estimate ? "estimate: several methods" : "measured: several methods" };
}
