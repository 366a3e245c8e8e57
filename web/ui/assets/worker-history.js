// How busy the machine of a worker was in the last hour: a bar for each minute
// that it told of, and the same in words.
import { get } from "./api.js";
import { byId, make, setText } from "./dom.js";
import { parameter, share } from "./format.js";

const again = 20000; // milliseconds between two looks
const minutes = 60;
const [width, height] = [240, 34]; // CSS pixels, and stretched to the box

export class WorkerHistory {
  #worker = ""; // whose history is shown
  #asked = -Infinity;

  /** Shows the history of the worker with the id, fetched now and then. */
  draw(id) {
    const now = performance.now();
    if (id === this.#worker && now - this.#asked < again) return;
    if (id !== this.#worker) this.#show({ steps: [] }, "Looking …");
    this.#worker = id;
    this.#asked = now;
    get(`/workers/${encodeURIComponent(id)}/history`).then((history) => id === this.#worker && this.#show(history, "No heartbeat in the last hour."), (error) => setText(byId("history-note"), error.message));
  }

  #show({ steps, step_seconds: seconds }, otherwise) {
    const box = byId("history");
    if (steps.length === 0) {
      box.replaceChildren();
      setText(byId("history-note"), otherwise);
      return;
    }
    const newest = Date.parse(steps.at(-1).begin);
    const place = ({ begin }) => minutes - 1 - Math.round((newest - Date.parse(begin)) / (1000 * seconds));
    const most = Math.max(...steps.map((step) => step.watts));
    const estimate = steps.some(({ method }) => method.startsWith("estimate"));
    const draw = (title, value, top, text) => [
      make("dt", {}, title, estimate && title === "Power" ? make("span", { class: "tag" }, "estimate") : ""),
      make("dd", {}, bars(steps.map((step) => [place(step), top > 0 ? value(step) / top : 0])), make("span", {}, inWords(steps.map(value), text))),
    ];
    box.replaceChildren(
      ...draw("Processor", (step) => step.cpu_utilization, 1, share),
      ...draw("Memory", (step) => step.memory_utilization, 1, share),
      ...draw("Power", (step) => step.watts, most, (watts) => `${parameter(Number(watts.toPrecision(3)))} W`),
    );
    const told = steps.length < minutes ? ` Heartbeats in ${steps.length} of ${minutes} minutes; the others are empty.` : "";
    setText(byId("history-note"), `A bar for each minute, the newest on the right; the mean of the worker's heartbeats, for the whole machine.${told}`);
  }
}

/** The last value, the extremes and the mean, in words. */
function inWords(values, text) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return `${text(values.at(-1))} in the last minute, ${text(Math.min(...values))} to ${text(Math.max(...values))} in the hour, ${text(mean)} in the mean`;
}

/** Bars of [minute, share of the height]; what they say stands beside them in words. */
function bars(list) {
  const element = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const chart = element("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true", class: "spark" });
  const each = width / minutes;
  for (const [minute, part] of list) {
    const tall = Math.max(1, Math.min(1, part) * height);
    chart.append(element("rect", { x: minute * each, y: height - tall, width: each - 0.6, height: tall }));
  }
  return chart;
}
