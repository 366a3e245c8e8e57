// Acting on several studies of the list: a box at each that the reader may change,
// and a bar with what can be done to those that are chosen.
import { change, identity, referenceOf, studyPath } from "./api.js";
import { confirm, nameList } from "./confirm.js";
import { byId, make, setText, show } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";
import { count, sentence } from "./format.js";

const counted = (studies) => (studies.length === 1 ? "1 study" : `${count(studies.length)} studies`);
const post = (action) => (study) => change("POST", studyPath(study.id, "/" + action));

/** What each button does to a study, and to which. */
const actions = {
  pause: { verb: "Pause", doing: "Pausing", done: "Paused", fits: ({ status }) => status === "running", send: post("pause"),
    text: "Trials being trained take a checkpoint after the present epoch and stop. Resume goes on from there." },
  resume: { verb: "Resume", doing: "Resuming", done: "Resumed", fits: ({ status }) => status === "paused", send: post("resume"),
    text: "Trials go on from their last checkpoints as workers become free." },
  stop: { verb: "Stop", doing: "Stopping", done: "Stopped", dangerous: true, fits: ({ status }) => status === "running" || status === "paused", send: post("stop"),
    text: "Running trials are cancelled. Everything measured so far is kept." },
  delete: { verb: "Delete", doing: "Deleting", done: "Deleted", dangerous: true, fits: () => true, send: (study) => change("DELETE", studyPath(study.id)),
    text: "Their trials, reports, logs, events and checkpoints are removed. This cannot be undone. Export first what you want to keep." },
  tag: { verb: "Tag", doing: "Tagging", done: "Tagged", fits: () => true },
};
const mostCompared = 8;

export class Bulk {
  #chosen = new Set(); // ids
  #shown = []; // the studies of the list
  #who = {};
  #busy = false;
  #last = null; // the box that was chosen last

  /** refresh() asks for the list again. */
  constructor(table, refresh) {
    this.table = table;
    this.refresh = refresh;
    table.addEventListener("click", (event) => event.target.matches(".pick") && this.#pick(event.target, event.shiftKey));
    for (const button of byId("acts").querySelectorAll("[data-act]")) button.addEventListener("click", () => this.#act(button.dataset.act));
    byId("clear").addEventListener("click", () => this.#clear());
    this.#clear();
  }

  /** Learns whose session it is: before that, and without the right to change anything, there are no boxes. */
  async start() {
    this.#who = await identity();
    const all = this.box("Choose all studies");
    if (this.#who.owner !== undefined) this.table.tHead.rows[0].cells[0].prepend(all);
  }

  #may(study) {
    return this.#who.owner === "admin" || this.#who.owner === study.owner;
  }

  /** A box that chooses studies, where the reader may change some; null otherwise. */
  box(label, studies = null) {
    const ids = (studies ?? []).filter((study) => this.#may(study)).map(({ id }) => id);
    if (studies !== null && ids.length === 0) return null;
    return make("label", { class: "pick-place" }, make("input", { type: "checkbox", class: "pick", "aria-label": label, data: studies === null ? { all: "" } : { ids: ids.join(" ") } }));
  }

  /** Shows which of the list's studies are chosen: only those that the reader sees can be. */
  draw(studies) {
    this.#shown = studies.filter((study) => this.#may(study));
    const there = this.#shown.map(({ id }) => id);
    this.#chosen = new Set(there.filter((id) => this.#chosen.has(id)));
    for (const box of this.table.querySelectorAll(".pick")) {
      const ids = "all" in box.dataset ? there : box.dataset.ids.split(" ");
      const chosen = ids.filter((id) => this.#chosen.has(id)).length;
      box.checked = chosen > 0 && chosen === ids.length;
      box.indeterminate = chosen > 0 && chosen < ids.length;
      box.closest("tr").classList.toggle("chosen", box.checked && box.closest("[scope=row]") !== null);
    }
    this.#drawBar();
  }

  #drawBar() {
    const chosen = this.#studies();
    show(byId("bulk"), this.#busy || chosen.length > 0 || byId("outcome").textContent !== "");
    show(byId("acts"), !this.#busy && chosen.length > 0);
    show(byId("clear"), !this.#busy);
    setText(byId("clear"), chosen.length > 0 ? "Clear" : "Close");
    setText(byId("chosen"), this.#busy || chosen.length === 0 ? "" : `${counted(chosen)} chosen`);
    for (const button of byId("acts").querySelectorAll("[data-act]")) button.disabled = !chosen.some(actions[button.dataset.act].fits);
    show(byId("compare-chosen"), chosen.length > 1 && chosen.length <= mostCompared);
    byId("compare-chosen").href = `/compare?${new URLSearchParams(chosen.map((study) => ["study", referenceOf(study)]))}`;
  }

  #studies() {
    return this.#shown.filter(({ id }) => this.#chosen.has(id));
  }

  /** Chooses by a box; with the shift key also what lies between it and the one before. */
  #pick(box, range) {
    const boxes = [...this.table.querySelectorAll("tbody th[scope=row] .pick")];
    const [from, to] = [boxes.indexOf(this.#last), boxes.indexOf(box)].sort((a, b) => a - b);
    const ids = "all" in box.dataset ? this.#shown.map(({ id }) => id) : (range && from >= 0 ? boxes.slice(from, to + 1) : [box]).flatMap((one) => one.dataset.ids.split(" "));
    for (const id of ids) {
      if (box.checked) this.#chosen.add(id);
      else this.#chosen.delete(id);
    }
    this.#last = box;
    this.#told("");
    this.draw(this.#shown);
  }

  #clear() {
    this.#chosen.clear();
    this.#told("");
    this.draw(this.#shown);
  }

  #told(text, failures = new Map()) {
    setText(byId("outcome"), text);
    show(byId("failures"), failures.size > 0);
    byId("failures").replaceChildren(...[...failures].map(([reason, names]) => make("li", {}, make("strong", {}, names.join(", ")), `: ${reason}`)));
  }

  async #act(name) {
    const action = actions[name];
    const studies = this.#studies().filter(action.fits);
    const others = this.#studies().length - studies.length;
    const send = name === "tag" ? await askForTags(studies) : action.send;
    if (!send) return;
    const text = others > 0 ? `${action.text} The other ${others} chosen ${others === 1 ? "stays" : "stay"} as before.` : action.text;
    if (name === "tag" || await confirm({ title: `${action.verb} ${counted(studies)}?`, text, list: studies.map(referenceOf), action: `${action.verb} ${counted(studies)}`, dangerous: action.dangerous })) await this.#each(action, studies, send);
  }

  /** Sends one study after the other; those that fail stay chosen. */
  async #each({ doing, done }, studies, send) {
    const failures = new Map(); // reason -> names
    const bar = byId("acting");
    this.#busy = true;
    show(bar, true);
    bar.max = studies.length;
    for (const [at, study] of studies.entries()) {
      bar.value = at;
      this.#told(`${doing} ${at + 1} of ${studies.length}: ${study.name}`, failures);
      this.#drawBar();
      try {
        await send(study);
        this.#chosen.delete(study.id);
      } catch (error) {
        const reason = sentence(error.message);
        failures.set(reason, [...(failures.get(reason) ?? []), referenceOf(study)]);
      }
    }
    this.#busy = false;
    show(bar, false);
    const failed = [...failures.values()].flat().length;
    this.#told(`${done} ${failed === 0 ? counted(studies) : `${studies.length - failed} of ${counted(studies)}; ${failed} failed:`}`, failures);
    await this.refresh().catch(() => {}); // the regular one reports errors
    this.#drawBar();
    byId("clear").focus();
  }
}

/** Asks which tags to add and to remove; resolves to what sends that for a study, or to null. */
function askForTags(studies) {
  const add = field({ label: "Add tags", hint: "Words with spaces between: letters, digits and . _ - + /" });
  const present = [...new Set(studies.flatMap(({ tags }) => tags ?? []))].sort();
  const remove = field({ label: "Remove tags", hint: present.length > 0 ? `Some have: ${present.join(" ")}` : "None of them has a tag." });
  const words = ({ input }) => input.value.split(/\s+/).filter(Boolean);
  return ask({
    title: `Tags of ${counted(studies)}`, action: `Tag ${counted(studies)}`, fields: [add, remove],
    content: [nameList(studies.map(referenceOf)), make("div", { class: "fields" }, add.element, remove.element)],
    run: () => {
      const body = { add_tags: words(add), remove_tags: words(remove) };
      if (body.add_tags.length + body.remove_tags.length === 0) throw new Error("Write at least one tag.");
      return (study) => change("POST", studyPath(study.id, "/annotate"), body);
    },
  });
}
