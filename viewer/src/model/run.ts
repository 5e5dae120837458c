// A run: its head, its slices once they are decoded, and its units.
import type { Head, RunHead, TrackHead } from "../data/head";
import { decode } from "../decode/worker";
import { cleaned, fileName } from "../text/names";
import { axisText, countText, precision } from "../text/numbers";
import { Slices } from "./slices";

export class Run {
  readonly index: number;
  readonly head: RunHead;
  readonly tracks: TrackHead[];
  /** Names as they are drawn: without control characters. */
  readonly names: string[];
  readonly hues: Uint16Array; // of each function: its number in the palette
  slices: Slices | null = null;
  error: string | null = null;

  constructor(index: number, head: RunHead) {
    this.index = index;
    this.head = head;
    this.tracks = head.tracks;
    this.names = head.functions.name.map(cleaned);
    this.hues = Uint16Array.from(head.functions.name, (name, i) => hash(name, head.functions.module[i]));
  }

  get span(): number {
    return Math.max(1, this.head.range[1] - this.head.range[0]);
  }

  /** Length of a unit of the axis: ns by time, 1 by instructions and where the clock is not known. */
  get unit(): number {
    return this.head.unit_ns ?? 1;
  }

  get isTime(): boolean {
    return this.head.by === "time";
  }

  /** Word for a length on the axis. */
  get unitName(): "ns" | "ticks" | "instructions" {
    if (!this.isTime) return "instructions";
    return this.head.unit_ns === null ? "ticks" : "ns";
  }

  /** A length of the axis as text. */
  length(units: number): string {
    return axisText(units * this.unit, this.unitName);
  }

  /** A length as text of a table, of which the head has the unit of instructions. */
  amount(units: number): string {
    return this.isTime ? this.length(units) : countText(Math.round(units));
  }

  /** A position as text, with as many digits as a width of the window needs. */
  position(units: number, window: number): string {
    return axisText(units * this.unit, this.unitName, precision(window * this.unit));
  }

  fullName(fn: number): string {
    const full = this.head.functions.full[fn];
    return full === null || full === undefined ? this.names[fn] : cleaned(full);
  }

  /** Whether a function has this name, full name, or full name after that of its file and "!". */
  isNamed(fn: number, text: string): boolean {
    const full = this.fullName(fn);
    return [this.names[fn], full, `${this.moduleFile(fn)}!${full}`].includes(cleaned(text));
  }

  moduleName(fn: number): string {
    const module = this.head.functions.module[fn];
    return module < 0 || module === undefined ? "" : cleaned(this.head.functions.modules[module] ?? "");
  }

  moduleFile(fn: number): string {
    return fileName(this.moduleName(fn));
  }

  trackName(track: number): string {
    const { name, detail, stack } = this.tracks[track];
    return [cleaned(name) || cleaned(detail) || "unnamed", stack > 0 ? `(stack ${stack})` : ""].join(" ").trim();
  }

  detailChunk(fn: number): number {
    return this.head.functions.detail?.[fn] ?? -1;
  }

  /** Decodes the slices; the elements with their text leave the document, which frees it. */
  async load(): Promise<void> {
    const texts = this.head.chunks.map((_, n) => {
      const element = document.getElementById(`r${this.index}-slices-${n}`);
      const text = element?.textContent ?? "";
      element?.remove();
      return text;
    });
    try {
      const depths = this.tracks.map((track) => track.depth);
      const end = this.head.range[1];
      this.slices = new Slices(await decode({ run: this.index, chunks: this.head.chunks, texts, depths, end }));
    } catch (error) {
      this.error = `The slices of ${this.head.title} cannot be read: ${String(error)}`;
    }
  }
}

/** Runs of the page. */
export function runsOf(head: Head): Run[] {
  return head.runs.map((run, index) => new Run(index, run));
}

// FNV-1a of a name and the number of its module.
function hash(text: string, module: number): number {
  let value = 0x811c9dc5 ^ (module + 1);
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value ^ (value >>> 15)) & 0xffff;
}
