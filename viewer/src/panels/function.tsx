// Selected function: sums, histogram, slowest calls, slow against fast, disassembly and source.
import { Fragment, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { readDetail, type Detail } from "../data/details";
import type { Run } from "../model/run";
import type { Store } from "../store";
import { cleaned } from "../text/names";
import { axisText, boundsText, countText } from "../text/numbers";
import { ofFunction, ofSlow } from "../text/reproduce";
import { Disassembly, Source } from "./code";
import { Facts } from "./facts";
import { Histogram } from "./histogram";
import { Reproduce } from "./reproduce";
import { Table } from "./table";

const PARTS = ["calls", "slow against fast", "disassembly", "source"] as const;
type Part = (typeof PARTS)[number];

function useDetail(run: Run, fn: number): { detail: Detail | null; state: string } {
  const [found, setFound] = useState<{ run: Run; fn: number; detail: Detail | null; state: string } | null>(null);
  useEffect(() => {
    let isWanted = true;
    const set = (detail: Detail | null, state: string): void => {
      if (isWanted) setFound({ run, fn, detail, state });
    };
    readDetail(run.index, run.detailChunk(fn), fn).then(
      (detail) =>
        set(detail, detail ? "" : "The page has no details of this function: its size target left no room for them."),
      (error: unknown) => set(null, `The details of this function cannot be read: ${String(error)}`),
    );
    return () => {
      isWanted = false;
    };
  }, [run, fn]);
  return found && found.run === run && found.fn === fn ? found : { detail: null, state: "reading" };
}

function Sums({ run, fn }: { run: Run; fn: number }) {
  const f = run.head.functions;
  const exact = f.exact?.[fn];
  const [least, most] = [f.least?.[fn], f.most?.[fn]];
  const known = typeof least === "number" && typeof most === "number";
  const facts: [string, string][] = [
    ["file", run.moduleName(fn)],
    ["calls", `${countText(f.calls[fn])}${exact === 0 ? " (not exact)" : ""}`],
    ["self", `${countText(f.self_instructions[fn])} instructions`],
    ["total", `${countText(f.instructions[fn])} instructions`],
  ];
  if (known) facts.push(["time", boundsText(least, most, (value) => axisText(value, "ns"))]);
  return <Facts facts={facts.filter(([, text]) => text)} />;
}

function Calls({ store, run, detail }: { store: Store; run: Run; detail: Detail }) {
  const rows = detail.slowest ?? [];
  const jump = (i: number): void => {
    const call = rows[i];
    const s = run.slices;
    const timeline = store.timelines[run.index];
    if (!s || !timeline) return;
    const ids = s.columns.id.array;
    for (let row = s.trackRow[call.track]; row < s.trackRow[call.track + 1]; row++) {
      const slice = s.firstAfter(row, call.begin);
      // Slices that begin where the call does.
      for (let at = slice - 1; at >= s.rowStart[row] && s.begin[at] === call.begin; at--) {
        if ((ids ? ids[at] : s.columns.id.value) !== call.id) continue;
        store.focusOn(run.index, at);
        timeline.view.fit(s.begin[at], s.end(at));
        store.select({ kind: "slice", run: run.index, slice: at });
        return;
      }
    }
    timeline.view.fit(call.begin, call.begin + call.duration);
    store.spoken = "the call is part of a merged slice";
    store.changed();
  };
  return (
    <>
      {detail.histogram ? (
        <>
          <p class="muted">
            Calls by {detail.histogram.of === "ns" ? "duration" : "instructions, with what they called"}
          </p>
          <Histogram histogram={detail.histogram} isDark={store.isDark()} />
        </>
      ) : (
        <p class="empty">No histogram: calls of this function are merged, or have no known length.</p>
      )}
      {rows.length ? (
        <Table
          label="slowest calls"
          columns={[
            { title: "slowest calls" },
            { title: "begin", isNumber: true, width: "20%" },
            { title: run.isTime ? "duration" : "instructions", isNumber: true, width: "20%" },
            ...(run.isTime ? [{ title: "instructions", isNumber: true, width: "20%" }] : []),
          ]}
          count={rows.length}
          cells={(i) => [
            `${run.trackName(rows[i].track)}, call ${rows[i].id}`,
            run.amount(rows[i].begin),
            run.amount(rows[i].duration),
            ...(run.isTime ? [countText(rows[i].instructions)] : []),
          ]}
          onSelect={jump}
        />
      ) : (
        <p class="empty">No calls with known begin and end.</p>
      )}
    </>
  );
}

function Slow({ run, fn, detail }: { run: Run; fn: number; detail: Detail }) {
  const { slow } = detail;
  if (!slow) return <p class="empty">The calls are too few or too alike to compare slow with fast ones.</p>;
  const text = (value: number): string => countText(Math.round(value));
  return (
    <>
      <p>{cleaned(slow.text)}</p>
      <Table
        label="slow against fast"
        columns={[
          { title: "function, instructions" },
          { title: "slow", hint: "A slow call, on average", isNumber: true, width: "18%" },
          { title: "fast", hint: "A fast call, on average", isNumber: true, width: "18%" },
          { title: "extra", hint: "What slow calls have more", isNumber: true, width: "18%" },
        ]}
        count={slow.rows.length}
        cells={(i) => [
          cleaned(slow.rows[i].name),
          text(slow.rows[i].slow),
          text(slow.rows[i].fast),
          text(slow.rows[i].extra),
        ]}
      />
      <Reproduce of={ofSlow(run, fn)} />
    </>
  );
}

export function FunctionPanel({ store, run, fn }: { store: Store; run: Run; fn: number }) {
  const { detail, state } = useDetail(run, fn);
  const [part, setPart] = useState<Part>("calls");
  const full = run.fullName(fn);
  return (
    <div class="function">
      <h2>{run.names[fn]}</h2>
      {full !== run.names[fn] ? <p class="full">{full}</p> : null}
      <Sums run={run} fn={fn} />
      <Reproduce of={ofFunction(run, fn)} />
      <button onClick={() => store.findFunction(run.index, fn)}>Show its slices</button>
      {detail ? (
        <>
          <div class="tabs" role="tablist" aria-label="Details of the function">
            {PARTS.map((name) => (
              <button key={name} role="tab" aria-selected={part === name} onClick={() => setPart(name)}>
                {name}
              </button>
            ))}
          </div>
          <div class="part" role="tabpanel" aria-label={part}>
            {part === "calls" ? <Calls store={store} run={run} detail={detail} /> : null}
            {part === "slow against fast" ? <Slow run={run} fn={fn} detail={detail} /> : null}
            {part === "disassembly" ? <Disassembly detail={detail} /> : null}
            {part === "source" ? <Source detail={detail} /> : null}
          </div>
        </>
      ) : (
        <p class="empty">{state}</p>
      )}
    </div>
  );
}
