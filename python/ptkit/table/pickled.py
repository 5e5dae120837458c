"""Tables as they are pickled: with the columns that their trace made, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.table.cells import is_uniform, read_only, uniform
from ptkit.table.derived import KNOWN, full_name, symbol_column
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    from ptkit.table.base import BaseTable

__all__ = ["kept_columns", "packed", "unpacked"]


def kept_columns(table: BaseTable) -> tuple[dict[str, NDArray[Any]], dict[str, list[str] | None]]:
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
            arrays[name + KNOWN] = uniform(True, np.bool_, len(table)) if known.all() else known
    return arrays, kept


def _derived_names(table: BaseTable) -> list[str]:
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
