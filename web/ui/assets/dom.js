// Building blocks of the pages. Data enters only as text nodes and as values
// of attributes that are never markup, so nothing a study contains can become
// part of the page's structure.

/** The element with the id. */
export const byId = (id) => document.getElementById(id);

/**
 * Makes an element. Properties: "class", "on" (listeners by name), "data"
 * (data attributes), everything else an attribute; true sets an empty one,
 * false, null and undefined set none. Children: nodes, or text.
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "class") element.className = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets the text if it differs, so that a selection in it survives. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Writes a table's rows where they are not what they were; what has the focus keeps it. */
export function fillRows(id, rows) {
  const body = byId(id).tBodies[0];
  rows.forEach((row, at) => {
    const old = body.rows[at];
    if (!old) body.append(row);
    else if (!old.isEqualNode(row)) {
      const focused = [...old.querySelectorAll("a, button")].indexOf(document.activeElement);
      old.replaceWith(row);
      row.querySelectorAll("a, button")[focused]?.focus();
    }
  });
  while (body.rows.length > rows.length) body.lastElementChild.remove();
}

/** Shows the element or hides it. */
export function show(element, visible) {
  element.hidden = !visible;
}

/** Says what went wrong in the page's error line; null clears it. */
export function showError(error, id = "error") {
  const line = byId(id);
  show(line, error !== null);
  setText(line, error === null ? "" : error.message);
}

/** A badge with the state's colour; the word carries the meaning. */
export function badge(state) {
  return make("span", { class: "badge", data: { state } }, state);
}

/** Tags as small words. */
export const tagWords = (tags) => (tags ?? []).map((tag) => make("span", { class: "tag" }, tag));

/** The rung as steps of a small ladder, with its number. */
export function rungMark(rung, rungs) {
  const mark = make("span", { class: "rung-mark", title: `rung ${rung} of 0 to ${rungs - 1}` });
  if (rungs <= 8) {
    for (let step = 0; step < rungs; step++) mark.append(make("i", { class: step <= rung ? "on" : null, "aria-hidden": "true" }));
  }
  mark.append(make("span", {}, String(rung)));
  return mark;
}

/** A definition list of pairs [term, content]; content is text or a node. */
export function fillFacts(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([term, content]) => [make("dt", {}, term), make("dd", {}, content)]));
}

/**
 * A bar whose parts are as wide as their weights. Widths are set through the
 * object model: the content policy refuses style attributes.
 */
export function stackedBar(parts) {
  const bar = make("span", { class: "stack", "aria-hidden": "true" });
  for (const { weight, state } of parts) {
    if (weight <= 0) continue;
    const part = make("i", { data: { state } });
    part.style.flexGrow = String(weight);
    bar.append(part);
  }
  return bar;
}

/**
 * Runs the function soon: at most once in each span of milliseconds, and one that
 * is asynchronous one at a time, with pauses four times as long as it takes, so
 * that a slow server is not asked the harder.
 */
export function throttled(milliseconds, run) {
  let timer = null;
  let running = false;
  let again = false;
  let next = -Infinity;

  async function once() {
    timer = null;
    running = true;
    const began = performance.now();
    try {
      await run();
    } finally {
      const ended = performance.now();
      next = Math.max(began + milliseconds, ended + 4 * (ended - began));
      running = false;
      if (again) soon();
    }
  }

  function soon() {
    again = running;
    if (running || timer !== null) return;
    timer = setTimeout(once, Math.max(0, next - performance.now()));
  }
  return soon;
}
