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

function optionsWithoutTime(options: string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < options.length; i++) {
    if (options[i] === "--time") i++;
    else if (!options[i].startsWith("--time=") && options[i] !== "--whole-calls") kept.push(options[i]);
  }
  return kept;
}

function queryWithoutTime(query: string): string {
  return query.replace(/(^|, )(time=\([^()]*\)|whole_calls=True)/g, "").replace(/^, /, "");
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

/** One call and what it called, by its number in the table of calls. */
export function ofCall(run: Run, id: number): Reproduced {
  const { file, options, query } = run.head.reproduce;
  return {
    command: words("calls", run, [...options, "--id", String(id)]),
    python: `ptkit.open(${pythonText(file)}).calls(${query}).where(id=${id})`,
  };
}

/** An interval of time, of all tracks or the thread of one; null by instructions, which no option selects. */
export function ofRange(run: Run, begin: number, end: number, track: number | null): Reproduced | null {
  if (!run.isTime) return null;
  const tid = track === null ? null : run.tracks[track].tid;
  const { file, options, query } = run.head.reproduce;
  const origin = BigInt(run.head.origin);
  const [t0, t1] = [origin + BigInt(Math.floor(begin)), origin + BigInt(Math.ceil(end))];
  return {
    command: words("functions", run, [
      ...optionsWithoutTime(options),
      ...(tid === null ? [] : ["--tid", String(tid)]),
      "--time",
      `${t0}-${t1}`,
      "--all",
    ]),
    python:
      `ptkit.open(${pythonText(file)}).between(${t0}, ${t1})` +
      `.functions(${joined(queryWithoutTime(query), tid === null || query.includes("tid=") ? "" : `tid=${tid}`)})`,
  };
}
