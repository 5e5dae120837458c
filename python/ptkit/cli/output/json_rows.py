"""Rows of tables as JSON: one object on each line, the first one a header (docs/json.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import numpy as np

import ptkit
from ptkit.cli.output.json_values import SCHEMA, form_of
from ptkit.cli.output.line_writer import LineWriter, labels_of
from ptkit.cli.output.positions import row_positions
from ptkit.cli.output.rows import rows_before, with_positions
from ptkit.cli.output.terminal import print_text
from ptkit.support.schema import schema_of
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["NAMED", "JsonRows", "json_columns"]

_NULL = "null"
_BOOLEANS = [b"false", b"true"]
#: Addresses with members for their names.
NAMED = frozenset({"ip", "from_ip", "to_ip", "entry_ip", "expected_ip", "caller_ip", "head_ip", "outer_ip"})
# First and last column of a group of `LineWriter`: branches take 10 % less time by it. Packets have no gain.
_GROUPS = {"branches": ("from_ip", "flags"), "instructions": ("ip", "flags")}
_QUOTED = {"hexadecimal": ("hex", '"0x'), "decimal": ("decimal", '"')}

More = Callable[[LineWriter], None]


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
        self._writer = LineWriter(trace)

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
        print_text(json.dumps(header))

    def print(self, part: Table, *, sides: bool = True) -> None:
        """Print a part of the table; `sides`: with errors and gaps between them."""
        notes = self.side_lines(part) if sides else []
        before = rows_before(row_positions(part), notes) if notes else []
        self.print_lines(part, before, _message_of(part) if part.name == "events" else None)

    def print_lines(self, part: Table, notes: list[tuple[int, bytes]], more: More | None = None) -> None:
        """Print a line for each row, and notes before rows; `more` adds members."""
        self._begin(part, more)
        self._writer.print(notes, strip=False)

    def lines(self, part: Table) -> list[bytes]:
        """A line for each row of errors, gaps or events, with its message."""
        self._begin(part, _message_of(part))
        return self._writer.lines(strip=False)

    def side_lines(self, part: Table) -> list[tuple[int, bytes]]:
        """Errors and gaps of a part as lines, with the position of each among its rows, in order."""
        return with_positions(part, self.lines)

    def _begin(self, part: Table, more: More | None) -> None:
        writer = self._writer
        writer.begin(part)
        writer.literal(f'{{"table": "{part.name}"')
        available = frozenset(part.available)
        runs = [name for name in schema_of(part.name).names("run") if name in available]
        named = NAMED if self._symbols and "space" in available else frozenset()
        first, last = _GROUPS.get(part.name, ("", ""))
        for name in dict.fromkeys((*part.columns, *runs)):
            if name == first:
                writer.begin_group()
            if name in named:
                writer.literal(", ")
                writer.address("json", name)
            else:
                self._add_member(part, name)
            if name == last:
                writer.end_group()
        if "tsc" in part.columns:
            writer.literal(', "time_ns": ')
            if "time_ns" in available:
                writer.number("time_ns", "decimal", unknown=_NULL, before='"', after='"')
            else:
                writer.literal(_NULL)
        if more is not None:
            more(writer)
        writer.literal("}")

    def _add_member(self, part: Table, name: str) -> None:
        """Add the member that a column becomes; flags are two."""
        writer = self._writer
        if name == "flags":
            _add_flags(writer, part)
            return
        column = schema_of(part.name).columns[name]
        writer.literal(f', "{name}": ')
        if column.enum is not None:
            writer.names_of(name, _enum_labels(part.name, name), unknown=_NULL)
            return
        form, before = _QUOTED.get(form_of(column), ("decimal", ""))
        writer.number(name, form, unknown=_NULL, before=before, after=before[:1])


def _message_of(part: Table) -> More:
    """Make what adds the message of each row."""

    def message(writer: LineWriter) -> None:
        writer.literal(', "message": ')
        writer.texts([json.dumps(text).encode() for text in part.messages()])

    return message


@cache
def _enum_labels(table: str, column: str) -> list[bytes]:
    """JSON for each value of an enumeration; a value without a name is a number."""
    return [label if label.isdigit() else b'"%s"' % label for label in labels_of(table, column)]


@cache
def _set_flags(table: str, value: int) -> bytes:
    """JSON of the names of the flags that are set; `taken` is a member of its own.

    Flags that say whether another member is known are left out: that member is null instead.
    """
    schema = schema_of(table)
    left_out = {*schema.validity.values(), "taken"}
    names = [name for name in schema.names("flag") if name not in left_out]
    return json.dumps([name for name in names if value & schema.columns[name].mask]).encode()


def _add_flags(writer: LineWriter, part: Table) -> None:
    values = np.asarray(part["flags"])
    found = range(256) if values.dtype.itemsize == 1 else np.unique(values).tolist()
    codes = values if values.dtype.itemsize == 1 else np.searchsorted(found, values).astype(np.uint16)
    writer.literal(', "flags": ')
    writer.label(codes, [_set_flags(part.name, value) for value in found] or [b""])
    if "taken" in schema_of(part.name).names("flag"):
        writer.literal(', "taken": ')
        writer.names_of("taken", _BOOLEANS)
