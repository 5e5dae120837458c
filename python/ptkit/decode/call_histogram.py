"""How long the calls of a function are: counts and sums by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support.text import counted
from ptkit.table.html import Cell, html_table

__all__ = ["CallHistogram", "histogram"]

_LAST = 2**63 - 1
#: Usual limits: three for each power of ten.
_USUAL = np.array([0, *(step * 10**power for power in range(19) for step in (1, 2, 5)), _LAST], np.int64)
_BAR = 20  # characters


@dataclass(frozen=True)
class CallHistogram:
    """Calls by their lengths.

    Attributes
    ----------
    unit : str
        ``"instructions"`` or ``"TSC ticks"``.
    limits : numpy.ndarray of int64, shape (bins + 1,)
        Bin i has the calls with a length in [limits[i], limits[i + 1]).
    counts : numpy.ndarray of int64, shape (bins,)
        Calls.
    totals : numpy.ndarray of int64, shape (bins,)
        Sums of their lengths, exact.
    unknown : int
        Calls of which the length is not known: they are in no bin.
    """

    unit: str
    limits: NDArray[np.int64]
    counts: NDArray[np.int64]
    totals: NDArray[np.int64]
    unknown: int

    def _repr_html_(self) -> str:
        return _html(self)


def histogram(
    lengths: NDArray[np.int64], unit: str, unknown: int, bins: Sequence[int] | None
) -> CallHistogram:
    """Count lengths in bins; by default between 1, 2, 5, 10, 20, 50 and so on.

    Raises
    ------
    ConfigError
        If `bins` are no ascending limits, or a length lies outside of them.
    """
    ordered = np.sort(lengths)
    limits = _usual_limits(ordered) if bins is None else _checked(bins)
    if len(ordered) and (ordered[0] < limits[0] or ordered[-1] >= limits[-1]):
        raise ConfigError(
            f"bins: the calls take {int(ordered[0]):,} to {int(ordered[-1]):,} {unit}, and the limits are "
            f"{int(limits[0]):,} to {int(limits[-1]):,}"
        )
    rows = np.searchsorted(ordered, limits)
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(ordered, dtype=np.int64)])
    return CallHistogram(
        unit, limits, np.diff(rows).astype(np.int64), np.diff(sums[rows]).astype(np.int64), unknown
    )


def _usual_limits(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Limits around all lengths."""
    if not len(ordered):
        return _USUAL[:2]
    first, last = np.searchsorted(_USUAL, ordered[[0, -1]], "right")
    return _USUAL[first - 1 : last + 1]


def _checked(bins: Sequence[int]) -> NDArray[np.int64]:
    limits = [int(one) for one in bins]
    if len(limits) < 2 or limits[0] < 0 or limits[-1] > _LAST or any(a >= b for a, b in pairwise(limits)):
        raise ConfigError("bins: give at least two ascending limits of 63 bits, such as [0, 100, 10_000]")
    return np.array(limits, np.int64)


def _html(histogram: CallHistogram) -> str:
    """Build a table of the bins, with bars, for a notebook."""
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
