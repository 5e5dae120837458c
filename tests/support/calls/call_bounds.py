"""Properties of the frames of any recording: counts are never above the executions, instructions add up."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import ptkit
from ptkit.cli.main import main

_COLUMNS = ["function", "entry_ip", "space", "count", "self_instructions", "flags"]


def false_counts(trace: ptkit.Trace) -> list[str]:
    """Entries with traced code that count more calls than executions of their first instruction."""
    entries = trace.functions("entry", columns=_COLUMNS)
    traced = entries[entries["entry_known"] & (entries["self_instructions"] > 0)]
    columns = (traced[name].tolist() for name in ("entry_ip", "space", "count"))
    entries = np.unique(np.asarray(traced["entry_ip"]).astype(np.uint64))
    known: Counter[tuple[int, int]] = Counter()
    for part in trace.iter_instructions(columns=["ip"], reuse=True):
        rows = np.flatnonzero(np.isin(part["ip"], entries))
        known.update(zip(part["ip"][rows].tolist(), part["space"][rows].tolist(), strict=True))
    return [
        f"{name}: {count} calls, {known[entry, space]} executions of {entry:#x}"
        for name, entry, space, count in zip(traced.named("function"), *columns, strict=True)
        if count > known[entry, space]
    ]


def false_instructions(trace: ptkit.Trace) -> list[str]:
    """Frames that never left their stack, and have not the instructions between their begin and their end.

    A stack was left where a frame of another one begins or ends. Of undecided frames that is not known.
    """
    calls: Any = trace.calls(
        columns=["id", "parent", "tsc", "flags", "instructions", "instruction", "end_instruction", "function"]
    )
    false = []
    for stream in range(len(trace.streams)):
        rows = calls[np.flatnonzero(calls["stream"] == stream)]
        order = np.argsort(rows["id"], kind="stable")
        rows = rows[order]
        number = {int(one): row for row, one in enumerate(rows["id"].tolist())}
        parents = [
            number[parent] if known else -1
            for parent, known in zip(rows["parent"].tolist(), rows["parent_known"].tolist(), strict=True)
        ]
        stacks = [-1] * len(rows)
        for row in range(len(rows)):
            path = [row]
            while stacks[path[-1]] < 0 and parents[path[-1]] >= 0:
                path.append(parents[path[-1]])
            stack = stacks[path[-1]] if stacks[path[-1]] >= 0 else path[-1]
            for one in path:
                stacks[one] = stack
        stack_of = np.array(stacks, np.int64)
        begin, end = (rows[name].astype(np.int64) for name in ("instruction", "end_instruction"))
        inside = rows["instructions"].astype(np.int64)
        ends = np.concatenate([begin, end])
        owners = np.concatenate([stack_of, stack_of])
        by_end = np.argsort(ends, kind="stable")
        ends, owners = ends[by_end], owners[by_end]
        changed = np.cumsum(np.diff(owners, prepend=owners[:1]) != 0)  # other stacks begin or end something
        first = np.searchsorted(ends, begin, "right") - 1
        last = np.searchsorted(ends, end, "left")
        never_left = changed[np.minimum(last, len(changed) - 1)] == changed[np.maximum(first, 0)]
        assert (inside <= end - begin).all()
        false += [
            f"stream {stream}, frame {rows['id'][row]}: {inside[row]} of {end[row] - begin[row]} instructions"
            for row in np.flatnonzero(never_left & ~rows["undecided"] & (inside != end - begin)).tolist()
        ]
    return false


def views(trace: ptkit.Trace) -> list[dict[str, Any]]:
    """The arguments of all views of frames that the trace has, but for the default one."""
    try:
        trace.call_tree(frames="python")
    except ptkit.ConfigError:
        return [{"inlines": True}]
    return [{"inlines": True}, {"frames": "python"}, {"frames": "mixed"}]


def check_sums(trace: ptkit.Trace) -> None:
    """All ways to sum up frames have the same numbers."""
    check_view(trace)
    for view in views(trace):
        check_view(trace, **view)


def check_view(trace: ptkit.Trace, **view: Any) -> None:
    """All ways to sum up the frames of one view have the same numbers."""
    calls: Any = trace.calls(**view)
    is_rest = (calls["how"] == ptkit.CallKind.INLINED) & calls["continues_known"]
    begun, unseen = calls["begin_seen"] & ~is_rest, ~calls["begin_seen"] & ~is_rest
    undecided = calls["undecided"]
    functions, tree = trace.functions(**view), trace.call_tree(**view)
    for sums in (functions, calls.functions(), tree, calls.tree()):
        assert sums["count"].sum() == np.count_nonzero(begun)
        assert sums["begin_unseen"].sum() == np.count_nonzero(unseen)
        assert sums["self_instructions"].sum() == calls["self_instructions"].sum()
        assert sums["count_exact"].all() == (not undecided.any())
    for name in ("count", "begin_unseen", "count_exact", "instructions"):
        np.testing.assert_array_equal(functions[name], calls.functions()[name], err_msg=name)
        np.testing.assert_array_equal(tree[name], calls.tree()[name], err_msg=name)
    for by in ("entry", "module"):
        for sums in (trace.functions(by, **view), calls.functions(by)):
            assert sums["count"].sum() == np.count_nonzero(begun)
            assert sums["begin_unseen"].sum() == np.count_nonzero(unseen)
    assert _by_name(tree) == _by_name(functions)
    assert not (calls["exact"] & undecided).any()
    if "frames" in view:  # iter_calls() has them as they are
        return
    parts: list[Any] = list(trace.iter_calls(**view))
    assert sum(len(part) for part in parts) == len(calls)
    assert sum(np.count_nonzero(part["begin_seen"]) for part in parts) == np.count_nonzero(
        calls["begin_seen"]
    )
    assert sum(np.count_nonzero(part["undecided"]) for part in parts) == np.count_nonzero(undecided)


def _by_name(sums: Any) -> Counter[tuple[str, str]]:
    """Calls, and frames without a begin, by name of the function."""
    found: Counter[tuple[str, str]] = Counter()
    names = sums.named("function")
    for kind in ("count", "begin_unseen"):
        for name, number in zip(names, sums[kind].tolist(), strict=True):
            found[kind, name] += number
    return +found


# Columns that verbs print.

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_Line = tuple[str, int, int, bool]  # name, calls, frames without a begin, whether these are certain


def check_printed(trace: ptkit.Trace, path: Path) -> None:
    """`ptkit functions`, `tree` and `calls` print the numbers of the tables; the trace is saved at `path`."""
    trace.save(path)
    saved = ptkit.open(path)
    for view in ({}, *views(saved)):
        options = ["--inlines"] if "inlines" in view else ["--frames", view["frames"]] if view else []
        for verb, sums in (("functions", saved.functions(**view)), ("tree", saved.call_tree(**view))):
            table = sorted(
                zip(
                    [name or "[unknown]" for name in sums.named("function")],
                    *(sums[name].tolist() for name in ("count", "begin_unseen", "count_exact")),
                    strict=True,
                )
            )
            assert sorted(_json_lines(verb, path, options)) == table, (verb, view)
            counts = sorted(line[1:] for line in table)
            assert sorted(line[1:] for line in _terminal_lines(verb, path, options)) == counts, (verb, view)
        if "frames" not in view:
            assert _json_calls(path, options) == _frames(saved.calls(**view)), view


class _Terminal(io.StringIO):
    """Verbs print headings on terminals only."""

    def isatty(self) -> bool:
        return True


def _printed(verb: str, path: Path, *options: str) -> list[str]:
    out = io.StringIO() if "--json" in options else _Terminal()
    with redirect_stdout(out), redirect_stderr(io.StringIO()) as said:
        assert main([verb, str(path), "--all", *options]) == 0, said.getvalue()
    return _COLOURS.sub("", out.getvalue()).splitlines()


def _json_lines(verb: str, path: Path, options: list[str]) -> list[_Line]:
    _, *rows = map(json.loads, _printed(verb, path, "--json", *options))
    return [
        (row["function"] or "[unknown]", row["count"], row["begin_unseen"], "count_exact" in row["flags"])
        for row in rows
    ]


def _terminal_lines(verb: str, path: Path, options: list[str]) -> list[_Line]:
    heading, *lines = _printed(verb, path, *options)
    heads = heading.split()
    calls = heads.index("calls")
    found = []
    for words in map(str.split, lines):
        count = words[calls]
        unseen = words[calls + 1] if heads[calls + 1] == "unseen" else "0"
        number, other = (int(word.removeprefix("~").replace(",", "")) for word in (count, unseen))
        found.append((words[-1], number, other, not count.startswith("~")))
    return found


def _frames(calls: Any) -> Counter[tuple[bool, bool]]:
    return Counter(zip(calls["begin_seen"].tolist(), calls["undecided"].tolist(), strict=True))


def _json_calls(path: Path, options: list[str]) -> Counter[tuple[bool, bool]]:
    _, *rows = map(json.loads, _printed("calls", path, "--json", *options))
    return Counter(("begin_seen" in row["flags"], "undecided" in row["flags"]) for row in rows)
