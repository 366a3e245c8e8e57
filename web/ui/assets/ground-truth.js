// What runs taught about their workloads, one type of machine at a time.
import { get } from "./api.js";
import { byId, make, setText, show } from "./dom.js";
import { count, duration, moment, nothing } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, repeat, tell } from "./live.js";
import { fillSelect } from "./picker.js";
import { drawSavings } from "./savings.js";
import { WorkloadPlane } from "./workload-plane.js";

const chosen = new URLSearchParams(location.search); // machine and configuration
const plane = new WorkloadPlane(byId("plane"));
let shown = ""; // what the tables were made from
let savings = ""; // the same of what was saved

const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A system configuration in one line; its values are the server's own text. */
const written = (configuration) => {
  const parts = Object.entries(configuration ?? {}).map(([name, value]) => `${name}=${value}`).sort();
  return parts.length > 0 ? parts.join(" ") : "nothing set";
};

function choose(name, value) {
  chosen.set(name, value);
  if (name === "machine") chosen.delete("configuration");
  history.replaceState(null, "", `?${chosen}`);
  refresh().catch((error) => tell(error));
}

function workloadRow({ workload, size, compared, fastest, fastest_in: wins }) {
  const told = compared > 0 ? `${wins} of ${plural(compared, "run")} that timed several` : "no run has timed several yet";
  return make("tr", {}, make("th", { scope: "row" }, workload), make("td", { class: "number" }, count(size)),
    make("td", {}, compared > 0 ? written(fastest) : nothing), make("td", {}, told));
}

function drawWorkloads(answer) {
  const { configurations, configuration, runs, workloads } = answer;
  const known = workloads.length > 0;
  show(byId("under"), configurations.length > 0);
  const here = configurations.find((one) => written(one.configuration) === written(configuration));
  fillSelect(byId("configuration"), configurations.map((one) => [one.key, `${written(one.configuration)} (${plural(one.runs, "run")})`]), here?.key ?? "");
  show(byId("workloads"), known);
  byId("workload-table").tBodies[0].replaceChildren(...workloads.map(workloadRow));
  if (known) plane.draw(workloads);
  const placed = workloads.reduce((sum, one) => sum + one.size, 0);
  const strange = runs - placed;
  const none = configurations.length === 0
    ? "No epoch was profiled yet, so nothing tells workloads apart. Workers profile every epoch unless they were started with --no-profile."
    : "The profiles under this configuration have nothing in them that could be compared.";
  setText(byId("workloads-note"), !known ? none : strange > 0 ? `${plural(strange, "run")} under this configuration ${strange === 1 ? "is" : "are"} like none of them so far.` : "");
}

function against({ configurations, neighbours, seconds, slowest_seconds: slowest }) {
  const beside = neighbours > 0 ? ` next to ${plural(neighbours, "other trial")}` : "";
  if (configurations < 2) return `the only one timed${beside}`;
  return `${(slowest / seconds).toFixed(2)} × as fast as the slowest of ${configurations}${beside}`;
}

function runRow({ id, updated, configurations, epochs, comparison }) {
  return make("tr", { data: { run: id } },
    make("th", { scope: "row" }, moment(updated)),
    make("td", { class: "number" }, count(configurations)),
    make("td", { class: "number" }, count(epochs)),
    make("td", {}, comparison ? written(comparison.fastest) : nothing),
    make("td", { class: "number" }, comparison ? duration(comparison.seconds) : nothing),
    make("td", {}, comparison ? against(comparison) : "no epoch was timed"));
}

function drawRuns({ runs, total }) {
  byId("runs").tBodies[0].replaceChildren(...runs.map(runRow));
  setText(byId("runs-note"), total > runs.length ? `The newest ${count(runs.length)} of ${count(total)} runs. "tandem ground-truth export" has all.` : "");
}

async function refresh() {
  const [{ machines }, { studies }] = await Promise.all([get("/ground-truth/machines"), get("/studies")]);
  const saved = JSON.stringify(studies.map(({ id, progress }) => [id, progress.system_use]));
  if (saved !== savings) drawSavings(studies);
  savings = saved;
  const here = machines.find((one) => one.machine === chosen.get("machine")) ?? machines.toSorted((a, b) => b.newest.localeCompare(a.newest))[0];
  show(byId("loading"), false);
  show(byId("empty"), machines.length === 0);
  show(byId("content"), machines.length > 0);
  setText(byId("count"), here ? [plural(here.records, "run"), plural(here.configurations, "configuration"), `${plural(here.epochs, "epoch")} timed`, `the newest report from ${moment(here.newest)}`].join(", ") : "");
  if (!here) return;
  fillSelect(byId("machine"), machines.map((one) => [one.machine, `${one.machine} (${plural(one.records, "run")})`]), here.machine);
  const wanted = JSON.stringify([here, chosen.get("configuration")]);
  if (wanted === shown) return;
  const query = (rest) => `?${new URLSearchParams({ machine: here.machine, ...rest })}`;
  const configuration = chosen.get("configuration");
  const [clusters, runs] = await Promise.all([
    get(`/ground-truth/clusters${query(configuration ? { configuration } : {})}`),
    get(`/ground-truth/runs${query({ limit: "100" })}`),
  ]);
  shown = wanted;
  drawWorkloads(clusters);
  drawRuns(runs);
}

offerFrame();
byId("machine").addEventListener("change", (event) => choose("machine", event.target.value));
byId("configuration").addEventListener("change", (event) => choose("configuration", event.target.value));
repeat(10000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
