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
const EDGE = 16;

export interface Box {
  slice: number;
  x0: number;
  x1: number;
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
  private color = new Uint32Array(0);
  private share = new Uint16Array(0);
  private look = new Uint8Array(0);
  private boxes: Box[] = [];
  private levels: { base: number; size: number }[] = [];
  private slices!: Slices;
  private window!: Window;
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
    this.color = new Uint32Array(width);
    this.share = new Uint16Array(width);
    this.look = new Uint8Array(width);
  }

  /** Draws a row between two lines of pixels; answers its boxes, which may have labels. */
  draw(
    run: Run, slices: Slices, row: number, window: Window, y0: number, y1: number, palette: Palette,
    matching: Uint8Array | null,
  ): Box[] {
    this.slices = slices;
    this.window = window;
    this.boxes = [];
    [this.rowFirst, this.rowLast] = [slices.rowStart[row], slices.rowStart[row + 1]];
    if (this.rowFirst === this.rowLast) return this.boxes;
    this.bucketWidth = 1 / (this.halves * window.scale);
    this.count.fill(0);
    this.share.fill(0);
    this.collect(row);
    const colorOf = (slice: number): number => {
      const fn = slices.functionOf(slice);
      return matching && !matching[fn] ? palette.dimmed : sliceColor(palette, run.hues[fn]);
    };
    this.settleBuckets(colorOf);
    for (const box of this.boxes) this.settleBox(box, colorOf(box.slice));
    this.paint(y0, y1, palette);
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
    if (!sizes.length) return this.visitSlices(this.rowFirst, this.rowLast);
    const top = sizes.length - 1;
    for (let k = 0; k < sizes[top]; k++) this.visitNode(top, k);
  }

  private visitNode(level: number, k: number): void {
    const { pyramid } = this.slices;
    const node = this.levels[level].base + k;
    const begin = pyramid.begin[node];
    const end = pyramid.end[node];
    if (begin >= this.window.end || end < this.window.begin) return;
    if (end - begin < this.bucketWidth) {
      const mark = pyramid.marks[node];
      const looks = (mark & NODE_LOSS ? LOSS : 0) | (mark & NODE_MERGED ? MERGED : 0);
      this.add(begin, pyramid.covered[node], pyramid.count[node], pyramid.longest[node], looks);
      return;
    }
    const first = k * FAN_OUT;
    if (level > 0) {
      const last = Math.min(first + FAN_OUT, this.levels[level - 1].size);
      for (let child = first; child < last; child++) this.visitNode(level - 1, child);
    } else {
      this.visitSlices(this.rowFirst + first, Math.min(this.rowFirst + first + FAN_OUT, this.rowLast));
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
        this.boxes.push({ slice: i, x0: (first - begin) * scale, x1: (first + duration - begin) * scale });
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
      if (rest <= 0.05 || step > 6) return;
    }
  }

  private settleBuckets(colorOf: (slice: number) => number): void {
    const { halves, width } = this;
    for (let x = 0; x < width; x++) {
      let [color, share, look, calls] = [0, 0, 0, 0];
      for (let b = x * halves; b < (x + 1) * halves; b++) {
        if (!this.count[b]) continue;
        // Calls that are too short to see still leave a trace.
        const part = Math.max(0.25, Math.min(1, this.covered[b])) / halves;
        const own = colorOf(this.owner[b]);
        color = share > 0 ? mix(color, own, Math.round((256 * part) / (share + part))) : own;
        share += part;
        look |= this.marks[b];
        calls += this.count[b];
      }
      this.color[x] = color;
      this.share[x] = Math.min(SOLID, Math.round(share * SOLID));
      this.look[x] = look | (calls > 1 ? MANY : 0);
    }
  }

  private settleBox(box: Box, color: number): void {
    const { slices, width, window } = this;
    const { slice } = box;
    const first = Math.max(0, Math.round(box.x0));
    const last = Math.min(width, Math.max(Math.round(box.x0) + 1, Math.round(box.x1)));
    const look = (slices.isMerged(slice) ? MERGED : 0) | (slices.value("has_loss", slice) ? LOSS : 0);
    // Gaps between merged calls stay visible.
    const duration = slices.duration(slice);
    const covered = duration > 0 ? slices.value("covered", slice) / duration : 1;
    const share = look & MERGED ? Math.max(64, Math.min(SOLID, Math.round(covered * SOLID))) : SOLID;
    for (let x = first; x < last; x++) [this.color[x], this.share[x], this.look[x]] = [color, share, look];
    const beginSoft = slices.value("begin_error", slice) * window.scale;
    const endSoft = slices.value("end_error", slice) * window.scale;
    if (beginSoft >= 3) {
      for (let x = first; x < Math.min(last, box.x0 + beginSoft); x++) this.look[x] |= SOFT;
    }
    if (endSoft >= 3) {
      for (let x = Math.max(0, last); x < Math.min(width, box.x1 + endSoft); x++) {
        if (this.share[x] === 0) [this.color[x], this.share[x], this.look[x]] = [color, SOLID, SOFT];
      }
    }
    if (last - first > 2 && box.x0 >= 0) this.look[first] |= EDGE;
  }

  private paint(y0: number, y1: number, palette: Palette): void {
    const { width, pixels, color, share, look } = this;
    const [top, bottom] = [Math.max(0, y0), Math.min(pixels.height, y1)];
    const ink = palette.isDark ? 0xffffffff : 0xff000000;
    for (let y = top; y < bottom; y++) {
      const line = y * width;
      const data = pixels.data;
      const isLossLine = y >= y1 - 3;
      for (let x = 0; x < width; x++) {
        const part = share[x];
        if (part === 0) continue;
        const marks = look[x];
        let over = color[x];
        if (marks !== 0) {
          if (marks & SOFT && ((x + y) & 1) === 1) continue;
          if (marks & LOSS && isLossLine) over = palette.lostLine;
          else if (marks & EDGE) over = mix(over, ink, 70);
          else if (marks & MERGED && ((x + y) & 7) < 2) over = mix(over, ink, 60);
          else if (marks & MANY && (y & 3) === 0) over = mix(over, palette.background, 90);
        }
        data[line + x] = part >= SOLID ? over : mix(data[line + x], over, part);
      }
    }
  }
}
