// Staying up to date: a study's event stream, and repeated fetching where
// there is no stream. Both rest while nobody looks at the page, so that many
// open tabs cost the server nothing, and both say how they fare.
import { address, get, parse, studyPath } from "./api.js";
import { byId, setText } from "./dom.js";

const words = {
  loading: "loading",
  live: "live",
  reconnecting: "reconnecting",
};

/** Shows in the header whether what the page shows is current. */
export function linkState(state) {
  const mark = byId("link-state");
  mark.dataset.state = state;
  setText(mark, words[state]);
}

const kinds = ["study_created", "study_status", "trial_state", "report", "checkpoint", "search"];

/**
 * Follows a study's events behind a sequence, each exactly once and in order,
 * whatever happens to the connection.
 *
 * The browser reconnects by itself after most faults; after an answer that is
 * not a stream it gives up, and this starts again with growing pauses.
 */
export function follow(study, after, handle) {
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
    pause = Math.min(pause * 2, 30000);
  }

  // A plain request finds out what the stream cannot say: a session that has
  // ended leads to the sign-in page.
  async function retry() {
    try {
      await get(studyPath(study));
      open();
    } catch {
      timer = setTimeout(retry, pause);
      pause = Math.min(pause * 2, 30000);
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
