"""One place where two runs part: the ways that both took, their stacks and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.diff.compare import Parting
from ptkit.analysis.diff.joining import Joined
from ptkit.analysis.diff.keys import is_python_name
from ptkit.analysis.diff.named import Location
from ptkit.analysis.diff.sequence import Row
from ptkit.analysis.diff.strands import Run, is_system
from ptkit.support.text import counted, one_line
from ptkit.table.html import Cell, html_table

__all__ = [
    "JOINED",
    "Context",
    "DiffFrame",
    "Divergence",
    "arrow_of",
    "frame_of",
    "is_own_code",
    "kind_of",
    "named_sides",
    "own_number",
    "own_site_of",
    "side_by_side",
    "site_of",
    "target_of",
    "way_of",
]

JOINED = {
    Joined.SAME_FRAME: "in the same frame",
    Joined.CALLER: "in a caller",
    Joined.ANYWHERE: "elsewhere",
    Joined.END: "not before the end",
    Joined.NOWHERE: "not found",
}


_WAYS = {
    _core.BranchKind.JUMP: "jump",
    _core.BranchKind.JUMP_INDIRECT: "jump",
    _core.BranchKind.CALL: "call",
    _core.BranchKind.CALL_INDIRECT: "call",
    _core.BranchKind.RETURN: "return",
    _core.BranchKind.SYSCALL: "system call",
}


class DiffFrame(NamedTuple):
    """A frame that is open where two runs part.

    Attributes
    ----------
    function : str or None
        Full name; None: not known.
    module : str or None
    source : str or None
        Path of the source file of `line`; None: not known.
    line : int
        Where the frame is; 0: not known.
    ip : int
        The same as an address.
    rva : int
        The same in the file; outside of files the address.
    """

    function: str | None
    module: str | None
    source: str | None
    line: int
    ip: int
    rva: int

    def __str__(self) -> str:
        return str(Location(self.module, None, self.rva, self.function, self.source, self.line))


def frame_of(function: str | None, location: Location, ip: int) -> DiffFrame:
    """A frame; a Python function is where its interpreter is, which is no line of it."""
    if function is not None and is_python_name(function):
        return DiffFrame(function, None, None, 0, ip, ip)
    names = function or location.function, location.module, location.source
    return DiffFrame(*names, location.line, ip, location.rva)


@dataclass(frozen=True)
class Divergence:
    """A place where two runs part, with the stacks of both.

    Attributes
    ----------
    number : int
        Row of `Difference.divergences`.
    row : dict
        That row, by column.
    a_stack, b_stack : tuple of DiffFrame
        Open frames in each run, the innermost one first.
    earlier : int
        Divergences of the thread before it that are not in the program's own files.
    earlier_in : tuple of str
        Names of these files.
    """

    number: int
    row: dict[str, Any]
    a_stack: tuple[DiffFrame, ...]
    b_stack: tuple[DiffFrame, ...]
    earlier: int
    earlier_in: tuple[str, ...]

    def earlier_text(self) -> str:
        """What came before it, as a sentence."""
        lie = "lies" if self.earlier == 1 else "lie"
        where = ", ".join(self.earlier_in) or "code of no file"
        return one_line(f"{counted(self.earlier, 'earlier divergence')} {lie} in libraries: {where}")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """It as lines of text."""
        row = self.row
        found = [f"divergence {self.number} at {row['where']}"]
        if row["own"] is not None and not row["is_own"]:
            found.append(f"  called from {row['own']}")
        for side, stack in (("a", self.a_stack), ("b", self.b_stack)):
            target = f" {row[f'{side}_target']}" if row[f"{side}_target"] else ""
            at = f", instruction {row[f'{side}_instruction']:,}"
            found.append(f"  {side}: {row[f'{side}_way']}{target}{at}")
            found += [f"       {frame}" for frame in stack]
        found.append(
            f"  joined {row['joined']}, after {counted(row['a_branches'], 'branch', 'branches')} of a and "
            f"{row['b_branches']:,} of b"
        )
        return [one_line(line) for line in found]

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True)
class Context:
    """The last branches before a divergence, and the next ones, of both runs.

    Attributes
    ----------
    before, after : list of (str, str)
        Of run a and of run b; empty: there is none. The last ones before it are equal.
    """

    before: list[tuple[str, str]]
    after: list[tuple[str, str]]

    def lines(self) -> list[str]:
        """Both side by side as lines of text."""
        rows = [("a", "b"), *self.before, ("--", "--"), *self.after]
        width = max(len(left) for left, _ in rows)
        return [f"{left:<{width}} | {right}".rstrip() for left, right in rows]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = [
            [Cell(one, is_text=True) for one in row] for row in (*self.before, ("...", "..."), *self.after)
        ]
        return html_table([Cell("a", is_text=True), Cell("b", is_text=True)], rows)


def is_own_code(location: Location) -> bool:
    """Whether code is of a file of the program, or a Python function."""
    if location.path is None:
        return location.function is not None and is_python_name(location.function)
    return not is_system(location.path)


def site_of(parting: Parting) -> tuple[int, Row, int] | None:
    """Side, row and address: of the branch that both executed, else of the end of the last common one."""
    a, b = parting.after
    if a is not None and b is not None and a.from_key == b.from_key:
        return 0, a, a.from_ip
    for side, before in enumerate(parting.before):
        if before is not None:
            is_known = before.to_key >> 48 != 0xFFFF
            return side, before, before.to_ip if is_known else before.from_ip
    row = a if a is not None else b
    return None if row is None else (0 if a is not None else 1, row, row.from_ip)


def own_site_of(parting: Parting, is_own: Callable[[int], bool]) -> tuple[int, Row, int] | None:
    row = parting.own[0]
    if row is None:
        return None
    is_back = row.kind == _core.BranchKind.RETURN and is_own(row.to_file)
    return 0, row, row.to_ip if is_back else row.from_ip


def target_of(row: Row | None, side: int) -> tuple[int, Row, int] | None:
    if row is None:
        return None
    if row.enters:
        return side, row, row.from_ip
    return (side, row, row.to_ip) if row.to_key >> 48 != 0xFFFF else None


def named_sides(
    names: Sequence[Callable[[Sequence[int], Sequence[int]], list[Location]]],
    sites: Sequence[tuple[int, Row, int] | None],
) -> list[Location | None]:
    found: list[Location | None] = [None] * len(sites)
    for side in range(2):
        rows = [(at, site) for at, site in enumerate(sites) if site is not None and site[0] == side]
        locations = names[side]([site[2] for _, site in rows], [site[1].space for _, site in rows])
        for (at, _), location in zip(rows, locations, strict=True):
            found[at] = location
    return found


def kind_of(parting: Parting) -> str:
    a, b = parting.after
    if a is None or b is None:
        return "end"
    if a.enters or b.enters:
        return "signal"
    if a.from_key != b.from_key:
        return "path"
    if a.kind == b.kind == _core.BranchKind.COND:
        return "conditional"
    return "return" if a.kind == _core.BranchKind.RETURN else "target"


def way_of(row: Row | None) -> str:
    if row is None:
        return "end"
    if row.enters:
        return "signal handler"
    if row.kind == _core.BranchKind.COND:
        return "taken to" if row.flags & _core.RowFlag.TAKEN else "not taken, to"
    way = _WAYS.get(_core.BranchKind(row.kind))
    if way is None:
        return f"{_core.BranchKind(row.kind).name} to"
    return way if row.to_key >> 48 == 0xFFFF else f"{way} to"


def arrow_of(row: Row) -> str:
    if row.kind == _core.BranchKind.COND and not row.flags & _core.RowFlag.TAKEN:
        return "-"
    return {"call": "=>", "return": "<=", "system call": "system call"}.get(
        _WAYS.get(_core.BranchKind(row.kind), ""), "->"
    )


def side_by_side(left: list[str], right: list[str], *, align_end: bool = False) -> list[tuple[str, str]]:
    size = max(len(left), len(right))
    filled = [
        [""] * (size - len(one)) + one if align_end else one + [""] * (size - len(one))
        for one in (left, right)
    ]
    return list(zip(*filled, strict=True))


def own_number(run: Run, row: Row, query: dict[str, Any]) -> int:
    """Number of an instruction of a stream among those of its thread in this stream."""
    blocks: Any = run.trace
    count = 0
    for part in blocks.iter_blocks(columns=["instruction", "instructions"], **query):
        begin, size = (np.asarray(part[name]).astype(np.int64) for name in ("instruction", "instructions"))
        before: NDArray[np.int64] = np.clip(row.instruction - begin, 0, size)
        count += int(before.sum())
    return count
