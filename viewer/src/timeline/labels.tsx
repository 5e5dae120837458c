// Names of tracks that are seen, beside the canvases.
import { Fragment, h } from "preact";
import { cleaned } from "../text/names";
import { countText, plural } from "../text/numbers";
import type { Timeline } from "./timeline";

export function Labels({ timeline }: { timeline: Timeline }) {
  const { layout, run, scroller } = timeline;
  const top = scroller.scrollTop;
  const toggle = (set: Set<number>, track: number): void => {
    layout.toggle(set, track);
    timeline.invalidate();
  };
  return (
    <>
      {layout.visible(top, top + scroller.clientHeight).map((block) => {
        const track = run.tracks[block.track];
        const isCollapsed = layout.collapsed.has(block.track);
        const isLow = block.rows === 0;
        const hidden = layout.hiddenRows(block.track);
        const name = run.trackName(block.track);
        const detail = cleaned(track.detail);
        // A name of a track that begins above stays seen.
        const y = Math.min(Math.max(block.top - top, 0), Math.max(block.bottom - top - 44, block.top - top));
        return (
          <div
            key={block.track}
            class="label"
            style={{ top: `${y}px`, maxHeight: `${block.bottom - block.top - 2}px` }}
          >
            <button
              aria-expanded={!isCollapsed}
              title={`${name}\n${detail}\n${plural(track.slices, "slice")}, ${plural(track.depth, "level")}`}
              onClick={() => toggle(layout.collapsed, block.track)}
            >
              <span aria-hidden="true">{isCollapsed ? "\u25b8" : "\u25be"}</span> {name}
              {isLow && detail !== name ? <small>{detail}</small> : null}
            </button>
            {!isLow && detail && detail !== name ? <small>{detail}</small> : null}
            {!isCollapsed && (hidden > 0 || layout.unfolded.has(block.track)) ? (
              <button class="fold" onClick={() => toggle(layout.unfolded, block.track)}>
                {hidden > 0 ? `+${countText(hidden)} deeper` : "fold"}
              </button>
            ) : null}
          </div>
        );
      })}
    </>
  );
}
