// Which change brought how much: the path from one trial to another, as a table
// whose bars hang where the step before left off. The numbers say it all; the
// bars are for the eye.
import { studyPath } from "./api.js";
import { make } from "./dom.js";
import { measured, parameter } from "./format.js";

/** The path as nodes; without one, why there is none. */
export function waterfall(study, answer) {
  if (!answer.from) return [make("p", { class: "chart-note" }, "No path: ", answer.notes.join(". "), ".")];
  const types = new Map(study.definition.space.parameters.map((one) => [one.name, one.type]));
  const scale = scaleOf(answer);
  const link = (number) => make("a", { href: studyPath(study.name, `/trials/${number}`) }, `trial ${number}`);
  const rows = answer.steps.map((step) => stepRow(step, types, scale, link));
  return [
    make("h3", {}, "From ", link(answer.from.trial), " to ", link(answer.to.trial), make("span", { class: "tag", title: answer.method }, "predicted")),
    make("table", { class: "plain waterfall" },
      make("caption", { class: "unseen" }, `Predicted ${answer.metric} after each change on the way from trial ${answer.from.trial} to trial ${answer.to.trial}`),
      make("thead", {}, make("tr", {}, ...[["Change"], ["", "Bar"], [answer.metric, "", "number"], ["Share", "", "number"]].map(head))),
      make("tbody", {}, row({ name: "start", lines: reality(answer.from, link) }, null, answer.from, ""), ...rows)),
    make("p", { class: "chart-note" }, `≈: predicted for rung ${answer.rung} by a model of ${answer.surrogate.used} trials, which predicts ${Math.round(100 * answer.surrogate.explained)} % of the variance of others.`),
    ...answer.notes.map((note) => make("p", { class: "chart-note" }, `${note}.`)),
  ];
}

/** The path as a table of plain values; without one, only its head. */
export function pathTable(answer) {
  const columns = ["step", "parameter", "from", "to", "predicted", "between_trees", "gain", "share", "measured", "measured_by"];
  if (!answer?.from) return { columns, rows: [] };
  const ends = (found) => [found?.value, found?.trial];
  const start = [0, "", null, null, answer.from.predicted, answer.from.spread, null, null, ...ends(answer.from.measured)];
  return {
    columns,
    rows: [start, ...answer.steps.flatMap(({ switched, dependent, after, gain, share }, index) => [...switched, ...(dependent ?? [])].map((change) => [
      index + 1, change.parameter, change.from, change.to, after.predicted, after.spread, gain, share, ...ends(after.measured)]))],
  };
}

const head = ([text, hidden = "", kind = ""]) => make("th", { scope: "col", class: kind }, text, hidden ? make("span", { class: "unseen" }, hidden) : null);

/** Where a value lies between the smallest and the largest, from 0 to 1. */
function scaleOf({ from, steps }) {
  const values = [from.predicted, ...steps.map((step) => step.after.predicted)];
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  return (value) => (span > 0 ? (value - low) / span : 0);
}

function stepRow({ switched, dependent, before, after, gain, share }, types, scale, link) {
  const ends = (change) => `${parameter(change.from, types.get(change.parameter))} → ${parameter(change.to, types.get(change.parameter))}`;
  const all = [...switched, ...(dependent ?? [])];
  const name = switched.map((change) => change.parameter).join(", ");
  const lines = [...all.map((change) => (all.length > 1 ? `${change.parameter} ${ends(change)}` : ends(change))), ...reality(after, link)];
  const [left, right] = [scale(before), scale(after.predicted)].sort((a, b) => a - b);
  const bar = make("i", { class: gain < 0 ? "worse" : "better" });
  bar.style.left = `${100 * left}%`;
  bar.style.width = `${100 * (right - left)}%`;
  const part = share === undefined ? "" : `${Math.round(100 * share)} %`.replace("-", "−");
  return row({ name, lines, title: `${gain < 0 ? "worse" : "better"} by ${measured(Math.abs(gain))}` }, bar, after, part);
}

/** What a trial really measured there. */
const reality = ({ measured: found }, link) => (found ? [[`measured ${measured(found.value)} by `, link(found.trial)]] : []);

function row({ name, lines, title = "" }, bar, point, share) {
  return make("tr", { title },
    make("th", { scope: "row" }, name, ...lines.map((line) => make("span", { class: "sub" }, ...[line].flat()))),
    make("td", { class: "fall", "aria-hidden": "true" }, make("span", {}, bar)),
    make("td", { class: "number", title: `± ${measured(point.spread)} between the model's trees` }, `≈ ${measured(point.predicted)}`),
    make("td", { class: "number" }, share));
}
