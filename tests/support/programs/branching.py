"""Branches of small made programs, of which the decisions are known: truth for comparing two runs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import BranchKind

__all__ = ["Execution", "Program", "TooLongError", "arrays_of", "run_again"]

_FUNCTION = 0x10000  # bytes
_MOST_ROWS = 20_000

Path = tuple[int, ...]


class TooLongError(Exception):
    """The program executes too many branches."""


@dataclass
class Block:
    """Statements that follow each other."""

    statements: list[Statement] = field(default_factory=list)


@dataclass
class Statement:
    """One statement: an ``if`` with two blocks, a loop with a block, or a call."""

    kind: str
    ip: int
    blocks: list[Block]
    callee: int = 0
    end: int = 0  # of a loop: the branch that goes back


class Program:
    """Functions of random statements; each one calls those after it alone."""

    def __init__(self, seed: int, functions: int = 5, statements: int = 5) -> None:
        self._random = random.Random(seed)
        self._next = 0
        self.functions = []
        for number in range(functions):
            self._next = (number + 1) * _FUNCTION
            self.functions.append(self._block(number, functions, statements, depth=0))

    def _location(self) -> int:
        self._next += self._random.randrange(4, 40)
        return self._next

    def _block(self, function: int, functions: int, statements: int, depth: int) -> Block:
        block = Block()
        for _ in range(self._random.randint(1, statements)):
            kinds = ["call", "call"] if function + 1 < functions else []
            kinds += ["if", "if", "loop"] if depth < 3 else ["plain"]
            kind = self._random.choice(kinds or ["plain"])
            ip = self._location()
            if kind == "if":
                sides = [self._block(function, functions, 2, depth + 1) for _ in range(2)]
                block.statements.append(Statement(kind, ip, sides))
            elif kind == "loop":
                body = self._block(function, functions, 3, depth + 1)
                block.statements.append(Statement(kind, ip, [body], end=self._location()))
            elif kind == "call":
                callee = self._random.randrange(function + 1, functions)
                block.statements.append(Statement(kind, ip, [], callee))
        return block


class Execution:
    """The branches of a run, and the decisions that it took.

    Parameters
    ----------
    program : Program
    seed : int
        Of the decisions: a decision depends on it, and on how the statement was reached, alone.
    changed : mapping of paths to int
        Decisions that differ: added to the number of trips, or to the side of an ``if``.
    """

    def __init__(self, program: Program, seed: int, changed: Mapping[Path, int] | None = None) -> None:
        self._program = program
        self.seed = seed
        self._changed = changed or {}
        self.rows: list[tuple[int, int, BranchKind]] = []
        self.decisions: dict[Path, int] = {}  # addresses of the statements
        self._function(0, (), 0)

    def _decision(self, path: Path, ip: int, most: int) -> int:
        self.decisions[path] = ip
        chosen = hash((self.seed, path)) // 7 % most
        return (chosen + self._changed.get(path, 0)) % max(most, 8 if most > 2 else 2)

    def _function(self, number: int, path: Path, caller: int) -> None:
        self._run(self._program.functions[number], path)
        end = (number + 2) * _FUNCTION - 16
        self.rows.append((end, caller + 5, BranchKind.RETURN))

    def _run(self, block: Block, path: Path) -> None:
        for at, one in enumerate(block.statements):
            if len(self.rows) > _MOST_ROWS:
                raise TooLongError
            here = (*path, at)
            if one.kind == "call":
                self.rows.append((one.ip, (one.callee + 1) * _FUNCTION, BranchKind.CALL))
                self._function(one.callee, here, one.ip)
            elif one.kind == "if":
                side = self._decision(here, one.ip, 2)
                self.rows.append((one.ip, one.ip + (3 if side else 2), BranchKind.COND))
                self._run(one.blocks[side], (*here, side))
            elif one.kind == "loop":
                trips = self._decision(here, one.end, 5)
                for trip in range(trips + 1):
                    self._run(one.blocks[0], (*here, trip))
                    target = one.ip if trip < trips else one.end + 2
                    self.rows.append((one.end, target, BranchKind.COND))


def run_again(program: Program, run: Execution, seed: int, count: int) -> tuple[Execution, list[int]]:
    """A run that decides otherwise at some statements, none within another one, and their addresses."""
    chooser = random.Random(seed)
    paths = list(run.decisions)
    changed: dict[Path, int] = {}
    for path in chooser.sample(paths, min(len(paths), count)):
        if not any(path[: len(one)] == one or one[: len(path)] == path for one in changed):
            changed[path] = 1
    return Execution(program, run.seed, changed), [run.decisions[path] for path in paths if path in changed]


def arrays_of(rows: Sequence[tuple[int, int, BranchKind]]) -> dict[str, NDArray[Any]]:
    """Columns of branches as the comparison takes them."""
    from_ip, to_ip, kind = (list(one) for one in zip(*rows, strict=True)) if rows else ([], [], [])
    size = len(rows)
    return {
        "from_ip": np.array(from_ip, np.uint64),
        "to_ip": np.array(to_ip, np.uint64),
        "kind": np.array(kind, np.uint8),
        "flags": np.zeros(size, np.uint8),
        "instruction": np.arange(size, dtype=np.int64) * 5,
        "stream": np.zeros(size, np.uint32),
        "space": np.zeros(size, np.uint32),
        "known": np.ones(size, np.bool_),
        "to_known": np.array([kind not in (BranchKind.SYSCALL, BranchKind.ASYNC) for kind in kind], np.bool_),
    }
