"""The tables of a trace in parts of bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.support.schema import schema_of
from ptkit.table import Table
from ptkit.table.derived import derived_of
from ptkit.table.labels import Labels
from ptkit.trace.phases import check_columns

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ROWS = 1_000_000
_ROWS_IN_PLACE = 1 << 16  # such a part stays in the second level cache


class Parts(ABC):
    """What `Trace` gives part by part: one ``iter_`` method for every table."""

    @abstractmethod
    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan: ...

    def _iterate(
        self, table: str, rows: int | None, reuse: bool, query: Query, **more: Any
    ) -> Iterator[Table]:
        return self._in_parts(self._plan(table, query, **more), rows, reuse)

    @staticmethod
    def _in_parts(plan: _decode.Plan, rows: int | None, reuse: bool) -> Iterator[Table]:
        if rows is None:
            rows = _ROWS_IN_PLACE if reuse else _ROWS
        return _decode.iterate(plan, rows, reuse)

    def iter_packets(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `packets` in parts of `rows` rows, in memory that does not grow with the trace.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `packets`; its ``.errors`` and ``.gaps`` have what came up in this part.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`; also for ``reuse=True`` with ``order="time"`` of several streams.
        """
        return self._iterate("packets", rows, reuse, query)

    def iter_branches(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `branches` in parts of `rows` rows, in memory that does not grow with the trace.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `branches`; its ``.errors`` and ``.gaps`` have what came up in this part.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`; also for ``reuse=True`` with ``order="time"`` of several streams.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> taken = 0
        >>> for part in trace.iter_branches(columns=["taken"], reuse=True):
        ...     taken += int(part["taken"].sum())
        >>> taken == len(trace.branches(taken=True))
        True
        """
        return self._iterate("branches", rows, reuse, query)

    def iter_blocks(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `blocks` in parts of `rows` rows, in memory that does not grow with the trace.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `blocks`; its ``.errors`` and ``.gaps`` have what came up in this part.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`; also for ``reuse=True`` with ``order="time"`` of several streams.
        """
        return self._iterate("blocks", rows, reuse, query)

    def iter_instructions(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `instructions` in parts of `rows` rows, in memory that does not grow with the trace.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `instructions`; its ``.errors`` and ``.gaps`` have what came up in this part.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`; also for ``reuse=True`` with ``order="time"`` of several streams.
        """
        return self._iterate("instructions", rows, reuse, query)

    def iter_events(
        self, *, ticks: bool = False, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `events` in parts of `rows` rows, in memory that does not grow with the trace.

        Parameters
        ----------
        ticks : bool
            Also a row for every timing packet.
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `events`; its ``.errors`` and ``.gaps`` have what came up in this part.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`; also for ``reuse=True`` with ``order="time"`` of several streams.
        """
        return self._iterate("events", rows, reuse, query, ticks=ticks)

    def iter_edges(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `edges` in parts of `rows` rows; the first comes when everything is counted.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `edges`; its ``.errors`` and ``.gaps`` have what came up in this part. Parts
            may have fewer rows: branches of which neither the target nor its name is known are left out.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`.
        """
        check_columns(query.get("columns"))
        plan = self._plan("edges", query)
        plan = replace(plan, selection=plan.selection | _decode.ALL_EDGES)
        return map(with_targets, self._in_parts(plan, rows, reuse))

    def iter_errors(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `errors` in parts of `rows` rows.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `errors`.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`; errors are raised only if ``errors="raise"`` is said here.
        """
        query.setdefault("errors", "rows")  # the rows of this table are errors
        return self._iterate("errors", rows, reuse, query)

    def iter_gaps(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        """Rows of `gaps` in parts of `rows` rows.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 65,536 with ``reuse``,
            so that a part stays in the processor's caches, and 1,000,000 without.
        reuse : bool
            Parts share memory: a part is valid until the next one is asked for.
        **query
            See `ptkit.decode.Query`.

        Yields
        ------
        Table
            With the columns of `gaps`.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`.
        """
        return self._iterate("gaps", rows, reuse, query)


def with_targets(edges: Table) -> Table:
    """Leave out branches of which neither the target nor its name is known."""
    unknown: NDArray[np.bool_] = (
        edges.data.arrays["flags"] & schema_of("edges").columns["to_known"].mask
    ) == 0
    if not unknown.any():
        return edges
    if edges.data.context.name_rows is None:
        return edges[~unknown]
    names = derived_of("edges")["to_symbol"].values(edges.data)
    assert isinstance(names, Labels)
    return edges[~unknown | names.known()]
