"""Tables for the eye: head and tail, addresses in hexadecimal with names, enumerations by name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit import _core
from ptkit.support.schema import Column
from ptkit.support.text import counted, duration, fitted, one_line
from ptkit.table.derived import full_name, symbol_column
from ptkit.table.distinct_names import distinct_names
from ptkit.table.html import Cell, html_table
from ptkit.table.labels import Labels
from ptkit.table.messages import messages_of

if TYPE_CHECKING:
    from ptkit.table.base import BaseTable

_ENDS = 5  # rows shown at each end
# Shares of the width: of a name, of one beside an address, and of a message.
_NAME = 1 / 3
_BESIDE = 1 / 6
_MESSAGE = 5 / 8
_SIDES = ("errors", "gaps")
_BETWEEN = "  "


def _parts(table: BaseTable) -> tuple[list[tuple[int, BaseTable]], int | None]:
    """Shown parts of a table, with the numbers of first rows, and after how many rows some are left out."""
    if len(table) <= 2 * _ENDS:
        return [(0, table[:])], None
    last = len(table) - _ENDS
    return [(0, table[:_ENDS]), (last, table[last:])], _ENDS


def _is_quantity(column: Column) -> bool:
    """Whether values are counts or sizes, no numbers of things."""
    is_count = column.dtype == np.int64 or column.name == "instructions"
    return column.enum is None and (is_count or column.unit in ("bytes", "TSC ticks", "ns"))


def _is_length(column: Column) -> bool:
    """Whether values are lengths of time in ticks, no points of time."""
    return column.unit == "TSC ticks" and column.dtype != np.uint64


def _apart(parts: list[tuple[int, BaseTable]]) -> dict[str, str]:
    """Shown names by full names of functions, in columns or beside addresses."""
    rows = [part for _, part in parts]
    return distinct_names(text for part in rows for name in part.columns for text in _full_names(part, name))


def _texts(table: BaseTable, name: str, apart: Mapping[str, str]) -> list[str]:
    """Every row of a (short) table as text, but for names of addresses; `apart`: see `_apart`."""
    column = table.column(name)
    values: list[Any] = table.named(name)
    if column.dtype == np.dtype(object):
        values = [apart.get(full, text) for full, text in zip(_full_names(table, name), values, strict=True)]
    form = "{}"
    if column.unit == "address" or name == "flags":
        form = "{:#x}"
    elif column.dtype == np.float64:
        form = "{:.3f}"
    elif _is_quantity(column):
        form = "{:,}"
    elif column.dtype.kind == "f":
        form = "{:.3g}"
    return ["-" if value is None else one_line(form.format(value)) for value in values]


def _names_beside(table: BaseTable, name: str, apart: Mapping[str, str]) -> list[str | None]:
    """Functions and offsets in them; None also where the columns that this needs were not read."""
    symbol = symbol_column(name)
    if table.column(name).unit != "address" or not table._can_make(symbol):
        return [None] * len(table)
    names, offsets = table._derived_values(symbol), table._derived_values(f"{symbol}_offset")
    assert isinstance(names, Labels)
    assert not isinstance(offsets, Labels)
    known = table.known(name)
    texts = [
        apart.get(full, text) for full, text in zip(_full_names(table, name), names.texts(), strict=True)
    ]
    rows = zip(texts, offsets, np.ones(len(table), np.bool_) if known is None else known, strict=True)
    return [
        one_line(f"{name}+{offset:#x}" if offset else name) if name and has_ip else None
        for name, offset, has_ip in rows
    ]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."


def _messages(table: BaseTable) -> list[str]:
    has_columns = set(table.data.schema.names("stored")) <= set(table.columns)
    return messages_of(table) if has_columns and len(table) else [""] * len(table)


def _footer(table: BaseTable, shown: int | None = None) -> str:
    text = f"{table.name}: {counted(len(table), 'row')} x {counted(len(table.columns), 'column')}"
    if shown is not None:
        text += f", {shown} shown"
    for side in _SIDES:
        rows = getattr(table, side)
        if rows is not None and len(rows):
            text += f", {len(rows):,} {side if len(rows) > 1 else side[:-1]}"
    return text


def as_text(table: BaseTable, width: int | None = None) -> str:
    """Like pandas: aligned columns, head and tail, and as many columns as fit the terminal."""
    width = shutil.get_terminal_size().columns if width is None else width
    parts, cut = _parts(table)
    free = width
    columns = [[""] + [str(first + row) for first, part in parts for row in range(len(part))]]
    messages: list[str] = []
    apart = _apart(parts)
    if table.name in _SIDES:
        messages = [one_line(text) for _, part in parts for text in _messages(part)]
        free -= min(max(map(len, ["message", *messages])), int(width * _MESSAGE)) + len(_BETWEEN)
    used = len(columns[0][-1])
    for name in table.columns:
        cells = [name, *_with_names(parts, name, width, apart)]
        longest = max(map(len, cells))
        is_last = len(columns) == len(table.columns)
        rest = 0 if is_last else len(_BETWEEN) + len("...")
        if len(columns) > 1 and used + len(_BETWEEN) + longest + rest > free:
            break
        used += len(_BETWEEN) + longest
        columns.append(cells)
    shown = len(columns) - 1
    lacks = shown < len(table.columns)
    if lacks:
        columns.append(["..."] * len(columns[0]))
        used += len(_BETWEEN) + len("...")
    left = -1
    if table.name in _SIDES:
        left = len(columns)
        columns.append(["message", *(_cut(text, width - used - len(_BETWEEN)) for text in messages)])
    footer = _footer(table, shown if lacks else None)
    if messages and columns[-1][1:] != messages:
        footer += "; messages() has the whole texts"
    return "\n".join([*_aligned(columns, left, cut), f"[{footer}]"])


def _with_names(
    parts: list[tuple[int, BaseTable]], name: str, width: int, apart: Mapping[str, str]
) -> list[str]:
    """Cells of a column: addresses with functions, long texts cut."""
    most, most_beside = int(width * _NAME), int(width * _BESIDE)
    cells = []
    for _, part in parts:
        beside = _names_beside(part, name, apart)
        if part.column(name).dtype == np.dtype(object):
            cells += [fitted(text, most) for text in _texts(part, name, apart)]
        else:
            rows = zip(_texts(part, name, apart), beside, strict=True)
            cells += [f"{text} {fitted(other, most_beside)}" if other else text for text, other in rows]
    return cells


def _aligned(columns: list[list[str]], left: int, cut: int | None) -> list[str]:
    """Lines of columns; column number `left` is aligned on the left."""
    widths = [max(map(len, cells)) for cells in columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    if cut is not None:
        rows.insert(1 + cut, ["..."] * len(columns))
    return [
        _BETWEEN.join(
            cell.ljust(width) if number == left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def as_html(table: BaseTable) -> str:
    """Build the same table for a notebook, with all columns, and times in units."""
    parts, cut = _parts(table)
    rate = table.data.context.ns_per_tick()
    heads = [Cell("")]
    columns = [[Cell(str(first + row)) for first, part in parts for row in range(len(part))]]
    apart = _apart(parts)
    for name in table.columns:
        column = table.column(name)
        is_time = rate is not None and _is_length(column)
        unit = column.unit if _is_quantity(column) and not is_time else ""
        is_text = column.dtype == np.dtype(object) or column.enum is not None or column.unit == "address"
        heads.append(Cell(name, title=column.doc, unit=unit, is_text=is_text))
        columns.append([cell for _, part in parts for cell in _html_cells(part, name, rate, is_text, apart)])
    if table.name in _SIDES:
        heads.append(Cell("message", is_text=True))
        columns.append([Cell(text, is_text=True) for _, part in parts for text in _messages(part)])
    return html_table(heads, list(zip(*columns, strict=True)), _footer(table), cut=cut)


def _html_cells(
    table: BaseTable, name: str, rate: float | None, is_text: bool, apart: Mapping[str, str]
) -> list[Cell]:
    column, texts = table.column(name), _texts(table, name, apart)
    if rate is not None and _is_length(column):
        values = table.named(name)
        return [
            Cell(text) if ticks is None else Cell(duration(round(ticks * rate)), title=f"{text} TSC ticks")
            for text, ticks in zip(texts, values, strict=True)
        ]
    if name == "flags":
        return [
            Cell(text, title=_flag_names(column, value))
            for text, value in zip(texts, np.asarray(table[name]).tolist(), strict=True)
        ]
    rows = zip(texts, _names_beside(table, name, apart), _full_names(table, name), strict=True)
    return [
        Cell(f"{text} {other}" if other else text, title=full, is_text=is_text) for text, other, full in rows
    ]


def _full_names(table: BaseTable, name: str) -> list[str]:
    """Names that are shown in short, as they are; empty for other columns."""
    name = full_name(symbol_column(name) if table.column(name).unit == "address" else name)
    if not table._can_make(name):
        return [""] * len(table)
    names = table._derived_values(name)
    assert isinstance(names, Labels)
    return [text or "" for text in names.texts()]


def _flag_names(column: Column, value: int) -> str:
    flags = getattr(_core, column.unit, ())
    return ", ".join(flag.name for flag in flags if flag.value & value)
