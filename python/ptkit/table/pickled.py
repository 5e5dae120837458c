"""Tables as they are pickled: with the columns that their trace made, as arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.table.cells import is_uniform, read_only, uniform
from ptkit.table.derived import Derived, full_name, symbol_column
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    from ptkit.table.table import Table

__all__ = ["from_arrays", "kept_columns", "packed", "unpacked"]

_KNOWN = " known"  # behind the name of a column: its mask


def from_arrays(one: Derived) -> Derived:
    """Return the same derived column of tables that have it as an array (`TableContext.kept`)."""
    name = one.column.name

    def values(table: Table) -> NDArray[Any] | Labels:
        names = table._context.kept[name]
        cells = table._arrays[name]
        return cells if names is None else Labels(cells, names)

    def known(table: Table) -> NDArray[np.bool_] | None:
        if name + _KNOWN in table._arrays:
            return table._arrays[name + _KNOWN]
        return None

    return replace(one, values=values, known=known, offered=lambda context: True)


def kept_columns(table: Table) -> tuple[dict[str, NDArray[Any]], dict[str, list[str] | None]]:
    """Return the derived columns of a table as arrays, and the names that codes stand for."""
    arrays: dict[str, NDArray[Any]] = {}
    kept: dict[str, list[str] | None] = {}
    for name in _derived_names(table):
        values, known = table._derived_values(name), table.known(name)
        if isinstance(values, Labels):
            values = values.compact()
            arrays[name], kept[name] = values.codes, list(values.names)
        else:
            arrays[name], kept[name] = values, None
        if known is not None:
            arrays[name + _KNOWN] = uniform(True, np.bool_, len(table)) if known.all() else known
    return arrays, kept


def _derived_names(table: Table) -> list[str]:
    """Derived columns that can be asked for, and the names of functions that are shown beside addresses."""
    shown = [symbol_column(name) for name in table.columns if table.column(name).unit == "address"]
    of_symbols = [name for symbol in shown for name in (symbol, full_name(symbol), f"{symbol}_offset")]
    named = [name for name in of_symbols if table._can_make(name)]
    derived = [name for name in table.available if table._derived(name) is not None]
    return list(dict.fromkeys([*derived, *named]))


def packed(values: NDArray[Any]) -> Any:
    """Return what is pickled of a column: one value, if all rows have the same one."""
    plain = np.asarray(values)
    return (plain[0], plain.dtype, len(plain)) if is_uniform(values) else plain


def unpacked(stored: Any) -> NDArray[Any]:
    """Return the column that `packed` was given."""
    return uniform(*stored) if isinstance(stored, tuple) else read_only(stored)
