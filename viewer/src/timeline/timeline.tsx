// Timeline of a run: its canvases, and what a point of them is.
import { h, render } from "preact";
import { paletteOf, type Palette } from "../draw/colors";
import { FramePainter } from "../draw/frame";
import { drawRuler, RULER } from "../draw/ruler";
import type { Window } from "../draw/row";
import type { Run } from "../model/run";
import type { Match } from "../model/search";
import { NONE } from "../model/slices";
import type { Store } from "../store";
import { listenToPointers } from "./input";
import { Labels } from "./labels";
import { HEADER, Layout, ROW } from "./layout";
import { hideTooltip, showTooltip } from "./tooltip";
import { View } from "./view";

export interface Hit {
  track: number;
  depth: number; // -1: the header of the track
  position: number;
  slice: number; // or NONE
}

export class Timeline {
  readonly view: View;
  readonly layout: Layout;
  /** Range that is being selected. */
  draft: [number, number] | null = null;
  hover: Hit | null = null;
  private readonly painter: FramePainter;
  private readonly base: HTMLCanvasElement;
  private readonly over: HTMLCanvasElement;
  private readonly ruler: HTMLCanvasElement;
  private readonly spacer: HTMLElement;
  private readonly labels: HTMLElement;
  private readonly observer: ResizeObserver;
  private frame = 0;
  private isDirty = true;
  private matchStrip: { match: Match | null; strip: Uint8Array | null } = { match: null, strip: null };

  /** Elements of `root` have the classes `ruler`, `scroller`, `spacer`, `labels`, `base` and `over`. */
  constructor(
    readonly run: Run,
    readonly store: Store,
    readonly root: HTMLElement,
    readonly scroller: HTMLElement,
  ) {
    const find = <T extends Element>(name: string): T => root.querySelector<T>(`.${name}`) as T;
    this.base = find("base");
    this.over = find("over");
    this.ruler = find("ruler");
    this.spacer = find("spacer");
    this.labels = find("labels");
    this.view = new View(run, Math.max(...store.runs.map((other) => (other.span * other.unit) / run.unit)));
    this.layout = new Layout(run);
    this.painter = new FramePainter(run, this.layout);
    this.view.onChange = () => {
      this.invalidate();
      this.linkOthers();
    };
    this.observer = new ResizeObserver(() => this.invalidate());
    this.observer.observe(scroller);
    scroller.addEventListener("scroll", () => this.invalidate(), { passive: true });
    listenToPointers(this);
    this.paint();
    // The track with most slices is seen first.
    const largest = run.tracks.reduce(
      (most, { slices }, track) => (slices > run.tracks[most].slices ? track : most),
      0,
    );
    const top = run.tracks.length ? this.layout.block(largest).top : 0;
    if (top > scroller.clientHeight / 2) scroller.scrollTop = top - 2 * HEADER;
  }

  stop(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Width of the canvases in CSS pixels. */
  get width(): number {
    return Math.max(1, this.scroller.clientWidth - this.labels.offsetWidth);
  }

  get window(): Window {
    const { begin, end } = this.view;
    return { begin, end, scale: (this.base.width || 1) / (end - begin) };
  }

  position(x: number): number {
    return this.view.begin + (x / this.width) * this.view.width;
  }

  /** What is at a point, in CSS pixels from the corner of the canvas. */
  hit(x: number, y: number): Hit | null {
    const top = y + this.scroller.scrollTop;
    const [block] = this.layout.visible(top, top + 1);
    if (!block || x < 0) return null;
    const depth = Math.floor((top - block.top - HEADER) / ROW);
    const position = this.position(x);
    let slice = NONE;
    const { slices } = this.run;
    if (slices && depth >= 0 && depth < block.rows) {
      const row = slices.trackRow[block.track] + depth;
      const nearest = slices.nearest(row, position);
      const reach = (1.5 * this.view.width) / this.width;
      if (nearest !== NONE && slices.begin[nearest] - reach <= position && slices.end(nearest) + reach >= position) {
        slice = nearest;
      }
    }
    return { track: block.track, depth: depth < block.rows ? depth : -1, position, slice };
  }

  /** Calls of a row that share the pixel of a slice. */
  callsInPixel(slice: number): number {
    const { slices } = this.run;
    if (!slices) return 1;
    const pixel = this.view.width / this.width;
    if (slices.duration(slice) >= pixel) return 1;
    const row = slices.rowOf(slice);
    const first = Math.floor((slices.begin[slice] - this.view.begin) / pixel) * pixel + this.view.begin;
    return Math.max(1, slices.firstAfter(row, first + pixel) - slices.firstAfter(row, first));
  }

  /** Shows a slice: its track, its row and its times. */
  reveal(slice: number): void {
    const { slices } = this.run;
    if (!slices) return;
    const row = slices.rowOf(slice);
    const track = slices.trackOfRow(row);
    const depth = row - slices.trackRow[track];
    if (this.layout.collapsed.has(track)) this.layout.toggle(this.layout.collapsed, track);
    if (depth >= this.layout.shownRows(track)) this.layout.toggle(this.layout.unfolded, track);
    this.spacer.style.height = `${this.layout.height}px`;
    const top = this.layout.rowTop(track, depth);
    const height = this.scroller.clientHeight;
    const { scrollTop } = this.scroller;
    if (top < scrollTop + HEADER || top + ROW > scrollTop + height) {
      this.scroller.scrollTop = depth < 8 ? this.layout.block(track).top : top - height / 2;
    }
    this.view.reveal(slices.begin[slice], slices.end(slice));
    this.invalidate();
  }

  invalidate(): void {
    this.isDirty = true;
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  /** Draws hover, focus and selections again, not the slices. */
  invalidateOver(): void {
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  private linkOthers(): void {
    const { store } = this;
    if (!store.isLinked) return;
    for (const other of store.timelines) {
      if (!other || other === this) continue;
      const factor = this.run.unit / other.run.unit;
      const [begin, end] = [this.view.begin * factor, this.view.end * factor];
      if (other.view.begin === begin && other.view.end === end) continue;
      // Without `set`, which would call this again.
      [other.view.begin, other.view.end] = [begin, end];
      other.invalidate();
    }
  }

  private paint(): void {
    this.frame = 0;
    const dpr = Math.min(3, window.devicePixelRatio || 1);
    const width = Math.round(this.width * dpr);
    const height = Math.max(1, Math.round(this.scroller.clientHeight * dpr));
    const palette = paletteOf(this.store.isDark());
    for (const canvas of [this.base, this.over]) {
      if (canvas.width !== width || canvas.height !== height) {
        canvas.width = width;
        canvas.height = height;
        canvas.style.width = `${width / dpr}px`;
        canvas.style.height = `${height / dpr}px`;
        this.isDirty = true;
      }
    }
    if (this.isDirty) {
      this.isDirty = false;
      this.spacer.style.height = `${this.layout.height}px`;
      const matching = this.store.matches[this.run.index]?.functions ?? null;
      const context = this.base.getContext("2d", { alpha: false });
      if (context)
        this.painter.draw(context, this.window, this.scroller.scrollTop, width, height, dpr, palette, matching);
      render(<Labels timeline={this} />, this.labels);
    }
    this.paintRuler(width, dpr);
    this.paintOver(dpr);
  }

  private paintRuler(width: number, dpr: number): void {
    const palette = paletteOf(this.store.isDark());
    const { ruler } = this;
    if (ruler.width !== width || ruler.height !== RULER * dpr) {
      ruler.width = width;
      ruler.height = RULER * dpr;
      ruler.style.width = `${width / dpr}px`;
      ruler.style.height = `${RULER}px`;
    }
    const context = ruler.getContext("2d", { alpha: false });
    if (!context) return;
    const { selection } = this.store;
    const isRange = selection?.kind === "range" && selection.run === this.run.index;
    const range = this.draft ?? (isRange ? ([selection.begin, selection.end] as [number, number]) : null);
    const marks = this.store.marks.filter((mark) => mark.run === this.run.index);
    const matches = this.matches();
    drawRuler(context, this.run, this.window, width, dpr, palette, {
      range,
      matches,
      marks: marks.map((mark) => [mark.begin, mark.end]),
    });
  }

  // Columns of the whole run that have a matching slice.
  private matches(): Uint8Array | null {
    const { slices } = this.run;
    const match = this.store.matches[this.run.index];
    if (!match || !slices) return null;
    if (this.matchStrip.match !== match || !this.matchStrip.strip) {
      const strip = new Uint8Array(1024);
      const scale = strip.length / this.run.span;
      for (let i = 0; i < slices.count; i++) {
        if (!match.functions[slices.functionOf(i)]) continue;
        strip[Math.min(strip.length - 1, Math.floor((slices.begin[i] - this.run.head.range[0]) * scale))] = 1;
      }
      this.matchStrip = { match, strip };
    }
    return this.matchStrip.strip;
  }

  private paintOver(dpr: number): void {
    const context = this.over.getContext("2d");
    if (!context) return;
    const palette = paletteOf(this.store.isDark());
    context.clearRect(0, 0, this.over.width, this.over.height);
    const { selection, focus, marks } = this.store;
    const { scale, begin } = this.window;
    const x = (position: number): number => (position - begin) * scale;
    for (const mark of marks) {
      if (mark.run !== this.run.index) continue;
      context.fillStyle = palette.mark;
      context.fillRect(x(mark.begin), 0, dpr, this.over.height);
      context.fillRect(x(mark.end), 0, dpr, this.over.height);
    }
    this.paintDivergences(context, palette, dpr);
    const isRange = selection?.kind === "range" && selection.run === this.run.index;
    const range = this.draft ?? (isRange ? [selection.begin, selection.end] : null);
    if (range) {
      context.fillStyle = palette.range;
      context.fillRect(x(range[0]), 0, Math.max(dpr, x(range[1]) - x(range[0])), this.over.height);
      context.fillStyle = palette.selection;
      context.fillRect(x(range[0]), 0, dpr, this.over.height);
      context.fillRect(x(range[1]) - dpr, 0, dpr, this.over.height);
    }
    if (this.hover && this.hover.slice !== NONE) this.outline(context, this.hover.slice, palette.focus, dpr, dpr);
    if (selection?.kind === "slice" && selection.run === this.run.index) {
      this.outline(context, selection.slice, palette.selection, 3 * dpr, dpr);
    }
    if (focus?.run === this.run.index)
      this.outline(context, focus.slice, palette.focus, 2 * dpr, dpr, [4 * dpr, 2 * dpr]);
  }

  // A line over the track, dashed in code of the system, with a triangle at its top.
  private paintDivergences(context: CanvasRenderingContext2D, palette: Palette, dpr: number): void {
    const { divergences } = this.run.head;
    if (!divergences?.length) return;
    const { scale, begin } = this.window;
    const { scrollTop } = this.scroller;
    const seen = new Map(
      this.layout.visible(scrollTop, scrollTop + this.over.height / dpr).map((block) => [block.track, block]),
    );
    context.strokeStyle = context.fillStyle = palette.divergence;
    for (const [track, position, number, , , isOwn] of divergences) {
      const block = seen.get(track);
      const x = Math.round((position - begin) * scale);
      if (!block || x < -9 * dpr || x > this.over.width + 9 * dpr) continue;
      const top = (block.top - scrollTop) * dpr;
      const size = (number === this.store.divergence ? 8 : 5) * dpr;
      context.lineWidth = (number === this.store.divergence ? 2 : 1) * dpr;
      context.setLineDash(isOwn ? [] : [3 * dpr, 3 * dpr]);
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, (block.bottom - scrollTop) * dpr);
      context.stroke();
      context.beginPath();
      context.moveTo(x - size, top);
      context.lineTo(x + size, top);
      context.lineTo(x, top + size);
      context.fill();
    }
    context.setLineDash([]);
  }

  /** Moves a position of a track to the middle, and leaves the other run where it is. */
  center(track: number, position: number): void {
    const { view, layout, scroller } = this;
    if (layout.collapsed.has(track)) layout.toggle(layout.collapsed, track);
    this.spacer.style.height = `${layout.height}px`;
    const { top, bottom } = layout.block(track);
    if (top < scroller.scrollTop || bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top;
    const width = Math.min(view.width, this.run.span / 20);
    [view.begin, view.end] = [position - width / 2, position + width / 2];
    this.invalidate();
  }

  private outline(
    context: CanvasRenderingContext2D,
    slice: number,
    color: string,
    thickness: number,
    dpr: number,
    dash: number[] = [],
  ): void {
    const { slices } = this.run;
    if (!slices) return;
    const row = slices.rowOf(slice);
    const track = slices.trackOfRow(row);
    const depth = row - slices.trackRow[track];
    if (depth >= this.layout.shownRows(track)) return;
    const { scale, begin } = this.window;
    const x0 = Math.max(-9, (slices.begin[slice] - begin) * scale);
    const x1 = Math.min(this.over.width + 9, (slices.end(slice) - begin) * scale);
    if (x1 < -9 || x0 > this.over.width + 9) return;
    const y = (this.layout.rowTop(track, depth) - this.scroller.scrollTop) * dpr;
    context.strokeStyle = color;
    context.lineWidth = thickness;
    context.setLineDash(dash);
    context.strokeRect(x0, y, Math.max(3 * dpr, x1 - x0), (ROW - 1) * dpr);
    context.setLineDash([]);
  }

  /** Moves the tooltip to what is at a point; null hides it. */
  point(hit: Hit | null, clientX: number, clientY: number): void {
    this.hover = hit;
    if (hit) showTooltip(this, hit, clientX, clientY);
    else hideTooltip();
    this.invalidateOver();
  }
}
