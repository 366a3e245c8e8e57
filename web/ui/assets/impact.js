// Parameters × outcomes of one study, or parameters × studies for each outcome:
// the heat maps of Rocha's figures 5.6 and 5.7 from the reader's own studies.
import { get, referenceOf, studyPath } from "./api.js";
import { byId, make, setText, show } from "./dom.js";
import { latency, sampleEnergy } from "./deploy.js";
import { offerDownloads } from "./download.js";
import { count, duration, joules, measured, nothing, parameter } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, repeat, tell } from "./live.js";
import { Address, Picker, findStudy } from "./picker.js";

const most = 8; // studies at once
const doubtful = 0.05;

const address = new Address(() => refresh().catch(tell));
const picker = new Picker(address, most, false);
const known = new Map(); // reference -> {reference, study, impact} or {reference, error}
let shown = ""; // what the page was drawn from
let offered = false; // whether a reader without a choice was given one

const titles = {
  training_seconds: "Training time",
  training_joules: "Training energy",
  inference_seconds: "Inference time of a sample",
  inference_joules: "Inference energy",
};
const titleOf = ({ name, unit }) => (unit ? titles[name] ?? name : name);
const percent = (variation) => `${(100 * variation).toFixed(variation < 0.0995 ? 1 : 0)} %`;

/** A value of the outcome with its unit. */
function amount({ unit }, value) {
  if (unit === "s") return value < 1 ? latency(value) : duration(value);
  if (unit === "J") return value < 1 ? sampleEnergy(value) : joules(value);
  return measured(value);
}

const isDoubtful = ({ chance }) => chance !== undefined && chance > doubtful;

/** What a cell says to those who point at it, and to screen readers. */
function told(outcome, one, type) {
  const ends = `${amount(outcome, one.lowest)} at ${one.name} ${parameter(one.lowest_at, type)}, ${amount(outcome, one.highest)} at ${parameter(one.highest_at, type)}`;
  return `${one.class}: ${percent(one.variation)}; lowest ${ends}; ${basis(outcome, one)}`;
}

function basis(outcome, one) {
  if (one.measured) return `measured within ${count(one.runs)} ${one.runs === 1 ? "run" : "runs"}`;
  return `predicted from ${count(outcome.trials)} trials, by chance with probability ${one.chance.toFixed(3)}`;
}

function cell(outcome, name, type) {
  const one = outcome?.parameters.find((candidate) => candidate.name === name);
  if (!one) {
    const why = outcome ? outcome.notes[0] ?? "is not known" : "is no outcome, or no parameter, of this study";
    return make("td", { class: "impact", title: why }, nothing, make("span", { class: "unseen" }, why));
  }
  return make("td", { class: "impact", data: { class: one.class, doubt: String(isDoubtful(one)) }, title: told(outcome, one, type) },
    make("strong", {}, `${one.measured ? "" : "≈ "}${percent(one.variation)}${isDoubtful(one) ? " ?" : ""}`),
    make("span", { class: "sub" }, one.class));
}

/** A heat map: columns {head, outcome(), type(name)} over the parameters [name, kind]. */
function heatMap(id, caption, names, columns) {
  return make("div", { class: "table-frame", tabindex: "0", role: "group", "aria-labelledby": id },
    make("table", { class: "grid impact-map" },
      make("caption", { class: "unseen" }, caption),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Parameter"), make("th", { scope: "col" }, "Kind"), ...columns.map(({ head }) => make("th", { scope: "col", class: "impact" }, ...[head].flat())))),
      make("tbody", {}, ...names.map(([name, kind]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "muted" }, kind), ...columns.map(({ outcome, types }) => cell(outcome, name, types.get(name))))))));
}

const legend = () => make("div", { class: "legend" }, ...["high", "medium", "low"].map((name) => make("span", {}, make("i", { class: "impact-sample", data: { class: name }, "aria-hidden": "true" }), name)));

function card(id, title, map, notes, table) {
  const section = make("section", { class: "card flush", "aria-labelledby": id },
    make("div", { class: "card-head" }, make("h2", { id }, title), legend()),
    map,
    make("ul", { class: "notes inset" }, ...notes.map((note) => make("li", {}, `${note}.`))));
  offerDownloads(section, { of: title, name: "impact", tables: [["Impact", table]] });
  return section;
}

/** The impacts of studies on their outcomes, or on one of them, as a table of plain values. */
function impactTable(studies, wanted) {
  return {
    columns: ["study", "outcome", "unit", "parameter", "class", "variation", "lowest", "lowest_at", "highest", "highest_at", "measured", "chance"],
    rows: studies.flatMap(({ study, impact }) => impact.outcomes.filter(({ name }) => wanted === undefined || name === wanted).flatMap((outcome) => outcome.parameters.map((one) => [
      study.name, outcome.name, outcome.unit, one.name, one.class, one.variation, one.lowest, one.lowest_at, one.highest, one.highest_at, one.measured === true, one.chance]))),
  };
}

/** The parameters of studies with their kinds, those of the space before knobs of the system. */
function parametersOf(studies) {
  const names = new Map();
  for (const { study } of studies) for (const one of study.definition.space.parameters) names.set(one.name, one.kind);
  for (const { impact } of studies) for (const { parameters } of impact.outcomes) for (const one of parameters) if (!names.has(one.name)) names.set(one.name, one.kind);
  return [...names];
}

const typesOf = (study) => new Map(study.definition.space.parameters.map((one) => [one.name, one.type]));

/** How an outcome is known, and how far. */
function remarks(outcome) {
  const explained = outcome.surrogate && outcome.parameters.some(({ measured: ran }) => !ran) ? `; the model predicts ${Math.round(100 * Math.max(0, outcome.surrogate.explained))} % of the variance of others` : "";
  if (outcome.parameters.length === 0) return [`${titleOf(outcome)}: ${outcome.what}; ${outcome.notes.join("; ")}`];
  return [`${titleOf(outcome)}: ${outcome.what}, ${count(outcome.trials)} trials${explained}${outcome.estimated ? `; an estimate itself (${outcome.method})` : ""}`, ...outcome.notes.map((note) => `${titleOf(outcome)}: ${note}`)];
}

const head = (outcome) => [titleOf(outcome), outcome.estimated ? make("span", { class: "tag", title: outcome.method }, "estimate") : null].filter(Boolean);

/** One study: its parameters × its outcomes. */
function drawOne(one) {
  const { study, impact } = one;
  const columns = impact.outcomes.map((outcome) => ({ head: head(outcome), outcome, types: typesOf(study) }));
  return [card("map-0", study.name, heatMap("map-0", `Impact of each parameter of ${study.name} on each outcome`, parametersOf([one]), columns), impact.outcomes.flatMap(remarks), () => impactTable([one]))];
}

/** Several: one map for each outcome, parameters × studies, as in the thesis. */
function drawSeveral(studies) {
  const outcomes = new Map();
  for (const { impact } of studies) for (const outcome of impact.outcomes) if (!outcomes.has(outcome.name)) outcomes.set(outcome.name, outcome);
  return [...outcomes.values()].map((first, at) => {
    const having = studies.filter(({ impact }) => impact.outcomes.some(({ name }) => name === first.name));
    const columns = having.map(({ study, impact, reference }) => ({
      head: make("a", { href: studyPath(reference) }, study.name), outcome: impact.outcomes.find(({ name }) => name === first.name), types: typesOf(study),
    }));
    const notes = having.flatMap(({ study }, place) => remarks(columns[place].outcome).map((note) => `${study.name}: ${note}`));
    return card(`map-${at}`, titleOf(first), heatMap(`map-${at}`, `Impact of each parameter on ${titleOf(first)}, by study`, parametersOf(having), columns), notes, () => impactTable(having, first.name));
  });
}

function drawNumbers(studies) {
  const rows = studies.flatMap(({ study, impact }) => impact.outcomes.flatMap((outcome) => outcome.parameters.map((one) => {
    const type = typesOf(study).get(one.name);
    const at = (value) => make("span", { class: "sub" }, `at ${parameter(value, type)}`);
    return make("tr", {},
      make("th", { scope: "row" }, one.name), make("td", {}, study.name), make("td", {}, titleOf(outcome)),
      make("td", {}, isDoubtful(one) ? `${one.class}, may be chance` : one.class),
      make("td", { class: "number" }, `${one.measured ? "" : "≈ "}${percent(one.variation)}`),
      make("td", { class: "number" }, amount(outcome, one.lowest), at(one.lowest_at)), make("td", { class: "number" }, amount(outcome, one.highest), at(one.highest_at)),
      make("td", {}, basis(outcome, one)));
  })));
  byId("numbers").tBodies[0].replaceChildren(...rows);
}

function draw(studies) {
  const maps = studies.length === 1 ? drawOne(studies[0]) : drawSeveral(studies);
  byId("maps").replaceChildren(...maps);
  drawNumbers(studies);
}

async function fetched(reference, { id }, progress) {
  setText(byId("busy"), `Computing the impact in ${reference} (${progress}) …`);
  show(byId("busy"), true);
  try {
    const [study, impact] = await Promise.all([get(studyPath(id)), get(studyPath(id, "/impact"))]);
    return { reference, study, impact };
  } finally {
    show(byId("busy"), false);
  }
}

/** Without a choice, the newest study that has enough trials; its address is then the page's. */
function chooseFirst(studies) {
  const enough = studies.find(({ progress }) => progress.best && progress.created >= 10) ?? studies.find(({ progress }) => progress.best);
  if (enough) address.studies = [referenceOf(enough)];
  return Boolean(enough);
}

/** Asks again for what has changed; an analysis takes the server a moment. */
async function refresh() {
  const { studies } = await get("/studies");
  if (!offered) {
    offered = true;
    if (picker.chosen.length === 0 && chooseFirst(studies)) return; // that has begun again
  }
  const chosen = picker.chosen;
  for (const [at, reference] of chosen.entries()) {
    const now = findStudy(studies, reference);
    const before = known.get(reference)?.study;
    if (!now) known.set(reference, { reference, error: "there is no such study on this server" });
    else if (before?.id !== now.id || before.status !== now.status || now.progress.epochs >= 1.2 * before.progress.epochs + 1) known.set(reference, await fetched(reference, now, `${at + 1} of ${chosen.length}`));
  }
  if (String(picker.chosen) !== String(chosen)) return; // the reader chose others meanwhile
  const found = chosen.map((reference) => known.get(reference));
  show(byId("loading"), false);
  const key = JSON.stringify([chosen, studies.map(({ id }) => id), found.map(({ error, impact }) => [error, impact])]);
  if (key === shown) return;
  shown = key;
  picker.draw(studies, found);
  const studied = found.filter(({ impact }) => impact?.outcomes.length > 0);
  show(byId("content"), studied.length > 0);
  show(byId("empty"), studied.length === 0);
  setText(byId("empty-text"), studies.length === 0 ? "There is no study yet." : chosen.length === 0 ? "Add a study above." : "No trial of these studies has been measured yet. The map needs 10 trials of a study.");
  if (studied.length > 0) draw(studied);
}

offerFrame();
repeat(15000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
