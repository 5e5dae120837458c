"""Columns that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.table.cells import copied, held_bytes, is_uniform, take

__all__ = ["Arrays", "LazyColumn"]


def _same(values: NDArray[Any]) -> NDArray[Any]:
    return values


class LazyColumn:
    """A column of uint64 that the core keeps as runs of equal values, until its array is asked for.

    Parameters
    ----------
    source : RunColumn of the core or LazyColumn
        The values.
    index : slice, optional
        Which rows of `source`: all by default. Parts share the array of the whole column.
    """

    __slots__ = ("_array", "_index", "_lock", "_source")

    def __init__(self, source: _core.RunColumn | LazyColumn, index: slice | None = None) -> None:
        self._source: _core.RunColumn | LazyColumn | None = source
        self._index = index or slice(None)
        self._array: NDArray[Any] | None = None
        self._lock = Lock()

    def array(self) -> NDArray[Any]:
        """The values of all rows; read-only. The runs are dropped when it is made."""
        with self._lock:
            if self._array is None:
                assert self._source is not None
                self._array = self._source.array()[self._index]
                self._source = None
            return self._array

    @property
    def is_made(self) -> bool:
        """Whether its array exists."""
        source = self._source
        return source is None or (isinstance(source, LazyColumn) and source.is_made)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        array, source = self._array, self._source
        if array is not None:
            return array.nbytes
        return 0 if source is None else source.nbytes

    def take(self, index: slice | NDArray[Any], rows: int) -> NDArray[Any] | LazyColumn:
        """Return the rows that an index selects: so many."""
        if isinstance(index, slice) and not self.is_made:
            return LazyColumn(self, index)
        return take(self.array(), index, rows)

    def __reduce__(self) -> Any:
        return _same, (self.array(),)


class Arrays(Mapping[str, NDArray[Any]]):
    """The stored columns of a table, by name. An access makes the array of a late one.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray, LazyColumn or RunColumn of the core
        The columns.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, NDArray[Any] | LazyColumn | _core.RunColumn]) -> None:
        self._columns: dict[str, NDArray[Any] | LazyColumn] = {
            name: LazyColumn(column) if isinstance(column, _core.RunColumn) else column
            for name, column in columns.items()
        }

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        return column.array() if isinstance(column, LazyColumn) else column

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def is_made(self, name: str) -> bool:
        """Whether an access takes no memory."""
        column = self._columns[name]
        return not isinstance(column, LazyColumn) or column.is_made

    def take(self, index: slice | NDArray[Any], rows: int) -> Arrays:
        """Return the rows that an index selects: so many."""
        return Arrays(
            {
                name: column.take(index, rows)
                if isinstance(column, LazyColumn)
                else take(column, index, rows)
                for name, column in self._columns.items()
            }
        )

    def copied(self) -> Arrays:
        """Return columns that share no memory with these."""
        return Arrays({name: copied(self[name]) for name in self})

    def copied_row_bytes(self) -> int:
        """Bytes of a row where rows are copied."""
        return sum(
            np.dtype(np.uint64).itemsize if isinstance(column, LazyColumn) else column.dtype.itemsize
            for column in self._columns.values()
            if isinstance(column, LazyColumn) or not is_uniform(column)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the columns take."""
        return sum(
            column.nbytes if isinstance(column, LazyColumn) else held_bytes(column)
            for column in self._columns.values()
        )
