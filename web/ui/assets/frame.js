// What the frame around every page offers: signing out, keys, and commands to
// copy where a page is empty.
import { copyButton } from "./copy.js";
import { setText } from "./dom.js";
import { offerKeys } from "./keys.js";
import { offerSignOut } from "./session.js";

const commands = () => ({
  worker: `tandem worker --server ${location.origin}`,
  truth: `tandem ground-truth import ground-truth.json --server ${location.origin}`,
});

/** Wires the frame. */
export function offerFrame() {
  offerSignOut();
  offerKeys();
  for (const code of document.querySelectorAll("[data-command]")) setText(code, commands()[code.dataset.command]);
  for (const place of document.querySelectorAll("[data-copy]")) place.replaceChildren(copyButton(() => commands()[place.dataset.copy] ?? place.dataset.copy));
}
