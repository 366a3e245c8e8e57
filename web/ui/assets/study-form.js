// The form of a study file: each field shows and changes one place of the file.
// What a field cannot show stays in the file as it is written.
import { field, joined } from "./field.js";
import { byId, make, setText, show } from "./dom.js";
import { Typed } from "./study-file.js";

const number = (text) => (Typed.is(text.trim()) ? new Typed(text.trim()) : text.trim());

/** A value of a list as it is typed: a number, true or false, or a word; text that reads like one of those in quotes. */
function scalar(text) {
  const quoted = /^(["'])(.*)\1$/.exec(text);
  if (quoted) return quoted[2];
  return text === "true" ? true : text === "false" ? false : number(text);
}

const listOf = (text) => text.split(",").map((item) => item.trim()).filter((item) => item !== "").map(scalar);
const spelled = (value) => (typeof value === "string" && (Typed.is(value) || value === "true" || value === "false" || /[,;"]/.test(value)) ? JSON.stringify(value) : String(value));
const listed = (list) => (Array.isArray(list) ? list.map(spelled).join(", ") : list === undefined || list === null ? "" : spelled(list));

/** A list with what no field can show stays as it is written. */
const described = (list) => (Array.isArray(list) && list.some((one) => one !== null && typeof one === "object") ? "as the file says" : listed(list));

/** Conditions as people type them: "optimizer = sgd, adam; layers = 3". */
function conditions(text) {
  const pairs = text.split(";").map((part) => part.split("=")).filter(([name]) => name.trim() !== "");
  return Object.fromEntries(pairs.map(([name, values = ""]) => {
    const list = listOf(values);
    return [name.trim(), list.length === 1 ? list[0] : list];
  }));
}

const conditioned = (when) => (when === null || typeof when !== "object" ? "" : Object.entries(when).map(([name, values]) => `${name} = ${listed(values)}`).join("; "));

/** Arguments as people type them: words with spaces between, or a list. */
function argv(text) {
  if (!text.trimStart().startsWith("[")) return text.trim() === "" ? [] : text.trim().split(/\s+/);
  try {
    return JSON.parse(text);
  } catch {
    return text; // the server says what is wrong with it
  }
}

const commanded = (list) => (!Array.isArray(list) ? String(list ?? "") : list.every((word) => /^[^\s[\]"']+$/.test(String(word))) ? list.join(" ") : JSON.stringify(list));

const choice = (usual, ...values) => [["", usual], ...values.map((value) => [value, value])];

/** Everything but objectives and parameters: the section of the page, the path in the file, and the field. */
const places = [
  ["run", ["name"], { label: "Name", hint: "Letters, digits and . _ -" }],
  ["run", ["description"], { label: "Description", kind: "lines" }],
  ["run", ["command"], { label: "Command", hint: "The program and its arguments. No shell reads it. Without one, your own process asks and tells.", placeholder: "python train.py", from: argv, to: commanded }],
  ["run", ["directory"], { label: "Directory", hint: "Where the command starts, on the worker", placeholder: "the worker's own" }],
  ["budget", ["budget", "policy"], { label: "What grows", kind: "choice", options: choice("by what is given", "multi", "epochs", "dataset", "seconds", "joules"), narrow: true }],
  ["budget", ["budget", "epochs", "min"], { label: "Epochs, at least", from: number, placeholder: "1", narrow: true, either: "epochs" }],
  ["budget", ["budget", "epochs", "max"], { label: "Epochs, at most", from: number, placeholder: "9", narrow: true, either: "epochs" }],
  ["budget", ["budget", "data_fraction", "min"], { label: "Data, at least", from: number, placeholder: "share", narrow: true, either: "data_fraction" }],
  ["budget", ["budget", "data_fraction", "max"], { label: "Data, at most", from: number, placeholder: "1", narrow: true, either: "data_fraction" }],
  ["budget", ["budget", "eta"], { label: "One in … goes up", from: number, placeholder: "3", narrow: true }],
  ["search", ["search", "method"], { label: "Method", kind: "choice", options: choice("bohb", "tpe", "cma-es", "gp", "random", "sobol", "grid"), narrow: true }],
  ["search", ["search", "promotion"], { label: "Promotion", kind: "choice", options: choice("asynchronous", "synchronous", "none"), narrow: true }],
  ["search", ["search", "early_stopping"], { label: "Early stopping", kind: "choice", options: choice("none", "median", "percentile", "halving"), narrow: true, rule: "rule" }],
  ["search", ["search", "seed"], { label: "Seed", from: number, placeholder: "drawn", narrow: true }],
  ["stop", ["stop", "trials"], { label: "Trials", from: number, narrow: true }],
  ["stop", ["stop", "seconds"], { label: "Seconds", from: number, placeholder: "no bound", narrow: true }],
  ["stop", ["stop", "training_seconds"], { label: "Training seconds", from: number, placeholder: "no bound", narrow: true }],
  ["stop", ["stop", "joules"], { label: "Joules", from: number, placeholder: "no bound", narrow: true }],
  ["stop", ["stop", "target_reached"], { label: "When the target is reached", kind: "flag" }],
  ["system", ["system"], { label: "System parameters", kind: "choice", options: choice("the default", "auto", "off"), hint: "Without it, the number of threads is tuned while trials train. off: nothing is.", whole: "as the file says" }],
  ["edge", ["inference", "devices"], { label: "Devices", hint: "Where the model will run, such as raspberry-pi-4, this-machine (tandem edge devices lists them)", from: (text) => listOf(text).map(String), to: described }],
  ["edge", ["inference", "objective"], { label: "Best in", kind: "choice", options: choice("latency", "throughput", "energy"), narrow: true, rule: "metric" }],
];

export class StudyForm {
  #fields = new Map(); // path as the server writes it -> field
  #shape = ""; // which objectives and parameters there are

  /** file() is the study file, changed() is called after each change of it. */
  constructor(file, changed) {
    this.file = file;
    this.changed = changed;
    this.fixed = places.map(([section, path, settings]) => this.#place(byId(`form-${section}`), path, settings));
    byId("add-objective").addEventListener("click", () => this.#addObjective());
    byId("add-parameter").addEventListener("click", () => this.#addParameter());
  }

  /** A field for a place in the file. */
  #place(box, path, settings) {
    const { from = (text) => text, to, rule, whole, either } = settings;
    const one = field({ ...settings, numeric: from === number, changed: (text) => this.#write(path, text, { from, rule, either }) });
    box.append(one.element);
    const key = joined(path);
    this.#fields.set(key, one);
    return { ...one, refresh: () => one.show(this.#read(path, { to, rule, whole, either })) };
  }

  #read(path, { to, rule, whole, either }) {
    const value = this.file().get(path);
    if (either) { // one number holds for every rung
      const both = this.file().get(path.slice(0, -1));
      if (both !== undefined && (both === null || typeof both !== "object")) return this.file().written(path.slice(0, -1));
    }
    if (rule && value !== null && typeof value === "object") return String(value[rule] ?? "");
    if (whole && value !== undefined && value !== null && typeof value === "object") return whole;
    if (typeof value === "boolean") return value;
    return to ? to(value) : value !== null && typeof value === "object" ? JSON.stringify(value) : this.file().written(path);
  }

  #write(path, text, { from, rule, either }) {
    const file = this.file();
    const present = file.get(path);
    if (either) {
      const above = path.slice(0, -1);
      const both = file.get(above);
      if (both !== undefined && both !== null && typeof both !== "object") file.set(above, { min: number(file.written(above)), max: number(file.written(above)) });
    }
    if (text === "" || text === false) file.remove(path);
    else if (rule && present !== null && typeof present === "object") file.set([...path, rule], text);
    else if (text !== "as the file says") file.set(path, typeof text === "string" ? from(text) : text);
    if (path[0] === "space" && path.at(-1) === "type") tidy(file, path.slice(0, -1), text);
    this.changed();
  }

  /** Shows what the file has. */
  refresh() {
    const shape = JSON.stringify([
      Array.isArray(this.file().get(["objective"])), Array.isArray(this.file().get(["space", "parameters"])),
      this.#objectives().map((one) => one.expression !== undefined), this.#parameters().map(([name, one]) => [name, ranged(one)]),
    ]);
    if (shape !== this.#shape) this.#build();
    this.#shape = shape;
    for (const one of [...this.fixed, ...this.listed]) one.refresh();
  }

  #objectives() {
    const value = this.file().get(["objective"]);
    const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
    return list.map((one) => (one !== null && typeof one === "object" ? one : {}));
  }

  #parameters() {
    const space = this.file().get(["space"]);
    if (space === null || typeof space !== "object" || Array.isArray(space) || Array.isArray(space.parameters)) return [];
    return Object.entries(space).map(([name, one]) => [name, one !== null && typeof one === "object" ? one : {}]);
  }

  /** Makes the fields of objectives and parameters anew; the focus stays where it was. */
  #build() {
    const focused = [...this.#fields].find(([, one]) => one.input === document.activeElement)?.[0];
    for (const key of [...this.#fields.keys()]) if (/^(objective|space)\b/.test(key)) this.#fields.delete(key);
    this.listed = [];
    byId("form-objectives").replaceChildren(...this.#objectives().map((one, index) => this.#objective(one, index)));
    byId("form-parameters").replaceChildren(...this.#parameters().map(([name, one]) => this.#parameter(name, one)));
    const long = Array.isArray(this.file().get(["space", "parameters"]));
    show(byId("space-note"), long);
    setText(byId("space-note"), long ? "The space is written as a list of parameters: change it in the file." : "");
    show(byId("add-parameter"), !long);
    show(byId("add-objective"), this.#objectives().length < 4);
    if (focused) this.#fields.get(focused)?.input.focus();
  }

  #objective(one, index) {
    const path = Array.isArray(this.file().get(["objective"])) ? ["objective", index] : ["objective"];
    const box = make("div", { class: "row", role: "group", "aria-label": `Objective ${index + 1}` });
    const place = (key, settings) => this.listed.push(this.#place(box, [...path, key], settings));
    if (one.expression !== undefined) {
      place("expression", { label: "Formula" });
      place("name", { label: "Name", narrow: true });
    } else place("metric", { label: "Metric", placeholder: "accuracy" });
    place("direction", { label: "Direction", kind: "choice", options: choice("choose", "maximize", "minimize"), narrow: true });
    place("target", { label: "Target", from: number, placeholder: "none", narrow: true });
    box.append(this.#removal(`Remove objective ${index + 1}`, () => {
      this.file().remove(path);
    }));
    return box;
  }

  #parameter(name, one) {
    const path = ["space", name];
    const box = make("div", { class: "row", role: "group", "aria-label": `Parameter ${name}` });
    const called = field({ label: "Name", changed: (text) => this.#rename(name, text.trim()) });
    called.show(name);
    box.append(called.element);
    this.#fields.set(joined(path), called);
    const place = (key, settings) => this.listed.push(this.#place(box, [...path, key], settings));
    place("type", { label: "Type", kind: "choice", options: choice(one.values ? "categorical" : "choose", "float", "int", "categorical", "ordinal"), narrow: true });
    if (ranged(one)) {
      place("low", { label: "Low", from: number, narrow: true });
      place("high", { label: "High", from: number, narrow: true });
      place("step", { label: "Step", from: number, placeholder: "none", narrow: true });
    } else place("values", { label: "Values", hint: "With commas between", from: listOf, to: listed });
    place("kind", { label: "Belongs to", kind: "choice", options: choice("training", "model", "system", "inference"), narrow: true });
    place("when", { label: "Only when", placeholder: "always", from: conditions, to: conditioned, hint: "Such as optimizer = sgd" });
    if (ranged(one)) place("log", { label: "Log scale", kind: "flag" });
    box.append(this.#removal(`Remove ${name}`, () => this.file().remove(path)));
    return box;
  }

  #removal(label, remove) {
    return make("button", { type: "button", class: "small remove", "aria-label": label, on: { click: () => {
      remove();
      this.changed();
    } } }, "Remove");
  }

  #rename(from, to) {
    const taken = this.#parameters().some(([name]) => name === to);
    const one = this.#fields.get(joined(["space", from]));
    one.fault(to === "" ? "A parameter needs a name" : taken && to !== from ? "There is a parameter of that name" : null);
    if (to === "" || taken) return;
    const { selectionStart: at } = one.input;
    this.file().rename(["space"], from, to);
    this.changed();
    const { input } = this.#fields.get(joined(["space", to]));
    input.focus();
    input.setSelectionRange(at, at);
  }

  #addObjective() {
    const present = this.file().get(["objective"]);
    const fresh = { metric: "", direction: "minimize" };
    if (present === undefined || present === null) this.file().set(["objective"], fresh);
    else if (Array.isArray(present)) this.file().set(["objective", present.length], fresh);
    else this.file().set(["objective"], [present, fresh]);
    this.changed();
    byId("form-objectives").lastElementChild.querySelector("input").focus();
  }

  #addParameter() {
    const taken = new Set(this.#parameters().map(([name]) => name));
    let count = taken.size + 1;
    while (taken.has(`parameter_${count}`)) count++;
    this.file().set(["space", `parameter_${count}`], { type: "float", low: 0, high: 1 });
    this.changed();
    const { input } = this.#fields.get(joined(["space", `parameter_${count}`]));
    input.focus();
    input.select();
  }

  /** Shows each fault at its field; returns those that have none in the form. */
  fault(faults) {
    const at = new Map();
    const elsewhere = [];
    for (const one of faults) {
      // What is missing in a section is told of the section: the first of its fields has it.
      const key = [...this.#fields.keys()].find((path) => path === one.path) ?? [...this.#fields.keys()].find((path) => within(path, one.path)) ?? [...this.#fields.keys()].find((path) => within(one.path, path));
      if (key === undefined) elsewhere.push(one);
      else at.set(key, [...(at.get(key) ?? []), one.text]);
    }
    for (const [path, one] of this.#fields) one.fault(at.get(path)?.join("; ") ?? null);
    return elsewhere;
  }
}

/** Whether the path leads to something in the section. */
const within = (path, section) => path.startsWith(section + ".") || path.startsWith(section + "[");

/** Takes out what a parameter of the type does not have. */
function tidy(file, path, type) {
  const foreign = type === "float" || type === "int" ? ["values"] : type === "" ? [] : ["low", "high", "log", "step"];
  for (const key of foreign) file.remove([...path, key]);
}

const ranged = (one) => one.type === "float" || one.type === "int" || (one.type === undefined && one.values === undefined);
