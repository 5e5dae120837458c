"""The tables of a trace in parts of bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

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
_ROWS_REUSED = 1 << 16  # such a part stays in the second level cache


_WITH_SIDES = "; its ``.errors`` and ``.gaps`` have what came up in this part."
_DOC = """Rows of `{table}` in parts of `rows` rows{memory}

        Parameters
        ----------{argument}
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
            With the columns of `{table}`{yields}

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError
            As for `branches`{raises}
        {example}"""

_Method = TypeVar("_Method", bound=Callable[..., Iterator[Table]])


def _documented(
    table: str,
    *,
    memory: str = ", in memory that does not grow with the trace.",
    argument: str = "",
    yields: str = _WITH_SIDES,
    raises: str = '; also for ``reuse=True`` with ``order="time"`` of several streams.',
    example: str = "",
) -> Callable[[_Method], _Method]:
    """Give a method the docstring of all, with what differs for its table."""

    def with_docstring(method: _Method) -> _Method:
        method.__doc__ = _DOC.format(
            table=table, memory=memory, argument=argument, yields=yields, raises=raises, example=example
        )
        return method

    return with_docstring


class Parts(ABC):
    """Tables of `Trace` part by part: one ``iter_`` method for every table."""

    @abstractmethod
    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan: ...

    def _iterate(
        self, table: str, rows: int | None, reuse: bool, query: Query, **more: Any
    ) -> Iterator[Table]:
        return self._in_parts(self._plan(table, query, **more), rows, reuse)

    @staticmethod
    def _in_parts(plan: _decode.Plan, rows: int | None, reuse: bool) -> Iterator[Table]:
        if rows is None:
            rows = _ROWS_REUSED if reuse else _ROWS
        return _decode.iterate(plan, rows, reuse)

    @_documented("packets")
    def iter_packets(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        return self._iterate("packets", rows, reuse, query)

    @_documented(
        "branches",
        example="""
        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> taken = 0
        >>> for part in trace.iter_branches(columns=["taken"], reuse=True):
        ...     taken += int(part["taken"].sum())
        >>> taken == len(trace.branches(taken=True))
        True
        """,
    )
    def iter_branches(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        return self._iterate("branches", rows, reuse, query)

    @_documented("blocks")
    def iter_blocks(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        return self._iterate("blocks", rows, reuse, query)

    @_documented("instructions")
    def iter_instructions(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        return self._iterate("instructions", rows, reuse, query)

    @_documented("events", argument="\n        ticks : bool\n            Also a row for every timing packet.")
    def iter_events(
        self, *, ticks: bool = False, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        return self._iterate("events", rows, reuse, query, ticks=ticks)

    @_documented(
        "edges",
        memory="; the first comes when everything is counted.",
        yields=f"""{_WITH_SIDES} Parts
            may have fewer rows: branches of which neither the target nor its name is known are left out.""",
        raises=".",
    )
    def iter_edges(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        check_columns(query.get("columns"))
        plan = self._plan("edges", query)
        plan = replace(plan, selection=plan.selection | _decode.ALL_EDGES)
        return map(with_targets, self._in_parts(plan, rows, reuse))

    @_documented(
        "errors",
        memory=".",
        yields=".",
        raises="""; errors are raised only if ``errors="raise"`` is given.""",
    )
    def iter_errors(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
        query.setdefault("errors", "rows")  # the rows of this table are errors
        return self._iterate("errors", rows, reuse, query)

    @_documented("gaps", memory=".", yields=".", raises=".")
    def iter_gaps(
        self, *, rows: int | None = None, reuse: bool = False, **query: Unpack[Query]
    ) -> Iterator[Table]:
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
