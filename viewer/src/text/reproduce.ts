// Commands and Python lines that give what a selection shows.
import type { Run } from "../model/run";
import { cleaned, fileName } from "./names";

export interface Reproduced {
  command: string;
  python: string;
}

// Characters that a shell or a terminal could take for more than text are escapes of $'...'.
const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** A word for a POSIX shell; bash and zsh where it has control characters. */
export function shellWord(text: string): string {
  if (SAFE.test(text)) return text;
  if (cleaned(text) === text) return `'${text.replaceAll("'", `'"'"'`)}'`;
  let quoted = "$'";
  for (const character of text) {
    if (character === "'" || character === "\\") quoted += `\\${character}`;
    else if (character === "\0")
      quoted += "?"; // in a pattern, any character
    else if (cleaned(character) !== character) {
      quoted += `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
    } else quoted += character;
  }
  return `${quoted}'`;
}

/** A literal of Python. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\u{10ffff}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

// An option and its value, which may begin with "-".
function option(name: string, value: string): string[] {
  return value.startsWith("-") ? [`${name}=${value}`] : [name, value];
}

function words(verb: string, run: Run, options: string[]): string {
  return ["ptkit", verb, run.head.reproduce.file, ...options].map(shellWord).join(" ");
}

const CUTS = ["time", "instructions"]; // where calls begin and end, as in the range that replaces it

function optionsWithout(options: string[], names: string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < options.length; i++) {
    const [name, ...value] = options[i].split("=");
    if (!names.some((one) => name === `--${one}`)) kept.push(options[i]);
    else if (!value.length) i++;
  }
  return kept;
}

function queryWithout(query: string, names: string[]): string {
  const value = String.raw`(\([^()]*\)|\[[^\[\]]*\]|\d+)`;
  return query.replace(new RegExp(`(^|, )(${names.join("|")})=${value}`, "g"), "").replace(/^, /, "");
}

function joined(...parts: string[]): string {
  return parts.filter(Boolean).join(", ");
}

/** Full name of a function as it is in the recording. */
export function wholeName(run: Run, fn: number): string {
  const { name, full } = run.head.functions;
  return full[fn] ?? name[fn];
}

/** Name by which `--symbol` selects one function. */
export function symbolOf(run: Run, fn: number): string {
  const { name, full, module, modules } = run.head.functions;
  const whole = wholeName(run, fn);
  const isShared = name.some((other, i) => i !== fn && (full[i] ?? other) === whole);
  return isShared && module[fn] >= 0 ? `${fileName(modules[module[fn]])}!${whole}` : whole;
}

/** Row of a function in the table of functions. */
export function ofFunction(run: Run, fn: number): Reproduced {
  const { file, options, query } = run.head.reproduce;
  const symbol = symbolOf(run, fn);
  return {
    command: words("functions", run, [...options, ...option("--symbol", symbol)]),
    python: `ptkit.open(${pythonText(file)}).functions(${joined(query, `symbol=${pythonText(symbol)}`)})`,
  };
}

/** All functions. */
export function ofFunctions(run: Run): Reproduced {
  const { file, options, query } = run.head.reproduce;
  return {
    command: words("functions", run, [...options, "--all"]),
    python: `ptkit.open(${pythonText(file)}).functions(${query})`,
  };
}

/** Slow against fast calls of a function. */
export function ofSlow(run: Run, fn: number): Reproduced {
  const { file, options, query } = run.head.reproduce;
  const symbol = symbolOf(run, fn);
  return {
    command: words("functions", run, [
      ...options,
      ...option("--slow", symbol),
      ...(run.isTime ? ["--of", "time"] : []),
    ]),
    python: `ptkit.open(${pythonText(file)}).compare(${joined(pythonText(symbol), run.isTime ? 'by="time"' : "", query)})`,
  };
}

const FUNCTIONS = ["ip", "symbol", "module"]; // a call is printed with what it called, whose functions are others

/** One call and what it called, by its number in the table of calls. */
export function ofCall(run: Run, id: number): Reproduced {
  const { file, options, query } = run.head.reproduce;
  return {
    command: words("calls", run, [...optionsWithout(options, FUNCTIONS), "--id", String(id)]),
    python: `ptkit.open(${pythonText(file)}).calls(${query}).where(id=${id})`,
  };
}

/** What selects the threads of a range; null: nothing does. */
function threadsOf(run: Run, track: number | null): [string, number][] | null {
  const { options, selects_all: selectsAll } = run.head.reproduce;
  if (run.isTime) {
    if (options.includes("--instructions")) return null;
    return track === null ? [] : run.tracks[track].selection;
  }
  const isCutByTime = options.includes("--time"); // each track is cut at instructions of its own
  if (track === null && run.tracks.length > 1) return selectsAll && !isCutByTime ? [] : null;
  return run.tracks[track ?? 0]?.selection ?? null;
}

/** Why a range has no command. */
export function whyNone(run: Run, track: number | null): string {
  if (run.isTime) return "No command selects a time within a range of instructions.";
  if (track === null && run.tracks.length > 1)
    return "Each thread counts its own instructions: choose a track for the command.";
  return (
    "No command counts instructions as this track does: its thread has several stacks, or shares a processor " +
    "with others, and kernel code was traced. A page of this thread alone (ptkit view --tid) may have one."
  );
}

/** An interval of all tracks, or of the thread of one; null: no command gives what it shows. */
export function ofRange(run: Run, begin: number, end: number, track: number | null): Reproduced | null {
  const threads = threadsOf(run, track);
  if (!threads) return null;
  const { file, options, query } = run.head.reproduce;
  const origin = BigInt(run.head.origin);
  let [first, last] = [Math.floor(begin), Math.ceil(end)];
  if (!run.isTime && CUTS.some((name) => options.includes(`--${name}`))) {
    const ranges = run.tracks.filter((one, i) => one.slices && (track ?? i) === i).map((one) => one.range);
    first = Math.max(first, Math.min(...ranges.map((one) => one[0])));
    last = Math.max(first, Math.min(last, Math.max(...ranges.map((one) => one[1]))));
  }
  const [from, to] = [origin + BigInt(first), origin + BigInt(last)];
  const dropped = [...CUTS, ...threads.map(([name]) => name)];
  return {
    command: words("functions", run, [
      ...optionsWithout(options, dropped),
      ...threads.flatMap(([name, value]) => [`--${name}`, String(value)]),
      run.isTime ? "--time" : "--instructions",
      `${from}-${to}`,
      "--all",
    ]),
    python:
      `ptkit.open(${pythonText(file)})` +
      (run.isTime ? `.between(${from}, ${to})` : `.between(instructions=(${from}, ${to}))`) +
      `.functions(${joined(queryWithout(query, dropped), ...threads.map(([name, value]) => `${name}=${value}`))})`,
  };
}
