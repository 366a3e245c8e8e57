// What was measured in a study: results in the order in which they came, who led
// when, and what is on each rung. Of very many results the server chooses some.
import { get } from "./api.js";
import { count } from "./format.js";

export class Results {
  results = [];
  leaders = [];
  rungs = [];
  total = 0;
  untimed = 0;

  /** address is that of the study's measurements. */
  constructor(address) {
    this.address = address;
  }

  /** Fetches what there is now. */
  async load() {
    const { results, leaders, rungs, total, untimed = 0 } = await get(this.address);
    Object.assign(this, { results, leaders, rungs, total, untimed });
  }

  /** A sentence on the results that are not drawn, or "". */
  choice() {
    if (this.results.length === this.total) return "";
    return `${count(this.results.length)} of ${count(this.total)} results are drawn: by rung, the best and the middle one of each stretch of time.`;
  }
}
