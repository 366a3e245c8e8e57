// The workers that ask this server for trials. The one whose panel is open stands
// in the address.
import { change, get, identity, studyPath } from "./api.js";
import { boardWords } from "./board-words.js";
import { confirm } from "./confirm.js";
import { badge, byId, fillFacts, make, setText, show, showError } from "./dom.js";
import { ago, bytes, count, measured, nothing, parameter, several, sentence, share } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, repeat, tell } from "./live.js";
import { Address } from "./picker.js";
import { WorkerHistory } from "./worker-history.js";

const body = byId("workers").tBodies[0];
const rows = new Map(); // worker id -> row
const address = new Address(() => drawPanel());
const lastHour = new WorkerHistory();
let workers = [];
let names = new Map(); // study id -> name
let mayDrain = false; // whoever has studies; whose workers, the server decides

const under = (...content) => make("span", { class: "sub" }, ...content);

function fill(row, worker) {
  const { machine, load, alive } = worker;
  const parts = [machine.cores > 0 && cores(machine), machine.memory_bytes > 0 && bytes(machine.memory_bytes), ...(machine.gpus ?? [])];
  const here = new URL(location.href);
  here.searchParams.set("worker", worker.id);
  const cells = [
    make("th", { scope: "row" }, make("a", { href: here.search, "aria-controls": "panel", on: { click: (event) => open(event, worker.id) } }, worker.name), under(machine.host), ...(worker.server_version ? [under(`tandem ${versions(worker)}`)] : [])),
    make("td", {}, badge(stateOf(worker)), ...(worker.drained?.reason ? [under(worker.drained.reason)] : [])),
    make("td", {}, machine.cpu_model || nothing, under(parts.filter(Boolean).join(", "))),
    make("td", {}, ...(alive && load ? [gauge("CPU", load.cpu_utilization), under(`memory ${share(load.memory_utilization)}`)] : [nothing])),
    make("td", {}, ...power(worker)),
    make("td", {}, sandbox(worker), ...refusals(worker)),
    make("td", { class: "number" }, `${count(worker.trials?.length ?? 0)} of ${worker.elastic ? "as many as fit" : count(worker.slots)}`),
    make("td", { class: "trial-links" }, ...(worker.trials?.length ? worker.trials.map(trialLink) : [nothing])),
    make("td", { class: "number" }, ago(worker.last_seen_seconds)),
  ];
  cells.forEach((cell, index) => {
    const old = row.cells[index];
    if (!old) row.append(cell);
    else if (!old.isEqualNode(cell)) old.replaceWith(cell);
  });
}

/** The cores of a machine, and how much of their time where that is limited. */
function cores({ cores: number, cpu_quota: quota }) {
  return `${several(number, "core")}${quota ? `, ${parameter(quota)} of time` : ""}`;
}

/** Whether a worker is heard of, and given trials. */
const stateOf = ({ alive, drained }) => (!alive ? "silent" : drained ? "drained" : "alive");

/** The version, and the server's where that is another. */
const versions = ({ version, server_version: server }) => (server ? `${version}, and the server is ${server}: upgrade the older` : version || nothing);

/** A share as a bar, and in words. */
function gauge(what, part) {
  const bar = make("i");
  bar.style.width = `${100 * Math.min(1, part)}%`;
  return make("span", {}, make("span", { class: "gauge", "aria-hidden": "true" }, bar), `${what} ${share(part)}`);
}

/** What the machine draws; without a word of the worker on that, how it obtains joules. */
function power({ alive, load, machine }) {
  const method = (alive && load?.method) || machine.energy_method || "";
  const from = method.startsWith("estimate") ? make("span", { class: "tag", title: method }, "estimate") : null;
  if (alive && load) return [`${load.watts < 10 ? load.watts.toFixed(1) : count(load.watts)} W`, from ?? under(method)];
  return from ? [make("span", { title: method }, "a model ", from)] : [method || nothing];
}

/** What holds the commands of a worker; its title has the layers, or why one is missing. */
function sandbox({ sandbox: told }) {
  if (!told) return nothing;
  if (told.mode === "off") return make("span", { title: "Commands have all the rights of the worker." }, "off");
  const missing = told.missing ?? [];
  if (missing.length === 0) return make("span", { title: `Layers: ${told.layers.join(", ")}` }, told.mode, under("all layers"));
  const without = missing.map((one) => one.split(":")[0]).join(", ");
  return make("span", { title: missing.join("\n") }, told.mode, under(`without ${without}`));
}

/** The studies that a worker's owner does not let it run. */
function refusals({ refuses }) {
  return Object.entries(refuses ?? {}).map(([study, reason]) => make("span", { class: "sub", title: reason }, `refuses ${names.get(study) ?? study}`));
}

/** A trial's id is the study's id, a dash and the number. */
function trialLink(id) {
  const dash = id.lastIndexOf("-");
  const [study, number] = [id.slice(0, dash), id.slice(dash + 1)];
  return make("a", { href: studyPath(study, `/trials/${number}`) }, `${names.get(study) ?? study} #${number}`);
}

function open(event, id) {
  event.preventDefault();
  address.put({ worker: id });
  byId("panel").focus({ preventScroll: true });
  byId("panel").scrollIntoView({ block: "nearest" });
}

/** What a worker can measure, and the layers of its sandbox: [name, there, words]. */
function abilities({ measures, sandbox: told }) {
  const list = (measures ?? []).map(({ name, available, detail, reason, remedy }) => [name, available, [detail, reason, remedy && `To have it: ${remedy}`].filter(Boolean).join(". ")]);
  const layers = (told?.layers ?? []).map((name) => [`sandbox: ${name}`, true, "holds"]);
  const missing = (told?.missing ?? []).map((one) => {
    const [name, ...why] = one.split(": ");
    return [`sandbox: ${name}`, false, why.join(": ")];
  });
  return [...list, ...layers, ...missing];
}

/** A measured number with as many digits as it is worth. */
const rough = (value) => parameter(Number(value.toPrecision(3)));

/** What the probing tasks took on the worker's machine, the same work on every one. */
function drawProbes({ probes = [] }) {
  const table = byId("probes");
  show(table, probes.length > 0);
  table.tBodies[0].replaceChildren(...probes.map(({ workload, setting, seconds, joules }) => make("tr", {},
    make("th", { scope: "row" }, workload), make("td", {}, setting || "as it is"), make("td", { class: "number" }, rough(seconds)), make("td", { class: "number" }, rough(joules)))));
  const methods = [...new Set(probes.map(({ method }) => method))];
  setText(byId("probes-note"), probes.length > 0 ? `The same work on every machine, on all of the worker's cores. Joules: ${methods.join("; ")}.` : "They have not run here: start the worker with --probe once.");
}

/** The panel of the worker in the address, if that is connected. */
function drawPanel() {
  const worker = workers.find(({ id }) => id === address.get("worker"));
  const wasHidden = byId("panel").hidden;
  show(byId("panel"), worker !== undefined);
  if (!worker) return;
  lastHour.draw(worker.id);
  const { machine, load, alive } = worker;
  setText(byId("panel-title"), `${worker.name}: ${stateOf(worker)}, seen ${ago(worker.last_seen_seconds)}`);
  const key = JSON.stringify([worker.id, worker.measures, worker.sandbox, worker.probes]);
  const table = byId("measures");
  if (table.dataset.key !== key || wasHidden) {
    table.dataset.key = key;
    drawProbes(worker);
    const found = abilities(worker);
    table.tBodies[0].replaceChildren(...found.map(([name, there, words]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, there ? make("span", { class: "tag good" }, "yes") : make("span", { class: "tag" }, "no")), make("td", {}, words || nothing))));
    setText(byId("measures-note"), worker.measures ? "What is missing is left out of profiles, or labelled as an estimate. \"tandem doctor\" on the machine says the same and more." : "This worker does not say what it can measure: it is of an earlier version.");
  }
  show(byId("drain"), mayDrain && !worker.drained);
  show(byId("drain-now"), mayDrain && !worker.drained?.now && (worker.trials?.length ?? 0) > 0);
  show(byId("undrain"), mayDrain && worker.drained !== undefined);
  // A link with the focus stays as long as nothing has changed.
  const facts = JSON.stringify({ ...worker, last_seen_seconds: 0, names: [...names] });
  if (byId("machine").dataset.key === facts) return;
  byId("machine").dataset.key = facts;
  fillFacts(byId("machine"), [
    ["Host", machine.host || nothing],
    ["Version of tandem", versions(worker)],
    ["Processor", machine.cpu_model || nothing],
    ["Cores", `${cores(machine)}${alive && load ? `, ${share(load.cpu_utilization)} of their time in use` : ""}`],
    ["Memory", machine.memory_bytes > 0 ? `${bytes(machine.memory_bytes)}${alive && load ? `, ${share(load.memory_utilization)} in use` : ""}` : nothing],
    ...(machine.memory_limit_bytes ? [["Memory limit", `${bytes(machine.memory_limit_bytes)}, of its control group`]] : []),
    ...(machine.governor ? [["Governor", `${machine.governor}, when the worker started`]] : []),
    ...(worker.labels ? [["Labels", Object.entries(worker.labels).map(([name, value]) => `${name}=${value}`).join(", ")]] : []),
    ...(worker.taints ? [["Takes only trials that tolerate", worker.taints.join(", ")]] : []),
    ["GPUs", machine.gpus?.length ? machine.gpus.join(", ") : "none"],
    ...(machine.gpu_power_cap_watts ? [["GPU power cap", `${parameter(machine.gpu_power_cap_watts)} W, when the worker started`]] : []),
    ["Power", make("span", {}, ...(alive && load ? [`${measured(load.watts)} W, `, load.method] : ["not reported"]))],
    ["Joules of trials", machine.energy_method || nothing],
    ["Knobs it can set", machine.knobs?.length ? machine.knobs.join(", ") : "none"],
    ["Trials at once", worker.elastic ? `as many as fit, at most ${count(worker.slots)}` : count(worker.slots)],
    ["Runs now", worker.trials?.length ? make("span", { class: "trial-links" }, ...worker.trials.map(trialLink)) : "nothing"],
    ...(worker.drained ? [["Drained", [`since ${new Date(worker.drained.since).toLocaleString()}`, worker.drained.now && "its trials go on elsewhere", worker.drained.reason].filter(Boolean).join("; ")]] : []),
    ...Object.entries(worker.refuses ?? {}).map(([study, reason]) => [`Refuses ${names.get(study) ?? study}`, reason]),
    ...Object.entries(worker.excluded ?? {}).map(([study, one]) => [`Excluded from ${names.get(study) ?? study}`, `until ${new Date(one.until).toLocaleString()}: ${one.reason}`]),
    ["Id", make("code", {}, worker.id)],
  ]);
}

async function refresh() {
  const boards = get("/boards").then((found) => found.boards ?? [], () => []); // not everybody may see them
  const [found, { studies }] = await Promise.all([get("/workers"), get("/studies")]);
  workers = (found.workers ?? []).sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || a.id.localeCompare(b.id));
  names = new Map((studies ?? []).map((study) => [study.id, study.name]));
  show(byId("loading"), false);
  show(byId("empty"), workers.length === 0);
  show(byId("frame"), workers.length > 0);
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = workers.reduce((sum, worker) => sum + (worker.trials?.length ?? 0), 0);
  setText(byId("count"), workers.length === 0 ? "" : `${count(workers.length)} connected, ${workers.some((worker) => worker.elastic) ? `${count(busy)} ${busy === 1 ? "trial" : "trials"} running` : `${count(busy)} of ${count(slots)} slots in use`}${drawn(workers)}`);
  const present = new Set(workers.map((worker) => worker.id));
  for (const [id, row] of rows) {
    if (present.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  workers.forEach((worker, index) => {
    const row = rows.get(worker.id) ?? make("tr");
    rows.set(worker.id, row);
    fill(row, worker);
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
  });
  drawPanel();
  drawBoards(await boards);
}

function drawBoards(list) {
  setText(byId("boards-note"), list.length > 0 ? `Boards that measure models: ${list.map(boardWords).join("; ")}.` : "");
}

/** What all machines draw together; several workers of a host tell the same. */
function drawn(list) {
  const hosts = new Map(list.filter(({ alive, load }) => alive && load).map(({ machine, load }) => [machine.host, load]));
  if (hosts.size === 0) return "";
  const loads = [...hosts.values()];
  const watts = loads.reduce((sum, load) => sum + load.watts, 0);
  const estimate = loads.some(({ method }) => method.startsWith("estimate"));
  return `, ${count(watts)} W${estimate ? " (an estimate)" : ""}`;
}

/** Drains the worker of the panel, or gives it trials again, when the reader confirms. */
async function drain(method, body, question) {
  const worker = workers.find(({ id }) => id === address.get("worker"));
  if (!worker || !(await confirm(question(worker)))) return;
  showError(null, "action-error");
  try {
    await change(method, `/workers/${encodeURIComponent(worker.id)}/drain`, body);
    await refresh();
    byId("panel").focus({ preventScroll: true });
  } catch (error) {
    showError(new Error(`The worker was not changed. ${sentence(error.message)}`), "action-error");
  }
}

offerFrame();
byId("drain").addEventListener("click", () => drain("POST", {}, ({ name }) => ({
  title: `Drain ${name}?`, text: "It is given no more trials, also after a restart, until it is undrained. Those that it runs go on to the end of their rung.", action: "Drain" })));
byId("drain-now").addEventListener("click", () => drain("POST", { now: true }, ({ name }) => ({
  title: `Drain ${name} now?`, text: "It is given no more trials, also after a restart, until it is undrained. Those that it runs take a checkpoint after their epoch and go on on other workers.", action: "Drain now" })));
byId("undrain").addEventListener("click", () => drain("DELETE", undefined, ({ name }) => ({ title: `Undrain ${name}?`, text: "It is given trials again.", action: "Undrain" })));
identity().then(({ scope }) => {
  mayDrain = scope === "admin" || scope === "user";
  drawPanel();
}, () => {}); // the page tells of a server that is away
byId("close-panel").addEventListener("click", () => address.put({ worker: "" }));
repeat(3000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
