// Trying a configuration before anything the search proposes.
import { change } from "./api.js";
import { make } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";
import { count } from "./format.js";

const drawn = "";

/** A field for a parameter: what is left empty is drawn by the server. */
function parameterField(parameter) {
  const { name, type, low, high, values, log, step, when } = parameter;
  const hint = [values ? null : `${low} to ${high}${log ? ", log" : ""}${step ? `, step ${step}` : ""}`, when ? `only when ${when.map((one) => `${one.parameter} is ${one.in.join(" or ")}`).join(" and ")}` : null].filter(Boolean).join("; ");
  const made = values
    ? field({ label: name, kind: "choice", options: [[drawn, "drawn"], ...values.map((value, index) => [String(index), String(value)])], hint })
    : field({ label: name, placeholder: "drawn", numeric: true, hint });
  return {
    ...made, name,
    prefill: (value) => made.show(value === undefined ? drawn : values ? (values.includes(value) ? String(values.indexOf(value)) : drawn) : String(value)),
    // The server says what is wrong with what is no number.
    value: () => (made.input.value.trim() === drawn ? undefined : values ? values[Number(made.input.value)] : type === "float" || type === "int" ? numeric(made.input.value.trim()) : made.input.value),
  };
}

const numeric = (text) => (Number.isNaN(Number(text)) ? text : Number(text));

/** Asks for a configuration, beginning with that of a trial, and enqueues it; resolves to what the server answered, or null. */
export function enqueue(path, study, from) {
  const fields = study.definition.space.parameters.map(parameterField);
  for (const one of fields) one.prefill(from?.params[one.name]);
  return ask({
    title: from ? `Try trial ${from.number} again, with changes` : "Try a configuration", action: "Enqueue", fields,
    content: [make("p", {}, "It goes before anything the search proposes, and counts as one of the study's trials. What is left empty is drawn at random."), make("div", { class: "fields" }, ...fields.map((one) => one.element))],
    place: (fault) => fields.find((one) => fault === `configurations[0].${one.name}` || fault.startsWith(`configurations[0].${one.name}[`)),
    run: () => change("POST", path + "/enqueue", { configurations: [Object.fromEntries(fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined))] }),
  });
}

/** What to say when it was enqueued. */
export const enqueued = ({ waiting }) => `Enqueued. ${count(waiting)} ${waiting === 1 ? "configuration waits" : "configurations wait"} to be started.`;
