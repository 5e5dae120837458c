// Ruler above the tracks: positions, the visible part of the whole, marks and matches.
import type { Run } from "../model/run";
import { axisText } from "../text/numbers";
import type { Palette } from "./colors";
import { font } from "./colors";
import type { Window } from "./row";

export const RULER = 30;

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

export interface RulerMarks {
  range: [number, number] | null;
  marks: [number, number][];
  matches: Uint8Array | null; // of each pixel of the whole
}

export function drawRuler(
  context: CanvasRenderingContext2D,
  run: Run,
  window: Window,
  width: number,
  dpr: number,
  palette: Palette,
  marks: RulerMarks,
): void {
  const height = RULER * dpr;
  context.fillStyle = palette.rulerBack;
  context.fillRect(0, 0, width, height);
  context.font = font(dpr);
  context.textBaseline = "middle";
  if (!run.tracks.length) return;
  const { unit } = run;
  const x = (position: number): number => (position - window.begin) * window.scale;
  const step = niceStep(((window.end - window.begin) * unit * 96 * dpr) / Math.max(width, 1));
  context.fillStyle = palette.muted;
  const first = Math.ceil((Math.max(window.begin, run.head.range[0]) * unit) / step);
  const last = Math.floor((Math.min(window.end, run.head.range[1]) * unit) / step);
  for (let i = first; i <= last && i - first < 1000; i++) {
    const at = Math.round(x((i * step) / unit));
    context.fillRect(at, height - 12 * dpr, dpr, 7 * dpr);
    context.fillText(axisText(i * step, run.unitName, step), at + 3 * dpr, 9 * dpr);
  }
  // Bar of the whole: what is visible, and where matches are.
  const scale = width / run.span;
  const whole = (position: number): number => (position - run.head.range[0]) * scale;
  context.fillStyle = palette.line;
  context.fillRect(0, height - 5 * dpr, width, 5 * dpr);
  context.fillStyle = palette.muted;
  const [from, to] = [whole(window.begin), whole(window.end)];
  context.fillRect(from, height - 5 * dpr, Math.max(3 * dpr, to - from), 5 * dpr);
  if (marks.matches) {
    context.fillStyle = palette.match;
    for (let i = 0; i < marks.matches.length; i++) {
      if (marks.matches[i]) context.fillRect((i * width) / marks.matches.length, height - 5 * dpr, dpr, 5 * dpr);
    }
  }
  context.fillStyle = palette.mark;
  for (const [begin, end] of marks.marks) {
    context.fillRect(x(begin), height - 8 * dpr, Math.max(2 * dpr, x(end) - x(begin)), 3 * dpr);
  }
  if (marks.range) {
    const [begin, end] = marks.range;
    context.fillStyle = palette.range;
    context.fillRect(x(begin), 0, Math.max(dpr, x(end) - x(begin)), height - 5 * dpr);
    context.fillStyle = palette.selection;
    const length = run.length(end - begin);
    const textWidth = context.measureText(length).width;
    const middle = Math.min(Math.max((x(begin) + x(end) - textWidth) / 2, 2), width - textWidth - 2);
    context.fillText(length, middle, 20 * dpr);
  }
}
