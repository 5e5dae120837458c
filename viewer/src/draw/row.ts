// One row of slices: buckets of half a pixel, and boxes for slices that are wider.
import { FAN_OUT, levelSizes, NODE_LOSS, NODE_MERGED } from "../decode/pyramid";
import type { Run } from "../model/run";
import type { Slices } from "../model/slices";
import { mix, sliceColor, type Palette } from "./colors";
import type { Pixels } from "./pixels";

export interface Window {
  begin: number;
  end: number;
  scale: number; // device pixels for a unit
}

const SOLID = 256;
const MANY = 1;
const LOSS = 2;
const MERGED = 4;
const SOFT = 8;

/** Slices of a row that are wider than a bucket, and where they are in device pixels. */
export class Boxes {
  count = 0;
  slice = new Uint32Array(0);
  x0 = new Float64Array(0);
  x1 = new Float64Array(0);

  resize(most: number): void {
    this.slice = new Uint32Array(most);
    this.x0 = new Float64Array(most);
    this.x1 = new Float64Array(most);
  }

  add(slice: number, x0: number, x1: number): void {
    if (this.count === this.slice.length) return;
    this.slice[this.count] = slice;
    this.x0[this.count] = x0;
    this.x1[this.count++] = x1;
  }
}

/** State that rows of a frame share. */
export class RowPainter {
  private width = 0;
  private halves = 1; // buckets of a pixel
  private covered = new Float32Array(0);
  private count = new Uint32Array(0);
  private longest = new Float64Array(0);
  private owner = new Int32Array(0);
  private marks = new Uint8Array(0);
  private firstBucket = 0;
  private lastBucket = -1;
  // Of each pixel: 0 for nothing, or its colour and look.
  private isDrawn = new Uint8Array(0);
  private color = new Int32Array(0);
  private look = new Uint8Array(0);
  private readonly boxes = new Boxes();
  private levels: { base: number; size: number }[] = [];
  private slices!: Slices;
  private window!: Window;
  private palette!: Palette;
  private rowFirst = 0;
  private rowLast = 0;
  private bucketWidth = 0;

  constructor(private readonly pixels: Pixels) {}

  resize(width: number, dpr: number): void {
    this.halves = dpr < 1.5 ? 2 : 1;
    if (width === this.width) return;
    this.width = width;
    const buckets = width * 2;
    this.covered = new Float32Array(buckets);
    this.count = new Uint32Array(buckets);
    this.longest = new Float64Array(buckets);
    this.owner = new Int32Array(buckets);
    this.marks = new Uint8Array(buckets);
    this.isDrawn = new Uint8Array(width);
    this.color = new Int32Array(width);
    this.look = new Uint8Array(width);
    this.boxes.resize(width + 8);
  }

  /** Draws a row between two lines of pixels; answers its boxes, which may have labels, until the next row. */
  draw(
    run: Run,
    slices: Slices,
    row: number,
    window: Window,
    y0: number,
    y1: number,
    palette: Palette,
    matching: Uint8Array | null,
  ): Boxes {
    this.slices = slices;
    this.window = window;
    this.palette = palette;
    this.boxes.count = 0;
    [this.rowFirst, this.rowLast] = [slices.rowStart[row], slices.rowStart[row + 1]];
    if (this.rowFirst === this.rowLast) return this.boxes;
    this.bucketWidth = 1 / (this.halves * window.scale);
    [this.firstBucket, this.lastBucket] = [this.width * this.halves, -1];
    this.count.fill(0);
    this.isDrawn.fill(0);
    this.collect(row);
    const fns = slices.columns.function;
    const colorOf = (slice: number): number => {
      const fn = fns.array ? fns.array[slice] : fns.value;
      return matching && !matching[fn] ? palette.dimmed : sliceColor(palette, run.hues[fn]);
    };
    this.settleBuckets(colorOf);
    for (let i = 0; i < this.boxes.count; i++) this.settleBox(i, colorOf(this.boxes.slice[i]));
    this.paint(y0, y1);
    return this.boxes;
  }

  private collect(row: number): void {
    const sizes = levelSizes(this.rowLast - this.rowFirst);
    this.levels = [];
    let base = this.slices.pyramid.nodeStart[row];
    for (const size of sizes) {
      this.levels.push({ base, size });
      base += size;
    }
    const top = sizes.length - 1;
    if (top < 0) this.visitSlices(this.rowFirst, this.rowLast);
    else this.visitNodes(top, 0, sizes[top]);
  }

  // Nodes [from, to) of a level: those that fit into a bucket as a whole, others by what is below them.
  private visitNodes(level: number, from: number, to: number): void {
    const { begin: begins, end: ends, covered, count, longest, marks } = this.slices.pyramid;
    const { begin, end } = this.window;
    const { base } = this.levels[level];
    const below = level > 0 ? this.levels[level - 1].size : this.rowLast - this.rowFirst;
    for (let k = from; k < to; k++) {
      const node = base + k;
      const first = begins[node];
      if (first >= end) return;
      const last = ends[node];
      if (last < begin) continue;
      if (last - first < this.bucketWidth) {
        const mark = marks[node];
        const looks = (mark & NODE_LOSS ? LOSS : 0) | (mark & NODE_MERGED ? MERGED : 0);
        this.add(first, covered[node], count[node], longest[node], looks);
        continue;
      }
      const child = k * FAN_OUT;
      const childEnd = Math.min(child + FAN_OUT, below);
      if (level > 0) this.visitNodes(level - 1, child, childEnd);
      else this.visitSlices(this.rowFirst + child, this.rowFirst + childEnd);
    }
  }

  private visitSlices(from: number, to: number): void {
    const { begin: begins, columns } = this.slices;
    const { begin, end, scale } = this.window;
    for (let i = from; i < to; i++) {
      const duration = columns.duration.array ? columns.duration.array[i] : columns.duration.value;
      const first = begins[i];
      if (first >= end || first + duration < begin) continue;
      if (duration * scale >= 1.5) {
        this.boxes.add(i, (first - begin) * scale, (first + duration - begin) * scale);
        continue;
      }
      const calls = columns.calls.array ? columns.calls.array[i] : columns.calls.value;
      const loss = columns.has_loss.array ? columns.has_loss.array[i] : columns.has_loss.value;
      const covered = columns.covered.array ? columns.covered.array[i] : columns.covered.value;
      this.add(first, covered, calls, i, (loss ? LOSS : 0) | (calls > 1 ? MERGED : 0));
    }
  }

  // Adds calls to the buckets at a position; what they cover beyond the bucket goes to the next ones.
  private add(begin: number, covered: number, calls: number, slice: number, looks: number): void {
    let bucket = Math.floor((begin - this.window.begin) * this.window.scale * this.halves);
    if (bucket < 0) bucket = 0;
    const buckets = this.width * this.halves;
    if (bucket >= buckets) return;
    const length = this.slices.duration(slice);
    if (bucket < this.firstBucket) this.firstBucket = bucket;
    let rest = covered / this.bucketWidth;
    for (let step = 0; bucket < buckets; bucket++, step++) {
      if (this.count[bucket] === 0) {
        this.covered[bucket] = 0;
        this.longest[bucket] = -1;
        this.marks[bucket] = 0;
      }
      this.count[bucket] += step ? 1 : calls;
      this.marks[bucket] |= looks;
      if (length > this.longest[bucket]) {
        this.longest[bucket] = length;
        this.owner[bucket] = slice;
      }
      const part = Math.min(rest, Math.max(0, 1 - this.covered[bucket]));
      this.covered[bucket] += part;
      rest -= part;
      if (bucket > this.lastBucket) this.lastBucket = bucket;
      if (rest <= 0.05 || step > 6) return;
    }
  }

  private settleBuckets(colorOf: (slice: number) => number): void {
    const { halves, palette } = this;
    const last = Math.min(this.width - 1, Math.floor(this.lastBucket / halves));
    for (let x = Math.floor(this.firstBucket / halves); x <= last; x++) {
      let color = 0;
      let share = 0;
      let look = 0;
      let calls = 0;
      for (let b = x * halves; b < (x + 1) * halves; b++) {
        if (this.count[b] === 0) continue;
        // Calls that are too short to see still leave a trace.
        const part = Math.round((SOLID * Math.max(0.25, Math.min(1, this.covered[b]))) / halves);
        const own = colorOf(this.owner[b]);
        color = share > 0 ? mix(color, own, Math.round((SOLID * part) / (share + part))) : own;
        share += part;
        look |= this.marks[b];
        calls += this.count[b];
      }
      if (share === 0) continue;
      // Gaps between calls stay visible as background.
      this.isDrawn[x] = 1;
      this.color[x] = share >= SOLID ? color : mix(palette.background, color, share);
      this.look[x] = look | (calls > 1 ? MANY : 0);
    }
  }

  private settleBox(box: number, own: number): void {
    const { boxes, slices, width, window, palette } = this;
    const [slice, x0, x1] = [boxes.slice[box], boxes.x0[box], boxes.x1[box]];
    const first = Math.max(0, Math.round(x0));
    const last = Math.min(width, Math.max(Math.round(x0) + 1, Math.round(x1)));
    const look = (slices.isMerged(slice) ? MERGED : 0) | (slices.value("has_loss", slice) ? LOSS : 0);
    let color = own;
    if (look & MERGED) {
      const duration = slices.duration(slice);
      const covered = duration > 0 ? slices.value("covered", slice) / duration : 1;
      color = mix(palette.background, own, Math.max(64, Math.min(SOLID, Math.round(covered * SOLID))));
    }
    const beginSoft = slices.value("begin_error", slice) * window.scale;
    const endSoft = slices.value("end_error", slice) * window.scale;
    this.color.fill(color, first, last);
    this.look.fill(look, first, last);
    this.isDrawn.fill(1, first, last);
    if (beginSoft >= 3) {
      for (let x = first; x < Math.min(last, x0 + beginSoft); x++) this.look[x] |= SOFT;
    }
    if (endSoft >= 3) {
      for (let x = Math.max(0, last); x < Math.min(width, x1 + endSoft); x++) {
        if (!this.isDrawn[x]) [this.color[x], this.isDrawn[x], this.look[x]] = [color, 1, SOFT];
      }
    }
    // A darker edge between neighbours.
    if (last - first > 2 && x0 >= 0) this.color[first] = mix(color, palette.ink, 70);
  }

  private paint(y0: number, y1: number): void {
    const { width, pixels, color, look, isDrawn, palette } = this;
    const [top, bottom] = [Math.max(0, y0), Math.min(pixels.height, y1)];
    if (top >= bottom) return;
    const { data } = pixels;
    const line = top * width;
    for (let x = 0; x < width;) {
      if (!isDrawn[x]) {
        x++;
        continue;
      }
      const first = x;
      for (; x < width && isDrawn[x]; x++) data[line + x] = color[x];
      for (let y = top + 1; y < bottom; y++) data.copyWithin(y * width + first, line + first, line + x);
    }
    for (let x = 0; x < width; x++) {
      if (isDrawn[x] && look[x]) this.paintLook(x, look[x], color[x], top, bottom, y1 - 3, palette);
    }
  }

  // Patterns of a pixel column.
  private paintLook(
    x: number,
    look: number,
    color: number,
    top: number,
    bottom: number,
    lossTop: number,
    palette: Palette,
  ): void {
    const { width, pixels } = this;
    const { data } = pixels;
    if (look & MERGED) {
      const hatch = mix(color, palette.ink, 60);
      for (let y = top; y < bottom; y++) if (((x + y) & 7) < 2) data[y * width + x] = hatch;
    } else if (look & MANY) {
      const light = mix(color, palette.background, 110);
      for (let y = (top + 3) & ~3; y < bottom; y += 4) data[y * width + x] = light;
    }
    if (look & SOFT) {
      for (let y = top + ((x + top) & 1); y < bottom; y += 2) data[y * width + x] = palette.background;
    }
    if (look & LOSS) for (let y = Math.max(top, lossTop); y < bottom; y++) data[y * width + x] = palette.lostLine;
  }
}
