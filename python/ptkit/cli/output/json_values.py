"""JSON that programs can rely on: docs/json.md has the rules, ``ptkit/schemas`` the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ptkit.support.schema import Column
from ptkit.table.lengths import AWAY, LENGTHS

__all__ = ["SCHEMA", "decimal", "form_of", "hexadecimal", "print_document", "with_hexadecimals"]

#: Rises when the meaning or the type of a member changes, not when members are added.
SCHEMA = 1

# Columns of 64 bits that count rows: they stay below 2**53.
_COUNTS = frozenset(
    {
        "begin_unseen",
        "branch",
        "branches",
        "continues",
        "count",
        "crossing",
        "end_branch",
        "end_instruction",
        "frame",
        "id",
        "instruction",
        "instructions",
        "max_instructions",
        "order",
        "p50_instructions",
        "p99_instructions",
        "parent",
        "preemptions",
        "self_instructions",
        "time",
        "waits",
    }
)

# Lengths of time in TSC ticks, which stay below 2**53, too.
_LENGTHS = frozenset(
    {*(name for names in LENGTHS.values() for name in names), *(f"{name}_error" for name in AWAY)}
)


def hexadecimal(value: int | None) -> str | None:
    """A quantity of 64 bits as a string, since JSON readers round numbers above 2**53."""
    return None if value is None else hex(value)


def decimal(value: int | None) -> str | None:
    """Nanoseconds as a string, for the same reason."""
    return None if value is None else str(value)


def form_of(column: Column) -> str:
    """How values of a column are written.

    Returns
    -------
    str
        ``"hexadecimal"``, ``"decimal"`` (both strings), or ``"plain"``.
    """
    if column.unit == "ns":
        return "decimal"
    wide = column.dtype.kind in "iu" and column.dtype.itemsize == 8
    is_small = column.unit == "bytes" or column.name in _COUNTS or column.name in _LENGTHS
    return "hexadecimal" if wide and not is_small else "plain"


def with_hexadecimals(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """A copy of a mapping in which these members are hexadecimal strings."""
    return {name: hexadecimal(value) if name in names else value for name, value in row.items()}


def print_document(kind: str, members: Mapping[str, Any], *, errors: bool = False) -> None:
    """Print one JSON document.

    Parameters
    ----------
    kind : str
        Which one: its definition in the schema file.
    members : mapping
        Its own members.
    errors : bool
        On standard error instead of standard output.
    """
    document = {"schema": SCHEMA, "document": kind, **members}
    print(json.dumps(document, indent=2, default=_plain), file=sys.stderr if errors else sys.stdout)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) else str(value)
