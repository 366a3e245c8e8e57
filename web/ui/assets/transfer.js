// Giving a study to another user.
import { change, leaving } from "./api.js";
import { make } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";

/** Asks who gets the study and under which name, and gives it; resolves to the study as it is then, or null. */
export function transfer(path, study) {
  const owner = field({ label: "User who gets it", hint: "admin: the administrators" });
  const name = field({ label: "Its name from then on" });
  name.show(study.name);
  const fields = { owner, name };
  const sent = () => ({ owner: owner.input.value.trim(), name: name.input.value.trim() });
  return ask({
    title: `Give ${study.name} to another user`, action: "Give it away", fields: Object.values(fields),
    content: [make("p", {}, "What its trials use from then on counts for that user. Links and groups stay. Only that user or an administrator can give it back."), make("div", { class: "fields" }, owner.element, name.element)],
    place: (fault) => fields[fault],
    run: () => leaving(() => change("PUT", path + "/owner", sent())),
  });
}
