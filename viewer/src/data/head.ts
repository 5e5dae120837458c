// Head of the page's data: types of its JSON. Names of members are those of the writer.

export type ColumnType = "u8" | "u16" | "u32" | "u64";
export type Coding = "raw" | "delta" | "const";
export type ChunkColumn = [string, ColumnType, Coding] | [string, ColumnType, "const", number];

export interface ChunkHead {
  rows: number;
  columns: ChunkColumn[];
}

export const enum BandKind {
  UNTRACED = 0,
  SWITCHED_OUT = 1,
  LOST = 2,
}

export interface TrackHead {
  name: string;
  detail: string;
  thread: number;
  pid: number | null;
  tid: number | null;
  cpu: number | null;
  stream: number;
  stack: number;
  selection: [string, number][] | null;
  slices: number;
  depth: number;
  range: [number, number];
  bands: [number, number, BandKind][];
  counts: [number, number][];
  first?: { depths: number; rows: string } | null;
}

export interface FunctionColumns {
  name: string[];
  full: (string | null)[];
  module: number[];
  modules: string[];
  calls: (number | null)[];
  self_instructions: (number | null)[];
  instructions: (number | null)[];
  time_ns?: (number | null)[];
  least?: (number | null)[];
  most?: (number | null)[];
  exact?: number[];
  detail?: number[];
}

/** Track, position, number, where both runs part, what this one did, and whether it is the program's own code. */
export type Divergence = [number, number, number, string, string, boolean];

export interface RunHead {
  title: string;
  command: string | null;
  facts: [string, string][];
  notes: string[];
  by: "time" | "instructions";
  unit_ns: number | null;
  origin: string;
  first_time_ns: string | null;
  range: [number, number];
  reproduce: { file: string; options: string[]; query: string; selects_all: boolean };
  tracks: TrackHead[];
  divergences?: Divergence[];
  functions: FunctionColumns;
  chunks: ChunkHead[];
}

export interface Head {
  version: number;
  ptkit: string;
  runs: RunHead[];
  notes: string[];
  words?: { how?: string[]; end_how?: string[]; flags?: Record<string, number> };
}

export const VERSION = 1;

/** Head of this page, or the reason why there is none. */
export function readHead(): Head | string {
  const element = document.getElementById("head");
  if (!element) return "This page has no data: it is the empty page that `ptkit view` fills.";
  let head: Head;
  try {
    head = JSON.parse(element.textContent ?? "") as Head;
  } catch (error) {
    return `The data of this page is damaged: ${String(error)}`;
  }
  if (head.version !== VERSION) {
    return `The data of this page has version ${head.version}, and its script reads version ${VERSION}.`;
  }
  return head;
}
