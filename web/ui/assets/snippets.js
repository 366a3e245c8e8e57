// A configuration as something to paste: JSON, Python, or a command line.

/** A value as a JSON or Python literal; floats keep their point. */
function literal(value, parameter, python) {
  if (typeof value === "boolean") return python ? (value ? "True" : "False") : String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (parameter?.type === "float" && Number.isInteger(value) && !/[e.]/.test(String(value))) return `${value}.0`;
  return String(value);
}

function object(values, space, python) {
  const find = (name) => space.parameters.find((parameter) => parameter.name === name);
  const lines = Object.entries(values).map(([name, value]) => `${JSON.stringify(name)}: ${literal(value, find(name), python)}`);
  return lines.length === 0 ? "{}" : { lines };
}

const inline = (content) => (content === "{}" ? content : `{${content.lines.join(", ")}}`);
const indented = (content, indent) => (content === "{}" ? content : `{\n${content.lines.map((line) => indent + "  " + line).join(",\n")}\n${indent}}`);

/** Quoted for a POSIX shell. */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The winner's parameters as a JSON object. */
export function json(definition, best) {
  return indented(object(best.params, definition.space, false), "");
}

/** A call of the Python client that trains with them outside of a study. */
export function python(definition, best, system) {
  const values = indented(object(best.params, definition.space, true), "    ");
  const knobs = Object.keys(system ?? {}).length > 0 ? `\n    system=${inline(object(system, definition.space, true))},` : "";
  const share = literal(best.budget.data_fraction, { type: "float" }, true);
  return `trial = tandem.current_trial(\n    params=${values},\n    epochs=${best.budget.epochs}, data_fraction=${share},${knobs}\n)`;
}

/** The study's command, with the variables a worker sets for it; null without a command. */
export function shell(definition, best, system) {
  if (!definition.command?.length || definition.service) return null;
  const variables = {
    TANDEM_PARAMS: inline(object(best.params, definition.space, false)),
    TANDEM_SYSTEM: inline(object(system ?? {}, definition.space, false)),
    TANDEM_FIRST_EPOCH: "1",
    TANDEM_EPOCHS: String(best.budget.epochs),
    TANDEM_DATA_FRACTION: String(best.budget.data_fraction),
  };
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)} \\\n`);
  return settings.join("") + definition.command.map(quoted).join(" ");
}
