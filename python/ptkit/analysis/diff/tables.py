"""Tables of what differs between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptkit.analysis.diff.compare import Result
from ptkit.analysis.diff.pairing import Pair
from ptkit.support.schema import schema_of
from ptkit.support.text import module_name
from ptkit.table import Table
from ptkit.table.made import TextColumns, made_table

__all__ = ["divergence_table", "thread_table"]

_TEXTS = ("module", "source", "kind", "where", "own", "a_way", "a_target", "b_way", "b_target", "joined")
_NUMBERS = (
    *("thread", "a_tid", "b_tid", "rva", "line", "depth", "a_instruction", "b_instruction", "a_branches"),
    *("b_branches", "a_branch", "b_branch"),
)
_SHOWN = (
    *("thread", "where", "own", "kind", "a_way", "a_target", "b_way", "b_target", "joined", "a_branches"),
    *("b_branches", "depth", "a_instruction", "b_instruction", "a_branch", "b_branch", "a_tid", "b_tid"),
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
    functions = [row["function_full"] for row in rows]
    distinct = list(dict.fromkeys(one for one in functions if one is not None))
    codes = {name: code for code, name in enumerate(distinct)}
    texts.add_functions(np.array([codes.get(one, -1) for one in functions], np.int32), distinct)
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


def _is_known(strand: Any) -> bool:
    return strand is not None and strand.tid >= 0
