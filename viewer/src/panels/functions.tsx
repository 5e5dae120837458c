// Functions of a run, or of two runs and their difference.
import { h } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Run } from "../model/run";
import { useStore, type Store } from "../store";
import { axisText, countText } from "../text/numbers";
import { ofFunctions } from "../text/reproduce";
import { Reproduce } from "./reproduce";
import { Table, type ColumnSpec } from "./table";

type Value = number | null | undefined;

interface Column {
  title: string;
  hint: string;
  value: (row: number[]) => Value; // of a row: its function in each run, or -1
  text: (value: Value) => string;
}

// Functions of two runs are the same where their full name and file are.
function joinRuns(runs: Run[]): number[][] {
  if (runs.length < 2) return runs.length ? runs[0].names.map((_, fn) => [fn]) : [];
  const rows = new Map<string, number[]>();
  runs.forEach((run, r) => {
    run.names.forEach((_, fn) => {
      const key = `${run.fullName(fn)}\0${run.moduleFile(fn)}`;
      const row = rows.get(key);
      if (row && row[r] < 0) row[r] = fn;
      else
        rows.set(
          row ? `${key}\0${r}:${fn}` : key,
          runs.map((_, other) => (other === r ? fn : -1)),
        );
    });
  });
  return [...rows.values()];
}

function difference(a: Value, b: Value): Value {
  return a === null && b === null ? null : (b ?? 0) - (a ?? 0);
}

const DIFFERENCE = "2 \u2212 1";
const signed = (value: Value): string => `${value && value > 0 ? "+" : ""}${countText(value)}`;

function columnsOf(runs: Run[]): Column[] {
  const of =
    (name: "calls" | "self_instructions" | "instructions" | "time_ns", r: number) =>
    (row: number[]): Value =>
      row[r] < 0 ? null : runs[r].head.functions[name]?.[row[r]];
  if (runs.length < 2) {
    const columns: Column[] = [
      { title: "calls", hint: "Frames that began in the trace", value: of("calls", 0), text: countText },
      { title: "self", hint: "Instructions of the function alone", value: of("self_instructions", 0), text: countText },
      { title: "total", hint: "Instructions with what it called", value: of("instructions", 0), text: countText },
    ];
    if (runs[0]?.head.functions.time_ns) {
      const text = (value: Value): string => (value === null || value === undefined ? "-" : axisText(value, "ns"));
      columns.push({ title: "time", hint: "Time with what it called", value: of("time_ns", 0), text });
    }
    return columns;
  }
  const both = (name: "calls" | "self_instructions" | "instructions", title: string, hint: string): Column[] => [
    { title: `${title} 1`, hint: `${hint}, first run`, value: of(name, 0), text: countText },
    { title: `${title} 2`, hint: `${hint}, second run`, value: of(name, 1), text: countText },
    {
      title: DIFFERENCE,
      hint: `${hint}: second run less first run`,
      value: (row) => difference(of(name, 0)(row), of(name, 1)(row)),
      text: signed,
    },
  ];
  return [
    ...both("calls", "calls", "Frames that began in the trace"),
    ...both("self_instructions", "self", "Instructions of the function alone"),
  ];
}

// Width for the longest text of a column.
function widthOf(column: Column, rows: number[][]): string {
  let most = 0;
  for (const row of rows) most = Math.max(most, Math.abs(column.value(row) ?? 0));
  const isTime = column.title === "time";
  const length = Math.max(column.title.length + 2, isTime ? 7 : column.text(-most).length);
  return `${Math.round(length * 8.2 + 14)}px`;
}

export function Functions({ store }: { store: Store }) {
  useStore(store);
  const { runs } = store;
  const [filter, setFilter] = useState("");
  const columns = useMemo(() => columnsOf(runs), [runs]);
  const [sort, setSort] = useState({ column: runs.length < 2 ? 1 : columns.length - 1, isDown: true });
  const all = useMemo(() => joinRuns(runs), [runs]);
  const widths = useMemo(() => columns.map((column) => widthOf(column, all)), [all, columns]);
  const nameOf = (row: number[]): string => (row[0] >= 0 ? runs[0].names[row[0]] : runs[1].names[row[1]]);
  const moduleOf = (row: number[]): string => (row[0] >= 0 ? runs[0].moduleFile(row[0]) : runs[1].moduleFile(row[1]));
  const rows = useMemo(() => {
    const needle = filter.toLowerCase();
    const fullOf = (row: number[]): string => (row[0] >= 0 ? runs[0].fullName(row[0]) : runs[1].fullName(row[1]));
    const kept = needle
      ? all.filter((row) => `${fullOf(row)} ${nameOf(row)} ${moduleOf(row)}`.toLowerCase().includes(needle))
      : [...all];
    if (sort.column < 0) return kept.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1) * (sort.isDown ? -1 : 1));
    const { value } = columns[sort.column];
    const size = (row: number[]): number => value(row) ?? -Infinity;
    const sized = kept.map((row): [number, number[]] => [
      runs.length > 1 && columns[sort.column].title === DIFFERENCE ? Math.abs(size(row)) : size(row),
      row,
    ]);
    sized.sort((a, b) => (sort.isDown ? b[0] - a[0] : a[0] - b[0]) || 0);
    return sized.map(([, row]) => row);
  }, [all, filter, sort]);
  if (!all.length) return <p class="empty">No functions: the recording has no calls with known code.</p>;
  const toggle = (column: number) => (): void =>
    setSort((old) => ({ column, isDown: old.column === column ? !old.isDown : column >= 0 }));
  const direction = (column: number): "ascending" | "descending" | null =>
    sort.column === column ? (sort.isDown ? "descending" : "ascending") : null;
  const specs: ColumnSpec[] = [
    { title: "function", sort: toggle(-1), sorted: direction(-1) },
    { title: "file", width: columns.length > 4 ? "90px" : "17%" },
    ...columns.map((column, i): ColumnSpec => ({
      title: column.title,
      hint: column.hint,
      isNumber: true,
      width: widths[i],
      sort: toggle(i),
      sorted: direction(i),
    })),
  ];
  const { selection } = store;
  const selected = selection?.kind === "function" ? rows.findIndex((row) => row[selection.run] === selection.fn) : -1;
  return (
    <section class="functions" aria-label="Functions">
      <div class="bar">
        <input
          type="search"
          placeholder="filter functions"
          aria-label="Filter functions"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <span class="muted">
          {countText(rows.length)} of {countText(all.length)}
        </span>
      </div>
      <Table
        label="functions"
        columns={specs}
        count={rows.length}
        selected={selected}
        cells={(i) => [
          nameOf(rows[i]),
          moduleOf(rows[i]),
          ...columns.map((column) => column.text(column.value(rows[i]))),
        ]}
        onSelect={(i) => {
          const run = rows[i][0] >= 0 ? 0 : 1;
          store.select({ kind: "function", run, fn: rows[i][run] });
        }}
      />
      <div class="commands">
        {runs.map((run) => (
          <Reproduce key={run.index} of={ofFunctions(run)} />
        ))}
      </div>
    </section>
  );
}
