// Search for slices by the name of their function.
import type { Run } from "./run";
import { NONE } from "./slices";

export interface Match {
  functions: Uint8Array; // 1: the name of the function matches
  functionCount: number;
  slices: number;
}

/** Functions of a run whose name, full name or module contains the text, and the number of their slices. */
export function search(run: Run, text: string): Match {
  const needle = text.toLowerCase();
  return matchOf(
    run,
    (fn) =>
      run.names[fn].toLowerCase().includes(needle) ||
      (run.head.functions.full[fn] ?? "").toLowerCase().includes(needle) ||
      run.moduleFile(fn).toLowerCase().includes(needle),
  );
}

/** Functions of a run for which `isMatch` is true, and the number of their slices. */
export function matchOf(run: Run, isMatch: (fn: number) => boolean): Match {
  const count = run.names.length;
  const functions = new Uint8Array(count);
  let functionCount = 0;
  for (let fn = 0; fn < count; fn++) if (isMatch(fn)) [functions[fn], functionCount] = [1, functionCount + 1];
  let slices = 0;
  const column = run.slices?.columns.function;
  if (column?.array) {
    const array = column.array;
    for (let i = 0; i < array.length; i++) slices += functions[array[i]];
  } else if (column && run.slices) slices = (functions[column.value] ?? 0) * run.slices.count;
  return { functions, functionCount, slices };
}

export interface Step {
  slice: number;
  number: number; // from 1, in the order of tracks and begins
}

/** Next or previous matching slice after `from` (NONE: the first or last one), in the order of tracks and begins. */
export function nextMatch(run: Run, match: Match, from: number, direction: 1 | -1): Step | null {
  const s = run.slices;
  if (!s || !match.slices) return null;
  const fromTrack = from === NONE ? (direction > 0 ? -1 : run.tracks.length) : s.trackOf(from);
  const fromDepth = from === NONE ? 0 : s.depthOf(from);
  const fromBegin = from === NONE ? 0 : s.begin[from];
  const column = s.columns.function;
  let [best, bestTrack, before] = [NONE, 0, 0];
  // Whether a slice of the same track comes before another: callers before what they call.
  const isBefore = (
    begin: number,
    depth: number,
    otherBegin: number,
    otherDepth: number,
    i: number,
    j: number,
  ): boolean => (begin !== otherBegin ? begin < otherBegin : depth !== otherDepth ? depth < otherDepth : i < j);
  let [bestBegin, bestDepth] = [0, 0];
  for (let track = 0; track < run.tracks.length; track++) {
    for (let row = s.trackRow[track]; row < s.trackRow[track + 1]; row++) {
      const depth = row - s.trackRow[track];
      for (let i = s.rowStart[row]; i < s.rowStart[row + 1]; i++) {
        if (!match.functions[column.array ? column.array[i] : column.value]) continue;
        const begin = s.begin[i];
        const isEarlier =
          track !== fromTrack ? track < fromTrack : isBefore(begin, depth, fromBegin, fromDepth, i, from);
        if (isEarlier) before++;
        if (i === from || isEarlier === direction > 0) continue;
        const isFirst = best === NONE;
        const isNearer = isFirst
          ? true
          : track !== bestTrack
            ? direction > 0
              ? track < bestTrack
              : track > bestTrack
            : isBefore(begin, depth, bestBegin, bestDepth, i, best) === direction > 0;
        if (isNearer) [best, bestTrack, bestBegin, bestDepth] = [i, track, begin, depth];
      }
    }
  }
  if (best === NONE) return from === NONE ? null : nextMatch(run, match, NONE, direction);
  const fromMatches = from !== NONE && match.functions[s.functionOf(from)];
  const number = direction > 0 ? before + (fromMatches ? 2 : 1) : before;
  return { slice: best, number };
}
