// The history of one trial as rows: its states, its checkpoints, and the
// epochs between them in one line each.
import { badge, byId, make } from "./dom.js";
import { latency } from "./deploy.js";
import { bytes, firstLine, moment, nothing } from "./format.js";

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
  const saved = events.filter((event) => event.kind === "checkpoint");
  const newest = saved.at(-1);
  const note = saved.length > 1 ? `the newest of ${saved.length}` : undefined;
  return events.filter((event) => event.kind !== "checkpoint" || event === newest).map((event) => (event === newest ? { ...event, reason: note } : event));
}

function what(event) {
  switch (event.kind) {
    case "trial_state":
      return [badge(event.state)];
    case "report":
      return [event.from === event.to ? `epoch ${event.from} reported` : `epochs ${event.from} to ${event.to} reported`];
    case "checkpoint":
      return [`checkpoint of epoch ${event.data.epoch}, ${bytes(event.data.bytes)}`];
    case "annotation":
      return [`tags: ${event.data.tags?.join(" ") ?? "none"}${event.data.note ? ", with a note" : ""}`];
    case "emulation":
      return [event.data.device ? `inference on ${event.data.device}: ${latency(event.data.latency_seconds)} a batch (${event.data.method})` : "its model was read"];
    default:
      return [event.kind];
  }
}

/** Fills the table; names(worker) tells a worker's name. */
export function drawTimeline(events, names) {
  const lines = condensed(withoutOldCheckpoints(events));
  const rows = lines.map((event, at) => {
    const day = moment(event.at).slice(0, 10);
    const same = at > 0 && moment(lines[at - 1].at).slice(0, 10) === day;
    const until = event.until && event.until !== event.at ? ` to ${moment(event.until, false)}` : "";
    return make("tr", {},
      make("td", { class: "time", title: moment(event.at) }, same ? "" : day + " ", moment(event.at, false) + until),
      make("td", { class: "what" }, ...what(event)),
      make("td", { title: event.worker }, event.worker ? names(event.worker) : nothing),
      make("td", { class: "reason", title: event.reason || null }, firstLine(event.reason) || nothing));
  });
  byId("history").tBodies[0].replaceChildren(...rows);
}
