// What a trial's processes did in each epoch: events over epochs, each row
// between its own lowest and highest value. It is a table, so that the numbers
// are there for whoever cannot see the colours.
import { palette, rungColour } from "./chart.js";
import { make } from "./dom.js";
import { measured, nothing, number, share } from "./format.js";

const shades = 9;
const mostColumns = 60;

/** Events first, then the GPUs and the process tree, then the machine. */
function rank(name) {
  if (name.startsWith("machine.")) return 2;
  return name.startsWith("tree.") || name.startsWith("gpu.") ? 1 : 0;
}

/** The rows of the reports that have a profile: [{ name, values }], NaN where it was not measured. */
export function profileRows(reports) {
  const values = new Map();
  reports.forEach(({ profile }, at) => {
    for (const [name, value] of [...Object.entries(profile.events ?? {}), ...Object.entries(profile.host ?? {})]) {
      if (!values.has(name)) values.set(name, Array(reports.length).fill(NaN));
      values.get(name)[at] = number(value);
    }
  });
  return [...values].map(([name, row]) => ({ name, values: row })).sort((a, b) => rank(a.name) - rank(b.name) || a.name.localeCompare(b.name));
}

/** What was measured in each epoch as a table: events per second, an epoch a column. */
export function profileTable(all) {
  const reports = all.filter((report) => report.profile);
  return { columns: ["event", ...reports.map(({ epoch }) => `epoch ${epoch}`)], rows: profileRows(reports).map(({ name, values }) => [name, ...values.map((value) => (Number.isNaN(value) ? null : value))]) };
}

/** The means of so many neighbours each; NaN where none of them was measured. */
export function joined(values, each) {
  const means = [];
  for (let at = 0; at < values.length; at += each) {
    const known = values.slice(at, at + each).filter((value) => !Number.isNaN(value));
    means.push(known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : NaN);
  }
  return means;
}

function cell(value, low, high, colours) {
  if (Number.isNaN(value)) return make("td", { class: "heat", title: "not measured" }, make("span", {}, nothing));
  const box = make("td", { class: "heat", title: measured(value) }, make("span", {}, measured(value)));
  if (high > low) {
    const step = Math.min(shades - 1, Math.floor(((value - low) / (high - low)) * shades));
    box.dataset.shade = String(step);
    box.style.backgroundColor = rungColour(colours, step, shades);
  } else {
    box.dataset.shade = "steady";
  }
  return box;
}

function row({ name, values }, each, colours) {
  const means = joined(values, each);
  const known = means.filter((value) => !Number.isNaN(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return make("tr", {}, make("th", { scope: "row" }, name), ...means.map((value) => cell(value, low, high, colours)),
    make("td", { class: "number" }, measured(low)), make("td", { class: "number" }, measured(high)));
}

/** What a reader has to know of the numbers. */
function notes(reports, each, constant) {
  const fraction = Math.min(1, ...reports.map(({ profile }) => profile.run_fraction ?? 1));
  const list = [`Per second, from each row's lowest to its highest. Counted: ${reports.at(-1).profile.level}.`];
  if (fraction < 1) list.push(`Events shared the processor's counters, each had one at least ${share(fraction)} of the time: the values are estimates.`);
  if (each > 1) list.push(`Each column is the mean of ${each} epochs.`);
  if (constant.length > 0) list.push(`Always 0: ${constant.join(", ")}.`);
  return make("p", { class: "chart-note inset" }, list.join(" "));
}

/** The heat map as nodes; none when no report has a profile. */
export function heatMap(all) {
  const reports = all.filter((report) => report.profile);
  if (reports.length === 0) return [];
  const each = Math.ceil(reports.length / mostColumns);
  const colours = palette();
  const rows = profileRows(reports);
  const isConstant = ({ values }) => values.every((value) => !(value > 0));
  const heads = reports.filter((_, at) => at % each === 0).map(({ epoch, rung }) => make("th", { scope: "col", class: "heat", title: `epoch ${epoch} at rung ${rung}` }, String(epoch)));
  const frame = make("div", { class: "table-frame heat-frame", tabindex: "0", role: "group", "aria-labelledby": "profile-title" },
    make("table", { class: "plain heat-map" },
      make("caption", { class: "unseen" }, "Events and metrics per second, by epoch"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Event"), ...heads,
        make("th", { scope: "col", class: "number" }, "Lowest"), make("th", { scope: "col", class: "number" }, "Highest"))),
      make("tbody", {}, ...rows.filter((one) => !isConstant(one)).map((one) => row(one, each, colours)))));
  return [frame, notes(reports, each, rows.filter(isConstant).map(({ name }) => name))];
}
