// Copying text to the clipboard.
import { make, setText } from "./dom.js";

/** A button that copies what text() returns, and says so. */
export function copyButton(text) {
  const button = make("button", { type: "button", class: "small", "aria-live": "polite" }, "Copy");
  button.addEventListener("click", async () => {
    const done = await copy(text());
    setText(button, done ? "Copied" : "Select and copy by hand");
    setTimeout(() => setText(button, "Copy"), 2000);
  });
  return button;
}

// The clipboard interface needs a secure context; over plain HTTP in a lab the
// old way, from a selection, has to do.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
