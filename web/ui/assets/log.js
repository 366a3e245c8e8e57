// The tail of a trial's log, as plain text.
import { address, getText } from "./api.js";
import { byId, setText, show } from "./dom.js";
import { bytes } from "./format.js";

const most = 200000; // characters on the page

export class Log {
  #text = null;

  /** none says why there may be no line. */
  constructor(path, none) {
    this.path = path;
    this.none = none;
    this.box = byId("log");
    this.follow = byId("follow");
    byId("log-link").href = address(path);
    // Scrolling up stops the following, scrolling to the end starts it again.
    this.box.addEventListener("scroll", () => (this.follow.checked = this.#atEnd()));
    this.follow.addEventListener("change", () => this.#toEnd());
  }

  #atEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 8;
  }

  #toEnd() {
    if (this.follow.checked) this.box.scrollTop = this.box.scrollHeight;
  }

  /** Fetches the log and shows its end. */
  async refresh() {
    const text = await getText(this.path);
    if (text === this.#text) return;
    this.#text = text;
    show(this.box, text !== "");
    const cut = text.length > most;
    show(byId("log-note"), text === "" || cut);
    setText(byId("log-note"), text === "" ? this.none : `The last ${bytes(most)} of ${bytes(text.length)}.`);
    setText(this.box, cut ? text.slice(text.indexOf("\n", text.length - most) + 1) : text);
    this.#toEnd();
  }
}
