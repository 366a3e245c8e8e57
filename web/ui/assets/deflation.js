// What trials of a study leave out of their data for studies of a higher
// priority, why, and how long they take.
import { byId, fillFacts, make, show } from "./dom.js";
import { count, duration, joules, measured, several, share } from "./format.js";

const estimate = () => make("span", { class: "tag" }, "estimate");

/** Whether a study has anything to do with that. */
export const hasPriorities = (study) => study.definition.approximation !== undefined || study.definition.response_seconds !== undefined || study.definition.sprint !== undefined;

/** Fills the card. */
export function drawDeflation(answer, metric) {
  const { accepts, met, limits, limits_why: kept, sprint, sprint_why: when, sprint_speed: speed } = answer;
  const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  const times = ({ mean, tail }) => [mean > 0 && `${duration(mean)} in the mean`, tail > 0 && `95 % within ${duration(tail)}`].filter(Boolean).join(", ");
  fillFacts(byId("deflation-facts"), [
    ["Priority", String(answer.priority)],
    ...(accepts ? [
      ["Left out now", make("span", {}, answer.drop > 0 ? `${share(answer.drop)} of the data` : "nothing")],
      ["Accepted", `at most ${share(accepts.most_drop)} of the data${accepts.metric_loss ? `, and ${measured(accepts.metric_loss)} of ${metric}` : ""}`],
      ...(answer.loss !== undefined ? [["Costs", make("span", { title: `at most ${measured(answer.loss_bound)} with 95 % confidence` }, `${measured(answer.loss)} of ${metric} `, estimate())]] : []),
      ...(answer.loss_measured !== undefined ? [["Cost, measured", `${measured(answer.loss_measured)}, by ${several(answer.loss_trials, "repeated trial")}`]] : []),
      ["Trials that did", count(answer.deflated)],
    ] : []),
    ...(limits ? [["Wanted", times(limits)]] : []),
    ...(kept ? [["Limits", sentence(kept)]] : []),
    ...(met ? [["A trial takes", `${times(met)} (${several(met.trials, "trial")})`]] : []),
    ...(sprint ? [["Left for sprints", make("span", {}, sprint.of > 0 ? `${joules(sprint.joules)} of ${joules(sprint.of)} ` : "nothing: no worker allows any", sprint.of > 0 ? estimate() : null)]] : []),
    ...(when ? [["Sprints", sentence(when)]] : []),
    ...(speed !== undefined ? [["A sprint makes trials", make("span", {}, speed > 1 ? `${measured(speed)} times as fast, as was seen` : "no faster, as was seen")]] : []),
    ["Workers", `${several(answer.slots, "trial")} at once`],
  ]);
  const why = byId("deflation-why");
  why.textContent = accepts ? sentence(answer.why) : "";
  show(why, why.textContent !== "");
  show(byId("deflation"), true);
}
