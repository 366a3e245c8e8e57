// A question with fields in it, and the server's faults at them.
import { make, setText, show } from "./dom.js";
import { faultsOf } from "./field.js";

/**
 * Opens a dialog with nodes and an action. run() sends what was filled in; what
 * the server finds wrong with it is shown by place(path), which returns the
 * field, and the dialog stays open. Resolves to run()'s answer, or to null.
 */
export function ask({ title, content, action, fields = [], place = () => undefined, run }) {
  return new Promise((resolve) => {
    const refusal = make("p", { class: "fault", role: "alert", hidden: true });
    const submit = action ? make("button", { type: "submit", class: "primary" }, action) : null;
    const close = make("button", { type: "button", on: { click: () => dialog.close() } }, action ? "Cancel" : "Close");
    const form = make("form", { method: "dialog" }, make("h2", { id: "ask-title" }, title), ...content, refusal, make("div", { class: "actions" }, close, submit));
    const dialog = make("dialog", { class: "form", "aria-labelledby": "ask-title" }, form);
    let answer = null;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!action) return;
      submit.disabled = true;
      try {
        answer = await run();
        dialog.close();
      } catch (error) {
        const elsewhere = [];
        for (const one of fields) one.fault(null);
        for (const fault of faultsOf(error)) {
          const at = place(fault.path);
          if (at) at.fault(fault.text);
          else elsewhere.push(fault.path ? `${fault.path}: ${fault.text}` : fault.text);
        }
        const text = error.fields?.length > 0 ? elsewhere.join("; ") : error.message;
        show(refusal, text !== "");
        setText(refusal, text);
        fields.find((one) => one.input.hasAttribute("aria-invalid"))?.input.focus();
        submit.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
