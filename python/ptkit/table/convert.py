"""Tables as Arrow tables: columns are shared, and those without memory of their own get some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.support import memory
from ptkit.support.arguments import names
from ptkit.support.schema import schema_of
from ptkit.table.cells import contiguous
from ptkit.table.derived import symbol_column
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    import pyarrow

    from ptkit.table.base import BaseTable

# Format strings of the Arrow C data interface.
_FORMATS = {
    "int8": "c",
    "uint8": "C",
    "uint16": "S",
    "uint32": "I",
    "uint64": "L",
    "int32": "i",
    "int64": "l",
    "float64": "g",
    "bool": "b",
}


def shown_names(table: BaseTable, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Columns to convert: those that are asked for, or those of the table.

    A table that no columns were chosen of has the functions of its addresses, too, as they are shown.
    """
    if columns is not None:
        return tuple(names("columns", columns))
    if not set(table.data.schema.names("stored")) <= set(table.columns):
        return table.columns
    found: dict[str, None] = {}
    for name in table.columns:
        found[name] = None
        if table.column(name).unit == "address" and (symbol := symbol_column(name)) in table:
            found[symbol] = None
    return tuple(found)


TOO_MANY_ROWS_HINT = "choose columns=[...], or convert parts: for part in trace.iter_{}(): part.{}()"


def cell_bytes(table: str, name: str) -> int:
    """Bytes of a value; columns without a schema (``time_ns``) have eight."""
    column = schema_of(table).columns.get(name)
    return 8 if column is None else column.dtype.itemsize


def _arrow_bytes(table: BaseTable, columns: Sequence[str]) -> int:
    """Bytes for each row: stored columns are shared, others are made; any may need a mask of known values."""
    stored = table.data.schema.names("stored")
    return sum(1 if name in stored else 1 + cell_bytes(table.name, name) for name in columns)


def _bits(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(mask, bitorder="little")


# Name, format, unit, cells, validity, count of nulls, and for a text column its names: count, offsets, bytes.
_Names: TypeAlias = tuple[int, NDArray[np.int32], NDArray[np.uint8]]
_Field: TypeAlias = tuple[str, str, str, NDArray[Any], NDArray[np.uint8] | None, int, _Names | None]


def _fields(table: BaseTable, columns: Sequence[str] | None) -> list[_Field]:
    shown = shown_names(table, columns)
    size = len(table) * _arrow_bytes(table, shown)
    memory.require_memory(
        f"{table.name}: {len(table):,} rows in Arrow", size, TOO_MANY_ROWS_HINT.format(table.name, "to_arrow")
    )
    bits: dict[str | None, tuple[NDArray[np.uint8] | None, int]] = {}  # by flag: columns may share one
    return [_field(table, name, bits) for name in shown]


def _validity(known: NDArray[np.bool_] | None) -> tuple[NDArray[np.uint8] | None, int]:
    """Bits of known values, and the number of unknown ones; None: all are known."""
    nulls = 0 if known is None else len(known) - int(np.count_nonzero(known))
    return (None, 0) if known is None or nulls == 0 else (_bits(contiguous(known)), nulls)


def _field(
    table: BaseTable, name: str, bits: dict[str | None, tuple[NDArray[np.uint8] | None, int]]
) -> _Field:
    column = table.column(name)
    dictionary = None
    values: NDArray[Any]
    made = table._derived_values(name) if column.dtype == object else None
    if isinstance(made, Labels):
        made = made.compact()
        values, dictionary = made.codes, _dictionary(made.names)
        validity, nulls = _validity(made.known())
    else:
        values = contiguous(np.asarray(table[name]))
        if column.enum is not None:  # members are numbered from 0 on: a value is its own code
            values = values.view(np.int8)
            dictionary = _dictionary([column.enum(value).name for value in range(len(column.enum))])
        flag = None if column.role == "derived" else table.data.schema.validity.get(name)
        if flag is None or flag not in bits:
            bits[flag] = _validity(table.known(name))
        validity, nulls = bits[flag]
    data: NDArray[Any] = _bits(values.astype(np.bool_, copy=False)) if column.dtype == np.bool_ else values
    return (
        name,
        _FORMATS[data.dtype.name if dictionary else column.dtype.name],
        column.unit,
        data,
        validity,
        nulls,
        dictionary,
    )


def _dictionary(texts: Sequence[str]) -> _Names:
    """Texts as Arrow has them: concatenated UTF-8, where each text begins, and where the last one ends."""
    encoded = [text.encode(errors="replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return len(encoded), ends, np.frombuffer(b"".join(encoded) or b"\0", np.uint8)


def arrow_capsules(table: BaseTable, columns: Sequence[str] | None) -> tuple[Any, Any]:
    """Schema and array capsules of one struct array; the columns are shared, not copied."""
    return _core.arrow_array(len(table), _fields(table, columns))


def arrow_stream(table: BaseTable, columns: Sequence[str] | None) -> Any:
    """Return a stream capsule of one batch."""
    return _core.arrow_stream(len(table), _fields(table, columns))


class _Stream:
    """The capsule protocol around chosen columns."""

    def __init__(self, table: BaseTable, columns: Sequence[str] | None) -> None:
        self._table = table
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return arrow_stream(self._table, self._columns)


def to_arrow(table: BaseTable, columns: Sequence[str] | None) -> pyarrow.Table:
    """Share a table with pyarrow."""
    import pyarrow

    return pyarrow.table(_Stream(table, columns))
