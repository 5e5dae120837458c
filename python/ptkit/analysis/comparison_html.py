"""Comparisons of calls for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from ptkit.support.text import counted, one_line
from ptkit.table.distinct_names import distinct_names
from ptkit.table.html import Cell, html_table

if TYPE_CHECKING:
    from ptkit.analysis.slow_calls import CallComparison, CallDifference

__all__ = ["comparison_html"]

_MOST_ROWS = 10
_PARTS = (
    ("functions", "function", "instructions"),
    ("lines", "line", "instructions"),
    ("edges", "edge", "instructions"),
    ("times", "time", "TSC ticks"),
)


def comparison_html(comparison: CallComparison) -> str:
    """Build a table for each kind of difference, of those with most extra work."""
    found = comparison
    shown = distinct_names(found._full_names())
    by = "instructions" if found.by == "instructions" else "time"
    head = (
        f"<p><b>{escape(one_line(shown[found.function_full]))}</b>: {len(found.slow):,} slow and "
        f"{len(found.fast):,} fast of {counted(found.calls, 'call')}, by {by}. All numbers are means over "
        "the calls.</p>"
    )
    tables = [
        _table(differences, shown, noun, unit)
        for name, noun, unit in _PARTS
        if (differences := getattr(found, name))
    ]
    return head + "".join(tables)


def _table(differences: Sequence[CallDifference], shown: Mapping[str, str], noun: str, unit: str) -> str:
    heads = [
        Cell(noun, is_text=True),
        Cell("extra", title="slow less fast", unit=unit),
        Cell("slow", unit=unit),
        Cell("fast", unit=unit),
        Cell("slow", title="in a slow call", unit="times" if noun != "time" else "share"),
        Cell("fast", title="in a fast call", unit="times" if noun != "time" else "share"),
        Cell("example", title="id of a slow call that has it"),
    ]
    rows = [
        [
            Cell(one._with(shown), title=one.name_full, is_text=True),
            Cell(f"{one.extra:+,.0f}" if one.kind != "gap" else f"{one.extra:+.2f}"),
            *(
                Cell(f"{value:,.0f}" if one.kind != "gap" else f"{value:.2f}")
                for value in (one.slow, one.fast)
            ),
            *(Cell(f"{value:,.2f}") for value in (one.slow_count, one.fast_count)),
            Cell("-" if one.slow_example is None else str(one.slow_example)),
        ]
        for one in differences[:_MOST_ROWS]
    ]
    left_out = len(differences) - len(rows)
    return html_table(heads, rows, f"{left_out:,} more in the attribute {noun}s" if left_out > 0 else "")
