// A study in numbers: figures, ladder and set-up of the study's page.
import { kept, referenceOf, studyPath } from "./api.js";
import { drawConfidential } from "./confidential.js";
import { badge, byId, fillFacts, make, setText, show, stackedBar } from "./dom.js";
import { Figures } from "./figures.js";
import { budget, cost, count, duration, energy, joules, measured, moment, nothing, parameter, roughly, sentence, several } from "./format.js";
import { drawStudySystem, knobs, savedFigure } from "./system.js";
import { label, states } from "./trials.js";

const over = (study) => ["completed", "stopped", "failed"].includes(study.status);

export class Summary {
  #figures = new Figures(byId("figures"));

  /** Shows a study's view and the server's workers; at is when they were fetched. */
  draw(study, workers, at) {
    this.study = study;
    this.workers = workers;
    this.at = at;
    setText(byId("name"), study.name);
    document.title = `${study.name} · Tandem`;
    byId("status").replaceChildren(badge(study.status));
    byId("status").title = study.reason ?? "";
    const lead = [study.definition.description, study.definition.stop.regret && "stop.regret ends no study any more", (over(study) || study.status === "paused") && sentence(study.reason)].filter(Boolean).join(" · ");
    setText(byId("description"), lead);
    show(byId("description"), lead !== "");
    drawConfidential(study);
    this.#best();
    this.#trials();
    this.#spent();
    this.#system();
    this.#workers();
    this.tick();
  }

  /** Seconds since the study was created. */
  age() {
    const end = this.study.finished ? Date.parse(this.study.finished) : kept ? Date.parse(kept.written) : Date.now();
    return Math.max(0, (end - Date.parse(this.study.created)) / 1000);
  }

  #best() {
    const { best } = this.study.progress;
    const [objective, ...further] = this.study.definition.objective;
    const aim = objective.direction === "maximize" ? "Best (highest)" : "Best (lowest)";
    // With several objectives another trial may well be better in each of them.
    const term = further.length > 0 ? `Best compromise: ${label(objective)}` : `${aim} ${label(objective)}`;
    if (!best) {
      this.#figures.set("best", { term, value: nothing, detail: "nothing measured yet" });
      return;
    }
    const others = further.map((one, index) => `${label(one)} ${measured(best.values?.[index + 1])}, `).join("");
    const link = make("a", { href: studyPath(referenceOf(this.study), `/trials/${best.number}`) }, `trial ${best.number}`);
    this.#figures.set("best", {
      term, value: measured(best.value), title: String(best.value),
      detail: make("span", {}, others, link, `, ${budget(best.budget, true)} data${best.repeated?.results > 1 ? `, mean of ${best.repeated.results}` : ""}`), key: `${best.number} ${best.rung} ${best.repeated?.results ?? 1}`,
    });
  }

  #trials() {
    const { trials, created, max_trials: most, repeats } = this.study.progress;
    const present = states.filter((state) => trials[state] > 0);
    const words = present.map((state) => `${trials[state]} ${state}`).join(", ");
    const legend = make("span", { class: "states" }, ...present.map((state) => make("span", { data: { state } }, `${trials[state]} ${state}`)));
    const bar = stackedBar(present.map((state) => ({ state, weight: trials[state] })));
    this.#figures.set("trials", {
      term: "Trials", value: (most > 0 ? `${count(created)} of ${count(most)}` : count(created)) + (repeats > 0 ? `, ${count(repeats)} ${repeats === 1 ? "repeat" : "repeats"}` : ""),
      detail: present.length === 0 ? "none started yet" : make("span", {}, bar, legend), key: words,
    });
  }

  #spent() {
    const { epochs, data_passes: passes, energy: spent, promotions, resumes } = this.study.progress;
    this.#figures.set("epochs", { term: "Budget spent", value: `${count(epochs)} ${epochs === 1 ? "epoch" : "epochs"}`, detail: `${passes < 1000 ? Number(passes.toPrecision(4)) : count(passes)} ${passes === 1 ? "pass" : "passes"} over the data · ${count(promotions)} promoted, ${count(resumes)} resumed` });
    const used = energy(spent);
    this.#figures.set("energy", used
      ? { term: "Energy", value: used.text, estimate: used.estimate, detail: used.method.replace(/^estimate: /, ""), title: used.method }
      : { term: "Energy", value: nothing, detail: epochs > 0 ? "no worker meters it" : "nothing trained yet" });
    const paid = cost(this.study.progress.cost);
    if (paid) this.#figures.set("cost", paid);
  }

  /** What tuning the system has saved, for a study that tunes it. */
  #system() {
    const saved = savedFigure(this.study.progress.saved, this.study.progress.energy, this.study.progress.epochs_by_phase);
    if (saved) this.#figures.set("saved", saved);
    drawStudySystem(this.study.progress);
  }

  /** Who trains this study, and whether anybody could. */
  #workers() {
    if (this.workers === null) { // who has a link to the study is not told of machines
      show(byId("no-worker"), false);
      const { leased, running } = this.study.progress.trials;
      this.#figures.set("workers", { term: "In training", value: count(leased + running), detail: "trials that a worker has" });
      return;
    }
    const alive = this.workers.filter((worker) => worker.alive);
    const mine = (worker) => (worker.trials ?? []).filter((id) => id.startsWith(this.study.id + "-")).length;
    const busy = this.workers.filter((worker) => mine(worker) > 0);
    const trials = busy.reduce((sum, worker) => sum + mine(worker), 0);
    const free = alive.reduce((sum, worker) => sum + Math.max(0, worker.slots - (worker.trials?.length ?? 0)), 0);
    const { status, definition } = this.study;
    show(byId("no-worker"), status === "running" && alive.length === 0 && definition.command?.length > 0 && !definition.encryption && !(this.study.waits ?? []).some((wait) => wait.launcher)); // of which its reason says more
    if (over(this.study)) {
      this.#figures.set("workers", { term: "Trained for", value: duration(this.study.progress.trial_seconds), detail: "summed over the trials" });
      return;
    }
    this.#figures.set("workers", {
      term: "Workers on it", value: count(busy.length),
      detail: `${count(trials)} ${trials === 1 ? "trial" : "trials"} in training` +
        (alive.some((worker) => worker.elastic) ? "" : ` · ${count(free)} ${free === 1 ? "slot" : "slots"} free`), // how many fit depends on what they are
    });
  }

  /** Moves what depends on the time. */
  tick() {
    const { status, progress, finished } = this.study;
    const since = status === "running" ? (performance.now() - this.at) / 1000 : 0;
    const elapsed = duration(Math.round(progress.elapsed_seconds + since)).replace(/\.00? s$/, " s");
    if (over(this.study)) {
      this.#figures.set("time", { term: "Ran for", value: elapsed, detail: `until ${moment(finished)}` });
      return;
    }
    const left = progress.remaining_seconds;
    const detail = `running for ${elapsed}`;
    if (status === "paused") this.#figures.set("time", { term: "Time left", value: nothing, detail: `paused after ${elapsed}` });
    else if (left === undefined || left === null) this.#figures.set("time", { term: "Time left", value: nothing, detail: `${detail}; not known yet` });
    else this.#figures.set("time", { term: "Time left", value: roughly(Math.max(0, left - since)), estimate: true, detail });
  }
}

/** Fills the table of rungs; tallies say what is on each. */
export function drawLadder(study, tallies) {
  const cell = (value, name = "") => make("td", { class: `number ${value > 0 ? name : "muted"}` }, value === null ? nothing : count(value));
  const rows = study.rungs.map((rung, index) => {
    const { active, paused, measured: done, promoted, best } = tallies[index];
    const top = index === study.rungs.length - 1;
    return make("tr", { title: best === undefined ? null : `best value on this rung: ${measured(best)}` },
      make("th", { scope: "row" }, String(rung.index)),
      make("td", {}, budget(rung.budget, true), rung.from_scratch ? make("span", { class: "tag", title: "a trial that comes up to this rung starts again at epoch 1" }, "afresh") : null),
      cell(active, "now"), cell(paused), cell(done), cell(top ? null : promoted));
  });
  byId("ladder").tBodies[0].replaceChildren(...rows);
}

/** Says below the ladder how far each rung's ranking holds at the next one. */
export function drawAgreement(answer) {
  const next = answer.rungs.filter(({ from, to }) => to === from + 1);
  const box = byId("ladder-agreement");
  show(box, next.length > 0);
  const words = next.map(({ from, to, corrected, corrected_low: low, corrected_high: high, trials, spearman }) => make("span", {
    title: `${trials} trials were measured at both rungs and correlate by ${spearman.toFixed(2)}; among all trials of rung ${from}, of which mostly the best went up, an estimated ${low.toFixed(2)} to ${high.toFixed(2)}`,
  }, ` ${from}\u2192${to}: ${corrected.toFixed(2)}`, make("span", { class: "muted" }, ` (${low.toFixed(2)} to ${high.toFixed(2)})`)));
  box.replaceChildren("Rank correlation with the next rung, an estimate:", ...words);
}

/** Fills the facts about how the study was set up. */
export function drawSetup(study) {
  const { definition: set } = study;
  const aims = set.objective.map((one) => `${one.direction} ${described(one)}${one.target === undefined || one.target === null ? "" : `, target ${measured(one.target)}`}`);
  const ends = [set.stop.trials > 0 && several(set.stop.trials, "trial"), set.stop.seconds > 0 && duration(set.stop.seconds), set.stop.data_passes > 0 && `${count(set.stop.data_passes)} data passes`, set.stop.training_seconds > 0 && `${duration(set.stop.training_seconds)} of training`, set.stop.joules > 0 && joules(set.stop.joules), set.stop.cost > 0 && `a cost of ${measured(set.stop.cost)}`, set.stop.co2_g > 0 && `${measured(set.stop.co2_g)} g of CO₂`, set.stop.target_reached && "the target is reached", set.stop.failures_in_a_row > 0 && `${several(set.stop.failures_in_a_row, "failure")} in a row`].filter(Boolean);
  fillFacts(byId("setup"), [
    ["Objective", aims.join("; ")],
    ...((set.constraints ?? []).length > 0 ? [["Constraints", set.constraints.map(bounded).join("; ")]] : []),
    ...(set.inference ? [["Inference", inferenceOf(set.inference)]] : []),
    ["Search", `${set.search.method}, promotion: ${set.search.promotion || "asynchronous"}, seed ${set.search.seed ?? nothing}${set.search.repeats ? `; the best ${count(set.search.repeats.trials)} are trained ${count(set.search.repeats.times)} times` : ""}`],
    ...(study.sources ?? []).map(({ source, verdict, agreement, outcomes }) => ["Known before", `${source}, ${verdict}${outcomes > 0 ? ` (rank correlation ${agreement.toFixed(2)} with ${count(outcomes)} own results)` : ""}`]),
    ["Budget", `${set.budget.policy}, ${set.budget.growth}, eta ${set.budget.eta}`],
    ["Ends after", ends.length > 0 ? ends.join(" or ") : nothing],
    ["Pool", `priority ${set.priority}, ${set.parallel ? `at most ${several(set.parallel, "trial")}` : "any number of trials"} at once`],
    ...(set.system === undefined ? [] : [["System", systemOf(set.system)]]),
    ...(set.resources ? [["Resources", Object.entries(set.resources).map(([name, value]) => `${name} ${resource(value)}`).join(", ")]] : []),
    ["Command", set.command?.length ? make("code", {}, (set.service?.start ?? set.command).join(" ")) : "none: driven by ask and tell"],
    ["Owner", study.owner],
    ["Created", moment(study.created)],
    ["Id", make("code", {}, study.id)],
    [`Space`, make("ul", { class: "space" }, ...set.space.parameters.map((one) => make("li", {}, make("code", {}, one.name), ` ${domain(one)}`)))],
  ]);
}

// Where models will run, under which load, in which precisions, with which providers, and what is best there.
function inferenceOf({ devices, scenario, precision, providers, objective }) {
  const { server, "multi-stream": requests } = scenario ?? {};
  const load = server ? `${measured(server.rate)} requests/s with a p99 of at most ${measured(server.p99_ms)} ms` : requests && `requests of ${count(requests.streams)} samples`;
  return [devices.map((one) => one.name ?? one).join(", "), load, precision?.join(", "), providers?.join(", "), [objective.metric, ...(objective.constraints ?? [])].join(", ")].filter(Boolean).join("; ");
}

function resource(value) {
  if (Array.isArray(value)) return value.join("/");
  return typeof value === "object" ? Object.entries(value).map(([label, text]) => `${label}=${text}`).join(" ") : String(value);
}

// The constants of the system, and what is tuned while trials train.
function systemOf(section) {
  if (typeof section === "string") return { auto: "tuned while trials train", off: "not tuned" }[section] ?? section;
  const all = knobs(section);
  const tuned = all.filter((one) => one.tuned).map(({ name, text }) => `${name} ${text}`);
  const constants = all.filter((one) => !one.tuned).map(({ name, text }) => `${name} ${text}`);
  return [...constants, ...(tuned.length > 0 ? [`tuned for least ${section.objective ?? "seconds"}: ${tuned.join("; ")}`] : [])].join("; ");
}

const described = (one) => (one.expression ? `${label(one)} = ${one.expression}` : label(one));

// A constraint's bounds, such as "latency_ms at most 20".
function bounded(one) {
  const what = one.metric ?? (one.name ? `${one.name} = ${one.expression}` : one.expression);
  const bounds = [one.min !== undefined && `at least ${measured(one.min)}`, one.max !== undefined && `at most ${measured(one.max)}`].filter(Boolean);
  return `${what} ${bounds.join(" and ")}`;
}

function domain(one) {
  const when = (one.when ?? []).map(({ parameter: other, in: values }) => `${other} is ${values.map((value) => parameter(value)).join(" or ")}`);
  const expected = one.expect ? `, expected at ${parameter(one.expect.value)} (${one.expect.sure})` : "";
  return `${range(one)}${when.length > 0 ? `, only when ${when.join(" and ")}` : ""}${expected}`;
}

function range(one) {
  if (one.values) {
    const shown = one.values.length > 14 ? one.values.slice(0, 12) : one.values; // hundreds would be the whole page
    return `${one.type} ${shown.map((value) => parameter(value)).join(", ")}${shown.length < one.values.length ? ` and ${count(one.values.length - shown.length)} more` : ""}`;
  }
  const extras = [one.log && "log", one.step > 0 && `step ${parameter(one.step)}`].filter(Boolean).map((extra) => `, ${extra}`).join("");
  return `${one.type} ${parameter(one.low)} to ${parameter(one.high)}${extras}`;
}
