// The workers that ask this server for trials.
import { get, studyPath } from "./api.js";
import { badge, byId, make, setText, show } from "./dom.js";
import { ago, bytes, count, nothing } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, repeat, tell } from "./live.js";

const body = byId("workers").tBodies[0];
const rows = new Map(); // worker id -> row

function fill(row, worker, names) {
  const machine = worker.machine;
  const parts = [machine.cores > 0 && `${count(machine.cores)} cores`, machine.memory_bytes > 0 && bytes(machine.memory_bytes), ...(machine.gpus ?? [])];
  const method = machine.energy_method ?? "";
  const cells = [
    make("th", { scope: "row" }, worker.name, make("span", { class: "sub" }, machine.host)),
    make("td", {}, badge(worker.alive ? "alive" : "silent")),
    make("td", {}, machine.cpu_model || nothing, make("span", { class: "sub" }, parts.filter(Boolean).join(", "))),
    make("td", {}, method.startsWith("estimate") ? make("span", { title: method }, "a model ", make("span", { class: "tag" }, "estimate")) : method || nothing),
    make("td", {}, sandbox(worker), ...refusals(worker, names)),
    make("td", { class: "number" }, `${count(worker.trials?.length ?? 0)} of ${worker.elastic ? "as many as fit" : count(worker.slots)}`),
    make("td", { class: "trial-links" }, ...(worker.trials?.length ? worker.trials.map((id) => trialLink(id, names)) : [nothing])),
    make("td", { class: "number" }, ago(worker.last_seen_seconds)),
  ];
  cells.forEach((cell, index) => {
    const old = row.cells[index];
    if (!old) row.append(cell);
    else if (!old.isEqualNode(cell)) old.replaceWith(cell);
  });
}

/** What holds the commands of a worker; its title has the layers, or why one is missing. */
function sandbox({ sandbox: told }) {
  if (!told) return nothing;
  if (told.mode === "off") return make("span", { title: "Commands have all the rights of the worker." }, "off");
  const missing = told.missing ?? [];
  if (missing.length === 0) return make("span", { title: `Layers: ${told.layers.join(", ")}` }, told.mode, make("span", { class: "sub" }, "all layers"));
  const names = missing.map((one) => one.split(":")[0]).join(", ");
  return make("span", { title: missing.join("\n") }, told.mode, make("span", { class: "sub" }, `without ${names}`));
}

/** The studies that a worker's owner does not let it run. */
function refusals({ refuses }, names) {
  return Object.entries(refuses ?? {}).map(([study, reason]) => make("span", { class: "sub", title: reason }, `refuses ${names.get(study) ?? study}`));
}

/** A trial's id is the study's id, a dash and the number. */
function trialLink(id, names) {
  const dash = id.lastIndexOf("-");
  const [study, number] = [id.slice(0, dash), id.slice(dash + 1)];
  return make("a", { href: studyPath(study, `/trials/${number}`) }, `${names.get(study) ?? study} #${number}`);
}

async function refresh() {
  const [{ workers }, { studies }] = await Promise.all([get("/workers"), get("/studies")]);
  const list = (workers ?? []).sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || a.id.localeCompare(b.id));
  const names = new Map((studies ?? []).map((study) => [study.id, study.name]));
  show(byId("loading"), false);
  show(byId("empty"), list.length === 0);
  show(byId("frame"), list.length > 0);
  const slots = list.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = list.reduce((sum, worker) => sum + (worker.trials?.length ?? 0), 0);
  setText(byId("count"), list.length === 0 ? "" : `${count(list.length)} connected, ${list.some((worker) => worker.elastic) ? `${count(busy)} ${busy === 1 ? "trial" : "trials"} running` : `${count(busy)} of ${count(slots)} slots in use`}`);
  const present = new Set(list.map((worker) => worker.id));
  for (const [id, row] of rows) {
    if (present.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  list.forEach((worker, index) => {
    const row = rows.get(worker.id) ?? make("tr");
    rows.set(worker.id, row);
    fill(row, worker, names);
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
  });
}

offerFrame();
repeat(3000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
