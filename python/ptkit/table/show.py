"""Tables for the eye: head and tail, addresses in hexadecimal with names, enumerations by name."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ptkit.table.derived import derived_of, symbol_column
from ptkit.table.labels import Labels
from ptkit.text import counted, one_line

if TYPE_CHECKING:
    from ptkit.table.table import Table

_ENDS = 5  # rows shown at each end
_NAME_WIDTH = 40


def _cells(table: Table, name: str) -> list[str]:
    """Every row of a (short) table as text."""
    column = table.column(name)
    values: list[Any] = table.named(name)
    if column.unit == "address":
        places = _places(table, symbol_column(name))
        return [_address(value, place) for value, place in zip(values, places, strict=True)]
    if name == "flags":
        return [f"{value:#x}" for value in values]
    return ["-" if value is None else str(value) for value in values]


def _places(table: Table, symbol: str) -> list[str | None]:
    """Functions and offsets in them; None also where the columns that this needs were not read."""
    derived = derived_of(table.name)
    if symbol not in derived:  # of mappings
        return [None] * len(table)
    if not derived[symbol].offered(table._context) or not table._has_read(derived[symbol].needs):
        return [None] * len(table)
    names, offsets = derived[symbol].values(table), derived[f"{symbol}_offset"].values(table)
    assert isinstance(names, Labels)
    assert not isinstance(offsets, Labels)
    rows = zip(names.texts(), offsets, strict=True)
    return [f"{name}+{offset:#x}" if name and offset else name for name, offset in rows]


def _address(value: int | None, symbol: str | None) -> str:
    if value is None:
        return "-"
    if not symbol:
        return f"{value:#x}"
    return f"{value:#x} {symbol if len(symbol) <= _NAME_WIDTH else symbol[: _NAME_WIDTH - 3] + '...'}"


def _shown(table: Table) -> tuple[list[str], list[list[str]], int | None]:
    """Header, rows of cells, and after how many of them rows are left out."""
    cut = len(table) > 2 * _ENDS
    parts = [table[:_ENDS], table[len(table) - _ENDS :]] if cut else [table[:]]
    header = ["", *table.columns]
    rows: list[list[str]] = []
    for part, first in zip(parts, (0, len(table) - _ENDS), strict=False):
        cells = [[str(first + i) for i in range(len(part))]]
        cells += [_cells(part, name) for name in table.columns]
        if table.name in ("errors", "gaps") and len(part):
            cells.append(part.messages() if _has_messages(part) else [""] * len(part))
        rows += [[one_line(cell) for cell in row] for row in zip(*cells, strict=True)]
    if table.name in ("errors", "gaps"):
        header.append("message")
    return header, rows, _ENDS if cut else None


def _has_messages(table: Table) -> bool:
    return set(table._schema.names("stored")) <= set(table.columns)


def _footer(table: Table) -> str:
    text = f"{table.name}: {counted(len(table), 'row')} x {counted(len(table.columns), 'column')}"
    for side in ("errors", "gaps"):
        rows = getattr(table, side)
        if rows is not None and len(rows):
            text += f", {len(rows):,} {side if len(rows) > 1 else side[:-1]}"
    return text


def as_text(table: Table) -> str:
    """Like pandas: aligned columns, head and tail."""
    header, rows, cut = _shown(table)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    left = [i for i, name in enumerate(header) if name == "message"]

    def line(cells: list[str]) -> str:
        padded = (
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    lines = [line(header), *map(line, rows)]
    if cut is not None:
        lines.insert(1 + cut, line(["..." for _ in header]))
    return "\n".join([*lines, f"[{_footer(table)}]"])


def as_html(table: Table) -> str:
    """Build the same table for a notebook."""
    header, rows, cut = _shown(table)

    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = [line(row, "td") for row in rows]
    if cut is not None:
        body.insert(cut, line(["..." for _ in header], "td"))
    return (
        '<table class="ptkit"><thead>'
        + line(header, "th")
        + "</thead><tbody>"
        + "".join(body)
        + f"</tbody></table><p>{escape(_footer(table))}</p>"
    )
