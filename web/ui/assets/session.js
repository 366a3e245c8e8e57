// Signing in and out.
import { change } from "./api.js";
import { byId } from "./dom.js";

/** Makes the header's button end the session. */
export function offerSignOut() {
  byId("sign-out").addEventListener("click", async () => {
    try {
      await change("DELETE", "/session");
    } finally {
      location.assign("/login");
    }
  });
}

/**
 * Where to go after signing in: a path on this server, never elsewhere. The
 * browser's own parser decides, since it is what will be asked to go there.
 */
export function destination(search, origin) {
  const wanted = new URLSearchParams(search).get("next") ?? "";
  if (!wanted.startsWith("/") || !URL.canParse(wanted, origin)) return "/studies";
  const target = new URL(wanted, origin);
  if (target.origin !== origin || target.pathname === "/login") return "/studies";
  // The whole address: of "/.//elsewhere" the path alone would name another host.
  return target.href;
}
