// What boards that measure models are at.
import { count, moment } from "./format.js";

/** What one board is at, in words. */
export function boardWords(one) {
  const silent = Date.now() - Date.parse(one.seen) > 60_000; // it asks every 20 s, also while it measures
  const doing = silent ? `has not asked since ${moment(one.seen)}` : one.measuring ? "measures a model now" : one.failure ? `failed: ${one.failure}` : "waits for models";
  const providers = ["cpu", ...(one.site.providers ?? [])].join(", ");
  const version = one.server_version ? `, is tandem ${one.version} and the server ${one.server_version}` : "";
  return `${one.name} (${one.device}, ${providers}) ${doing}, ${count(one.measured)} measured since the server started${version}`;
}
