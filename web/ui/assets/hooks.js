// Who is told what happens in a study, and what became of it.
import { byId, fillFacts, show } from "./dom.js";
import { count, moment, several } from "./format.js";

/** Fills the card, which is there where anybody is told. */
export function drawHooks({ hooks }) {
  fillFacts(byId("hooks-facts"), hooks.map((one) => [one.name, [
    `${several(one.told, "message")} told`,
    one.waiting > 0 && `${count(one.waiting)} waiting`,
    one.dropped > 0 && `${count(one.dropped)} given up`,
    one.answer && `${one.tried ? `last tried ${moment(one.tried)}: ` : ""}${one.answer}`,
    one.failing && `fails since ${moment(one.failing)}`,
  ].filter(Boolean).join("; ")]));
  show(byId("hooks"), hooks.length > 0);
}
