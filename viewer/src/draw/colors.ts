// Colours of the canvases. What matters has a pattern, too: hues only tell functions apart.

export interface Palette {
  isDark: boolean;
  background: number; // ABGR as in ImageData on little-endian machines, an integer of 32 bits with sign
  ink: number; // of patterns and edges on slices
  trackLine: number;
  slices: Int32Array;
  dimmed: number;
  untraced: number;
  switchedOut: number;
  lost: number;
  lostLine: number;
  bandInk: number;
  count: number;
  text: string;
  sliceText: string;
  muted: string;
  line: string;
  focus: string;
  selection: string;
  range: string;
  mark: string;
  divergence: string;
  match: string;
  rulerBack: string;
}

const HUES = 24;
const SHADES = 3;
const FONT = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
export const font = (dpr: number): string => FONT.replace("11px", `${11 * dpr}px`);

function abgr(red: number, green: number, blue: number): number {
  return (255 << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red) | 0;
}

function hex(text: string): number {
  const value = parseInt(text.slice(1), 16);
  return abgr(value >> 16, (value >> 8) & 255, value & 255);
}

function hsl(hue: number, saturation: number, lightness: number): number {
  const chroma = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n: number): number => {
    const k = (n + hue / 30) % 12;
    return 255 * (lightness - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return abgr(channel(0), channel(8), channel(4));
}

function sliceColors(isDark: boolean): Int32Array {
  const colors = new Int32Array(HUES * SHADES);
  for (let i = 0; i < colors.length; i++) {
    const shade = Math.floor(i / HUES);
    // Reds are left to losses.
    const hue = 28 + (i % HUES) * (304 / HUES);
    colors[i] = isDark ? hsl(hue, 0.34, 0.32 + shade * 0.06) : hsl(hue, 0.52, 0.7 + shade * 0.06);
  }
  return colors;
}

const LIGHT: Palette = {
  isDark: false,
  background: hex("#ffffff"),
  ink: hex("#000000"),
  trackLine: hex("#d5d9df"),
  slices: sliceColors(false),
  dimmed: hex("#e8eaed"),
  untraced: hex("#eef0f3"),
  switchedOut: hex("#e3ecf7"),
  lost: hex("#fbd9d6"),
  lostLine: hex("#c5221f"),
  bandInk: hex("#9aa5b4"),
  count: hex("#8fa3bf"),
  text: "#1b1f24",
  sliceText: "#15181c",
  muted: "#5a6472",
  line: "#c3c9d1",
  focus: "#000000",
  selection: "#0b57d0",
  range: "rgba(11, 87, 208, 0.14)",
  mark: "#7a4a00",
  divergence: "#9c27b0",
  match: "#a8006d",
  rulerBack: "#f6f7f9",
};

const DARK: Palette = {
  isDark: true,
  background: hex("#16191d"),
  ink: hex("#ffffff"),
  trackLine: hex("#343a42"),
  slices: sliceColors(true),
  dimmed: hex("#272b31"),
  untraced: hex("#22262c"),
  switchedOut: hex("#1c2a3c"),
  lost: hex("#4a1f1f"),
  lostLine: hex("#ff7a70"),
  bandInk: hex("#5b6675"),
  count: hex("#5d7698"),
  text: "#e4e7eb",
  sliceText: "#f4f6f8",
  muted: "#9aa5b3",
  line: "#3d444d",
  focus: "#ffffff",
  selection: "#8ab4f8",
  range: "rgba(138, 180, 248, 0.18)",
  mark: "#f2c14e",
  divergence: "#e08bf0",
  match: "#ff8fd0",
  rulerBack: "#1d2126",
};

export const paletteOf = (isDark: boolean): Palette => (isDark ? DARK : LIGHT);

/** Colour of a function. */
export const sliceColor = (palette: Palette, hue: number): number => palette.slices[hue % palette.slices.length];

/** Colour between two: `share` of 256 of `over`. */
export function mix(under: number, over: number, share: number): number {
  const rest = 256 - share;
  const redBlue = ((Math.imul(under & 0xff00ff, rest) + Math.imul(over & 0xff00ff, share)) >>> 8) & 0xff00ff;
  const green = ((Math.imul(under & 0x00ff00, rest) + Math.imul(over & 0x00ff00, share)) >>> 8) & 0x00ff00;
  return 0xff000000 | redBlue | green;
}
