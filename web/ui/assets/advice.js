// What the results tell of the space, each finding with what to do about it.
import { byId, make, show } from "./dom.js";

/** Draws the findings, and hides their card where there are none. remedy(piece) is where what
 *  a piece says can be done, { href, text }, or null. */
export function drawAdvice({ pieces }, remedy) {
  show(byId("advice"), pieces.length > 0);
  byId("advice-body").replaceChildren(...pieces.map((piece) => make("section", { class: "piece" },
    make("h3", {}, piece.found), make("p", {}, piece.do), make("p", { class: "chart-note" }, piece.evidence), ...doing(piece, remedy))));
}

function doing(piece, remedy) {
  if (piece.kind === "more") {
    if (byId("extend").hidden) return [];
    const button = make("button", { type: "button" }, "Run more trials");
    button.addEventListener("click", () => byId("extend").click());
    return [button];
  }
  const found = remedy(piece);
  return found ? [make("a", { class: "button", href: found.href }, found.text)] : [];
}
