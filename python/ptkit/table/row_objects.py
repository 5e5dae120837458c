"""Rows as objects, for constructors that take nothing else: `pandas.DataFrame(table)`."""

from __future__ import annotations

import sys
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.table.convert import shown_names

if TYPE_CHECKING:
    from ptkit.table.base import BaseTable

__all__ = ["row_objects"]

_VALUE_BYTES = 100  # of a Python object, about


def row_objects(table: BaseTable, dtype: Any, copy: bool | None) -> NDArray[np.object_]:
    """Return an array of one object per row; see `Table.__array__`."""
    if dtype is not None and np.dtype(dtype) != np.dtype(object):
        raise ConfigError(
            f"no array of {np.dtype(dtype)}: the columns of {table.name} have several dtypes; take one "
            f"of them: table[{table.columns[0]!r}]"
        )
    if copy is False:
        raise ValueError("copy=False: rows of a table are made; take a column, which is shared")
    shown = shown_names(table, None)
    table._require_memory(f"objects of {len(table):,} rows", len(table) * len(shown) * _VALUE_BYTES)
    # Integers beside None become floats in pandas.
    unknown = sys.modules["pandas"].NA if "pandas" in sys.modules else None
    row = make_dataclass("Row", shown, frozen=True)
    columns = ([unknown if value is None else value for value in table.named(name)] for name in shown)
    rows = np.empty(len(table), object)
    rows[:] = [row(*values) for values in zip(*columns, strict=True)]
    return rows
