// The REST API, as the pages use it: /api/v1 with the reader's session.

const root = "/api/v1";
const file = document.getElementById("kept");

/** What a report, a page in a file, was written with: {server, written, answers by path}; null on a page of the server. */
export const kept = file && parse(file.textContent);

const home = kept?.server ?? ""; // where links lead

/** What the server answered instead of success. */
export class Failure extends Error {
  constructor(message, status, code, fields = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.fields = fields; // what is wrong with the request: [{path, message, value, line}]
  }
}

let reading = new AbortController();

/** Fetches JSON. */
export async function get(path) {
  if (kept) return fromFile(path.slice(path.startsWith(home) ? home.length : 0));
  return decode(await answered(await send(path, { signal: reading.signal })));
}

function fromFile(path) {
  if (Object.hasOwn(kept.answers, path)) return kept.answers[path];
  throw new Failure("This report does not have it: see the study's page on the server.", 0, "unreachable");
}

/**
 * Runs what takes away the thing that the page shows, and returns its answer: nothing more
 * is fetched of it, nor is what was asked for waited for. If that fails, the page goes on.
 */
export async function leaving(run) {
  reading.abort();
  try {
    return await run();
  } catch (error) {
    reading = new AbortController();
    throw error;
  }
}

/** Fetches text. */
export async function getText(path) {
  return (await answered(await send(path, {}))).text();
}

/** Sends a study file as it was written and returns the answer. */
export async function sendFile(path, kind, text) {
  const headers = { "Content-Type": kind, "Idempotency-Key": randomKey() };
  return decode(await answered(await send(path, { method: "POST", headers, body: text })));
}

let asked = null;

/** Whose session this is: {name, scope, owner, study_id}. It is asked for once a page. */
export const identity = () => (asked ??= get("/session"));

/** Sends a change and returns the answer, or null where there is none. */
export async function change(method, path, body) {
  const headers = { "Idempotency-Key": randomKey() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await answered(await send(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
  return response.status === 204 ? null : decode(response);
}

/** How a study is named among those of all owners: a user's with the user before it. */
export const referenceOf = (study) => (study.owner !== "admin" ? `${study.owner}:${study.name}` : study.name === "new" ? study.id : study.name); // /studies/new is a page

/** Address of a study's resource, for links and event streams. */
export const studyPath = (study, rest = "") => `${home}/studies/${encodeURIComponent(study)}${rest}`;

/** The same below the API's root, for what the browser fetches itself. */
export const address = (path) => home + root + path;

async function send(path, options) {
  try {
    return await fetch(root + path, { credentials: "same-origin", ...options });
  } catch {
    throw new Failure("The server cannot be reached. The page tries again by itself.", 0, "unreachable");
  }
}

async function answered(response) {
  if (response.ok) return response;
  if (response.status === 401 && location.pathname !== "/login") {
    location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
  }
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Not a problem document, such as from a proxy: the status has to do.
  }
  throw new Failure(sentence(problem, response.status), response.status, problem.code ?? "", problem.errors ?? []);
}

/** A problem document (RFC 9457) as a sentence. */
function sentence(problem, status) {
  const text = problem.detail || problem.title;
  if (!text) return `The server answered with status ${status}.`;
  const fields = (problem.errors ?? []).map((field) => `${field.path}: ${field.message}`);
  return [text, ...fields].join("; ");
}

async function decode(response) {
  return parse(await response.text());
}

/**
 * Parses JSON. Whole numbers beyond 2^53, such as seeds, become BigInts where
 * the browser tells their digits, so that none is shown rounded.
 */
export function parse(text) {
  return JSON.parse(text, (key, value, context) => {
    const large = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
    return large && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
  });
}

// crypto.randomUUID needs a secure context; a server in a lab is often plain HTTP.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
