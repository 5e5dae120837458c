"""Tables as DataFrames and as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptkit import _core, memory
from ptkit.arguments import names
from ptkit.schema import schema_of
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ptkit.table.table import Table

# Format strings of the Arrow C data interface.
_FORMATS = {
    "uint8": "C",
    "uint16": "S",
    "uint32": "I",
    "uint64": "L",
    "int32": "i",
    "int64": "l",
    "bool": "b",
}


def _names(table: Table, columns: Sequence[str] | None) -> tuple[str, ...]:
    return table.columns if columns is None else tuple(names("columns", columns))


_LESS = "choose columns=[...], or convert parts: for part in trace.iter_{}(): part.{}()"


def _cell_bytes(table: str, name: str) -> int:
    """Bytes of a value; columns without a schema (``time_ns``) have eight."""
    column = schema_of(table).columns.get(name)
    return 8 if column is None else column.dtype.itemsize


def pandas_bytes(table: str, columns: Sequence[str]) -> int:
    """Bytes that a row of these columns of a table takes in a DataFrame, and on the way there."""
    sizes = [_cell_bytes(table, name) for name in columns]
    # Codes of a categorical are two bytes; a column of which values may be unknown has a mask beside it.
    return max(sizes, default=0) + sum(size + 2 for size in sizes)


def _arrow_bytes(table: Table, columns: Sequence[str]) -> int:
    """Bytes for each row: stored columns are shared, others are made; any may need a mask of known values."""
    stored = table._schema.names("stored")
    return sum(1 if name in stored else 1 + _cell_bytes(table.name, name) for name in columns)


def to_pandas(table: Table, columns: Sequence[str] | None) -> pandas.DataFrame:
    """Copy a table into a DataFrame."""
    import pandas

    shown = _names(table, columns)
    size = len(table) * pandas_bytes(table.name, shown)
    memory.ask(f"{table.name}: {len(table):,} rows in pandas", size, _LESS.format(table.name, "to_pandas"))
    frame: pandas.DataFrame = pandas.DataFrame(
        {name: _pandas_column(table, name) for name in shown}, copy=False
    )
    return frame


def _pandas_column(table: Table, name: str) -> Any:
    import pandas

    column = table.column(name)
    if column.role == "derived":
        made = table._derived_values(name)
        if isinstance(made, Labels):
            made = made.compact()
            return pandas.Categorical.from_codes(made.codes, categories=pandas.Index(made.names))
    values = np.asarray(table[name])
    enum = column.enum
    known = table.known(name)
    if enum is not None:
        codes = values.astype(np.int16)
        if known is not None:
            codes[~known] = -1
        return pandas.Categorical.from_codes(codes, categories=pandas.Index([member.name for member in enum]))
    if known is not None:
        return pandas.arrays.IntegerArray(values.copy(), ~known)
    return values.copy()


def _bits(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(mask, bitorder="little")


# Name, format, unit, cells, validity, count of nulls, and for a text column its names: count, offsets, bytes.
_Names: TypeAlias = tuple[int, NDArray[np.int32], NDArray[np.uint8]]
_Field: TypeAlias = tuple[str, str, str, NDArray[Any], NDArray[np.uint8] | None, int, _Names | None]


def _fields(table: Table, columns: Sequence[str] | None) -> list[_Field]:
    shown = _names(table, columns)
    size = len(table) * _arrow_bytes(table, shown)
    memory.ask(f"{table.name}: {len(table):,} rows in Arrow", size, _LESS.format(table.name, "to_arrow"))
    return [_field(table, name) for name in shown]


def _field(table: Table, name: str) -> _Field:
    column = table.column(name)
    dictionary = None
    values: NDArray[Any]
    known: NDArray[np.bool_] | None
    made = table._derived_values(name) if column.dtype == object else None
    if isinstance(made, Labels):
        made = made.compact()
        values, known, dictionary = made.codes, made.known(), _dictionary(made.names)
    else:
        values = np.ascontiguousarray(table[name])
        known = table.known(name)
    validity = None if known is None or bool(known.all()) else _bits(known)
    nulls = 0 if validity is None or known is None else int(len(known) - np.count_nonzero(known))
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


def arrow_capsules(table: Table, columns: Sequence[str] | None) -> tuple[Any, Any]:
    """Schema and array capsules of one struct array; the columns are shared, not copied."""
    return _core.arrow_array(len(table), _fields(table, columns))


def arrow_stream(table: Table, columns: Sequence[str] | None) -> Any:
    """Return a stream capsule of one batch."""
    return _core.arrow_stream(len(table), _fields(table, columns))


class _Stream:
    """The capsule protocol around chosen columns."""

    def __init__(self, table: Table, columns: Sequence[str] | None) -> None:
        self._table = table
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return arrow_stream(self._table, self._columns)


def to_arrow(table: Table, columns: Sequence[str] | None) -> pyarrow.Table:
    """Share a table with pyarrow."""
    import pyarrow

    return pyarrow.table(_Stream(table, columns))
