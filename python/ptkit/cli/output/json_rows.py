"""Rows of tables as JSON: one object on each line, the first one a header (docs/json.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import ptkit
from ptkit.cli.output.json_values import SCHEMA, decimal, form_of, hexadecimal
from ptkit.cli.output.positions import row_positions
from ptkit.cli.output.rows import placed, print_rows
from ptkit.cli.output.terminal import say
from ptkit.schema import schema_of
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["JsonRows", "json_columns"]

# Members that name an address, by its column.
_NAMES = {
    "ip": ("symbol", "module"),
    "from_ip": ("from_symbol", "from_module"),
    "to_ip": ("to_symbol", "to_module"),
}


def json_columns(table: str) -> list[str]:
    """Columns of a table that its JSON rows are made of."""
    return list(schema_of(table).names("stored", "run"))


class JsonRows:
    """Makes and prints the rows of one table, with errors and gaps between them.

    Parameters
    ----------
    trace : Trace
    table : str
        Name of the table.
    symbols : bool
        Add the names of addresses.
    """

    def __init__(self, trace: Trace, table: str, *, symbols: bool = True) -> None:
        self._trace = trace
        self._table = table
        self._symbols = symbols

    def print_header(self) -> None:
        """Print the first line: what the rows are, and the number of the schema."""
        header = {
            "table": "header",
            "schema": SCHEMA,
            "rows": self._table,
            "source": self._trace.source,
            "format": self._trace.format,
            "version": ptkit.__version__,
        }
        say(json.dumps(header))

    def print(self, part: Table, *, sides: bool = True) -> None:
        """Print a part of the table; `sides`: with errors and gaps at their place."""
        notes = self.side_lines(part) if sides else []
        print_rows(row_positions(part), self.lines(part), notes)

    def lines(self, part: Table, **more: Sequence[Any]) -> list[str]:
        """One line for each row of any table; `more` are members for each row."""
        columns: dict[str, Sequence[Any]] = {"table": [part.name] * len(part)}
        runs = [name for name in schema_of(part.name).names("run") if name in part.available]
        for name in dict.fromkeys((*part.columns, *runs)):
            columns |= self._members(part, name)
        if "tsc" in part.columns:
            known = "time_ns" in part.available
            columns["time_ns"] = [*map(decimal, part.named("time_ns"))] if known else [None] * len(part)
        columns |= more
        names = list(columns)
        return [json.dumps(dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def side_lines(self, part: Table) -> list[tuple[int, str]]:
        """Errors and gaps of a part as lines, with the place of each among its rows, in order."""
        return placed(part, lambda side: self.lines(side, message=side.messages()))

    def _members(self, part: Table, name: str) -> dict[str, Sequence[Any]]:
        """The members that a column becomes."""
        if name == "flags":
            return _flags(part)
        column = part.column(name)
        values = part.named(name)
        if column.enum is None and form_of(column) == "hexadecimal":
            values = [*map(hexadecimal, values)]
        members: dict[str, Sequence[Any]] = {name: values}
        if name in _NAMES and self._symbols and "space" in part.available:
            members |= {member: part[member].tolist() for member in _NAMES[name]}
        return members


def _flags(part: Table) -> dict[str, Sequence[Any]]:
    """The names of the flags that are set; `taken` is a member of its own.

    Flags that say whether another member is known are left out: that member is null instead.
    """
    schema = schema_of(part.name)
    validity_flags = set(schema.validity.values())
    names = [name for name in schema.names("flag") if name not in validity_flags]
    values = part["flags"]
    sets = {
        value: [name for name in names if name != "taken" and value & schema.columns[name].mask]
        for value in np.unique(values).tolist()
    }
    members: dict[str, Sequence[Any]] = {"flags": [sets[value] for value in values.tolist()]}
    if "taken" in names:
        members["taken"] = part["taken"].tolist()
    return members
