// The list of studies.
import { get, referenceOf, studyPath } from "./api.js";
import { Bulk } from "./bulk.js";
import { badge, byId, make, setText, show, stackedBar, tagWords } from "./dom.js";
import { count, duration, energy, measured, moment, nothing, roughly } from "./format.js";
import { offerFrame } from "./frame.js";
import { linkState, repeat, tell } from "./live.js";
import { StudyList } from "./study-list.js";
import { label, states } from "./trials.js";

const table = byId("studies");
let parts = new Map(); // the table's bodies and rows: a group, or a group and a study's id -> element
let all = []; // as the server told them last
const closed = new Set(); // groups of which the reader sees the name only
const choice = new StudyList(table, draw);
const bulk = new Bulk(table, refresh);

function fill(row, study, estimated) {
  const { progress, definition } = study;
  const [objective, ...further] = definition.objective;
  const used = energy(progress.energy);
  const cells = [
    make("th", { scope: "row" }, bulk.box(`Choose ${referenceOf(study)}`, [study]),
      make("a", { href: studyPath(referenceOf(study)) }, study.name),
      definition.description ? make("span", { class: "sub" }, definition.description) : null,
      study.status === "failed" && study.reason ? make("span", { class: "sub bad" }, study.reason.split("\n")[0]) : null,
      study.tags?.length ? make("span", { class: "tag-line" }, ...tagWords(study.tags)) : null),
    make("td", { class: "owner", title: study.owner }, study.owner),
    make("td", { title: study.reason }, badge(study.status)),
    make("td", { class: "progress", title: states.filter((state) => progress.trials[state] > 0).map((state) => `${count(progress.trials[state])} ${state}`).join(", ") },
      make("span", {}, progress.max_trials > 0 ? `${count(progress.created)} of ${count(progress.max_trials)} trials` : `${count(progress.created)} trials`),
      stackedBar([...states.map((state) => ({ state, weight: progress.trials[state] })), { state: "open", weight: Math.max(0, progress.max_trials - progress.created) }]),
      make("span", { class: "sub" }, tally(progress))),
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

/** What there is to know of a study at a glance; its own page has all states. */
function tally({ trials, retried }) {
  const active = trials.queued + trials.leased + trials.running;
  const failed = trials.failed + trials.lost;
  return [active > 0 && `${count(active)} active`, failed > 0 && `${count(failed)} failed${retried ? ` (${count(retried)} retried)` : ""}`].filter(Boolean).join(", ");
}

const runningOf = (list) => list.filter((study) => study.status === "running").length;

/** The row of a group's name, which opens and closes the group. */
function fillHead(row, key, name, studies) {
  const words = name || "without a tag";
  if (!row.firstChild) {
    row.className = "group";
    const toggle = () => {
      if (!closed.delete(key)) closed.add(key);
      draw();
    };
    row.append(make("th", { scope: "rowgroup", colspan: "10" }, make("span"), make("button", { type: "button", class: "quiet", on: { click: toggle } }, words), " ", make("span", { class: "muted" })));
  }
  const [place, button, sum] = row.firstChild.children;
  const box = make("span", {}, bulk.box(`Choose all studies ${name ? `of ${name}` : words}`, studies));
  if (!place.isEqualNode(box)) place.replaceWith(box);
  button.ariaExpanded = String(!closed.has(key));
  setText(sum, `${count(studies.length)} ${studies.length === 1 ? "study" : "studies"}, ${count(runningOf(studies))} running`);
}

/** Makes the children be these, and moves none that is where it belongs: it may have the focus. */
function place(parent, children) {
  const wanted = new Set(children);
  for (const old of [...parent.children]) if (!wanted.has(old)) old.remove();
  children.forEach((one, at) => {
    if (parent.children[at] !== one) parent.insertBefore(one, parent.children[at] ?? null);
  });
}

function drawTable(list) {
  // What all joules are is said once.
  const estimated = list.every((study) => energy(study.progress.energy)?.estimate ?? true) && list.some((study) => energy(study.progress.energy));
  show(byId("estimated"), estimated);
  const present = new Map();
  const part = (tag, ...key) => {
    const name = JSON.stringify(key);
    present.set(name, parts.get(name) ?? make(tag));
    return present.get(name);
  };
  const bodies = choice.grouped(list).map(([name, studies]) => {
    const key = `${choice.group.value} ${name}`;
    const rows = closed.has(key) ? [] : studies.map((study) => {
      const row = part("tr", key, study.id);
      fill(row, study, estimated);
      return row;
    });
    if (name !== null) {
      rows.unshift(part("tr", key));
      fillHead(rows[0], key, name, studies);
    }
    const body = part("tbody", key, "", "");
    place(body, rows);
    return body;
  });
  place(table, [table.caption, table.tHead, ...bodies]);
  parts = present;
}

function draw() {
  const list = choice.of(all);
  show(byId("loading"), false);
  show(byId("empty"), all.length === 0);
  show(byId("filters"), all.length > 1 || choice.active);
  show(byId("frame"), list.length > 0);
  show(byId("none"), all.length > 0 && list.length === 0);
  setText(byId("count"), all.length === 0 ? "" : `${count(list.length)} ${choice.active ? `of ${count(all.length)}` : "in all"}, ${count(runningOf(list))} running`);
  drawTable(list);
  bulk.draw(list);
}

async function refresh() {
  all = (await get("/studies")).studies ?? [];
  draw();
}

offerFrame();
bulk.start().then(() => all.length > 0 && draw(), () => {}); // without an answer, nothing can be chosen
repeat(3000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
