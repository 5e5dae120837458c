"""Calls as lines, in the manner of a function-graph tracer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ptkit._core import CallEnd, CallFlag, CallKind
from ptkit.cli.output.colours import print_painted
from ptkit.cli.output.durations import Durations
from ptkit.cli.stacks import fit, indentation
from ptkit.table import Table

__all__ = ["CallLines"]

# Ways to begin and to end that are said: a call and a return go without saying.
_BEGINS = {
    CallKind.TAIL,
    CallKind.SIGNAL,
    CallKind.INTERRUPT,
    CallKind.SYSCALL,
    CallKind.INLINED,
    CallKind.THREAD,
    CallKind.RESUMED,
}
_ENDS = {CallEnd.UNWIND, CallEnd.LONGJMP, CallEnd.ABORT, CallEnd.SWITCH, CallEnd.GAP, CallEnd.END}
_UNNAMED = ("[syscall]", "[interrupt]")


@dataclass
class _Call:
    """A call, or calls in a row that did the same."""

    name: str
    function: str | None  # its full name: short ones may be equal
    comment: str
    instructions: int
    ticks: int | None
    frames: int = 1  # that it stands for
    times: int = 1  # calls in a row, in each frame below
    shape: int = 0  # the same number for calls that did the same
    inner: list[_Call] = field(default_factory=list)

    def add(self, other: _Call) -> None:
        """Add the sums of a call that did the same."""
        self.times += other.times
        pairs = [(self, other)]
        while pairs:
            mine, more = pairs.pop()
            mine.frames += more.frames
            mine.instructions += more.instructions
            mine.ticks = None if mine.ticks is None or more.ticks is None else mine.ticks + more.ticks
            pairs += zip(mine.inner, more.inner, strict=True)


class CallLines:
    """Prints calls, each in a line with its duration and instructions.

    Parameters
    ----------
    durations : Durations
    width : int or None
        Columns that a line may have.
    """

    def __init__(self, durations: Durations, width: int | None) -> None:
        self._durations = durations
        self._width = width

    @property
    def heading(self) -> str:
        """Names of the columns."""
        return f"{'duration' + self._durations.unit:>10} {'instructions':>14} | call"

    def print(self, frames: Table, names: list[str], limit: int | None) -> tuple[int, int]:
        """Print frames that are ordered by number; return how many lines, and how many frames they are of."""
        calls = _folded(frames, names)
        lines = covered = 0
        for call, level in _in_order(calls, limit):
            if call is None:
                print_painted((f"{'':25} | {indentation(level, 28, self._width)}}}", "dim"))
                continue
            self._print_call(call, level)
            lines += 1
            covered += call.frames
        return lines, covered

    def _print_call(self, call: _Call, level: int) -> None:
        begin = f"{self._durations.text(call.ticks):>10} {call.instructions:14,} | "
        begin += indentation(level, len(begin), self._width)
        times = f" x {call.frames:,}" if call.frames > 1 else ""
        brace = " {" if call.inner else ""
        used = len(begin) + len(times) + len(call.comment) + len(brace)
        name = fit(call.name, used, self._width)
        print_painted(begin, (name, "name" if call.inner else ""), times, (call.comment, "note"), brace)


def _in_order(calls: list[_Call], limit: int | None) -> Iterator[tuple[_Call | None, int]]:
    """At most `limit` calls with their level, callees after their caller; None: the end of a caller."""
    left = limit
    stack: list[tuple[_Call | None, int]] = [(call, 0) for call in reversed(calls)]
    while stack:
        call, level = stack.pop()
        if call is not None:
            if left is not None:
                if left == 0:
                    return
                left -= 1
            if call.inner:
                stack.append((None, level))
                stack += [(one, level + 1) for one in reversed(call.inner)]
        yield call, level


def _folded(frames: Table, names: list[str]) -> list[_Call]:
    """The calls without a caller among these frames; calls in a row that did the same are one."""
    numbers, parents = frames["id"].tolist(), frames.named("parent")
    calls = dict(zip(numbers, _calls(frames, names), strict=True))
    outer: list[_Call] = []
    for number, parent in zip(numbers, parents, strict=True):
        (outer if parent not in calls else calls[parent].inner).append(calls[number])
    shapes: dict[tuple[object, ...], int] = {}
    for call, _ in reversed([*_in_order(outer, None)]):
        if call is not None:
            call.inner = _merged(call.inner)
            did = tuple((one.shape, one.times) for one in call.inner)
            call.shape = shapes.setdefault((call.name, call.function, call.comment, did), len(shapes))
    return _merged(outer)


def _merged(calls: list[_Call]) -> list[_Call]:
    """Fold calls in a row that have the same shape."""
    merged: list[_Call] = []
    for call in calls:
        if merged and merged[-1].shape == call.shape:
            merged[-1].add(call)
        else:
            merged.append(call)
    return merged


def _calls(frames: Table, names: list[str]) -> Iterator[_Call]:
    columns = ("entry_symbol_full", "instructions", "tsc", "end_tsc", "how", "end_how")
    rows = zip(names, *map(frames.named, columns), frames["flags"].tolist(), strict=True)
    for name, function, instructions, begin, end, how, end_how, flags in rows:
        ticks = None if begin is None or end is None else max(end - begin, 0)
        comment = _comment(name, CallKind[how], CallEnd[end_how], CallFlag(flags))
        yield _Call(name, function, comment, instructions, ticks)


def _comment(name: str, how: CallKind, end_how: CallEnd, flags: CallFlag) -> str:
    """How a call began and ended, where that is no call and no return."""
    words = [how.name.lower()] if how in _BEGINS and name not in _UNNAMED else []
    words += ["began before"] if CallFlag.BEGINS_BEFORE in flags else []
    if CallFlag.ENDS_AFTER in flags:
        words.append("goes on")
    elif end_how in _ENDS:
        words.append(end_how.name.lower())
    exact = CallFlag.EXACT in flags
    if not exact and not words and how != CallKind.ROOT:
        words.append("not exact")
    return f" /* {', '.join(words)} */" if words else ""
