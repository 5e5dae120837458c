// A frame of a timeline: tracks that are seen, their bands, rows and labels.
import type { Run } from "../model/run";
import { HEADER, ROW, type Block, type Layout } from "../timeline/layout";
import { shortened } from "../text/names";
import { plural } from "../text/numbers";
import { drawBands, drawCounts, highestRate } from "./bands";
import { font, type Palette } from "./colors";
import { drawFirstRow, firstRows, type FirstRows } from "./first";
import { Pixels } from "./pixels";
import { RowPainter, type Boxes, type Window } from "./row";

const LABEL_LEAST = 5; // CSS pixels of a box that has text
const LABEL_MARGIN = 3;

interface Label {
  text: string;
  x: number;
  y: number;
  room: number;
}

export class FramePainter {
  private readonly pixels = new Pixels();
  private readonly rows = new RowPainter(this.pixels);
  private readonly first: FirstRows[];
  private readonly rates: number[];
  private characterWidth = 0;
  private measuredAt = 0;

  constructor(
    private readonly run: Run,
    private readonly layout: Layout,
  ) {
    this.first = run.tracks.map(firstRows);
    this.rates = run.tracks.map(highestRate);
  }

  draw(
    context: CanvasRenderingContext2D,
    window: Window,
    scrollTop: number,
    width: number,
    height: number,
    dpr: number,
    palette: Palette,
    matching: Uint8Array | null,
  ): void {
    const { pixels } = this;
    pixels.resize(width, height);
    this.rows.resize(width, dpr);
    pixels.clear(palette.background);
    const labels: Label[] = [];
    for (const block of this.layout.visible(scrollTop, scrollTop + height / dpr)) {
      this.drawBlock(block, window, scrollTop, dpr, palette, matching, labels);
    }
    pixels.show(context);
    this.drawLabels(context, labels, dpr, palette);
  }

  private drawBlock(
    block: Block,
    window: Window,
    scrollTop: number,
    dpr: number,
    palette: Palette,
    matching: Uint8Array | null,
    labels: Label[],
  ): void {
    const { pixels, run } = this;
    const track = run.tracks[block.track];
    const line = (y: number): number => Math.round((y - scrollTop) * dpr);
    const top = line(block.top);
    const rowsTop = line(block.top + HEADER);
    const bottom = line(block.top + HEADER + block.rows * ROW);
    pixels.fill(0, top, pixels.width, top + 1, palette.trackLine);
    drawBands(pixels, track, window, top + 1, bottom, palette, false);
    drawCounts(pixels, track, this.rates[block.track], window, top + 2, rowsTop - 2, palette);
    const { slices } = run;
    if (slices && !block.rows && track.depth) {
      // Of a collapsed track, its outermost calls.
      const row = slices.trackRow[block.track];
      this.rows.draw(run, slices, row, window, rowsTop - Math.round(7 * dpr), rowsTop, palette, matching);
    }
    const from = Math.max(0, Math.floor((scrollTop - block.top - HEADER) / ROW));
    const to = Math.min(block.rows, Math.ceil((scrollTop + pixels.height / dpr - block.top - HEADER) / ROW));
    const first = this.first[block.track];
    for (let depth = from; depth < to; depth++) {
      const y0 = line(block.top + HEADER + depth * ROW);
      const y1 = line(block.top + HEADER + (depth + 1) * ROW) - 1;
      if (slices) {
        const row = slices.trackRow[block.track] + depth;
        const boxes = this.rows.draw(run, slices, row, window, y0, y1, palette, matching);
        this.collectLabels(boxes, (y0 + y1) / 2, dpr, labels);
      } else if (first && track.first && depth < track.first.depths) {
        const y = (y0 + y1) / 2;
        drawFirstRow(pixels, run, first, depth, window, y0, y1, palette, (fn, x0, x1) => {
          this.addLabel(labels, run.names[fn], x0, x1, y, dpr);
        });
      }
    }
    drawBands(pixels, track, window, rowsTop, bottom, palette, true);
  }

  private collectLabels(boxes: Boxes, y: number, dpr: number, labels: Label[]): void {
    const { slices, names } = this.run;
    if (!slices) return;
    for (let i = 0; i < boxes.count; i++) {
      if (boxes.x1[i] - Math.max(0, boxes.x0[i]) < LABEL_LEAST * dpr) continue;
      const slice = boxes.slice[i];
      const calls = slices.value("calls", slice);
      const name = names[slices.functionOf(slice)];
      const text = calls > 1 ? `${plural(calls, "call")} merged: ${name}` : name;
      this.addLabel(labels, text, boxes.x0[i], boxes.x1[i], y, dpr);
    }
  }

  private addLabel(labels: Label[], text: string, from: number, to: number, y: number, dpr: number): void {
    const x0 = Math.max(0, from);
    const room = Math.min(this.pixels.width, to) - x0 - 2 * LABEL_MARGIN * dpr;
    if (room >= 6 * dpr) labels.push({ text, x: x0 + LABEL_MARGIN * dpr, y, room });
  }

  private drawLabels(context: CanvasRenderingContext2D, labels: Label[], dpr: number, palette: Palette): void {
    context.font = font(dpr);
    context.textBaseline = "middle";
    context.fillStyle = palette.sliceText;
    if (this.measuredAt !== dpr) {
      this.characterWidth = context.measureText("0123456789").width / 10;
      this.measuredAt = dpr;
    }
    for (const { text, x, y, room } of labels) {
      const characters = Math.floor(room / this.characterWidth);
      if (characters < 1) continue;
      const cut = shortened(text, characters);
      if (cut === "\u2026") continue;
      // Other scripts may be wider than the characters of a fixed font.
      if (/^[\u0020-\u007e\u2026]*$/.test(cut)) context.fillText(cut, x, y + dpr / 2);
      else context.fillText(cut, x, y + dpr / 2, room);
    }
  }
}
