"""How long calls are: histograms, and the slowest ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptkit.decode.call_histogram import CallHistogram, histogram
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import integer
from ptkit.table import Table

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CallLengths"]


class CallLengths(Table):
    """Methods of `CallTable` about the lengths of its calls."""

    def lengths(self, of: str = "instructions") -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """How long each call is, with all that it called.

        Parameters
        ----------
        of : str
            ``"instructions"``, or ``"time"``: TSC ticks from its begin to its end, both at their earliest.

        Returns
        -------
        tuple of numpy.ndarray, shape (rows,)
            Lengths (int64), and which of them are known (bool).

        Raises
        ------
        ConfigError, ColumnError
            If `of` is neither, or a column that it needs was not asked for.
        """
        check_choice("of", of, ("instructions", "time"))
        if of == "instructions":
            return np.asarray(self["instructions"]), np.ones(len(self), np.bool_)
        begin, end = np.asarray(self["tsc"]), np.asarray(self["end_tsc"])
        known = np.asarray(self["time_known"] & self["end_time_known"])
        return (end - np.minimum(begin, end)).astype(np.int64), known

    def histogram(self, of: str = "instructions", *, bins: Sequence[int] | None = None) -> CallHistogram:
        """Count the calls by their lengths: ``trace.calls(symbol="parse").histogram()``.

        Calls that go on beyond a window of time, of which a part is not known, are left out.

        Parameters
        ----------
        of : str
            As for `lengths`.
        bins : sequence of int, optional
            Ascending limits around all lengths, one more than there are bins; by default 1, 2, 5, 10, 20, 50
            and so on.

        Returns
        -------
        CallHistogram
            Counts and exact sums.

        Raises
        ------
        ConfigError, ColumnError
            As for `lengths`; also if a length lies outside of the limits.

        Examples
        --------
        >>> import ptkit
        >>> calls = ptkit.record(["true"]).calls()
        >>> int(calls.histogram().counts.sum()) == len(calls)
        True
        """
        lengths, known = self.lengths(of)
        if "flags" in self.data.arrays:
            whole = ~np.asarray(self["begins_before"] | self["ends_after"])
            lengths, known = lengths[whole], known[whole]
        unit = "instructions" if of == "instructions" else "TSC ticks"
        return histogram(lengths[known], unit, int(np.count_nonzero(~known)), bins)

    def slowest(self, count: int, of: str = "instructions") -> Self:
        """The longest calls, longest first; those of the same length in the order of the table.

        Parameters
        ----------
        count : int
            How many at most.
        of : str
            As for `lengths`. Calls of which the time is not known are left out.

        Returns
        -------
        CallTable
            `spans` has what leads to the rows of each.

        Raises
        ------
        ConfigError, ColumnError
            As for `lengths`; also if `count` is no positive integer.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> slow = trace.calls(module="ld-linux-x86-64.so.2").slowest(3)
        >>> len(trace.between(*slow.spans()[0].tolist()).branches()) > 0
        True
        """
        count = integer("count", count, 1, 2**48)
        lengths, known = self.lengths(of)
        rows = np.flatnonzero(known)
        order = np.argsort(~lengths[rows], kind="stable")[:count]
        return self[rows[order]]

    def spans(self) -> NDArray[np.uint64]:
        """Arguments of `Trace.between` for each call: its branches, and others of that time.

        Returns
        -------
        numpy.ndarray of uint64, shape (rows, 2)
            TSC ticks [begin, end).

        Raises
        ------
        ConfigError
            If a time is not known.
        """
        if not (self["time_known"] & self["end_time_known"]).all():
            raise ConfigError("spans: some times are not known; slowest(of='time') leaves these out")
        end = np.asarray(self["end_tsc"]) + np.asarray(self["end_tsc_error"]) + np.uint64(1)
        return np.column_stack([np.asarray(self["tsc"]), end])
