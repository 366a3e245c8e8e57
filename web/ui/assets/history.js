// What was measured when, from a study's events.
import { number } from "./format.js";
import { better } from "./trials.js";

export class History {
  #results = new Map(); // trial number -> results seen so far
  #budgets = new Map(); // trial number -> budget and rung of its present run

  /** Measurements in the order they happened: {at, number, rung, value}. */
  measurements = [];

  constructor(study) {
    this.objective = study.definition.objective[0];
    this.constrained = (study.definition.constraints ?? []).length > 0;
    this.start = Date.parse(study.created);
  }

  /** Takes an event in, old or new; returns whether it was a measurement. */
  apply(event) {
    if (event.number === undefined || !event.data) return false;
    if (event.data.repeat_of !== undefined) return false; // it measures what leads already
    if (event.kind === "report") return this.#reported(event);
    if (event.kind !== "trial_state") return false;
    this.#budgets.set(event.number, event.data.budget);
    let found = false;
    for (const result of event.data.results ?? []) found = this.#add(event, result.rung, result.values[0], result.violation) || found;
    return found;
  }

  // The report that reaches the budget is the measurement; the change of state
  // that tells the same comes when the script has ended, which may be later.
  #reported(event) {
    const { rung, epoch, metrics } = event.data;
    const value = metrics[this.objective.metric]; // a formula's comes with the state
    return value !== undefined && !this.constrained && this.#budgets.get(event.number)?.epochs === epoch && this.#add(event, rung, value);
  }

  #add(event, rung, value, violation = 0) {
    const seen = this.#results.get(event.number) ?? new Set();
    if (seen.has(rung)) return false;
    this.#results.set(event.number, seen.add(rung));
    this.measurements.push({ seconds: (Date.parse(event.at) - this.start) / 1000, number: event.number, rung, value: number(value), violation: number(violation) });
    return true;
  }

  #leads(one, leader) {
    if (one.violation > 0 !== leader.violation > 0) return one.violation === 0;
    if (one.rung !== leader.rung) return one.rung > leader.rung;
    if (one.violation !== leader.violation) return one.violation < leader.violation;
    return better(one.value, leader.value, this.objective.direction);
  }

  /**
   * The leader's value after each measurement: the best value on the highest
   * rung measured by then, since values of different budgets do not compare.
   * Feasible ones lead before others.
   */
  leaders() {
    let leader = null;
    return this.measurements.map((one) => {
      const ahead = !leader || this.#leads(one, leader);
      if (ahead && !Number.isNaN(one.value)) leader = one;
      return leader?.value ?? null;
    });
  }
}
