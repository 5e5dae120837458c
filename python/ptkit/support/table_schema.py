"""What the schema of a table is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

import numpy as np

from ptkit import _core

__all__ = ["ENUMS", "Column", "TableSchema"]

#: Enumerations by the name that a column's unit has.
ENUMS: Mapping[str, type[IntEnum]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            _core.BranchKind,
            _core.CallEnd,
            _core.CallKind,
            _core.ErrorCode,
            _core.EventKind,
            _core.GapCause,
            _core.InsnClass,
            _core.PacketKind,
            _core.StackAnomaly,
            _core.TimeSource,
        )
    }
)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        What ``table[name]`` takes.
    dtype : numpy.dtype
        Of the values; bool for flags.
    unit : str
        ``"address"``, ``"bytes"``, ``"TSC ticks"``, the name of an enumeration, or empty.
    doc : str
        What it means; docs/tables.md has all columns.
    role : str
        ``"stored"``; ``"on demand"``: stored where it is asked for by name; ``"run"``: kept as runs, spread
        over rows on access; ``"flag"``: a bit of ``flags``; ``"run flag"``: a bit of a run; ``"derived"``:
        made of other columns (`ptkit.table.derived`).
    mask : int
        The bits, for flags.
    """

    name: str
    dtype: np.dtype[np.generic]
    unit: str
    doc: str
    role: str = "stored"
    mask: int = 0

    @property
    def enum(self) -> type[IntEnum] | None:
        """The enumeration of the values, if there is one."""
        return ENUMS.get(self.unit)


@dataclass(frozen=True)
class TableSchema:
    """One table: its columns by name, and which flag says that a value is known.

    Attributes
    ----------
    name : str
        ``"packets"``, ``"branches"``, ...
    columns : mapping of str to Column
        Every column but derived ones, which a trace may or may not have.
    validity : mapping of str to str
        By column: the bool column that is true where the value is known.
    """

    name: str
    columns: Mapping[str, Column]
    validity: Mapping[str, str]

    def names(self, *roles: str) -> tuple[str, ...]:
        """Columns that have one of these roles, in order."""
        return tuple(name for name, column in self.columns.items() if column.role in roles)
