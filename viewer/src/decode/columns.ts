// Columns of a chunk: byte planes, differences and constants.
import type { ChunkHead, ColumnType } from "../data/head";

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Values of one column: an array, or one value for all rows. */
export interface Column {
  array: Numbers | null;
  value: number;
}

export const WIDTH: Record<ColumnType, number> = { u8: 1, u16: 2, u32: 4, u64: 8 };

/** Array for values of so many bytes; integers of 8 bytes are below 2^53. */
export function arrayOf(width: number, length: number): Numbers {
  if (width === 1) return new Uint8Array(length);
  if (width === 2) return new Uint16Array(length);
  if (width === 4) return new Uint32Array(length);
  return new Float64Array(length);
}

function undoPlanes(bytes: Uint8Array, offset: number, rows: number, width: number): Numbers {
  const values = arrayOf(width, rows);
  if (width === 1) {
    values.set(bytes.subarray(offset, offset + rows));
    return values;
  }
  const [p1, p2, p3] = [offset + rows, offset + 2 * rows, offset + 3 * rows];
  if (width === 2) {
    for (let i = 0; i < rows; i++) values[i] = bytes[offset + i] | (bytes[p1 + i] << 8);
    return values;
  }
  for (let i = 0; i < rows; i++) {
    values[i] = (bytes[offset + i] | (bytes[p1 + i] << 8) | (bytes[p2 + i] << 16) | (bytes[p3 + i] << 24)) >>> 0;
  }
  if (width === 4) return values;
  const [p4, p5, p6] = [offset + 4 * rows, offset + 5 * rows, offset + 6 * rows];
  for (let i = 0; i < rows; i++) {
    values[i] += (bytes[p4 + i] | (bytes[p5 + i] << 8) | (bytes[p6 + i] << 16)) * 4294967296;
  }
  return values;
}

// Zigzag differences; sums are exact below 2^53.
function undoDelta(values: Numbers): Float64Array {
  const sums = new Float64Array(values.length);
  let sum = 0;
  if (values instanceof Float64Array) {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      sums[i] = sum += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
  } else {
    for (let i = 0; i < values.length; i++) {
      const half = values[i] >>> 1;
      sums[i] = sum += values[i] & 1 ? -half - 1 : half;
    }
  }
  return sums;
}

/** Column of an inflated chunk; null where the chunk leaves it out. */
export function readColumn(head: ChunkHead, bytes: Uint8Array, name: string): Column | null {
  let offset = 0;
  for (const column of head.columns) {
    const width = column[2] === "const" ? 0 : WIDTH[column[1]];
    if (column[0] === name) {
      if (column[2] === "const") return { array: null, value: column[3] ?? 0 };
      if (offset + width * head.rows > bytes.length) throw new Error(`column ${name} of a chunk is cut`);
      const values = undoPlanes(bytes, offset, head.rows, width);
      return { array: column[2] === "delta" ? undoDelta(values) : values, value: 0 };
    }
    offset += width * head.rows;
  }
  return null;
}
