// What mattered: each parameter's part in the good trials, at one rung, and the
// path there from a usual trial to the best.
import { offerDownloads } from "./download.js";
import { byId, make, show, throttled } from "./dom.js";
import { budget } from "./format.js";
import { pathTable, waterfall } from "./waterfall.js";

/** Above this probability a share may as well come from chance. */
const doubtful = 0.05;

/** Draws the rung the reader chose, or the one with the most trials. */
export class Importance {
  #answer = null;
  #chosen = null;
  #shown = null; // the rung
  #asked = ""; // the rung and its trials, as the path shown was asked for
  #again = throttled(30000, () => this.#walk());

  /** fetchPath answers the path at a rung, as a promise. */
  constructor(study, fetchPath) {
    this.study = study;
    this.fetchPath = fetchPath;
    this.card = byId("importance");
    this.box = byId("importance-body");
    this.path = make("div", { class: "path", "aria-live": "off" });
    this.walked = null;
    offerDownloads(this.card, { of: study.name, name: "what-mattered", tables: [["Shares", () => this.#shares()], ["Path", () => pathTable(this.walked)]] });
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
    const other = this.#shown?.rung !== rung.rung;
    this.#shown = rung;
    if (other) {
      this.walked = null;
      this.path.replaceChildren();
      this.#walk();
    } else this.#again();
    this.box.replaceChildren(
      this.#rungs(rungs, rung),
      make("ul", { class: "shares" }, ...rung.parameters.map((one) => this.#bar(one))),
      make("p", { class: "chart-note", title: method }, `For being among the best ${rung.best} of the ${rung.trials} trials measured there. Pale: may be chance.`),
      this.path);
  }

  #shares() {
    const { rung, trials, parameters } = this.#shown;
    return { columns: ["parameter", "share", "chance", "rung", "trials"], rows: parameters.map(({ name, share, chance }) => [name, share, chance, rung, trials]) };
  }

  /** Asks for the path at the rung shown, unless that was asked for. */
  #walk() {
    const { rung, trials } = this.#shown;
    const wanted = `${rung}/${trials}`;
    if (wanted === this.#asked) return;
    this.#asked = wanted;
    this.fetchPath(rung).then(
      (answer) => {
        if (this.#asked !== wanted) return;
        this.walked = answer;
        this.path.replaceChildren(...waterfall(this.study, answer));
      },
      () => {
        if (this.#asked === wanted) this.#asked = ""; // the next event asks again
      });
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
