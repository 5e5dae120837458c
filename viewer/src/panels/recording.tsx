// Facts and notes of the recordings.
import type { Store } from "../store";
import { cleaned } from "../text/names";

export function RecordingPanel({ store }: { store: Store }) {
  return (
    <section class="recording" aria-label="Recording">
      {store.head.notes.map((note) => <p class="note" key={note}>{cleaned(note)}</p>)}
      {store.runs.map((run) => (
        <div key={run.index}>
          <h2>{store.runs.length > 1 ? `Run ${run.index + 1}: ` : ""}{cleaned(run.head.title)}</h2>
          {run.head.notes.map((note) => <p class="note" key={note}>{cleaned(note)}</p>)}
          <dl class="facts">
            {run.head.facts.map(([term, text], i) => [<dt key={i}>{cleaned(term)}</dt>, <dd key={`${i}.`}>{cleaned(text)}</dd>])}
          </dl>
        </div>
      ))}
      <p class="muted">Made by ptkit {store.head.ptkit}. The page sends and loads nothing.</p>
    </section>
  );
}
