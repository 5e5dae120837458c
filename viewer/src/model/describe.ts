// Facts of a slice as names and texts, for the tooltip and the panel.
import type { Head } from "../data/head";
import { boundsText, countText, plural } from "../text/numbers";
import type { Run } from "./run";

const EXACT = 1;

/** Least and most length of a slice: its positions are the earliest ones. */
export function bounds(run: Run, slice: number): [number, number] {
  const s = run.slices;
  if (!s) return [0, 0];
  const duration = s.duration(slice);
  return [Math.max(0, duration - s.value("begin_error", slice)), duration + s.value("end_error", slice)];
}

/** Length as text, with [least, most] where its ends have errors. */
export function durationText(run: Run, slice: number): string {
  const [least, most] = bounds(run, slice);
  const text = (units: number): string => run.length(units);
  return boundsText(least, most, text);
}

function word(words: string[] | undefined, value: number): string {
  return (words?.[value] ?? String(value)).toLowerCase().replaceAll("_", " ");
}

/** Names and texts of what is known of a slice. */
export function describe(head: Head, run: Run, slice: number): [string, string][] {
  const s = run.slices;
  if (!s) return [];
  const fn = s.functionOf(slice);
  const calls = s.value("calls", slice);
  const facts: [string, string][] = [];
  const full = run.fullName(fn);
  if (full !== run.names[fn]) facts.push(["full name", full]);
  if (run.moduleName(fn)) facts.push(["module", run.moduleName(fn)]);
  facts.push(["begin", run.length(s.begin[slice])]);
  facts.push([calls > 1 ? "from first to last" : run.isTime ? "duration" : "length", durationText(run, slice)]);
  if (calls > 1) {
    facts.push(["calls", `${plural(calls, "call")} merged; the longest one is of this function`]);
    facts.push(["of all calls", run.length(s.value("covered", slice))]);
  }
  if (run.isTime) facts.push(["instructions", countText(s.value("instructions", slice))]);
  facts.push(["branches", countText(s.value("branches", slice))]);
  const exact = head.words?.flags?.["EXACT"] ?? EXACT;
  facts.push(["exact", s.value("flags", slice) & exact ? "yes" : "no: some of its blocks or ends are not certain"]);
  facts.push(["began by", word(head.words?.how, s.value("how", slice))]);
  facts.push(["ended by", word(head.words?.end_how, s.value("end_how", slice))]);
  if (s.value("has_loss", slice)) facts.push(["loss", "control flow was lost within it"]);
  return facts;
}
