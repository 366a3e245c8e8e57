// What an encrypted or confidential study tells, in a banner, and how far each of its
// trials is with its key, as its worker says.
import { byId, make, show } from "./dom.js";
import { bytes, count, moment, nothing, several } from "./format.js";

/** Shows the banner; it stays hidden for a study in the clear. */
export function drawConfidential(study) {
  const { encryption, confidential: terms } = study.definition;
  const box = byId("confidential");
  const parts = terms ? closed(study, terms) : encryption ? encrypted(encryption) : [];
  show(box, parts.length > 0);
  const next = make("div", {}, ...parts);
  if (box.firstElementChild?.isEqualNode(next)) return; // a selection in it survives
  box.replaceChildren(next);
}

const encrypted = ({ recipients, datasets }) => [
  make("strong", {}, "Encrypted."), ` Checkpoints${datasets ? " and data sets" : ""} can be read with ${several(recipients.length, "key")} only. The server sees parameters, metrics, output, times and sizes (`, make("code", {}, "docs/encryption.md"), ").",
];

/** What becomes of a script's output. */
export const outputOf = ({ log }) => (log === "none" ? "No output leaves the machine." : "Of output, only the end of a failure leaves the machine, encrypted.");

function closed(study, terms) {
  const { epochs, disclosed } = study.progress;
  const told = Object.entries(terms.metrics).map(([name, { low, high, round }]) => `${name} (${low} to ${high} in steps of ${round})`).join(", ");
  return [
    make("strong", {}, "Confidential."), " The key goes only to machines of the policy ", make("code", { title: terms.policy }, terms.policy.slice(0, 12)), `. Scripts there tell only ${told}. ${outputOf(terms)} `,
    make("span", {}, `Metrics of ${several(epochs, "epoch")} can have told at most ${several(disclosed.bits, "bit")} (${bytes(Math.ceil(disclosed.bits / 8))}).`),
    ` The key was released to ${[several(disclosed.released, "lease"), disclosed.refused > 0 && `refused to ${count(disclosed.refused)}`, disclosed.attesting > 0 && `asked for by ${several(disclosed.attesting, "trial")} now`].filter(Boolean).join(", ")}. `,
    "It does not protect from whoever has a machine in their hands, nor from flaws of firmware that the policy takes. Timing, sizes, joules and the study file are not hidden (", make("code", {}, "docs/confidential.md"), ").",
  ];
}

/** Whether its worker asks the broker for the key. */
export const attesting = (trial) => trial.state === "leased" && trial.attestation?.state === "attesting";

/** How far a trial's newest lease is with its key. */
export function keyText({ state, attestation: key }) {
  if (!key || (key.state === "attesting" && state !== "leased")) return nothing;
  const words = { attesting: "asked for", released: "released", refused: `refused${key.code ? `: ${key.code}` : ""}`, unanswered: "no answer" };
  return `${words[key.state] ?? key.state}, ${moment(key.since, false)}`;
}

/** The same, with whose word it is. */
export const keyHint = (study, { attestation: key }) => (key
  ? `lease ${key.lease_epoch}, by the policy ${study.definition.confidential?.policy.slice(0, 12)}, ${moment(key.since)}: as its worker says${key.kept ? ", and what the broker signed is kept: 'tandem study attestations' checks it" : ""}` : null);

/** The mark beside a trial's state. */
export const keyTag = (trial) => (attesting(trial) ? [make("span", { class: "tag", title: "its worker asks the broker for the key: nothing has started, and no clock of an epoch runs" }, "attesting")] : []);
