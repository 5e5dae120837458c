// Vertical layout of tracks, in CSS pixels. Deep tracks are folded to some rows until they are unfolded.
import type { Run } from "../model/run";

export const HEADER = 20;
export const ROW = 17;
const GAP = 5;
const MANY_TRACKS = 3;
const FEW = 0.01; // of the slices of the track with most

export interface Block {
  track: number;
  top: number;
  rows: number; // that are shown
  bottom: number;
}

/** Rows that a track shows before it is unfolded. */
export function foldedDepth(tracks: number): number {
  return Math.min(48, Math.max(8, Math.floor(48 / Math.max(1, tracks))));
}

export class Layout {
  readonly collapsed = new Set<number>();
  readonly unfolded = new Set<number>();
  private blocks: Block[] = [];
  height = 0;

  constructor(private readonly run: Run) {
    // Of many tracks, those with few slices are collapsed.
    const most = run.tracks.reduce((found, track) => Math.max(found, track.slices), 0);
    if (run.tracks.length > MANY_TRACKS) {
      run.tracks.forEach(({ slices }, track) => {
        if (slices < most * FEW) this.collapsed.add(track);
      });
    }
    this.update();
  }

  shownRows(track: number): number {
    if (this.collapsed.has(track)) return 0;
    const { depth } = this.run.tracks[track];
    return this.unfolded.has(track)
      ? depth
      : Math.min(depth, foldedDepth(this.run.tracks.length - this.collapsed.size));
  }

  hiddenRows(track: number): number {
    return this.run.tracks[track].depth - this.shownRows(track);
  }

  update(): void {
    let top = 0;
    this.blocks = this.run.tracks.map((_, track) => {
      const rows = this.shownRows(track);
      const bottom = top + HEADER + rows * ROW + GAP;
      const block = { track, top, rows, bottom };
      top = bottom;
      return block;
    });
    this.height = top;
  }

  toggle(set: Set<number>, track: number): void {
    if (set.has(track)) set.delete(track);
    else set.add(track);
    this.update();
  }

  block(track: number): Block {
    return this.blocks[track];
  }

  /** Number of the block at a height. */
  indexAt(y: number): number {
    let [low, high] = [0, this.blocks.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.blocks[middle].bottom <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  visible(top: number, bottom: number): Block[] {
    const found: Block[] = [];
    for (let i = this.indexAt(top); i < this.blocks.length && this.blocks[i].top < bottom; i++)
      found.push(this.blocks[i]);
    return found;
  }

  rowTop(track: number, depth: number): number {
    return this.blocks[track].top + HEADER + depth * ROW;
  }
}
