// Repeats: trainings again of a configuration that was among the best. The
// configuration then ranks by the mean of its trainings, which the server tells.
import { number } from "./format.js";

/** The standard error of a repeated trial's mean, such as " ± 0.004"; empty where there is none. */
export function margin(repeated, objective = 0) {
  const error = repeated?.standard_errors?.[objective];
  return error === undefined ? "" : ` ± ${Number(number(error).toPrecision(2))}`;
}
