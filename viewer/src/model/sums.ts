// Sums by function of what lies in a range, computed from slices.
import type { Run } from "./run";
import type { Slices } from "./slices";

export interface RangeSums {
  functions: number[];
  calls: Float64Array; // of each function, below too
  self: Float64Array; // lengths on the axis
  total: Float64Array;
  instructions: Float64Array; // of whole outermost slices
  selfInstructions: Float64Array; // of whole slices, less those of what they called
  hasMerged: Uint8Array;
  isCut: Uint8Array;
  slices: number;
  merged: number;
  cut: number;
}

/** Sums of the slices of all tracks, or of one, in [begin, end). */
export function rangeSums(run: Run, slices: Slices, begin: number, end: number, only: number | null): RangeSums {
  const count = run.head.functions.name.length;
  const sums: RangeSums = {
    functions: [],
    calls: new Float64Array(count),
    self: new Float64Array(count),
    total: new Float64Array(count),
    instructions: new Float64Array(count),
    selfInstructions: new Float64Array(count),
    hasMerged: new Uint8Array(count),
    isCut: new Uint8Array(count),
    slices: 0,
    merged: 0,
    cut: 0,
  };
  const open = new Uint32Array(count);
  for (let track = 0; track < run.tracks.length; track++) {
    if (only === null || only === track) sumTrack(slices, track, begin, end, sums, open);
  }
  for (let fn = 0; fn < count; fn++) if (sums.calls[fn] || sums.total[fn] || sums.isCut[fn]) sums.functions.push(fn);
  sums.functions.sort((a, b) => sums.self[b] - sums.self[a]);
  return sums;
}

// Depth first, with a cursor for each depth: callees of a slice are next to each other in the row below.
function sumTrack(s: Slices, track: number, begin: number, end: number, sums: RangeSums, open: Uint32Array): void {
  const first = s.trackRow[track];
  const depths = s.trackRow[track + 1] - first;
  const cursor = new Uint32Array(depths + 1);
  const stack: number[] = [];
  for (let d = 0; d < depths; d++) {
    const after = s.firstAfter(first + d, begin);
    cursor[d] = after > s.rowStart[first + d] && s.end(after - 1) > begin ? after - 1 : after;
    // Slices without a length at the begin.
    while (cursor[d] > s.rowStart[first + d] && s.begin[cursor[d] - 1] >= begin) cursor[d]--;
  }
  for (;;) {
    const d = stack.length;
    const top = d ? stack[d - 1] : -1;
    // Slices of callers that end before the range.
    while (d > 0 && d < depths && cursor[d] < s.rowStart[first + d + 1] && s.caller(cursor[d]) < top) cursor[d]++;
    const slice = d < depths ? cursor[d] : 0;
    const isNext = d < depths && slice < s.rowStart[first + d + 1] && s.begin[slice] < end;
    if (isNext && (d === 0 || s.caller(slice) === top)) {
      enter(s, slice, begin, end, sums, open, top);
      stack.push(slice);
      cursor[d]++;
    } else if (d > 0) {
      const fn = s.functionOf(top);
      open[fn]--;
      stack.pop();
    } else {
      return;
    }
  }
}

function enter(
  s: Slices,
  slice: number,
  begin: number,
  end: number,
  sums: RangeSums,
  open: Uint32Array,
  caller: number,
): void {
  const fn = s.functionOf(slice);
  const length = s.duration(slice);
  const inside = Math.max(0, Math.min(s.end(slice), end) - Math.max(s.begin[slice], begin));
  const isCut = s.begin[slice] < begin || s.end(slice) > end;
  // A merged slice has gaps between its calls: they count as its caller's.
  const share = length > 0 ? inside / length : 1;
  const covered = Math.min(inside, s.value("covered", slice) * share);
  const calls = s.value("calls", slice);
  sums.slices++;
  sums.self[fn] += covered;
  if (caller >= 0) sums.self[s.functionOf(caller)] -= covered;
  if (s.begin[slice] >= begin) sums.calls[fn] += calls;
  if (calls > 1) {
    sums.merged++;
    sums.hasMerged[fn] = 1;
  }
  if (isCut) {
    sums.cut++;
    sums.isCut[fn] = 1;
  }
  const instructions = isCut ? 0 : s.value("instructions", slice);
  sums.selfInstructions[fn] += instructions;
  if (caller >= 0 && s.begin[caller] >= begin && s.end(caller) <= end)
    sums.selfInstructions[s.functionOf(caller)] -= instructions;
  if (open[fn] === 0) {
    sums.total[fn] += covered;
    sums.instructions[fn] += instructions;
  }
  open[fn]++;
}
