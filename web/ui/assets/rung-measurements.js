// What trials measured at one rung, as the charts of a study use it.
import { fairRange, rungColour } from "./chart.js";
import { budget, count, measured, number, ordinal } from "./format.js";
import { linearScale, parameterScale } from "./scales.js";
import { label } from "./trials.js";

/** Colours between the worst and the best. */
export const shades = 9;

export class RungMeasurements {
  /** columns is what the API answers; objective is the place of the one that ranks. */
  constructor(study, columns, objective) {
    this.study = study;
    this.rung = columns.rung;
    this.budget = columns.budget;
    this.sample = columns.sample;
    this.of = columns.measured[columns.rung];
    this.objective = study.definition.objective[objective];
    this.place = objective;
    this.constrained = columns.violations !== undefined;
    this.scales = study.definition.space.parameters.map(parameterScale);
    const values = columns.values.map((column) => column.map(number));
    const parameters = columns.parameters.map((column) => column.values.map(number));
    this.rows = columns.numbers.map((trial, index) => ({
      number: trial,
      rank: columns.ranks[index],
      value: values[objective][index],
      values: values.map((column) => column[index]),
      violation: columns.violations ? number(columns.violations[index]) : 0,
      // For how many trials it stands, where there is a sample.
      stands: columns.sample && columns.ranks[index] > columns.sample.best ? columns.sample.every : 1,
      parameters: parameters.map((column) => column[index]),
    }));
    /** From 0 for the worst to 1 for the best, by rank among all that were measured at the rung. */
    for (const row of this.rows) row.good = this.of > 1 ? 1 - (row.rank - 1) / (this.of - 1) : 1;
    this.best = this.rows.find((row) => row.rank === 1);
  }

  get metric() {
    return label(this.objective);
  }

  /** The trials whose value is a number, and how many others there are. */
  finite() {
    const rows = this.rows.filter((row) => Number.isFinite(row.value));
    return { rows, without: this.rows.length - rows.length };
  }

  /** The axis of an objective, and how many values are beyond its ends. */
  valueScale(place = this.place) {
    const column = this.rows.map((row) => row.values[place]);
    const { range, outside } = fairRange(column);
    const missing = column.some(Number.isNaN) ? "NaN" : undefined;
    const scale = linearScale(label(this.study.definition.objective[place]), range);
    return { scale: { ...scale, missing, text: (value) => measured(value) }, outside };
  }

  /** Where all of this was measured, in words. */
  where() {
    return `rung ${this.rung} (${budget(this.budget)} of the data)`;
  }

  /** Whose values these are, in words, if not all. */
  chosen() {
    return sampleInWords(this.sample, this.rows.length);
  }

  /** The trial in words. */
  lines(row) {
    const violation = row.violation > 0 ? [`infeasible by ${measured(row.violation)}`] : [];
    return [`Trial ${row.number}: ${measured(row.value)}`, `place ${row.rank} of ${this.of} at rung ${this.rung}`, ...violation];
  }

  /** Everything as a table of plain values. */
  table(more = []) {
    const objectives = this.study.definition.objective.map(label);
    return {
      columns: ["trial", "rung", "rank", ...objectives, ...(this.constrained ? ["violation"] : []), ...this.scales.map((scale) => scale.name), ...more.map(([name]) => name)],
      rows: this.rows.map((row) => [
        row.number, this.rung, row.rank, ...row.values, ...(this.constrained ? [row.violation] : []),
        ...this.scales.map((scale, index) => plainValue(scale, row.parameters[index])), ...more.map(([, value]) => value(row)),
      ]),
    };
  }
}

/** Which trials of many there are, in words; "" for all. */
export function sampleInWords(sample, shown) {
  if (!sample) return "";
  const others = sample.every === 1 ? "the others" : `every ${ordinal(sample.every)} of the others`;
  return `${count(shown)} of ${count(sample.of)} trials: the best ${count(sample.best)}, and ${others}.`;
}

/** A parameter's value as it stands in tables of data; nothing where it is not set. */
export function plainValue(scale, value) {
  if (Number.isNaN(value)) return null;
  return scale.choices ? scale.choices[value] : value;
}

/** The colour of a trial: the better, the stronger. */
export const shade = (colours, good) => rungColour(colours, Math.round(good * (shades - 1)), shades);

/** What the colours of trials mean. */
export function rankLegend(colours) {
  return [{ colour: shade(colours, 1), text: "better" }, { colour: shade(colours, 0.5), text: "middle" }, { colour: shade(colours, 0), text: "worse" }];
}
