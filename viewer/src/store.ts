// State of the page, and what changes it.
import { useEffect, useState } from "preact/hooks";
import type { Head } from "./data/head";
import type { Run } from "./model/run";
import { matchOf, nextMatch, search, type Match } from "./model/search";
import { NONE } from "./model/slices";
import type { Timeline } from "./timeline/timeline";

export type Selection =
  | { kind: "slice"; run: number; slice: number }
  | { kind: "function"; run: number; fn: number }
  | { kind: "range"; run: number; begin: number; end: number; track: number | null };

export type Tab = "functions" | "selection" | "search" | "divergences" | "recording";
export type Theme = "auto" | "light" | "dark";

export interface Mark {
  run: number;
  begin: number;
  end: number;
}

export class Store {
  selection: Selection | null = null;
  focus: { run: number; slice: number } | null = null;
  marks: Mark[] = [];
  /** Number of the divergence that is shown; -1: none. */
  divergence = -1;
  query = "";
  matches: Match[] = [];
  found: { run: number; slice: number; number: number } | null = null;
  tab: Tab = "functions";
  theme: Theme = "auto";
  isLinked = true;
  isHelpOpen = false;
  /** Text for screen readers. */
  spoken = "";
  readonly timelines: (Timeline | null)[];
  private readonly systemTheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly listeners = new Set<() => void>();

  constructor(
    readonly head: Head,
    readonly runs: Run[],
  ) {
    this.timelines = runs.map(() => null);
    this.systemTheme.addEventListener("change", () => this.changed());
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
    for (const timeline of this.timelines) timeline?.invalidate();
  }

  isDark(): boolean {
    return this.theme === "auto" ? this.systemTheme.matches : this.theme === "dark";
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    this.changed();
  }

  select(selection: Selection | null): void {
    this.selection = selection;
    if (selection) this.tab = "selection";
    if (selection?.kind === "slice") this.focus = { run: selection.run, slice: selection.slice };
    this.changed();
  }

  /** Moves the focus to a slice, shows it and says its name. */
  focusOn(run: number, slice: number): void {
    const of = this.runs[run];
    const s = of.slices;
    if (!s || slice === NONE) return;
    this.focus = { run, slice };
    const fn = s.functionOf(slice);
    const calls = s.value("calls", slice);
    this.spoken =
      `${of.names[fn]}, ${calls > 1 ? `${calls} calls merged, ` : ""}depth ${s.depthOf(slice)}, ` +
      `begins at ${of.length(s.begin[slice])}, takes ${of.length(s.duration(slice))}`;
    this.timelines[run]?.reveal(slice);
    this.changed();
  }

  /** Selects a slice, shows it and zooms in to it. */
  goTo(run: number, slice: number): void {
    const s = this.runs[run].slices;
    this.focusOn(run, slice);
    if (s) this.timelines[run]?.view.approach(s.begin[slice], s.end(slice));
    this.select({ kind: "slice", run, slice });
  }

  /** Numbers of the divergences that a run has marks of. */
  divergences(): number[] {
    const all = this.runs.flatMap((run) => (run.head.divergences ?? []).map(([, , number]) => number));
    return [...new Set(all)].sort((a, b) => a - b);
  }

  /** Shows a divergence in both runs. */
  showDivergence(number: number): void {
    this.divergence = number;
    for (const run of this.runs) {
      const found = run.head.divergences?.find((one) => one[2] === number);
      if (!found) continue;
      const [track, position, , where, way] = found;
      this.timelines[run.index]?.center(track, position);
      if (run.index === 0) this.spoken = `divergence ${number}: ${where}: ${way}`;
    }
    this.changed();
  }

  /** Shows the next or the previous divergence. */
  stepDivergence(direction: 1 | -1): void {
    const numbers = this.divergences();
    if (!numbers.length) return;
    const at = numbers.indexOf(this.divergence);
    const next = at < 0 ? (direction > 0 ? 0 : numbers.length - 1) : (at + direction + numbers.length) % numbers.length;
    this.showDivergence(numbers[next]);
  }

  find(query: string): void {
    this.query = query;
    this.matches = query ? this.runs.map((run) => search(run, query)) : [];
    this.found = null;
    this.changed();
  }

  /** Finds functions with this very name, else those that `find` finds, and goes to their first slice. */
  findByName(name: string): void {
    this.find(name);
    const named = this.runs.map((run) => matchOf(run, (fn) => run.isNamed(fn, name)));
    if (named.some((match) => match.functionCount)) this.matches = named;
    this.step(1);
    if (this.found) return;
    // No slice: all of their calls are merged with others.
    const run = this.matches.findIndex((match) => match.functionCount);
    if (run >= 0) this.select({ kind: "function", run, fn: this.matches[run].functions.indexOf(1) });
  }

  /** Finds the slices of one function alone, in both runs, and goes to the first one. */
  findFunction(run: number, fn: number): void {
    this.query = this.runs[run].names[fn];
    this.matches = this.runs.map((of, other) => {
      const same = this.sameFunction(run, fn, other);
      return matchOf(of, (candidate) => candidate === same);
    });
    this.found = null;
    this.step(1);
  }

  /** Number in another run of the function with the same full name and file, or NONE. */
  sameFunction(run: number, fn: number, other: number): number {
    if (run === other) return fn;
    const [from, to] = [this.runs[run], this.runs[other]];
    const [name, file] = [from.fullName(fn), from.moduleFile(fn)];
    return to.names.findIndex((_, candidate) => to.fullName(candidate) === name && to.moduleFile(candidate) === file);
  }

  /** Total of matching slices of all runs. */
  matchCount(): number {
    return this.matches.reduce((sum, match) => sum + match.slices, 0);
  }

  /** Focus to the next or previous matching slice. */
  step(direction: 1 | -1): void {
    if (!this.matchCount()) {
      this.spoken = "no match";
      this.changed();
      return;
    }
    const count = this.runs.length;
    let run = this.found?.run ?? 0;
    let from = this.found?.slice ?? NONE;
    for (let tries = 0; tries <= count; tries++) {
      const found = nextMatch(this.runs[run], this.matches[run], from, direction);
      // A match that is not beyond the last one has wrapped: the other run is next.
      const hasWrapped =
        found && from !== NONE && this.found ? (found.number - this.found.number) * direction <= 0 : false;
      if (found && (!hasWrapped || count === 1)) {
        this.found = { run, ...found };
        this.goTo(run, found.slice);
        return;
      }
      run = (run + direction + count) % count;
      from = NONE;
    }
  }

  /** Adds a mark, or removes it where there is one. */
  mark(): void {
    const chosen = this.selection;
    const at = this.focus;
    let mark: Mark | null = null;
    if (chosen?.kind === "range") mark = { run: chosen.run, begin: chosen.begin, end: chosen.end };
    else if (at) {
      const s = this.runs[at.run].slices;
      if (s) mark = { run: at.run, begin: s.begin[at.slice], end: s.end(at.slice) };
    }
    if (!mark) return;
    const { run, begin, end } = mark;
    const others = this.marks.filter((other) => other.run !== run || other.begin !== begin || other.end !== end);
    this.marks = others.length === this.marks.length ? [...others, mark] : others;
    this.spoken = others.length < this.marks.length ? "mark added" : "mark removed";
    this.changed();
  }

  /** Shows the selection as a whole. */
  fit(): void {
    const chosen = this.selection ?? (this.focus ? { kind: "slice" as const, ...this.focus } : null);
    if (!chosen) return;
    const { view } = this.timelines[chosen.run] ?? {};
    const s = this.runs[chosen.run].slices;
    if (!view) return;
    if (chosen.kind === "range") view.fit(chosen.begin, chosen.end);
    else if (chosen.kind === "slice" && s) {
      view.fit(s.begin[chosen.slice], s.end(chosen.slice));
      this.timelines[chosen.run]?.reveal(chosen.slice);
    } else if (chosen.kind === "function") {
      this.findFunction(chosen.run, chosen.fn);
    }
  }
}

/** Renders a component again whenever the state changes. */
export function useStore(store: Store): void {
  const [, render] = useState(0);
  useEffect(() => store.subscribe(() => render((n) => n + 1)), [store]);
}
