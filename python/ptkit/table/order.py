"""The order of the rows of a table by its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support.arguments import flag
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    from ptkit.table.base import BaseTable

__all__ = ["order_of"]


def order_of(table: BaseTable, columns: Sequence[str], descending: bool | Sequence[bool]) -> NDArray[np.intp]:
    """Row numbers in the order of columns, the first one first; see `Table.sort`."""
    if not columns:
        raise ConfigError(f"sort: no column is given; there are {', '.join(table.available)}")
    each = [descending] * len(columns) if isinstance(descending, (bool, np.bool_)) else list(descending)
    if len(each) != len(columns):
        raise ConfigError(f"descending: {len(each)} values do not fit {len(columns)} columns")
    keys: list[NDArray[Any]] = []
    for name, falls in zip(columns, each, strict=True):
        keys += _keys(table, name, flag("descending", falls))
    table._require_memory(f"the order of {len(table):,} rows", len(table) * 8 * (len(keys) + 1))
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _keys(table: BaseTable, name: str, descending: bool) -> list[NDArray[Any]]:
    """Keys that order rows: first whether the value is unknown, if any is, then the value."""
    column, known = table.column(name), table.known(name)
    values: Any = table._derived_values(name) if column.role == "derived" else np.asarray(table[name])
    if isinstance(values, Labels):
        values = _ranks(values.compact())
    if descending:
        # Of integers and bool: the other way round, without overflow.
        values = -values if values.dtype.kind == "f" else ~values
    if known is None or known.all():
        return [values]
    return [~known, np.where(known, values, 0)]


def _ranks(labels: Labels) -> NDArray[np.int64]:
    """Ranks of the names of rows among all names, by their letters."""
    ranks = np.empty(len(labels.names) + 1, np.int64)
    ranks[sorted(range(len(labels.names)), key=labels.names.__getitem__)] = np.arange(len(labels.names))
    ranks[-1] = len(labels.names)
    return ranks[labels.codes]
