"""Costs of two runs by function, call and line, and which function of one build is which of the other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ptkit import _core
from ptkit.analysis.diff.named import is_jit_list
from ptkit.analysis.diff.strands import Part
from ptkit.support.text import module_name

__all__ = [
    "CallRow",
    "Cost",
    "FunctionKey",
    "FunctionRow",
    "LineRow",
    "Matching",
    "base_name",
    "call_rows",
    "function_rows",
    "line_rows",
    "matched_functions",
]

# Names that compilers give to parts and copies of a function.
_SPLIT = re.compile(
    r"\s*\[clone [^\]]*\]|\.(?:cold|part|constprop|isra|lto_priv|localalias|llvm|clone|__uniq)(?:\.\d+)*$"
)
_THREAD = re.compile(r"^thread \d+\b")
_NEAR_LINES = 60
_ENOUGH = 1.7  # points of a function that may have another name
_SHARE = 0.25  # by which costs of one function may differ


class FunctionKey(NamedTuple):
    """A function of a file."""

    module: str | None
    name: str


@dataclass
class Cost:
    """What a function did in one run.

    Attributes
    ----------
    count : int
        Calls.
    self_instructions, instructions : int
        Of the function alone, and with what it called.
    names : set of str
        As the build has them.
    source : str or None
    line : int
    is_inlined : bool
        It was inlined alone, not called.
    neighbours : set of FunctionKey
        Its callers and callees.
    """

    count: int = 0
    self_instructions: int = 0
    instructions: int = 0
    names: set[str] = field(default_factory=set)
    source: str | None = None
    line: int = 0
    is_inlined: bool = True
    neighbours: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True)
class FunctionRow:
    """A function of both runs, or of one: see `Difference.functions`."""

    key: FunctionKey
    a: Cost
    b: Cost
    matched: str
    other_name: str | None = None

    @property
    def delta(self) -> int:
        """Instructions that run b executed more."""
        return self.b.self_instructions - self.a.self_instructions


@dataclass(frozen=True)
class CallRow:
    """Calls of one function by another one."""

    caller: FunctionKey | None
    callee: FunctionKey
    counts: tuple[int, int]
    instructions: tuple[int, int]


@dataclass(frozen=True)
class LineRow:
    """A line of source code; without debug information, a function."""

    module: str | None
    function: str | None
    source: str | None
    line: int
    counts: tuple[int, int]
    instructions: tuple[int, int]

    @property
    def delta(self) -> int:
        """Instructions that run b executed more."""
        return self.instructions[1] - self.instructions[0]


def base_name(name: str) -> str:
    """Name of the function that a part or a copy is of."""
    name = _THREAD.sub("thread", name)
    while (found := _SPLIT.sub("", name)) != name:
        name = found
    return name


_Costs = dict[FunctionKey, Cost]
_Rename = Callable[[str | None], str | None]


def _rows(table: Any, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(table.named(name) for name in names), strict=True)


def _costs(part: Part, query: Mapping[str, Any], *, frames: str, inlines: bool, module_of: _Rename) -> _Costs:
    columns = [
        "function_full",
        "module",
        "count",
        "self_instructions",
        "instructions",
        "source",
        "line",
        "flags",
    ]
    table = part.functions(columns=columns, frames=frames, inlines=inlines, **query)
    found: _Costs = defaultdict(Cost)
    rows = _rows(table, *columns[:-1], "is_inlined")
    for name, module, count, own, total, source, line, is_inlined in rows:
        name = name or "[unknown]"
        key = FunctionKey(module_of(module), base_name(name))
        cost = found[key]
        cost.names.add(name)
        cost.self_instructions += own
        cost.instructions = max(cost.instructions, total)
        cost.is_inlined &= bool(is_inlined)
        if name == key.name or not cost.count:
            cost.count = cost.count + count if is_inlined or name == key.name else max(cost.count, count)
        if source is not None and (cost.source is None or name == key.name):
            cost.source, cost.line = source, line or 0
    return dict(found)


_Calls = dict[tuple[FunctionKey | None, FunctionKey], tuple[int, int]]


def _calls(part: Part, query: Mapping[str, Any], *, frames: str, inlines: bool, module_of: _Rename) -> _Calls:
    """Counts and instructions of calls by caller and callee."""
    columns = ["node", "parent", "function_full", "module", "count", "instructions", "flags"]
    tree = part.call_tree(columns=columns, frames=frames, inlines=inlines, **query)
    keys: dict[int, FunctionKey] = {}
    found: dict[tuple[FunctionKey | None, FunctionKey], list[int]] = defaultdict(lambda: [0, 0])
    for node, parent, name, module, count, total in _rows(tree, *columns[:-1]):
        keys[node] = key = FunctionKey(module_of(module), base_name(name or "[unknown]"))
        sums = found[(keys.get(parent) if parent is not None else None, key)]
        sums[0] += count
        sums[1] += total
    return {ends: (sums[0], sums[1]) for ends, sums in found.items()}


def _with_neighbours(costs: _Costs, calls: _Calls) -> None:
    for caller, callee in calls:
        if caller is None:
            continue
        if callee in costs:
            costs[callee].neighbours.add(("from", caller.name))
        if caller in costs:
            costs[caller].neighbours.add(("to", callee.name))


def _renames(module_of: _Rename) -> tuple[_Rename, _Rename]:
    """Names of files of each run; lists of JIT code, of which each process has another one, have none."""

    def without_lists(rename: _Rename) -> _Rename:
        return lambda module: None if module is None or is_jit_list(module) else rename(module)

    return without_lists(lambda module: module), without_lists(module_of)


@dataclass(frozen=True)
class Matching:
    """Which function of run b is which of run a.

    Attributes
    ----------
    rows : list of FunctionRow
        All functions, by most instructions more or less.
    keys : mapping of FunctionKey to FunctionKey
        Of functions of run b with another name in run a.
    calls : tuple of mapping
        Of each run.
    """

    rows: list[FunctionRow]
    keys: Mapping[FunctionKey, FunctionKey]
    calls: tuple[_Calls, _Calls]


def function_rows(
    parts: tuple[Part, Part],
    queries: tuple[Mapping[str, Any], Mapping[str, Any]],
    *,
    two_builds: bool,
    frames: str,
    module_of: _Rename,
) -> Matching:
    """Match the functions of two runs.

    Parameters
    ----------
    parts : tuple of Part
    queries : tuple of mapping
        Selection in each run.
    two_builds : bool
        Functions may have other names, and may be inlined in one run.
    frames : str
        As for `Trace.functions`.
    module_of : callable
        Name in run a of a file of run b.
    """
    renames = _renames(module_of)
    costs = [
        _costs(part, query, frames=frames, inlines=two_builds, module_of=rename)
        for part, query, rename in zip(parts, queries, renames, strict=True)
    ]
    calls = [
        _calls(part, query, frames=frames, inlines=two_builds, module_of=rename)
        for part, query, rename in zip(parts, queries, renames, strict=True)
    ]
    other: dict[FunctionKey, tuple[FunctionKey, str]] = {}
    if two_builds:
        for some, of_some in zip(costs, calls, strict=True):
            _with_neighbours(some, of_some)
        other = matched_functions(costs[0], costs[1])
    taken = {key for key, _ in other.values()}
    rows = [
        FunctionRow(key, costs[0][key], costs[1][found[0]], found[1], found[0].name)
        for key, found in other.items()
    ]
    for key in dict.fromkeys([*costs[0], *costs[1]]):
        if key in other or (key in taken and key not in costs[0]):
            continue
        a, b = costs[0].get(key), costs[1].get(key) if key not in taken else None
        rows.append(FunctionRow(key, a or Cost(), b or Cost(), _how(a, b)))
    rows.sort(key=_rank)
    return Matching(rows, {found[0]: key for key, found in other.items()}, (calls[0], calls[1]))


def _how(a: Cost | None, b: Cost | None) -> str:
    if a is None or b is None:
        return "only in a" if b is None else "only in b"
    if a.is_inlined != b.is_inlined:
        return "inlined in a" if a.is_inlined else "inlined in b"
    return "name" if a.names == b.names else "name; parts joined"


def _rank(row: FunctionRow) -> tuple[int, int, str]:
    return -abs(row.delta), -abs(row.b.count - row.a.count), row.key.name


def matched_functions(a: _Costs, b: _Costs) -> dict[FunctionKey, tuple[FunctionKey, str]]:
    """Functions of run a with another name in run b, and how they were found."""
    left, right = [key for key in a if key not in b], [key for key in b if key not in a]
    found: dict[FunctionKey, tuple[FunctionKey, str]] = {}
    # Debug information names inlined functions without parameters.
    shorts = [_by_short_name(keys) for keys in (left, right)]
    for short in shorts[0].keys() & shorts[1].keys():
        if len(shorts[0][short]) == len(shorts[1][short]) == 1:
            key, other = shorts[0][short][0], shorts[1][short][0]
            found[key] = other, _how(a[key], b[other]).replace("; parts joined", "")
    taken = {key for key, _ in found.values()}
    scores = [
        (_score(a[key], b[other]), key, other)
        for key in left
        if key not in found
        for other in right
        if other not in taken and key.module == other.module
    ]
    scores.sort(key=lambda one: (-one[0], one[1], one[2]))
    for score, key, other in scores:
        if score >= _ENOUGH and key not in found and other not in taken:
            found[key] = other, "renamed"
            taken.add(other)
    return found


def _by_short_name(keys: Sequence[FunctionKey]) -> dict[tuple[str | None, str], list[FunctionKey]]:
    found: dict[tuple[str | None, str], list[FunctionKey]] = defaultdict(list)
    for key, short in zip(keys, _core.short_names([key.name for key in keys]), strict=True):
        found[(key.module, short)].append(key)
    return found


def _score(a: Cost, b: Cost) -> float:
    """How likely a function has another name, at most 3: by its line, callers and callees, and cost."""
    has_lines = a.source is not None and b.source is not None
    points = 0.0
    if has_lines and module_name(a.source or "") == module_name(b.source or ""):
        points += max(1 - abs(a.line - b.line) / _NEAR_LINES, 0)
    elif has_lines:
        return 0
    both = len(a.neighbours | b.neighbours)
    points += len(a.neighbours & b.neighbours) / both if both else 0
    most = max(a.self_instructions, b.self_instructions)
    is_alike = abs(a.self_instructions - b.self_instructions) <= _SHARE * most
    return points + (is_alike and (has_lines or a.count == b.count))


def call_rows(matching: Matching) -> list[CallRow]:
    """Calls of which the counts differ, those that one run alone has first."""
    a, others = matching.calls
    keys = matching.keys
    b: dict[tuple[FunctionKey | None, FunctionKey], list[int]] = defaultdict(lambda: [0, 0])
    for (caller, callee), sums in others.items():
        ends = None if caller is None else keys.get(caller, caller), keys.get(callee, callee)
        b[ends][0] += sums[0]
        b[ends][1] += sums[1]
    found = []
    for ends in dict.fromkeys([*a, *b]):
        mine, theirs = a.get(ends, (0, 0)), b.get(ends, [0, 0])
        if mine[0] != theirs[0]:
            found.append(CallRow(*ends, (mine[0], theirs[0]), (mine[1], theirs[1])))
    found.sort(
        key=lambda row: (
            min(row.counts) > 0,
            -abs(row.instructions[1] - row.instructions[0]),
            -abs(row.counts[1] - row.counts[0]),
            row.callee.name,
        )
    )
    return found


def line_rows(
    parts: tuple[Part, Part],
    queries: tuple[Mapping[str, Any], Mapping[str, Any]],
    *,
    module_of: _Rename,
) -> list[LineRow]:
    """Lines of both runs, by most instructions more or less."""
    columns = ["function_full", "module", "source", "line", "count", "self_instructions"]
    sums: dict[tuple[Any, ...], list[Any]] = {}
    renames = _renames(module_of)
    for side, (part, query) in enumerate(zip(parts, queries, strict=True)):
        table = part.functions(by="line", columns=columns, **query)
        for name, module, source, line, count, own in _rows(table, *columns):
            file = renames[side](module)
            function = base_name(name or "[unknown]")
            key: tuple[Any, ...] = (source, line) if source is not None else (None, file, function)
            row = sums.setdefault(key, [file, function, source, line or 0, [0, 0], [0, 0]])
            row[4][side] += count
            row[5][side] += own
    found = [
        LineRow(file, function, source, line, (counts[0], counts[1]), (own[0], own[1]))
        for file, function, source, line, counts, own in sums.values()
    ]
    found.sort(
        key=lambda row: (-abs(row.delta), -abs(row.counts[1] - row.counts[0]), row.source or "", row.line)
    )
    return found
