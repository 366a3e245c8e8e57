// The page that makes a study: a form and the study file beside it, kept in
// step. The server says what is wrong with it, and what it would do.
import { get, identity, referenceOf, sendFile, studyPath } from "./api.js";
import { confirm } from "./confirm.js";
import { byId, make, setText, show, showError } from "./dom.js";
import { faultsOf } from "./field.js";
import { offerFrame } from "./frame.js";
import { linkState } from "./live.js";
import { planOf } from "./plan-preview.js";
import { StudyFile, concise, textOf } from "./study-file.js";
import { StudyForm } from "./study-form.js";

const beginning = `name: my-study
command: [python, train.py]
objective: {metric: accuracy, direction: maximize}
space:
  learning_rate: {type: float, low: 1e-4, high: 1e-1, log: true}
  batch_size: {type: ordinal, values: [32, 64, 128, 256]}
budget: {epochs: {min: 1, max: 9}}
search: {method: bohb}
stop: {trials: 50}
`;

const text = byId("file");
const file = new StudyFile(beginning);
let given = beginning; // what the page began with: leaving it loses nothing
let allowed = true; // to create studies
let checks = 0;
let waiting = null;

const form = new StudyForm(() => file, () => {
  text.value = file.text;
  form.refresh();
  checkSoon();
});

/** Takes in what stands in the text. */
function read() {
  const broken = file.read(text.value);
  show(byId("unreadable"), broken !== null);
  byId("form").disabled = broken !== null || !allowed;
  setText(byId("unreadable"), broken === null ? "" : `The file cannot be read: ${broken.line ? `line ${broken.line}: ` : ""}${broken.message}. The form follows when it can.`);
  if (broken === null) form.refresh();
  checkSoon();
}

function put(content) {
  text.value = given = content;
  read();
}

function checkSoon() {
  byId("create").disabled = true;
  checks++; // what an earlier check says is of another text
  clearTimeout(waiting);
  waiting = setTimeout(check, 300);
}

/** Asks the server what it thinks of the file. */
async function check() {
  if (!allowed) return;
  const turn = ++checks;
  const query = new URLSearchParams({ workers: Math.max(1, Math.floor(Number(byId("workers").value) || 1)) });
  if (byId("like").value) query.set("like", byId("like").value);
  try {
    const { plan, faults } = await sendFile(`/preview?${query}`, file.kind, file.text);
    if (turn !== checks) return; // the text has changed since
    showError(null);
    linkState("none");
    tell(faultsOf({ fields: faults }));
    byId("create").disabled = !plan;
    byId("plan").replaceChildren(...(plan ? planOf(plan) : [make("p", { class: "muted" }, "The plan is shown when the file has no faults.")]));
  } catch (error) {
    if (turn !== checks) return;
    showError(error);
    if (error.status === 0) waiting = setTimeout(check, 3000);
  }
}

/** Shows the faults: at the fields of the form, and with their lines beside the text. */
function tell(faults) {
  form.fault(faults);
  show(byId("faults"), faults.length > 0);
  setText(byId("faults-title"), faults.length === 1 ? "One fault" : `${faults.length} faults`);
  byId("faults-list").replaceChildren(...faults.map(({ path, line, text: message }) => make("li", {},
    line ? make("button", { type: "button", class: "small", on: { click: () => goTo(line) } }, `line ${line}`) : null, make("code", {}, path), ` ${message}`)));
}

/** Selects a line of the text. */
function goTo(line) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  text.focus();
  text.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  text.scrollTop = Math.max(0, (line - 4) * Number.parseFloat(getComputedStyle(text).lineHeight));
}

async function create() {
  byId("create").disabled = true;
  clearTimeout(waiting);
  const turn = ++checks;
  showError(null);
  try {
    const study = await sendFile("/studies", file.kind, file.text);
    given = text.value;
    location.assign(studyPath(referenceOf(study)));
  } catch (error) {
    const faults = faultsOf(error);
    tell(faults);
    showError(new Error(faults.length > 0 ? "The study was not created: see the faults." : `The study was not created. ${error.message}`));
    byId("error").scrollIntoView({ block: "nearest" });
    if (turn === checks) byId("create").disabled = false; // else the text has changed since
  }
}

/** A name that no study has: with a number behind it. */
function free(name, studies) {
  const taken = new Set(studies.map((study) => study.name));
  const stem = name.replace(/-\d+$/, "").slice(0, 120);
  for (let count = 2; ; count++) if (!taken.has(`${stem}-${count}`)) return `${stem}-${count}`;
}

async function copyOf(reference, studies) {
  const study = await get(studyPath(reference));
  put(textOf(concise(study.definition, free(study.name, studies))));
  if (study.progress.data_passes > 0) byId("like").value = study.id;
  checkSoon();
}

async function start() {
  const who = await identity();
  allowed = who.owner !== undefined;
  show(byId("refused"), !allowed);
  setText(byId("refused"), allowed ? "" : `This session cannot create studies: its token has the scope ${who.scope}, which only looks. Sign in with an admin's or a user's token (tandem token create --scope user --name NAME).`);
  for (const id of ["file", "from"]) byId(id).disabled = !allowed;
  const { studies } = await get("/studies");
  const named = (study) => make("option", { value: study.id }, referenceOf(study));
  byId("from").append(...studies.map(named));
  byId("like").append(...studies.filter((study) => study.progress.data_passes > 0).map(named));
  show(byId("from-line"), studies.length > 0);
  linkState("none");
  put(beginning);
  show(byId("loading"), false);
  show(byId("content"), true);
  const from = new URLSearchParams(location.search).get("from");
  if (from) {
    byId("from").value = studies.find((study) => study.id === from || referenceOf(study) === from)?.id ?? "";
    await copyOf(from, studies);
  }
  byId("from").addEventListener("change", async () => {
    const edited = text.value !== given;
    if (edited && !(await confirm({ title: "Replace what you wrote?", text: "The form and the file get the values of the study you chose.", action: "Replace" }))) return;
    if (byId("from").value === "") put(beginning);
    else await copyOf(byId("from").value, studies).catch(showError);
  });
}

text.addEventListener("input", read);
for (const id of ["like", "workers"]) byId(id).addEventListener("input", checkSoon);
byId("create").addEventListener("click", create);
addEventListener("beforeunload", (event) => {
  if (text.value !== given) event.preventDefault();
});
linkState("loading");
offerFrame();
start().catch((error) => {
  show(byId("loading"), false);
  showError(error);
});
