// Decoding in a worker that is made of the page's own script; in the page itself where workers are not allowed.
import { assemble, type Decoded, type DecodeRequest } from "./assemble";

type Answer = { decoded: Decoded } | { error: string };

function buffersOf(decoded: Decoded): ArrayBuffer[] {
  const arrays: ArrayBufferView[] = [decoded.begin, decoded.parent, decoded.rowStart, decoded.trackRow];
  for (const column of Object.values(decoded.columns)) if (column.array) arrays.push(column.array);
  for (const array of Object.values(decoded.pyramid)) arrays.push(array as ArrayBufferView);
  return [...new Set(arrays.map((array) => array.buffer as ArrayBuffer))];
}

/** Answers of the worker's side. */
export function serveDecoding(scope: DedicatedWorkerScope): void {
  scope.onmessage = (event: MessageEvent<DecodeRequest>) => {
    assemble(event.data).then(
      (decoded) => scope.postMessage({ decoded } satisfies Answer, buffersOf(decoded)),
      (error: unknown) => scope.postMessage({ error: String(error) } satisfies Answer, []),
    );
  };
}

export interface DedicatedWorkerScope {
  onmessage: ((event: MessageEvent<DecodeRequest>) => void) | null;
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
}

/** Decoded columns of a run. */
export function decode(request: DecodeRequest): Promise<Decoded> {
  const script = document.getElementById("shell")?.textContent ?? "";
  let worker: Worker;
  try {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    worker = new Worker(url);
    URL.revokeObjectURL(url);
  } catch {
    return assemble(request);
  }
  return new Promise((resolve, reject) => {
    worker.onmessage = (event: MessageEvent<Answer>) => {
      worker.terminate();
      if ("decoded" in event.data) resolve(event.data.decoded);
      else reject(new Error(event.data.error));
    };
    worker.onerror = (event) => {
      event.preventDefault();
      worker.terminate();
      assemble(request).then(resolve, reject);
    };
    worker.postMessage(request);
  });
}
