"""The columns of a table in memory, and what is needed of its trace to make others of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.support.schema import TableSchema
from ptkit.table.cells import join, where_set
from ptkit.table.context import TableContext
from ptkit.table.lazy_columns import Arrays
from ptkit.table.runs import Runs

__all__ = ["Columns"]


class Columns:
    """The columns that a table has read, whether they are shown or not.

    Parameters
    ----------
    schema : TableSchema
        Names and types of the columns that there may be.
    rows : int
        How many rows all columns have.
    arrays : mapping of str to numpy.ndarray or RunColumn of the core
        The stored columns.
    runs : Runs or None
        Stream, processor, thread and address space of rows; None: the table has none.
    context : TableContext, optional
        The part of the trace that derived columns need.
    """

    __slots__ = ("arrays", "context", "rows", "runs", "schema")

    def __init__(
        self,
        schema: TableSchema,
        rows: int,
        arrays: Mapping[str, NDArray[Any] | _core.RunColumn],
        runs: Runs | None = None,
        context: TableContext | None = None,
    ) -> None:
        self.schema = schema
        self.rows = rows
        # isinstance() of a Mapping takes as long as the rest.
        self.arrays = arrays if type(arrays) is Arrays else Arrays(arrays)
        self.runs = runs
        self.context = context or TableContext()

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.schema.name

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they hold."""
        runs = 0 if self.runs is None else sum(array.nbytes for array in self.runs.arrays.values())
        return runs + self.arrays.nbytes

    def has(self, names: Iterable[str]) -> bool:
        """Whether all of these stored columns and runs were read."""
        runs = () if self.runs is None else self.schema.names("run")
        return all(name in self.arrays or name in runs for name in names)

    def known(self, name: str) -> NDArray[np.bool_] | None:
        """Which values of a stored column or a run mean something; None: all, or ``flags`` was not read."""
        flag = self.schema.validity.get(name)
        if flag is None:
            return None
        column = self.schema.columns[flag]
        if column.role == "flag":  # the reader fills `flags` also where only a column needs it
            return where_set(self.arrays["flags"], column.mask) if "flags" in self.arrays else None
        return None if self.runs is None else where_set(self.runs.spread("flags"), column.mask)

    def spaces(self) -> NDArray[np.uint32]:
        """Address space of each row."""
        return self.arrays["space"] if self.runs is None else self.runs.spread("space")

    def times(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]] | None:
        """From when on rows have their code: TSC ticks, their error, and which are known; None: no times."""
        for name in ("code_tsc", "tsc_from"):
            if name in self.arrays:
                return self.arrays[name], np.zeros(self.rows, np.uint32), np.ones(self.rows, np.bool_)
        if "tsc" not in self.arrays:
            return None
        known = self.known("tsc")
        return (
            self.arrays["tsc"],
            self.arrays["tsc_error"],
            np.ones(self.rows, np.bool_) if known is None else known,
        )

    def take(self, index: slice | NDArray[Any]) -> Columns:
        """The rows that a slice, a mask or row numbers choose."""
        rows = (
            len(range(*index.indices(self.rows)))
            if isinstance(index, slice)
            else int(np.count_nonzero(index))
            if index.dtype == np.bool_
            else len(index)
        )
        runs = None if self.runs is None else self.runs.take(index)
        return Columns(self.schema, rows, self.arrays.take(index, rows), runs, self.context)

    def copied(self) -> Columns:
        """Columns that share no memory with these."""
        runs = None if self.runs is None else self.runs.copied()
        return Columns(self.schema, self.rows, self.arrays.copied(), runs, self.context)

    @staticmethod
    def concatenate(parts: Sequence[Columns]) -> Columns:
        """The rows of several parts of one table."""
        first = parts[0]
        arrays = {name: join([part.arrays[name] for part in parts]) for name in first.arrays}
        runs = None
        if first.runs is not None:
            runs = Runs.concatenate([part.runs for part in parts if part.runs is not None])
        return Columns(first.schema, sum(part.rows for part in parts), arrays, runs, first.context)
