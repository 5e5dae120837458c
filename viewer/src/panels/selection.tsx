// What is selected: a slice, a function or a range.
import { h } from "preact";
import { useMemo } from "preact/hooks";
import { describe } from "../model/describe";
import type { Run } from "../model/run";
import { rangeSums } from "../model/sums";
import { NONE } from "../model/slices";
import { useStore, type Store } from "../store";
import { cleaned } from "../text/names";
import { countText, percentText, plural } from "../text/numbers";
import { ofCall, ofRange, whyNone } from "../text/reproduce";
import { Facts } from "./facts";
import { FunctionPanel } from "./function";
import { Reproduce } from "./reproduce";
import { Table } from "./table";

function SlicePanel({ store, run, slice }: { store: Store; run: Run; slice: number }) {
  const s = run.slices;
  if (!s) return null;
  const fn = s.functionOf(slice);
  const caller = s.caller(slice);
  const [first, end] = s.callees(slice);
  const calls = s.value("calls", slice);
  return (
    <div>
      <h2>
        {calls > 1 ? `${plural(calls, "call")} merged: ` : ""}
        {run.names[fn]}
      </h2>
      <Facts
        facts={[
          ...describe(store.head, run, slice),
          ["track", `${run.trackName(s.trackOf(slice))}, depth ${s.depthOf(slice)}`],
        ]}
      />
      <div class="bar">
        <button
          disabled={caller === NONE}
          onClick={() => {
            store.focusOn(run.index, caller);
            store.select({ kind: "slice", run: run.index, slice: caller });
          }}
        >
          Caller{caller === NONE ? "" : `: ${run.names[s.functionOf(caller)]}`}
        </button>
        <button
          disabled={first === end}
          onClick={() => {
            store.focusOn(run.index, first);
            store.select({ kind: "slice", run: run.index, slice: first });
          }}
        >
          {end > first ? `First of ${plural(end - first, "callee")}` : "No callees"}
        </button>
        <button onClick={() => store.fit()}>Fit</button>
      </div>
      {calls > 1 ? <p class="note">The number of a merged slice is that of its longest call.</p> : null}
      <Reproduce of={ofCall(run, s.value("id", slice))} />
      <hr />
      <FunctionPanel store={store} run={run} fn={fn} />
    </div>
  );
}

type Range = Extract<Store["selection"], { kind: "range" }>;

function RangePanel({ store, run, range }: { store: Store; run: Run; range: Range }) {
  const s = run.slices;
  const sums = useMemo(
    () => (s ? rangeSums(run, s, range.begin, range.end, range.track) : null),
    [s, range.begin, range.end, range.track],
  );
  if (!s || !sums) return <p class="empty">The slices are not decoded yet.</p>;
  const length = range.end - range.begin;
  const notes = [
    sums.cut
      ? `${plural(sums.cut, "slice")} cross the ends of the range: "\u2265" (at least) stands before instructions to which their parts in the range would add.`
      : "",
    sums.merged
      ? `${plural(sums.merged, "slice")} of merged calls: they count for the function of their longest call.`
      : "",
  ].filter(Boolean);
  const whole = sums.functions.reduce((sum, fn) => sum + sums.self[fn], 0);
  const prefix = (fn: number): string => (sums.isCut[fn] ? "\u2265 " : "");
  const suffix = (fn: number): string => (sums.hasMerged[fn] ? " (merged)" : "");
  const reproduced = ofRange(run, range.begin, range.end, range.track);
  return (
    <div class="range">
      <h2>
        {run.length(range.begin)} to {run.length(range.end)}
      </h2>
      <p>
        {run.length(length)}, {plural(sums.slices, "slice")} in it.
      </p>
      <div class="bar">
        <button onClick={() => store.fit()}>Fit</button>
        <button onClick={() => store.mark()}>Mark</button>
        <label>
          track{" "}
          <select
            value={range.track ?? ""}
            onChange={(event) => {
              const { value } = event.currentTarget;
              store.select({ ...range, track: value === "" ? null : Number(value) });
            }}
          >
            <option value="">all</option>
            {run.tracks.map((_, track) => (
              <option key={track} value={track}>
                {run.trackName(track)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {notes.map((note) => (
        <p class="note" key={note}>
          {note}
        </p>
      ))}
      {reproduced ? (
        <Reproduce of={reproduced} />
      ) : (
        <p class="muted">{whyNone(run, range.track)}</p>
      )}
      <Table
        label="functions of the range"
        columns={[
          { title: "function" },
          { title: "calls", isNumber: true, width: "13%" },
          {
            title: "self",
            hint: run.isTime ? "Time of the function alone" : "Instructions of the function alone",
            isNumber: true,
            width: "13%",
          },
          { title: "share", isNumber: true, width: "9%" },
          { title: "total", hint: "With what it called", isNumber: true, width: "13%" },
          ...(run.isTime
            ? [
                {
                  title: "self instr.",
                  hint: "Instructions of the function alone, of slices that lie in the range as a whole",
                  isNumber: true,
                  width: "17%",
                },
                {
                  title: "total instr.",
                  hint: "Instructions with what it called, of outermost slices that lie in the range as a whole",
                  isNumber: true,
                  width: "17%",
                },
              ]
            : []),
        ]}
        count={sums.functions.length}
        cells={(i) => {
          const fn = sums.functions[i];
          const self = Math.max(0, sums.self[fn]);
          return [
            run.names[fn],
            `${countText(sums.calls[fn])}${suffix(fn)}`,
            run.amount(self),
            percentText(self, whole),
            run.amount(sums.total[fn]),
            ...(run.isTime
              ? [
                  `${prefix(fn)}${countText(sums.selfInstructions[fn])}`,
                  `${prefix(fn)}${countText(sums.instructions[fn])}`,
                ]
              : []),
          ];
        }}
        onSelect={(i) => store.select({ kind: "function", run: run.index, fn: sums.functions[i] })}
      />
    </div>
  );
}

function OtherRun({ store, run, fn }: { store: Store; run: number; fn: number }) {
  const other = 1 - run;
  const same = store.sameFunction(run, fn, other);
  return (
    <button disabled={same === NONE} onClick={() => store.select({ kind: "function", run: other, fn: same })}>
      {same === NONE ? `Not in run ${other + 1}` : `Show in run ${other + 1}`}
    </button>
  );
}

export function SelectionPanel({ store }: { store: Store }) {
  useStore(store);
  const { selection, runs } = store;
  if (!selection)
    return <p class="empty">Nothing is selected. Click a slice or a function, or drag with Shift to select a range.</p>;
  const run = runs[selection.run];
  return (
    <section aria-label="Selection">
      {runs.length > 1 ? (
        <div class="bar">
          <span class="muted">
            Run {selection.run + 1}: {cleaned(run.head.title)}
          </span>
          {selection.kind === "function" ? <OtherRun store={store} run={selection.run} fn={selection.fn} /> : null}
        </div>
      ) : null}
      {selection.kind === "slice" ? <SlicePanel store={store} run={run} slice={selection.slice} /> : null}
      {selection.kind === "function" ? <FunctionPanel store={store} run={run} fn={selection.fn} /> : null}
      {selection.kind === "range" ? <RangePanel store={store} run={run} range={selection} /> : null}
    </section>
  );
}
