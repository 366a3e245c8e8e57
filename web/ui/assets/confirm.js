// Asking before something that cannot be taken back lightly.
import { make } from "./dom.js";

/** Shows a question; resolves to whether it was confirmed. */
export function confirm({ title, text, action, dangerous }) {
  return new Promise((resolve) => {
    const heading = make("h2", { id: "confirm-title" }, title);
    const dialog = make(
      "dialog",
      { "aria-labelledby": "confirm-title" },
      make("form", { method: "dialog" }, heading, make("p", {}, text),
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
