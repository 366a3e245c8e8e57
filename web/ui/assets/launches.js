// The workers that launchers start, why they wait and how they ended: a part of the page
// of the pool, as GET /pool/launches tells it.
import { change } from "./api.js";
import { byId, fillRows, make, setText, show } from "./dom.js";
import { count, duration, moment, nothing, several } from "./format.js";

const below = (text) => make("span", { class: "sub" }, text);
const cell = (of, text, css = null) => make("td", { class: css, data: { of } }, text);
const number = (of, value) => cell(of, count(value), "number");

/** For how long workers waited before, in words. */
const waited = (learned) => (learned ? `half at most ${duration(learned.median_seconds)}, 9 of 10 at most ${duration(learned.most_seconds)}` : nothing);

/** Why no more of the shape are started, with a way to try nevertheless. */
function hold(launcher, shape, again) {
  const { until, why, try_again: asked } = shape.hold;
  const said = `until ${moment(until, false)}, as the last workers brought no trial: ${why}.`;
  const press = () => again(() => change("POST", `/pool/launchers/${launcher.id}/try-again`, { shape: shape.name }));
  return make("div", {}, make("span", { class: "tag bad" }, "on hold"), " ", said, " ",
    asked ? "The launcher is asked to try again." : launcher.yours ? make("button", { type: "button", class: "small", "aria-label": `Try the shape ${shape.name} again`, on: { click: press } }, "Try again") : null);
}

function shapeRow(launcher, shape, again) {
  const who = `${launcher.name}, on ${launcher.engine}, for ${launcher.user ? `user ${launcher.user}` : "all users"}`;
  const waits = (shape.waits ?? []).map((one) => make("p", {}, `${several(one.workers, "worker")} since ${moment(one.since, false)}: ${one.why}.`));
  return make("tr", {}, make("th", { scope: "row" }, shape.name, below(who)),
    number("wanted", shape.wanted), number("pending", shape.pending), number("starting", shape.starting), number("running", shape.running), number("at most", shape.most),
    cell("waited before", waited(shape.learned)),
    make("td", { class: "reason" }, ...waits, shape.hold ? hold(launcher, shape, again) : null, waits.length > 0 || shape.hold ? null : nothing));
}

const endRow = (one) => make("tr", {}, make("th", { scope: "row" }, moment(one.at)), cell("shape", one.shape),
  cell("job", one.job ?? nothing), cell("on", one.node ?? nothing), cell("ran", one.seconds ? duration(one.seconds) : nothing, "number"), cell("", one.why, "reason"));

/** What is wrong with a launcher itself, and what it does not do. */
function notes(one) {
  const said = one.notes.map(({ says }) => says);
  if (one.server_version) said.unshift(`${one.name} is tandem ${one.version}, and the server ${one.server_version}: upgrade the older`);
  if (one.trouble) said.unshift(`${one.name} does not see its engine: ${one.trouble}`);
  if (one.silent) said.unshift(`${one.name} has not been heard of since ${moment(one.heard)}: does tandem launch still run?`);
  return said;
}

/** Draws what launchers start; nothing where there is none. Again runs a request and says what came of it. */
export function drawLaunches(launchers, again) {
  show(byId("launches-card"), launchers.length > 0);
  fillRows("launches", launchers.flatMap((one) => one.shapes.map((shape) => shapeRow(one, shape, again))));
  byId("launches-notes").replaceChildren(...launchers.flatMap(notes).map((said) => make("li", {}, said)));
  const ends = launchers.flatMap((one) => one.ends).sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, 50);
  show(byId("ends-card"), ends.length > 0);
  setText(byId("ends-count"), several(ends.length, "worker"));
  fillRows("ends", ends.map(endRow));
}
