// Histogram of the lengths of a function's calls, by uPlot.
import { h } from "preact";
import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import type { Detail } from "../data/details";
import { paletteOf } from "../draw/colors";
import { axisText, countText, plural } from "../text/numbers";

type Histogram = NonNullable<Detail["histogram"]>;

function draw(root: HTMLElement, histogram: Histogram, width: number, isDark: boolean): uPlot {
  const { edges, counts, of } = histogram;
  const palette = paletteOf(isDark);
  const ink = palette.muted;
  const grid = { stroke: palette.line, width: 1 };
  const bars = uPlot.paths.bars;
  // Bars by number: edges of long tails are not evenly spaced.
  const options: uPlot.Options = {
    width,
    height: 150,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: [-0.6, counts.length - 0.4] },
      y: { range: (_, __, most) => [0, Math.max(1, most)] },
    },
    axes: [
      {
        stroke: ink,
        grid: { show: false },
        space: 70,
        splits: (_, __, low, high) => {
          const step = Math.max(1, Math.ceil((high - low) / Math.max(1, width / 80)));
          return counts
            .map((___, i) => i)
            .filter((i) => i % step === 0)
            .map((i) => i - 0.5);
        },
        values: (_, splits) =>
          splits.map((split) => axisText(edges[split + 0.5], of).replace(` ${of}`, of === "ns" ? " ns" : "")),
      },
      {
        stroke: ink,
        grid,
        size: 56,
        values: (_, splits) => splits.map((value) => (value % 1 ? "" : countText(value))),
      },
    ],
    series: [
      {},
      {
        stroke: palette.selection,
        fill: palette.range,
        points: { show: false },
        ...(bars ? { paths: bars({ size: [0.9, 60] }) } : {}),
      },
    ],
    hooks: {
      setCursor: [
        (plot) => {
          const i = plot.cursor.idx;
          root.title =
            i === null || i === undefined
              ? ""
              : `${plural(counts[i], "call")} of ${axisText(edges[i], of)} to ${axisText(edges[i + 1], of)}`;
        },
      ],
    },
  };
  return new uPlot(options, [counts.map((_, i) => i), counts], root);
}

export function Histogram({ histogram, isDark }: { histogram: Histogram; isDark: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = root.current;
    if (!element || !histogram.counts.length) return;
    let plot = draw(element, histogram, element.clientWidth, isDark);
    const observer = new ResizeObserver(() => {
      if (Math.abs(plot.width - element.clientWidth) < 2) return;
      plot.destroy();
      plot = draw(element, histogram, element.clientWidth, isDark);
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [histogram, isDark]);
  const total = histogram.counts.reduce((sum, count) => sum + count, 0);
  const [least, most] = [histogram.edges[0], histogram.edges[histogram.edges.length - 1]];
  const label = `${plural(total, "call")}, from ${axisText(least, histogram.of)} to ${axisText(most, histogram.of)}`;
  return <div class="histogram" ref={root} role="img" aria-label={`Histogram: ${label}`} />;
}
