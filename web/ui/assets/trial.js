// The page of one trial: its curves, its history and its log.
import { Annotation } from "./annotation.js";
import { artifactFigure } from "./artifacts.js";
import { address, get, identity, referenceOf, studyPath } from "./api.js";
import { keyHint, keyTag, keyText, outputOf } from "./confidential.js";
import { CurveChart } from "./curve-chart.js";
import { fillLegend, palette, rungColour } from "./chart.js";
import { badge, byId, fillFacts, make, rungMark, setText, show, showError, throttled } from "./dom.js";
import { Figures } from "./figures.js";
import { budget, bytes, cost, count, duration, energy, firstLine, infeasible, measured, moment, nothing, number as fromApi, parameter, sentence, share, times } from "./format.js";
import { copyButton } from "./copy.js";
import { DeployCard, latency } from "./deploy.js";
import { expectedPart, seenPart } from "./gpu-share.js";
import { frameForGuest, offerFrame } from "./frame.js";
import { expectedUse } from "./gpu-models.js";
import { offerDownloads } from "./download.js";
import { heatMap, profileTable } from "./heatmap.js";
import { follow, linkState, reloadWhenBack, repeat, showGone, tell } from "./live.js";
import { Log } from "./log.js";
import { margin } from "./repeats.js";
import { SamplesCard } from "./samples.js";
import { drawTrialSystem, knobs, savedFigure } from "./system.js";
import * as snippets from "./snippets.js";
import { drawTimeline } from "./timeline.js";
import { label, newest } from "./trials.js";

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
  const none = (what) => `${what}${trial.finished ? "" : " yet"}`;
  figures.set("value", { term: label(objective), value: measured(result?.values[0]), detail: result ? `rung ${result.rung}, ${budget(result.budget, true)} data` : none("not measured") });
  figures.set("rank", { term: "Rank", value: trial.rank ? count(trial.rank) : nothing, detail: trial.repeat_of !== undefined ? `a repeat: trial ${trial.repeat_of} has the rank` : trial.rank ? (trial.repeated ? "on the leaderboard, by its mean" : "on the leaderboard") : trial.finished ? "without a measurement" : "comes with a measurement" });
  figures.set("rung", { term: "Rung", value: String(trial.rung), detail: `0 to ${study.rungs.length - 1} · ${budget(trial.budget, true)} data` });
  figures.set("epochs", { term: "Epochs", value: count(trial.epochs), detail: trial.budget.seconds || trial.budget.joules ? `trained to epoch ${trial.last_epoch}` : `trained to epoch ${trial.last_epoch} of ${trial.budget.epochs} on its rung` });
  figures.set("seconds", { term: "Training time", value: trial.epochs ? duration(trial.seconds) : nothing, detail: trial.epochs ? `${duration(trial.seconds / trial.epochs)} an epoch` : none("no epoch") });
  figures.set("energy", used
    ? { term: "Energy", value: used.text, estimate: used.estimate, detail: used.method.replace(/^estimate: /, ""), title: used.method }
    : { term: "Energy", value: nothing, detail: trial.epochs ? "not metered" : none("no epoch") });
  const paid = cost(trial.cost);
  if (paid) figures.set("cost", paid);
  const saved = savedFigure(trial.saved, trial.energy);
  if (saved) figures.set("saved", saved);
}

function drawParameters(study, trial) {
  const { definition } = study;
  const system = knobs(definition.system).map(({ name, tuned, value, text }) => (
    tuned ? { name, kind: "system, tuned", value: trial.setting?.configuration[name], hint: `tuned while it trains: ${text}` } : { name, kind: "system", value }));
  const tuned = definition.space.parameters.map((one) => ({ ...one, value: trial.params[one.name] }));
  const row = ({ name, kind, type, value, hint }) => make("tr", {},
    make("th", { scope: "row" }, name), make("td", { class: "muted" }, kind),
    make("td", { class: "number", title: hint ?? (value === undefined ? "does not exist in this configuration" : String(value)) }, parameter(value, type)));
  byId("params").tBodies[0].replaceChildren(...[...tuned, ...system].map(row));
}

function drawResults(study, trial) {
  const rows = (trial.results ?? []).map((result) => make("tr", {},
    make("th", { scope: "row" }, rungMark(result.rung, study.rungs.length)), make("td", {}, budget(result.budget, true)),
    make("td", { class: "number", title: result.values.join(", ") }, result.values.map(measured).join(" · "), result.violation ? make("span", { class: "tag", title: "by how much it misses the constraints" }, infeasible(result.violation)) : null)));
  const none = make("tr", {}, make("td", { colspan: "3", class: "muted" }, trial.finished ? "None." : "None yet."));
  byId("results").tBodies[0].replaceChildren(...(rows.length > 0 ? rows : [none]));
}

/** Where its lease went, of several types of machine; the title has the whole reason. */
function placed({ machine, options, why }) {
  const { score, epoch } = options.find((one) => one.machine === machine);
  return make("span", { title: why }, epoch ? `on ${machine}, score ${score.toFixed(2)} among ${options.length} types` : `on ${machine}, of which nothing was known`);
}

function drawFacts(study, { trial, gpu_expected: expected }, guest) {
  const kept = trial.checkpoint;
  const file = kept && guest ? `epoch ${kept.epoch}, ${bytes(kept.bytes)}` : kept && make("a", { href: address(`/artifacts/${kept.artifact}`), download: `trial-${trial.number}-epoch-${kept.epoch}.tar` }, `epoch ${kept.epoch}, ${bytes(kept.bytes)}`);
  fillFacts(byId("facts"), [
    ...(trial.repeat_of !== undefined ? [["Repeats", make("a", { href: path(`/trials/${trial.repeat_of}`) }, `trial ${trial.repeat_of}`)]] : []),
    ...(trial.retry_of !== undefined ? [["Retries", make("a", { href: path(`/trials/${trial.retry_of}`) }, `trial ${trial.retry_of}`)]] : []),
    ...(trial.repeated ? [["Mean", make("span", { title: `trials ${trial.repeated.trials.join(", ")}; ± is the standard error` }, `${trial.repeated.mean.map((value, index) => measured(value) + margin(trial.repeated, index)).join(" · ")}, of ${count(trial.repeated.results)} trainings`)]] : []),
    ["Came from", { model: "the model", random: "a random draw", grid: "the grid", sobol: "the Sobol sequence", groups: "the methods of its groups", enqueued: "a user", prior: "results of elsewhere", expected: "what is expected", repeat: "another trial, trained again" }[trial.origin] ?? (trial.origin || nothing)],
    ...(trial.inference?.device ? [["Inference", make("span", { title: `${trial.inference.device}: ${trial.inference.method}` }, `${latency(trial.inference.latency_seconds)} on ${trial.inference.device}`, trial.inference.method === "measured" ? null : make("span", { class: "tag" }, "estimate"))]] : []),
    ...(trial.deflation ? [["Left out", make("span", { title: trial.deflation.why }, `${share(trial.deflation.drop)} of the rung’s data`, trial.deflation.loss !== undefined ? ` for about ${measured(trial.deflation.loss)} of the objective ` : null, trial.deflation.loss !== undefined ? make("span", { class: "tag" }, "estimate") : null)]] : []),
    ["Worker", trial.worker ? make("span", { title: trial.worker }, workers.get(trial.worker) ?? trial.worker) : nothing],
    ...(trial.placement ? [["Placed", placed(trial.placement)]] : []),
    ...(trial.migrations?.length > 0 ? [["Moved", make("span", { title: trial.migrations.at(-1).why }, `${times(trial.migrations.length)}, to a better machine`)]] : []),
    ...(trial.attestation ? [["Key", make("span", { title: keyHint(study, trial) }, `${keyText(trial)}, by the policy `, make("code", {}, study.definition.confidential.policy.slice(0, 12)))]] : []),
    ["Checkpoint", file ?? "none"],
    ["Promotions", count(trial.promotions)],
    ["Resumed", `${times(trial.resumes)} from a checkpoint`],
    ["Failed", times(trial.failures)],
    ["Lost", `${times(trial.losses)} with a worker${trial.explained_losses ? `, ${trial.explained_losses} of them for a known reason` : ""}`],
    ...(trial.preemptions ? [["Made way", `${times(trial.preemptions)} for trials of higher priority`]] : []),
    ...(trial.gpus?.length ? [["GPUs", trial.gpus.join(", ")]] : []),
    ...expectedUse(expected),
    ...(trial.gpu_share ? [["Part of that GPU", make("span", {}, ...expectedPart(trial.gpu_share))]] : []),
    ...(trial.gpu_use ? [["On its GPU", seenPart(trial.gpu_use)]] : []),
    ...(trial.gpu_shortage ? [["Out of GPU memory", `${times(trial.gpu_shortage.times)} next to other trials, which is no failure; ${bytes(trial.gpu_shortage.need_bytes)} are kept for it since`]] : []),
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
  setText(byId("curves-empty"), trial.finished ? "No epoch was reported." : "No epoch has been reported yet. The curves start with the first report.");
  for (const metric of names) {
    if (!charts.has(metric)) charts.set(metric, new CurveChart(byId("curves"), metric, study.rungs, metric === objective.metric ? 250 : 160));
    charts.get(metric).draw(reports, trial.results ?? []);
  }
  const colours = palette();
  const used = study.rungs.filter((rung) => reports.some((report) => report.rung === rung.index));
  fillLegend(byId("curve-legend"), used.map((rung) => ({ colour: rungColour(colours, rung.index, study.rungs.length), text: `rung ${rung.index}`, line: true })));
}

/** Every reported metric, a row an epoch. */
function curveTable(reports) {
  const names = [...new Set(reports.flatMap((report) => Object.keys(report.metrics)))].sort();
  return {
    columns: ["epoch", "rung", "seconds", ...names],
    rows: reports.map((report) => [report.epoch, report.rung, fromApi(report.seconds), ...names.map((name) => (name in report.metrics ? fromApi(report.metrics[name]) : null))]),
  };
}

function drawProfile(reports) {
  const [fresh, notes] = heatMap(reports);
  show(byId("profile-card"), Boolean(fresh));
  const frame = byId("profile").querySelector(".heat-frame");
  if (!fresh || !frame) return byId("profile").replaceChildren(...(fresh ? [fresh, notes] : []));
  frame.replaceChildren(...fresh.childNodes); // it stays, with the focus and the place
  frame.nextElementSibling.replaceWith(notes);
}

let logged = "";

/** The files that it logged, where there are new ones. */
function drawArtifacts({ artifacts = [] }) {
  show(byId("artifacts-card"), artifacts.length > 0);
  if (JSON.stringify(artifacts) === logged) return;
  logged = JSON.stringify(artifacts);
  byId("artifacts").replaceChildren(...artifacts.map((file) => artifactFigure(reference, number, file)));
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
  const [study, who] = await Promise.all([get(path()), identity()]);
  const guest = who.scope === "link";
  if (guest) frameForGuest(path());
  const annotation = new Annotation(path(`/trials/${number}`), `trial ${number}`, who.owner !== undefined);
  const again = byId("again");
  again.href = `${studyPath(referenceOf(study))}?enqueue=${number}`;
  show(again, who.owner !== undefined && ["running", "paused"].includes(study.status));
  document.title = `Trial ${number} · ${study.name} · Tandem`;
  setText(byId("study-link"), study.name);
  byId("study-link").href = studyPath(referenceOf(study));
  // First where the events stand, then the trial: nothing between is missed.
  const { sequence, total } = await get(path("/trials?limit=1"));
  if (!guest) await learnWorkers().catch(() => {}); // without names the ids are shown
  const log = new Log(path(`/trials/${number}/log`), study.definition.confidential ? outputOf(study.definition.confidential) : "Nothing was printed so far.");
  const deploy = new DeployCard();
  let trial = null;
  let deployed = "";
  let reports = [];

  // They are asked for again only when something became known of the model.
  async function drawDeployments() {
    const known = JSON.stringify(trial.inference ?? null);
    if (!trial.inference || !study.definition.inference || known === deployed) return;
    deploy.draw((await get(path(`/trials/${number}/deployments`))).devices, `${reference} --trial ${number}`);
    deployed = known;
  }

  async function refresh() {
    const detail = await get(path(`/trials/${number}`));
    trial = detail.trial;
    byId("status").replaceChildren(badge(trial.state), ...keyTag(trial));
    annotation.draw(trial);
    const reason = sentence(firstLine(trial.reason)); // the log has the rest: the end of what its script said
    setText(byId("reason"), reason);
    byId("reason").title = trial.reason ?? "";
    show(byId("reason"), reason !== "");
    if (!guest && trial.worker && !workers.has(trial.worker)) await learnWorkers().catch(() => {});
    drawFigures(study, trial);
    drawParameters(study, trial);
    drawResults(study, trial);
    drawFacts(study, detail, guest);
    show(byId("loading"), false);
    show(byId("content"), true);
    reports = detail.reports ?? [];
    drawCurves(study, trial, reports);
    drawTrialSystem(trial, reports);
    await drawDeployments();
    drawProfile(reports);
    drawArtifacts(trial);
    await samples.draw(trial, reports);
    drawTimeline(detail.events ?? [], (worker) => workers.get(worker) ?? worker);
  }

  const of = `${study.name}-trial-${number}`;
  offerDownloads(byId("curves").closest(".card"), { of, name: "learning-curves", tables: [["Reports", () => curveTable(reports)]] });
  const samples = new SamplesCard(path(`/trials/${number}/samples`), of);
  offerDownloads(byId("profile-card"), { of, name: "profile", tables: [["Profile", () => profileTable(reports)]] });
  byId("profile-numbers").addEventListener("change", (event) => byId("profile").classList.toggle("numbers", event.target.checked));
  await refresh();
  drawNeighbours(total);
  byId("copy-params").replaceChildren(copyButton(() => snippets.json(study.definition, trial)));
  const refreshSoon = throttled(700, () => refresh().then(() => tell(null), tell));
  follow(study.id, sequence, (event) => {
    if (event.number === number) refreshSoon();
  }, () => showGone(`The study ${study.name} was deleted`));
  addEventListener("themechange", refreshSoon);
  // A log grows only while a worker has the trial; its last lines may come
  // with the change of state.
  let readUnder = null;
  repeat(2000, async () => {
    const { state, lease_epoch: lease } = trial;
    if (readUnder === `${state} ${lease}`) return;
    await log.refresh();
    readUnder = state === "leased" || state === "running" ? null : `${state} ${lease}`;
  }, (error) => error && setText(byId("log-note"), error.message));
}

linkState("loading");
offerFrame();
start().catch((error) => {
  if (error.status === 404) {
    showGone(`There is no trial ${number} in a study ${reference} on this server`);
    return;
  }
  show(byId("loading"), false);
  showError(error);
  reloadWhenBack(path(`/trials/${number}`));
});
