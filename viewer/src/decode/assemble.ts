// Chunks to columns of a run. Slices are ordered by track, depth and begin, so that a row of the picture is a range.
import type { ChunkHead } from "../data/head";
import { decodeBase64, inflate } from "./bytes";
import { arrayOf, readColumn, WIDTH, type Column, type Numbers } from "./columns";
import { buildPyramid, type Pyramid } from "./pyramid";

export const NO_PARENT = 0xffffffff;

/** Columns beside track, depth and begin. */
export const COLUMNS = [
  "duration",
  "function",
  "calls",
  "covered",
  "instructions",
  "branches",
  "begin_error",
  "end_error",
  "flags",
  "how",
  "end_how",
  "has_loss",
  "id",
] as const;
export type ColumnName = (typeof COLUMNS)[number];

export interface DecodeRequest {
  run: number;
  chunks: ChunkHead[];
  texts: string[];
  depths: number[]; // of each track
  end: number; // of the run
}

export interface Decoded {
  run: number;
  slices: number;
  begin: Float64Array | Uint32Array;
  parent: Uint32Array;
  columns: Record<ColumnName, Column>;
  rowStart: Uint32Array; // of each (track, depth): its first slice; one more at the end
  trackRow: Uint32Array; // of each track: its first row; one more at the end
  pyramid: Pyramid;
}

// Values of a column where a chunk leaves it out.
const DEFAULTS: Partial<Record<ColumnName, number>> = { calls: 1 };
const AS_DURATION = new Set<ColumnName>(["covered", "instructions"]);
// Differences have no width that says how large their sums are.
const SUMMED = new Set<ColumnName>(["id"]);

function widthOf(chunks: ChunkHead[], name: ColumnName): number {
  let width = 0;
  for (const chunk of chunks) {
    const names = AS_DURATION.has(name) ? [name, "duration"] : [name];
    for (const column of chunk.columns) if (names.includes(column[0])) width = Math.max(width, WIDTH[column[1]]);
  }
  return SUMMED.has(name) ? 8 : width;
}

function sameValue(chunks: ChunkHead[], name: ColumnName): number | null {
  let same: number | null = null;
  for (const chunk of chunks) {
    const column = chunk.columns.find((found) => found[0] === name);
    if (!column && AS_DURATION.has(name)) return null;
    if (column && column[2] !== "const") return null;
    const value = column && column[2] === "const" ? (column[3] ?? 0) : (DEFAULTS[name] ?? 0);
    if (same !== null && same !== value) return null;
    same = value;
  }
  return same ?? DEFAULTS[name] ?? 0;
}

function narrowed(values: Float64Array): Float64Array | Uint32Array {
  for (let i = 0; i < values.length; i++) if (values[i] > 0xffffffff) return values;
  return Uint32Array.from(values);
}

/** Columns of a run. */
export async function assemble(request: DecodeRequest): Promise<Decoded> {
  const { chunks, texts, depths } = request;
  const total = chunks.reduce((sum, chunk) => sum + chunk.rows, 0);
  const inflated: Uint8Array[] = [];
  const trackRow = new Uint32Array(depths.length + 1);
  for (let t = 0; t < depths.length; t++) trackRow[t + 1] = trackRow[t] + depths[t];
  const rows = trackRow[depths.length];
  const rowStart = new Uint32Array(rows + 1);
  // First the row of each slice, then by counting sort its index.
  const target = new Uint32Array(total);
  let base = 0;
  for (let c = 0; c < chunks.length; c++) {
    inflated[c] = await inflate(decodeBase64(texts[c]));
    texts[c] = "";
    const track = readColumn(chunks[c], inflated[c], "track") ?? { array: null, value: 0 };
    const depth = readColumn(chunks[c], inflated[c], "depth") ?? { array: null, value: 0 };
    for (let i = 0; i < chunks[c].rows; i++) {
      const t = track.array ? track.array[i] : track.value;
      const d = depth.array ? depth.array[i] : depth.value;
      if (!(t < depths.length && d < depths[t])) throw new Error(`chunk ${c}: track ${t} has no depth ${d}`);
      const row = trackRow[t] + d;
      target[base + i] = row;
      rowStart[row + 1]++;
    }
    base += chunks[c].rows;
  }
  for (let r = 0; r < rows; r++) rowStart[r + 1] += rowStart[r];
  const parent = placeSlices(target, rowStart, trackRow);

  const begin = request.end < 2 ** 32 ? new Uint32Array(total) : new Float64Array(total);
  const columns = {} as Record<ColumnName, Column>;
  for (const name of COLUMNS) {
    const value = sameValue(chunks, name);
    const isDuration = AS_DURATION.has(name) && !chunks.some((chunk) => chunk.columns.some((c) => c[0] === name));
    if (isDuration) columns[name] = columns.duration;
    else if (value !== null) columns[name] = { array: null, value };
    else columns[name] = { array: arrayOf(widthOf(chunks, name), total), value: 0 };
  }
  base = 0;
  for (let c = 0; c < chunks.length; c++) {
    const count = chunks[c].rows;
    const at = target.subarray(base, base + count);
    const scatter = (column: Column, into: Numbers): void => scatterColumn(column, at, into);
    scatter(readColumn(chunks[c], inflated[c], "begin") ?? { array: null, value: 0 }, begin);
    const duration = readColumn(chunks[c], inflated[c], "duration") ?? { array: null, value: 0 };
    for (const name of COLUMNS) {
      const into = columns[name].array;
      if (!into || (AS_DURATION.has(name) && columns[name] === columns.duration)) continue;
      const missing = AS_DURATION.has(name) ? duration : { array: null, value: DEFAULTS[name] ?? 0 };
      scatter(name === "duration" ? duration : (readColumn(chunks[c], inflated[c], name) ?? missing), into);
    }
    inflated[c] = new Uint8Array(0);
    base += count;
  }
  if (columns.id.array instanceof Float64Array) columns.id.array = narrowed(columns.id.array);
  const pyramid = buildPyramid(rowStart, begin, columns);
  return { run: request.run, slices: total, begin, parent, columns, rowStart, trackRow, pyramid };
}

// One loop for each type: a loop for all of them takes three times as long.
const SCATTER: [number, (from: Numbers, at: Uint32Array, into: Numbers) => void][] = [
  [
    1,
    (from, at, into) => {
      for (let i = 0; i < at.length; i++) into[at[i]] = from[i];
    },
  ],
  [
    2,
    (from, at, into) => {
      for (let i = 0; i < at.length; i++) into[at[i]] = from[i];
    },
  ],
  [
    4,
    (from, at, into) => {
      for (let i = 0; i < at.length; i++) into[at[i]] = from[i];
    },
  ],
  [
    8,
    (from, at, into) => {
      for (let i = 0; i < at.length; i++) into[at[i]] = from[i];
    },
  ],
];

function scatterColumn(column: Column, at: Uint32Array, into: Numbers): void {
  const width = into.BYTES_PER_ELEMENT;
  let from = column.array;
  if (!from) from = arrayOf(width, at.length).fill(column.value);
  else if (from.BYTES_PER_ELEMENT !== width) {
    const same = arrayOf(width, at.length);
    same.set(from);
    from = same;
  }
  SCATTER.find(([of]) => of === width)?.[1](from, at, into);
}

// Replaces the row of each slice by its index, and collects the index of its caller.
function placeSlices(target: Uint32Array, rowStart: Uint32Array, trackRow: Uint32Array): Uint32Array {
  const next = rowStart.slice();
  const parent = new Uint32Array(target.length);
  const isFirstRow = new Uint8Array(rowStart.length);
  for (const row of trackRow) isFirstRow[row] = 1;
  for (let i = 0; i < target.length; i++) {
    const row = target[i];
    const index = next[row]++;
    parent[index] = isFirstRow[row] || next[row - 1] === rowStart[row - 1] ? NO_PARENT : next[row - 1] - 1;
    target[i] = index;
  }
  return parent;
}
