// The history of one trial as rows: its states, its checkpoints, and the
// epochs between them in one line each.
import { badge, byId, make } from "./dom.js";
import { bytes, moment, nothing } from "./format.js";

/** Joins reports that follow each other under the same worker. */
function condensed(events) {
  const lines = [];
  for (const event of events) {
    const last = lines.at(-1);
    if (event.kind === "report" && last?.kind === "report" && last.worker === event.worker) {
      last.to = event.data.epoch;
      last.until = event.at;
    } else if (event.kind === "report") {
      lines.push({ ...event, from: event.data.epoch, to: event.data.epoch, until: event.at });
    } else {
      lines.push(event);
    }
  }
  return lines;
}

/** Scripts that save after each epoch would fill the page with checkpoints. */
function withoutOldCheckpoints(events) {
  const last = events.findLast((event) => event.kind === "checkpoint");
  return events.filter((event) => event.kind !== "checkpoint" || event === last);
}

function what(event) {
  switch (event.kind) {
    case "trial_state":
      return [badge(event.state)];
    case "report":
      return [event.from === event.to ? `epoch ${event.from} reported` : `epochs ${event.from} to ${event.to} reported`];
    case "checkpoint":
      return [`checkpoint of epoch ${event.data.epoch}, ${bytes(event.data.bytes)}`];
    default:
      return [event.kind];
  }
}

function reason(event) {
  if (event.reason) return event.reason;
  if (event.kind === "checkpoint") return "the newest one";
  return nothing;
}

/** Fills the table; names(worker) tells a worker's name. */
export function drawTimeline(events, names) {
  const lines = condensed(withoutOldCheckpoints(events));
  const rows = lines.map((event) => {
    const until = event.until && event.until !== event.at ? ` to ${moment(event.until, false)}` : "";
    return make("tr", {},
      make("td", { class: "time" }, moment(event.at) + until),
      make("td", {}, ...what(event)),
      make("td", { title: event.worker }, event.worker ? names(event.worker) : nothing),
      make("td", { class: "reason" }, reason(event)));
  });
  byId("history").tBodies[0].replaceChildren(...rows);
}
