// Users, groups, tokens, quotas, reservations and the audit log: what administrators
// see all of, and users of themselves.
import { change, get, identity } from "./api.js";
import { confirm } from "./confirm.js";
import { copyButton } from "./copy.js";
import { byId, fillRows, make, setText, show } from "./dom.js";
import { field } from "./field.js";
import { ask } from "./form-dialog.js";
import { moment, nothing, several } from "./format.js";
import { linkState, repeat, tell } from "./live.js";
import { offerFrame } from "./frame.js";

let admin = false;
const seconds = { "0": "for ever", "86400": "a day", "2592000": "30 days", "31536000": "a year" };

/** A row with its cells; what ends the thing has a button for administrators. */
const row = (head, cells, end) => make("tr", {}, make("th", { scope: "row" }, head), ...cells.map((cell) => make("td", {}, cell || nothing)),
  make("td", {}, end && admin ? make("button", { type: "button", class: "small danger", "aria-label": `${end.action}: ${head}`, on: { click: () => remove(end) } }, end.action) : null));

async function remove({ title, text, action, path }) {
  if (!(await confirm({ title, text, action, dangerous: true }))) return;
  await change("DELETE", path).then(refresh).catch(tell);
}

const at = (kind, name) => `/${kind}/${encodeURIComponent(name)}`;
const members = (group) => [...Object.entries(group.members).map(([user, role]) => `${user} (${role})`), group.provided && `the identity provider’s (${group.provided})`].filter(Boolean).join(", ");
const bounds = (quota) => (quota ? [quota.trials && `${several(quota.trials, "trial")} at once`, quota.gpus && `${several(quota.gpus, "GPU")} at once`, quota.gpu_seconds_a_day && `${quota.gpu_seconds_a_day / 3600} GPU hours a day`,
  quota.joules_a_day && `${quota.joules_a_day} J a day`, quota.weight && `weight ${quota.weight}`, quota.preempt && "may preempt"].filter(Boolean).join(", ") || "no bound" : "no quota");

const cards = {
  users: ["/users", ({ users }) => users.map((one) => row(one.name, [several(one.tokens, "token"), one.used && moment(one.used), one.issuer && `${one.subject} at ${one.issuer}`, one.groups?.join(", ")],
    { title: `Remove ${one.name}?`, text: "Its tokens and sessions end now. Its studies stay. Whom the identity provider lets in can sign in again.", action: "Remove", path: at("users", one.name) }))],
  groups: ["/groups", ({ groups }) => groups.map((one) => row(one.name, [members(one)],
    { title: `Remove the group ${one.name}?`, text: "Studies that are shared with it are so no longer.", action: "Remove", path: at("groups", one.name) }))],
  tokens: ["/tokens", ({ tokens }) => tokens.map((one) => row(one.name, [one.scope, one.id, moment(one.created), one.expires ? moment(one.expires) : "never", one.used && moment(one.used)],
    { title: `Revoke the token ${one.id} of ${one.name}?`, text: "Whoever uses it is refused from now on.", action: "Revoke", path: at("tokens", one.id) }))],
  quotas: ["/quotas", ({ quotas }) => quotas.map((one) => row(one.user, [bounds(one.quota), String(one.uses.trials), String(one.uses.gpus)],
    one.quota && { title: `Remove the quota of ${one.user}?`, text: "The user has what there is from now on.", action: "Remove", path: at("quotas", one.user) }))],
  reservations: ["/reservations", ({ reservations }) => reservations.map((one) => row(one.worker ? `worker ${one.worker}` : several(one.gpus, "GPU"), [one.user ? `user ${one.user}` : one.study ? `study ${one.study}` : "a study of another user", moment(one.from), moment(one.to)],
    { title: "End this reservation?", text: "What is kept is free for others at once.", action: "End", path: at("reservations", one.id) }))],
  audit: ["/audit", ({ entries }) => entries.reverse().map((one) => row(moment(one.at), [one.action, one.outcome + (one.count > 1 ? ` (${one.count} times)` : ""), one.who, one.on, one.from, one.detail]))],
};
const all = ["users", "tokens", "audit"]; // which administrators alone see

async function refresh() {
  for (const [name, [path, rows]] of Object.entries(cards)) {
    if (all.includes(name) && !admin) continue;
    fillRows(name, rows(await get(path)));
    show(byId(`${name}-card`), true);
  }
  show(byId("loading"), false);
}

/** Asks for the fields, sends them and shows what is made. */
async function dialog(title, action, fields, run) {
  const list = Object.values(fields);
  const made = await ask({ title, action, fields: list, content: [make("div", { class: "fields" }, ...list.map((one) => one.element))], place: (path) => fields[path.split(".")[0]], run: () => run((name) => fields[name].input.value.trim()) });
  if (made !== null) await refresh().catch(tell);
  return made;
}

const choice = (label, words) => field({ label, kind: "choice", options: words.map((word) => (Array.isArray(word) ? word : [word, word])), narrow: true });

async function makeToken() {
  const made = await dialog("New token", "Make it", { name: field({ label: "Name", hint: "Of the scope user: the user’s name" }), scope: choice("Scope", ["user", "worker", "viewer", "launcher", "device", "admin"]), ttl_seconds: choice("Valid", Object.entries(seconds)) },
    (of) => change("POST", "/tokens", { name: of("name"), scope: of("scope"), ttl_seconds: Number(of("ttl_seconds")) }));
  if (made === null) return;
  const secret = make("input", { type: "text", readonly: true, "aria-label": "The token" });
  secret.value = made.token;
  await ask({ title: `The token of ${made.name}`, content: [make("p", {}, "Copy it now: it cannot be shown again."), make("div", { class: "made" }, secret, copyButton(() => secret.value))] });
}

const makeGroup = () => dialog("New group", "Save it", { group: field({ label: "Name", hint: "One that there is, is replaced" }), members: field({ label: "Members", kind: "lines", hint: "A line each: USER:viewer or USER:editor" }), provided: choice("Role of the identity provider’s members", [["", "none"], "viewer", "editor"]) },
  (of) => change("PUT", at("groups", of("group")), { members: Object.fromEntries(of("members").split(/\s+/).filter(Boolean).map((one) => one.split(":", 2)).map(([user, role]) => [user, role ?? ""])), ...(of("provided") && { provided: of("provided") }) }));

const makeQuota = () => dialog("Set a quota", "Set it", { user: field({ label: "User" }), trials: field({ label: "Trials at once", numeric: true, hint: "Empty: no bound" }), gpus: field({ label: "GPUs at once", numeric: true, hint: "Empty: no bound" }) },
  (of) => change("PUT", at("quotas", of("user")), { trials: Number(of("trials")), gpus: Number(of("gpus")) }));

identity().then((who) => {
  admin = who.scope === "admin";
  setText(byId("whose"), admin ? "" : "You see what concerns you; administrators see and change all of it.");
  for (const [id, make] of [["make-token", makeToken], ["make-group", makeGroup], ["make-quota", makeQuota]]) {
    show(byId(id), admin);
    byId(id).addEventListener("click", () => make().catch(tell));
  }
  repeat(10000, refresh, (error) => {
    linkState(tell(error) ? "reconnecting" : "live");
    if (error) show(byId("loading"), false);
  });
}).catch(tell);
offerFrame();
