// Keys of a timeline and of the page.
import { NONE } from "../model/slices";
import type { Store } from "../store";
import { selectRange } from "./input";
import type { Timeline } from "./timeline";

const ZOOM = 1.3;
const PAN = 0.12; // of the window

/** Keys and what they do, for the help. */
export const KEYS: [string, string][] = [
  ["W / S, Ctrl + wheel, pinch", "zoom in, out"],
  ["A / D, drag, Shift + wheel", "move to the left, right"],
  ["Home", "whole run"],
  ["Left / Right", "previous, next slice of the row"],
  ["Down / Up", "into the first callee, to the caller"],
  ["Page Down / Page Up", "next, previous track"],
  ["Enter, click", "select the slice in focus"],
  ["[ / ]", "begin, end of the selected range: at the slice in focus"],
  ["R, Shift + drag, drag on the ruler", "select the range of the slice in focus; a range"],
  ["F, double click", "fit the selection to the window"],
  ["M", "mark the selection, or take its mark away"],
  [", / .", "previous, next divergence of two runs"],
  ["C", "collapse or expand the track in focus"],
  ["U", "unfold or fold the deep rows of the track in focus"],
  ["/", "search; then Enter, Shift + Enter or N, P: next, previous match"],
  ["Esc", "clear selection and search"],
  ["?", "this help"],
];

/** Keys that work anywhere but in text fields; answers whether a key was used. */
export function pageKey(store: Store, event: KeyboardEvent): boolean {
  switch (event.key) {
    case "/":
      store.tab = "search";
      store.changed();
      // It is in the document after the microtasks of this key, and gets the next one.
      queueMicrotask(() => document.querySelector<HTMLInputElement>("#search")?.focus());
      return true;
    case "?":
      store.isHelpOpen = !store.isHelpOpen;
      store.changed();
      return true;
    case "Escape":
      if (store.isHelpOpen) store.isHelpOpen = false;
      else if (store.query) store.find("");
      else store.selection = null;
      store.changed();
      return true;
    case "n":
    case "p":
      if (!store.query) return false;
      store.step(event.key === "n" ? 1 : -1);
      return true;
    case ",":
    case ".":
      store.stepDivergence(event.key === "." ? 1 : -1);
      return true;
    case "f":
      store.fit();
      return true;
    case "m":
      store.mark();
      return true;
    default:
      return false;
  }
}

/** Keys of a timeline that has the focus. */
export function timelineKey(timeline: Timeline, event: KeyboardEvent): boolean {
  const { view, store, run } = timeline;
  const { slices } = run;
  timeline.point(null, 0, 0);
  const middle = (view.begin + view.end) / 2;
  const focus = store.focus?.run === run.index ? store.focus.slice : NONE;
  switch (event.key) {
    case "w":
    case "s": {
      // Around the slice in focus where it is seen.
      const at = slices && focus !== NONE ? (slices.begin[focus] + slices.end(focus)) / 2 : middle;
      view.zoom(event.key === "w" ? 1 / ZOOM : ZOOM, at >= view.begin && at <= view.end ? at : middle);
      return true;
    }
    case "a":
      view.pan(-PAN * view.width);
      return true;
    case "d":
      view.pan(PAN * view.width);
      return true;
    case "Home":
      view.set(...view.whole());
      timeline.scroller.scrollTop = 0;
      return true;
    default:
  }
  if (!slices?.count) return false;
  if (focus === NONE) {
    const isStep = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageDown", "PageUp", "Enter"].includes(
      event.key,
    );
    if (isStep) store.focusOn(run.index, firstSeen(timeline));
    return isStep;
  }
  return sliceKey(timeline, event.key, focus);
}

function sliceKey(timeline: Timeline, key: string, focus: number): boolean {
  const { store, run, layout } = timeline;
  const slices = run.slices;
  if (!slices) return false;
  const track = slices.trackOf(focus);
  const move = (slice: number, reason: string): boolean => {
    if (slice === NONE) {
      store.spoken = reason;
      store.changed();
    } else store.focusOn(run.index, slice);
    return true;
  };
  switch (key) {
    case "ArrowLeft":
      return move(slices.sibling(focus, -1), "no slice before it");
    case "ArrowRight":
      return move(slices.sibling(focus, 1), "no slice after it");
    case "ArrowUp":
      return move(slices.caller(focus), "no caller");
    case "ArrowDown": {
      const [first, end] = slices.callees(focus);
      return move(first < end ? first : NONE, "it has no callee");
    }
    case "PageDown":
    case "PageUp": {
      const step = key === "PageDown" ? 1 : -1;
      let next = track + step;
      while (next >= 0 && next < run.tracks.length && !run.tracks[next].slices) next += step;
      const has = next >= 0 && next < run.tracks.length;
      return move(has ? slices.nearest(slices.trackRow[next], slices.begin[focus]) : NONE, "no more tracks");
    }
    case "Enter":
      store.select({ kind: "slice", run: run.index, slice: focus });
      return true;
    case "r":
      selectRange(timeline, slices.begin[focus], Math.max(slices.end(focus), slices.begin[focus] + 1));
      return true;
    case "[":
    case "]": {
      const chosen = store.selection?.kind === "range" && store.selection.run === run.index ? store.selection : null;
      const [first, last] = chosen ? [chosen.begin, chosen.end] : [slices.begin[focus], slices.end(focus)];
      const ends = key === "[" ? [slices.begin[focus], last] : [first, slices.end(focus)];
      selectRange(timeline, Math.min(...ends), Math.max(...ends));
      return true;
    }
    case "c":
      layout.toggle(layout.collapsed, track);
      store.spoken = layout.collapsed.has(track) ? "collapsed" : "expanded";
      store.changed();
      return true;
    case "u":
      layout.toggle(layout.unfolded, track);
      store.spoken = layout.unfolded.has(track) ? "all rows are shown" : "deep rows are folded";
      store.changed();
      return true;
    default:
      return false;
  }
}

// Outermost slice in the middle of the first track that is seen.
function firstSeen(timeline: Timeline): number {
  const { slices, tracks } = timeline.run;
  if (!slices) return NONE;
  const first = timeline.layout.indexAt(timeline.scroller.scrollTop);
  for (let step = 0; step < tracks.length; step++) {
    const track = (first + step) % tracks.length;
    if (tracks[track].slices)
      return slices.nearest(slices.trackRow[track], (timeline.view.begin + timeline.view.end) / 2);
  }
  return NONE;
}
