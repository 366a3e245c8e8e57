// Who runs where, and why: a part of the page of the pool, as GET /pool tells it.
import { studyPath } from "./api.js";
import { byId, fillRows, make, setText, show } from "./dom.js";
import { company, expectedPart, seenPart } from "./gpu-share.js";
import { count, duration, energy, joules, moment, nothing, number, parameter, several, share } from "./format.js";

const bases = { epochs: "its epochs there", earlier: "an earlier study of its command", probes: "its epochs elsewhere, and probes", none: "nothing yet" };

/** Seconds and joules; those that are not known are left out. */
const amounts = (one) => (one.joules ? `${duration(one.seconds)}, ${joules(one.joules)}` : duration(one.seconds));

const scored = (score) => number(score).toFixed(2);
const faint = (text) => make("span", { class: "muted" }, text);
const below = (text) => make("span", { class: "sub" }, text);
const figure = (text, mark, of = {}) => make("td", { class: "number", data: of }, text, mark);
const workerLink = (one) => make("a", { href: `/workers?worker=${encodeURIComponent(one.id)}` }, one.name);
const trialLink = (one, text) => make("a", { href: studyPath(one.study_id, `/trials/${one.number}`) }, text);

/** Types of machine with their scores and an epoch there, the best first; chosen is marked. */
function scores(options, chosen) {
  if (options.length === 0) return faint("no worker is there to compare");
  if (options.every(({ epoch }) => !epoch)) return faint("nothing is known yet of an epoch on any type of machine");
  return make("ul", { class: "scores" }, ...options.map((one) => make("li", {},
    make(one.machine === chosen ? "strong" : "span", {}, `${one.epoch ? `score ${scored(one.score)}` : nothing} ${one.machine}`),
    below(one.epoch ? `an epoch should take ${amounts(one.epoch)}, by ${bases[one.basis]}${one.estimated ? "; joules learned from estimates" : ""}` : "nothing is known yet"))));
}

/** Why a trial is where it is: in a sentence, and what it was compared with. */
function reason({ placement, moves, gpu }, nameOf) {
  const parts = [];
  if (gpu) {
    const which = `GPU${gpu.places.length > 1 ? "s" : ""} ${gpu.places.join(", ")}`;
    parts.push(make("p", {}, gpu.share?.alone ? `${which}. ` : gpu.share ? `${which}, ${company(gpu, nameOf)}. ` : `${which} for itself. `, ...(gpu.share ? expectedPart(gpu.share) : []), gpu.use ? ` ${seenPart(gpu.use)}` : null));
  }
  if (moves) parts.push(make("p", { class: "moving" }, moves));
  if (placement) {
    const here = placement.options.find(({ machine }) => machine === placement.machine);
    const said = !here?.epoch ? "Nothing was known of this type: this is how it becomes known." : `Score ${scored(here.score)} of ${several(placement.options.length, "type")}, weight of energy ${parameter(placement.energy)}${placement.by_time ? "; energy is not known of all, so time alone decided" : ""}.`;
    parts.push(make("p", {}, said), scores(placement.options, placement.machine));
    if (placement.saved) parts.push(make("p", { class: "muted" }, `The first to ask, ${placement.instead}, was passed over: that should have ${gains(placement.saved)} (an estimate).`));
  } else if (!moves && !gpu) parts.push(faint("the first worker to ask: there was nothing to choose"));
  return parts;
}

function state(machine) {
  const now = doing(machine);
  return machine.reserved ? `${now}; reserved for ${machine.reserved}` : now;
}

function doing(machine) {
  if (!machine.alive) return "silent";
  if (machine.drained) return "drained";
  if (machine.waiting > 0) return `waits for ${several(machine.waiting, "trial")}`;
  return machine.running.length > 0 || machine.busy ? "busy" : "asks for nothing";
}

function runs(machine, nameOf) {
  const line = (...rest) => make("tr", {}, make("th", { scope: "row" }, workerLink(machine), below(state(machine))), make("td", { class: "type" }, machine.type), ...rest);
  if (machine.running.length === 0) return [line(make("td", { data: { of: "runs" } }, faint(machine.busy ? "busy for others" : "nothing")), make("td", {}, nothing))];
  return machine.running.map((one) => line(make("td", { data: { of: "runs" } }, trialLink(one, `${one.study} #${one.number}`), below(`rung ${one.rung}, epoch ${one.last_epoch} of ${one.epochs}`)), make("td", { class: "reason" }, ...reason(one, nameOf))));
}

const waits = (one) => make("tr", {},
  make("th", { scope: "row" }, make("a", { href: studyPath(one.study_id) }, one.study)),
  make("td", {}, one.number === undefined ? `up to ${count(one.new)} new` : trialLink(one, `trial ${one.number}`)),
  figure(parameter(one.priority), null, { of: "priority" }), figure(parameter(one.energy), null, { of: "weight of energy" }),
  make("td", { class: "type" }, one.why), make("td", { class: "reason" }, scores(one.options)));

/** What the epochs behind a move really took. */
function came(one) {
  if (one.epochs === 0) return [faint(one.arrived ? "goes on, no epoch yet" : "has not gone on yet")];
  const spent = energy(one.energy);
  return [`${several(one.epochs, "epoch")}: ${duration(one.seconds)}${spent ? `, ${spent.text}` : ""}`, spent?.estimate ? make("span", { class: "tag" }, "estimate") : null];
}

const moved = (one) => make("tr", {},
  make("th", { scope: "row" }, trialLink(one, `${one.study} #${one.number}`)), make("td", {}, moment(one.at)),
  make("td", { class: "type", data: { of: "from" } }, one.from, below(one.from_type)),
  make("td", { class: "type", data: { of: "to" } }, one.arrived || one.to, below(one.arrived_type || one.to_type)),
  make("td", { class: "reason", data: { of: "promised, by an estimate:" } }, `${amounts(one.goes)} instead of ${amounts(one.stays)}`, below(`score ${scored(one.score_there)} against ${scored(one.score_here)}`)),
  make("td", { data: { of: "since:" } }, ...came(one)));

const model = (one) => make("tr", {},
  make("th", { scope: "row" }, make("a", { href: studyPath(one.study_id) }, one.study)), make("td", { class: "type" }, one.machine), make("td", {}, bases[one.basis]),
  figure(`${count(one.learned)} of ${count(one.epochs)}`), figure(one.seconds_error === undefined ? nothing : share(number(one.seconds_error))),
  figure(one.joules_error === undefined ? nothing : share(number(one.joules_error)), one.estimated ? make("span", { class: "tag" }, "of estimates") : null));

/** What an amount came to against another order: saved, or spent besides. */
const gain = (value, words) => (value < 0 ? `cost ${words(-value)} more` : `saved ${words(value)}`);

const gains = (saved) => [gain(number(saved.seconds), duration), ...(number(saved.joules) === 0 ? [] : [gain(number(saved.joules), joules)])].join(" and ");

/** What is to be said of the pool as a whole. */
function note({ machines, saved }) {
  if (machines.length === 0) return "No worker is known. Start one with tandem worker: it is shown here with what it runs.";
  const types = new Set(machines.filter(({ alive }) => alive).map(({ type }) => type)).size;
  const choice = types > 1
    ? "Where workers on several types of machine wait, a trial goes where its epochs should take the least, by the study's weight of energy against time; scores are from 0 to 1, higher is better."
    : types === 1 ? "All connected workers are of one type of machine: there is nothing to choose, and trials go to the worker that asks first." : "No worker is connected: nothing can start.";
  return saved ? `${choice} Against the order in which workers asked, placement should have ${gains(saved)}: an estimate.` : choice;
}

/** Draws what GET /pool answers. */
export function drawPlacement(pool) {
  const { machines, waiting, migrations, models } = pool;
  const running = machines.reduce((sum, { running: list }) => sum + list.length, 0);
  setText(byId("placement-count"), machines.length > 0 ? `${several(running, "trial")} on ${several(machines.length, "worker")}` : "");
  setText(byId("placement-note"), note(pool));
  show(byId("placement-frame"), machines.length > 0);
  const names = new Map(machines.flatMap(({ running: list }) => list.map((one) => [one.trial_id, `${one.study} #${one.number}`])));
  fillRows("placement-runs", machines.flatMap((machine) => runs(machine, (id) => names.get(id) ?? id)));
  for (const [name, list, draw] of [["waiting", waiting, waits], ["moves", migrations, moved], ["models", models, model]]) {
    show(byId(`placement-${name}-card`), list.length > 0);
    fillRows(`placement-${name}`, list.map(draw));
  }
}
