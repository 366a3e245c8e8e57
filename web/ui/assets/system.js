// With which system configurations epochs ran, why, and what that saved against the
// default one: what was measured, with its interval.
import { byId, make, setText, show, stackedBar } from "./dom.js";
import { count, duration, energy, joules, nothing, number, parameter, roughly, several } from "./format.js";

// What the phases mean, in the order of their evidence.
const phases = {
  default: "nothing was known of the workload: the default, as far as cores were free",
  machine: "a first guess: the best of most workloads on this type of machine",
  reused: "the best of most workloads, or of similar ones, by an earlier version",
  similar: "the best of workloads with a similar profile",
  script: "the best of other runs of the same command",
  study: "the best of other trials of this study",
  probing: "the configuration was being measured",
  decided: "the best by what this trial measured",
  control: "the default, so that what is saved is measured",
};
const meanings = { ...phases, "not followed": "it ran with another configuration than it was given" };

const phaseOf = ({ phase, system_phase: other }) => phase || other || "not followed";
const mark = (phase) => make("span", { class: "badge", title: meanings[phase], data: { phase } }, phase);

/** A configuration in one line. */
export const configured = (configuration) => Object.keys(configuration ?? {}).sort().map((name) => `${name}=${parameter(configuration[name])}`).join(" ") || nothing;

/** A saved amount, with its sign. */
export const signed = (value, shown) => (number(value) < 0 ? `−${shown(-number(value))}` : shown(number(value)));
// No more digits than an estimate is worth.
const about = (value) => (value < 60 ? `${Number(value.toPrecision(2))} s` : roughly(value));
const seconds = (saved) => (saved ? signed(saved.seconds, duration) : nothing);
const power = (saved, spent) => (saved ? `${saved.seconds_low === undefined || energy(spent)?.estimate ? "≈ " : ""}${signed(saved.joules, joules)}` : nothing);
const used = (spent) => (energy(spent) ? `${energy(spent).estimate ? "≈ " : ""}${energy(spent).text}` : "");
const under = (text) => make("span", { class: "sub" }, text);
const whole = "Seconds of the whole machine: an epoch that leaves half of the cores to another trial uses half of them.";

// A saving of an earlier version was an estimate, without an interval.
const estimated = (saved) => (saved && saved.seconds_low === undefined ? "≈ " : "");

/** The figure of what was saved; null where nothing is tuned. */
export function savedFigure(saved, spent, byPhase) {
  const term = "Saved machine time";
  const compared = byPhase?.control ?? 0;
  if (!saved) return byPhase === undefined ? null : { term, value: nothing, title: whole, detail: compared > 0 ? `no difference found in ${several(compared, "epoch")} with the default` : "not compared with the default yet" };
  const between = saved.seconds_low === undefined ? "an estimate" : `95\u00a0% interval ${signed(saved.seconds_low, about)} to ${signed(saved.seconds_high, about)}`;
  if (number(saved.seconds) === 0) return { term, value: nothing, title: whole, detail: `no difference in time found; ${power(saved, spent)} of energy, against the default system` };
  return { term, value: signed(saved.seconds, about), estimate: saved.seconds_low === undefined, title: whole, detail: `${between}; ${power(saved, spent)} of energy, against the default system` };
}

/** Fills the card of a trial's epochs, and hides it where nothing is tuned. */
export function drawTrialSystem(trial, reports) {
  const over = ["completed", "pruned", "failed", "cancelled"].includes(trial.state);
  const shown = trial.setting !== undefined && (reports.length > 0 || !over);
  show(byId("system-card"), shown);
  if (!shown) return;
  const rows = reports.map((report) => make("tr", {},
    make("td", { class: "number" }, String(report.rung)), make("th", { scope: "row", class: "number" }, String(report.epoch)),
    make("td", {}, configured(report.system)), make("td", {}, mark(phaseOf(report))),
    make("td", { class: "number", title: report.energy?.method }, duration(report.seconds), under(used(report.energy))),
    make("td", { class: "number", title: whole }, report.saved ? `${estimated(report.saved)}${seconds(report.saved)}` : nothing, under(report.saved ? power(report.saved, report.energy) : "")),
    make("td", { class: "reason" }, report.system_why || nothing)));
  byId("system").tBodies[0].replaceChildren(...rows);
  show(byId("system-frame"), rows.length > 0);
  show(byId("system-next"), !over);
  byId("system-next").replaceChildren("Next: ", make("strong", {}, configured(trial.setting.configuration)), " ", mark(trial.setting.phase), ` ${trial.setting.why}.`);
}

/** Fills the card of a study's configurations, and hides it where none ran. */
export function drawStudySystem({ system_use: uses = [], epochs_by_phase: byPhase = {}, energy: spent }) {
  show(byId("system-card"), uses.length > 0);
  if (uses.length === 0) return;
  const total = uses.reduce((sum, use) => sum + use.epochs, 0);
  const part = (epochs) => `${Math.round((100 * epochs) / total)} %`;
  const present = Object.keys(phases).filter((phase) => byPhase[phase] > 0);
  byId("system-phases").replaceChildren(stackedBar(present.map((phase) => ({ phase, state: phase, weight: byPhase[phase] }))),
    make("span", { class: "states" }, ...present.map((phase) => make("span", { title: meanings[phase], data: { phase } }, `${count(byPhase[phase])} ${phase} (${part(byPhase[phase])})`))));
  const rows = uses.map((use) => make("tr", {},
    make("th", { scope: "row" }, configured(use.configuration)), make("td", {}, mark(phaseOf(use))),
    make("td", { class: "number", title: part(use.epochs) }, count(use.epochs)), make("td", { class: "number" }, duration(use.seconds)),
    make("td", { class: "number", title: whole }, use.saved ? `${estimated(use.saved)}${seconds(use.saved)}` : nothing),
    make("td", { class: "number" }, power(use.saved, spent))));
  byId("system").tBodies[0].replaceChildren(...rows);
  setText(byId("system-note"), "Epochs by phase. Savings are differences from the default configuration that were measured; seconds are of the whole machine.");
}

/** The knobs of a study file as pairs [name, value or what is tried]; where it leaves them to the server, none. */
export function knobs(section = {}) {
  if (typeof section === "string") return [];
  return Object.entries(section).filter(([name]) => name !== "objective").map(([name, value]) => {
    const tuned = value === "auto" || typeof value === "object";
    return { name, tuned, value, text: !tuned ? parameter(value) : value === "auto" ? "powers of two up to the cores" : value.values.map((one) => parameter(one)).join(", ") };
  });
}
