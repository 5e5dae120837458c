// Levels of detail: for each row (track and depth) a tree with a fan-out of 8 over its slices. A node knows the longest
// slice, the time that calls cover, their number, and whether any lost control flow or is merged.
import type { ColumnName } from "./assemble";
import type { Column, Numbers } from "./columns";

export const FAN_OUT = 8;
export const NODE_LOSS = 1;
export const NODE_MERGED = 2;

export interface Pyramid {
  nodeStart: Uint32Array; // of each row: its first node; one more at the end
  begin: Numbers;
  end: Numbers;
  covered: Float32Array;
  count: Uint32Array; // calls
  longest: Uint32Array; // slice
  marks: Uint8Array;
}

/** Numbers of nodes of the levels above `slices` slices, the lowest first; none for up to 8 slices. */
export function levelSizes(slices: number): number[] {
  const sizes: number[] = [];
  for (let size = slices; size > FAN_OUT;) {
    size = Math.ceil(size / FAN_OUT);
    sizes.push(size);
  }
  return sizes;
}

/** Trees of all rows. */
export function buildPyramid(rowStart: Uint32Array, begin: Numbers, columns: Record<ColumnName, Column>): Pyramid {
  const rows = rowStart.length - 1;
  const nodeStart = new Uint32Array(rows + 1);
  for (let r = 0; r < rows; r++) {
    const nodes = levelSizes(rowStart[r + 1] - rowStart[r]).reduce((sum, size) => sum + size, 0);
    nodeStart[r + 1] = nodeStart[r] + nodes;
  }
  const total = nodeStart[rows];
  const pyramid: Pyramid = {
    nodeStart,
    begin: begin instanceof Uint32Array ? new Uint32Array(total) : new Float64Array(total),
    end: new Float64Array(total),
    covered: new Float32Array(total),
    count: new Uint32Array(total),
    longest: new Uint32Array(total),
    marks: new Uint8Array(total),
  };
  for (let r = 0; r < rows; r++) buildRow(pyramid, nodeStart[r], rowStart[r], rowStart[r + 1], begin, columns);
  return pyramid;
}

function buildRow(
  pyramid: Pyramid,
  node: number,
  first: number,
  last: number,
  begin: Numbers,
  columns: Record<ColumnName, Column>,
): void {
  const { duration, covered, calls, has_loss: loss } = columns;
  const of = (column: Column, i: number): number => (column.array ? column.array[i] : column.value);
  const sizes = levelSizes(last - first);
  if (!sizes.length) return;
  for (let k = 0; k < sizes[0]; k++, node++) {
    const from = first + k * FAN_OUT;
    const to = Math.min(from + FAN_OUT, last);
    let [end, sum, count, longest, marks, most] = [0, 0, 0, from, 0, -1];
    for (let i = from; i < to; i++) {
      const length = of(duration, i);
      const merged = of(calls, i);
      if (length > most) [most, longest] = [length, i];
      end = Math.max(end, begin[i] + length);
      sum += of(covered, i);
      count += merged;
      if (merged > 1) marks |= NODE_MERGED;
      if (of(loss, i)) marks |= NODE_LOSS;
    }
    pyramid.begin[node] = begin[from];
    pyramid.end[node] = end;
    pyramid.covered[node] = sum;
    pyramid.count[node] = count;
    pyramid.longest[node] = longest;
    pyramid.marks[node] = marks;
  }
  let below = node - sizes[0];
  for (let level = 1; level < sizes.length; level++) {
    const belowEnd = below + sizes[level - 1];
    for (let k = 0; k < sizes[level]; k++, node++) {
      const from = below + k * FAN_OUT;
      const to = Math.min(from + FAN_OUT, belowEnd);
      let [end, sum, count, longest, marks, most] = [0, 0, 0, pyramid.longest[from], 0, -1];
      for (let i = from; i < to; i++) {
        const length = of(duration, pyramid.longest[i]);
        if (length > most) [most, longest] = [length, pyramid.longest[i]];
        end = Math.max(end, pyramid.end[i]);
        sum += pyramid.covered[i];
        count += pyramid.count[i];
        marks |= pyramid.marks[i];
      }
      pyramid.begin[node] = pyramid.begin[from];
      pyramid.end[node] = end;
      pyramid.covered[node] = sum;
      pyramid.count[node] = count;
      pyramid.longest[node] = longest;
      pyramid.marks[node] = marks;
    }
    below = belowEnd;
  }
}
