// The page: bar, timelines and panels.
import { h } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Run } from "./model/run";
import { DivergencesPanel } from "./panels/divergences";
import { Functions } from "./panels/functions";
import { Help, Legend } from "./panels/help";
import { RecordingPanel } from "./panels/recording";
import { SearchPanel } from "./panels/search";
import { SelectionPanel } from "./panels/selection";
import { useStore, type Store, type Tab, type Theme } from "./store";
import { cleaned } from "./text/names";
import { countText, plural } from "./text/numbers";
import { pageKey, timelineKey } from "./timeline/keys";
import { Timeline } from "./timeline/timeline";

function TimelineView({ store, run }: { store: Store; run: Run }) {
  const root = useRef<HTMLDivElement>(null);
  // Painted before the browser shows anything else.
  useLayoutEffect(() => {
    const element = root.current;
    const scroller = element?.querySelector<HTMLElement>(".scroller");
    if (!element || !scroller) return;
    const timeline = new Timeline(run, store, element, scroller);
    store.timelines[run.index] = timeline;
    return () => {
      store.timelines[run.index] = null;
      timeline.stop();
    };
  }, [run, store]);
  const onKey = (event: KeyboardEvent): void => {
    const timeline = store.timelines[run.index];
    if (!timeline || event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.target as Element).closest(".labels") && (event.key === "Enter" || event.key === " ")) return;
    if (timelineKey(timeline, event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const name = cleaned(run.head.title);
  return (
    <div class="timeline" ref={root} onKeyDown={onKey}>
      <div class="top">
        <div class="corner">
          <b title={run.head.command ? cleaned(run.head.command) : name}>
            {store.runs.length > 1 ? `${run.index + 1}: ` : ""}
            {name}
          </b>
          <small>{run.isTime ? (run.head.unit_ns === null ? "in TSC ticks" : "in time") : "in instructions"}</small>
        </div>
        <canvas class="ruler" aria-hidden="true" />
      </div>
      <div
        class="scroller keys"
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-describedby="timeline-help"
        aria-label={`Timeline of ${name}: ${plural(run.tracks.length, "track")}`}
      >
        <div class="spacer" />
        <div class="stage">
          <div class="labels" />
          <div class="canvases">
            <canvas class="base" aria-hidden="true" />
            <canvas class="over" aria-hidden="true" />
          </div>
        </div>
      </div>
      {emptyText(run) ? (
        <p class="nothing" role="status">
          {emptyText(run)}
        </p>
      ) : null}
    </div>
  );
}

function emptyText(run: Run): string {
  if (run.error) return run.error;
  const slices = run.tracks.reduce((sum, track) => sum + track.slices, 0);
  if (!run.tracks.length)
    return "The recording has no threads with traced code. See Recording below for its facts and notes.";
  if (!slices) return "No calls are known: the recording has no code, no times, or errors alone. See Recording below.";
  return "";
}

function Bar({ store }: { store: Store }) {
  const { runs } = store;
  const slices = runs.reduce((sum, run) => sum + run.head.chunks.reduce((all, chunk) => all + chunk.rows, 0), 0);
  const isDecoding = runs.some((run) => !run.slices && !run.error);
  return (
    <header class="page-bar">
      <h1>ptkit</h1>
      <span class="command">{runs.map((run) => cleaned(run.head.command ?? run.head.title)).join("  |  ")}</span>
      <span class="muted status" role="status">
        {isDecoding ? `decoding ${plural(slices, "slice")}` : plural(slices, "slice")}
      </span>
      <Legend />
      {runs.length > 1 ? (
        <label>
          <input
            type="checkbox"
            checked={store.isLinked}
            onChange={(event) => {
              store.isLinked = event.currentTarget.checked;
              store.changed();
            }}
          />{" "}
          linked zoom
        </label>
      ) : null}
      <label class="theme">
        theme{" "}
        <select value={store.theme} onChange={(event) => store.setTheme(event.currentTarget.value as Theme)}>
          <option value="auto">auto</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
      <button
        onClick={() => {
          store.isHelpOpen = true;
          store.changed();
        }}
        aria-label="Help: keys and legend"
      >
        ?
      </button>
    </header>
  );
}

function Splitter({ share, onChange }: { share: number; onChange: (share: number) => void }) {
  const limit = (value: number): number => Math.max(0.1, Math.min(0.85, value));
  const drag = (event: PointerEvent): void => {
    if (event.buttons & 1) onChange(limit(1 - event.clientY / innerHeight));
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    event.stopPropagation();
    onChange(limit(share + (event.key === "ArrowUp" ? 0.05 : -0.05)));
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label="Height of the panels"
      aria-valuenow={Math.round(share * 100)}
      aria-valuemin={10}
      aria-valuemax={85}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={key}
    />
  );
}

const TABS: [Tab, string][] = [
  ["functions", "Functions"],
  ["selection", "Selection"],
  ["search", "Search"],
  ["divergences", "Divergences"],
  ["recording", "Recording"],
];

// Whether the window is too narrow for functions beside the other panels; the style has the same limit.
function useNarrow(): boolean {
  const [query] = useState(() => matchMedia("(max-width: 820px)"));
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const onChange = (): void => setNarrow(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, [query]);
  return isNarrow;
}

export function App({ store }: { store: Store }) {
  useStore(store);
  const [share, setShare] = useState(0.4);
  const isNarrow = useNarrow();
  const content = useRef<HTMLDivElement>(null);
  const shown = useRef(store.tab);
  // What had the focus may be gone with its panel: the keyboard goes on in the next one.
  useLayoutEffect(() => {
    if (shown.current !== store.tab && document.activeElement === document.body) content.current?.focus();
    shown.current = store.tab;
  }, [store.tab]);
  const divergences = store.divergences().length;
  const notes = store.runs.reduce((sum, run) => sum + run.head.notes.length, store.head.notes.length);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const target = event.target as Element;
      const isText = target.matches("input[type=search], textarea, select");
      if (isText && event.key !== "Escape") return;
      if (isText) (target as HTMLElement).blur();
      if (pageKey(store, event)) event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [store]);
  return (
    <div class="page" style={{ gridTemplateRows: `auto minmax(0, ${1 - share}fr) auto minmax(0, ${share}fr)` }}>
      <Bar store={store} />
      <main class="timelines">
        {store.runs.map((run) => (
          <TimelineView key={run.index} store={store} run={run} />
        ))}
      </main>
      <Splitter share={share} onChange={setShare} />
      <div class={`panels on-${store.tab} ${store.runs.length > 1 ? "two" : ""}`}>
        <div class="left">
          <Functions store={store} />
        </div>
        <div class="right">
          <div class="tabs" role="tablist" aria-label="Panels">
            {TABS.filter(([tab]) => tab !== "divergences" || divergences).map(([tab, title]) => (
              <button
                key={tab}
                role="tab"
                class={tab}
                aria-selected={store.tab === tab || (store.tab === "functions" && tab === "selection" && !isNarrow)}
                onClick={() => {
                  store.tab = tab;
                  store.changed();
                }}
              >
                {title}
                {tab === "recording" && notes ? ` (${plural(notes, "note")})` : ""}
                {tab === "divergences" ? ` (${countText(divergences)})` : ""}
                {tab === "search" && store.query ? ` (${countText(store.matchCount())})` : ""}
              </button>
            ))}
          </div>
          <div class="content" ref={content} role="tabpanel" tabIndex={-1} aria-label={store.tab}>
            {store.tab === "selection" || store.tab === "functions" ? <SelectionPanel store={store} /> : null}
            {store.tab === "search" ? <SearchPanel store={store} /> : null}
            {store.tab === "divergences" ? <DivergencesPanel store={store} /> : null}
            {store.tab === "recording" ? <RecordingPanel store={store} /> : null}
          </div>
        </div>
      </div>
      <Help store={store} />
      <p id="timeline-help" class="unseen">
        W and S zoom, A and D move, arrow keys go from slice to slice, Enter selects, question mark shows all keys.
      </p>
      <p class="unseen" aria-live="polite" id="spoken">
        {store.spoken}
      </p>
    </div>
  );
}
