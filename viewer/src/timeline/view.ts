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

  /** Moves so that the begin of a range is seen, or a part of it where it is longer than the window. */
  reveal(begin: number, end: number): void {
    const isSeen =
      end - begin > this.width ? begin < this.end && end > this.begin : begin >= this.begin && end <= this.end;
    if (!isSeen)
      this.pan((end - begin > this.width ? begin + this.width * 0.4 : (begin + end) / 2) - (this.begin + this.end) / 2);
  }

  /** Zooms in so that a range is wide enough to be seen well. */
  approach(begin: number, end: number): void {
    const width = Math.max((end - begin) * 20, LEAST);
    if (width < this.width / 20) this.set((begin + end - width) / 2, (begin + end + width) / 2);
  }
}
