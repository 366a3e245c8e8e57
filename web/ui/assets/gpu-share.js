// What a trial has of its machine's GPUs, and what it should and was seen to use
// of one that it may share.
import { make } from "./dom.js";
import { bytes, duration, number, several, share } from "./format.js";

/** The part that it should take, in words; the tag says that it is an estimate. */
export function expectedPart(part) {
  if (part.alone) return [`Nobody joins it at the moment: ${part.basis}.`];
  return [`Should keep it busy for ${share(number(part.utilization))} of the time and hold ${bytes(part.memory_bytes)} `, make("span", { class: "tag", title: part.basis }, "estimate"), `: ${part.basis}.`];
}

/** What it was seen to use, in words. */
export function seenPart(use) {
  if (use.seconds === 0) return `Seen: at most ${bytes(use.memory_bytes)} held; the driver does not report how busy it keeps a shared GPU.`;
  return `Seen: busy for ${share(number(use.utilization))} of ${duration(use.seconds)} ${use.alone ? "alone" : "with others"}, at most ${bytes(use.memory_bytes)} held.`;
}

/** Who shares a running trial's GPU; nameOf tells what a trial of that id is called. */
export function company(gpu, nameOf) {
  const names = [...(gpu.beside ?? []).map(nameOf), ...(gpu.others ? [`${several(gpu.others, "trial")} of other users`] : [])];
  return names.length > 0 ? `with ${names.join(", ")}` : "which others may share";
}
