// Help: keys, and what colours and patterns mean.
import { h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Store } from "../store";
import { KEYS } from "../timeline/keys";

export const LEGEND: [string, string][] = [
  ["lost", "lost"],
  ["untraced", "untraced"],
  ["switched", "switched out"],
  ["merged", "merged"],
  ["many", "many short"],
  ["soft", "error bounds"],
];

export function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      {LEGEND.map(([name, text]) => (
        <li key={name}>
          <span class={`swatch ${name}`} aria-hidden="true" /> {text}
        </li>
      ))}
    </ul>
  );
}

export function Help({ store }: { store: Store }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (store.isHelpOpen && element && !element.open) element.showModal();
    if (!store.isHelpOpen && element?.open) element.close();
  });
  const close = (): void => {
    if (!store.isHelpOpen) return;
    store.isHelpOpen = false;
    store.changed();
  };
  return (
    <dialog ref={dialog} aria-label="Help" onClose={close}>
      <h2>Keys</h2>
      <table class="keys-table">
        <tbody>
          {KEYS.map(([keys, text]) => (
            <tr key={keys}>
              <td>{keys}</td>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h2>Legend</h2>
      <Legend />
      <p>
        Lost: control flow is not known. Untraced: packets were disabled, as in system calls. Switched out: another
        thread was executed. Merged: one slice for several short calls. Many short: several calls in a pixel. Error
        bounds: a begin or an end is somewhere in the dotted part. The strip above a track has its branches by time.
        Triangles with a line: the run parts from the other one there; dashed in code of the system. Colours tell
        functions apart and have no other meaning. Two ends of a length in brackets are the least and the
        most that it can be.
      </p>
      <button onClick={close}>Close</button>
    </dialog>
  );
}
