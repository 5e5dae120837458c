"""Tables of what differs between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptkit.analysis.diff.compare import Result
from ptkit.analysis.diff.costs import CallRow, FunctionRow, LineRow
from ptkit.analysis.diff.pairing import Pair
from ptkit.support.schema import schema_of
from ptkit.support.text import module_name
from ptkit.table import Table
from ptkit.table.made import TextColumns, made_table

__all__ = ["call_table", "divergence_table", "function_table", "line_table", "thread_table"]

_TEXTS = ("module", "source", "kind", "where", "own", "a_way", "a_target", "b_way", "b_target", "joined")
_NUMBERS = (
    *("thread", "a_tid", "b_tid", "rva", "line", "depth", "a_instruction", "b_instruction", "a_branches"),
    *("b_branches", "a_branch", "b_branch", "a_stream", "b_stream"),
)
_SHOWN = (
    *("thread", "where", "own", "kind", "a_way", "a_target", "b_way", "b_target", "joined", "a_branches"),
    *("b_branches", "depth", "a_instruction", "b_instruction", "a_branch", "b_branch", "a_tid", "b_tid"),
    *("a_stream", "b_stream"),
    *("module", "rva", "function", "source", "line", "flags"),
)


def divergence_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Table of divergences."""
    columns = schema_of("divergences").columns
    cells = {name: [row[name] for row in rows] for name in _NUMBERS}
    flags = [
        columns["line_known"].mask * (row["line"] > 0) | columns["is_own"].mask * row["is_own"]
        for row in rows
    ]
    texts = TextColumns()
    for name in _TEXTS:
        texts.add_texts(name, [row[name] for row in rows])
    _add_functions(texts, [row["function_full"] for row in rows])
    return made_table("divergences", {**cells, "flags": flags}, texts, _SHOWN)


def thread_table(pairs: Sequence[Pair], results: Sequence[Result], counts: Sequence[int]) -> Table:
    """Table of pairs of threads."""
    columns = schema_of("diff_threads").columns
    flags, cells, texts = [], {}, TextColumns()
    for side in ("a", "b"):
        strands = [getattr(pair, side) for pair in pairs]
        cells[f"{side}_tid"] = [-1 if one is None else one.tid for one in strands]
        texts.add_texts(f"{side}_name", [None if one is None else one.name for one in strands])
    for pair in pairs:
        known = [columns[f"{side}_known"].mask for side in "ab" if _is_known(getattr(pair, side))]
        flags.append(sum(known))
    programs = [(pair.a or pair.b).program if (pair.a or pair.b) else "" for pair in pairs]  # type: ignore[union-attr]
    texts.add_texts("program", [module_name(one) or None for one in programs])
    texts.add_texts("role", [pair.role or None for pair in pairs])
    texts.add_texts("paired", [pair.how for pair in pairs])
    cells["branches"] = [result.compared for result in results]
    cells["a_unjudged"] = [result.unjudged[0] for result in results]
    cells["b_unjudged"] = [result.unjudged[1] for result in results]
    cells["divergences"] = [count + result.more for count, result in zip(counts, results, strict=True)]
    shown = (
        *("a_tid", "b_tid", "a_name", "b_name", "program", "role", "branches", "divergences", "paired"),
        *("a_unjudged", "b_unjudged", "flags"),
    )
    return made_table("diff_threads", {**cells, "flags": flags}, texts, shown)


def function_table(rows: Sequence[FunctionRow]) -> Table:
    """Table of functions that differ."""
    mask = schema_of("diff_functions").columns["line_known"].mask
    cells: dict[str, list[int]] = {
        "a_count": [row.a.count for row in rows],
        "b_count": [row.b.count for row in rows],
        "a_instructions": [row.a.self_instructions for row in rows],
        "b_instructions": [row.b.self_instructions for row in rows],
        "a_total": [row.a.instructions for row in rows],
        "b_total": [row.b.instructions for row in rows],
        "delta": [row.delta for row in rows],
        "line": [(row.a if row.a.source is not None else row.b).line for row in rows],
    }
    cells["flags"] = [mask * (line > 0) for line in cells["line"]]
    texts = TextColumns()
    texts.add_texts("module", [row.key.module for row in rows])
    texts.add_texts("source", [row.a.source or row.b.source for row in rows])
    texts.add_texts("matched", [row.matched for row in rows])
    texts.add_texts("b_name", [row.other_name for row in rows])
    _add_functions(texts, [row.key.name for row in rows])
    shown = (
        *("function", "module", "delta", "a_instructions", "b_instructions", "a_count", "b_count", "matched"),
        *("b_name", "a_total", "b_total", "source", "line", "flags"),
    )
    return made_table("diff_functions", cells, texts, shown)


def call_table(rows: Sequence[CallRow]) -> Table:
    """Table of calls that differ."""
    cells = {
        "a_count": [row.counts[0] for row in rows],
        "b_count": [row.counts[1] for row in rows],
        "a_instructions": [row.instructions[0] for row in rows],
        "b_instructions": [row.instructions[1] for row in rows],
    }
    texts = TextColumns()
    texts.add_texts("caller", [None if row.caller is None else row.caller.name for row in rows])
    texts.add_texts("module", [row.callee.module for row in rows])
    _add_functions(texts, [row.callee.name for row in rows])
    return made_table("diff_calls", cells, texts, ("caller", "function", "module", *cells))


def line_table(rows: Sequence[LineRow]) -> Table:
    """Table of lines that differ."""
    mask = schema_of("diff_lines").columns["line_known"].mask
    cells = {
        "line": [row.line for row in rows],
        "a_count": [row.counts[0] for row in rows],
        "b_count": [row.counts[1] for row in rows],
        "a_instructions": [row.instructions[0] for row in rows],
        "b_instructions": [row.instructions[1] for row in rows],
        "delta": [row.delta for row in rows],
        "flags": [mask * (row.source is not None and row.line > 0) for row in rows],
    }
    texts = TextColumns()
    texts.add_texts("source", [row.source for row in rows])
    texts.add_texts("module", [row.module for row in rows])
    _add_functions(texts, [row.function for row in rows])
    shown = (
        *("source", "line", "function", "module", "delta", "a_instructions", "b_instructions", "a_count"),
        *("b_count", "flags"),
    )
    return made_table("diff_lines", cells, texts, shown)


def _add_functions(texts: TextColumns, names: Sequence[str | None]) -> None:
    distinct = list(dict.fromkeys(name for name in names if name is not None))
    codes = {name: code for code, name in enumerate(distinct)}
    texts.add_functions(np.array([-1 if name is None else codes[name] for name in names], np.int32), distinct)


def _is_known(strand: Any) -> bool:
    return strand is not None and strand.tid >= 0
