"""JSON that programs can rely on: docs/json.md has the rules, ``ptkit/schemas`` the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ptkit.support.schema import Column

__all__ = ["SCHEMA", "decimal", "form_of", "hexadecimal", "print_document", "with_hexadecimals"]

#: Rises when the meaning or the type of a member changes, not when members are added.
SCHEMA = 1

# Unsigned columns that number rows: they stay below 2**53, as counts and lengths do, which are signed.
_NUMBERS = frozenset({"continues", "frame", "id", "order", "parent", "time"})


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
    is_small = column.unit == "bytes" or column.name in _NUMBERS
    return "hexadecimal" if column.dtype == "uint64" and not is_small else "plain"


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
