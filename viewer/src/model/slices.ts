// Slices of a run, and the steps from one to its neighbours.
import { NO_PARENT, type ColumnName, type Decoded } from "../decode/assemble";
import type { Column, Numbers } from "../decode/columns";
import type { Pyramid } from "../decode/pyramid";

export const NONE = -1;

export class Slices {
  readonly count: number;
  readonly begin: Numbers;
  readonly parent: Uint32Array;
  readonly columns: Record<ColumnName, Column>;
  readonly rowStart: Uint32Array;
  readonly trackRow: Uint32Array;
  readonly pyramid: Pyramid;

  constructor(decoded: Decoded) {
    this.count = decoded.slices;
    this.begin = decoded.begin;
    this.parent = decoded.parent;
    this.columns = decoded.columns;
    this.rowStart = decoded.rowStart;
    this.trackRow = decoded.trackRow;
    this.pyramid = decoded.pyramid;
  }

  value(name: ColumnName, slice: number): number {
    const column = this.columns[name];
    return column.array ? column.array[slice] : column.value;
  }

  functionOf(slice: number): number {
    return this.value("function", slice);
  }

  duration(slice: number): number {
    return this.value("duration", slice);
  }

  end(slice: number): number {
    return this.begin[slice] + this.value("duration", slice);
  }

  isMerged(slice: number): boolean {
    return this.value("calls", slice) > 1;
  }

  /** Row (of all tracks) of a slice. */
  rowOf(slice: number): number {
    return upperBound(this.rowStart, slice, 0, this.rowStart.length) - 1;
  }

  trackOf(slice: number): number {
    return this.trackOfRow(this.rowOf(slice));
  }

  trackOfRow(row: number): number {
    return upperBound(this.trackRow, row, 0, this.trackRow.length) - 1;
  }

  depthOf(slice: number): number {
    const row = this.rowOf(slice);
    return row - this.trackRow[this.trackOfRow(row)];
  }

  /** First slice of a row that begins after a position. */
  firstAfter(row: number, position: number): number {
    return upperBound(this.begin, position, this.rowStart[row], this.rowStart[row + 1]);
  }

  /** Slice of a row at a position, or NONE. */
  at(row: number, position: number): number {
    const slice = this.firstAfter(row, position) - 1;
    return slice >= this.rowStart[row] && this.end(slice) > position ? slice : NONE;
  }

  /** Slice of a row with the least distance to a position, or NONE in an empty row. */
  nearest(row: number, position: number): number {
    const after = this.firstAfter(row, position);
    const before = after - 1;
    const hasAfter = after < this.rowStart[row + 1];
    if (before < this.rowStart[row]) return hasAfter ? after : NONE;
    if (!hasAfter) return before;
    return position - this.end(before) <= this.begin[after] - position ? before : after;
  }

  caller(slice: number): number {
    const parent = this.parent[slice];
    return parent === NO_PARENT ? NONE : parent;
  }

  /** Slices that a slice calls: [first, end). */
  callees(slice: number): [number, number] {
    const row = this.rowOf(slice);
    if (row + 1 >= this.trackRow[this.trackOfRow(row) + 1]) return [0, 0];
    const [from, to] = [this.rowStart[row + 1], this.rowStart[row + 2]];
    // Callees whose caller is not known come before all others.
    const first = lowerParent(this.parent, slice, from, to);
    return [first, lowerParent(this.parent, slice + 1, first, to)];
  }

  sibling(slice: number, step: 1 | -1): number {
    const row = this.rowOf(slice);
    const next = slice + step;
    return next >= this.rowStart[row] && next < this.rowStart[row + 1] ? next : NONE;
  }
}

/** First index in [from, to) of an ascending array with a value above `value`. */
export function upperBound(array: Numbers, value: number, from: number, to: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lowerParent(parent: Uint32Array, value: number, from: number, to: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (parent[middle] === NO_PARENT || parent[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
