// Who else has a study: groups of users, and links that open it, to look at.
import { change, get } from "./api.js";
import { copyButton } from "./copy.js";
import { make, setText, show } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";
import { moment, nothing } from "./format.js";

const day = 24 * 3600;
const lives = [[day, "a day"], [7 * day, "a week"], [30 * day, "30 days"], [365 * day, "a year"]];

/** A box for each group that the study is, or may be, shared with; nothing where there is none. */
async function groupBoxes(path, refuse) {
  const [{ groups: known }, { groups: shared = [] }] = await Promise.all([get("/groups"), get(path)]);
  const names = [...new Set([...known.map(({ name }) => name), ...shared])].sort();
  if (names.length === 0) return [];
  const boxes = names.map((name) => {
    const box = make("input", { type: "checkbox", value: name });
    box.checked = shared.includes(name);
    return box;
  });
  const saved = make("p", { role: "status", class: "muted" });
  const save = async (box) => {
    const groups = boxes.filter(({ checked }) => checked).map(({ value }) => value);
    refuse(null);
    try {
      await change("PUT", path + "/groups", { groups });
      setText(saved, groups.length > 0 ? `Shared with ${groups.join(", ")}.` : "Shared with no group.");
    } catch (error) {
      box.checked = !box.checked;
      refuse(error);
    }
  };
  for (const box of boxes) box.addEventListener("change", () => save(box));
  return [make("fieldset", { id: "share-groups" }, make("legend", {}, "Groups that have it"), ...boxes.map((box) => make("label", { class: "check" }, box, box.value)), saved)];
}

/** Shows whom the study is shared with, and changes it. path is the study's. */
export async function share(path, name) {
  const groups = make("div");
  const list = make("div", { class: "links" });
  const fresh = make("div", { role: "status" });
  const whom = field({ label: "For whom", hint: "Stands in this list and in the audit log" });
  const life = field({ label: "Opens the study for", kind: "choice", options: lives.map(([seconds, words]) => [String(seconds), words]), narrow: true });
  life.input.value = String(7 * day);
  const refusal = make("p", { class: "fault", role: "alert", hidden: true });
  const refuse = (error) => {
    show(refusal, error !== null);
    setText(refusal, error === null ? "" : error.message);
  };

  async function draw() {
    const { links } = await get(path + "/links");
    const rows = links.map((link) => make("tr", {},
      make("th", { scope: "row" }, link.name), make("td", {}, moment(link.created)), make("td", {}, moment(link.expires)), make("td", {}, link.used ? moment(link.used) : nothing),
      make("td", {}, make("button", { type: "button", class: "small danger", "aria-label": `Revoke the link for ${link.name}`, on: { click: () => revoke(link) } }, "Revoke"))));
    const head = ["For", "Made", "Until", "Last used", ""].map((title) => make("th", { scope: "col" }, title));
    list.replaceChildren(links.length === 0 ? make("p", {}, "There is no link yet.") : make("table", { class: "plain" },
      make("caption", { class: "unseen" }, "Links to this study"), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
  }

  const revoke = (link) => change("DELETE", `${path}/links/${link.id}`).then(() => {
    fresh.replaceChildren();
    refuse(null);
    return draw();
  }).catch(refuse);

  async function create() {
    whom.fault(null);
    refuse(null);
    try {
      const link = await change("POST", path + "/links", { name: whom.input.value.trim(), ttl_seconds: Number(life.input.value) });
      const address = make("input", { type: "text", readonly: true, id: "link-address", "aria-label": "The link" });
      address.value = location.origin + link.path;
      fresh.replaceChildren(make("p", {}, "Copy it now: it cannot be shown again. Who has it sees all of this study, its file and its logs too, what it took from earlier studies, and nothing else."), make("div", { class: "made" }, address, copyButton(() => address.value)));
      address.select();
      await draw();
    } catch (error) {
      const [fault] = error.fields ?? [];
      if (fault?.path === "name") whom.fault(fault.message);
      else refuse(error);
    }
  }

  const button = make("button", { type: "button", id: "make-link", on: { click: create } }, "Make a link");
  whom.input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    create();
  });
  const shown = ask({
    title: `Share ${name}`,
    content: [groups, make("p", {}, "A link opens this study for whoever has it, without an account and only to look at."), make("div", { class: "fields" }, whom.element, life.element), button, refusal, fresh, list],
  });
  await draw().catch(refuse);
  await groupBoxes(path, refuse).then((boxes) => groups.replaceChildren(...boxes), refuse);
  return shown;
}
