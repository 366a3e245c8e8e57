// The list of studies.
import { get, referenceOf, studyPath } from "./api.js";
import { badge, byId, make, setText, show, stackedBar, tagWords } from "./dom.js";
import { count, duration, energy, measured, moment, nothing, roughly } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, repeat, tell } from "./live.js";
import { StudyList } from "./study-list.js";
import { label, states } from "./trials.js";

const body = byId("studies").tBodies[0];
const rows = new Map(); // study id -> row
const choice = new StudyList(byId("studies"), draw);
let all = []; // as the server told them last

function fill(row, study, estimated) {
  const { progress, definition } = study;
  const [objective, ...further] = definition.objective;
  const used = energy(progress.energy);
  const cells = [
    make("th", { scope: "row" },
      make("a", { href: studyPath(referenceOf(study)) }, study.name),
      definition.description ? make("span", { class: "sub" }, definition.description) : null,
      study.tags?.length ? make("span", { class: "tag-line" }, ...tagWords(study.tags)) : null),
    make("td", {}, study.owner),
    make("td", { title: study.reason }, badge(study.status)),
    make("td", { class: "progress" },
      make("span", {}, progress.max_trials > 0 ? `${count(progress.created)} of ${count(progress.max_trials)} trials` : `${count(progress.created)} trials`),
      stackedBar([...states.map((state) => ({ state, weight: progress.trials[state] })), { state: "open", weight: Math.max(0, progress.max_trials - progress.created) }]),
      make("span", { class: "sub" }, tally(progress.trials))),
    make("td", { class: "number strong", title: further.length > 0 ? "the best compromise: another trial may be better in one of the objectives" : null }, progress.best ? measured(progress.best.value) : nothing,
      ...further.map((one, index) => make("span", { class: "sub" }, progress.best ? measured(progress.best.values?.[index + 1]) : nothing))),
    make("td", {}, label(objective), ...(further.length > 0 ? further.map((one) => make("span", { class: "sub" }, label(one))) : [make("span", { class: "sub" }, objective.direction)])),
    make("td", { class: "number" }, count(progress.epochs)),
    make("td", { class: "number" }, duration(Math.round(progress.elapsed_seconds)).replace(/\.00? s$/, " s"),
      progress.remaining_seconds > 0 && study.status === "running" ? make("span", { class: "sub" }, `≈ ${roughly(progress.remaining_seconds)} left`) : null),
    make("td", { class: "number", title: used?.method }, used ? used.text : nothing, used?.estimate && !estimated ? make("span", { class: "sub" }, "estimate") : null),
    make("td", { class: "number" }, moment(study.created).slice(0, 10), make("span", { class: "sub" }, moment(study.created, false))),
  ];
  // Only what changed is replaced, so that a focused link stays focused.
  cells.forEach((cell, index) => {
    const old = row.cells[index];
    if (!old) row.append(cell);
    else if (!old.isEqualNode(cell)) old.replaceWith(cell);
  });
}

function tally(trials) {
  const active = trials.queued + trials.leased + trials.running;
  const parts = [active > 0 && `${active} active`, trials.paused > 0 && `${trials.paused} paused`, trials.completed > 0 && `${trials.completed} completed`, trials.failed + trials.lost > 0 && `${trials.failed + trials.lost} failed`];
  return parts.filter(Boolean).join(", ");
}

function draw() {
  const list = choice.of(all);
  show(byId("loading"), false);
  show(byId("empty"), all.length === 0);
  show(byId("filters"), all.length > 1 || choice.active);
  show(byId("frame"), list.length > 0);
  show(byId("none"), all.length > 0 && list.length === 0);
  const running = list.filter((study) => study.status === "running").length;
  setText(byId("count"), all.length === 0 ? "" : `${count(list.length)} ${choice.active ? `of ${count(all.length)}` : "in all"}, ${count(running)} running`);
  // What all joules are is said once.
  const estimated = list.every((study) => energy(study.progress.energy)?.estimate ?? true) && list.some((study) => energy(study.progress.energy));
  show(byId("estimated"), estimated);
  const present = new Set(list.map((study) => study.id));
  for (const [id, row] of rows) {
    if (present.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  list.forEach((study, index) => {
    const row = rows.get(study.id) ?? make("tr");
    rows.set(study.id, row);
    fill(row, study, estimated);
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
  });
}

async function refresh() {
  all = (await get("/studies")).studies ?? [];
  draw();
}

offerFrame();
repeat(3000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
