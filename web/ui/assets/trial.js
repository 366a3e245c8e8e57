// The page of one trial: its curves, its history and its log.
import { address, get, studyPath } from "./api.js";
import { CurveChart } from "./curve-chart.js";
import { fillLegend, palette, rungColour } from "./chart.js";
import { badge, byId, fillFacts, make, rungMark, setText, show, showError, throttled } from "./dom.js";
import { Figures } from "./figures.js";
import { budget, bytes, count, duration, energy, measured, moment, nothing, parameter } from "./format.js";
import { follow, linkState, repeat } from "./live.js";
import { Log } from "./log.js";
import { offerSignOut } from "./session.js";
import { drawTimeline } from "./timeline.js";
import { newest } from "./trials.js";

const { study: reference, number: digits } = byId("main").dataset;
const number = Number(digits);
const path = (rest = "") => studyPath(reference, rest);
const figures = new Figures(byId("figures"));
const charts = new Map(); // metric -> chart
const workers = new Map(); // id -> name

function drawFigures(study, trial) {
  const [objective] = study.definition.objective;
  const result = newest(trial);
  const used = energy(trial.energy);
  figures.set("value", { term: objective.metric, value: measured(result?.values[0]), detail: result ? `at rung ${result.rung}, ${budget(result.budget)} of data` : "not measured yet" });
  figures.set("rank", { term: "Rank", value: trial.rank ? count(trial.rank) : nothing, detail: trial.rank ? "on the leaderboard" : "comes with a measurement" });
  figures.set("rung", { term: "Rung", value: `${trial.rung} of 0 to ${study.rungs.length - 1}`, detail: `${budget(trial.budget)} of data` });
  figures.set("epochs", { term: "Epochs", value: count(trial.epochs), detail: `trained to epoch ${trial.last_epoch} of ${trial.budget.epochs} on its rung` });
  figures.set("seconds", { term: "Training time", value: trial.epochs ? duration(trial.seconds) : nothing, detail: trial.epochs ? `${duration(trial.seconds / trial.epochs)} an epoch` : "no epoch yet" });
  figures.set("energy", used
    ? { term: "Energy", value: used.text, estimate: used.estimate, detail: used.method.replace(/^estimate: /, ""), title: used.method }
    : { term: "Energy", value: nothing, detail: "not metered" });
}

function drawParameters(study, trial) {
  const { definition } = study;
  const system = Object.entries(definition.system ?? {}).map(([name, value]) => ({ name, kind: "system", value }));
  const tuned = definition.space.parameters.map((one) => ({ ...one, value: trial.params[one.name] }));
  const row = ({ name, kind, value }) => make("tr", {},
    make("th", { scope: "row" }, name), make("td", { class: "muted" }, kind),
    make("td", { class: "number", title: value === undefined ? "does not exist in this configuration" : String(value) }, parameter(value)));
  byId("params").tBodies[0].replaceChildren(...[...tuned, ...system].map(row));
}

function drawResults(study, trial) {
  const rows = (trial.results ?? []).map((result) => make("tr", {},
    make("th", { scope: "row" }, rungMark(result.rung, study.rungs.length)), make("td", {}, budget(result.budget, true)),
    make("td", { class: "number", title: String(result.values[0]) }, measured(result.values[0]))));
  const none = make("tr", {}, make("td", { colspan: "3", class: "muted" }, "None yet."));
  byId("results").tBodies[0].replaceChildren(...(rows.length > 0 ? rows : [none]));
}

function drawFacts(trial) {
  const kept = trial.checkpoint;
  const file = kept && make("a", { href: address(`/artifacts/${kept.artifact}`), download: `trial-${trial.number}-epoch-${kept.epoch}.tar` }, `epoch ${kept.epoch}, ${bytes(kept.bytes)}`);
  fillFacts(byId("facts"), [
    ["Came from", { model: "the model", random: "a random draw", grid: "the grid" }[trial.origin] ?? (trial.origin || nothing)],
    ["Worker", trial.worker ? make("span", { title: trial.worker }, workers.get(trial.worker) ?? trial.worker) : nothing],
    ["Checkpoint", file ?? "none"],
    ["Promotions", count(trial.promotions)],
    ["Resumed", `${count(trial.resumes)} times from a checkpoint`],
    ["Failed", `${count(trial.failures)} times`],
    ["Lost", `${count(trial.losses)} times with its worker`],
    ["Leases", count(trial.lease_epoch)],
    ["Seed", String(trial.seed)],
    ["Created", moment(trial.created)],
    ...(trial.finished ? [["Finished", moment(trial.finished)]] : []),
    ["Id", make("code", {}, trial.id)],
  ]);
}

function drawCurves(study, trial, reports) {
  const [objective] = study.definition.objective;
  const names = [...new Set(reports.flatMap((report) => Object.keys(report.metrics)))].sort((a, b) => Number(b === objective.metric) - Number(a === objective.metric) || a.localeCompare(b));
  show(byId("curves-empty"), names.length === 0);
  for (const metric of names) {
    if (!charts.has(metric)) charts.set(metric, new CurveChart(byId("curves"), metric, study.rungs, metric === objective.metric ? 250 : 160));
    charts.get(metric).draw(reports, trial.results ?? []);
  }
  const colours = palette();
  const used = study.rungs.filter((rung) => reports.some((report) => report.rung === rung.index));
  fillLegend(byId("curve-legend"), used.map((rung) => ({ colour: rungColour(colours, rung.index, study.rungs.length), text: `rung ${rung.index}`, line: true })));
}

function drawNeighbours(total) {
  for (const [id, other] of [["previous", number - 1], ["next", number + 1]]) {
    show(byId(id), other >= 0 && other < total);
    byId(id).href = path(`/trials/${other}`);
  }
}

async function learnWorkers() {
  const answer = await get("/workers");
  for (const worker of answer.workers ?? []) workers.set(worker.id, worker.name);
}

async function start() {
  offerSignOut();
  const study = await get(path());
  document.title = `Trial ${number} · ${study.name} · Tandem`;
  setText(byId("study-link"), study.name);
  byId("study-link").href = studyPath(study.name);
  // First where the events stand, then the trial: nothing between is missed.
  const { sequence, total } = await get(path("/trials?limit=1"));
  await learnWorkers().catch(() => {}); // without names the ids are shown
  const log = new Log(path(`/trials/${number}/log`));
  let trial = null;

  async function refresh() {
    const detail = await get(path(`/trials/${number}`));
    trial = detail.trial;
    byId("status").replaceChildren(badge(trial.state));
    const reason = trial.reason ? trial.reason.charAt(0).toUpperCase() + trial.reason.slice(1) : "";
    setText(byId("reason"), reason);
    show(byId("reason"), reason !== "");
    if (trial.worker && !workers.has(trial.worker)) await learnWorkers().catch(() => {});
    drawFigures(study, trial);
    drawParameters(study, trial);
    drawResults(study, trial);
    drawFacts(trial);
    show(byId("loading"), false);
    show(byId("content"), true);
    drawCurves(study, trial, detail.reports ?? []);
    drawTimeline(detail.events ?? [], (worker) => workers.get(worker) ?? worker);
  }

  await refresh();
  drawNeighbours(total);
  const refreshSoon = throttled(700, () => refresh().then(() => showError(null), showError));
  follow(study.id, sequence, (event) => {
    if (event.number === number) refreshSoon();
  });
  let ended = false;
  repeat(2500, async () => {
    if (ended) return;
    const held = trial.state === "leased" || trial.state === "running";
    await log.refresh();
    ended = !held && !["queued", "paused"].includes(trial.state);
  }, (error) => error && error.status !== 404 && setText(byId("log-note"), error.message));
}

linkState("loading");
start().catch((error) => {
  show(byId("loading"), false);
  linkState("reconnecting");
  if (error.status === 404) {
    showError(new Error(`There is no trial ${number} in a study ${reference} on this server.`));
    return;
  }
  showError(error);
  setTimeout(() => location.reload(), 5000);
});
