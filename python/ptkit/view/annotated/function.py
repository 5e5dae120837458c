"""A function with the counts of its instructions and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from ptkit import _core
from ptkit.support.text import counted, one_line
from ptkit.view.annotated.extents import signed
from ptkit.view.annotated.idle import Unknown
from ptkit.view.annotated.reading import FunctionRows
from ptkit.view.annotated.source import LineRow, SourceFile, line_rows

__all__ = ["AnnotatedFunction"]

_MOST_TARGETS = 3  # that are named
# Direct branches and calls, with their addresses.
_DIRECT = re.compile(r"((?:bnd |notrack )?(?:j\w+|call|loop\w*|xbegin)) 0x([0-9a-f]+)")


class AnnotatedFunction:
    """A function with counts.

    Attributes
    ----------
    name, full_name : str
        Short name, and with template arguments and parameters.
    module : str or None
        Name of its file; None: it is in none.
    path : str or None
        Path of that file.
    rva : int
        Begin of the function in its file; the address outside of files.
    calls : int
        Executions of its begin, without jumps back to it.
    instructions : int
        That were executed in it, without what it called.
    """

    def __init__(self, rows: FunctionRows, sources: Mapping[str, SourceFile], *, short: bool) -> None:
        self.rows = rows
        self._sources = sources
        self._short = short
        function = rows.function
        self.full_name = function.name
        self.name = _core.short_names([function.name])[0]
        self.module, self.path, self.rva = function.module, function.path, function.begin
        self.calls, self.instructions = rows.calls, rows.instructions

    def __repr__(self) -> str:
        return f"<ptkit.AnnotatedFunction {one_line(self.title)}>"

    @property
    def title(self) -> str:
        """One line about it."""
        name = self.name if self._short else self.full_name
        where = f" ({self.module})" if self.module else ""
        if not self.instructions:
            return f"{name}{where}: did not run"
        work = counted(self.instructions, "instruction")
        return f"{name}{where}: {counted(self.calls, 'call')}, {work}"

    @cached_property
    def depth(self) -> list[int]:
        """Loops that each instruction is in."""
        depth = np.zeros(len(self.rows.at), np.int64)
        for loop in self.rows.loops:
            depth[loop.rows] += 1
        return [int(one) for one in depth]

    @cached_property
    def lines(self) -> list[LineRow]:
        """Source lines that have code of it."""
        return line_rows(self.rows, self.depth)

    def source(self, path: str) -> SourceFile:
        """A file of these lines."""
        return self._sources[path]

    def offset(self, row: int) -> int:
        """Bytes from the begin to an instruction."""
        return int(self.rows.at[row]) - self.rva

    def code(self) -> Iterator[int | Unknown]:
        """Rows of its instructions, and bytes that are not known, in the order of RVAs."""
        unknown = sorted(self.rows.unknown, key=lambda one: one.at)
        for row, at in enumerate(self.rows.at.tolist()):
            while unknown and unknown[0].at < at:
                yield unknown.pop(0)
            yield row
        yield from unknown

    def target(self, row: int) -> str | None:
        """Where a call, or a jump out of the function, led to."""
        names = self.rows.targets[row]
        more = len(names) - _MOST_TARGETS + 1
        shown = names if more < 2 else [*names[: _MOST_TARGETS - 1], f"{more:,} more"]
        return ", ".join(shown) or None

    def shown(self, row: int) -> str:
        """Disassembly; of calls and jumps with where they led to instead of the address."""
        text, target = self.rows.texts[row], self.target(row)
        if text is None:
            return f"-> {target}" if target else ""  # redacted
        found = _DIRECT.fullmatch(text)
        offset = None if found is None else int(found[2], 16) - int(self.rows.ip[row]) + self.offset(row)
        if found is not None and offset is not None and target is None:
            is_inside = any(
                one.at <= self.rva + offset <= one.at + one.last - one.first
                for one in self.rows.function.extents
            )
            return f"{found[1]} {signed(offset)}" if is_inside else text
        if target is None:
            return text
        return f"{text if found is None else found[1]} {'-> ' if found is None else ''}{target}"

    def notes(self) -> list[str]:
        """What is not as it seems, one sentence for each fact."""
        rows, name = self.rows, self.name
        found = []
        if not self.instructions:
            found.append(f"{name}: did not run, or not in what is selected")
        if rows.function.is_replaced:
            found.append(
                f"{name}: its code was replaced while it ran: counts are of all that ran at addresses, "
                "and the disassembly is of what was there last"
            )
        if rows.other_loops:
            noun = counted(rows.other_loops, "loop")
            found.append(f"{name}: {noun} entered in more than one place: trips are not counted")
        return found

    def source_notes(self) -> list[str]:
        """Problems with its source files."""
        if not self.lines:
            return [
                f"{self.name}: no source lines are known: record the debug information, too "
                "(`ptkit record --with-debug`), or give it by --debug-path"
            ]
        last: dict[str, int] = {}
        for one in self.lines:
            last[one.path] = max(last.get(one.path, 0), one.line)
        problems = (self.source(path).problem(line) for path, line in last.items())
        return [problem for problem in problems if problem]
