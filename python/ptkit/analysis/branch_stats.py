"""How branches behave: outcomes and runs of conditional ones, targets of indirect ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode import Plan, Window
from ptkit.decode.calls import call_query, side_tables, too_large
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table
from ptkit.table.made import TextColumns

__all__ = ["INDIRECT", "bits_of", "entropy", "read_branch_stats", "selected", "table_of", "target_table"]

_KIND = _core.BranchKind
#: Branches of which the targets are counted.
INDIRECT = (int(_KIND.JUMP_INDIRECT), int(_KIND.CALL_INDIRECT))
_FEWER = "select fewer streams or threads"
_Cells = dict[str, NDArray[Any]]


def bits_of(name: str, **flags: NDArray[np.bool_] | bool) -> Any:
    """The column `flags` of a table."""
    columns = schema_of(name).columns
    found: Any = np.uint8(0)
    for flag, is_set in flags.items():
        found = found | np.where(is_set, columns[flag].mask, 0).astype(np.uint8)
    return found


def table_of(
    plan: Plan,
    name: str,
    cells: _Cells,
    lines_of: str,
    flags: Any,
    more: Mapping[str, Sequence[str | None]] | None = None,
) -> Table:
    """Make a table in which addresses have names.

    Parameters
    ----------
    plan : Plan
    name : str
        Of its schema.
    cells : dict of str to numpy.ndarray
        Stored columns, without those that this adds.
    lines_of : str
        The column of addresses that ``source`` and ``line`` are of.
    flags : numpy.ndarray of uint8, shape (rows,)
        Without that of the line.
    more : mapping of str to sequence of str, optional
        Text columns.
    """
    schema = schema_of(name)
    sources, lines, files = _core.name_lines(plan.session, cells[lines_of], cells["space"], None)
    plan.after()  # warnings of debug files come about while lines are looked up
    texts = TextColumns()
    for column, values in (more or {}).items():
        texts.add_texts(column, values)
    texts.add("source", sources, files)
    whole = {
        **cells,
        "line": np.where(sources >= 0, lines, 0),
        "flags": flags | bits_of(name, line_known=sources >= 0),
    }
    arrays = {
        one: np.ascontiguousarray(whole[one]).astype(schema.columns[one].dtype)
        for one in schema.names("stored")
    }
    arrays |= texts.arrays
    for array in arrays.values():
        array.flags.writeable = False
    context = replace(plan.context, kept=texts.kept)
    data = Columns(schema, len(cells[lines_of]), arrays, context=context)
    return Table(data, columns=(*schema.names("stored"), *(more or {}), "source"))


def entropy(counts: NDArray[np.int64], group: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """Shannon entropy of each group's counts, in bits."""
    total = np.bincount(group, counts, groups)
    share = counts / total[group]
    bits = -share * np.log2(share, out=np.zeros_like(share), where=share > 0)
    return np.maximum(np.bincount(group, bits, groups), 0.0)  # not -0.0


def selected(plan: Plan, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which addresses are selected."""
    ranges = plan.selection.get("ips")
    kept = np.full(len(ips), not ranges, np.bool_)
    for low, last, space in ranges or ():
        inside = (ips >= np.uint64(low)) & (ips <= np.uint64(last))
        kept |= inside if space is None else inside & (spaces == space)
    return kept


def _selected(plan: Plan, cells: _Cells) -> _Cells:
    """Rows of branches at the selected addresses."""
    kept = selected(plan, cells["from_ip"], cells["space"])
    return {name: values[kept] for name, values in cells.items()}


def _groups(cells: _Cells) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Number of each edge's branch, and the first edge of each; edges are sorted by branch."""
    starts = np.ones(len(cells["from_ip"]), np.bool_)
    for name in ("space", "from_ip", "kind"):
        starts[1:] &= cells[name][1:] == cells[name][:-1]
    starts[1:] = ~starts[1:]
    return np.cumsum(starts) - 1, np.flatnonzero(starts)


def read_branch_stats(plan: Plan, window: Window | None) -> Table:
    """Read the statistics of conditional and of indirect branches.

    Parameters
    ----------
    plan : Plan
        Of calls.
    window : Window or None

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for calls.
    """
    query = call_query(plan, window=window, has_stacks=False)
    try:
        (conditional, indirect, is_whole), *sides = _core.read_branch_stats(query)
    except MemoryError:
        raise too_large("the branches", query, _FEWER) from None
    conditional, indirect = _selected(plan, conditional), _selected(plan, indirect)
    cells = _both(conditional, indirect)
    of_runs = np.concatenate(
        [conditional["exact"], np.ones(len(cells["kind"]) - len(conditional["exact"]), np.bool_)]
    )
    is_conditional = cells["kind"] == int(_KIND.COND)
    flags = bits_of(
        "branch_stats",
        is_conditional=is_conditional,
        is_indirect=~is_conditional,
        exact=of_runs & is_whole & cells.pop("all_known"),
    )
    order = np.lexsort((cells["from_ip"], cells["space"]))
    ordered = {name: values[order] for name, values in cells.items()}
    table = table_of(plan, "branch_stats", ordered, "from_ip", np.broadcast_to(flags, len(order))[order])
    table.errors, table.gaps = side_tables(plan, sides)
    return table


def _both(conditional: _Cells, indirect: _Cells) -> dict[str, NDArray[Any]]:
    """Columns of conditional branches, then of indirect ones."""
    group, first = _groups(indirect)
    taken, not_taken = conditional["taken"], conditional["not_taken"]
    rows, more = len(taken), len(first)
    number = np.arange(rows)
    outcome = entropy(np.concatenate([taken, not_taken]), np.concatenate([number, number]), rows)
    whole: dict[str, NDArray[Any]] = {
        "from_ip": np.concatenate([conditional["from_ip"], indirect["from_ip"][first]]),
        "space": np.concatenate([conditional["space"], indirect["space"][first]]),
        "kind": np.concatenate([np.full(rows, int(_KIND.COND), np.uint8), indirect["kind"][first]]),
        "count": np.concatenate([taken + not_taken, np.bincount(group, indirect["count"], more)]),
        "targets": np.concatenate([np.zeros(rows, np.int64), np.bincount(group, minlength=more)]),
        "entropy": np.concatenate([outcome, entropy(indirect["count"], group, more)]),
        "all_known": np.concatenate(
            [np.ones(rows, np.bool_), np.bincount(group, ~indirect["to_known"], more) == 0]
        ),
    }
    for name in (
        "taken",
        "not_taken",
        "runs",
        "longest_taken",
        "longest_not_taken",
        "run_entropy",
        "cut_runs",
    ):
        whole[name] = np.concatenate([conditional[name], np.zeros(more, conditional[name].dtype)])
    return whole


def target_table(plan: Plan, edges: Table, limit: int | None) -> Table:
    """Make the histogram of indirect branches' targets.

    Parameters
    ----------
    plan : Plan
        Of `edges`: all edges of indirect branches.
    edges : Table
    limit : int or None
        Targets of each branch that have a row of their own; None: all.
    """
    cells = {
        name: np.asarray(edges[name]) for name in ("from_ip", "to_ip", "kind", "count", "space", "to_known")
    }
    group, first = _groups(cells)
    total = np.bincount(group, cells["count"], len(first))
    order = np.lexsort((-cells["count"], group))
    rank = np.arange(len(group)) - first[group]  # of rows in this order: groups stay where they are
    is_rest = np.zeros(len(group), np.bool_) if limit is None else rank >= limit
    kept = {name: values[order] for name, values in cells.items()}
    begins = np.flatnonzero(~is_rest | (rank == limit))
    targets = np.diff(np.append(begins, len(group)))
    rows = {name: values[begins] for name, values in kept.items()}
    rows["count"] = np.add.reduceat(kept["count"], begins) if len(begins) else kept["count"]
    rest = is_rest[begins]
    known = rows.pop("to_known") & ~rest
    rows["to_ip"] = np.where(known, rows["to_ip"], 0)
    rows["targets"] = targets
    rows["share"] = rows["count"] / total[group[begins]]
    flags = bits_of("indirect_targets", to_known=known, is_rest=rest)
    table = table_of(plan, "indirect_targets", rows, "from_ip", np.broadcast_to(flags, len(begins)))
    table.errors, table.gaps = edges.errors, edges.gaps
    return table
