// Disassembly and source of a function, with counts.
import { Fragment, h } from "preact";
import type { Detail } from "../data/details";
import { cleaned } from "../text/names";
import { countText, plural } from "../text/numbers";
import { Table } from "./table";

// A bar that shows a count beside the highest one.
function Count({ value, most }: { value: number | null; most: number }) {
  const share = value && most > 0 ? Math.max(1, Math.round((100 * value) / most)) : 0;
  return (
    <span class="heat" style={{ backgroundSize: `${share}% 100%` }}>
      {value === null ? "" : countText(value)}
    </span>
  );
}

function highest(values: (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

export function Disassembly({ detail }: { detail: Detail }) {
  const { code } = detail;
  if (!code) return <p class="empty">The page has no disassembly of this function.</p>;
  const most = highest(code.instructions.map(([, , count]) => count));
  const hasLines = !!detail.source && code.instructions.some((row) => row[3] >= 0);
  const hasEdges = code.instructions.some((row) => (row[4] ?? null) !== null || (row[5] ?? null) !== null);
  return (
    <>
      <p class="muted">Executed instructions alone: gaps between addresses were not executed.</p>
      {code.bytes_missing > 0 ? (
        <p class="note">{plural(code.bytes_missing, "byte")} of the function are missing in the recording.</p>
      ) : null}
      <Table
        label="disassembly"
        columns={[
          { title: "count", isNumber: true, width: "100px" },
          { title: "address", width: "120px" },
          { title: "instruction" },
          ...(hasLines ? [{ title: "line", isNumber: true, width: "56px" }] : []),
          ...(hasEdges
            ? [
                { title: "taken", isNumber: true, width: "80px" },
                { title: "not taken", isNumber: true, width: "90px" },
              ]
            : []),
        ]}
        count={code.instructions.length}
        cells={(i) => {
          const [address, text, count, line, taken, not] = code.instructions[i];
          const number = line >= 0 && detail.source ? String(detail.source.first + line) : "";
          const cells = [
            <Count value={count} most={most} />,
            <code>{cleaned(address)}</code>,
            <code>{cleaned(text)}</code>,
            ...(hasLines ? [number] : []),
          ];
          return hasEdges
            ? [
                ...cells,
                taken === undefined || taken === null ? "" : countText(taken),
                not === undefined || not === null ? "" : countText(not),
              ]
            : cells;
        }}
        rowClass={(i) => (code.instructions[i][2] ? "" : "cold")}
      />
    </>
  );
}

export function Source({ detail }: { detail: Detail }) {
  const { source } = detail;
  if (!source) return <p class="empty">The page has no source of this function.</p>;
  const most = highest(source.counts);
  return (
    <>
      <p class="muted">{cleaned(source.path)}</p>
      <Table
        label="source"
        columns={[
          { title: "count", isNumber: true, width: "100px" },
          { title: "line", isNumber: true, width: "56px" },
          { title: "text" },
        ]}
        count={source.lines.length}
        cells={(i) => [
          <Count value={source.counts[i] ?? null} most={most} />,
          String(source.first + i),
          <code>{cleaned(source.lines[i].replaceAll("\t", "    "))}</code>,
        ]}
        rowClass={(i) => (source.counts[i] ? "" : "cold")}
      />
    </>
  );
}
