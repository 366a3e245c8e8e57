// What the frame around every page offers: signing out, keys, and commands to
// copy where a page is empty.
import { kept } from "./api.js";
import { copyButton } from "./copy.js";
import { make, setText, show } from "./dom.js";
import { offerKeys } from "./keys.js";
import { offerSignOut } from "./session.js";

const commands = () => ({
  worker: `tandem worker --server ${location.origin}`,
  truth: `tandem ground-truth import ground-truth.json --server ${location.origin}`,
});

/** Wires the frame. */
export function offerFrame() {
  if (kept) return;
  offerSignOut();
  offerKeys();
  for (const code of document.querySelectorAll("[data-command]")) setText(code, commands()[code.dataset.command]);
  for (const place of document.querySelectorAll("[data-copy]")) place.replaceChildren(copyButton(() => commands()[place.dataset.copy] ?? place.dataset.copy));
}

/** The frame for who came by a link: nothing leads to what the link does not open. */
export function frameForGuest(study) {
  if (kept) return;
  document.querySelector(".brand").href = study;
  document.querySelector(".bar nav").replaceChildren(make("span", { class: "muted guest" }, "Shared with you, to look at"));
  for (const link of document.querySelectorAll('a[href="/studies"]')) show(link, false);
}
