"""Tables of rows that were made in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.support.schema import schema_of
from ptkit.table.columns import Columns
from ptkit.table.context import TableContext
from ptkit.table.derived import KNOWN
from ptkit.table.table import Table

__all__ = ["TextColumns", "made_table"]


class TextColumns:
    """Text columns of a table, as codes with names."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.kept: dict[str, Sequence[str] | None] = {}

    def add(self, column: str, codes: NDArray[np.int32], names: Sequence[str]) -> None:
        """Add a column; code -1: no text."""
        present, codes_of_present = np.unique(codes[codes >= 0], return_inverse=True)
        compact = np.full(len(codes), -1, np.int32)
        compact[codes >= 0] = codes_of_present
        self.arrays[column], self.kept[column] = compact, [names[code] for code in present.tolist()]
        if len(codes_of_present) < len(codes):
            self.arrays[column + KNOWN] = compact >= 0

    def add_texts(self, column: str, texts: Sequence[str | None]) -> None:
        """Add a column of the texts of rows."""
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts)) if text is not None}
        names = [""] * (len(numbers) + 1)
        for text, number in numbers.items():
            names[number] = text
        codes = np.array([-1 if text is None else numbers[text] for text in texts], np.int32)
        self.add(column, codes, names)

    def add_functions(self, codes: NDArray[np.int32], texts: Sequence[str]) -> None:
        """Add the columns of short and of full names."""
        self.add("function_full", codes, texts)
        self.arrays["function"] = self.arrays["function_full"]
        full = self.kept["function_full"] or []
        self.kept["function"] = _core.short_names(list(full))
        if "function_full" + KNOWN in self.arrays:
            self.arrays["function" + KNOWN] = self.arrays["function_full" + KNOWN]


def made_table(name: str, cells: Mapping[str, Any], texts: TextColumns, shown: Sequence[str]) -> Table:
    """Make a table.

    Parameters
    ----------
    name : str
        Of its schema.
    cells : mapping of str to array_like
        Stored columns.
    texts : TextColumns
    shown : sequence of str
        Columns of the result.
    """
    schema = schema_of(name)
    arrays: dict[str, NDArray[Any]] = {
        one: np.ascontiguousarray(values).astype(schema.columns[one].dtype) for one, values in cells.items()
    }
    arrays |= texts.arrays
    for array in arrays.values():
        array.flags.writeable = False
    rows = len(next(iter(arrays.values())))
    return Table(Columns(schema, rows, arrays, context=TableContext(kept=texts.kept)), columns=shown)
