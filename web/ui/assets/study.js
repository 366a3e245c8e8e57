// The page of one study: loads what there is, then follows the events.
import { address, change, get, studyPath } from "./api.js";
import { Answer } from "./answer.js";
import { BestChart } from "./best-chart.js";
import { Board } from "./board.js";
import { confirm } from "./confirm.js";
import { byId, make, show, showError, throttled } from "./dom.js";
import { sentence } from "./format.js";
import { DeployCard } from "./deploy.js";
import { FrontCard } from "./front-card.js";
import { History } from "./history.js";
import { offerFrame } from "./frame.js";
import { follow, linkState, reloadWhenBack, repeat, showGone, tell } from "./live.js";
import { Importance } from "./importance.js";
import { RungChart } from "./rung-chart.js";
import { Summary, drawAgreement, drawLadder, drawSetup } from "./summary.js";
import { Trials } from "./trials.js";

// Longer histories are read only when asked for: the charts of what happened
// before need every event of the study.
const longHistory = 20000;

const reference = byId("main").dataset.study;
const path = (rest = "") => studyPath(reference, rest);
const summary = new Summary();
let study = null;

async function refresh() {
  const at = performance.now();
  const [view, { workers }] = await Promise.all([get(path()), get("/workers")]);
  study = view;
  summary.draw(study, workers ?? [], at);
  offerActions();
}

function offerActions() {
  show(byId("pause"), study.status === "running");
  show(byId("resume"), study.status === "paused");
  show(byId("stop"), study.status === "running" || study.status === "paused");
}

async function act(run) {
  const buttons = [...byId("actions").querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  showError(null, "action-error");
  try {
    await run();
  } catch (error) {
    showError(new Error(`The study was not changed. ${sentence(error.message)}`), "action-error");
  }
  buttons.forEach((button) => (button.disabled = false));
}

const post = (action) => act(async () => {
  await change("POST", path("/" + action));
  await refresh();
});

const remove = () => act(async () => {
  await change("DELETE", path());
  location.assign("/studies");
});

function wireActions() {
  byId("pause").addEventListener("click", async () => {
    const running = study.progress.trials.running + study.progress.trials.leased;
    const text = `${running === 1 ? "The trial" : `The ${running} trials`} being trained will take a checkpoint after the present epoch and stop. Resume goes on from there.`;
    if (await confirm({ title: `Pause ${study.name}?`, text: running > 0 ? text : "No new trial starts until it is resumed.", action: "Pause" })) post("pause");
  });
  byId("resume").addEventListener("click", async () => {
    if (await confirm({ title: `Resume ${study.name}?`, text: "Its trials go on from their last checkpoints as workers become free.", action: "Resume" })) post("resume");
  });
  byId("stop").addEventListener("click", async () => {
    const text = "Running trials are cancelled, and the study cannot be resumed. Everything measured so far is kept.";
    if (await confirm({ title: `Stop ${study.name} for good?`, text, action: "Stop the study", dangerous: true })) post("stop");
  });
  byId("delete").addEventListener("click", async () => {
    const text = "Its trials, reports, logs and events are removed, and its checkpoints with them. This cannot be undone. Export first what you want to keep.";
    if (await confirm({ title: `Delete ${study.name} and all it measured?`, text, action: "Delete the study", dangerous: true })) remove();
  });
  byId("export-csv").href = address(path("/export?format=csv"));
  byId("export-json").href = address(path("/export?format=json"));
  show(byId("actions"), true);
}

async function start() {
  await refresh();
  wireActions();
  const trials = new Trials(study);
  const sequence = await trials.load();
  show(byId("loading"), false);
  show(byId("content"), true);
  drawSetup(study);

  const open = (number) => location.assign(path(`/trials/${number}`));
  const history = new History(study);
  const board = new Board(study, trials);
  const bestChart = new BestChart(study, history, open);
  const rungChart = new RungChart(study, trials, open);
  const answer = new Answer(study, trials);
  const front = new FrontCard(study, trials, open);
  const deploy = new DeployCard();
  const drawBoard = throttled(250, () => board.draw());
  const drawBest = throttled(1000, () => bestChart.draw(summary.age()));
  const drawRungs = throttled(1000, () => {
    rungChart.draw();
    drawLadder(study, trials);
  });
  const recommend = throttled(2000, () => get(path("/recommendation")).then((advice) => {
    answer.draw(advice);
    front.draw(advice);
    deploy.draw(advice.deployments);
  }, () => {})); // the next event asks again
  const importance = new Importance(study, (rung) => get(path(`/ablation?rung=${rung}`)));
  const weigh = throttled(10000, () => get(path("/importance")).then((found) => importance.draw(found), () => {})); // the next event asks again
  const agree = throttled(10000, () => get(path("/correlations")).then(drawAgreement, () => {})); // the next event asks again
  const refreshSoon = throttled(1500, () => refresh().catch(() => {})); // the regular one reports errors
  for (const draw of [drawBoard, drawBest, drawRungs, recommend, weigh, agree]) draw();

  const whole = sequence <= longHistory || new URLSearchParams(location.search).has("history");
  if (!whole) offerHistory(sequence);
  follow(study.id, whole ? 0 : sequence, (event) => {
    if (history.apply(event)) drawBest();
    if (event.sequence <= sequence) return; // the trials were loaded with it
    if (trials.apply(event)) drawBoard();
    if (event.kind !== "checkpoint") drawRungs();
    if (event.kind === "emulation") recommend();
    if (event.kind === "trial_state" || event.kind === "study_status") {
      recommend();
      weigh();
      agree();
    }
    refreshSoon();
  }, () => showGone(`The study ${study.name} was deleted`));
  addEventListener("themechange", () => {
    drawBest();
    drawRungs();
  });
  setInterval(() => summary.tick(), 1000);
  repeat(15000, refresh, tell);
}

function offerHistory(events) {
  const here = new URL(location.href);
  here.searchParams.set("history", "all");
  const link = make("a", { href: here.href }, "Load it");
  byId("best-legend").after(make("p", { class: "chart-note" }, `From now on. The history has ${events.toLocaleString("en")} events. `, link, "."));
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
