"""Which thread of one run has the role of which thread of the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ptkit.analysis.diff.strands import Strand
from ptkit.support.text import module_name

__all__ = ["Pair", "paired"]

_One = TypeVar("_One")


@dataclass(frozen=True)
class Pair:
    """Two threads that are compared, or one that the other run does not have.

    Attributes
    ----------
    a, b : Strand or None
    role : str
        The first own function of the thread; empty: not known.
    how : str
        Why they are compared.
    """

    a: Strand | None
    b: Strand | None
    role: str
    how: str


def _matched(
    some: Iterable[_One], others: Iterable[_One], key: Callable[[_One], Hashable]
) -> tuple[list[tuple[_One, _One]], list[_One], list[_One]]:
    """Pairs with equal keys, in their order, and what is left of each."""
    waiting: dict[Hashable, list[_One]] = defaultdict(list)
    for one in others:
        waiting[key(one)].append(one)
    pairs, left = [], []
    for one in some:
        queue = waiting[key(one)]
        if queue:
            pairs.append((one, queue.pop(0)))
        else:
            left.append(one)
    rest = {id(one) for queue in waiting.values() for one in queue}
    return pairs, left, [one for one in others if id(one) in rest]


_Process = list[Strand]


def _processes(strands: Sequence[Strand]) -> list[_Process]:
    found: dict[tuple[int, int], _Process] = {}
    for one in strands:
        found.setdefault((one.pid, one.space), []).append(one)
    return list(found.values())


def _program(process: _Process) -> str:
    return module_name(process[0].program) or process[0].name


def paired(a: Sequence[Strand], b: Sequence[Strand], role_of: Callable[[Strand], str]) -> list[Pair]:
    """Pair threads: of processes of one program in the order of creation, those with one first function.

    Parameters
    ----------
    a, b : sequence of Strand
        In the order of creation.
    role_of : callable
        Gives the name of the first own function of a thread.
    """
    pairs, left, right = _matched(_processes(a), _processes(b), _program)
    # What is left are other programs: of two runs of one program each, that is what is to be compared.
    other = {id(one) for one, _ in zip(left, right, strict=False)}
    pairs += zip(left, right, strict=False)
    count = min(len(left), len(right))
    found = []
    for mine, theirs in pairs:
        how = "process, in the order of creation" if id(mine) in other else "program and order of creation"
        found += _threads(mine, theirs, how, role_of)
    for process in left[count:]:
        found += [Pair(one, None, "", "the other run has no such process") for one in process]
    for process in right[count:]:
        found += [Pair(None, one, "", "the other run has no such process") for one in process]
    order = {id(one): at for at, one in enumerate(a)}
    return sorted(found, key=lambda pair: order.get(id(pair.a), len(order)))


def _threads(mine: _Process, theirs: _Process, how: str, role_of: Callable[[Strand], str]) -> list[Pair]:
    if len(mine) == len(theirs) == 1:
        return [Pair(mine[0], theirs[0], "", how)]
    roles = {id(one): role_of(one) for one in (*mine, *theirs)}
    first, *rest = [Pair(mine[0], theirs[0], roles[id(mine[0])], f"{how}: first thread")]
    pairs, left, right = _matched(mine[1:], theirs[1:], lambda one: roles[id(one)])
    rest = [Pair(one, other, roles[id(one)], f"{how}; {_why(roles[id(one)])}") for one, other in pairs]
    none = "the other run has no such thread"
    rest += [Pair(one, None, roles[id(one)], none) for one in left]
    rest += [Pair(None, one, roles[id(one)], none) for one in right]
    return [first, *rest]


def _why(role: str) -> str:
    return "first function and order of creation" if role else "order of creation"
