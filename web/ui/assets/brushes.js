// Which part of each axis is wanted. A brush is {low, high, missing} between 0
// and 1 of an axis of numbers, or {places, missing} of an axis of choices;
// missing says that trials without a value there are wanted as well. An axis
// without a brush wants everything.

/** Whether a value on the axis is wanted. */
export function wants(scale, brush, value) {
  if (!brush) return true;
  if (Number.isNaN(value)) return brush.missing;
  if (scale.choices) return brush.places.has(value);
  const at = Math.min(1, Math.max(0, scale.at(value)));
  return at >= brush.low - 1e-9 && at <= brush.high + 1e-9;
}

/** The brush of what lies between two places; a place below 0 is where values are missing. Null if that is everything. */
export function between(scale, from, to) {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  const missing = scale.missing !== undefined && low < -0.02;
  if (scale.choices) {
    const places = new Set(scale.choices.map((_, place) => place).filter((place) => scale.at(place) >= low && scale.at(place) <= high));
    return simplified(scale, { places, missing });
  }
  return simplified(scale, { low: Math.min(1, Math.max(0, low)), high: Math.min(1, Math.max(0, high)), missing });
}

/** Null instead of a brush that wants everything. */
export function simplified(scale, brush) {
  const whole = scale.choices ? brush.places.size === scale.choices.length : brush.low <= 0 && brush.high >= 1;
  return whole && (brush.missing || scale.missing === undefined) ? null : brush;
}

/** The brush in words. */
export function inWords(scale, brush) {
  const missing = brush.missing ? [scale.missing] : [];
  if (scale.choices) return [...[...brush.places].sort((a, b) => a - b).map((place) => scale.choices[place]), ...missing].join(" or ") || "nothing";
  return [`${scale.text(scale.back(brush.low))} to ${scale.text(scale.back(brush.high))}`, ...missing].join(" or ");
}

/** The brush as a part of an address, and back; anything else is no brush. */
export function encoded(brush) {
  const missing = brush.missing ? "m" : "";
  return brush.places ? `p${[...brush.places].sort((a, b) => a - b).join(".")}${missing}` : `${Math.round(brush.low * 1000)}-${Math.round(brush.high * 1000)}${missing}`;
}

export function decoded(scale, text) {
  const missing = text.endsWith("m") && scale.missing !== undefined;
  const choices = /^p((?:\d+\.)*\d*)m?$/.exec(text);
  if (choices && scale.choices) {
    const places = new Set(choices[1].split(".").filter(Boolean).map(Number).filter((place) => place < scale.choices.length));
    return simplified(scale, { places, missing });
  }
  const numbers = /^(\d{1,4})-(\d{1,4})m?$/.exec(text);
  if (!numbers || scale.choices) return null;
  const [low, high] = [Number(numbers[1]) / 1000, Number(numbers[2]) / 1000];
  return low <= high && high <= 1 ? simplified(scale, { low, high, missing }) : null;
}
