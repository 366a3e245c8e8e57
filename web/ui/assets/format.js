// How the pages write numbers: four significant digits, the same units
// everywhere. Each function takes what the API sends and returns text.

export const nothing = "–";

/** A metric or joules: a number, or one of "NaN", "Infinity", "-Infinity". */
export function number(value) {
  if (typeof value === "string") return { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity }[value] ?? NaN;
  return value === undefined || value === null ? NaN : Number(value);
}

const thousands = (value) => value.toLocaleString("en", { maximumFractionDigits: 0 });

function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return value.toExponential(3);
  return size >= 9999.5 ? thousands(value) : value.toPrecision(4);
}

/** A measured value, such as 0.9134 or 1.235e-5. */
export function measured(value) {
  if (value === undefined || value === null) return nothing;
  const plain = number(value);
  if (Number.isNaN(plain)) return "NaN";
  if (!Number.isFinite(plain)) return plain > 0 ? "∞" : "−∞";
  return digits(plain).replace("-", "−").replace("e−", "e-").replace("e+", "e");
}

/** By how much constraints are missed: infinite where something was no number. */
export const missed = (violation) => (number(violation) === Infinity ? "unknown" : measured(violation));
export const infeasible = (violation) => (number(violation) === Infinity ? "infeasible" : `infeasible by ${measured(violation)}`);

/** A parameter's value: of a float as measured, of others without zeros that carry nothing. */
export function parameter(value, type = "") {
  if (value === undefined || value === null) return nothing;
  if (typeof value !== "number") return String(value);
  if (type === "float") return measured(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value).replace("-", "−");
  const text = measured(value);
  return text.includes(".") ? text.replace(/\.?0+(e|$)/, "$1") : text;
}

/** A text that begins like a sentence; a field's name stays as it is. */
export const sentence = (text) => (/^[a-z]+[._]/.test(text) ? text : text ? text.charAt(0).toUpperCase() + text.slice(1) : "");

/** What happened: behind the first line a trial's reason has the end of its script's standard error. */
export const firstLine = (text) => (text ?? "").split("\n", 1)[0];

/** A place in a row: 1st, 2nd, 13th. */
export function ordinal(number) {
  const endings = ["th", "st", "nd", "rd"];
  const rest = number % 100;
  return `${count(number)}${endings[(rest - 20) % 10] ?? endings[rest] ?? "th"}`;
}

/** How often something happened. */
export const times = (value) => (value === 1 ? "once" : value === 0 ? "never" : `${count(value)} times`);

/** A whole number of things. */
export const count = (value) => (value === undefined || value === null ? nothing : thousands(value));

/** So many of a thing: 1 run, 12 runs. */
export const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A length of time: 0.42 s, 12.3 s, 4 min 05 s, 3 h 20 min. */
export function duration(value) {
  const seconds = number(value);
  if (!Number.isFinite(seconds) || seconds < 0) return nothing;
  if (seconds === 0) return "0 s";
  if (seconds < 0.01) return "< 0.01 s";
  if (seconds < 9.995) return seconds.toFixed(2) + " s";
  if (seconds < 59.95) return seconds.toFixed(1) + " s";
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  const minutes = Math.round(seconds / 60);
  return `${thousands(Math.floor(minutes / 60))} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** A length of time in words, for estimates: no more digits than it is worth. */
export function roughly(value) {
  const seconds = number(value);
  if (!Number.isFinite(seconds) || seconds < 0) return nothing;
  if (seconds < 10) return "seconds";
  if (seconds < 60) return `${Math.round(seconds / 10) * 10} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Joules with their unit: 412.0 J, 1.250 kJ, 3.600 MJ. */
export function joules(value) {
  const plain = number(value);
  if (!Number.isFinite(plain)) return nothing;
  const [scale, unit] = plain >= 999.95e3 ? [1e6, "MJ"] : plain >= 999.95 ? [1e3, "kJ"] : [1, "J"];
  return `${digits(plain / scale)} ${unit}`;
}

/** Energy as the API sends it; null when nothing was metered. */
export function energy(spent) {
  if (!spent || !spent.method) return null;
  return { text: joules(spent.joules), estimate: spent.method.startsWith("estimate"), method: spent.method };
}

/** What training cost, as a figure; null where the server has no prices. */
export function cost(spent) {
  if (!spent) return null;
  const money = spent.currency ? `${digits(number(spent.amount ?? 0))} ${spent.currency}` : "";
  const grams = spent.co2_g === undefined ? "" : `${digits(number(spent.co2_g))} g CO₂`;
  const of = spent.method ? "" : "of hours of machines only"; // how energy was metered stands beside it
  return { term: money ? "Cost" : "CO₂", value: money || grams, estimate: spent.method?.startsWith("estimate") ?? false, detail: [money && grams, of].filter(Boolean).join(" · "), title: spent.method ?? "" };
}

/** Bytes with their unit, as the command line has them: 640 B, 3.5 GiB. */
export function bytes(value) {
  const power = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${Number((value / 1024 ** power).toPrecision(4))} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** A share of the data: 25 %, 3.7 %. */
export function share(fraction) {
  const percent = fraction * 100;
  return `${percent >= 9.95 ? Math.round(percent) : Number(percent.toPrecision(2))}\u00a0%`;
}

/** A budget: 9 epochs · 33 %. */
export function budget(spend, short = false) {
  const amount = spend.seconds ? duration(spend.seconds) : spend.joules ? joules(spend.joules) : "";
  if (amount) return `${amount} · ${share(spend.data_fraction)}`;
  const epochs = short ? "ep" : spend.epochs === 1 ? "epoch" : "epochs";
  return `${count(spend.epochs)} ${epochs} · ${share(spend.data_fraction)}`;
}

const two = (value) => String(value).padStart(2, "0");

/** A moment in the reader's time zone: 2026-11-21 14:03:07. */
export function moment(text, withDate = true) {
  if (!text) return nothing;
  const at = new Date(text);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return withDate ? `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}` : clock;
}

/** How long ago something was. */
export function ago(seconds) {
  return seconds < 1 ? "just now" : `${duration(seconds < 60 ? Math.round(seconds) : seconds).replace(/\.00? s/, " s").replace(/\.0 s/, " s")} ago`;
}
