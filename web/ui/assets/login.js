// The sign-in page. A token in the address's fragment never reaches a server's
// or a proxy's log; it is taken out of the address before anything else.
import { change } from "./api.js";
import { byId, show, showError } from "./dom.js";
import { destination } from "./session.js";

const form = byId("login");
const field = byId("token");

async function signIn(token) {
  form.querySelector("button").disabled = true;
  showError(null, "login-error");
  try {
    await change("POST", "/session", { token });
    location.replace(destination(location.search, location.origin));
  } catch (error) {
    const refused = error.status === 401 || error.status === 403;
    const text = refused ? "This token is not valid here, or no longer. Check that all of it was copied." : error.message;
    showError(new Error(text), "login-error");
    form.querySelector("button").disabled = false;
    show(form, true);
    field.focus();
  }
}

/** Takes the token out of the fragment, and the fragment out of the history. */
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(field.value.trim());
});

const given = takeToken();
if (given) signIn(given);
else field.focus();
// The same page may be open when a second link with a token is followed.
addEventListener("hashchange", () => {
  const token = takeToken();
  if (token) signIn(token);
});
