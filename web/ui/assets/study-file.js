// A study file as text, and the same as values that a form shows and changes.
// The text is what counts: the form changes it in place, so that comments and
// the order of the fields stay as they were written.
import { parseDocument } from "./vendor/yaml/yaml.js";

const plain = { lineWidth: 0, flowCollectionPadding: false };

/** A number as it was typed: an exponent stays one, and 1.0 stays a float. */
export class Typed {
  constructor(text) {
    this.text = text;
  }

  static is(text) {
    return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(text);
  }

  toJSON() {
    return Number(this.text);
  }
}

export class StudyFile {
  #document = null; // of YAML
  #value = null;

  constructor(text) {
    this.read(text);
  }

  /** Whether the text is JSON; else it is YAML. */
  get json() {
    return this.text.trimStart().startsWith("{") && this.#document === null;
  }

  /** How the text is sent. */
  get kind() {
    return this.json ? "application/json" : "application/yaml";
  }

  /** The values, or null where the text cannot be read. */
  get value() {
    return this.#value;
  }

  /** Takes a new text; returns what is wrong with its structure, {line, message}, or null. */
  read(text) {
    this.text = text;
    this.#document = this.#value = null;
    if (text.trimStart().startsWith("{")) {
      try {
        this.#value = JSON.parse(text);
        return null;
      } catch {
        // A mapping of YAML may begin so, too.
      }
    }
    const read = parseDocument(text);
    if (read.errors.length > 0) {
      const [error] = read.errors;
      return { line: error.linePos?.[0].line, message: error.message.split(" at line")[0] };
    }
    const value = read.toJS() ?? {};
    if (typeof value !== "object" || Array.isArray(value)) return { line: 1, message: "A study file is a mapping of fields, such as name, objective and space" };
    this.#document = read;
    this.#value = value;
    return null;
  }

  /** The value at the path; undefined if there is none. */
  get(path) {
    return path.reduce((value, key) => (value !== null && typeof value === "object" ? value[key] : undefined), this.#value);
  }

  /** The value at the path as it is written; empty if there is none. */
  written(path) {
    const value = this.get(path);
    if (value === undefined || value === null) return "";
    const node = this.#document?.getIn(path, true);
    return typeof value === "number" && node?.source ? node.source : String(value);
  }

  /** Sets the value at the path, and makes the mappings that lead to it. */
  set(path, value) {
    if (this.#document === null) {
      setPlain(this.#value, path, value);
      this.#store(JSON.stringify(this.#value, null, 2) + "\n");
      return;
    }
    for (let depth = 1; depth < path.length; depth++) {
      const above = this.get(path.slice(0, depth));
      if (above !== undefined && (above === null || typeof above !== "object")) this.#document.setIn(path.slice(0, depth), this.#document.createNode({}, { flow: true }));
    }
    const present = this.#document.getIn(path, true);
    // A number that is there is changed, not replaced: its comment stays with it.
    if (value instanceof Typed && present !== null && typeof present === "object" && "source" in present) spell(present, value.text);
    else this.#document.setIn(path, this.#node(value));
    this.#store(this.#document.toString(plain));
  }

  /** Removes what is at the path, and the mappings that it leaves empty. */
  remove(path) {
    if (this.get(path) === undefined) return;
    let last = path.length;
    while (last > 1 && Object.keys(this.get(path.slice(0, last - 1)) ?? {}).length === 1) last--;
    const gone = path.slice(0, last);
    if (this.#document === null) {
      const above = this.get(gone.slice(0, -1));
      if (Array.isArray(above)) above.splice(gone.at(-1), 1);
      else delete above[gone.at(-1)];
      this.#store(JSON.stringify(this.#value, null, 2) + "\n");
      return;
    }
    this.#document.deleteIn(gone);
    this.#store(this.#document.toString(plain));
  }

  /** Gives a key of the mapping at the path another name, in its place. */
  rename(path, from, to) {
    if (this.#document === null) {
      const renamed = Object.fromEntries(Object.entries(this.get(path)).map(([key, value]) => [key === from ? to : key, value]));
      setPlain(this.#value, path, renamed);
      this.#store(JSON.stringify(this.#value, null, 2) + "\n");
      return;
    }
    const pair = this.#document.getIn(path, true).items.find((one) => String(one.key?.value ?? one.key) === from);
    pair.key = this.#document.createNode(to);
    this.#store(this.#document.toString(plain));
  }

  #store(text) {
    this.read(text); // what was written is what is read
  }

  /** A value as a node: small mappings and lists in one line, numbers as they were typed. */
  #node(value) {
    if (value instanceof Typed) return this.#number(value.text);
    if (value === null || typeof value !== "object") return value;
    const node = this.#document.createNode(JSON.parse(JSON.stringify(value)), { flow: true });
    if (Array.isArray(value)) value.forEach((item, index) => item instanceof Typed && (node.items[index] = this.#number(item.text)));
    return node;
  }

  #number(text) {
    return spell(this.#document.createNode(Number(text)), text);
  }
}

/** Makes a node the number, spelled as it was typed. */
function spell(node, text) {
  const fraction = /^[-+]?\d*\.(\d+)$/.exec(text);
  node.value = Number(text);
  node.format = /e/i.test(text) ? "EXP" : undefined;
  node.minFractionDigits = fraction ? fraction[1].length : undefined;
  node.type = "PLAIN"; // it may have been text in quotes
  return node;
}

function setPlain(root, path, value) {
  let at = root;
  for (const key of path.slice(0, -1)) {
    if (at[key] === null || typeof at[key] !== "object") at[key] = {};
    at = at[key];
  }
  at[path.at(-1)] = value;
}

/** The values of a study that there is, as short as people write them: what is a default, and its seed, are left out. */
export function concise(definition, name) {
  const { description, command, processes, directory, environment, secrets, encryption, confidential, sandbox, epoch_timeout_seconds: timeout, stall_seconds: stall, stall_ends: ends, objective, constraints, space, system, inference, budget, search, stop, retry, placement, priority, approximation, response_seconds: responses, sprint, parallel, preempt, resources } = definition;
  const { seed, warm_start: warm, ...method } = search;
  const { sources, ...begun } = warm ?? {};
  const grown = budget.epochs && budget.epochs.min === budget.epochs.max ? { ...budget, epochs: budget.epochs.max } : budget;
  return trimmed({
    name, description, command, processes, directory, environment, secrets, encryption, confidential, sandbox, epoch_timeout_seconds: timeout, stall_seconds: stall, stall_ends: ends,
    objective: objective.length === 1 ? objective[0] : objective, constraints,
    space: Object.fromEntries(space.parameters.map(({ name: parameter, when, ...rest }) => [parameter, shortened(rest, when)])),
    forbidden: space.forbidden?.map(conditions), system: Object.keys(system ?? {}).length > 0 ? system : undefined, inference, budget: grown,
    search: trimmed({ ...method, warm_start: Object.keys(begun).length > 0 ? begun : undefined }, { promotion: "asynchronous", brackets: method.promotion === "asynchronous" ? 1 : -1, random_fraction: 1 / 3, grid_points: 5, restarts: "ipop" }),
    stop: trimmed(stop, { failures: 10, trials: -1 }), retry: retry?.failures === 1 ? undefined : retry, placement, priority: priority || undefined, approximation, response_seconds: responses, sprint, parallel, preempt, resources,
  });
}

const conditions = (list) => Object.fromEntries(list.map(({ parameter, in: values }) => [parameter, values.length === 1 ? values[0] : values]));

function shortened({ kind, type, low, high, values, ...rest }, when) {
  const range = values ? { values } : { low, high };
  return { ...(kind === "training" ? {} : { kind }), ...(type === "categorical" ? {} : { type }), ...range, ...rest, ...(when ? { when: conditions(when) } : {}) };
}

/** Without what is empty, or as it is anyhow. */
function trimmed(values, usual = {}) {
  const none = (key, value) => value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)
    || value === usual[key] || (usual[key] === undefined && (value === 0 || value === false));
  return Object.fromEntries(Object.entries(values).filter(([key, value]) => !none(key, value)));
}

/** Values as YAML: sections of mappings as blocks with a line for each, the rest in one line. */
export function textOf(values) {
  const made = parseDocument("{}");
  made.contents = made.createNode(values);
  for (const { key, value: node } of made.contents.items) {
    const value = values[key.value];
    if (value === null || typeof value !== "object") continue;
    const parts = Object.values(value);
    const block = parts.length > 0 && parts.every((part) => part !== null && typeof part === "object" && !Array.isArray(part));
    node.flow = !block;
    if (block) for (const item of node.items) (item.value ?? item).flow = true;
  }
  return made.toString(plain);
}
