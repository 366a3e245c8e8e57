// Giving a study more: trials where it is over, and its place among others.
import { change } from "./api.js";
import { make } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";
import { count } from "./format.js";

const numeric = (text) => (Number.isNaN(Number(text)) ? text : Number(text));

/** Asks for its priority and how many trials run at once, and sets them; resolves to what the server answered, or null. */
export function adjust(path, { name, definition }) {
  const priority = field({ label: "Priority", numeric: true, hint: "A higher one is served first" });
  const parallel = field({ label: "Trials at once", numeric: true, placeholder: "as many as there is room for" });
  priority.show(String(definition.priority));
  parallel.show(definition.parallel ? String(definition.parallel) : "");
  const fields = { priority, parallel };
  return ask({
    title: `Change the priority of ${name}`, action: "Change", fields: Object.values(fields),
    content: [make("p", {}, "It holds for the next trial. Those that run go on."), make("div", { class: "fields" }, priority.element, parallel.element)],
    place: (fault) => fields[fault],
    run: () => change("POST", path + "/set", { priority: numeric(priority.input.value.trim()), parallel: numeric(parallel.input.value.trim()) }),
  });
}

/** Asks how much more, and extends the study; resolves to what the server answered, or null. */
export function extend(path, study) {
  const trials = field({ label: "More trials", numeric: true, hint: `${count(study.progress.created)} were created` });
  const seconds = field({ label: "More seconds", numeric: true, placeholder: "none", hint: "Needed where its time is used up" });
  trials.show("20");
  const failed = study.progress.trials.failed + study.progress.trials.lost - (study.progress.retried ?? 0);
  const again = field({ label: `Try the ${count(failed)} failed again, besides`, kind: "flag" });
  const fields = { trials, seconds, retry_failed: again };
  return ask({
    title: `Run more trials of ${study.name}`, action: "Go on", fields: Object.values(fields),
    content: [make("p", {}, "Its search goes on with what it has learned. Trials that the end cut off wait for a promotion or a worker again."), make("div", { class: "fields" }, trials.element, seconds.element, failed > 0 ? again.element : null)],
    place: (fault) => fields[fault],
    run: () => change("POST", path + "/extend", { trials: numeric(trials.input.value.trim()), seconds: numeric(seconds.input.value.trim()), retry_failed: again.input.checked }),
  });
}
