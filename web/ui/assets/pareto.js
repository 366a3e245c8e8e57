// The order of trials with several objectives, as the server has it: front by
// front, and within a front what was trained again, then the one nearest to the
// best values first.
import { number } from "./format.js";
import { compareRepeated } from "./repeats.js";

/** Values as a point where larger is better; null if one of them diverged. */
export function pointOf(values, objectives) {
  const point = objectives.map((objective, index) => (objective.direction === "minimize" ? -number(values[index]) + 0 : number(values[index])));
  return point.every((value) => !Number.isNaN(value) && value !== -Infinity) ? point : null;
}

/** Whether a is at least as good as b everywhere, and better somewhere. */
export const dominates = (a, b) => a.every((value, index) => value >= b[index]) && a.some((value, index) => value > b[index]);

/** Sorts entries {point, trial} that compare, the best first; returns how many are on the first front. */
export function arrange(entries) {
  // Sorted like this, a point is dominated by earlier ones only.
  const sorted = entries.toSorted((a, b) => lexicographic(a.point, b.point) || a.trial.number - b.trial.number);
  const fronts = [];
  for (const entry of sorted) {
    let [low, high] = [0, fronts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (fronts[middle].some((other) => dominates(other.point, entry.point))) low = middle + 1;
      else high = middle;
    }
    if (low === fronts.length) fronts.push([]);
    fronts[low].push(entry);
  }
  entries.splice(0, entries.length, ...fronts.flatMap(nearestFirst));
  return fronts[0]?.length ?? 0;
}

function lexicographic(a, b) {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : a[at] > b[at] ? -1 : 1;
}

function nearestFirst(front) {
  const extents = front[0].point.map((_, index) => [Math.max(...front.map(({ point }) => point[index])), Math.min(...front.map(({ point }) => point[index]))]);
  const far = new Map(front.map((entry) => [entry, Math.sqrt(entry.point.reduce((sum, value, index) => sum + part(value, ...extents[index]) ** 2, 0))]));
  return front.toSorted((a, b) => compareRepeated(a.trial, b.trial) || far.get(a) - far.get(b) || a.trial.number - b.trial.number);
}

function part(value, best, worst) {
  if (value === best) return 0;
  return best - worst === Infinity ? 1 : (best - value) / (best - worst);
}
