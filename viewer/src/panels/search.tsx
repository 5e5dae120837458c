// Search for slices by name.
import { h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useStore, type Store } from "../store";
import { countText, plural } from "../text/numbers";
import { Table } from "./table";

export function SearchPanel({ store }: { store: Store }) {
  useStore(store);
  const { runs, matches, found } = store;
  const [text, setText] = useState(store.query);
  useEffect(() => setText(store.query), [store.query]);
  const enter = (event: KeyboardEvent): void => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (text !== store.query) store.find(text);
    store.step(event.shiftKey ? -1 : 1);
    store.tab = "search";
    store.changed();
  };
  const total = store.matchCount();
  const functions = matches.reduce((sum, match) => sum + match.functionCount, 0);
  const rows: [number, number][] = [];
  matches.forEach((match, run) =>
    match.functions.forEach((isMatch, fn) => {
      if (isMatch) rows.push([run, fn]);
    }),
  );
  const before = found ? matches.slice(0, found.run).reduce((sum, match) => sum + match.slices, 0) : 0;
  const step = (direction: 1 | -1): void => {
    store.step(direction);
    store.tab = "search";
    store.changed();
  };
  return (
    <section class="search" aria-label="Search">
      <div class="bar">
        <input
          id="search"
          type="search"
          placeholder="name of a function or file"
          aria-label="Search for slices by name"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            store.find(event.currentTarget.value);
          }}
          onKeyDown={enter}
        />
        <button disabled={!total} onClick={() => step(-1)} aria-label="Previous match">
          {"\u25c2"}
        </button>
        <button disabled={!total} onClick={() => step(1)} aria-label="Next match">
          {"\u25b8"}
        </button>
        <span class="count" role="status">
          {!store.query
            ? ""
            : found
              ? `${countText(before + found.number)} of ${countText(total)}`
              : `${plural(total, "slice")}, ${plural(functions, "function")}`}
        </span>
      </div>
      {store.query ? (
        <Table
          label="matching functions"
          columns={[
            { title: "function" },
            { title: "file", width: "25%" },
            { title: "calls", isNumber: true, width: "20%" },
          ]}
          count={rows.length}
          cells={(i) => {
            const [run, fn] = rows[i];
            const of = runs[run];
            return [
              `${runs.length > 1 ? `${run + 1}: ` : ""}${of.names[fn]}`,
              of.moduleFile(fn),
              countText(of.head.functions.calls[fn]),
            ];
          }}
          onSelect={(i) => store.select({ kind: "function", run: rows[i][0], fn: rows[i][1] })}
        />
      ) : (
        <p class="empty">
          Matching slices keep their colours, others turn grey. Merged slices are found by the name of their longest
          call.
        </p>
      )}
    </section>
  );
}
