"""What holds for the frames of any recording: counts are never above the executions, instructions add up."""

from __future__ import annotations

from typing import Any

import numpy as np

import ptkit

_COLUMNS = ["function", "entry_ip", "space", "count", "self_instructions", "flags"]


def false_counts(trace: ptkit.Trace) -> list[str]:
    """Entries with traced code that count more calls than executions of their first instruction."""
    executed = trace.instructions(columns=["ip"])
    ips, spaces = (np.asarray(executed[name]).astype(np.uint64) for name in ("ip", "space"))
    (places, times) = np.unique(np.stack([ips, spaces]), axis=1, return_counts=True)
    known = dict(zip(zip(*places.tolist(), strict=True), times.tolist(), strict=True))
    entries = trace.functions("entry", columns=_COLUMNS)
    traced = entries[entries["entry_known"] & (entries["self_instructions"] > 0)]
    columns = (traced[name].tolist() for name in ("entry_ip", "space", "count"))
    return [
        f"{name}: {count} calls, {known.get((entry, space), 0)} executions of {entry:#x}"
        for name, entry, space, count in zip(traced.named("function"), *columns, strict=True)
        if count > known.get((entry, space), 0)
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
        places = np.argsort(ends, kind="stable")
        ends, owners = ends[places], owners[places]
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


def check_sums(trace: ptkit.Trace) -> None:
    """All ways to sum up frames have the same numbers."""
    calls = trace.calls()
    begun, undecided = calls["begin_seen"], calls["undecided"]
    functions, tree = trace.functions(), trace.call_tree()
    for sums in (functions, calls.functions(), tree, calls.tree()):
        assert sums["count"].sum() == np.count_nonzero(begun)
        assert sums["begin_unseen"].sum() == len(calls) - np.count_nonzero(begun)
        assert sums["self_instructions"].sum() == calls["self_instructions"].sum()
        assert sums["count_exact"].all() == (not undecided.any())
    for name in ("count", "begin_unseen", "count_exact", "instructions"):
        np.testing.assert_array_equal(functions[name], calls.functions()[name], err_msg=name)
        np.testing.assert_array_equal(tree[name], calls.tree()[name], err_msg=name)
    parts = list(trace.iter_calls())
    assert sum(np.count_nonzero(part["begin_seen"]) for part in parts) == np.count_nonzero(begun)
    assert sum(np.count_nonzero(part["undecided"]) for part in parts) == np.count_nonzero(undecided)
    assert not (calls["exact"] & undecided).any()
