// Studies side by side. Which ones, against what and at which prices stands in the
// address.
import { get, referenceOf, studyPath } from "./api.js";
import { fairRange, fillLegend, leftOut, remark, timeAxis } from "./chart.js";
import { byId, make, setText, show, showError } from "./dom.js";
import { offerDownloads } from "./download.js";
import { budget, count, duration, energy, measured, nothing, number, parameter } from "./format.js";
import { offerFrame } from "./frame.js";
import { Lines, letter, lineColour, lineMark, mostLines } from "./lines.js";
import { linkState, repeat, tell } from "./live.js";
import { Address, Picker, findStudy } from "./picker.js";
import { label } from "./trials.js";

const address = new Address(() => refresh().catch(tell));
const picker = new Picker(address, mostLines);
const known = new Map(); // reference -> {reference, study, measurements} or {reference, error}
let shown = ""; // what the page was drawn from
let drawn = []; // the studies on it, each with its place

const path = new Lines(byId("path-chart"), 264, {
  tell: ({ place, x, y, point, study }) => [`${letter(place)}: ${study.name}`, `${label(study.definition.objective[0])} ${measured(y)} by trial ${point.number}`, `rung ${point.rung}, after ${duration(x)}`],
  open: ({ study, point }) => location.assign(studyPath(referenceOf(study), `/trials/${point.number}`)),
});

/** What a study measures first, and which way is better. */
const metricOf = ({ study }) => label(study.definition.objective[0]);

/** What keeps the studies from being compared as they are. */
function cautions(studies) {
  const different = (of) => [...new Set(studies.map(of))];
  const metrics = different(metricOf);
  const budgets = different(({ study }) => budget(study.rungs.at(-1).budget));
  const several = studies.filter(({ study }) => study.definition.objective.length > 1);
  return [
    metrics.length > 1 && `They measure different things (${metrics.join(", ")}): the charts have those with ${metrics[0]}, the tables all.`,
    metrics.length === 1 && different(({ study }) => study.definition.objective[0].direction).length > 1 && `Some maximize ${metrics[0]}, others minimize it.`,
    budgets.length > 1 && `Their full budgets differ: ${budgets.join("; ")}.`,
    several.length > 0 && `Of several objectives the first is compared (${several.map(({ study }) => study.name).join(", ")}).`,
    address.studies.length > mostLines && `The first ${mostLines} of ${address.studies.length} studies are shown.`,
  ].filter(Boolean);
}

function drawPath(studies) {
  const lines = studies.map(({ place, study, measurements }) => {
    const points = measurements.leaders.map((point) => ({ x: point.seconds, y: number(point.value), point, study })).filter(({ y }) => Number.isFinite(y));
    const end = study.progress.elapsed_seconds;
    if (points.length > 0 && end > points.at(-1).x) points.push({ ...points.at(-1), x: end, told: false });
    return { place, points };
  });
  const fair = fairRange(lines.flatMap(({ points }) => points.map(({ y }) => y)));
  const end = Math.max(...lines.flatMap(({ points }) => points.map(({ x }) => x)), 0);
  const words = studies.map(({ place, study, measurements: { leaders } }) => `${letter(place)}, ${study.name}: ${leaders.length > 0 ? measured(leaders.at(-1).value) : "nothing measured"}`);
  path.draw(lines, { label: `Best value so far against the time since the study was created. At last ${words.join("; ")}. The table below has the numbers.`, across: { label: "since the study was created", time: timeAxis }, up: { label: metricOf(studies[0]) }, x: [0, (end || 1) * 1.02], y: fair.range });
  fillLegend(byId("path-legend"), studies.map(({ place, study }) => ({ colour: lineColour(place), text: `${letter(place)} ${study.name}`, line: true })));
  setText(byId("path-note"), [leftOut(fair.outside, 0), "A line steps back where a higher rung was measured first."].filter(Boolean).join(" "));
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

function numbersRow({ place, reference, study }) {
  const { best, created, energy: spent, trial_seconds: training, elapsed_seconds: elapsed } = study.progress;
  const used = energy(spent);
  const cost = costOf(study.progress);
  const sub = (...content) => make("span", { class: "sub" }, ...content);
  return make("tr", {},
    make("th", { scope: "row" }, lineMark(place), make("a", { href: studyPath(reference) }, study.name), sub(`${study.status}, by ${study.definition.search.method}`)),
    make("td", { class: "number strong", title: best ? String(best.value) : null }, best ? measured(best.value) : nothing, sub(label(study.definition.objective[0]))),
    make("td", {}, best ? budget(best.budget, true) : nothing, best ? sub(make("a", { href: studyPath(reference, `/trials/${best.number}`) }, `trial ${best.number}`)) : null),
    make("td", { class: "number" }, count(created)),
    make("td", { class: "number" }, measured(study.progress.data_passes)),
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
const alike = (studies) => studies.filter((one) => metricOf(one) === metricOf(studies[0]));

function draw() {
  drawPath(alike(drawn));
  drawNumbers(drawn);
  drawWinners(drawn);
}

async function fetched(reference, { id }) {
  const [study, measurements] = await Promise.all([get(studyPath(id)), get(studyPath(id, "/measurements?points=1"))]);
  return { reference, study, measurements };
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
  const key = JSON.stringify([String(address), studies.map(({ id }) => id), found.map(({ error, study, measurements }) => [error, study?.progress, measurements?.total])], (name, value) => (typeof value === "bigint" ? String(value) : value));
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

/** The leaders of the studies that are drawn. */
const leaders = () => ({
  columns: ["study", "trial", "rung", "seconds", "metric", "value"],
  rows: alike(drawn).flatMap((one) => one.measurements.leaders.map((point) => [one.study.name, point.number, point.rung, point.seconds, metricOf(one), point.value])),
});

const compared = () => alike(drawn).map(({ place, study }) => `${letter(place)} ${study.name}`).join(", ");

offerFrame();
offerDownloads(byId("path-chart").closest(".card"), { of: "comparison", name: "best-so-far", where: compared, tables: [["Leaders", leaders]] });
byId("prices").addEventListener("submit", (event) => event.preventDefault());
offerPrice("hour", "hour");
offerPrice("kilowatt-hour", "kilowatt_hour");
addEventListener("themechange", () => drawn.length > 0 && draw());
repeat(10000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
