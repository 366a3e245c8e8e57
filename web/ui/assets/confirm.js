// Asking before something that cannot be taken back lightly.
import { make } from "./dom.js";

/** The names of what something is done to. */
export const nameList = (names) => make("ul", { class: "names", tabindex: "0", "aria-label": "What it is done to" }, ...names.map((name) => make("li", {}, name)));

/** Shows a question, and the names of what it is about where there are several; resolves to whether it was confirmed. */
export function confirm({ title, text, list, action, dangerous }) {
  return new Promise((resolve) => {
    const heading = make("h2", { id: "confirm-title" }, title);
    const dialog = make(
      "dialog",
      { "aria-labelledby": "confirm-title" },
      make("form", { method: "dialog" }, heading, list ? nameList(list) : null, make("p", {}, text),
        make("div", { class: "actions" },
          make("button", { value: "no" }, "Cancel"),
          make("button", { value: "yes", class: dangerous ? "danger filled" : "primary" }, action))),
    );
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
