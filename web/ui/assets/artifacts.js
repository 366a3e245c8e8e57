// Files that a trial's script logged, shown as what they are: pictures, tables and texts.
// What they contain enters the page as text, or as the bytes of a picture.
import { address, getText } from "./api.js";
import { make } from "./dom.js";
import { bytes, count } from "./format.js";

const [mostRows, mostColumns, mostText, mostFetched] = [200, 30, 64 * 1024, 1024 * 1024];
const texts = new Map(); // SHA-256 -> promise of what it says

/** A figure of the file {name, kind, bytes, artifact} of the trial with the number. */
export function artifactFigure(study, number, file) {
  const path = `/studies/${encodeURIComponent(study)}/trials/${number}/artifacts/${encodeURIComponent(file.name)}`;
  const link = make("a", { href: address(path), download: file.name }, file.name);
  return make("figure", { class: "artifact" }, content(path, number, file), make("figcaption", {}, link, make("span", { class: "muted" }, ` ${bytes(file.bytes)}, after epoch ${count(file.epoch)}`)));
}

function content(path, number, file) {
  const name = `${file.name} of trial ${number}`;
  if (file.kind === "image") return make("img", { src: address(path), alt: name, loading: "lazy" });
  if (file.kind === "file" || file.bytes > mostFetched) return null;
  const box = make("div", { class: "artifact-text", tabindex: "0", role: "group", "aria-label": name });
  if (!texts.has(file.artifact)) texts.set(file.artifact, getText(path));
  texts.get(file.artifact).then((text) => {
    if (file.kind === "table") box.append(...table(text));
    else box.append(make("pre", {}, text.slice(0, mostText)), ...more(text.length > mostText, "the rest"));
  }, (error) => {
    texts.delete(file.artifact);
    box.append(make("p", { class: "muted" }, error.message));
  });
  return box;
}

const more = (has, what) => (has ? [make("p", { class: "muted" }, `Download it for ${what}.`)] : []);

function table(text) {
  const rows = records(text.replace(/^\uFEFF/, ""), mostRows + 2);
  const [head, ...body] = rows.map((row) => row.slice(0, mostColumns));
  if (!head) return [];
  const cell = (value) => make("td", { class: value.trim() !== "" && Number.isFinite(Number(value)) ? "number" : null }, value);
  const shown = make("table", { class: "grid" }, make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...body.slice(0, mostRows).map((row) => make("tr", {}, ...row.map(cell)))));
  return [shown, ...more(body.length > mostRows || rows[0].length > mostColumns, "all rows and columns")];
}

/** The first records of comma-separated values (RFC 4180). */
export function records(text, most) {
  const rows = [];
  let row = [];
  const cells = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|\r|$)/y;
  while (cells.lastIndex < text.length && rows.length < most) {
    const found = cells.exec(text);
    if (!found) break; // a quotation mark in the middle of a value
    row.push(found[1]?.replaceAll('""', '"') ?? found[2]);
    if (found[3] === ",") continue;
    rows.push(row);
    row = [];
  }
  if (row.length > 0) rows.push(row);
  return rows;
}
