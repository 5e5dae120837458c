"""The part of a trace that columns of its tables need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ptkit.table.labels import Labels

__all__ = ["TableContext"]

_MANY_TICKS = 1_000_000_000


@dataclass(frozen=True)
class TableContext:
    """The part of a trace that derived columns and messages of its tables need.

    Attributes
    ----------
    files : tuple of str
        Paths of the trace's files, by index.
    name_rows : callable or None
        Names of the code that rows executed, and offsets in it: `ptkit.trace.names.names.Names.name_rows`.
    name_inlined : callable or None
        Functions of inlined calls: `ptkit.trace.names.names.Names.name_inlined`.
    name_lines : callable or None
        Source lines of addresses: `ptkit.trace.names.names.Names.name_lines`.
    to_ns : callable or None
        TSC ticks to nanoseconds; None if the clock is not known.
    length_ns : callable or None
        Lengths of time in TSC ticks to nanoseconds; None if the clock is not known.
    record_streams : frozenset of int
        Streams of branch records.
    thread_names : mapping of int to str
        Names of threads, as far as the recorder knew them, by their numbers.
    annotated : bool
        PTW packets are annotations of the recorder (DRAKVUF): PTWEn was 0.
    kept : mapping of str to sequence of str, or to None
        Derived columns that the table has as arrays of their own, because it was pickled without its trace.
        Of a text column, the distinct names; the array has their codes.
    kept_rate : float or None
        `ns_per_tick` of the trace, for the same reason.
    """

    files: tuple[str, ...] = ()
    name_rows: Callable[..., tuple[Labels, NDArray[np.uint64]]] | None = None
    name_lines: Callable[..., tuple[Labels, NDArray[np.uint32]]] | None = None
    to_ns: Callable[[NDArray[np.uint64]], NDArray[np.int64]] | None = None
    record_streams: frozenset[int] = frozenset()
    annotated: bool = False
    length_ns: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None
    name_inlined: Callable[..., Labels] | None = None
    thread_names: Mapping[int, str] = field(default_factory=dict)
    kept: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    kept_rate: float | None = None

    def ns_per_tick(self) -> float | None:
        """About how many nanoseconds a TSC tick has; None if the clock is not known."""
        if self.length_ns is None:
            return self.kept_rate
        return float(self.length_ns(np.array([_MANY_TICKS]))[0]) / _MANY_TICKS

    def without_trace(self, kept: Mapping[str, Sequence[str] | None]) -> TableContext:
        """Return what can be pickled of it, for a table that has these derived columns as arrays."""
        return replace(
            self,
            name_rows=None,
            name_lines=None,
            to_ns=None,
            length_ns=None,
            name_inlined=None,
            kept=kept,
            kept_rate=self.ns_per_tick(),
        )

    def thread_label(self, tid: int) -> str:
        """Name the outermost code of a thread, if no function is known to have it."""
        name = self.thread_names.get(tid)
        return f"thread {tid} ({name})" if name else f"thread {tid}"
