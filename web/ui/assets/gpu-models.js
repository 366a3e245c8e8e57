// What the server has learned of trainings on GPUs: a part of the page of the pool,
// as GET /pool tells it, and a line of a trial's details.
import { byId, fillRows, make, setText, show } from "./dom.js";
import { bytes, count, nothing, number, several, share } from "./format.js";

const ways = { factors: "the slowdown of each with others", mean: "what others do beside one of the two" };

const part = (value) => number(value).toFixed(2);
const below = (text) => make("span", { class: "sub" }, text);
const figure = (of, text, ...under) => make("td", { class: "number", data: { of } }, text, ...under.map(below));
const off = (of, errors) => (errors ? figure(of, part(errors.utilization), `memory ${share(errors.memory)}`) : figure(of, nothing));

/** What is told of a type of GPU, and what is not. */
function said(one) {
  const lines = [];
  if (one.reason) lines.push(`What a training uses is not predicted: ${one.reason}.`);
  if (one.unseen_reason) lines.push(`New architectures are not predicted: ${one.unseen_reason}.`);
  for (const way of one.pairs.learned ?? []) lines.push(`Speeds of unmeasured pairs are predicted from ${ways[way.basis]}, learned from ${several(way.pairs, "pair")}. Error on held-out pairs: ${part(way.off)}; of the mean: ${part(way.plain_off)}.`);
  if (one.pairs.reason) lines.push(`Unmeasured pairs are not predicted: ${one.pairs.reason}.`);
  return lines.map((line) => below(line));
}

const model = (one) => make("tr", {},
  make("th", { scope: "row" }, one.gpu),
  figure("trainings seen", count(one.trainings), `of ${several(one.architectures, "architecture")}`, one.learned_from ? `learned from ${count(one.learned_from)}` : "not learned"),
  off("off by", one.known), off("of a new architecture, off by", one.unseen), figure("pairs seen", count(one.pairs.seen)),
  make("td", { class: "reason" }, ...said(one)));

/** Draws what was learned on each type of GPU. */
export function drawGPUModels(models) {
  show(byId("gpu-models-card"), models.length > 0);
  fillRows("gpu-models", models.map(model));
  setText(byId("gpu-models-note"), "Trainings count that were seen alone and have said what they train (trial.save_model). Half of those that were hidden were off by no more: the share of the GPU’s time, and the memory in parts of what it was.");
}

/** Facts about what a trial should use of GPUs: for each type, in words. */
export function expectedUse(expected) {
  return (expected?.gpus ?? []).map((one) => {
    const term = expected.gpus.length > 1 ? `GPU use, ${one.gpu}` : "GPU use, expected";
    if (one.reason) return [term, make("span", { class: "muted" }, `not known: ${one.reason}`)];
    return [term, make("span", {},
      `${part(one.utilization)} (${part(one.utilization_low)} to ${part(one.utilization_high)}), ${bytes(one.memory_bytes)} `, make("span", { class: "tag" }, "estimate"),
      below(`from ${several(one.trainings, "training")}${one.unseen ? ", none of its architecture" : ""}; usually off by ${part(one.utilization_off)} and ${share(one.memory_off)} of the memory`))];
  });
}
