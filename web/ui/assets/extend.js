// Giving a study that is over more to do.
import { change } from "./api.js";
import { make } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";
import { count } from "./format.js";

/** Asks how much more, and extends the study; resolves to what the server answered, or null. */
export function extend(path, study) {
  const trials = field({ label: "More trials", numeric: true, hint: `${count(study.progress.created)} were created` });
  const seconds = field({ label: "More seconds", numeric: true, placeholder: "none", hint: "Needed where its time is used up" });
  trials.show("20");
  const failed = study.progress.trials.failed + study.progress.trials.lost - (study.progress.retried ?? 0);
  const again = field({ label: `Try the ${count(failed)} failed again, besides`, kind: "flag" });
  const fields = { trials, seconds, retry_failed: again };
  const numeric = (text) => (Number.isNaN(Number(text)) ? text : Number(text));
  return ask({
    title: `Run more trials of ${study.name}`, action: "Go on", fields: Object.values(fields),
    content: [make("p", {}, "Its search goes on with what it has learned. Trials that the end cut off wait for a promotion or a worker again."), make("div", { class: "fields" }, trials.element, seconds.element, failed > 0 ? again.element : null)],
    place: (fault) => fields[fault],
    run: () => change("POST", path + "/extend", { trials: numeric(trials.input.value.trim()), seconds: numeric(seconds.input.value.trim()), retry_failed: again.input.checked }),
  });
}
