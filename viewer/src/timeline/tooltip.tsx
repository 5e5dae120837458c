// Tooltip of what is below the pointer.
import { h, render } from "preact";
import { BandKind } from "../data/head";
import { describe } from "../model/describe";
import { NONE } from "../model/slices";
import { Facts } from "../panels/facts";
import { cleaned } from "../text/names";
import { countText, plural } from "../text/numbers";
import type { Hit, Timeline } from "./timeline";

export const BAND_NAMES: Record<BandKind, string> = {
  [BandKind.UNTRACED]: "untraced: packets were disabled",
  [BandKind.SWITCHED_OUT]: "switched out: another thread was executed",
  [BandKind.LOST]: "lost: control flow is not known",
};

function element(): HTMLElement {
  return document.querySelector<HTMLElement>("#tooltip") as HTMLElement;
}

export function hideTooltip(): void {
  element().hidden = true;
}

function bandText(timeline: Timeline, hit: Hit): string | null {
  const slack = (2 * timeline.view.width) / timeline.width;
  const bands = timeline.run.tracks[hit.track].bands;
  const found = bands.filter(([begin, end]) => begin <= hit.position + slack && end >= hit.position - slack);
  const band = found.find(([, , kind]) => kind === BandKind.LOST) ?? found[0];
  if (!band) return null;
  return `${BAND_NAMES[band[2]]}, for ${timeline.run.length(band[1] - band[0])}`;
}

function rateText(timeline: Timeline, hit: Hit): string | null {
  const { counts } = timeline.run.tracks[hit.track];
  const next = counts.findIndex(([position]) => position > hit.position);
  if (next < 1) return null;
  const [[from, before], [to, after]] = [counts[next - 1], counts[next]];
  return `${countText(after - before)} branches in ${timeline.run.length(to - from)}`;
}

function divergenceText(timeline: Timeline, hit: Hit): string | null {
  const slack = (5 * timeline.view.width) / timeline.width;
  const near = (timeline.run.head.divergences ?? []).filter(
    ([track, position]) => track === hit.track && Math.abs(position - hit.position) <= slack,
  );
  if (!near.length) return null;
  const [, , , where, way] = near.reduce((best, one) =>
    Math.abs(one[1] - hit.position) < Math.abs(best[1] - hit.position) ? one : best,
  );
  const more = near.length > 1 ? `; ${near.length - 1} more here` : "";
  return `parts from the other run at ${cleaned(where)}${way ? `: ${cleaned(way)}` : ""}${more}`;
}

export function showTooltip(timeline: Timeline, hit: Hit, x: number, y: number): void {
  const { run, store } = timeline;
  const band = bandText(timeline, hit);
  const parting = divergenceText(timeline, hit);
  const box = element();
  if (hit.slice === NONE) {
    const rate = hit.depth < 0 ? rateText(timeline, hit) : null;
    if (!band && !rate && !parting) {
      box.hidden = true;
      return;
    }
    render(
      <div>
        {[parting, rate, band].filter(Boolean).map((text) => (
          <p key={text}>{text}</p>
        ))}
      </div>,
      box,
    );
  } else {
    const calls = timeline.callsInPixel(hit.slice);
    const name = run.names[run.slices?.functionOf(hit.slice) ?? 0];
    render(
      <div>
        <b>{name}</b>
        {calls > 1 ? <p>one of {plural(calls, "slice")} in this pixel: zoom in</p> : null}
        <Facts facts={describe(store.head, run, hit.slice)} />
        {parting ? <p>{parting}</p> : null}
        {band ? <p>{band}</p> : null}
      </div>,
      box,
    );
  }
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 6))}px`;
  box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
}
