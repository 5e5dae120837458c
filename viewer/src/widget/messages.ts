// Messages between a page and the notebook's widget that shows it. All are plain data.

/** Mark and version of all messages: others are ignored. */
export const MARK = 1;

/** What is selected; null where a kind of selection has no such value. Names are as they are in the recording. */
export interface Selected {
  kind: "slice" | "function" | "range";
  run: number;
  function: string | null;
  symbol: string | null;
  id: number | null;
  calls: number | null;
  tid: number | null;
  by: "time" | "instructions" | null;
  begin: string | null; // decimal, as ticks have up to 64 bits; so do other positions
  end: string | null;
  command: string | null;
  python: string | null;
}

export type FromPage =
  | { ptkit: typeof MARK; type: "ready" } // it takes requests from now on
  | { ptkit: typeof MARK; type: "selection"; selection: Selected | null };

export type Request =
  | { type: "find"; text: string }
  | { type: "select"; selection: Pick<Selected, "kind" | "run"> & Partial<Selected> }
  | { type: "zoom"; run: number; begin: string; end: string };

export type ToPage = { ptkit: typeof MARK } & Request;

/** Members of a message, or null for what is none. */
export function membersOf(data: unknown): Record<string, unknown> | null {
  if (typeof data !== "object" || data === null) return null;
  const members = data as Record<string, unknown>;
  return members["ptkit"] === MARK ? members : null;
}
