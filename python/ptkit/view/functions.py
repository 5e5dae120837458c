"""Functions of the page, with the sums of `Trace.functions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.export.function_names import FunctionNames, function_names
from ptkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptkit.table import Table

__all__ = ["PageFunctions", "page_functions"]

_KEY = ("entry_ip", "space", "code_tsc", "file", "import_ip", "inline_level")
_OTHERS = "[other functions]"
_KINDS = ("entry_known", "is_syscall", "is_interrupt", "is_import", "is_inlined")
#: Columns of `Trace.functions` that the page is made of.
COLUMNS = (
    *("function", "function_full", "module", *_KEY, "flags", "count", "begin_unseen"),
    *("instructions", "self_instructions", "least", "most"),
)


@dataclass
class PageFunctions:
    """Functions by their numbers in the page: those with most instructions come first.

    Attributes
    ----------
    rows : Table
        A row of `Trace.functions` for each.
    names : FunctionNames
    number : numpy.ndarray of uint32
        Numbers in the page, by the timeline's numbers of functions.
    most : int or None
        So many have names; all others are one. None: all have.
    """

    rows: Table
    names: FunctionNames
    number: NDArray[np.uint32]
    most: int | None = None

    def __len__(self) -> int:
        """How many the page has."""
        return len(self.rows) if self.most is None else self.most + 1

    def own(self) -> NDArray[np.int64]:
        """Instructions of each function alone."""
        return np.asarray(self.rows["self_instructions"])

    def limit(self, most: int) -> None:
        """Show the first so many functions by name; the others are one."""
        self.most = most
        self.number = np.minimum(self.number, np.uint32(most))

    def head(self, *, is_time: bool, shows_full: bool) -> dict[str, Any]:
        """The member ``functions`` of a run, without details; `shows_full`: full names, too."""
        end = self.most
        names, rows = self.names, self.rows[:end]
        shown = [one_line(module) if module else "" for module in names.modules[:end]]
        modules = list(dict.fromkeys(module for module in shown if module))
        index = {module: number for number, module in enumerate(modules)}
        pairs = zip(names.names[:end], names.full[:end], strict=True)
        found: dict[str, Any] = {
            "name": names.names[:end],
            "full": [full if shows_full and full != name else None for name, full in pairs],
            "module": [index.get(module, -1) for module in shown],
            "modules": modules,
            "calls": rows["count"].tolist(),
            "self_instructions": np.asarray(rows["self_instructions"]).tolist(),
            "instructions": rows["instructions"].tolist(),
        }
        if is_time:
            for name in ("least", "most"):
                found[name] = rows.named(f"{name}_ns")
            found["time_ns"] = list(found["least"])
        found["exact"] = np.asarray(rows["count_exact"]).astype(int).tolist()
        if end is not None:
            self._add_others(found, end)
        return found

    def _add_others(self, found: dict[str, Any], end: int) -> None:
        """Add the sums of the functions that are one."""
        others: dict[str, Any] = {"name": _OTHERS, "full": None, "module": -1, "exact": 0}
        for name, column in (("calls", "count"), ("self_instructions", "self_instructions")):
            others[name] = int(self.rows[column][end:].sum())
        for name, values in found.items():
            if name != "modules":
                values.append(others.get(name))


def page_functions(rows: Table, functions: Table, names: str, paths: Sequence[str]) -> PageFunctions:
    """Match the functions of a timeline with the sums of the same query.

    Parameters
    ----------
    rows : Table
        `Trace.functions`, with `COLUMNS`.
    functions : Table
        Those of the timeline, by number.
    names : str
        ``"short"`` or ``"full"``.
    paths : sequence of str
        Paths of the trace's files.
    """
    keys = {key: number for number, key in enumerate(_keys(rows))}
    number = np.array([keys.get(key, len(rows)) for key in _keys(functions)], np.uint32)
    return PageFunctions(rows, function_names(rows, names, paths), number)


def _keys(rows: Table) -> list[tuple[Any, ...]]:
    """What tells functions apart."""
    columns = [np.asarray(rows[name]).tolist() for name in (*_KEY, *_KINDS)]
    return list(zip(*columns, strict=True))
