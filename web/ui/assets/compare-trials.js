// The page that shows several trials of one study side by side. Which they are
// stands in the address.
import { artifactFigure } from "./artifacts.js";
import { get, identity, referenceOf, studyPath } from "./api.js";
import { CompareChart } from "./compare-chart.js";
import { mostCompared, numbersIn } from "./comparison.js";
import { badge, byId, make, setText, show, showError, throttled } from "./dom.js";
import { budget, cost, count, duration, energy, measured, missed, moment, nothing, number, parameter } from "./format.js";
import { frameForGuest, offerFrame } from "./frame.js";
import { follow, linkState, reloadWhenBack, showGone, tell } from "./live.js";
import { better, label, newest } from "./trials.js";

const reference = byId("main").dataset.study;
const path = (rest = "") => studyPath(reference, rest);
const chosen = numbersIn(new URLSearchParams(location.search).get("trials"));
let study = null;
let details = [];
let chart = null;

/** The address with other trials; what else is chosen stays. */
function addressOf(numbers) {
  const address = new URL(location.href);
  address.searchParams.set("trials", numbers.join(","));
  return address.pathname + address.search;
}

function drawChips() {
  byId("chips").replaceChildren(...details.map(({ trial }) => make("li", {},
    make("a", { href: path(`/trials/${trial.number}`) }, `Trial ${trial.number}`), " ", badge(trial.state),
    make("a", { class: "drop", href: addressOf(chosen.filter((one) => one !== trial.number)), "aria-label": `Leave trial ${trial.number} out`, title: "Leave out" }, "×"))));
  show(byId("add"), chosen.length < mostCompared);
}

const heading = () => make("tr", {}, make("td", {}), ...details.map(({ trial }) => make("th", { scope: "col", class: "number" }, `#${trial.number}`)));

/** Fills a table of rows {name, cells, mark, hint}: a cell is a text or a node. */
function fill(id, rows) {
  const table = byId(id);
  table.tHead.replaceChildren(heading());
  table.tBodies[0].replaceChildren(...rows.map(({ name, sub, cells, differs }) => make("tr", { class: differs ? "differs" : null },
    make("th", { scope: "row" }, name, differs ? make("span", { class: "mark", title: "differs" }, " ≠", make("span", { class: "unseen" }, " differs")) : null, sub ? make("span", { class: "sub" }, sub) : null),
    ...cells.map((cell) => make("td", { class: "number", title: cell?.title }, cell?.content ?? cell)))));
}

const same = (values) => values.every((value) => Object.is(value, values[0]));

/** A row of values of which some may differ. */
function valueRow(name, values, written, sub) {
  return { name, sub, differs: values.length > 1 && !same(values), cells: values.map((value) => ({ content: written(value), title: value === undefined ? "does not exist in this configuration" : String(value) })) };
}

function drawParameters() {
  const { definition } = study;
  const rows = definition.space.parameters.map((one) => valueRow(one.name, details.map(({ trial }) => trial.params[one.name]), (value) => parameter(value, one.type), one.kind));
  const system = [...new Set(details.flatMap(({ trial }) => Object.keys(trial.setting?.configuration ?? {})))].sort();
  rows.push(...system.map((name) => valueRow(name, details.map(({ trial }) => trial.setting?.configuration[name]), (value) => parameter(value), "system, its newest")));
  const differ = rows.filter((row) => row.differs);
  fill("params", byId("only").checked ? differ : rows);
  setText(byId("params-note"), details.length < 2 ? "" : differ.length === 0 ? "They have the same parameters." : `${count(differ.length)} of ${count(rows.length)} differ, marked ≠.`);
}

/** A row of numbers whose best one is marked. */
function resultRow(name, values, direction, sub) {
  const known = values.filter((value) => value !== undefined && !Number.isNaN(number(value))).map(number);
  const best = known.reduce((a, b) => (better(b, a, direction) ? b : a), NaN);
  const mark = direction !== undefined && known.length > 1;
  return { name, sub, cells: values.map((value) => ({
    title: value === undefined ? "" : String(value),
    content: value === undefined ? nothing : mark && number(value) === best ? make("strong", {}, "★ ", make("span", { class: "unseen" }, "best: "), measured(value)) : measured(value),
  })) };
}

function drawResults() {
  const objectives = study.definition.objective;
  const rows = study.rungs.flatMap((rung) => objectives.map((objective, index) => resultRow(
    `Rung ${rung.index}${objectives.length > 1 ? `: ${label(objective)}` : ""}`,
    details.map(({ trial }) => trial.results?.find((result) => result.rung === rung.index)?.values[index]),
    objective.direction, `${budget(rung.budget, true)}, ${label(objective)}, ${objective.direction}`)));
  const metrics = [...new Set(details.flatMap(({ trial }) => Object.keys(trial.last ?? {})))].sort();
  const aims = new Map(objectives.map((objective) => [objective.metric, objective.direction]));
  rows.push(...metrics.map((metric) => resultRow(metric, details.map(({ trial }) => trial.last?.[metric]), aims.get(metric), "newest epoch")));
  fill("results", rows);
}

function drawFacts() {
  const of = (name, written) => ({ name, cells: details.map(({ trial }) => written(trial)) });
  const spent = ({ energy: used }) => {
    const known = energy(used);
    return known ? { title: known.method, content: (known.estimate ? "≈ " : "") + known.text } : nothing;
  };
  fill("facts", [
    of("State", (trial) => badge(trial.state)),
    of("Rank", (trial) => (trial.rank ? count(trial.rank) : nothing)),
    of("Rung", (trial) => `${trial.rung}: ${budget(trial.budget, true)}`),
    of("Epochs", (trial) => count(trial.epochs)),
    of("Training time", (trial) => (trial.epochs ? duration(trial.seconds) : nothing)),
    of("Energy", spent),
    of("Cost", ({ cost: paid }) => {
      const known = cost(paid);
      return known ? { title: `${known.detail} ${known.title}`, content: (known.estimate ? "≈ " : "") + known.value } : nothing;
    }),
    of("An epoch", (trial) => (trial.epochs ? duration(number(trial.seconds) / trial.epochs) : nothing)),
    of("Violation", (trial) => (newest(trial) ? (newest(trial).violation ? missed(newest(trial).violation) : "none") : nothing)),
    of("Came from", (trial) => trial.origin || nothing),
    of("Machine", (trial) => trial.host || nothing),
    of("Failed", (trial) => count(trial.failures)),
    of("Resumed", (trial) => count(trial.resumes)),
    of("Seed", (trial) => String(trial.seed)),
    of("Finished", (trial) => (trial.finished ? moment(trial.finished) : nothing)),
  ].filter(({ name }) => name !== "Violation" || (study.definition.constraints ?? []).length > 0)
    .filter(({ name }) => name !== "Cost" || details.some(({ trial }) => trial.cost)));
}

let logged = "";

/** The files that they logged, those of one name in a row. */
function drawArtifacts() {
  const known = JSON.stringify(details.map(({ trial }) => trial.artifacts ?? []));
  if (known === logged) return;
  logged = known;
  const names = [...new Set(details.flatMap(({ trial }) => (trial.artifacts ?? []).map((file) => file.name)))].sort();
  show(byId("artifacts-card"), names.length > 0);
  fill("artifacts", names.map((name) => ({ name, cells: details.map(({ trial }) => {
    const file = trial.artifacts?.find((one) => one.name === name);
    return file ? artifactFigure(reference, trial.number, file) : nothing;
  }) })));
}

function offerMetrics() {
  const list = byId("metric");
  const [objective] = study.definition.objective;
  const known = [...new Set(details.flatMap(({ reports }) => (reports ?? []).flatMap((report) => Object.keys(report.metrics))))]
    .sort((a, b) => Number(b === objective.metric) - Number(a === objective.metric) || a.localeCompare(b));
  if ([...list.options].map((option) => option.value).join() === known.join()) return;
  const before = list.value || new URLSearchParams(location.search).get("metric");
  list.replaceChildren(...known.map((metric) => make("option", { value: metric }, metric)));
  list.value = known.includes(before) ? before : known[0] ?? "";
}

function drawChart() {
  chart ??= new CompareChart(study);
  chart.draw(details, byId("metric").value, byId("over").value);
}

async function refresh() {
  details = await Promise.all(chosen.map((one) => get(path(`/trials/${one}`))));
  drawChips();
  show(byId("few"), details.length < 2);
  show(byId("comparison"), details.length > 0);
  if (details.length === 0) return;
  drawParameters();
  drawResults();
  drawFacts();
  drawArtifacts();
  offerMetrics();
  drawChart();
}

/** What is chosen on the page goes into the address, to be sent to somebody. */
function remember() {
  const address = new URL(location.href);
  const wanted = { metric: byId("metric").selectedIndex > 0 ? byId("metric").value : "", over: byId("over").value === "epochs" ? "" : byId("over").value, only: byId("only").checked ? "differences" : "" };
  for (const [name, value] of Object.entries(wanted)) value === "" ? address.searchParams.delete(name) : address.searchParams.set(name, value);
  history.replaceState(null, "", address);
  drawChips(); // their links have it, too
}

function wire() {
  const asked = new URLSearchParams(location.search);
  byId("only").checked = asked.get("only") === "differences";
  if (asked.get("over") === "seconds") byId("over").value = "seconds";
  byId("only").addEventListener("change", () => { drawParameters(); remember(); });
  for (const id of ["metric", "over"]) byId(id).addEventListener("change", () => { drawChart(); remember(); });
  byId("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = Number(byId("add-number").value);
    try {
      await get(path(`/trials/${wanted}`));
      location.assign(addressOf(numbersIn([...chosen, wanted].join(","))));
    } catch (error) {
      showError(error.status === 404 ? new Error(`Study ${study.name} has no trial ${wanted}.`) : error, "add-error");
    }
  });
}

async function start() {
  const who = await identity();
  if (who.scope === "link") frameForGuest(path());
  study = await get(path());
  document.title = `Compare trials · ${study.name} · Tandem`;
  setText(byId("study-link"), study.name);
  byId("study-link").href = studyPath(referenceOf(study));
  // First where the events stand, then the trials: nothing between is missed.
  const { sequence } = await get(path("/trials?limit=1"));
  show(byId("loading"), false);
  show(byId("content"), true); // a chart needs to know how wide it is
  wire();
  await refresh();
  const refreshSoon = throttled(700, () => refresh().then(() => tell(null), tell));
  follow(study.id, sequence, (event) => {
    if (chosen.includes(event.number)) refreshSoon();
  }, () => showGone(`The study ${study.name} was deleted`));
  addEventListener("themechange", () => details.length > 0 && drawChart());
}

linkState("loading");
offerFrame();
start().catch((error) => {
  if (error.status === 404) {
    showGone(study === null ? `There is no study ${reference} on this server` : `Not all of the trials ${chosen.join(", ")} are in the study ${study.name}`);
    return;
  }
  show(byId("loading"), false);
  showError(error);
  reloadWhenBack(path());
});
