// What the results tell of the space, each finding with what to do about it.
import { byId, make, show } from "./dom.js";

/** Draws the findings, and hides their card where there are none. toDo(piece) is where what
 *  a piece says can be done, { href, text }, or null. */
export function drawAdvice({ pieces }, toDo) {
  show(byId("advice"), pieces.length > 0);
  byId("advice-body").replaceChildren(...pieces.map((piece) => make("section", { class: "piece" },
    make("h3", {}, piece.found), make("p", {}, piece.do), make("p", { class: "chart-note" }, piece.evidence), ...doing(piece, toDo))));
}

function doing(piece, toDo) {
  if (piece.kind === "more") {
    if (byId("extend").hidden) return [];
    const button = make("button", { type: "button" }, "Run more trials");
    button.addEventListener("click", () => byId("extend").click());
    return [button];
  }
  const found = toDo(piece);
  return found ? [make("a", { class: "button", href: found.href }, found.text)] : [];
}
