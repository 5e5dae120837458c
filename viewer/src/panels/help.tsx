// Help: keys, and what colours and patterns mean.
import { useEffect, useRef } from "preact/hooks";
import type { Store } from "../store";
import { KEYS } from "../timeline/keys";

export const LEGEND: [string, string][] = [
  ["lost", "control flow lost"],
  ["untraced", "untraced"],
  ["switched", "switched out"],
  ["merged", "calls merged"],
  ["many", "many short calls"],
  ["soft", "error of begin or end"],
];

export function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      {LEGEND.map(([name, text]) => <li key={name}><span class={`swatch ${name}`} aria-hidden="true" /> {text}</li>)}
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
        <tbody>{KEYS.map(([keys, text]) => <tr key={keys}><td>{keys}</td><td>{text}</td></tr>)}</tbody>
      </table>
      <h2>Legend</h2>
      <Legend />
      <p>
        The strip above a track has its branches by time. Colours tell functions apart and have no other meaning. Two ends of a length in
        brackets are the least and the most that it can be.
      </p>
      <button type="button" onClick={close}>Close</button>
    </dialog>
  );
}
