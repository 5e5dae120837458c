// Numbers with units.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A whole number with separators, "-" where it is not known. */
export function countText(value: number | null | undefined): string {
  return value === null || value === undefined || Number.isNaN(value) ? "-" : grouped.format(value);
}

/** A number and its noun. */
export function plural(value: number, noun: string): string {
  return `${countText(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Digits after the point, in the unit that `axisText` chooses, so that a window has distinct texts. */
export function precision(window: number): number {
  return window > 0 ? window / 1000 : 0;
}

const TIMES: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];
const COUNTS: [number, string][] = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];

/** A time in ns, or a number of instructions or ticks; digits down to `step`, or three. */
export function axisText(value: number, unit: "ns" | "ticks" | "instructions", step = 0): string {
  const size = Math.abs(value);
  const scales = unit === "ns" ? TIMES : COUNTS;
  const [factor, suffix] = scales.find(([least]) => size >= least) ?? scales[scales.length - 1];
  const scaled = value / factor;
  let digits = Math.abs(scaled) >= 100 ? 0 : Math.abs(scaled) >= 10 ? 1 : 2;
  if (step > 0) digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  if (factor === 1 && unit !== "ns") digits = 0;
  const text = scaled === 0 ? "0" : scaled.toFixed(digits);
  if (unit === "ns") return `${text} ${suffix}`;
  return `${text}${suffix ? ` ${suffix}` : ""}${step > 0 ? "" : ` ${unit}`}`;
}

/** A share as text. */
export function percentText(part: number, whole: number): string {
  if (!(whole > 0)) return "-";
  const share = (100 * part) / whole;
  return `${share >= 99.95 ? share.toFixed(0) : share.toFixed(share < 10 ? 2 : 1)}%`;
}

/** Least and most: one text where they are equal. */
export function boundsText(least: number, most: number, text: (value: number) => string): string {
  const [low, high] = [text(least), text(most)];
  return low === high ? low : `[${low}, ${high}]`;
}
