// What the reader's studies saved by tuning the system: by reusing what other runs
// had taught, and in all.
import { referenceOf, studyPath } from "./api.js";
import { byId, make, show } from "./dom.js";
import { count, duration, joules, nothing, number } from "./format.js";
import { signed } from "./system.js";

/** What a study's epochs of some phases came to; of all phases without any. */
function sum({ progress }, ...phases) {
  const uses = (progress.system_use ?? []).filter((use) => phases.length === 0 || phases.includes(use.phase));
  const saved = uses.filter((use) => use.saved);
  return {
    epochs: uses.reduce((total, use) => total + use.epochs, 0),
    known: saved.length > 0,
    seconds: saved.reduce((total, use) => total + number(use.saved.seconds), 0),
    joules: saved.reduce((total, use) => total + number(use.saved.joules), 0),
  };
}

const add = (a, b) => ({ epochs: a.epochs + b.epochs, known: a.known || b.known, seconds: a.seconds + b.seconds, joules: a.joules + b.joules });

const amount = (known, value, shown) => make("td", { class: "number" }, known ? signed(value, shown) : nothing);
const reused = ["reused", "similar", "script", "study"];

function row(head, { all, reused: known, probing }) {
  return make("tr", {},
    make("th", { scope: "row" }, head), make("td", { class: "number" }, count(all.epochs)),
    make("td", { class: "number" }, count(known.epochs)), make("td", { class: "number" }, count(probing.epochs)),
    amount(known.known, known.seconds, duration), amount(known.known, known.joules, joules),
    amount(all.known, all.seconds, duration), amount(all.known, all.joules, joules));
}

/** Fills the card, and hides it where no study tunes the system. */
export function drawSavings(studies) {
  const tuned = studies.filter(({ progress }) => (progress.system_use ?? []).length > 0);
  show(byId("reuse"), tuned.length > 0);
  const sums = tuned.map((study) => ({ all: sum(study), reused: sum(study, ...reused), probing: sum(study, "probing") }));
  byId("savings").tBodies[0].replaceChildren(...tuned.map((study, at) => row(make("a", { href: studyPath(referenceOf(study)) }, study.name), sums[at])));
  const total = sums.length > 1 ? sums.reduce((a, b) => ({ all: add(a.all, b.all), reused: add(a.reused, b.reused), probing: add(a.probing, b.probing) })) : null;
  byId("savings").tFoot.replaceChildren(...(total ? [row(`${count(tuned.length)} studies`, total)] : []));
}
