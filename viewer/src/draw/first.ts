// First screen: 512 columns over the whole run, drawn until the slices are decoded.
import type { TrackHead } from "../data/head";
import { decodeBase64 } from "../decode/bytes";
import type { Run } from "../model/run";
import { mix, sliceColor, type Palette } from "./colors";
import type { Pixels } from "./pixels";
import type { Window } from "./row";

const COLUMNS = 512;
const NO_FUNCTION = 65535;

export type FirstRows = Uint16Array | null;

export function firstRows(track: TrackHead): FirstRows {
  if (!track.first) return null;
  const bytes = decodeBase64(track.first.rows);
  const rows = new Uint16Array(track.first.depths * COLUMNS);
  for (let i = 0; i < rows.length; i++) rows[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
  return rows;
}

/** Draws one depth between two lines of pixels; `onRun` has neighbours of one function, in pixels. */
export function drawFirstRow(
  pixels: Pixels,
  run: Run,
  rows: Uint16Array,
  depth: number,
  window: Window,
  y0: number,
  y1: number,
  palette: Palette,
  onRun: (fn: number, x0: number, x1: number) => void,
): void {
  const first = run.head.range[0];
  const width = run.span / COLUMNS;
  const from = Math.max(0, Math.floor((window.begin - first) / width));
  const to = Math.min(COLUMNS, Math.ceil((window.end - first) / width));
  const x = (column: number): number => Math.round((first + column * width - window.begin) * window.scale);
  for (let column = from; column < to;) {
    const fn = rows[depth * COLUMNS + column];
    const begin = column;
    while (column < to && rows[depth * COLUMNS + column] === fn) column++;
    if (fn === NO_FUNCTION || fn >= run.names.length) continue;
    const [x0, x1] = [x(begin), x(column)];
    pixels.fill(x0, y0, x1, y1, mix(palette.background, sliceColor(palette, run.hues[fn]), 200));
    onRun(fn, x0, x1);
  }
}
