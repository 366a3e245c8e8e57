// Repeats: trainings again of a configuration that was among the best. The
// configuration then ranks by the mean of its trainings, as the server ranks it.
import { number } from "./format.js";

const over = ["completed", "pruned", "failed", "lost", "cancelled"];
const newest = (trial) => trial.results?.at(-1);
// Equal parameters are written alike, whatever their order.
const key = ({ params }) => JSON.stringify(Object.keys(params).sort().map((name) => [name, String(params[name]), typeof params[name]]));

/**
 * What trials compete with: [{trial, standing, repeated}]. Most compete with
 * what they measured; a repeated one with its mean, and a repeat not at all.
 */
export function standings(trials, objectives) {
  const groups = new Map(); // trial number -> its repeats
  for (const trial of trials) {
    if (trial.repeat_of === undefined || !newest(trial) && over.includes(trial.state)) continue;
    groups.set(trial.repeat_of, [...(groups.get(trial.repeat_of) ?? []), trial]);
  }
  const same = new Map(); // configuration -> the trials that had it
  if (groups.size > 0) {
    for (const trial of trials) if (trial.repeat_of === undefined) same.set(key(trial), [...(same.get(key(trial)) ?? []), trial]);
  }
  return trials.map((trial) => {
    if (trial.repeat_of !== undefined) return { trial, standing: { ...trial, results: [] } };
    if (!groups.has(trial.number) || !newest(trial)) return { trial, standing: trial };
    const firsts = same.get(key(trial)).filter((one) => newest(one)?.rung === newest(trial).rung);
    const repeated = meanOf([...firsts, ...groups.get(trial.number)].filter(newest), objectives.length);
    return { trial, repeated, standing: { ...trial, repeated, results: [{ ...newest(trial), values: repeated.mean, violation: repeated.violation }] } };
  });
}

function meanOf(trials, objectives) {
  const results = trials.map(newest);
  const mean = (values) => values.reduce((sum, value) => sum + value / values.length, 0);
  const columns = Array.from({ length: objectives }, (_, index) => results.map((result) => number(result.values[index])));
  const error = (values) => Math.sqrt(values.reduce((sum, value) => sum + (value - mean(values)) ** 2, 0) / (values.length - 1) / values.length);
  return {
    results: results.length, mean: columns.map(mean), standard_errors: results.length > 1 ? columns.map(error) : undefined,
    violation: mean(results.map((result) => number(result.violation ?? 0))), trials: trials.map((trial) => trial.number),
  };
}

/** Puts what was trained again before what was trained once. */
export const compareRepeated = (a, b) => Number(b.repeated !== undefined) - Number(a.repeated !== undefined);

/** The standard error of a repeated trial's mean, such as " ± 0.004"; empty where there is none. */
export function margin(repeated, objective = 0) {
  const error = repeated?.standard_errors?.[objective];
  return error === undefined ? "" : ` ± ${Number(number(error).toPrecision(2))}`;
}
