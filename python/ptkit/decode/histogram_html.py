"""Histograms of calls for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptkit.support.text import counted
from ptkit.table.html import Cell, html_table

if TYPE_CHECKING:
    from ptkit.decode.call_histogram import CallHistogram

__all__ = ["histogram_html"]

_BAR = 20  # characters


def histogram_html(histogram: CallHistogram) -> str:
    """Build a table of the bins, with bars."""
    unit = histogram.unit
    counts, totals = histogram.counts.tolist(), histogram.totals.tolist()
    limits, sum_of_all, most = histogram.limits.tolist(), max(sum(totals), 1), max([*counts, 1])
    heads = [
        Cell("from", unit=unit),
        Cell("to below", unit=unit),
        Cell("calls"),
        Cell("", is_text=True),
        Cell("sum", title="of all calls of the bin", unit=unit),
        Cell("share", title="of the sum of all calls"),
    ]
    rows = [
        [
            Cell(f"{low:,}"),
            Cell(f"{high:,}"),
            Cell(f"{count:,}"),
            Cell("\u2588" * -(-count * _BAR // most), is_text=True),
            Cell(f"{total:,}"),
            Cell(f"{total / sum_of_all:.1%}"),
        ]
        for low, high, count, total in zip(limits[:-1], limits[1:], counts, totals, strict=True)
    ]
    footer = f"{counted(sum(counts), 'call')} by {unit}"
    if histogram.unknown:
        footer += f"; of {histogram.unknown:,} more the length is not known"
    return html_table(heads, rows, footer)
