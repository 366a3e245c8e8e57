// What the results tell of the space, each finding with what to do about it.
import { byId, make, show } from "./dom.js";

/** Draws the findings, and hides their card where there are none. */
export function drawAdvice({ pieces }) {
  show(byId("advice"), pieces.length > 0);
  byId("advice-body").replaceChildren(...pieces.map((piece) => make("section", { class: "piece" },
    make("h3", {}, piece.found), make("p", {}, piece.do), make("p", { class: "chart-note" }, piece.evidence))));
}
