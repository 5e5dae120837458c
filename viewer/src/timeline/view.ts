// Visible part of the axis of a run.
import type { Run } from "../model/run";

const LEAST = 8; // units
const MARGIN = 0.02;

export class View {
  begin: number;
  end: number;
  onChange: () => void = () => {};

  /** `span`: units from the begin that can be seen; of two runs, as many as the longer one needs. */
  constructor(
    private readonly run: Run,
    private readonly span: number,
  ) {
    [this.begin, this.end] = this.whole();
  }

  get width(): number {
    return this.end - this.begin;
  }

  whole(): [number, number] {
    const margin = this.span * MARGIN;
    const [first] = this.run.head.range;
    return [first - margin, first + this.span + margin];
  }

  set(begin: number, end: number): void {
    const [first, last] = this.whole();
    const width = Math.min(Math.max(end - begin, LEAST), last - first);
    const middle = (begin + end) / 2;
    this.begin = Math.min(Math.max(middle - width / 2, first), last - width);
    this.end = this.begin + width;
    this.onChange();
  }

  pan(units: number): void {
    this.set(this.begin + units, this.end + units);
  }

  /** Zooms so that a position stays where it is. */
  zoom(factor: number, at: number): void {
    const width = Math.max(LEAST, this.width * factor);
    const share = (at - this.begin) / this.width;
    this.set(at - share * width, at + (1 - share) * width);
  }

  /** Shows a range with a margin. */
  fit(begin: number, end: number): void {
    const margin = Math.max((end - begin) * 0.1, LEAST / 2);
    this.set(begin - margin, end + margin);
  }

  /** Moves so that a range is seen; its width changes only if the range is much wider or narrower. */
  reveal(begin: number, end: number): void {
    const length = end - begin;
    if (length > this.width * 0.9 || length < this.width / 400) {
      const width = Math.max(length * 1.2, Math.min(this.width, length * 40), LEAST);
      this.set((begin + end - width) / 2, (begin + end + width) / 2);
    } else if (begin < this.begin || end > this.end) {
      this.set((begin + end - this.width) / 2, (begin + end + this.width) / 2);
    }
  }
}
