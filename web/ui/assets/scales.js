// Where values stand on an axis: at 0 on its one end, at 1 on the other. A value
// that a configuration does not have stands nowhere: NaN.
import { duration, measured, parameter as written } from "./format.js";

/** The axis of a parameter of the study's space. Of one with choices, a value is the place of the choice. */
export function parameterScale(parameter) {
  const missing = (parameter.when ?? []).length > 0 ? "not set" : undefined;
  if (parameter.values) return { ...choiceScale(parameter.name, parameter.values.map((value) => written(value))), missing };
  const text = (value) => written(value, parameter.type);
  const scale = parameter.log ? logScale(parameter.name, [parameter.low, parameter.high], text) : linearScale(parameter.name, [parameter.low, parameter.high], text);
  const whole = parameter.type === "int";
  return { ...scale, missing, back: whole ? (at) => Math.round(scale.back(at)) : scale.back };
}

const mostChoices = 20; // so many names can be read on an axis; of more, every so manieth has its own

/** An axis of choices, evenly spaced, with half a space at its ends. */
export function choiceScale(name, choices) {
  const at = (value) => (value + 0.5) / choices.length;
  return {
    name, choices, at,
    back: (unit) => Math.min(choices.length - 1, Math.max(0, Math.floor(unit * choices.length))),
    text: (value) => (Number.isNaN(value) ? "not set" : choices[value]),
    ticks: () => {
      const every = Math.ceil(choices.length / mostChoices);
      return choices.map((text, place) => ({ at: at(place), text })).filter((_, place) => place % every === 0);
    },
  };
}

/** An axis of numbers from low to high. */
export function linearScale(name, [low, high], text = measured) {
  const span = high - low || 1;
  return {
    name,
    at: (value) => (value - low) / span,
    back: (unit) => low + unit * span,
    text: (value) => (Number.isNaN(value) ? "not set" : text(value)),
    ticks: (most) => steps(low, high, most).map(({ value, text: short }) => ({ at: (value - low) / span, text: short })),
  };
}

/** An axis of the logarithm of positive numbers. */
export function logScale(name, [low, high], text = measured) {
  const [from, to] = [Math.log10(low), Math.log10(high)];
  const span = to - from || 1;
  const at = (value) => (Math.log10(value) - from) / span;
  return {
    name, at,
    back: (unit) => 10 ** (from + unit * span),
    text: (value) => (Number.isNaN(value) ? "not set" : text(value)),
    ticks: (most) => powers(low, high, most).map((value) => ({ at: at(value), text: short(value) })),
  };
}

/** An axis of seconds since a start, in steps that people count time in. */
export function timeScale(name, [low, high]) {
  const scale = linearScale(name, [low, high], duration);
  const counted = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
  const ticks = (most) => {
    const step = counted.find((one) => one * Math.max(1, most) >= high - low) ?? (high - low) / Math.max(1, most);
    const list = [];
    for (let place = Math.ceil(low / step); place * step <= high; place++) list.push({ at: scale.at(place * step), text: clock(place * step) });
    return list;
  };
  return { ...scale, ticks };
}

function clock(seconds) {
  if (seconds === 0) return "0";
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.round(seconds) % 60];
  return [hours > 0 && `${hours} h`, minutes > 0 && `${minutes} min`, rest > 0 && `${rest} s`].filter(Boolean).join(" ");
}

/** Round numbers from low to high, at most so many. */
function steps(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  if (!(rough > 0)) return [{ value: low, text: short(low) }];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const list = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) {
    const value = place * step;
    list.push({ value, text: Math.abs(value) >= 1e5 || (decimals > 5 && value !== 0) ? short(value) : value.toFixed(decimals).replace("-", "−") });
  }
  return list;
}

/** Powers of ten from low to high; with 2 and 5 between where there is room. */
function powers(low, high, most) {
  const list = [];
  const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
  const every = Math.max(1, Math.ceil((last - first) / Math.max(1, most)));
  const factors = (last - first) * 3 <= most ? [1, 2, 5] : [1];
  for (let power = first; power <= last; power++) {
    for (const factor of power % every === 0 ? factors : []) list.push(factor * 10 ** power);
  }
  const within = list.filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
  return within.length > 1 ? within : [low, high];
}

function short(value) {
  const plain = Number(value.toPrecision(3));
  const size = Math.abs(plain);
  const text = plain !== 0 && (size >= 1e5 || size < 1e-3) ? plain.toExponential().replace("e+", "e") : String(plain);
  return text.replace(/^-/, "−");
}
