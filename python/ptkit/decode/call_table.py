"""The table of calls: its frames are summed up without another decode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.call_lengths import CallLengths
from ptkit.decode.call_names import one_function
from ptkit.decode.plan import check_choice
from ptkit.errors import ColumnError, ConfigError
from ptkit.support.schema import schema_of
from ptkit.table import Table
from ptkit.table.table import from_core

if TYPE_CHECKING:
    from typing_extensions import Self

    from ptkit.decode.scope import Range
    from ptkit.table import Columns
    from ptkit.table.base import BaseTable

__all__ = [
    "FRAME_VIEWS",
    "CallTable",
    "check_frames",
    "check_sums",
    "function_columns",
    "sum_columns",
    "tree_columns",
]

#: Frames of a Python program that `Trace.calls` shows; the first value is the default.
FRAME_VIEWS = ("native", "python", "mixed")


@cache
def sum_columns(table: str) -> tuple[str, ...]:
    """Stored columns of sums over frames, in a table of functions or in a call tree."""
    stored = schema_of(table).names("stored")
    return stored[stored.index("count") :]


def _shown_sums(table: str) -> tuple[str, ...]:
    sums = sum_columns(table)
    lengths = sums.index("least")
    return ("module", *sums[:lengths], "flags", *sums[lengths:])


def tree_columns() -> tuple[str, ...]:
    """Columns of `Trace.call_tree` by default."""
    return ("node", "parent", "depth", "function", *_shown_sums("call_tree"))


def function_columns(by: str) -> tuple[str, ...]:
    """Columns of `Trace.functions` by default."""
    first = {"function": ("function",), "entry": ("entry_ip", "function"), "module": ()}[by]
    return (*first, *_shown_sums("functions"))


def check_sums(by: str, tails: str, more: tuple[str, ...] = ()) -> None:
    """Raise ConfigError if functions cannot be summed up so; `more`: what else they are summed up by."""
    check_choice("by", by, ("function", "entry", "module", *more))
    check_choice("tails", tails, ("nested", "replaced"))


def check_frames(frames: str, inlines: bool) -> None:
    """Raise ConfigError if there is no such view of frames, or none with inlined functions."""
    check_choice("frames", frames, FRAME_VIEWS)
    if inlines and frames != "native":
        raise ConfigError(f"inlines: frames={frames!r} leaves out functions in C; leave one of them out")


class CallTable(CallLengths):
    """Frames of `Trace.calls`: a `Table` with sums over its rows.

    Parts of it, by ``calls[mask]``, ``calls.where(...)`` and so on, have sums over the rows that are
    left. One that was pickled has none: sum up first.
    """

    #: Columns that sums are made of.
    SUMMED = _core.CALL_CELLS
    _FUNCTION = "function"
    _LEVEL = "inline_level"  # of tables with inlined calls
    _notes: _core.CallNotes | None = None  # None: it was pickled

    @classmethod
    def stored(cls, columns: Sequence[str], inlines: bool = False) -> list[str]:
        """Columns to read where these are asked for: with the number of the function, if there are sums."""
        has_sums = set(cls.SUMMED) <= set(columns)
        more = [cls._FUNCTION] * has_sums + [cls._LEVEL] * inlines
        return list(dict.fromkeys([*columns, *more]))

    @classmethod
    def of(cls, table: Table, notes: _core.CallNotes) -> CallTable:
        """Make one of a table of frames, and of what the core noted of them."""
        calls = cls(table.data, columns=table.columns, errors=table.errors, gaps=table.gaps)
        calls._notes = notes
        return calls

    def _part(
        self, data: Columns, columns: Sequence[str], errors: BaseTable | None, gaps: BaseTable | None
    ) -> Self:
        part = super()._part(data, columns, errors, gaps)
        part._notes = self._notes
        return part

    def functions(
        self, by: str = "function", *, tails: str = "nested", columns: Sequence[str] | None = None
    ) -> Table:
        """Sums over the frames of each function, as `Trace.functions` has them.

        Parameters
        ----------
        by, tails : str
            As for `Trace.functions`. Other values than the default need all frames that were read: a table
            that something was cut out of, or that was selected by address or time, has them by function.
        columns : sequence of str, optional
            As for `Trace.functions`.

        Returns
        -------
        Table
            As `Trace.functions`, for the rows of this table.

        Raises
        ------
        ConfigError
            If frames are missing, or the table was pickled; `Trace.functions` decodes them.
        ColumnError
            If a column that the sums are made of was not asked for, or there is no such column.

        Examples
        --------
        >>> import ptkit
        >>> calls = ptkit.record(["true"]).calls()
        >>> outer = calls[calls["depth"] < 3].functions()
        >>> int((outer["count"] + outer["begin_unseen"]).sum()) == len(calls[calls["depth"] < 3])
        True
        """
        check_sums(by, tails)
        rows = self._noted("functions").functions(
            self._summed("functions"), len(self), by=by, tails_replaced=tails == "replaced"
        )
        if rows is None:
            raise ConfigError(
                f"functions(by={by!r}, tails={tails!r}): recursion shows in all frames, and this table has "
                "some of them: use trace.functions() with the same selection"
            )
        names = function_columns(by) if columns is None else columns
        return self._sums("functions", rows, names)

    def tree(self, *, columns: Sequence[str] | None = None) -> Table:
        """Sums over the frames of each calling context, as `Trace.call_tree` has them.

        Parameters
        ----------
        columns : sequence of str, optional
            As for `Trace.call_tree`.

        Returns
        -------
        Table
            As `Trace.call_tree`, for the rows of this table.

        Raises
        ------
        ConfigError
            If the caller of a frame is not in the table, or the table was pickled.
        ColumnError
            If a column that the sums are made of was not asked for, or there is no such column.

        Examples
        --------
        >>> import ptkit
        >>> calls = ptkit.record(["true"]).calls()
        >>> tree = calls[calls["depth"] < 4].tree()
        >>> int(tree["depth"].max()) < 4
        True
        """
        rows = self._noted("tree").tree(self._summed("tree"), len(self))
        if rows is None:
            raise ConfigError(
                "tree: frames lack their callers: select by thread, process, stream, time or depth, not by "
                "function"
            )
        return self._sums("call_tree", rows, tree_columns() if columns is None else columns)

    # Parts of comparisons of calls.

    def function_names(self) -> list[str]:
        """Full name of each function, by the number in column ``function``."""
        return list(self.function_rows().named("function_full"))

    def numbers_of(self, name: str, ranges: Sequence[Range]) -> NDArray[np.intp]:
        """Numbers of the function of a name, or of a pattern, that these calls are of: see `one_function`."""
        functions = self.function_rows()
        counts = np.bincount(self.data.arrays[self._FUNCTION], minlength=len(functions))
        return one_function(functions, counts, name, ranges)

    def of_function(self, name: str, ranges: Sequence[Range]) -> Self:
        """The calls of that function."""
        return self[np.isin(self.data.arrays[self._FUNCTION], self.numbers_of(name, ranges))]

    def function_rows(self) -> Table:
        """A row of table ``functions`` for each number in column ``function``, without sums."""
        return from_core("functions", self._noted("compare").names(), context=self.data.context)

    def outermost(self, functions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows of frames of these functions that have no such frame below."""
        chosen = np.isin(self.data.arrays[self._FUNCTION], functions).astype(np.uint8)
        outer = self._noted("compare").outermost(self._summed("compare"), len(self), {"chosen": chosen})
        return np.flatnonzero(outer)

    def parts(
        self, kinds: NDArray[np.uint8], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Sums over calls of some kinds and what is above them, by function.

        Parameters
        ----------
        kinds : numpy.ndarray of uint8, shape (rows,)
            Kind of each call, 1 to `count`; 0: none. No call of a kind is above another one.
        count : int
            How many kinds there are.

        Returns
        -------
        tuple of numpy.ndarray, shape (count, functions)
            Frames, their own instructions, and the row of the first call that has one (-1: none).
        """
        found = self._noted("compare").parts(self._summed("compare"), len(self), {"kind": kinds}, count)
        counts, instructions, first = found
        return counts.reshape(count, -1), instructions.reshape(count, -1), first.reshape(count, -1)

    def _noted(self, table: str) -> _core.CallNotes:
        """Notes of the core about the frames."""
        if self._notes is None:
            raise ConfigError(
                f"{table}: the calls were pickled, and the sums over them were not: pickle "
                f"calls.{'tree' if table == 'tree' else 'functions'}() beside them"
            )
        return self._notes

    def _summed(self, table: str) -> dict[str, NDArray[Any]]:
        """Columns that sums are made of."""
        missing = [name for name in (*self.SUMMED, self._FUNCTION) if name not in self.data.arrays]
        if missing:
            raise ColumnError(
                f"{table}: the calls lack columns {', '.join(missing)}: read them without columns=[...], or "
                f"use trace.{'functions' if table == 'functions' else 'call_tree'}()"
            )
        assert self.data.runs is not None
        more = (self._LEVEL,) if self._LEVEL in self.data.arrays else ()
        arrays = {name: self.data.arrays[name] for name in (*self.SUMMED, self._FUNCTION, *more)}
        return {**arrays, "space": self.data.runs.spread("space")}

    def _sums(self, table: str, rows: Any, columns: Sequence[str]) -> Table:
        sums = from_core(table, rows, context=self.data.context, errors=self.errors, gaps=self.gaps)
        return sums[list(columns)]
