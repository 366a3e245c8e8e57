// Where the models of a study will run: what they are worth against what they cost
// on each device, and how to deploy the one that is chosen.
import { get, referenceOf, studyPath } from "./api.js";
import { drawBackends } from "./backend-card.js";
import { fillLegend, palette } from "./chart.js";
import { boardWords } from "./board-words.js";
import { DeployCard, between, energyTag, estimated, latency, loadLines, runWith, runs, sampleEnergy, under } from "./deploy.js";
import { byId, make, setText, show, showError } from "./dom.js";
import { offerDownloads } from "./download.js";
import { EdgeChart } from "./edge-chart.js";
import { bytes, count, measured, nothing, number } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, reloadWhenBack, repeat, showGone, tell } from "./live.js";
import { Address, fillSelect } from "./picker.js";

const reference = byId("main").dataset.study;
const path = (rest = "") => studyPath(reference, rest);
const address = new Address(() => draw());
const deploy = new DeployCard();
const chart = new EdgeChart(byId("scatter"), { tell: (point) => lines(point), select: (point) => choose(point) });

let study = null;
let answer = null; // the overview
let boards = []; // null: none may be seen
let asked = ""; // the progress it was asked for
let points = []; // on the chosen device

const views = {
  "value-latency": { x: "latency", y: "value" },
  "value-energy": { x: "energy", y: "value" },
  "energy-latency": { x: "latency", y: "energy" },
};
const view = () => views[address.get("axes")] ?? views["value-latency"];
const device = () => (answer.devices.includes(address.get("device")) ? address.get("device") : answer.devices[0]);
const nameOf = (quantity) => ({ value: answer.metric, latency: "latency of a batch, ms", energy: "energy of a sample, mJ" })[quantity];

/** The trial that the reader chose, or else the recommended one. */
function chosenTrial() {
  const wanted = address.get("trial") === "" ? answer.recommended : Number(address.get("trial"));
  return answer.trials.find((one) => one.number === wanted) ?? answer.trials[0];
}

const deploymentOn = (one, name) => one.deployments.find((candidate) => candidate.device === name);
const sameConfiguration = (a, b) => JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

/** A deployment's configurations: the best, and the others that nothing beats. */
function configurationsOf(deployment) {
  const best = {
    configuration: deployment.configuration, best: true, estimate: estimated(deployment.method),
    latency: deployment.latency_seconds, energy: deployment.joules_per_sample, samples: deployment.samples_per_second, memory: deployment.memory_bytes,
  };
  const others = (deployment.front ?? []).filter(({ configuration }) => !sameConfiguration(configuration, deployment.configuration)).map(({ configuration, outcome }) => {
    const each = configuration.batch_size;
    const part = (value) => (value ?? 0) / each;
    return {
      configuration, best: false, estimate: !outcome.measured,
      latency: { value: outcome.latency_seconds, low: outcome.latency_seconds_low ?? 0, high: outcome.latency_seconds_high ?? 0 },
      energy: { value: part(outcome.joules), low: part(outcome.joules_low), high: part(outcome.joules_high) },
      samples: each / outcome.latency_seconds, memory: outcome.memory_bytes ?? 0,
    };
  });
  return [best, ...others];
}

/** Whether a is at least as good as b everywhere, and better somewhere; larger is better. */
const dominates = (a, b) => a.every((value, index) => value >= b[index]) && a.some((value, index) => value > b[index]);

/** Every configuration of every trial on the device, with those that nothing beats marked. */
function pointsOn(name) {
  const top = Math.max(...answer.trials.map(({ rung }) => rung));
  const sign = answer.direction === "maximize" ? 1 : -1;
  const all = answer.trials.flatMap((one) => {
    const deployment = deploymentOn(one, name);
    if (!runs(deployment)) return [];
    return configurationsOf(deployment).map((each) => ({ trial: one, deployment, ...each, value: number(one.value) }));
  });
  const able = all.filter(({ trial, value, deployment }) => trial.rung === top && Number.isFinite(value) && deployment.feasible);
  const points = able.map(({ value, latency: seconds, energy }) => [sign * value, -seconds.value, energy.value > 0 ? -energy.value : 0]);
  const front = new Set(able.filter((_, at) => !points.some((other) => dominates(other, points[at]))));
  return all.map((one) => ({ ...one, front: front.has(one), own: one.best }));
}

const amounts = { value: (one) => one.value, latency: (one) => 1e3 * one.latency.value, energy: (one) => (one.energy.value > 0 ? 1e3 * one.energy.value : NaN) };

function bandOf(one, quantity) {
  if (quantity === "value" || !(one[quantity].low > 0 && one[quantity].high > one[quantity].low)) return null;
  return [1e3 * one[quantity].low, 1e3 * one[quantity].high];
}

const tagOf = ({ estimate }) => (estimate ? "an estimate" : "measured");

function lines(one) {
  return [
    `Trial ${one.trial.number}${one.front ? ", on the front" : ""}`, `${answer.metric} ${measured(one.trial.value)}`, runWith(one.configuration),
    `${latency(one.latency.value)} a batch, ${sampleEnergy(one.energy.value)} a sample`, tagOf(one),
  ];
}

/** Chooses a point: its trial and its configuration stand in the address. */
function choose({ trial, configuration }) {
  address.put({ configuration: runWith(configuration), trial: String(trial.number) });
}

function drawChart() {
  const { x, y } = view();
  const shown = points.map((one) => ({ ...one, x: amounts[x](one), y: amounts[y](one), band: bandOf(one, x) })).filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y));
  const chosen = chosenTrial();
  const mine = shown.filter(({ trial }) => trial === chosen);
  const selected = mine.find(({ configuration }) => runWith(configuration) === address.get("configuration")) ?? mine.find(({ own }) => own) ?? null;
  const fronts = shown.filter(({ front }) => front).length;
  chart.draw(shown, selected, {
    across: nameOf(x), up: nameOf(y),
    label: `${shown.length} configurations of ${answer.trials.length} trials on ${device()}, ${fronts} on the Pareto front of ${answer.metric}, latency and energy. The tables below have them.`,
  });
  const colours = palette();
  fillLegend(byId("scatter-legend"), [
    { colour: colours.accent, text: "filled: on the Pareto front" }, { colour: colours.muted, text: "hollow: beaten", hollow: true }, { colour: colours.strong, text: "large: a trial's best deployment", hollow: true },
  ]);
  const without = shown.length < points.length ? `${points.length - shown.length} without a number are not drawn.` : "";
  setText(byId("scatter-note"), [`The front is of ${answer.metric} (${answer.direction}), latency and energy together, among trials of the highest rung that keep to the constraints.`, without].filter(Boolean).join(" "));
  setText(byId("selected"), selected ? `Selected: ${lines(selected).join(", ")}${selected.band ? `; the band of the ${nameOf(view().x)}: ${measured(selected.band[0])} to ${measured(selected.band[1])}` : ""}.` : "");
}

const tag = (estimate, method) => (estimate ? make("span", { class: "tag", title: method.startsWith("estimate") ? method : "an estimate, calibrated by what was measured" }, "estimate") : make("span", { class: "tag good" }, "measured"));

function trialRow(one) {
  const deployment = deploymentOn(one, device());
  const here = new URL(location.href);
  here.searchParams.set("trial", one.number);
  const link = make("a", { href: here.search, "aria-current": one === chosenTrial() ? "true" : null, on: { click: (event) => pick(event, one) } }, `#${one.number}`);
  const first = [
    make("th", { scope: "row" }, link, one.number === answer.recommended ? make("span", { class: "tag good" }, "recommended") : null, one.sharing > 1 ? make("span", { class: "sub" }, `its architecture is that of ${count(one.sharing)} trials`) : null),
    make("td", { class: "number strong", title: String(one.value) }, measured(one.value)), make("td", { class: "number" }, String(one.rung)),
  ];
  if (!runs(deployment)) return make("tr", {}, ...first, make("td", { colspan: "5", class: "muted" }, deployment?.unmet?.join("; ") ?? "its architecture is not kept any more"));
  const best = points.find(({ trial, own }) => trial === one && own);
  const onFront = points.filter(({ trial, front }) => trial === one && front).length;
  return make("tr", { class: one === chosenTrial() ? "chosen" : "" }, ...first,
    make("td", {}, runWith(deployment.configuration), ...loadLines(deployment), tag(estimated(deployment.method), deployment.method), deployment.feasible ? null : make("span", { class: "tag" }, "misses the constraints")),
    make("td", { class: "number" }, latency(deployment.latency_seconds.value), under(between(deployment.latency_seconds, latency))),
    make("td", { class: "number", title: deployment.energy_method }, sampleEnergy(deployment.joules_per_sample.value), energyTag(deployment), under(between(deployment.joules_per_sample, sampleEnergy))),
    make("td", { class: "number" }, bytes(deployment.memory_bytes)),
    make("td", {}, best?.front ? "yes" : onFront > 0 ? "with another configuration" : "no"));
}

function pick(event, one) {
  event.preventDefault();
  address.put({ configuration: "", trial: String(one.number) });
}

function configurationRows(deployment) {
  const found = runs(deployment) ? configurationsOf(deployment) : [];
  if (found.length === 0) return [make("tr", {}, make("th", { scope: "row" }, deployment.device), make("td", { colspan: "6", class: "muted" }, deployment.unmet?.join("; ") ?? "it does not run there"))];
  return found.map((one) => make("tr", { class: one.best ? "chosen" : "" },
    make("th", { scope: "row" }, deployment.device, tag(one.estimate, deployment.method)),
    make("td", {}, runWith(one.configuration)),
    make("td", { class: "number" }, latency(one.latency.value), under(between(one.latency, latency))),
    make("td", { class: "number" }, count(Number(one.samples.toPrecision(3)))),
    make("td", { class: "number" }, sampleEnergy(one.energy.value), under(between(one.energy, sampleEnergy))),
    make("td", { class: "number" }, one.memory > 0 ? bytes(one.memory) : nothing),
    make("td", {}, one.best ? "chosen for the study's objective" : "")));
}

function drawTables() {
  const chosen = chosenTrial();
  setText(byId("trials-title"), `Trials on ${device()}`);
  setText(byId("metric-head"), answer.metric);
  byId("edge-trials").tBodies[0].replaceChildren(...answer.trials.map(trialRow));
  setText(byId("trials-note"), [...answer.notes.map((note) => `${note}.`), "Values of different rungs do not compare."].join(" "));
  setText(byId("configurations-title"), `Devices and configurations of trial ${chosen.number}`);
  byId("configurations").tBodies[0].replaceChildren(...chosen.deployments.flatMap(configurationRows));
  setText(byId("configurations-note"), "Configurations that no other beats in latency, energy and throughput at once. The program below is for the chosen ones.");
  setText(byId("deploy-title"), `Deploy the model of trial ${chosen.number}${chosen.number === answer.recommended ? ", which is recommended" : ""}`);
  deploy.draw(chosen.deployments.filter(runs), `${reference} --trial ${chosen.number}`);
  if (boards !== null) drawBackends(reference, chosen.number).catch(showError);
}

function draw() {
  if (!answer || answer.trials.length === 0) return;
  fillSelect(byId("device"), answer.devices.map((name) => [name, name]), device());
  fillSelect(byId("axes"), Object.entries(views).map(([value, { x, y }]) => [value, `${nameOf(y).split(",")[0]} against ${nameOf(x).split(",")[0]}`]), Object.keys(views).find((key) => views[key] === view()));
  points = pointsOn(device());
  drawChart();
  drawTables();
}

function drawEmpty(title, text) {
  show(byId("empty"), true);
  show(byId("content"), false);
  setText(byId("empty-title"), title);
  setText(byId("empty-text"), text);
}

/** Every configuration of every trial on every device. */
const configurations = () => ({
  columns: ["device", "trial", "rung", answer.metric, "batch_size", "cores", "cpu_hertz", "latency_seconds", "latency_seconds_low", "latency_seconds_high", "joules_per_sample", "joules_per_sample_low", "joules_per_sample_high", "memory_bytes", "estimate", "best_of_trial", "on_front"],
  rows: answer.devices.flatMap((name) => pointsOn(name).map((one) => [
    name, one.trial.number, one.trial.rung, one.trial.value, one.configuration.batch_size, one.configuration.cores, one.configuration.cpu_hertz,
    one.latency.value, one.latency.low, one.latency.high, one.energy.value, one.energy.low, one.energy.high, one.memory, one.estimate, one.own, one.front,
  ])),
});

/** The boards that measure for the study's devices; none for whoever may not see machines. */
async function lookForBoards() {
  if (boards === null) return;
  try {
    const { devices = [] } = study.definition.inference ?? {};
    boards = (await get("/boards")).boards.filter(({ device: name }) => devices.includes(name));
  } catch (error) {
    if (error.status !== 403) throw error;
    boards = null;
  }
}

function drawBoards() {
  setText(byId("boards-note"), boards === null ? "" : boards.length > 0
    ? `Boards: ${boards.map(boardWords).join("; ")}.`
    : "No board measures for this study: run \u201ctandem edge agent\u201d on one of its devices, and measurements replace the estimates.");
}

/** Asks for the overview again when something was trained or measured since. */
async function refresh() {
  study = await get(path());
  await lookForBoards();
  document.title = `Edge of ${study.name} · Tandem`;
  setText(byId("study-link"), study.name);
  byId("study-link").href = studyPath(referenceOf(study));
  const progress = `${study.status} ${study.progress.epochs} ${(boards ?? []).map((one) => one.measured)}`;
  if (study.definition.inference && progress !== asked) {
    answer = await get(path("/edge"));
    asked = progress;
  }
  show(byId("loading"), false);
  if (!study.definition.inference) drawEmpty("This study is not about inference", "Give its file an inference section with the devices (docs/edge.md), and let the script call trial.save_model.");
  else if (answer.trials.length === 0) drawEmpty("No model yet", "The first measured trial whose script called trial.save_model will stand here.");
  else {
    show(byId("empty"), false);
    show(byId("content"), true);
    drawBoards();
    setText(byId("count"), `${count(answer.architectures)} ${answer.architectures === 1 ? "architecture" : "architectures"} on ${count(answer.devices.length)} ${answer.devices.length === 1 ? "device" : "devices"}`);
    draw();
  }
}

async function start() {
  await refresh();
  offerDownloads(byId("scatter").closest(".card"), { of: study.name, name: "edge", where: () => (answer ? device() : ""), tables: [["Configurations", configurations]] });
  byId("device").addEventListener("change", () => address.put({ device: byId("device").value, configuration: "" }));
  byId("axes").addEventListener("change", () => address.put({ axes: byId("axes").value }));
  addEventListener("themechange", draw);
  repeat(10000, refresh, (error) => linkState(tell(error) ? "reconnecting" : "live"));
}

linkState("loading");
offerFrame();
start().catch((error) => {
  if (error.status === 404) {
    showGone(`There is no study ${reference} on this server`);
    return;
  }
  show(byId("loading"), false);
  showError(error);
  reloadWhenBack(path());
});
