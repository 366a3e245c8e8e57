// What mattered: each parameter's part in the good trials, at one rung.
import { offerDownloads } from "./download.js";
import { byId, make, show } from "./dom.js";
import { budget } from "./format.js";

/** Above this probability a share may as well come from chance. */
const doubtful = 0.05;

/** Draws the rung the reader chose, or the one with the most trials. */
export class Importance {
  #answer = null;
  #chosen = null;
  #shown = null; // the rung

  constructor(study) {
    this.card = byId("importance");
    this.box = byId("importance-body");
    offerDownloads(this.card, { of: study.name, name: "what-mattered", tables: [["Shares", () => this.#shares()]] });
  }

  draw(answer) {
    this.#answer = answer;
    show(this.card, answer.rungs.length > 0);
    if (answer.rungs.length > 0) this.#redraw();
  }

  #redraw() {
    const { rungs, method } = this.#answer;
    const most = rungs.reduce((a, b) => (b.trials > a.trials ? b : a));
    const rung = rungs.find((one) => one.rung === this.#chosen) ?? most;
    this.#shown = rung;
    this.box.replaceChildren(
      this.#rungs(rungs, rung),
      make("ul", { class: "shares" }, ...rung.parameters.map((one) => this.#bar(one))),
      make("p", { class: "chart-note", title: method }, `For being among the best ${rung.best} of the ${rung.trials} trials measured there. Pale: may be chance.`));
  }

  #shares() {
    const { rung, trials, parameters } = this.#shown;
    return { columns: ["parameter", "share", "chance", "rung", "trials"], rows: parameters.map(({ name, share, chance }) => [name, share, chance, rung, trials]) };
  }

  #rungs(rungs, shown) {
    return make("div", { class: "choice", role: "group", "aria-label": "Rung" }, ...rungs.toReversed().map((rung) => make("button", {
      type: "button",
      class: "small",
      "aria-pressed": String(rung.rung === shown.rung),
      title: budget(rung.budget, true),
      on: { click: () => { this.#chosen = rung.rung; this.#redraw(); } },
    }, `rung ${rung.rung}`)));
  }

  #bar({ name, share, chance }) {
    const percent = Math.round(100 * share);
    const bar = make("progress", { max: "100", value: String(percent), "aria-label": `share of ${name}` });
    return make("li", { class: chance > doubtful ? "doubtful" : "", title: `${percent} %; by chance alone with probability ${chance.toFixed(3)}` },
      make("span", { class: "share-name" }, name), bar, make("span", { class: "number" }, `${percent}\u00a0%`));
  }
}
