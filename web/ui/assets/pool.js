// The pool as a whole: what trials want of it, what they will want, how many GPUs
// should therefore be awake, and who runs where.
import { get, identity } from "./api.js";
import { DemandChart, gpus } from "./demand-chart.js";
import { byId, fillRows, make, setText, show } from "./dom.js";
import { count, duration, measured, moment, nothing, several, share } from "./format.js";
import { Figures } from "./figures.js";
import { offerFrame } from "./frame.js";
import { drawGPUModels } from "./gpu-models.js";
import { drawLaunches } from "./launches.js";
import { linkState, repeat, tell } from "./live.js";
import { drawPlacement } from "./placement.js";
import { drawReservations } from "./reservations.js";

const chart = new DemandChart(byId("demand-chart"));
const figures = new Figures(byId("figures"));
const told = [0.1, 0.5, 0.9, 0.95, 0.99]; // quantiles that tables show
let advice = null;
let touched = false; // the reader has moved the knob

const percent = (quantile) => `${Math.round(quantile * 1000) / 10}\u00a0%`;
const percentFine = (part) => `${Math.round(part * 10000) / 100}\u00a0%`;
const row = (head, ...cells) => make("tr", {}, make("th", { scope: "row" }, head), ...cells.map((cell) => make("td", { class: "number" }, cell)));

function drawFigures(forecast) {
  const now = forecast.minutes.at(-1);
  const unit = forecast.unit;
  const then = now ? `${unit}, in the minute of ${moment(now.at, false).slice(0, 5)}` : unit;
  figures.set("held", { term: "Held", value: now ? gpus(now.running) : nothing, detail: then });
  figures.set("waiting", { term: "Waited for", value: now ? gpus(now.waiting) : nothing, detail: then });
  figures.set("there", { term: "There", value: now ? gpus(now.capacity) : nothing, detail: `${unit} of connected workers` });
  const last = forecast.ahead.at(-1);
  figures.set("ahead", {
    term: "In five minutes", value: last ? gpus(last.demand[forecast.quantiles.indexOf(0.5)]) : nothing, estimate: last !== undefined,
    detail: last ? `at most ${gpus(last.demand[forecast.quantiles.indexOf(0.9)])} with 90\u00a0%` : "no forecast yet",
  });
  if (!advice) return;
  figures.set("wanted", { term: "Should be awake", value: gpus(advice.wanted), estimate: advice.method !== undefined, detail: `of ${gpus(advice.total)}, for ${percent(advice.performance)} of the demand` });
  const saved = advice.saved;
  figures.set("saved", {
    term: "Saved by sleep", value: saved ? share(saved.share) : nothing, estimate: saved !== undefined,
    detail: saved ? `${measured(saved.joules / 3.6e6)} kWh in ${several(saved.minutes, "minute")}; ${share(saved.served)} of the demand was served` : "known after an hour",
  });
}

function drawForecast(forecast) {
  show(byId("demand"), forecast.minutes.length > 0);
  if (forecast.minutes.length > 0) chart.draw(forecast);
  const gaps = forecast.gaps.length > 0 ? `Hatched: nobody looked, ${forecast.gaps.length === 1 ? "once" : `${count(forecast.gaps.length)} times`}.` : "";
  const whose = forecast.owner ? `The demand of ${forecast.owner} alone.` : "";
  setText(byId("demand-note"), [whose, gaps, forecast.method ? `Forecast by ${forecast.method}: an estimate.` : "", forecast.calibration && forecast.ahead.length > 0 ? trusted(forecast) : "", forecast.reason ? `${forecast.method ? "Why that" : "No forecast yet"}: ${forecast.reason}.` : ""].filter(Boolean).join(" "));
  fillRows("ahead", forecast.ahead.map((one) => row(moment(one.at, false).slice(0, 5), ...told.map((quantile) => gpus(one.demand[forecast.quantiles.indexOf(quantile)])))));
  show(byId("ahead-frame"), forecast.ahead.length > 0);
  const users = forecast.users ?? [];
  show(byId("users-card"), users.length > 0);
  fillRows("users", users.map((one) => row(one.owner, gpus(one.running), gpus(one.waiting))));
}

const trusts = {
  unsure: { tag: "too early to say", said: () => "Too few minutes were forecast for a verdict: the fan may be right or wrong." },
  good: { tag: "holds", said: () => "The fan holds: the demand was within it as often as forecast." },
  optimistic: { tag: "too low", said: (above) => `The fan is too low: the demand was above its 90\u00a0% in ${above} of the minutes instead of 10\u00a0%. Ask for a higher share with the knob, or keep more awake.` },
  cautious: { tag: "too high", said: (above) => `The fan is too high: the demand was above its 90\u00a0% in only ${above} of the minutes instead of 10\u00a0%. Nobody waits for that, but less is saved than could be.` },
  uneven: { tag: "holds above", said: () => "The upper part of the fan, which GPUs are kept awake for, holds; the lower part does not." },
};

/** Whether the fan can be trusted, in a sentence. */
const trusted = ({ calibration, quantiles }) => trusts[calibration.trust].said(percent(1 - calibration.covered[quantiles.indexOf(0.9)]));

/** A share, or a range of shares where they differ. */
const between = (least, most) => (percent(least) === percent(most) ? percent(least) : `${Math.round(least * 1000) / 10}–${percent(most)}`);

function drawTrust({ calibration, learned, quantiles }) {
  show(byId("trust"), calibration !== undefined || learned !== undefined);
  show(byId("coverage-part"), calibration !== undefined);
  if (calibration) {
    fillRows("coverage", quantiles.map((quantile, place) => row(percent(quantile), between(calibration.covered_least[place], calibration.covered_most[place]), calibration.verdicts[place])));
    setText(byId("coverage-note"), `${several(calibration.minutes, "minute")} of the last day had a forecast five minutes before. Of many minutes, the second column should be the first, or a range around it: half a GPU more or less counts as the same. A verdict also allows for chance.`);
    const tag = byId("trust-tag");
    setText(tag, trusts[calibration.trust].tag);
    tag.classList.toggle("good", calibration.trust === "good" || calibration.trust === "uneven");
    setText(byId("trust-said"), trusted({ calibration, quantiles }));
  }
  show(byId("trust-tag"), calibration !== undefined);
  show(byId("learned-part"), learned !== undefined);
  if (!learned) return;
  fillRows("tried", learned.tried.map((one) => make("tr", {}, make("th", { scope: "row" }, one.method), make("td", { class: "number" }, one.pinball === undefined ? nothing : measured(one.pinball)), make("td", {}, one.reason ?? ""))));
  setText(byId("learned-note"), [
    `Learned ${moment(learned.at)} from ${several(learned.minutes, "minute")} in ${duration(learned.seconds)}.`,
    learned.judged_on > 0 ? `Compared on the ${several(learned.judged_on, "minute")} after them, which no method had learned from. The simplest stands, unless another has less loss by more than chance.` : "",
    learned.bridged > 0 ? `${several(learned.bridged, "minute")} that nobody saw stand for the one before.` : "",
  ].filter(Boolean).join(" "));
}

/** What the knob aims at for a performance, corrected by what was seen: of what may go unserved always the same part. */
const aimFor = (performance) => (advice.correction && advice.performance < 1 ? 1 - ((1 - performance) * (1 - advice.correction.aim)) / (1 - advice.performance) : performance);

/** The lowest setting that served so much, or the highest there is. */
const settingFor = (performance) => advice.settings.find(({ served }) => served >= performance) ?? advice.settings.at(-1);

/** How the knob did, and what it aims at therefore, in a sentence. */
function corrected(performance) {
  if (!advice.correction) return "";
  const { minutes, served } = advice.correction;
  const [asked, aim] = [percentFine(performance), percentFine(aimFor(performance))];
  const aims = asked === aim ? "so that nothing is corrected" : `so that the knob aims at ${aim} for ${asked}`;
  return ` Held against the last ${several(minutes, "minute")}, the server’s setting would have served ${percentFine(served)} of the demand, ${aims} (estimates).`;
}

function drawKnob() {
  const { settings, power, unit, total } = advice;
  show(byId("knob"), true);
  show(byId("knob-control"), settings.length > 0);
  const slider = byId("performance");
  if (!touched) slider.value = String(Math.round(advice.performance * 1000));
  const performance = Number(slider.value) / 1000;
  setText(byId("performance-value"), percent(performance));
  if (settings.length === 0) {
    setText(byId("knob-said"), `${advice.reason}.`);
    fillRows("settings", []);
    show(byId("settings-frame"), false);
    return;
  }
  const aim = aimFor(performance);
  const chosen = settingFor(aim);
  const reached = chosen.served >= aim ? "" : ` No setting serves ${percentFine(aim)}; this one serves the most.`;
  slider.setAttribute("aria-valuetext", `${percent(performance)}: ${gpus(chosen.wanted)} of ${gpus(total)} awake`);
  setText(byId("knob-said"), `${gpus(chosen.wanted)} of ${gpus(total)} ${unit} awake now. On recorded minutes that served ${percent(chosen.served)} of the demand and saved ${percent(Math.max(0, chosen.saved))} of the idle energy: estimates.${reached}${corrected(performance)}`);
  fillRows("settings", settings.map((one) => make("tr", { "aria-current": one === chosen ? "true" : null },
    make("th", { scope: "row" }, percent(one.quantile), one === chosen ? make("span", { class: "tag good" }, "chosen") : null),
    ...[percent(one.served), percent(one.met), percent(one.saved), gpus(one.wanted)].map((cell) => make("td", { class: "number" }, cell)))));
  show(byId("settings-frame"), true);
  setText(byId("knob-note"), `Assumed, not measured: an idle GPU draws ${gpus(power.awake_watts)} W awake and ${gpus(power.asleep_watts)} W asleep, and takes ${several(power.delay_minutes, "minute")} to wake up. The slider tries; the server keeps to ${percent(advice.performance)} (tandem serve --pool-performance).`);
}

function drawWorkers() {
  const { workers, missing, unit } = advice;
  show(byId("steps-card"), workers.length > 0 || missing > 0);
  fillRows("steps", workers.map((one) => make("tr", {}, make("th", { scope: "row" }, make("a", { href: `/workers?worker=${encodeURIComponent(one.id)}` }, one.name)),
    make("td", {}, make("span", { class: one.action === "keep" ? "tag" : "tag good" }, one.action)),
    make("td", { class: "number" }, gpus(one.capacity)), make("td", { class: "number" }, count(one.trials)), make("td", {}, one.reason))));
  setText(byId("steps-note"), `${missing > 0 ? `${gpus(missing)} ${unit} are wanted that no known worker has. ` : ""}Advice only: tandem launch starts workers while trials wait, and lets them go.`);
}

async function refresh() {
  const { scope } = await identity();
  const [forecast, found, pool, { reservations }, { launchers }] = await Promise.all([
    get(`/pool/forecast?minutes=${byId("span").value}`), scope === "user" ? null : get("/pool/advice"), get("/pool"), get("/reservations"), get("/pool/launches"),
  ]);
  advice = found;
  show(byId("loading"), false);
  show(byId("content"), true);
  show(byId("nothing"), forecast.minutes.length === 0);
  setText(byId("nothing-why"), forecast.reason ? `${forecast.reason}.` : "");
  setText(byId("count"), forecast.recorded > 0 ? `${several(forecast.recorded, "minute")} recorded` : "");
  drawFigures(forecast);
  drawForecast(forecast);
  drawTrust(forecast);
  drawReservations(reservations);
  drawLaunches(launchers, ask);
  drawPlacement(pool);
  drawGPUModels(pool.gpu_models);
  if (!advice) return;
  drawKnob();
  drawWorkers();
}

/** Asks for a change, and shows what came of it. */
const ask = (run) => run().then(refresh).catch((error) => tell(error));

offerFrame();
// Whether the details are open is in the address.
const behind = byId("behind");
behind.open = new URLSearchParams(location.search).has("details");
behind.addEventListener("toggle", () => history.replaceState(null, "", behind.open ? "?details=1" : location.pathname));
byId("span").addEventListener("change", () => refresh().catch((error) => tell(error)));
byId("performance").addEventListener("input", () => {
  touched = true;
  if (advice) drawKnob();
});
byId("performance-reset").addEventListener("click", () => {
  touched = false;
  if (advice) drawKnob();
});
repeat(10000, refresh, (error) => {
  linkState(tell(error) ? "reconnecting" : "live");
  if (error) show(byId("loading"), false);
});
