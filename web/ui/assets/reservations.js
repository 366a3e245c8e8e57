// What is kept of the workers for somebody: a part of the page of the pool, as
// GET /reservations tells it.
import { byId, fillRows, make, setText, show } from "./dom.js";
import { moment, several } from "./format.js";

const below = (text) => make("span", { class: "sub" }, text);
const cell = (of, ...children) => make("td", { data: { of } }, ...children);

const kept = (one) => (one.worker ? `worker ${one.worker}` : several(one.gpus, "GPU"));

/** Who it is for; the studies of other users are not told. */
const whom = (one) => (one.user ? `user ${one.user}` : one.study ? `study ${one.study}` : "a study of another user");

const row = (one) => make("tr", {},
  make("th", { scope: "row" }, kept(one), one.worker_absent ? below("No worker of this name is connected: nothing is kept until one is.") : null,
    one.gpus_absent ? below(`The connected workers have ${several(one.gpus - one.gpus_absent, "GPU")} in all: while it holds, nobody else begins a trial with GPUs.`) : null),
  cell("for", whom(one), one.user_absent ? below("No token is this user’s: nobody can use what is kept.") : null),
  cell("from", moment(one.from)), cell("to", moment(one.to)),
  make("td", {}, make("span", { class: one.active ? "tag good" : "tag" }, one.active ? "holds" : "to come")));

/** Draws what is reserved, by when it begins. */
export function drawReservations(reservations) {
  show(byId("reserved-card"), reservations.length > 0);
  setText(byId("reserved-count"), several(reservations.length, "reservation"));
  fillRows("reserved", reservations.map(row));
}
