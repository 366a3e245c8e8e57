// What people wrote about a study or a trial: its tags, and a note in plain text.
import { change } from "./api.js";
import { byId, make, tagWords } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";

export class Annotation {
  #shown = null;

  /** path is the resource's below the API's root; of what, such as "study small". */
  constructor(path, what, changeable) {
    this.path = path;
    this.what = what;
    this.changeable = changeable;
    this.box = byId("annotation");
  }

  draw({ tags = [], note = "" }) {
    const key = JSON.stringify([tags, note]);
    if (key === this.#shown) return;
    this.#shown = key;
    const edit = make("button", { type: "button", class: "small", id: "annotate", on: { click: () => this.#edit(tags, note) } }, tags.length > 0 || note ? "Edit tags and note" : "Add tags or a note");
    this.box.replaceChildren(...tagWords(tags), ...(this.changeable ? [edit] : []), ...(note ? [make("p", { class: "note" }, note)] : []));
  }

  async #edit(tags, note) {
    const words = field({ label: "Tags", hint: "Words with spaces between: letters, digits and . _ - + /" });
    const prose = field({ label: "Note", kind: "lines", hint: "Plain text" });
    words.show(tags.join(" "));
    prose.show(note);
    prose.input.rows = 5;
    const answer = await ask({
      title: `Tags and note of ${this.what}`, action: "Save", fields: [words, prose], content: [make("div", { class: "fields" }, words.element, prose.element)],
      place: (path) => (path.startsWith("note") ? prose : /^(add|remove)_tags/.test(path) ? words : undefined),
      run: () => {
        const wanted = words.input.value.split(/\s+/).filter(Boolean);
        const added = wanted.filter((tag) => !tags.includes(tag));
        const removed = tags.filter((tag) => !wanted.includes(tag));
        const text = prose.input.value;
        if (added.length + removed.length === 0 && text.trim() === note) return { tags, note };
        return change("POST", this.path + "/annotate", { add_tags: added, remove_tags: removed, ...(text.trim() === note ? {} : { note: text }) });
      },
    });
    if (answer) this.draw(answer);
    byId("annotate").focus();
  }
}
