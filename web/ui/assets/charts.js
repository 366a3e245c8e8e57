// The page of one study's charts: fetches what they are drawn from, draws them,
// and fetches again when the study's events say that there is something new.
import { get, identity, kept, studyPath } from "./api.js";
import { decoded, encoded } from "./brushes.js";
import { CurvesCard } from "./curves-card.js";
import { DistributionChart } from "./distribution.js";
import { badge, byId, make, setText, show, showError, throttled } from "./dom.js";
import { budget, count } from "./format.js";
import { frameForGuest, offerFrame } from "./frame.js";
import { Gantt } from "./gantt.js";
import { follow, linkState, reloadWhenBack, showGone, tell } from "./live.js";
import { RungMeasurements } from "./rung-measurements.js";
import { Parallel } from "./parallel.js";
import { PlanCard } from "./plan-card.js";
import { PlaneCharts } from "./plane-charts.js";
import { Slices } from "./slices.js";
import { label } from "./trials.js";

const reference = byId("main").dataset.study;
const path = (rest = "") => studyPath(reference, rest);
const link = (number) => path(`/trials/${number}`);
const asked = new URLSearchParams(location.search);
const prefix = "range."; // of parameters of the address that are ranges of axes

// What the reader chose, as the address keeps it: a colleague sees the same.
const choice = { rung: wholeNumber(asked.get("rung"), -1), objective: wholeNumber(asked.get("objective"), 0) };

function wholeNumber(text, otherwise) {
  return /^\d{1,4}$/.test(text ?? "") ? Number(text) : otherwise;
}

/** Writes what was chosen into the address; nothing stands for what is chosen by itself. */
function keep(change) {
  for (const [name, value] of Object.entries(change)) {
    if (value === null) asked.delete(name);
    else asked.set(name, value);
  }
  const query = asked.toString();
  history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
}

function keepBrushes(brushes) {
  for (const name of [...asked.keys()]) if (name.startsWith(prefix)) asked.delete(name);
  keep(Object.fromEntries([...brushes].map(([name, brush]) => [prefix + name, encoded(brush)])));
}

function offerObjectives(study) {
  const objectives = study.definition.objective;
  choice.objective = Math.min(choice.objective, objectives.length - 1);
  const select = byId("objective");
  select.replaceChildren(...objectives.map((one, place) => make("option", { value: String(place) }, `${label(one)} (${one.direction})`)));
  select.value = String(choice.objective);
  show(byId("objective-label"), objectives.length > 1);
}

/** Lists the rungs with how many trials were measured there; shown is the one that is. */
function offerRungs(study, measured, shown) {
  const select = byId("rung");
  const texts = study.rungs.map((rung) => `rung ${rung.index}: ${budget(rung.budget, true)}, ${count(measured[rung.index])} measured`);
  if (select.options.length !== texts.length) select.replaceChildren(...texts.map((_, rung) => make("option", { value: String(rung) })));
  texts.forEach((text, rung) => setText(select.options[rung], text));
  select.value = String(shown);
}

async function start() {
  const [study, who] = await Promise.all([get(path()), identity()]);
  const guest = who.scope === "link";
  if (guest) frameForGuest(path());
  show(byId("edf-others"), !guest); // who came by a link sees no other study
  let { status } = study;
  if (!kept) document.title = `Charts of ${study.name} · Tandem`;
  setText(byId("study-link"), study.name);
  byId("status").replaceChildren(badge(status));
  offerObjectives(study);
  const parallel = new Parallel(study, { changed: keepBrushes, link });
  parallel.restore((scale) => (asked.has(prefix + scale.name) ? decoded(scale, asked.get(prefix + scale.name)) : null));
  const slices = new Slices(study, link);
  const planes = new PlaneCharts(study, { link, wanted: [asked.get("x"), asked.get("y")], chosen: (x, y) => keep({ x, y }) });
  const distribution = new DistributionChart(study);
  const curves = new CurvesCard(study, reference, link);
  const plan = new PlanCard(study);
  const gantt = new Gantt(study, reference, link);
  show(byId("planes"), study.definition.space.parameters.length > 1);

  async function measure() {
    const wanted = { ...choice };
    const columns = await get(path(`/columns?objective=${wanted.objective}${wanted.rung >= 0 && wanted.rung < study.rungs.length ? `&rung=${wanted.rung}` : ""}`));
    if (wanted.rung !== choice.rung || wanted.objective !== choice.objective) return columns.sequence; // another one was chosen since
    show(byId("loading"), false);
    show(byId("content"), true);
    offerRungs(study, columns.measured, columns.rung);
    const measurements = new RungMeasurements(study, columns, wanted.objective);
    for (const card of ["parallel", "slice", "contour", "rank", "edf"]) byId(card).classList.toggle("awaiting", measurements.rows.length === 0);
    parallel.draw(measurements);
    slices.draw(measurements);
    planes.draw(measurements);
    await distribution.draw(measurements, columns.distribution);
    return columns.sequence;
  }

  const compare = async () => plan.draw(await get(path("/plan")));
  const place = async () => {
    const { workers } = guest ? { workers: [] } : await get("/workers");
    await gantt.fetch(new Map((workers ?? []).map((worker) => [worker.id, worker.name])));
  };
  // What cannot be fetched now is asked for again by the next event; until then
  // the line above the charts says why.
  const soon = (milliseconds, run) => throttled(milliseconds, () => run().then(() => tell(null), tell));
  const chosen = soon(0, measure);

  const sequence = await measure();
  await Promise.all([compare(), curves.fetch(), place()]);
  byId("rung").addEventListener("change", (event) => {
    choice.rung = Number(event.target.value);
    keep({ rung: event.target.value });
    chosen();
  });
  byId("objective").addEventListener("change", (event) => {
    choice.objective = Number(event.target.value);
    keep({ objective: event.target.value });
    chosen();
  });
  // A long history takes the server a while to read.
  const pace = sequence > 5000 ? 4 : 1;
  const [measureSoon, compareSoon, placeSoon, curvesSoon] = [soon(3000 * pace, measure), soon(3000, compare), soon(5000 * pace, place), soon(10000 * pace, () => curves.fetch())];
  follow(study.id, sequence, (event) => {
    if (event.kind === "study_status") {
      status = event.state;
      byId("status").replaceChildren(badge(status));
    }
    if (event.kind === "trial_state" || event.kind === "study_status") {
      measureSoon();
      compareSoon();
      placeSoon();
    }
    if (event.kind === "report") curvesSoon();
  }, () => showGone(`The study ${study.name} was deleted`));
  // What still runs grows although nothing happens.
  setInterval(() => !document.hidden && status === "running" && placeSoon(), 15000 * pace);
  addEventListener("themechange", () => { // legends have colours, too
    chosen();
    placeSoon();
    curvesSoon();
  });
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
