// Staying up to date: a study's event stream, and repeated fetching where
// there is no stream. Both rest while nobody looks at the page, so that many
// open tabs cost the server nothing, and both say how they fare.
import { address, get, kept, parse, studyPath } from "./api.js";
import { byId, setText, show, showError } from "./dom.js";
import { moment } from "./format.js";

const words = { loading: "loading", live: "live", reconnecting: "reconnecting", none: "" };
const patience = 2500; // milliseconds without a connection before the banner says so
const link = { state: "loading", since: new Date(), timer: null };

/** Shows in the header, and after a while in a banner, whether the page is current. */
export function linkState(state) {
  if (kept) return;
  const mark = byId("link-state");
  mark.dataset.state = state;
  setText(mark, words[state]);
  show(mark, state !== "none");
  if (state === "reconnecting") {
    link.timer ??= setTimeout(lost, patience);
  } else {
    clearTimeout(link.timer);
    link.timer = null;
    show(byId("lost"), false);
    link.since = new Date();
  }
  link.state = state;
}

function lost() {
  setText(byId("lost"), `No connection to the server. What you see is from ${moment(link.since, false)}; the page tries again by itself.`);
  show(byId("lost"), true);
}

/** Says how a fetch went: null for well, else the failure. */
export function tell(error) {
  const away = error !== null && (error.status === 0 || error.status >= 500);
  showError(error !== null && error.status !== 0 ? error : null);
  return away;
}

/** Loads the page again as soon as the server answers at the path, if only that nothing is there. */
export function reloadWhenBack(path) {
  if (kept) return;
  linkState("reconnecting");
  const reload = () => location.reload();
  const attempt = () => get(path).then(reload, (error) => (error.status === 404 ? reload() : setTimeout(attempt, 3000)));
  setTimeout(attempt, 3000);
}

/** Shows that what the page is about does not exist, in place of its content. */
export function showGone(title) {
  linkState("none");
  setText(byId("gone-title"), title);
  for (const id of ["loading", "content", "actions", "error", "reason", "description"]) if (byId(id)) show(byId(id), false);
  show(byId("gone"), true);
}

const kinds = ["study_created", "study_status", "study_extended", "study_set", "study_owner", "trial_state", "report", "checkpoint", "emulation", "search", "annotation"];

/**
 * Follows a study's events behind a sequence, each exactly once and in order,
 * whatever happens to the connection.
 *
 * The browser reconnects by itself after most faults; after an answer that is
 * not a stream it gives up, and this starts again with growing pauses. gone()
 * is called once if the study was deleted.
 */
export function follow(study, after, handle, gone) {
  if (kept) return;
  let last = after;
  let source = null;
  let pause = 1000;
  let timer = null;

  function open() {
    timer = null;
    if (document.hidden || source !== null) return;
    source = new EventSource(address(studyPath(study, `/events?after=${last}`)));
    source.addEventListener("open", () => {
      pause = 1000;
      linkState("live");
    });
    source.addEventListener("error", failed);
    for (const kind of kinds) source.addEventListener(kind, receive);
  }

  function receive(message) {
    const event = parse(message.data);
    if (event.sequence <= last) return; // sent again after a reconnect
    last = event.sequence;
    handle(event);
  }

  function failed() {
    linkState("reconnecting");
    if (source.readyState !== EventSource.CLOSED) return;
    close();
    timer = setTimeout(retry, pause);
    pause = Math.min(pause * 2, 15000);
  }

  // A plain request finds out what the stream cannot say: a session that has
  // ended leads to the sign-in page.
  async function retry() {
    try {
      await get(studyPath(study));
      open();
    } catch (error) {
      if (error.status === 404) {
        gone();
        return;
      }
      timer = setTimeout(retry, pause);
      pause = Math.min(pause * 2, 15000);
    }
  }

  function close() {
    source?.close();
    source = null;
    clearTimeout(timer);
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

/**
 * Runs an asynchronous function now and then every span of milliseconds while
 * the page is looked at. A failure is shown by onError, and tried again.
 */
export function repeat(milliseconds, run, onError) {
  if (kept) return;
  let timer = null;
  let running = false;

  async function once() {
    clearTimeout(timer);
    if (running || document.hidden) return;
    running = true;
    try {
      await run();
      onError(null);
    } catch (error) {
      onError(error);
    }
    running = false;
    timer = setTimeout(once, milliseconds);
  }

  document.addEventListener("visibilitychange", once);
  return once();
}
