"""Pictures of a trace: where it spends its work, over time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.decode import Query
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import integer
from ptkit.support.text import one_line
from ptkit.table.plot import OTHERS, PALETTE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ptkit.table import Table

NO_TIMES = 'plot: the trace has no times (no TSC packet): plot(by="instructions")'
_MOST_SLOTS = 4000
_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000


class Plots(ABC):
    """Pictures of `Trace` and its parts."""

    @abstractmethod
    def edges(self, *, by: str | None = None, bins: Any = None, **query: Unpack[Query]) -> Table: ...
    @abstractmethod
    def _span(self) -> tuple[int, int] | None: ...

    def plot(
        self, by: str = "time", *, slots: int = 200, ax: Axes | None = None, **query: Unpack[Query]
    ) -> Axes:
        """Draw which files the work is done in, along the trace, by matplotlib.

        Parameters
        ----------
        by : str
            ``"time"``: branches per interval of time, by the file that they lead to. ``"instructions"``: the
            share of each file, along the instructions of the stream; times do not matter, such as those of
            an emulator.
        slots : int
            Number of intervals.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure.
        **query
            See `ptkit.decode.Query`: what is counted, such as ``stream=0`` or ``tid=...``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UnsupportedError
            If matplotlib is missing.
        ConfigError
            If the trace has no times, and `by` is ``"time"``; otherwise as for `edges`.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> trace.plot(by="instructions", slots=20).get_ylabel()
        '% of branches'
        """
        check_choice("by", by, ("time", "instructions"))
        slots = integer("slots", slots, 1, _MOST_SLOTS)
        axes: Any = new_axes(ax, (9, 3.5))
        limits, edges = self._phases(by, slots, query)
        files, counts = _by_file(edges, slots if by != "time" else len(limits) - 1)
        if by == "time":
            drawn = _draw_times(axes, np.array(limits, np.float64), counts, edges.data.context.ns_per_tick())
        else:
            shares = 100 * counts / counts.sum(axis=1, keepdims=True).clip(1)
            drawn = _draw(axes, np.linspace(0, 100, slots + 1), shares)
            axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="% of the instructions", ylabel="% of branches")
        total = max(counts.sum(), 1)
        names = [
            f"{share:.1%} {one_line(name)}"
            for share, name in zip(counts.sum(axis=0) / total, [*files, "others"], strict=True)
        ]
        kept = counts.sum(axis=0) > 0
        axes.legend(
            [one for one, shown in zip(drawn, kept, strict=True) if shown],
            [name for name, shown in zip(names, kept, strict=True) if shown],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.18),
            ncols=3,
            frameon=False,
            fontsize=8,
        )
        axes.set_title("Work by file", loc="left", weight="bold", fontsize=10)
        found: Axes = axes
        return found

    def _phases(self, by: str, slots: int, query: Query) -> tuple[list[int], Table]:
        """Ticks between slots, none by instructions, and the edges of each slot with ``to_module``."""
        limits = self._slot_limits(query, slots) if by == "time" else []
        query["columns"] = ["count", "to_module"]
        return limits, self.edges(by=by, bins=limits or slots, **query)

    def _slot_limits(self, query: Query, slots: int) -> list[int]:
        """Ticks between slots, of the times that are selected."""
        span = self._span()
        if span is None:
            raise ConfigError(NO_TIMES)
        low, high = query.get("time") or (None, None)
        begin = span[0] if low is None else max(low, span[0])
        end = span[1] + 1 if high is None else min(high, span[1] + 1)
        if end <= begin:
            raise ConfigError("plot: nothing is selected by time")
        return limits_of(begin, end, slots)


def limits_of(begin: int, end: int, slots: int) -> list[int]:
    """Limits of slots of equal length, as far as whole numbers allow it."""
    return sorted({begin + (end - begin) * slot // slots for slot in range(slots + 1)})


def _draw_times(
    axes: Any, limits: NDArray[np.float64], counts: NDArray[np.float64], rate: float | None
) -> list[Any]:
    """Draw branches per interval of time; `rate`: nanoseconds of a tick."""
    ticks = limits - limits[0]
    unit, size = ("million TSC ticks", 1e6) if rate is None else ("ms", _NS_PER_MS / rate)
    times = ticks if rate is None else ticks * rate / _NS_PER_S
    drawn = _draw(axes, times, counts * size / np.diff(ticks)[:, None])
    axes.set(xlabel="TSC ticks" if rate is None else "time (s)", ylabel=f"branches per {unit}")
    axes.margins(x=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    return drawn


def _by_file(edges: Table, slots: int) -> tuple[list[str], NDArray[np.float64]]:
    """The files with most branches, and the branches of each in each slot; all others come last."""
    modules, count = edges["to_module"], np.asarray(edges["count"])
    names, codes = np.unique(np.where(modules == None, "", modules).astype(str), return_inverse=True)  # noqa: E711
    sums = np.bincount(codes, count, len(names)) if len(names) else np.zeros(0)
    sums[names == ""] = 0
    order = [code for code in np.argsort(-sums, kind="stable")[: len(PALETTE)].tolist() if sums[code]]
    column_of = np.full(len(names), len(order))
    column_of[order] = np.arange(len(order))
    counts = np.zeros((slots, len(order) + 1))
    np.add.at(counts, (np.asarray(edges["bin"]).astype(np.intp), column_of[codes]), count)
    return [str(names[code]) for code in order], counts


def _draw(axes: Any, limits: NDArray[np.float64], values: NDArray[np.float64]) -> list[Any]:
    """Draw the values of each slot, one upon the other; return what stands for each column."""
    colors = [*PALETTE[: values.shape[1] - 1], OTHERS]
    return list(axes.stackplot(limits, np.vstack([values, values[-1:]]).T, colors=colors, step="post"))
