// How to run a trial's model on the study's devices: a table with bands, and a
// program to copy.
import { copyButton } from "./copy.js";
import { byId, make, setText, show } from "./dom.js";
import { ago, bytes, count, measured, moment, nothing } from "./format.js";

const prefixes = [["", 1], ["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]];

/** A quantity with three digits and the prefix that fits: 0.83 s, 12.3 ms, 551 µJ. */
function scaled(value, unit) {
  if (!(value > 0)) return nothing;
  const [prefix, size] = prefixes.find(([, least]) => value >= least) ?? prefixes.at(-1);
  return `${Number((value / size).toPrecision(3))} ${prefix}${unit}`;
}

/** A latency, such as 12.3 ms. */
export const latency = (seconds) => scaled(seconds, "s");

/** Whether numbers were measured, and when: with the age, and what it was before the device drifted. */
export function basisTag(one) {
  if (estimated(one.method)) return make("span", { class: "tag", title: one.method }, "estimate");
  const at = one.measured_at;
  return make("span", { class: "tag good", title: at && `measured on ${moment(at)}, ${ago((Date.now() - Date.parse(at)) / 1000)}` }, at ? `measured ${moment(at)}` : "measured");
}

/** What a deployment took before the device drifted, as a list of at most one. */
export const driftLines = ({ drift }) => (drift ? [under(`It drifted: it took ${latency(drift.seconds)} until ${moment(drift.at)}.`)] : []);

export const under = (text) => make("span", { class: "sub" }, text);
/** A band in words; empty where there is none. */
export const between = ({ low, high }, shown) => (low > 0 && high > low ? `${shown(low)} to ${shown(high)}` : "");
/** The energy of a sample, such as 551 µJ. */
export const sampleEnergy = (value) => scaled(value, "J");
/** Whether a method is one of estimating. */
export const estimated = (method) => method !== "measured";
/** Whether any configuration runs the model. */
export const runs = (deployment) => deployment !== undefined && deployment.samples_per_second > 0;
/** Says of joules beside a measured latency that no meter told them. */
export const energyTag = ({ method, energy_method: energy }) => (!estimated(method) && energy.startsWith("estimate") ? make("span", { class: "tag", title: energy }, "estimate") : null);

/** A deployment's configuration in words. */
export function runWith({ batch_size: batch, cores, cpu_hertz: clock, precision, provider }) {
  return [`batch ${batch}`, precision, provider, cores ? `${count(cores)} ${cores === 1 ? "core" : "cores"}` : null, clock ? `${measured(clock / 1e9)} GHz` : null].filter(Boolean).join(", ");
}

/** How samples are put together under the study's load, and what that comes to; nothing where there is none. */
export function loadLines({ batching: load }) {
  if (!load) return [];
  const policy = load.max_batch === 1 ? "one by one" : `at most ${count(load.max_batch)} together, wait ${load.wait_seconds > 0 ? latency(load.wait_seconds) : "0"}`;
  const rate = `at ${count(load.rate_per_second ?? 0)} requests/s`;
  const comes = load.streams ? `${count(load.streams)} samples take ${latency(load.p99_seconds)}`
    : load.overloaded ? `overloaded ${rate}: the most is ${count(Math.round(load.sustains_per_second))}`
      : `p99 ${latency(load.p99_seconds)} ${rate} (estimate), ${Math.round(100 * load.utilization)} % busy`;
  return [under(policy), under(comes)];
}

/** What a precision with an execution provider is worth and takes, and why it is recommended, or not. */
function compared({ precision, provider, value, samples, measured: took, chosen, why }) {
  const says = [samples ? `is worth ${measured(value)} on ${count(samples)} samples` : null, took ? `takes ${latency(took.latency_seconds.value)} (${between(took.latency_seconds, latency)})` : null];
  return `${[precision, provider].filter(Boolean).join(" with ")} ${says.filter(Boolean).join(" and ")}, ${chosen ? "recommended" : "not recommended"}: ${why}`.replace(" ,", ",");
}

/** The card of deployments; it is hidden where there are none. */
export class DeployCard {
  #chosen = "";

  /** Of is what the command line calls the trial: the study's reference, and --trial unless it is recommended. */
  draw(deployments, of) {
    const found = deployments ?? [];
    show(byId("deploy"), found.length > 0);
    if (found.length === 0) return;
    byId("deploy-table").tBodies[0].replaceChildren(...found.map((one) => this.#row(one)));
    const remarks = found.flatMap((one) => [
      ...(one.precisions ?? []).map((each) => `${one.device}: ${compared(each)}.`),
      ...(one.unmet ?? []).map((why) => (runs(one) ? `${one.device}: nothing keeps to the constraints: ${why}.` : `${one.device}: ${why}.`)),
      ...(one.doubtful ?? []).map((why) => `${one.device}: ${why} holds for the estimate, but not at the bad end of its band.`),
    ]);
    const stands = [...new Set(found.filter((one) => runs(one) && estimated(one.method)).map((one) => `${found.filter(({ method }) => method === one.method).map(({ device }) => device).join(", ")}: an ${one.method}.`))];
    const turns = found.some((one) => one.device === "this-machine" && one.configuration.precision) ? ["this-machine: precisions are measured in turns: their bands are from the fastest of five rounds to the slowest."] : [];
    const lines = [...remarks, ...turns, ...stands, "Bands of estimates hold with a probability of 90 %; those of what was measured are the 95 % interval of the median."];
    byId("deploy-note").replaceChildren(...lines.flatMap((line) => [line, make("br")]));
    this.#programs(found.filter(runs), of);
  }

  #row(one) {
    const device = (tag) => make("th", { scope: "row" }, one.device, " ", tag, under(one.title));
    if (!runs(one)) return make("tr", { data: { device: one.device } }, device(null), make("td", { colspan: "5", class: "muted" }, "it does not run there"));
    return make("tr", { data: { device: one.device } },
      device(basisTag(one)),
      make("td", {}, runWith(one.configuration), ...loadLines(one), ...driftLines(one), one.feasible ? null : make("span", { class: "tag" }, "misses the constraints")),
      make("td", { class: "number" }, latency(one.latency_seconds.value), under(between(one.latency_seconds, latency))),
      make("td", { class: "number" }, count(Number(one.samples_per_second.toPrecision(3)))),
      make("td", { class: "number", title: one.energy_method }, sampleEnergy(one.joules_per_sample.value), energyTag(one), under(between(one.joules_per_sample, sampleEnergy))),
      make("td", { class: "number" }, bytes(one.memory_bytes)));
  }

  #programs(found, of) {
    show(byId("deploy-programs"), found.length > 0);
    if (found.length === 0) return;
    const code = make("pre", { class: "code", tabindex: "0", "aria-label": "Program for the device" });
    const command = make("code", { id: "deploy-command" });
    const buttons = found.map((one) => make("button", { type: "button", class: "small", data: { device: one.device }, on: { click: () => choose(one) } }, one.device));
    const choose = (one) => {
      this.#chosen = one.device;
      setText(code, one.program);
      setText(command, `tandem study deployments ${of} --device ${one.device} --output deployment`);
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.device === one.device));
    };
    choose(found.find((one) => one.device === this.#chosen) ?? found[0]);
    byId("deploy-programs").replaceChildren(
      make("div", { class: "copy-head" }, make("span", { class: "choice", role: "group", "aria-label": "Device" }, ...buttons), copyButton(() => code.textContent)),
      code,
      make("p", { class: "chart-note" }, "A folder with this program and the trained model, if the script logged it:"),
      make("div", { class: "copy-head" }, command, copyButton(() => command.textContent)));
  }
}
