"""Rows of tables for files: which tables and columns, and parts of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.export.options import ALL, TABLES
from ptkit.support.schema import schema_of
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.table.derived import derived_of, full_name, symbol_column

__all__ = [
    "Losses",
    "chosen_columns",
    "chosen_tables",
    "empty_table",
    "table_parts",
]

_WHOLE = ("edges", "functions", "call_tree", "mappings")  # the others are read in parts
_KINDS = ("branches", "events", "edges")  # tables of rows that have a kind to select
_NAMES = ("full", "short")


class Losses:
    """Counts what could not be decoded while parts are read."""

    def __init__(self) -> None:
        self.errors = self.gaps = 0

    def of(self, part: Table) -> Table:
        """Count the errors and gaps of a part; returns the part."""
        if part.name not in ("errors", "gaps"):
            self.errors += 0 if part.errors is None else len(part.errors)
            self.gaps += 0 if part.gaps is None else len(part.gaps)
        return part

    def notes(self) -> list[str]:
        """A sentence, if rows may be missing."""
        if not self.errors and not self.gaps:
            return []
        return [
            f"{counted(self.errors, 'error')} and {counted(self.gaps, 'gap')}: rows may be missing; the "
            "tables errors and gaps have them"
        ]


def chosen_tables(table: str, *, several: bool = False) -> tuple[str, ...]:
    """Tables of an export; `several`: the format can hold all.

    Raises
    ------
    ConfigError
        If there is no such table.
    """
    check_choice("table", table, (*TABLES, ALL) if several else TABLES)
    return TABLES if table == ALL else (table,)


def chosen_columns(
    trace: Any, table: str, columns: Sequence[str] | None, names: str | None
) -> tuple[str, ...]:
    """Columns of a table in a file: those that are asked for, or all with what the trace knows of each row.

    By default these are the stored columns, with times in nanoseconds and names of functions where the trace
    has them, and a column for each flag. Flags that say whether a value is known are left out: such a value
    is null, or an empty cell.
    """
    if names is not None:
        check_choice("names", names, _NAMES)
    if columns is not None:
        if names is not None:
            raise ConfigError("names: columns are chosen; choose symbol or symbol_full among them")
        found = [one.strip() for text in _texts(columns) for one in text.split(",")]
        chosen = tuple(dict.fromkeys(one for one in found if one))
        if not chosen:
            raise ConfigError("columns: none is given; leave it out for all")
        return chosen
    schema = schema_of(table)
    offered = {name for name, one in derived_of(table).items() if one.offered(trace.open_parts.context)}
    shown = [*schema.names("run")]
    if "function" in offered:
        shown += [_form("function", names), *(["module"] if "module" in offered else [])]
    left_out = set(schema.validity.values())
    if all(stream["kind"] == "packets" for stream in trace.opened.bundle.streams):
        left_out.update(_OF_RECORDS)
    for name in schema.names("stored"):
        if name == "flags":
            shown += [flag for flag in schema.names("flag") if flag not in left_out]
            continue
        shown.append(name)
        if schema.columns[name].unit == "address" and symbol_column(name) in offered:
            shown.append(_form(symbol_column(name), names))
        shown += [one for one in _CLOCKS.get(name, ()) if one in offered]
    if table == "mappings":
        shown += [name for name in ("module", "path") if name in offered]
    return tuple(shown)


_OF_RECORDS = ("predicted", "prediction_known")  # flags of branch records, which packets do not have
_CLOCKS = {"tsc": ("time_ns",), "end_tsc": ("end_time_ns",)}


def _texts(columns: Sequence[str]) -> list[str]:
    texts = [columns] if isinstance(columns, str) else list(columns)
    if not all(isinstance(one, str) for one in texts):
        raise ConfigError(f"columns={columns!r}: give names of columns")
    return texts


def _form(name: str, names: str | None) -> str:
    return name if names == "short" else full_name(name)


def table_parts(
    trace: Any, table: str, columns: Sequence[str], query: dict[str, Any], rows: int, *, reuse: bool = False
) -> Iterator[Table]:
    """Parts of a table, of so many rows at most; `reuse`: each is valid until the next one is asked for.

    Raises
    ------
    ConfigError
        If rows of the table have nothing that `query` selects by.
    """
    query = {name: value for name, value in query.items() if value is not None}
    if "kind" in query and table not in _KINDS:
        raise ConfigError(f"kind selects branches, edges and events, not {table}")
    if table == "mappings":
        if query:
            raise ConfigError(f"{next(iter(query))} selects no mappings: they are written whole")
        yield from _cut(trace.mappings(), columns, rows)
    elif table in _WHOLE:
        yield from _cut(getattr(trace, table)(columns=list(columns), **query), columns, rows)
    elif table == "calls":
        yield from trace.iter_calls(rows=rows, columns=list(columns), **query)
    else:
        reuse = reuse and query.get("order") != "time"
        yield from getattr(trace, f"iter_{table}")(rows=rows, reuse=reuse, columns=list(columns), **query)


def _cut(whole: Table, columns: Sequence[str], rows: int) -> Iterator[Table]:
    shown = whole[list(columns)]
    for begin in range(0, max(len(shown), 1), rows):
        part = shown[begin : begin + rows]
        if not begin:
            part.errors, part.gaps = whole.errors, whole.gaps
        yield part


def empty_table(trace: Any, table: str, columns: Sequence[str], query: dict[str, Any]) -> Table:
    """The table of a selection without rows, for the types of its columns."""
    query = {name: value for name, value in query.items() if value is not None}
    if table in ("errors", "gaps"):
        kept: Table = getattr(trace, table)
        return kept[list(columns)][:0]
    found: Table = getattr(trace, table)(columns=list(columns), **query)
    return found[list(columns)]
