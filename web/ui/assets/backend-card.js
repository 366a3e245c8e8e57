// On which backend a model is served best: what was measured there, and estimates.
import { get, studyPath } from "./api.js";
import { basisTag, between, driftLines, energyTag, latency, loadLines, runWith, runs, sampleEnergy, under } from "./deploy.js";
import { byId, make, setText, show } from "./dom.js";
import { measured, nothing } from "./format.js";

const states = { keeps: "keeps the bounds", doubtful: "may miss the bounds", misses: "misses the bounds", unknown: "not known" };

function verdict(answer, { backend: { name }, state }) {
  if (name === answer.chosen) return make("span", { class: "tag good" }, "chosen");
  if (name === answer.likely) return make("span", { class: "tag" }, answer.chosen ? "likely better" : state === "keeps" ? "likely" : states[state]);
  return under(states[state]);
}

function row(answer, one) {
  const { backend, deployment } = one;
  const head = make("th", { scope: "row" }, backend.name, " ", verdict(answer, one), under(`${backend.device}, ${measured(backend.price_per_hour)} an hour`));
  const reasons = one.reasons.map(under);
  if (!runs(deployment)) return make("tr", {}, head, make("td", { colspan: "4", class: "muted" }, ...reasons));
  return make("tr", { class: backend.name === answer.chosen ? "chosen" : "" }, head,
    make("td", {}, runWith(deployment.configuration), " ", basisTag(deployment), ...loadLines(deployment), ...driftLines(deployment), ...reasons),
    make("td", { class: "number" }, latency(deployment.latency_seconds.value), under(between(deployment.latency_seconds, latency))),
    make("td", { class: "number", title: deployment.energy_method }, sampleEnergy(deployment.joules_per_sample.value), energyTag(deployment), under(between(deployment.joules_per_sample, sampleEnergy))),
    make("td", { class: "number" }, one.cost_per_sample > 0 ? measured(1e6 * one.cost_per_sample) : nothing));
}

let wanted = -1; // the trial that was asked for last

/** Asks for the choice for a trial's model, and draws it; the card is hidden where there are no backends. */
export async function drawBackends(reference, trial) {
  wanted = trial;
  const answer = await get(studyPath(reference, `/backend?trial=${trial}`));
  if (wanted !== trial) return;
  show(byId("backends"), answer.options.length > 0);
  setText(byId("backends-title"), `Backends for the model of trial ${answer.trial}`);
  byId("backend-table").tBodies[0].replaceChildren(...answer.options.map((one) => row(answer, one)));
  setText(byId("backends-note"), answer.why);
}
