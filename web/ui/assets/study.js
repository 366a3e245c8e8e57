// The page of one study: loads what there is, then follows the events.
import { address, change, get, studyPath } from "./api.js";
import { Answer } from "./answer.js";
import { BestChart } from "./best-chart.js";
import { Board } from "./board.js";
import { confirm } from "./confirm.js";
import { byId, make, show, showError, throttled } from "./dom.js";
import { History } from "./history.js";
import { follow, linkState, repeat } from "./live.js";
import { RungChart } from "./rung-chart.js";
import { offerSignOut } from "./session.js";
import { Summary, drawLadder, drawSetup } from "./summary.js";
import { Trials } from "./trials.js";

// Longer histories are read only when asked for: the charts of what happened
// before need every event of the study.
const longHistory = 50000;

const reference = byId("main").dataset.study;
const path = (rest = "") => studyPath(reference, rest);
const summary = new Summary();
let study = null;

async function refresh() {
  const at = performance.now();
  study = await get(path());
  summary.draw(study, at);
  offerActions();
}

function offerActions() {
  show(byId("pause"), study.status === "running");
  show(byId("resume"), study.status === "paused");
  show(byId("stop"), study.status === "running" || study.status === "paused");
}

async function act(action) {
  const buttons = ["pause", "resume", "stop"].map(byId);
  buttons.forEach((button) => (button.disabled = true));
  try {
    await change("POST", path("/" + action));
    await refresh();
    showError(null);
  } catch (error) {
    showError(new Error(`The study could not be changed. ${error.message}`));
  }
  buttons.forEach((button) => (button.disabled = false));
}

function wireActions() {
  byId("pause").addEventListener("click", async () => {
    const running = study.progress.trials.running + study.progress.trials.leased;
    const text = `${running === 1 ? "The trial" : `The ${running} trials`} being trained will take a checkpoint after the present epoch and stop. Resume goes on from there.`;
    if (await confirm({ title: `Pause ${study.name}?`, text: running > 0 ? text : "No new trial starts until it is resumed.", action: "Pause" })) act("pause");
  });
  byId("resume").addEventListener("click", async () => {
    if (await confirm({ title: `Resume ${study.name}?`, text: "Its trials go on from their last checkpoints as workers become free.", action: "Resume" })) act("resume");
  });
  byId("stop").addEventListener("click", async () => {
    const text = "Running trials are cancelled, and the study cannot be resumed. Everything measured so far is kept.";
    if (await confirm({ title: `Stop ${study.name} for good?`, text, action: "Stop the study", dangerous: true })) act("stop");
  });
  byId("export-csv").href = address(path("/export?format=csv"));
  byId("export-json").href = address(path("/export?format=json"));
  show(byId("actions"), true);
}

async function start() {
  offerSignOut();
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
  const answer = new Answer(study);
  const drawBoard = throttled(250, () => board.draw());
  const drawBest = throttled(1000, () => bestChart.draw(summary.age()));
  const drawRungs = throttled(1000, () => {
    rungChart.draw();
    drawLadder(study, trials);
  });
  const recommend = throttled(2000, async () => answer.draw(await get(path("/recommendation"))));
  const refreshSoon = throttled(1500, () => refresh().catch(() => {})); // the regular one reports errors
  for (const draw of [drawBoard, drawBest, drawRungs, recommend]) draw();

  const whole = sequence <= longHistory || new URLSearchParams(location.search).has("history");
  if (!whole) offerHistory(sequence);
  follow(study.id, whole ? 0 : sequence, (event) => {
    if (history.apply(event)) drawBest();
    if (event.sequence <= sequence) return; // the trials were loaded with it
    if (trials.apply(event)) drawBoard();
    if (event.kind !== "checkpoint") drawRungs();
    if (event.kind === "trial_state" || event.kind === "study_status") recommend();
    refreshSoon();
  });
  setInterval(() => summary.tick(), 1000);
  repeat(15000, refresh, showError);
}

function offerHistory(events) {
  const here = new URL(location.href);
  here.searchParams.set("history", "all");
  const link = make("a", { href: here.href }, "Load it");
  byId("best-legend").after(make("p", { class: "chart-note" }, `From now on. The history has ${events.toLocaleString("en")} events. `, link, "."));
}

linkState("loading");
start().catch((error) => {
  show(byId("loading"), false);
  linkState("reconnecting");
  if (error.status === 404) {
    showError(new Error(`There is no study ${reference} on this server. It may have been deleted.`));
    return;
  }
  showError(error);
  setTimeout(() => location.reload(), 5000);
});
