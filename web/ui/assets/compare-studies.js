// Studies side by side. Which ones, against what and at which prices stands in the
// address.
import { get, referenceOf, studyPath } from "./api.js";
import { fairRange, fillLegend, leftOut, remark, timeAxis } from "./chart.js";
import { byId, make, setText, show, showError } from "./dom.js";
import { offerDownloads } from "./download.js";
import { budget, count, duration, energy, joules, measured, nothing, number, parameter } from "./format.js";
import { offerFrame } from "./frame.js";
import { Lines, letter, lineColour, lineMark, mostLines } from "./lines.js";
import { linkState, repeat, tell } from "./live.js";
import { Address, Picker, fillSelect, findStudy } from "./picker.js";
import { label } from "./trials.js";

const axes = {
  data_passes: { text: "passes over the data", label: "passes over the data", shown: (value) => `${measured(value)} passes` },
  seconds: { text: "time since it was created", label: "since the study was created", time: timeAxis, shown: duration },
  training_seconds: { text: "training time", label: "training, summed over the trials", time: timeAxis, shown: duration },
  joules: { text: "energy", label: "joules", shown: joules },
};

const address = new Address(() => refresh().catch(tell));
const picker = new Picker(address, mostLines);
const known = new Map(); // reference -> {reference, study, trajectory} or {reference, error}
let shown = ""; // what the page was drawn from
let drawn = []; // the studies on it, each with its place

const several = (trials) => `${count(trials)} ${trials === 1 ? "trial" : "trials"}`;
const across = () => (address.get("across") in axes ? address.get("across") : "data_passes");

const path = new Lines(byId("path-chart"), 264, {
  tell: ({ place, x, y, point, study }) => [`${letter(place)}: ${study.name}`, `${label(study.definition.objective[0])} ${measured(y)} by trial ${point.trial}`, `rung ${point.rung}, after ${axes[across()].shown(x)}`],
  open: ({ study, point }) => location.assign(studyPath(referenceOf(study), `/trials/${point.trial}`)),
});
const spread = new Lines(byId("spread-chart"), 264, {
  tell: ({ place, x, y, study }) => [`${letter(place)}: ${study.name}`, `${Math.round(100 * y)} % of its trials have at most ${measured(x)}`],
});

/** What keeps the studies from being compared as they are. */
function cautions(studies) {
  const different = (of) => [...new Set(studies.map(of))];
  const metrics = different(({ trajectory }) => trajectory.metric);
  const budgets = different(({ study }) => budget(study.rungs.at(-1).budget));
  const several = studies.filter(({ study }) => study.definition.objective.length > 1);
  return [
    metrics.length > 1 && `They measure different things (${metrics.join(", ")}): the charts have those with ${metrics[0]}, the tables all.`,
    metrics.length === 1 && different(({ trajectory }) => trajectory.direction).length > 1 && `Some maximize ${metrics[0]}, others minimize it.`,
    budgets.length > 1 && `Their full budgets differ: ${budgets.join("; ")}.`,
    several.length > 0 && `Of several objectives the first is compared (${several.map(({ study }) => study.name).join(", ")}).`,
    address.studies.length > mostLines && `The first ${mostLines} of ${address.studies.length} studies are shown.`,
  ].filter(Boolean);
}

function drawPath(studies) {
  const dimension = across();
  fillSelect(byId("across"), Object.entries(axes).map(([value, { text }]) => [value, text]), dimension);
  const lines = studies.map(({ place, study, trajectory }) => {
    const points = trajectory.points.map((point) => ({ x: point[dimension], y: number(point.value), point, study })).filter(({ y }) => Number.isFinite(y));
    const end = trajectory.spent[dimension];
    if (points.length > 0 && end > points.at(-1).x) points.push({ ...points.at(-1), x: end, told: false });
    return { place, points };
  });
  const fair = fairRange(lines.flatMap(({ points }) => points.map(({ y }) => y)));
  const end = Math.max(...lines.flatMap(({ points }) => points.map(({ x }) => x)), 0);
  const words = studies.map(({ place, study, trajectory }) => `${letter(place)}, ${study.name}: ${trajectory.points.length > 0 ? measured(trajectory.points.at(-1).value) : "nothing measured"}`);
  const { text, label: name, time } = axes[dimension];
  path.draw(lines, { label: `Best value so far against ${text}. At last ${words.join("; ")}. The table below has the numbers.`, across: { label: name, time }, up: { label: studies[0].trajectory.metric }, x: [0, (end || 1) * 1.02], y: fair.range });
  fillLegend(byId("path-legend"), studies.map(({ place, study }) => ({ colour: lineColour(place), text: `${letter(place)} ${study.name}`, line: true })));
  const energetic = dimension === "joules" ? studies : [];
  const silent = energetic.filter(({ trajectory }) => !trajectory.energy_method).map(({ study }) => study.name);
  setText(byId("path-note"), [
    leftOut(fair.outside, 0),
    "A line steps back where a higher rung was measured first. What a run spends counts when it ends.",
    energetic.some(({ trajectory }) => trajectory.energy_method?.startsWith("estimate")) && "The energy is an estimate.",
    silent.length > 0 && `Nobody metered the energy of ${silent.join(", ")}.`,
  ].filter(Boolean).join(" "));
}

/** The distribution at the rung that was chosen. */
function distributionOf({ distributions }) {
  const wanted = address.get("rung", "top");
  return wanted === "top" ? distributions.at(-1) : distributions.find(({ rung }) => String(rung) === wanted);
}

function drawSpread(studies) {
  const rungs = [...new Set(studies.flatMap(({ trajectory }) => trajectory.distributions.map(({ rung }) => rung)))].sort((a, b) => a - b);
  fillSelect(byId("rung"), [["top", "each one's highest rung"], ...rungs.map((rung) => [String(rung), `rung ${rung}`])], address.get("rung", "top"));
  const found = studies.map((one) => ({ ...one, distribution: distributionOf(one.trajectory) })).filter(({ distribution }) => distribution?.values.length > 0);
  const lines = found.map(({ place, study, distribution: { values, trials, not_finite: without } }) => ({
    place, points: values.map((x, index) => ({ x, y: ((trials - without) * (index + 1)) / (trials * values.length), study })),
  }));
  const fair = fairRange(lines.flatMap(({ points }) => points.map(({ x }) => x)));
  const { metric, direction } = studies[0].trajectory;
  const words = found.map(({ place, study, distribution }) => `${letter(place)}, ${study.name}: ${several(distribution.trials)}, from ${measured(distribution.values[0])} to ${measured(distribution.values.at(-1))}`);
  spread.draw(lines, { label: `Share of the trials with at most each value. ${words.join("; ")}`, across: { label: metric }, up: { label: "share of the trials" }, x: fair.range, y: [0, 1.02] });
  fillLegend(byId("spread-legend"), found.map(({ place, study, distribution }) => ({ colour: lineColour(place), text: `${letter(place)} ${study.name}: ${several(distribution.trials)}, ${budget(distribution.budget, true)}`, line: true })));
  setText(byId("spread-note"), [
    `The further to the ${direction === "maximize" ? "right" : "left"} a line rises, the better are the trials.`,
    leftOut(fair.outside, found.reduce((sum, { distribution }) => sum + distribution.not_finite, 0)),
    "It tells what a search tried, and let come to the rung, not what there is.",
  ].filter(Boolean).join(" "));
}

/** A price of the address; 0 without one. */
function price(name) {
  const value = Number(address.get(name).replace(",", "."));
  return Number.isFinite(value) && value > 0 ? value : 0;
}

/** What training cost at the prices of the address; null without any. */
function costOf({ trial_seconds: seconds, energy: spent }) {
  const [hour, kilowattHour] = [price("hour"), price("kilowatt_hour")];
  if (hour === 0 && kilowattHour === 0) return null;
  const metered = energy(spent) !== null;
  return { value: (hour * seconds) / 3600 + (metered ? (kilowattHour * number(spent.joules)) / 3.6e6 : 0), partial: kilowattHour > 0 && !metered };
}

function numbersRow({ place, reference, study, trajectory }) {
  const { best, created, energy: spent, trial_seconds: training, elapsed_seconds: elapsed } = study.progress;
  const used = energy(spent);
  const cost = costOf(study.progress);
  const sub = (...content) => make("span", { class: "sub" }, ...content);
  return make("tr", {},
    make("th", { scope: "row" }, lineMark(place), make("a", { href: studyPath(reference) }, study.name), sub(`${study.status}, by ${study.definition.search.method}`)),
    make("td", { class: "number strong", title: best ? String(best.value) : null }, best ? measured(best.value) : nothing, sub(label(study.definition.objective[0]))),
    make("td", {}, best ? budget(best.budget, true) : nothing, best ? sub(make("a", { href: studyPath(reference, `/trials/${best.number}`) }, `trial ${best.number}`)) : null),
    make("td", { class: "number" }, count(created)),
    make("td", { class: "number" }, measured(trajectory.spent.data_passes)),
    make("td", { class: "number" }, duration(elapsed)),
    make("td", { class: "number" }, duration(training)),
    make("td", { class: "number", title: used?.method }, used ? used.text : nothing, used?.estimate ? sub("estimate") : null),
    make("td", { class: "number" }, cost ? `≈ ${cost.value.toFixed(2)}` : nothing, cost?.partial ? sub("without energy") : null));
}

function drawNumbers(studies) {
  byId("numbers").tBodies[0].replaceChildren(...studies.map(numbersRow));
  setText(byId("numbers-note"), price("hour") + price("kilowatt_hour") > 0
    ? "≈: the cost is an estimate, hours of training, summed over the trials, and energy, at your prices and in your currency."
    : "With a price above, the last column has what the training cost.");
}

function drawWinners(studies) {
  byId("winners").tHead.rows[0].replaceChildren(make("th", { scope: "col" }, "Parameter"),
    ...studies.map(({ place, study }) => make("th", { scope: "col", class: "number" }, lineMark(place), study.name)));
  const types = new Map(studies.flatMap(({ study }) => study.definition.space.parameters.map((one) => [one.name, one.type])));
  byId("winners").tBodies[0].replaceChildren(...[...types].map(([name, type]) => {
    const values = studies.map(({ study }) => study.progress.best?.params[name]);
    const differ = new Set(values.filter((value) => value !== undefined).map(String)).size > 1;
    const cells = studies.map(({ study }, at) => {
      const why = study.definition.space.parameters.some((one) => one.name === name) ? "does not exist in the winner's configuration" : "is no parameter of this study";
      return make("td", { class: "number", title: values[at] === undefined ? why : String(values[at]) }, parameter(values[at], type));
    });
    return make("tr", {}, make("th", { scope: "row" }, name, differ ? make("span", { class: "tag" }, "differs") : null), ...cells);
  }));
  const without = studies.filter(({ study }) => !study.progress.best).map(({ study }) => study.name);
  remark(byId("winners-note"), without.length > 0 ? `No trial was measured yet: ${without.join(", ")}.` : "");
}

/** The studies that measure what the first of them measures: only these are drawn on one axis. */
const alike = (studies) => studies.filter(({ trajectory }) => trajectory.metric === studies[0].trajectory.metric);

function draw() {
  drawPath(alike(drawn));
  drawSpread(alike(drawn));
  drawNumbers(drawn);
  drawWinners(drawn);
}

async function fetched(reference, { id }) {
  const [study, trajectory] = await Promise.all([get(studyPath(id)), get(studyPath(id, "/trajectory"))]);
  return { reference, study, trajectory };
}

/** Asks again for what may have changed; a study that is over is asked for once. */
async function refresh() {
  const chosen = picker.chosen;
  const { studies } = await get("/studies");
  for (const reference of chosen) { // one after the other: a long history takes the server a moment
    const now = findStudy(studies, reference);
    const before = known.get(reference)?.study;
    if (!now) known.set(reference, { reference, error: "there is no such study on this server" });
    else if (before?.id !== now.id || !before.finished) known.set(reference, await fetched(reference, now));
  }
  if (String(picker.chosen) !== String(chosen)) return; // the reader chose others meanwhile
  const found = chosen.map((reference) => known.get(reference));
  show(byId("loading"), false);
  const key = JSON.stringify([String(address), studies.map(({ id }) => id), found.map(({ error, study, trajectory }) => [error, study?.progress, trajectory?.measurements])], (name, value) => (typeof value === "bigint" ? String(value) : value));
  if (key === shown) return;
  shown = key;
  picker.draw(studies, found);
  drawn = found.map((one, place) => ({ ...one, place })).filter(({ study }) => study);
  show(byId("empty"), drawn.length === 0);
  setText(byId("empty-text"), studies.length === 0 ? "There is no study yet." : "Add two or more above. The address of this page then names them: send it to a colleague, who sees the same.");
  show(byId("content"), drawn.length > 0);
  remark(byId("caution"), cautions(drawn).join(" "));
  if (drawn.length > 0) draw();
}

function offerPrice(id, name) {
  byId(id).value = address.get(name);
  byId(id).addEventListener("change", () => {
    const text = byId(id).value.trim();
    const valid = text === "" || Number(text.replace(",", ".")) >= 0;
    showError(valid ? null : new Error(`The price "${text}" must be a number of at least 0, such as 0.30.`));
    if (valid) address.put({ [name]: text });
  });
}

/** The leaders of the studies that are drawn, and what had been spent by then. */
const leaders = () => ({
  columns: ["study", "trial", "rung", "seconds", "data_passes", "training_seconds", "joules", "metric", "value"],
  rows: alike(drawn).flatMap(({ study, trajectory }) => trajectory.points.map((point) => [study.name, point.trial, point.rung, point.seconds, point.data_passes, point.training_seconds, point.joules, trajectory.metric, point.value])),
});

/** Every distribution of theirs: values in order, with the share of the trials that have at most as much. */
const distributions = () => ({
  columns: ["study", "rung", "trials", "metric", "value", "share"],
  rows: alike(drawn).flatMap(({ study, trajectory }) => trajectory.distributions.flatMap(({ rung, trials, not_finite: without, values }) => values.map((value, index) => [study.name, rung, trials, trajectory.metric, value, ((trials - without) * (index + 1)) / (trials * values.length)]))),
});

const compared = () => alike(drawn).map(({ place, study }) => `${letter(place)} ${study.name}`).join(", ");

offerFrame();
offerDownloads(byId("path-chart").closest(".card"), { of: "comparison", name: "best-so-far", where: compared, tables: [["Leaders", leaders]] });
offerDownloads(byId("spread-chart").closest(".card"), { of: "comparison", name: "distribution", where: compared, tables: [["Distributions", distributions]] });
byId("across").addEventListener("change", () => address.put({ across: byId("across").value }));
byId("rung").addEventListener("change", () => address.put({ rung: byId("rung").value }));
byId("prices").addEventListener("submit", (event) => event.preventDefault());
offerPrice("hour", "hour");
offerPrice("kilowatt-hour", "kilowatt_hour");
addEventListener("themechange", () => drawn.length > 0 && draw());
repeat(10000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
