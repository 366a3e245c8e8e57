// The sign-in page. A token in the address's fragment never reaches a server's
// or a proxy's log; it is taken out of the address before anything else.
import { change, get } from "./api.js";
import { byId, setText, show, showError } from "./dom.js";
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

/** Goes to the identity provider, which leads back here; where to go then is kept in this tab. */
async function leave() {
  try {
    const { address } = await change("POST", "/session/provider");
    sessionStorage.setItem("next", location.search);
    location.assign(address);
  } catch (error) {
    showError(error, "login-error");
  }
}

/** Takes what the identity provider answered out of the history, and signs in with it. */
async function finish(answer) {
  const search = sessionStorage.getItem("next") ?? "";
  history.replaceState(null, "", location.pathname + search);
  sessionStorage.removeItem("next");
  try {
    if (answer.has("error")) throw new Error(`The identity provider says: ${answer.get("error_description") ?? answer.get("error")}`);
    await change("POST", "/session/provider/finish", { code: answer.get("code"), state: answer.get("state") });
    location.replace(destination(search, location.origin));
  } catch (error) {
    showError(error, "login-error");
  }
}

byId("provider").addEventListener("click", leave);
get("/session/provider").then(({ issuer }) => {
  if (issuer) setText(byId("provider"), `Sign in with ${new URL(issuer).host}`);
  show(byId("provider"), issuer !== undefined);
}).catch(() => {}); // a token will do

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(field.value.trim());
});

const given = takeToken();
const answer = new URLSearchParams(location.search);
if (given) signIn(given);
else if (answer.has("state") && (answer.has("code") || answer.has("error"))) finish(answer);
else field.focus();
// The same page may be open when a second link with a token is followed.
addEventListener("hashchange", () => {
  const token = takeToken();
  if (token) signIn(token);
});
