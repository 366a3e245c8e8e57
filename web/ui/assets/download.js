// What a card shows, to take away: a picture of it, or the numbers behind it as
// comma-separated values.
import { make, showError } from "./dom.js";
import { moment } from "./format.js";
import { wireMenu } from "./menu.js";
import { photograph } from "./picture.js";

/**
 * Gives a card a menu. name is what it shows, as part of a file's name; of is
 * whose it is, such as the study. Each of tables is [what it has, a function]:
 * {columns, rows} with plain values. where(), if given, tells what a picture
 * has to say besides, such as the rung.
 */
export function offerDownloads(card, { of, name, tables, where = () => "" }) {
  const head = card.querySelector(".card-head");
  const title = () => head.querySelector("h2").firstChild.textContent;
  const file = (ending, part = "") => `${[of, name, part].filter(Boolean).map(plain).join("-")}.${ending}`;
  const choice = (text, run) => make("button", { type: "button", class: "small", on: { click: () => leave(run) } }, text);

  const summary = make("summary", { title: "Download", "aria-label": `Download: ${title()}` });
  const menu = make("details", { class: "menu downloads" }, summary, make("div", { class: "download-list" },
    choice("Picture (PNG)", picture),
    ...tables.map(([what, table]) => choice(tables.length > 1 ? `${what} (CSV)` : "Data (CSV)", () => save(
      new Blob([csv(table())], { type: "text/csv;charset=utf-8" }), file("csv", tables.length > 1 ? what : ""))))));
  const { close } = wireMenu(menu);
  head.append(menu);

  async function leave(run) {
    close();
    try {
      await run();
    } catch (error) {
      showError(new Error(`${title()} could not be saved. ${error.message}`));
    }
  }

  async function picture() {
    const canvas = await photograph(card, [of, where(), moment(new Date().toISOString()), "Tandem"].filter(Boolean).join(" · "));
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob === null) throw new Error("The browser cannot make a picture that large: make the window narrower, or take the data.");
    save(blob, file("png"));
  }
}

/** Nothing that a disk could misread. */
const plain = (text) => text.replaceAll(/[^A-Za-z0-9._-]+/g, "-");

/** Lets the browser save it under the name. */
function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000); // a browser may ask first where to
}

/** A table as comma-separated values (RFC 4180). No text begins like a formula: a spreadsheet would take it for one. */
export function csv({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
}

function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
