// An estimate of what lies between measured points of a plane: a mean of the
// values around, weighted by a Gaussian kernel (Nadaraya and Watson, 1964), as
// wide on each axis as Scott's rule says (1992). It is an estimate of the
// objective with the other parameters as they happened to be, not a measurement.

const narrowest = 0.04; // of an axis: what lies closer is one place to the eye
const farthest = 2.5; // bandwidths from the nearest point beyond which nothing is said

export class Smoothing {
  /**
   * points are {x, y, value, weight}, with x and y from 0 to 1; weight is for how
   * many a point stands. Along an axis of choices nothing is estimated between them.
   */
  constructor(points, choices) {
    this.points = points;
    this.choices = choices;
    this.widths = ["x", "y"].map((axis) => {
      const all = points.reduce((sum, point) => sum + point.weight, 0);
      const mean = points.reduce((sum, point) => sum + point.weight * point[axis], 0) / all;
      const variance = points.reduce((sum, point) => sum + point.weight * (point[axis] - mean) ** 2, 0) / all;
      return Math.max(narrowest, Math.sqrt(variance) * points.length ** (-1 / 6));
    });
  }

  /** The estimate at a place, without one of the points if asked; NaN where no point is near. */
  at(x, y, without = null) {
    const [wide, high] = this.widths;
    let [sum, weights, strongest] = [0, 0, 0];
    for (const point of this.points) {
      if (point === without) continue;
      if (this.choices.x && Math.abs(point.x - x) > 1e-9 || this.choices.y && Math.abs(point.y - y) > 1e-9) continue;
      const [across, up] = [(point.x - x) / wide, (point.y - y) / high];
      const near = Math.exp(-0.5 * (across * across + up * up));
      sum += near * point.weight * point.value;
      weights += near * point.weight;
      if (near > strongest) strongest = near;
    }
    return strongest < Math.exp(-0.5 * farthest * farthest) ? NaN : sum / weights;
  }

  /** By how much it misses a measured value in the median when that one is left out, over at most 500 of them. */
  error() {
    const every = Math.ceil(this.points.length / 500);
    const misses = this.points.filter((_, index) => index % every === 0).map((point) => Math.abs(this.at(point.x, point.y, point) - point.value)).filter((miss) => !Number.isNaN(miss)).sort((a, b) => a - b);
    return misses.length > 0 ? misses[Math.floor(misses.length / 2)] : NaN;
  }
}

/**
 * The lines along which a grid of values has a value: pairs of places in rows
 * and columns ("marching squares"). values[row][column]; NaN has no lines.
 */
export function isolines(values, level) {
  const lines = [];
  for (let row = 0; row + 1 < values.length; row++) {
    for (let column = 0; column + 1 < values[row].length; column++) {
      const corners = [[row, column], [row, column + 1], [row + 1, column + 1], [row + 1, column]];
      const heights = corners.map(([r, c]) => values[r][c]);
      if (heights.some(Number.isNaN)) continue;
      const crossings = [];
      for (let side = 0; side < 4; side++) {
        const [a, b] = [heights[side], heights[(side + 1) % 4]];
        if (a < level === b < level) continue;
        const part = (level - a) / (b - a);
        const [from, to] = [corners[side], corners[(side + 1) % 4]];
        crossings.push([from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1])]);
      }
      for (let pair = 0; pair + 1 < crossings.length; pair += 2) lines.push([crossings[pair], crossings[pair + 1]]);
    }
  }
  return lines;
}
