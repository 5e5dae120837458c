// The page in a notebook's widget: it says what is selected, and does what the notebook asks for.
import type { Run } from "../model/run";
import { NONE } from "../model/slices";
import type { Selection, Store } from "../store";
import { ofCall, ofFunction, ofRange, symbolOf, wholeName } from "../text/reproduce";
import { MARK, membersOf, type FromPage, type Selected } from "./messages";

const LONGEST = 10_000; // characters of a name

/**
 * Talks to the parent of the page, once its slices are decoded. A page that was opened from a file or a server is
 * silent: of `srcdoc`, the parent has all bytes already, so that it learns nothing from messages.
 */
export function talkToParent(store: Store): void {
  if (location.href !== "about:srcdoc" || window.parent === window) return;
  // The origin of a notebook is not known here.
  const post = (message: FromPage): void => window.parent.postMessage(message, "*");
  let last: Selection | null = null;
  const tell = (): void => {
    if (store.selection === last) return;
    last = store.selection;
    post({ ptkit: MARK, type: "selection", selection: last && describeSelection(store, last) });
  };
  store.subscribe(tell);
  tell(); // what was selected while slices were decoded
  addEventListener("message", (event) => {
    if (event.source !== window.parent) return;
    const request = membersOf(event.data);
    if (request) perform(store, request);
  });
  post({ ptkit: MARK, type: "ready" });
}

function describeSelection(store: Store, selection: Selection): Selected {
  const run = store.runs[selection.run];
  const found: Selected = {
    ...{ kind: selection.kind, run: selection.run, function: null, symbol: null, id: null, calls: null },
    ...{ tid: null, by: null, begin: null, end: null, command: null, python: null },
  };
  const setPositions = (begin: number, end: number, track: number | null): void => {
    found.by = run.head.by;
    const origin = BigInt(run.head.origin);
    [found.begin, found.end] = [begin, end].map((position) => String(origin + BigInt(position)));
    found.tid = track === null ? null : run.tracks[track].tid;
  };
  const setFunction = (fn: number): void => {
    found.function = wholeName(run, fn);
    found.symbol = symbolOf(run, fn);
  };
  const s = run.slices;
  if (selection.kind === "function") {
    setFunction(selection.fn);
    Object.assign(found, ofFunction(run, selection.fn));
  } else if (selection.kind === "range") {
    setPositions(selection.begin, selection.end, selection.track);
    Object.assign(found, ofRange(run, selection.begin, selection.end, selection.track));
  } else if (s) {
    const { slice } = selection;
    setFunction(s.functionOf(slice));
    setPositions(s.begin[slice], s.end(slice), s.trackOf(slice));
    found.id = s.value("id", slice);
    found.calls = s.value("calls", slice);
    Object.assign(found, ofCall(run, found.id));
  }
  return found;
}

type Members = Record<string, unknown>;

// What is no request is ignored.
function perform(store: Store, request: Members): void {
  const { type } = request;
  if (type === "find") {
    if (isName(request["text"])) store.findByName(request["text"]);
  } else if (type === "select") {
    const wanted = request["selection"];
    if (typeof wanted === "object" && wanted !== null) select(store, wanted as Members);
  } else if (type === "zoom") {
    const run = runOf(store, request);
    const ends = run && positionsOf(run, request);
    if (ends) store.timelines[run.index]?.view.set(...ends);
  }
}

function select(store: Store, wanted: Members): void {
  const run = runOf(store, wanted);
  if (!run) return;
  const { kind } = wanted;
  if (kind === "slice") {
    const slice = sliceOf(run, wanted["id"]);
    if (slice !== NONE) store.goTo(run.index, slice);
  } else if (kind === "function") {
    const [name, symbol] = [wanted["function"], wanted["symbol"]];
    const fn = run.names.findIndex((_, fn) => wholeName(run, fn) === name && symbolOf(run, fn) === symbol);
    if (fn >= 0) store.select({ kind, run: run.index, fn });
  } else if (kind === "range") {
    const ends = positionsOf(run, wanted);
    const { tid } = wanted;
    const track = typeof tid === "number" ? run.tracks.findIndex((one) => one.tid === tid) : NONE;
    if (ends) store.select({ kind, run: run.index, begin: ends[0], end: ends[1], track: track < 0 ? null : track });
  }
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= LONGEST;
}

function runOf(store: Store, members: Members): Run | null {
  const { run } = members;
  return typeof run === "number" ? (store.runs[run] ?? null) : null;
}

// Begin and end within the run, or null.
function positionsOf(run: Run, members: Members): [number, number] | null {
  const [first, last] = run.head.range;
  const position = (value: unknown): number => {
    if (typeof value !== "string" || !/^\d{1,20}$/.test(value)) return NaN;
    return Math.min(Math.max(Number(BigInt(value) - BigInt(run.head.origin)), first), last);
  };
  const [begin, end] = [position(members["begin"]), position(members["end"])];
  return begin < end ? [begin, end] : null;
}

function sliceOf(run: Run, id: unknown): number {
  const s = run.slices;
  if (!s || typeof id !== "number") return NONE;
  for (let slice = 0; slice < s.count; slice++) if (s.value("id", slice) === id) return slice;
  return NONE;
}
