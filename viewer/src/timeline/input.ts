// Mouse, touch and wheel of a timeline.
import { NONE } from "../model/slices";
import type { Timeline } from "./timeline";

const MOVED = 4; // CSS pixels from which a press is a drag

interface Press {
  x: number;
  y: number;
  begin: number;
  end: number;
  scrollTop: number;
  isRange: boolean;
  anchor: number;
  hasMoved: boolean;
}

export function listenToPointers(timeline: Timeline): void {
  const over = timeline.root.querySelector<HTMLElement>(".over") as HTMLElement;
  const ruler = timeline.root.querySelector<HTMLElement>(".ruler") as HTMLElement;
  listenToDrags(timeline, over, false);
  listenToDrags(timeline, ruler, true);
  for (const element of [over, ruler]) {
    element.addEventListener("wheel", (event) => wheel(timeline, event, element), { passive: false });
  }
  over.addEventListener("dblclick", (event) => {
    const slice = timeline.hit(event.offsetX, event.offsetY)?.slice ?? NONE;
    const { slices } = timeline.run;
    if (slices && slice !== NONE) timeline.view.fit(slices.begin[slice], slices.end(slice));
  });
}

function wheel(timeline: Timeline, event: WheelEvent, element: HTMLElement): void {
  const size = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 400 : 1;
  const x = event.clientX - element.getBoundingClientRect().left;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    timeline.view.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * size)) * 0.004), timeline.position(x));
    return;
  }
  const across = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
  if (across) {
    event.preventDefault();
    timeline.view.pan((across * size * timeline.view.width) / timeline.width);
  }
}

function listenToDrags(timeline: Timeline, element: HTMLElement, isRuler: boolean): void {
  const pointers = new Map<number, PointerEvent>();
  let press: Press | null = null;
  let pinch: { distance: number; middle: number; width: number } | null = null;
  const xOf = (event: PointerEvent): number => event.clientX - element.getBoundingClientRect().left;
  const yOf = (event: PointerEvent): number => event.clientY - element.getBoundingClientRect().top;

  const touches = (): { distance: number; x: number } => {
    const [a, b] = [...pointers.values()].map(xOf);
    return { distance: Math.max(20, Math.abs(a - b)), x: (a + b) / 2 };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    timeline.root.querySelector<HTMLElement>(".keys")?.focus({ preventScroll: true });
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    timeline.point(null, 0, 0);
    if (pointers.size === 2) {
      const { distance, x } = touches();
      pinch = { distance, middle: timeline.position(x), width: timeline.view.width };
      press = null;
      timeline.draft = null;
      return;
    }
    const x = xOf(event);
    press = {
      x,
      y: yOf(event),
      begin: timeline.view.begin,
      end: timeline.view.end,
      scrollTop: timeline.scroller.scrollTop,
      isRange: isRuler || event.shiftKey,
      anchor: timeline.position(x),
      hasMoved: false,
    };
  });

  element.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, event);
    const [x, y] = [xOf(event), yOf(event)];
    if (pinch && pointers.size === 2) {
      const now = touches();
      const width = (pinch.width * pinch.distance) / now.distance;
      const begin = pinch.middle - (now.x / timeline.width) * width;
      timeline.view.set(begin, begin + width);
    } else if (press) {
      press.hasMoved ||= Math.abs(x - press.x) > MOVED || Math.abs(y - press.y) > MOVED;
      if (!press.hasMoved) return;
      if (press.isRange) {
        const at = timeline.position(Math.max(0, Math.min(timeline.width, x)));
        timeline.draft = [Math.min(press.anchor, at), Math.max(press.anchor, at)];
        timeline.invalidateOver();
      } else {
        const units = ((press.x - x) * (press.end - press.begin)) / timeline.width;
        timeline.view.set(press.begin + units, press.end + units);
        timeline.scroller.scrollTop = press.scrollTop + press.y - y;
      }
    } else if (!isRuler && event.pointerType !== "touch") {
      timeline.point(timeline.hit(x, y), event.clientX, event.clientY);
    }
  });

  const release = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    if (pinch) {
      if (!pointers.size) pinch = null;
      return;
    }
    const done = press;
    press = null;
    if (!done || event.type === "pointercancel") return;
    if (timeline.draft) {
      const [begin, end] = timeline.draft;
      timeline.draft = null;
      selectRange(timeline, begin, end);
    } else if (!done.hasMoved && !isRuler) {
      click(timeline, xOf(event), yOf(event));
    }
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("pointerleave", () => timeline.point(null, 0, 0));
}

/** Selects a range; its ends are those of the run at most. */
export function selectRange(timeline: Timeline, begin: number, end: number): void {
  const { run, store } = timeline;
  const [first, last] = run.head.range;
  const from = Math.max(first, Math.floor(begin));
  const to = Math.min(last, Math.ceil(end));
  if (to > from) store.select({ kind: "range", run: run.index, begin: from, end: to, track: null });
}

function click(timeline: Timeline, x: number, y: number): void {
  const { store, run } = timeline;
  const hit = timeline.hit(x, y);
  if (hit && hit.slice !== NONE) {
    store.focusOn(run.index, hit.slice);
    store.select({ kind: "slice", run: run.index, slice: hit.slice });
  } else {
    store.select(null);
  }
}
