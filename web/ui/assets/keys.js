// Keys: every one does what a link or a button of the page does, too.
import { byId, make } from "./dom.js";

const keys = {
  "/": ["find in the list", () => focusOn(byId("filter-query") ?? byId("find"))],
  j: ["next row", () => step(1)],
  k: ["row before", () => step(-1)],
  x: ["choose the row with the focus", () => click(document.activeElement.closest("tr")?.querySelector(".pick"))],
  n: ["next trial", () => click(byId("next"))],
  p: ["trial before", () => click(byId("previous"))],
  u: ["up: from a trial to its study, from there to all", () => click([...document.querySelectorAll(".trail a")].at(-1))],
  "?": ["show the keys", showKeys],
};

function focusOn(element) {
  element?.focus();
  element?.select?.();
  return element !== null;
}

/** Moves the focus to the link of another row; Enter then opens it. */
function step(by) {
  const links = [...document.querySelectorAll("tbody th[scope=row] a")];
  const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const wanted = links[at < 0 ? 0 : at + by];
  wanted?.focus();
  wanted?.scrollIntoView({ block: "nearest" });
  return wanted !== undefined;
}

function click(element) {
  if (!element || element.hidden) return false;
  element.click();
  return true;
}

function showKeys() {
  const rows = Object.entries(keys).flatMap(([key, [what]]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]);
  const dialog = make("dialog", { "aria-labelledby": "keys-title" },
    make("form", { method: "dialog" },
      make("h2", { id: "keys-title" }, "Keys"),
      make("dl", { class: "keys" }, ...rows, make("dt", {}, make("kbd", {}, "Enter")), make("dd", {}, "open the row with the focus"), make("dt", {}, make("kbd", {}, "Esc")), make("dd", {}, "leave a field, close a question")),
      make("div", { class: "actions" }, make("button", { class: "primary" }, "Close"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return true;
}

/** Starts to listen. Keys typed into a field, or with a modifier, are not ours. */
export function offerKeys() {
  byId("keys").addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const field = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (field && event.key === "Escape") field.blur();
    if (field) return;
    if (Object.hasOwn(keys, event.key) && keys[event.key][1]()) event.preventDefault();
  });
}
