// One labelled field of a form, and what is wrong with it. A fault stands under
// its field, is told to screen readers with it, and marks it besides the colour.
import { make, setText, show } from "./dom.js";

let made = 0;

/**
 * A field. Settings: label, hint, kind ("text", "lines", "choice", "flag"),
 * options ([value, text] of a choice), placeholder, numeric, changed(text or
 * checked). Its parts: element, input, show(text), fault(message or null).
 */
export function field({ label, hint, kind = "text", options = [], placeholder, numeric, list, narrow, changed }) {
  const id = `field-${++made}`;
  const input = kind === "choice"
    ? make("select", { id }, ...options.map(([value, text]) => make("option", { value }, text)))
    : kind === "lines"
      ? make("textarea", { id, rows: "2", spellcheck: "false" })
      : make("input", { id, type: kind === "flag" ? "checkbox" : "text", placeholder, list, inputmode: numeric ? "decimal" : null, autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  const fault = make("span", { class: "fault", id: `${id}-fault`, hidden: true });
  const note = hint ? make("span", { class: "field-hint", id: `${id}-hint` }, hint) : null;
  input.setAttribute("aria-describedby", [note && `${id}-hint`, `${id}-fault`].filter(Boolean).join(" "));
  input.addEventListener(kind === "choice" || kind === "flag" ? "change" : "input", () => changed?.(kind === "flag" ? input.checked : input.value));
  const name = make("label", { for: id }, label);
  const element = make("div", { class: `field${kind === "flag" ? " flag" : ""}${narrow ? " narrow-field" : ""}` }, ...(kind === "flag" ? [input, name] : [name, input]), note, fault);
  return {
    element, input,
    show(value) {
      if (kind === "flag") input.checked = Boolean(value);
      else if (input.value !== value && input !== document.activeElement) {
        if (kind === "choice" && ![...input.options].some((option) => option.value === value)) input.append(make("option", { value }, value));
        input.value = value;
      }
    },
    fault(message) {
      show(fault, message !== null);
      setText(fault, message ?? "");
      if (message === null) input.removeAttribute("aria-invalid");
      else input.setAttribute("aria-invalid", "true");
    },
  };
}

/** The faults of a refused request by the path of the field. */
export function faultsOf(error) {
  return (error?.fields ?? []).map(({ path, message, value, line }) => ({
    path, line, text: value === undefined ? message : `${message} (got ${typeof value === "string" ? value : JSON.stringify(value)})`,
  }));
}

/** A path as the server writes it: names with dots between, [n] in a list. */
export const joined = (path) => path.reduce((text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? key : `${text}.${key}`), "");
