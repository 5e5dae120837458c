"""Compares the frames of `trace.calls()` with true ones (`call_truth`), and shows where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from call_code import Code
from call_truth import EndHow, Frames, How
from numpy.typing import NDArray

_AROUND = 4
_FAR = 400  # frames; two sides that differ for longer are not aligned again
_NAMES = ("entry_ip", "call_ip", "return_ip", "parent", "depth", "how", "end_how", "instructions")
# ptkit says more than stack pointers can: why a frame was left, that a thread began, which instruction called
# the kernel, and that a stack was left for good.
_INTERRUPT, _THREAD = 5, 8
_UNWIND, _LONGJMP, _SWITCH = 1, 2, 5
_SAME_HOW = {_THREAD: How.ROOT, _INTERRUPT: How.SYSCALL}
_SAME_END = {_LONGJMP: EndHow.LEFT, _UNWIND: EndHow.LEFT, _SWITCH: EndHow.END}


@dataclass
class Side:
    """Frames in the order in which they became known, as columns that can be compared."""

    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.columns["depth"])


def of_truth(frames: Frames) -> Side:
    return Side({name: getattr(frames, name) for name in _NAMES})


def of_table(table: Any) -> Side:
    """Of the rows of one stream."""
    order = np.argsort(table["id"], kind="stable")
    ids = table["id"][order]
    columns: dict[str, NDArray[Any]] = {}
    for name in ("entry", "call", "return"):
        columns[f"{name}_ip"] = np.where(table[f"{name}_known"], table[f"{name}_ip"], 0)[order]
    parents = np.searchsorted(ids, table["parent"][order])
    columns["parent"] = np.where(table["parent_known"][order], parents, -1)
    for name, same in (("how", _SAME_HOW), ("end_how", _SAME_END)):
        values = table[name][order].astype(np.int64)
        for value, instead in same.items():
            values[values == value] = instead
        columns[name] = values
    columns["depth"] = table["depth"][order].astype(np.int64)
    columns["instructions"] = table["instructions"][order].astype(np.int64)
    return Side(columns)


@dataclass
class Differences:
    """Rows that differ; `kinds` counts them by the columns that differ."""

    rows: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    first: tuple[int, int] | None = None  # row of each side

    def add(self, kind: str, found: int, true: int) -> None:
        self.rows += 1
        self.kinds[kind] += 1
        if self.first is None:
            self.first = (found, true)


def _keys(side: Side) -> NDArray[np.uint64]:
    """Keys of frames, from entry and call, by which those of two sides are matched."""
    entry, call = (side.columns[name].astype(np.uint64) for name in ("entry_ip", "call_ip"))
    return entry * np.uint64(0x9E3779B97F4A7C15) + call


def _aligned(found: Side, true: Side) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of both that are the same frame: those with the same key, in order."""
    ours, theirs = _keys(found), _keys(true)
    runs: list[tuple[int, int, int]] = []
    one = other = 0
    while one < len(ours) and other < len(theirs):
        run = _same(ours[one:], theirs[other:])
        runs.append((one, other, run))
        one, other = one + run, other + run
        steps = _resume(ours[one : one + _FAR].tolist(), theirs[other : other + _FAR].tolist())
        if steps is None:
            break
        one, other = one + steps[0], other + steps[1]
    rows = [(np.arange(here, here + run), np.arange(there, there + run)) for here, there, run in runs]
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])


def _same(ours: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> int:
    """How many keys from the begin are the same."""
    both = min(len(ours), len(theirs))
    size = 64
    while True:
        part = min(size, both)
        differing = np.flatnonzero(ours[:part] != theirs[:part])
        if len(differing) or part == both:
            return int(differing[0]) if len(differing) else both
        size *= 8


def _resume(ours: list[int], theirs: list[int]) -> tuple[int, int] | None:
    """The nearest rows at which three frames in a row are the same again."""
    for distance in range(1, _FAR):
        for step in range(distance + 1):
            next_frames = ours[step : step + 3]
            if next_frames and next_frames == theirs[distance - step : distance - step + 3]:
                return step, distance - step
    return None


def differences(found: Side, true: Side) -> Differences:
    """Compare all columns of all frames; parents by the frames that they are."""
    ours, theirs = _aligned(found, true)
    result = Differences()
    for side, rows, kind in ((found, ours, "no true frame"), (true, theirs, "frame is missing")):
        for row in np.setdiff1d(np.arange(len(side)), rows).tolist():
            at = int(np.searchsorted(rows, row))
            insertion = (int(ours[at]), int(theirs[at])) if at < len(rows) else (len(found), len(true))
            result.add(kind, row if side is found else insertion[0], row if side is true else insertion[1])
    true_row = np.full(len(found) + 1, -2, np.int64)
    true_row[ours] = theirs
    true_row[-1] = -1  # no parent
    differ = {
        name: found.columns[name][ours] != true.columns[name][theirs] for name in _NAMES if name != "parent"
    }
    parents, true_parents = found.columns["parent"][ours], true.columns["parent"][theirs]
    differ["parent"] = true_row[parents] != true_parents
    # A wrong depth is passed on to all frames above: it counts where it begins.
    shift = np.append(found.columns["depth"], 0)[parents] - np.append(true.columns["depth"], 0)[true_parents]
    differ["depth"] = found.columns["depth"][ours] - shift != true.columns["depth"][theirs]
    for pair in np.flatnonzero(np.logical_or.reduce(list(differ.values()))).tolist():
        kind = ", ".join(name for name in _NAMES if differ[name][pair])
        result.add(kind, int(ours[pair]), int(theirs[pair]))
    return result


def _lines(side: Side, around: int, name: Callable[[int], str]) -> list[str]:
    lines = []
    for row in range(max(0, around - _AROUND), min(len(side), around + _AROUND)):
        one = {column: int(side.columns[column][row]) for column in _NAMES}
        mark, indent = ">" if row == around else " ", "  " * max(0, one["depth"] % 20)
        entry = name(one["entry_ip"]) if one["entry_ip"] else "-"
        rest = " ".join(f"{column} {one[column]}" for column in _NAMES[3:])
        ends = f"from {name(one['call_ip'])} back to {name(one['return_ip'])}"
        lines.append(f"  {mark} {row:6} {indent}{entry}  {rest} {ends}")
    return lines


def report(found: Side, true: Side, code: Code) -> str:
    """The differences, and the surroundings of the first one; empty: there is none."""
    result = differences(found, true)
    if result.first is None:
        return ""
    kinds = "; ".join(f"{count} times {kind}" for kind, count in result.kinds.most_common())
    lines = [f"{result.rows} differences in {len(true)} frames: {kinds}", "found:"]
    lines += _lines(found, result.first[0], code.name)
    return "\n".join([*lines, "true:", *_lines(true, result.first[1], code.name)])
