// The page of one study: loads what there is, then follows the events.
import { address, change, get, identity, kept, leaving, referenceOf, studyPath } from "./api.js";
import { drawAdvice } from "./advice.js";
import { Annotation } from "./annotation.js";
import { Answer } from "./answer.js";
import { BestChart } from "./best-chart.js";
import { Board, asked } from "./board.js";
import { confirm } from "./confirm.js";
import { byId, setText, show, showError, throttled } from "./dom.js";
import { enqueue, enqueued } from "./enqueue.js";
import { adjust, extend } from "./extend.js";
import { sentence } from "./format.js";
import { drawDeflation, hasPriorities } from "./deflation.js";
import { DeployCard } from "./deploy.js";
import { FrontCard } from "./front-card.js";
import { frameForGuest, offerFrame } from "./frame.js";
import { drawHooks } from "./hooks.js";
import { follow, linkState, reloadWhenBack, repeat, showGone, tell } from "./live.js";
import { Importance } from "./importance.js";
import { wireMenu } from "./menu.js";
import { Results } from "./results.js";
import { RungChart } from "./rung-chart.js";
import { share } from "./share.js";
import { Summary, drawAgreement, drawLadder, drawSetup } from "./summary.js";
import { transfer } from "./transfer.js";
import { label } from "./trials.js";

const reference = byId("main").dataset.study;
const path = (rest = "") => studyPath(reference, rest);
const summary = new Summary();
let study = null;
let guest = false; // who came by a link: looks at this study, and hears nothing of machines
let annotation = null;

async function refresh() {
  const at = performance.now();
  const [view, machines] = await Promise.all([get(path()), guest ? null : get("/workers")]);
  study = view;
  summary.draw(study, machines === null ? null : machines.workers ?? [], at);
  annotation.draw(study);
  drawWaits();
  if (study.sources?.length > 0) drawSetup(study); // has how far they are trusted
  if (!kept) offerActions();
}

/** Why the next trial does not start, where something is in its way, and what has no effect. */
function drawWaits() {
  const waits = byId("no-worker").hidden ? (study.waits ?? []).map(({ reason }) => sentence(reason)) : []; // else that says more
  const said = [waits.length > 0 ? `The next trial waits. ${waits.join(". ")}.` : "", study.useless ? `Without effect: ${study.useless}.` : ""].filter(Boolean);
  setText(byId("waits"), said.join(" "));
  show(byId("waits"), said.length > 0);
}

function offerActions() {
  const steers = !guest && study.role !== "viewer";
  show(byId("pause"), study.status === "running" && steers);
  show(byId("resume"), study.status === "paused" && steers);
  const going = study.status === "running" || study.status === "paused";
  show(byId("stop"), going && steers);
  show(byId("enqueue"), going && steers);
  show(byId("extend"), !going && steers);
  show(byId("adjust"), going && steers);
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

const remove = () => act(() => leaving(async () => {
  await change("DELETE", path());
  location.assign("/studies");
}));

/** Goes where the study is, after it was given to the owner: whose it was may see it no more. */
const moved = (who, { owner }) => location.replace([owner, "admin"].includes(who.owner) || who.owner !== study.owner ? studyPath(study.id) : "/studies");

function wireActions(who) {
  byId("pause").addEventListener("click", async () => {
    const running = study.progress.trials.running + study.progress.trials.leased;
    const text = `${running === 1 ? "The trial" : `The ${running} trials`} being trained will take a checkpoint after the present epoch and stop. Resume goes on from there.`;
    if (await confirm({ title: `Pause ${study.name}?`, text: running > 0 ? text : "No new trial starts until it is resumed.", action: "Pause" })) post("pause");
  });
  byId("resume").addEventListener("click", async () => {
    if (await confirm({ title: `Resume ${study.name}?`, text: "Its trials go on from their last checkpoints as workers become free.", action: "Resume" })) post("resume");
  });
  byId("stop").addEventListener("click", async () => {
    const text = "Running trials are cancelled. Everything measured so far is kept.";
    if (await confirm({ title: `Stop ${study.name}?`, text, action: "Stop the study", dangerous: true })) post("stop");
  });
  for (const [id, asks] of [["extend", extend], ["adjust", adjust]]) {
    byId(id).addEventListener("click", async () => {
      if (await asks(path(), study)) await refresh().then(() => drawSetup(study), () => {}); // the regular one reports errors
    });
  }
  byId("delete").addEventListener("click", async () => {
    const text = "Its trials, reports, logs and events are removed, and its checkpoints with them. This cannot be undone. Export first what you want to keep.";
    if (await confirm({ title: `Delete ${study.name} and all it measured?`, text, action: "Delete the study", dangerous: true })) remove();
  });
  const more = wireMenu(byId("more"));
  byId("more").querySelector(".menu-list").addEventListener("click", more.close, true); // before a dialog takes the focus
  byId("export-csv").href = address(path("/export?format=csv"));
  byId("export-json").href = address(path("/export?format=json"));
  byId("edge-link").href = path("/edge");
  show(byId("edge-link"), study.definition.inference !== undefined && !guest);
  const here = new URLSearchParams({ study: referenceOf(study) });
  byId("compare-link").href = `/compare?${here}`;
  byId("copy").href = `/studies/new?from=${encodeURIComponent(referenceOf(study))}`;
  byId("enqueue").addEventListener("click", () => tryOne(null));
  byId("share").addEventListener("click", () => share(path(), study.name));
  byId("transfer").addEventListener("click", async () => {
    const given = await transfer(path(), study);
    if (given) moved(who, given);
  });
  for (const id of ["copy", "compare-link"]) show(byId(id), !guest);
  for (const id of ["share", "transfer", "delete"]) show(byId(id), who.owner === "admin" || who.owner === study.owner);
  show(byId("actions"), true);
}

/** Where what a piece of advice says can be done. */
function remedy(piece) {
  if (piece.kind === "failures") return { href: path(`/trials/${piece.trial}`), text: `Trial ${piece.trial}` };
  if (piece.kind === "interaction") return { href: path("/charts?" + new URLSearchParams({ x: piece.parameter, y: piece.with, rung: piece.rung })), text: "Contour chart" };
  return guest ? null : { href: byId("copy").href, text: "A study like this one" };
}

/** Enqueues a configuration, beginning with that of a trial if there is one. */
async function tryOne(trial) {
  const answer = await enqueue(path(), study, trial);
  if (!answer) return;
  setText(byId("told"), enqueued(answer));
  show(byId("told"), true);
  await refresh().catch(() => {}); // the regular one reports errors
}

/** Another page may ask to try one of its trials again: ?enqueue=12. */
async function tryAsked() {
  const here = new URL(location.href);
  const wanted = here.searchParams.get("enqueue");
  if (wanted === null) return;
  here.searchParams.delete("enqueue");
  history.replaceState(null, "", here);
  if (byId("enqueue").hidden) {
    showError(new Error(`Nothing can be enqueued: the study is ${study.status}. Make a copy of it.`), "action-error");
    return;
  }
  tryOne((await get(path(`/trials/${Number(wanted)}`))).trial);
}

async function start() {
  // What the leaderboard shows first does not wait for the study's view.
  const query = asked(location.search);
  const first = get(path("/trials") + query);
  first.catch(() => {}); // whoever waits for it hears of that
  const who = await identity();
  guest = who.scope === "link";
  if (guest) frameForGuest(path());
  annotation = new Annotation(path(), `study ${reference}`, who.owner !== undefined);
  await refresh();
  if (!kept) wireActions(who);
  const board = new Board(study, path("/trials"));
  await board.start(query, first);
  show(byId("loading"), false);
  show(byId("content"), true);
  drawSetup(study);

  const open = (number) => location.assign(path(`/trials/${number}`));
  const measurements = new Results(path("/measurements"));
  const bestChart = new BestChart(study, measurements, open);
  const rungChart = new RungChart(study, measurements, () => study.progress.best, open);
  const answer = new Answer(study, () => get(path("/trials?state=failed&sort=number&order=desc&limit=1")).then(({ trials }) => trials[0]), guest && !kept);
  const front = new FrontCard(study, measurements, open);
  const deploy = new DeployCard();
  let advice = null;
  const drawCharts = () => {
    bestChart.draw(summary.age());
    rungChart.draw();
    drawLadder(study, measurements.rungs);
    if (advice) front.draw(advice);
  };
  const failed = () => {}; // of what is asked for again at the next event
  const measure = throttled(1000, () => measurements.load().then(drawCharts, failed));
  const recommend = throttled(2000, () => get(path("/recommendation")).then((found) => {
    advice = found;
    answer.draw(advice);
    front.draw(advice);
    deploy.draw(advice.deployments, referenceOf(study));
  }, failed));
  const importance = new Importance(study);
  const weigh = throttled(10000, () => get(path("/importance")).then((found) => importance.draw(found), failed));
  const advise = throttled(10000, () => get(path("/advice")).then((found) => drawAdvice(found, remedy), failed));
  const yields = throttled(5000, () => (hasPriorities(study) && !guest ? get(path("/deflation")).then((found) => drawDeflation(found, label(study.definition.objective[0])), failed) : Promise.resolve()));
  const agree = throttled(10000, () => get(path("/correlations")).then(drawAgreement, failed));
  const told = () => (guest || kept ? Promise.resolve() : get(path("/hooks")).then(drawHooks, failed));
  const refreshSoon = throttled(1500, () => refresh().then(() => rungChart.draw(), failed)); // the regular one reports errors
  measure();
  recommend();
  yields();
  // What takes the server longer comes when the reader has had a first look.
  setTimeout(() => {
    weigh();
    advise();
    agree();
    repeat(5000, () => Promise.all([yields(), told()]), failed); // these change without an event
  }, 1500);

  follow(study.id, board.sequence, (event) => {
    if (event.kind === "study_owner") moved(who, event.data);
    board.apply(event);
    if (event.kind === "report" || event.kind === "trial_state") measure();
    if (event.kind === "emulation") recommend();
    if (event.kind === "trial_state" || event.kind === "study_status") {
      recommend();
      weigh();
      advise();
      agree();
    }
    yields();
    refreshSoon();
  }, () => showGone(`The study ${study.name} was deleted`));
  addEventListener("themechange", () => measurements.rungs.length > 0 && drawCharts());
  if (!kept) setInterval(() => summary.tick(), 1000);
  tryAsked().catch((error) => showError(error, "action-error"));
  repeat(15000, refresh, tell);
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
