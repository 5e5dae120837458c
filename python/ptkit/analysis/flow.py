"""Flow of control within a function: its blocks, loops, and the path that was executed most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptkit import _core

__all__ = ["JUMPS", "FunctionFlow", "Jumps", "Loop"]

_KIND = _core.BranchKind
#: Branches within a function. A return goes on behind its call; events come back to where they were.
JUMPS = tuple(int(kind) for kind in (_KIND.COND, _KIND.JUMP, _KIND.JUMP_INDIRECT))
_ENTERING = (*JUMPS, int(_KIND.CALL), int(_KIND.CALL_INDIRECT), int(_KIND.FAR_CALL))
#: Instructions with such a branch have no next instruction but its targets.
_ENDING = (*JUMPS, *(int(kind) for kind in (_KIND.RETURN, _KIND.FAR_RETURN, _KIND.FAR_JUMP, _KIND.IRET)))
_ROOT = -1

_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Jumps:
    """Branches by the instructions at their ends.

    Attributes
    ----------
    source, target : numpy.ndarray of int64, shape (n,)
        Index of the instruction; -1: it is not of the function.
    kind : numpy.ndarray of uint8, shape (n,)
    count : numpy.ndarray of int64, shape (n,)
    """

    source: _Indices
    target: _Indices
    kind: NDArray[np.uint8]
    count: _Indices


@dataclass(frozen=True)
class Loop:
    """A loop of which the head is the only way in.

    Attributes
    ----------
    head : int
        Its first instruction: the target of a branch, or of the flow, back to it.
    rows : numpy.ndarray of int64
        All its instructions, ascending.
    count : int
        Executions of the head.
    entries : int
        Those that came from outside of the loop.
    """

    head: int
    rows: _Indices
    count: int
    entries: int

    @property
    def mean(self) -> float | None:
        """Executions of the head for each entry; None: no entry is in the trace."""
        return self.count / self.entries if self.entries else None


class FunctionFlow:
    """Flow between the executed instructions of a function.

    Parameters
    ----------
    count : numpy.ndarray of int64, shape (n,)
        Executions of each instruction, in the order of addresses.
    follows : numpy.ndarray of bool, shape (n,)
        The instruction begins where the one before it ends.
    jumps : Jumps
    """

    def __init__(self, count: _Indices, follows: NDArray[np.bool_], jumps: Jumps) -> None:
        self._count, self._follows, self._jumps = count, follows, jumps
        size = len(count)
        entered = np.isin(jumps.kind, _ENTERING) & (jumps.target >= 0)
        begins = ~follows
        begins[jumps.target[jumps.target >= 0]] = True
        begins[1:] |= count[1:] != count[:-1]
        left = jumps.source[jumps.source >= 0] + 1
        begins[left[left < size]] = True
        self._first = np.flatnonzero(begins)
        self._block = np.cumsum(begins) - 1
        into = np.zeros(size, np.int64)  # by branches
        np.add.at(into, jumps.target[entered], jumps.count[entered])
        is_own = np.isin(jumps.kind, JUMPS) & (jumps.source >= 0) & (jumps.target >= 0)
        self._to: list[dict[int, int]] = [{} for _ in self._first]
        for source, target, times in zip(
            *(cells[is_own].tolist() for cells in (jumps.source, jumps.target, jumps.count)), strict=True
        ):
            self._add(int(self._block[source]), int(self._block[target]), times)
        self._add_straight(into)
        outside = entered & ~is_own
        self._entered = np.zeros(len(self._first), np.int64)
        np.add.at(self._entered, self._block[jumps.target[outside]], jumps.count[outside])

    def _add(self, source: int, target: int, count: int) -> None:
        self._to[source][target] = self._to[source].get(target, 0) + count

    def _add_straight(self, into: _Indices) -> None:
        """Add flow from one block to the next one in memory."""
        ends = np.zeros(len(self._count), np.bool_)
        ended = np.isin(self._jumps.kind, _ENDING) & (self._jumps.source >= 0)
        ends[self._jumps.source[ended]] = True
        for block, first in enumerate(self._first.tolist()):
            straight = int(self._count[first] - into[first])
            if first and self._follows[first] and not ends[first - 1] and straight > 0:
                self._add(block - 1, block, straight)

    @cached_property
    def _from(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self._to]
        for source, targets in enumerate(self._to):
            for target in targets:
                found[target].append(source)
        return found

    @cached_property
    def _walk(self) -> tuple[list[int], set[int]]:
        """Blocks in reverse postorder, and those that control comes to from outside."""
        begins = [block for block, sources in enumerate(self._from) if not sources or self._entered[block]]
        roots = set(begins)
        seen: set[int] = set()
        order: list[int] = []
        # Loops of which no entry is in the trace begin anywhere.
        for begin in [*reversed(begins), *range(len(self._to))]:
            if begin in seen:
                continue
            seen.add(begin)
            roots.add(begin)
            stack = [(begin, iter(self._to[begin]))]
            while stack:
                block, targets = stack[-1]
                target = next((one for one in targets if one not in seen), None)
                if target is None:
                    order.append(block)
                    stack.pop()
                else:
                    seen.add(target)
                    stack.append((target, iter(self._to[target])))
        return order[::-1], roots

    @cached_property
    def _dominators(self) -> list[int]:
        """The immediate dominator of each block (Cooper, Harvey and Kennedy)."""
        order, roots = self._walk
        rank = {block: number for number, block in enumerate(order)}
        rank[_ROOT] = -1
        above: dict[int, int] = {_ROOT: _ROOT}

        def common(one: int, other: int) -> int:
            while one != other:
                while rank[one] > rank[other]:
                    one = above[one]
                while rank[other] > rank[one]:
                    other = above[other]
            return one

        changed = True
        while changed:
            changed = False
            for block in order:
                sources = [one for one in self._from[block] if one in above]
                found = _ROOT if block in roots or not sources else sources[0]
                for one in sources[1:]:
                    found = common(found, one)
                if above.get(block) != found:
                    above[block], changed = found, True
        return [above[block] for block in range(len(self._to))]

    def _dominates(self, block: int, other: int) -> bool:
        while other not in (block, _ROOT):
            other = self._dominators[other]
        return other == block

    @cached_property
    def _backs(self) -> tuple[dict[int, list[int]], int]:
        """Sources of back edges by their targets, and how many targets have further ways in."""
        rank = {block: number for number, block in enumerate(self._walk[0])}
        backs: dict[int, list[int]] = {}
        several: set[int] = set()
        for source, targets in enumerate(self._to):
            for target in targets:
                if rank[target] > rank[source]:
                    continue
                if self._dominates(target, source):
                    backs.setdefault(target, []).append(source)
                else:
                    several.add(target)
        return backs, len(several)

    @property
    def other_loops(self) -> int:
        """Loops that are entered in several places: they have no rounds."""
        return self._backs[1]

    @cached_property
    def _inside(self) -> dict[int, set[int]]:
        """Blocks of each loop, by its head."""
        found = {}
        for head, sources in sorted(self._backs[0].items()):
            inside, stack = {head}, list(sources)
            while stack:
                block = stack.pop()
                if block not in inside:
                    inside.add(block)
                    stack += self._from[block]
            found[head] = inside
        return found

    def loops(self) -> list[Loop]:
        """Loops by their heads; one for each head."""
        found = []
        for head, inside in self._inside.items():
            first = int(self._first[head])
            count, back = int(self._count[first]), sum(self._to[one][head] for one in self._backs[0][head])
            rows = np.flatnonzero(np.isin(self._block, list(inside)))
            found.append(Loop(first, rows, count, max(count - back, 0)))
        return found

    def hottest(self, entry: int | None = None) -> NDArray[np.bool_]:
        """Which instructions lie on the hottest path.

        It begins at an instruction, or where the function was entered most often, and goes on along the edge
        that was executed most. Where that closes a loop, it leaves the loop where that was left most often.
        """
        path: dict[int, None] = {}  # ordered
        if self._to:
            most = int(np.argmax(self._entered)) if self._entered.any() else self._walk[0][0]
            self._follow(most if entry is None else int(self._block[entry]), path)
        return np.isin(self._block, list(path))

    def _follow(self, block: int, path: dict[int, None]) -> None:
        following: int | None = block
        while following is not None:
            path[following] = None
            targets = self._to[following]
            best = max(targets, key=lambda one: (targets[one], -one), default=None)
            following = best if best not in path else self._exit(path, best)

    def _exit(self, path: dict[int, None], head: int | None) -> int | None:
        """The most frequent way out of the loop that the path came back to."""
        inside = self._inside.get(-1 if head is None else head, set(path))
        ways = [
            (count, -target)
            for block in inside
            for target, count in self._to[block].items()
            if target not in inside and target not in path
        ]
        return -max(ways)[1] if ways else None
