// How charts are pointed at. A mouse points by moving and opens by a click. A
// finger points by a tap, or by moving along, and opens by a second tap on the
// same thing; what it has pointed at stays until it taps elsewhere.

/**
 * point(event) shows what is at a place and returns what that is, as something
 * that === knows again, or null; leave() hides it; open(event), if given, goes
 * on to it. end, if given, is a signal that ends it all.
 */
export function pointing(element, { point, leave, open, end }) {
  let finger = false;
  let [now, before] = [null, null]; // what is shown, and what was when the finger came down
  const listen = (on, kind, run) => on.addEventListener(kind, run, { signal: end });
  const away = () => {
    now = null;
    leave();
  };
  listen(element, "pointerdown", (event) => {
    finger = event.pointerType === "touch";
    if (finger) [before, now] = [now, point(event)];
  });
  listen(element, "pointermove", (event) => (now = point(event)));
  listen(element, "pointerleave", (event) => event.pointerType !== "touch" && away());
  listen(element, "click", (event) => {
    if (open && (!finger || (now !== null && now === before))) open(event);
  });
  listen(document, "pointerdown", (event) => event.pointerType === "touch" && !element.contains(event.target) && away());
}
