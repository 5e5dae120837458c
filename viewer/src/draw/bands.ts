// Bands: times without traced code, each kind with a pattern of its own. And the strip of branches by time.
import { BandKind, type TrackHead } from "../data/head";
import type { Palette } from "./colors";
import type { Pixels } from "./pixels";
import type { Window } from "./row";

function drawBand(
  pixels: Pixels,
  kind: BandKind,
  x0: number,
  x1: number,
  y0: number,
  y1: number,
  palette: Palette,
  inkOnly: boolean,
): void {
  const [left, right] = [Math.max(0, x0), Math.min(pixels.width, x1)];
  const [top, bottom] = [Math.max(0, y0), Math.min(pixels.height, y1)];
  const { data, width } = pixels;
  if (kind === BandKind.LOST) {
    // Hatch.
    if (!inkOnly) pixels.fill(left, top, right, bottom, palette.lost);
    const ink = palette.lostLine;
    if (right - left < 6) return pixels.fill(left, top, right, bottom, ink);
    for (let y = top; y < bottom; y++) {
      const last = y * width + right;
      for (let at = y * width + left + ((8 - ((left + y) & 7)) & 7); at < last; at += 8) {
        data[at] = ink;
        if (at + 1 < last) data[at + 1] = ink;
      }
    }
  } else if (kind === BandKind.SWITCHED_OUT) {
    // Lines.
    if (!inkOnly) pixels.fill(left, top, right, bottom, palette.switchedOut);
    for (let y = top; y < bottom; y++)
      if (y % 6 === 0) data.fill(palette.bandInk, y * width + left, y * width + Math.max(left, right));
  } else {
    // Dots.
    if (!inkOnly) pixels.fill(left, top, right, bottom, palette.untraced);
    for (let y = top; y < bottom; y++) {
      if (y % 5 === 0)
        for (let x = left + ((5 - (left % 5)) % 5); x < right; x += 5) data[y * width + x] = palette.bandInk;
    }
  }
}

/** Bands of a track, or their ink alone, which goes over slices. */
export function drawBands(
  pixels: Pixels,
  track: TrackHead,
  window: Window,
  y0: number,
  y1: number,
  palette: Palette,
  inkOnly: boolean,
): void {
  const drawnTo = [-1, -1, -1]; // pixels that have the kind already
  const { begin, end, scale } = window;
  for (const order of [BandKind.UNTRACED, BandKind.SWITCHED_OUT, BandKind.LOST]) {
    for (const [from, to, kind] of track.bands) {
      if (kind !== order || from >= end || to < begin) continue;
      const least = kind === BandKind.LOST ? 2 : 1;
      const x0 = Math.max(Math.round((Math.max(from, begin) - begin) * scale), drawnTo[kind]);
      const x1 = Math.max(x0 + least, Math.round((Math.min(to, end) - begin) * scale));
      // Short bands of times that are traced for the most part are not drawn as if they were long.
      if (x0 === drawnTo[kind] && (to - from) * scale < 0.5 && kind !== BandKind.LOST) continue;
      drawnTo[kind] = x1;
      drawBand(pixels, kind, x0, x1, y0, y1, palette, inkOnly);
    }
  }
}

/** Highest rate of branches of a track. */
export function highestRate(track: TrackHead): number {
  let most = 0;
  for (let i = 1; i < track.counts.length; i++) {
    const [from, before] = track.counts[i - 1];
    const [to, after] = track.counts[i];
    if (to > from) most = Math.max(most, (after - before) / (to - from));
  }
  return most;
}

/** Branches by time, as bars between two lines of pixels. */
export function drawCounts(
  pixels: Pixels,
  track: TrackHead,
  most: number,
  window: Window,
  y0: number,
  y1: number,
  palette: Palette,
): void {
  const { counts } = track;
  if (counts.length < 2 || !(most > 0)) return;
  const { begin, end, scale } = window;
  const height = y1 - y0;
  for (let i = 1; i < counts.length; i++) {
    const [from, before] = counts[i - 1];
    const [to, after] = counts[i];
    if (to <= begin || from >= end || to <= from) continue;
    const x0 = Math.max(0, Math.floor((from - begin) * scale));
    const x1 = Math.max(x0 + 1, Math.floor((Math.min(to, end) - begin) * scale));
    const bar = Math.round((height * ((after - before) / (to - from))) / most);
    pixels.fill(x0, y1 - Math.max(after > before ? 1 : 0, bar), x1, y1, palette.count);
  }
}
