"""Paths through loops, from one execution of the head to the next, or out of the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.branch_stats import bits_of, table_of
from ptkit.analysis.loops import CodeLoops
from ptkit.decode import Plan, Window
from ptkit.decode.calls import call_query, side_tables, too_large
from ptkit.table import Table

__all__ = ["read_loop_paths"]

_FEWER = "select fewer loops, streams or threads"
_NOT_TAKEN, _TAKEN, _INDIRECT, _LOOP = 1, 2, 3, 4  # tables::branches::StepKind
_MOST_STEPS = 64  # that a text has
_Step = tuple[int, int, int, int]  # parent, kind, from_ip, to_ip


class _Paths:
    """The tries of all streams as one. Node 0 is none."""

    def __init__(self) -> None:
        self.numbers: dict[_Step, int] = {}
        self.parent, self.loop, self.depth = [0], [-1], [0]
        self.steps: list[tuple[int, int, int]] = [(0, 0, 0)]
        self.rounds, self.exits = [0], [0]
        self.others: dict[int, list[int]] = {}  # by loop: rounds and exits of paths without a node

    def add(self, nodes: dict[str, NDArray[Any]]) -> None:
        """Add the nodes of a stream: of each loop first the root, and the one of further paths."""
        merged = np.zeros(len(nodes["loop"]), np.int64)
        names = ("parent", "kind", "from_ip", "to_ip", "loop", "rounds", "exits")
        rows = zip(*(nodes[name].tolist() for name in names), strict=True)
        begun: set[int] = set()
        for number, (parent, kind, source, target, loop, rounds, exits) in enumerate(rows):
            if loop < 0:
                continue
            if kind == 0 and loop in begun:
                sums = self.others.setdefault(loop, [0, 0])
                sums[0] += rounds
                sums[1] += exits
                continue
            begun.add(loop)
            # The root of a loop has its number instead of addresses.
            key = (int(merged[parent]), kind, source or loop, target)
            at = self.numbers.setdefault(key, len(self.parent))
            if at == len(self.parent):
                self.parent.append(key[0])
                self.loop.append(loop)
                self.depth.append(self.depth[key[0]] + (kind != 0))
                self.steps.append((kind, source, target))
                self.rounds.append(0)
                self.exits.append(0)
            self.rounds[at] += rounds
            self.exits[at] += exits
            merged[number] = at

    def text(self, node: int, head: int) -> str:
        """Steps of a path, with offsets from the head."""
        found = []
        while self.steps[node][0]:
            found.append(_step(*self.steps[node], head))
            node = self.parent[node]
        found.reverse()
        more = len(found) - _MOST_STEPS
        return " ".join(found if more <= 0 else [*found[:_MOST_STEPS], f"... {more:,} more"]) or "straight"


def _step(kind: int, source: int, target: int, head: int) -> str:
    if kind == _LOOP:
        return f"loop({target - head:+#x})"
    if kind == _INDIRECT:
        return f"{source - head:+#x}->{target:#x}" if target else f"{source - head:+#x}->?"
    return f"{source - head:+#x}:{'taken' if kind == _TAKEN else 'not'}"


def read_loop_paths(
    plan: Plan, window: Window | None, loops: CodeLoops, wanted: NDArray[np.bool_], limit: int | None
) -> Table:
    """Count the paths through loops.

    Parameters
    ----------
    plan : Plan
        Of calls.
    window : Window or None
    loops : CodeLoops
    wanted : numpy.ndarray of bool
        Loops of which paths are counted.
    limit : int or None
        Paths of each loop that have a row of their own; None: all.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for calls.
    """
    query = call_query(plan, window=window)
    try:
        streams, *sides = _core.read_loop_paths(query, loops.map, wanted.astype(np.uint8))
    except MemoryError:
        raise too_large("the paths", query, _FEWER) from None
    paths = _Paths()
    for nodes in streams:
        paths.add(nodes)
    table = _table(plan, paths, loops, limit)
    table.errors, table.gaps = side_tables(plan, sides)
    return table


def _table(plan: Plan, paths: _Paths, loops: CodeLoops, limit: int | None) -> Table:
    rounds, exits, loop = (np.array(one, np.int64) for one in (paths.rounds, paths.exits, paths.loop))
    count = rounds + exits
    nodes = np.flatnonzero(count)
    order = nodes[np.lexsort((-count[nodes], loop[nodes], -loops.instructions[loop[nodes]]))]
    rows: list[tuple[int, int, int, int, str, int]] = []  # loop, rounds, exits, steps, text, paths
    is_rest: list[bool] = []
    is_more: list[bool] = []
    for number in dict.fromkeys(loop[order].tolist()):
        own = order[loop[order] == number]
        alone, rest = own[:limit], own[len(own[:limit]) :]
        for node in alone.tolist():
            text = paths.text(node, int(loops.head[number]))
            rows.append((number, paths.rounds[node], paths.exits[node], paths.depth[node], text, 1))
        more = paths.others.get(number, [0, 0])
        has_more = bool(sum(more))
        if len(rest) or has_more:
            sums = int(rounds[rest].sum()) + more[0], int(exits[rest].sum()) + more[1]
            least = len(rest) + has_more
            rows.append((number, *sums, 0, f"{least:,}{' or more' if has_more else ''} other paths", least))
        is_rest += [False] * len(alone) + [True] * (len(rows) - len(is_rest) - len(alone))
        is_more += [False] * (len(rows) - len(is_more) - 1) + [has_more]
    numbers = np.array([row[0] for row in rows], np.int64)
    cells: dict[str, NDArray[Any]] = {
        name: np.array([row[column] for row in rows], np.int64)
        for name, column in (("rounds", 1), ("exits", 2), ("steps", 3), ("paths", 5))
    }
    total = np.zeros(len(loops.head), np.int64)
    np.add.at(total, numbers, cells["rounds"] + cells["exits"])
    cells["head_ip"], cells["space"] = loops.head[numbers], loops.space[numbers]
    cells["share"] = (cells["rounds"] + cells["exits"]) / total[numbers]
    rest_flags, more_flags = np.array(is_rest, np.bool_), np.array(is_more, np.bool_)
    flags = bits_of("loop_paths", is_rest=rest_flags, more_paths=more_flags)
    texts = {"path": [row[4] for row in rows]}
    return table_of(plan, "loop_paths", cells, "head_ip", flags, texts)
