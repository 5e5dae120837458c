"""Tables as DataFrames of pandas and Polars: views of the table's memory, as far as there are any."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support import memory
from ptkit.support.arguments import flag
from ptkit.support.schema import schema_of
from ptkit.table.cells import contiguous, read_only
from ptkit.table.convert import TOO_MANY_ROWS_HINT, cell_bytes, shown_names, to_arrow
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    import pandas
    import polars

    from ptkit.table.base import BaseTable

__all__ = ["frame_bytes", "to_pandas", "to_polars"]

_BACKENDS = ("numpy_nullable", "pyarrow")
_MOST_CODES = 127  # of int8, pandas' codes of so many categories


def frame_bytes(table: str, columns: Sequence[str], *, copy: bool = False) -> int:
    """Bytes that a row of these columns of a table takes in a DataFrame, besides the table itself."""
    schema = schema_of(table)
    shared = () if copy else schema.names("stored", "on demand")
    # A column of which values may be unknown has a mask, or codes of its own.
    nullable = sum(name in schema.validity for name in columns)
    return nullable + sum(cell_bytes(table, name) for name in columns if name not in shared)


class _Masks:
    """Masks of unknown values. Columns with the same flag share one, as long as nothing writes it."""

    def __init__(self, table: BaseTable, copy: bool) -> None:
        self._table = table
        self._copy = copy
        self._nothing: NDArray[np.bool_] | None = None
        self._found: dict[str, NDArray[np.bool_] | None] = {}

    def unknown(self, name: str) -> NDArray[np.bool_] | None:
        """Return where values are unknown; None: nowhere."""
        column = self._table.column(name)
        key = name if column.role == "derived" else self._table.data.schema.validity.get(name, "")
        if key not in self._found:
            known = self._table.known(name)
            everywhere = known is None or bool(known.all())
            self._found[key] = None if everywhere else read_only(~contiguous(np.asarray(known)))
        return self._found[key]

    def mask(self, name: str) -> NDArray[np.bool_]:
        """Return a mask, whether or not anything is unknown."""
        found = self.unknown(name)
        if found is not None:
            return found.copy() if self._copy else found
        if self._copy:
            return np.zeros(len(self._table), np.bool_)
        if self._nothing is None:  # fresh zeros that nothing writes take no memory
            self._nothing = read_only(np.zeros(len(self._table), np.bool_))
        return self._nothing


def to_pandas(
    table: BaseTable,
    columns: Sequence[str] | None,
    *,
    copy: bool = False,
    dtype_backend: str = "numpy_nullable",
) -> pandas.DataFrame:
    """View a table as a DataFrame, or copy it into one."""
    import pandas

    shown = shown_names(table, columns)
    if dtype_backend not in _BACKENDS:
        raise ConfigError(f"dtype_backend={dtype_backend!r} is not one of {', '.join(map(repr, _BACKENDS))}")
    copy = flag("copy", copy)
    size = len(table) * frame_bytes(table.name, shown, copy=copy)
    memory.require_memory(
        f"{table.name}: {len(table):,} rows in pandas",
        size,
        TOO_MANY_ROWS_HINT.format(table.name, "to_pandas"),
    )
    frame: pandas.DataFrame
    if dtype_backend == "pyarrow":
        arrow = to_arrow(table, shown)
        frame = arrow.to_pandas(types_mapper=pandas.ArrowDtype)
        return frame.copy() if copy else frame
    masks = _Masks(table, copy)
    values = {name: _pandas_column(table, name, masks, copy) for name in shown}
    frame = pandas.DataFrame(values, index=pandas.RangeIndex(len(table)), copy=False)
    return frame


@cache
def _categories(enum: type[IntEnum]) -> Any:
    """Names of an enumeration as categories. Members are numbered from 0 on: a value is its own code."""
    import pandas

    names = [enum(value).name for value in range(len(enum))]
    assert len(names) <= _MOST_CODES
    return pandas.CategoricalDtype(pandas.Index(names))


def _pandas_column(table: BaseTable, name: str, masks: _Masks, copy: bool) -> Any:
    import pandas

    column = table.column(name)
    nullable = column.role == "derived" or name in table.data.schema.validity
    if column.role == "derived":
        made = table._derived_values(name)
        if isinstance(made, Labels):
            made = made.compact()
            return pandas.Categorical.from_codes(made.codes, categories=pandas.Index(made.names))
    shared = np.asarray(table[name])
    values = contiguous(shared)
    if column.enum is not None:
        return _categorical(
            values.view(np.int8), column.enum, masks.unknown(name) if nullable else None, copy
        )
    if copy and not values.flags.writeable:
        values = values.copy()
    if not nullable:
        return values
    kind = pandas.arrays.FloatingArray if values.dtype.kind == "f" else pandas.arrays.IntegerArray
    return kind(values, masks.mask(name))


def _categorical(
    codes: NDArray[np.int8], enum: type[IntEnum], unknown: NDArray[np.bool_] | None, copy: bool
) -> Any:
    import pandas

    if copy or unknown is not None:
        codes = codes.copy()
    if unknown is not None:
        codes[unknown] = -1
        if not copy:
            read_only(codes)
    return pandas.Categorical.from_codes(codes, dtype=_categories(enum))


def to_polars(table: BaseTable, columns: Sequence[str] | None) -> polars.DataFrame:
    """View a table as a Polars DataFrame."""
    import polars

    shown = shown_names(table, columns)
    enums = {name: enum for name in shown if (enum := table.column(name).enum) is not None}
    found: Any = polars.from_arrow(to_arrow(table, shown), rechunk=False)
    types = {
        name: polars.Enum([enum(code).name for code in range(len(enum))]) for name, enum in enums.items()
    }
    frame: polars.DataFrame = found.with_columns(polars.col(name).cast(one) for name, one in types.items())
    return frame
