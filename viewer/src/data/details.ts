// Details of functions: chunks of JSON that are read when a function is selected.
import { decodeBase64, inflate } from "../decode/bytes";

export interface SlowCall {
  id: number;
  track: number;
  begin: number;
  duration: number;
  instructions: number;
}

export interface SlowRow {
  name: string;
  slow: number;
  fast: number;
  extra: number;
}

export type Instruction = [string, string, number, number, number?, number?];

export interface Detail {
  function: number;
  histogram?: { edges: number[]; counts: number[]; of: "ns" | "instructions" } | null;
  slowest?: SlowCall[] | null;
  slow?: { text: string; rows: SlowRow[] } | null;
  code?: { instructions: Instruction[]; bytes_missing: number } | null;
  source?: { path: string; first: number; lines: string[]; counts: (number | null)[] } | null;
}

// Chunks that were read last: JSON of a chunk may have megabytes.
const KEPT = 8;
const chunks = new Map<string, Promise<Detail[]>>();

async function readChunk(id: string): Promise<Detail[]> {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Error(`the page has no element ${id}`);
  const bytes = await inflate(decodeBase64(text));
  return JSON.parse(new TextDecoder().decode(bytes)) as Detail[];
}

/** Details of a function, or null where the page has none. */
export async function readDetail(run: number, chunk: number, fn: number): Promise<Detail | null> {
  if (chunk < 0) return null;
  const id = `r${run}-details-${chunk}`;
  const known = chunks.get(id) ?? readChunk(id);
  chunks.delete(id);
  chunks.set(id, known);
  if (chunks.size > KEPT) chunks.delete(chunks.keys().next().value as string);
  return (await known).find((detail) => detail.function === fn) ?? null;
}
