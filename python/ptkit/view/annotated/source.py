"""Source lines of a function, with counts, and the files that they are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from ptkit.support.text import one_line
from ptkit.view.annotated.reading import FunctionRows
from ptkit.view.code import source_texts

__all__ = ["LineRow", "SourceFile", "line_rows", "spans_of"]

_AWAY = 8  # lines without code, after which some are left out
_BEFORE = 1  # lines that are shown before the first one of a span
_MOST_TEXT = 400  # characters of a line


@dataclass
class LineRow:
    """A source line of a function.

    Attributes
    ----------
    path : str
    line : int
    count : int
        Executions by gcov's rule; at least 1 if an instruction ran.
    instructions : int
        That were executed.
    branches : list of (int, int)
        Executions that took each conditional branch, and that did not.
    depth : int
        Loops that it is in.
    is_hottest : bool
    is_head : bool
    rows : list of int
        Its instructions in the function.
    """

    path: str
    line: int
    count: int = 0
    instructions: int = 0
    branches: list[tuple[int, int]] = field(default_factory=list)
    depth: int = 0
    is_hottest: bool = False
    is_head: bool = False
    rows: list[int] = field(default_factory=list)


def line_rows(rows: FunctionRows, depth: Sequence[int]) -> list[LineRow]:
    """Lines of a function: those of the file in which it begins come first, then others by instructions."""
    found: dict[tuple[str, int], LineRow] = {}
    heads = {loop.head for loop in rows.loops}
    cells = (rows.count, rows.executions, rows.taken, rows.passed, rows.is_hottest)
    columns = zip(rows.lines.path, rows.lines.line, *(one.tolist() for one in cells), strict=True)
    for row, (path, line, count, executions, taken, passed, is_hottest) in enumerate(columns):
        if path is None:
            continue
        one = found.setdefault((path, line), LineRow(path, line))
        one.count += executions
        one.instructions += count
        if taken >= 0:
            one.branches.append((taken, passed))
        one.depth = max(one.depth, depth[row])
        one.is_hottest |= is_hottest
        one.is_head |= row in heads
        one.rows.append(row)
    for path, line in rows.lines.idle:
        found.setdefault((path, line), LineRow(path, line))
    work: dict[str, int] = {}
    for one in found.values():
        one.count = max(one.count, min(one.instructions, 1))  # its begin was not seen
        work[one.path] = work.get(one.path, 0) + one.instructions
    own = own_path(rows)
    return sorted(found.values(), key=lambda one: (one.path != own, -work[one.path], one.path, one.line))


def own_path(rows: FunctionRows) -> str | None:
    """The file in which the function begins."""
    known = [row for row, path in enumerate(rows.lines.path) if path is not None]
    if not known:
        return None
    begin = int(np.searchsorted(rows.at[known], np.uint64(rows.function.begin)))
    return rows.lines.path[known[min(begin, len(known) - 1)]]


def spans_of(lines: Sequence[LineRow], *, has_texts: bool) -> list[tuple[int, int]]:
    """First and last lines that are shown of the lines of one file: without texts, those with code alone."""
    if not has_texts:
        return [(one.line, one.line) for one in lines]
    spans: list[tuple[int, int]] = []
    for one in lines:
        if spans and one.line - spans[-1][1] <= _AWAY:
            spans[-1] = spans[-1][0], one.line
        else:
            spans.append((max(one.line - _BEFORE, 1), one.line))
    return spans


class SourceFile:
    """A source file of this machine.

    Parameters
    ----------
    path : str
        As the compiler recorded it.
    program : str or None
        Path of the program that was compiled of it.
    recorded_ns : int or None
        When it was recorded, in nanoseconds since 1970.

    Attributes
    ----------
    texts : list of str or None
        Its lines; None: it is not there.
    """

    def __init__(self, path: str, program: str | None, recorded_ns: int | None) -> None:
        self.path = path
        self.texts = source_texts(path)
        self._program = program
        self._recorded_ns = recorded_ns

    def line(self, number: int) -> str | None:
        """A line without control characters; None: the file has none."""
        if self.texts is None or not 0 < number <= len(self.texts):
            return None
        return one_line(self.texts[number - 1].removesuffix("\r").expandtabs()[:_MOST_TEXT])

    def problem(self, last: int) -> str:
        """Why its lines are not there, or may be others; `last`: the last line with code."""
        path = one_line(self.path)
        if self.texts is None:
            return f"{path}: the source was not found: lines have numbers alone"
        if last > len(self.texts):
            return (
                f"{path}: the program has line {last:,}, and the file {len(self.texts):,}: it is another one"
            )
        changed = _changed_ns(self.path)
        program = None if self._program is None else _changed_ns(self._program)
        limit = self._recorded_ns if program is None else program
        if changed is None or limit is None or changed <= limit:
            return ""
        what = "recording" if program is None else "program"
        when = datetime.fromtimestamp(changed // 10**9, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{path}: is newer than the {what} ({when}): lines may be others than those that ran"


def _changed_ns(path: str) -> int | None:
    try:
        return Path(path).stat().st_mtime_ns
    except (OSError, ValueError):
        return None
