"""CSV: a table as text, for spreadsheets and everything else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.export.files import NewFile
from ptkit.export.tables import Losses, chosen_columns, chosen_tables, table_parts
from ptkit.support.text import one_line
from ptkit.table import Table
from ptkit.table.labels import Labels

__all__ = ["cell", "write_csv"]

_ROWS = 1 << 16
# Spreadsheets take texts that begin so for formulas; the last four are forms of the others of double width.
_FORMULA = re.compile("[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_QUOTED = re.compile('[",\r\n]')
_BOOLEANS = [b"false", b"true"]
_CODES = 256  # values of a column of an enumeration


def cell(text: str) -> bytes:
    """A text as a cell, quoted as RFC 4180 has it.

    A text that a spreadsheet would take for a formula begins with an apostrophe; control characters are
    escaped.

    Examples
    --------
    >>> from ptkit.export.csv_table import cell
    >>> cell('operator,'), cell("=1+1"), cell("std::vector<int>::size")
    (b'"operator,"', b"'=1+1", b'std::vector<int>::size')
    """
    text = one_line(text)
    if _FORMULA.match(text):
        text = f"'{text}"
    if not text or _QUOTED.search(text):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode("utf-8", "replace")


def write_csv(
    trace: Any,
    path: str,
    *,
    table: str = "branches",
    columns: Sequence[str] | None = None,
    names: str | None = None,
    **query: Any,
) -> dict[str, Any]:
    """Write a table as CSV: a line of names, then a line for each row.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    table : str
        ``"branches"``, ``"calls"``, ``"functions"``, ...: `ptkit.export.options.TABLES`.
    columns : sequence of str, optional
        Columns of docs/tables.md; by default all that the trace knows.
    names : str, optional
        Names of functions in the default columns: ``"full"`` (default) or ``"short"``.
    **query
        Which rows; see `ptkit.decode.Query`.

    Notes
    -----
    Addresses are hexadecimal, other numbers decimal, enumerations and functions names, flags ``true`` and
    ``false``. A value that is not known is an empty cell.
    """
    (chosen,) = chosen_tables(table)
    shown = chosen_columns(trace, chosen, columns, names)
    losses, lines = Losses(), _Lines(trace)
    with NewFile(path) as file:
        file.write(",".join(shown).encode() + b"\n")
        for part in table_parts(trace, chosen, shown, query, _ROWS, reuse=True):
            lines.write(losses.of(part), shown, file)
    return {"bytes": file.bytes, "notes": losses.notes()}


class _Lines:
    """Writes parts of a table, column by column."""

    def __init__(self, trace: Any) -> None:
        self._core = _core.LineWriter(trace.opened.session, [])
        self._cells: dict[str, bytes] = {}

    def write(self, part: Table, columns: Sequence[str], file: NewFile) -> None:
        """Append a line for each row."""
        self._core.begin(len(part))
        for number, name in enumerate(columns):
            if number:
                self._core.literal(",")
            self._add(part, name)
        self._core.write(file.write, strip=False)

    def _add(self, part: Table, name: str) -> None:
        column = part.column(name)
        if column.dtype == object:
            labels = part._derived_values(name)
            assert isinstance(labels, Labels)
            self._names(labels.compact())
            return
        known = part.known(name)
        if known is not None and known.all():
            known = None
        values = np.ascontiguousarray(np.asarray(part[name]))
        if column.enum is not None:
            self._core.label(values, _labels(column.enum), known=known)
        elif column.dtype == np.bool_:
            self._core.label(values.view(np.uint8), _BOOLEANS, known=known)
        elif column.unit == "address":
            self._core.number(values, "hex", known=known, before="0x")
        else:
            self._core.number(values, "decimal", known=known)

    def _names(self, labels: Labels) -> None:
        cells = self._cells
        for name in labels.names:
            if name not in cells:
                cells[name] = cell(name)
        codes: NDArray[np.int32] = np.ascontiguousarray(labels.codes)
        known = codes >= 0
        self._core.label(
            np.where(known, codes, 0).astype(np.uint32),
            [cells[name] for name in labels.names] or [b""],
            known=None if known.all() else known,
        )


def _labels(enum: Any) -> list[bytes]:
    names = {int(member): member.name for member in enum}
    return [names.get(value, str(value)).encode() for value in range(_CODES)]
