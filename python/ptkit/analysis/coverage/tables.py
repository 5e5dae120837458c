"""Tables of a set, made of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.files import CodeFile
from ptkit.analysis.coverage.rows import BEGINS, PASSES, Rows
from ptkit.support.schema import schema_of
from ptkit.table import Table
from ptkit.table.made import TextColumns, made_table

__all__ = ["block_rows", "block_table", "branch_table", "edge_table", "function_table", "line_table"]

_COND = int(_core.BranchKind.COND)
_BLOCK = np.dtype(
    [
        *(("file", "<i4"), ("rva", "<u8"), ("size", "<u4"), ("instructions", "<i8"), ("count", "<i8")),
        *(("source", "<i4"), ("line", "<u4"), ("function", "<i4")),
    ]
)
_Texts = Sequence[str]


def _table(name: str, rows: Rows, stored: Sequence[str], names: TextColumns, shown: Sequence[str]) -> Table:
    schema = schema_of(name)
    arrays: dict[str, NDArray[Any]] = {one: rows[one] for one in stored}
    if "flags" in schema.columns:
        arrays["flags"] = np.where(rows["source"] >= 0, schema.columns["line_known"].mask, 0).astype(np.uint8)
        if "entry_known" in schema.columns:
            arrays["flags"] |= np.where(rows["function"] >= 0, schema.columns["entry_known"].mask, 0).astype(
                np.uint8
            )
    return made_table(name, arrays, names, shown)


def _names_of(rows: Rows, files: Sequence[CodeFile], texts: _Texts) -> TextColumns:
    names = TextColumns()
    names.add("module", rows["file"], [file.name for file in files])
    names.add_functions(rows["function"], texts)
    names.add("source", rows["source"], texts)
    return names


def block_rows(code: Rows) -> Rows:
    """Blocks of instructions: `instructions` are those of one execution."""
    code = code[code["count"] > 0]
    starts = np.ones(len(code), np.bool_)
    starts[1:] = (code["flags"][1:] & BEGINS) != 0
    starts[1:] |= (code["file"][1:] != code["file"][:-1]) | (code["count"][1:] != code["count"][:-1])
    starts[1:] |= code["rva"][:-1] + code["size"][:-1] != code["rva"][1:]
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(code)) - 1
    rows = np.zeros(len(first), _BLOCK)
    for name in ("file", "rva", "count", "source", "line", "function"):
        rows[name] = code[name][first]
    rows["size"] = (code["rva"][last] + code["size"][last] - code["rva"][first]) if len(first) else 0
    rows["instructions"] = last - first + 1
    return rows


def block_table(code: Rows, files: Sequence[CodeFile], texts: _Texts) -> Table:
    """Table of blocks."""
    rows = block_rows(code)
    stored = ("file", "rva", "size", "instructions", "count", "line")
    shown = ("module", "rva", "size", "instructions", "count", "function", "source", "line", "file", "flags")
    return _table("covered_blocks", rows, stored, _names_of(rows, files, texts), shown)


def edge_table(edges: Rows, files: Sequence[CodeFile], texts: _Texts) -> Table:
    """Table of edges."""
    rows = edges[edges["count"] > 0]
    names = TextColumns()
    modules = [file.name for file in files]
    for end in ("from", "to"):
        names.add(f"{end}_module", rows[f"{end}_file"], modules)
    stored = ("from_file", "from_rva", "to_file", "to_rva", "kind", "count")
    shown = ("from_module", "from_rva", "to_module", "to_rva", "kind", "count", "from_file", "to_file")
    return _table("covered_edges", rows, stored, names, shown)


def branch_table(edges: Rows, files: Sequence[CodeFile], texts: _Texts) -> Table:
    """Table of conditional branches, with both outcomes."""
    rows = edges[(edges["kind"] == _COND) & (edges["count"] > 0)]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (rows["from_file"][1:] != rows["from_file"][:-1]) | (
        rows["from_rva"][1:] != rows["from_rva"][:-1]
    )
    first = np.flatnonzero(starts)
    found = np.zeros(
        len(first),
        [
            *(("file", "<i4"), ("rva", "<u8"), ("taken", "<i8"), ("not_taken", "<i8")),
            *(("source", "<i4"), ("line", "<u4"), ("function", "<i4")),
        ],
    )
    found["file"], found["rva"] = rows["from_file"][first], rows["from_rva"][first]
    for name in ("source", "line", "function"):
        found[name] = rows[name][first]
    passes = (rows["flags"] & PASSES) != 0
    if len(first):
        found["taken"] = np.add.reduceat(np.where(passes, 0, rows["count"]), first)
        found["not_taken"] = np.add.reduceat(np.where(passes, rows["count"], 0), first)
    stored = ("file", "rva", "taken", "not_taken", "line")
    shown = ("module", "rva", "taken", "not_taken", "function", "source", "line", "file", "flags")
    return _table("covered_branches", found, stored, _names_of(found, files, texts), shown)


def function_table(
    functions: Rows, files: Sequence[CodeFile], texts: _Texts, *, ran_only: bool = True
) -> Table:
    """Table of functions."""
    rows = functions[functions["instructions"] > 0] if ran_only else functions
    stored = ("file", "rva", "count", "instructions", "line")
    shown = ("function", "module", "count", "instructions", "rva", "source", "line", "file", "flags")
    return _table("covered_functions", rows, stored, _names_of(rows, files, texts), shown)


def line_table(lines: Rows, texts: _Texts, *, ran_only: bool = True) -> Table:
    """Table of source lines."""
    rows = lines[lines["instructions"] > 0] if ran_only else lines
    rows = rows[_by_path(rows, texts)]
    names = TextColumns()
    names.add("source", rows["source"], texts)
    stored = ("line", "count", "instructions")
    return _table("covered_lines", rows, stored, names, ("source", *stored))


def _by_path(rows: Rows, texts: _Texts) -> NDArray[np.intp]:
    """Order of lines by path and number."""
    present = np.unique(rows["source"]).tolist()
    ranks = {code: rank for rank, code in enumerate(sorted(present, key=lambda code: texts[code]))}
    rank_of = np.zeros(max(present, default=0) + 1, np.int64)
    for code, rank in ranks.items():
        rank_of[code] = rank
    return np.lexsort((rows["line"], rank_of[rows["source"]]))
