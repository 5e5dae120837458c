"""Annotated code: functions with the counts of their instructions and lines, as tables and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.decode.line_counts import BLOCK_COLUMNS
from ptkit.errors import SymbolError
from ptkit.export.files import NewFile, Written
from ptkit.support.text import counted, one_line
from ptkit.table.made import TextColumns, made_table
from ptkit.view.annotated.counts import EDGE_COLUMNS, INSTRUCTION_COLUMNS
from ptkit.view.annotated.extents import chosen_functions
from ptkit.view.annotated.function import AnnotatedFunction
from ptkit.view.annotated.inlined import inlined_into
from ptkit.view.annotated.page import fragment, page
from ptkit.view.annotated.reading import FunctionRows, read_functions
from ptkit.view.annotated.source import SourceFile
from ptkit.view.annotated.text import listing, plain_part

if TYPE_CHECKING:
    from ptkit.table import Table
    from ptkit.view.code import CodeTrace

__all__ = ["Annotation", "annotation_of"]

_MOST_PRINTED = 200  # lines of `__repr__`
_LINE_KNOWN, _CONDITIONAL, _HOTTEST, _HEAD = 1, 2, 4, 8


class Annotation(Written):
    """Functions with exact counts of their instructions, branches, source lines and loops.

    ``print()`` and a notebook show it. Made by `Trace.annotate`.

    Attributes
    ----------
    name : str
        What was asked for.
    functions : tuple of AnnotatedFunction
        Functions of that name that ran, those with most instructions first; one that did not run, if none
        ran.
    has_source : bool
        It is shown as source lines.
    is_lower_bound : bool
        More may have run than is counted: the trace has errors or gaps.
    missing : list of str
        What is not known, or not as it seems; one sentence for each fact.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[FunctionRows],
        missing: Sequence[str],
        *,
        has_source: bool,
        short: bool,
        is_lower_bound: bool,
        recorded_ns: int | None,
    ) -> None:
        self.name = name
        self.has_source = has_source
        self.is_lower_bound = is_lower_bound
        self.functions = tuple(
            AnnotatedFunction(
                one,
                {
                    path: SourceFile(path, one.function.path, recorded_ns)
                    for path in dict.fromkeys([*one.lines.path, *(path for path, _ in one.lines.idle)])
                    if path is not None
                },
                short=short,
            )
            for one in functions
        )
        self.missing = [*missing]
        for one in self.functions:
            self.missing += one.notes()
            if has_source:
                self.missing += [text for text in one.source_notes() if text not in self.missing]

    def __repr__(self) -> str:
        lines = ["".join(map(plain_part, line)) for line in listing(self.functions, self.has_source)]
        shown = [one_line(line).rstrip() for line in lines[:_MOST_PRINTED]]
        if len(lines) > len(shown):
            shown.append(f"... {counted(len(lines) - len(shown), 'more line')}")
        return "\n".join([*shown, *map(one_line, self.missing)])

    def _repr_html_(self) -> str:
        return fragment(self.functions, self.missing, has_source=self.has_source)

    def write(self, file: NewFile) -> None:
        """Write it as one HTML file, which needs neither a network nor scripts, to a file that is open."""
        file.write(page(self.name, self.functions, self.missing, has_source=self.has_source))

    # Tables.

    @cached_property
    def instructions(self) -> Table:
        """Instructions of all functions, in the order of RVAs, also those that did not run."""
        parts = [one.rows for one in self.functions]
        cells: dict[str, Any] = {
            "number": np.concatenate([np.full(len(one.at), at) for at, one in enumerate(parts)]),
            "ip": np.concatenate([one.ip for one in parts]),
            "rva": np.concatenate([one.at for one in parts]),
            "offset": np.concatenate(
                [one.at.astype(np.int64) - np.uint64(one.function.begin).astype(np.int64) for one in parts]
            ),
            "depth": np.concatenate([one.depth for one in self.functions]),
            "line": np.concatenate([one.lines.line for one in parts]),
        }
        for name in ("size", "count"):
            cells[name] = np.concatenate([getattr(one, name) for one in parts])
        taken, passed = (
            np.concatenate([getattr(one, name) for one in parts]) for name in ("taken", "passed")
        )
        cells["taken"], cells["not_taken"] = np.maximum(taken, 0), np.maximum(passed, 0)
        heads = np.concatenate([np.isin(np.arange(len(one.at)), _heads(one)) for one in parts])
        cells["flags"] = (
            np.where(cells["line"] > 0, _LINE_KNOWN, 0)
            | np.where(taken >= 0, _CONDITIONAL, 0)
            | np.where(np.concatenate([one.is_hottest for one in parts]), _HOTTEST, 0)
            | np.where(heads, _HEAD, 0)
        )
        texts = self._names([len(one.at) for one in parts])
        texts.add_texts("instruction", [text for one in parts for text in one.texts])
        texts.add_texts(
            "target", [one.target(at) for one in self.functions for at in range(len(one.rows.at))]
        )
        for name in ("inlined", "path"):
            column = "source" if name == "path" else name
            texts.add_texts(column, [text for one in parts for text in getattr(one.lines, name)])
        shown = (
            *("function", "offset", "instruction", "count", "taken", "not_taken", "target", "source", "line"),
            *("inlined", "depth", "rva", "ip", "size", "number", "flags"),
        )
        return made_table("annotated_instructions", cells, texts, shown)

    @cached_property
    def lines(self) -> Table:
        """Source lines of all functions, also those of which no code ran."""
        rows = [(number, one) for number, function in enumerate(self.functions) for one in function.lines]
        lines = [one for _, one in rows]
        cells = {
            "number": [number for number, _ in rows],
            "line": [one.line for one in lines],
            "count": [one.count for one in lines],
            "instructions": [one.instructions for one in lines],
            "taken": [sum(taken for taken, _ in one.branches) for one in lines],
            "not_taken": [sum(passed for _, passed in one.branches) for one in lines],
            "depth": [one.depth for one in lines],
            "flags": [
                _LINE_KNOWN
                | (_CONDITIONAL if one.branches else 0)
                | (_HOTTEST if one.is_hottest else 0)
                | (_HEAD if one.is_head else 0)
                for one in lines
            ],
        }
        texts = self._names([len(one.lines) for one in self.functions])
        texts.add_texts("source", [one.path for one in lines])
        texts.add_texts("text", [self.functions[at].source(one.path).line(one.line) for at, one in rows])
        shown = (
            *("function", "source", "line", "count", "instructions", "taken", "not_taken", "text"),
            *("depth", "number", "flags"),
        )
        return made_table("annotated_lines", cells, texts, shown)

    @cached_property
    def loops(self) -> Table:
        """Loops of all functions by their heads: ``count / entries`` is the mean of the trips."""
        loops = [(at, one, loop) for at, one in enumerate(self.functions) for loop in one.rows.loops]
        lines = [one.rows.lines.line[loop.head] for _, one, loop in loops]
        cells = {
            "number": [at for at, *_ in loops],
            "rva": np.array([one.rows.at[loop.head] for _, one, loop in loops], np.uint64),
            "offset": [one.offset(loop.head) for _, one, loop in loops],
            "count": [loop.count for *_, loop in loops],
            "entries": [loop.entries for *_, loop in loops],
            "instructions": [int(one.rows.count[loop.rows].sum()) for _, one, loop in loops],
            "depth": [one.depth[loop.head] for _, one, loop in loops],
            "line": lines,
            "flags": [_LINE_KNOWN if line else 0 for line in lines],
        }
        texts = self._names([len(one.rows.loops) for one in self.functions])
        paths = [one.rows.lines.path[loop.head] for _, one, loop in loops]
        texts.add_texts("source", paths)
        shown = (
            *("function", "offset", "count", "entries", "instructions", "depth", "source", "line"),
            *("rva", "number", "flags"),
        )
        return made_table("annotated_loops", cells, texts, shown)

    def _names(self, sizes: Sequence[int]) -> TextColumns:
        """Names of the functions of rows."""
        texts = TextColumns()
        codes = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
        texts.add_functions(codes, [one.full_name for one in self.functions])
        return texts


def _heads(rows: FunctionRows) -> list[int]:
    return [loop.head for loop in rows.loops]


def annotation_of(
    trace: CodeTrace, name: str, query: Mapping[str, Any], *, has_source: bool, short: bool, most: int
) -> Annotation:
    """Count the code of the functions of a name.

    Parameters
    ----------
    trace : CodeTrace
    name : str
    query : mapping
        Selection of code.
    has_source : bool
        Show source lines.
    short : bool
        Names are short.
    most : int
        So many functions at most.

    Raises
    ------
    SymbolError
        If there is no such function.
    """
    parts: Any = trace
    try:
        chosen, names = chosen_functions(trace, parts.open_parts, name)
    except SymbolError:
        callers = inlined_into(trace, name, {**query})
        if not callers:
            raise
        raise SymbolError(
            f"{name!r} has no code of its own: it was inlined into {', '.join(callers)}; annotate that"
        ) from None
    selected = {**query, "symbol": names}
    is_replaced = any(one.is_replaced for one in chosen)
    table, columns = ("instructions", INSTRUCTION_COLUMNS) if is_replaced else ("blocks", BLOCK_COLUMNS)
    rows = parts._plan(table, {**selected, "columns": columns})
    edges = trace.edges(**selected, columns=EDGE_COLUMNS)
    found, others, has_code = read_functions(trace, chosen, rows, edges, most, short=short)
    rows.after()  # warnings of debug files come about while lines are looked up
    losses = [0 if side is None else len(side) for side in (edges.errors, edges.gaps)]
    missing = []
    if any(losses):
        missing.append(
            f"lower bound: {counted(losses[0], 'error')} and {counted(losses[1], 'gap')}: what ran there is "
            "not counted; `ptkit info --decode` shows where"
        )
    if not has_code:
        missing.append("code is missing: instructions of a block after missing bytes are not counted")
    if others:
        missing.append(
            f"{counted(others, 'more function')} of this name ran: functions=N, --limit N shows N of them"
        )
    return Annotation(
        name,
        found,
        missing,
        has_source=has_source,
        short=short,
        is_lower_bound=any(losses),
        recorded_ns=trace.info.recording.get("begin_ns"),
    )
