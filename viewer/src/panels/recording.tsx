// Facts and notes of the recordings.
import { h } from "preact";
import type { Store } from "../store";
import { cleaned } from "../text/names";
import { Facts } from "./facts";

export function RecordingPanel({ store }: { store: Store }) {
  return (
    <section class="recording" aria-label="Recording">
      {store.head.notes.map((note) => (
        <p class="note" key={note}>
          {cleaned(note)}
        </p>
      ))}
      {store.runs.map((run) => (
        <div key={run.index}>
          <h2>
            {store.runs.length > 1 ? `Run ${run.index + 1}: ` : ""}
            {cleaned(run.head.title)}
          </h2>
          {run.head.notes.map((note) => (
            <p class="note" key={note}>
              {cleaned(note)}
            </p>
          ))}
          <Facts facts={run.head.facts.map(([name, text]) => [cleaned(name), cleaned(text)])} />
        </div>
      ))}
      <p class="muted">Made by ptkit {store.head.ptkit}. The page sends and loads nothing.</p>
    </section>
  );
}
