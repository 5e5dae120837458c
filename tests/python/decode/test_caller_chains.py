"""Chains of callers: their order, and what they have in common, as a comparison of lists says."""

from __future__ import annotations

import numpy as np
import pytest

from ptkit.decode.caller_chains import Chains, most_shared_with_ancestors


def random_tree(seed: int, rows: int, functions: int) -> tuple[list[int], list[int]]:
    """Callers and functions of contexts in order: no two callees of a context are of one function."""
    random = np.random.default_rng(seed)
    children: dict[int, dict[int, dict]] = {}  # type: ignore[type-arg]
    for _ in range(rows):
        node = children
        while True:  # go down to where the function has no context yet
            function = int(random.integers(functions))
            if function not in node:
                node[function] = {}
                break
            node = node[function]
    parents: list[int] = []
    labels: list[int] = []
    left = [(-1, function, below) for function, below in children.items()]
    while left:
        parent, function, below = left.pop()
        parents.append(parent)
        labels.append(function)
        left += [(len(parents) - 1, one, more) for one, more in below.items()]
    return parents, labels


def chain(parents: list[int], labels: list[int], row: int) -> list[int]:
    found = []
    while row >= 0:
        found.append(labels[row])
        row = parents[row]
    return found


def common(some: list[int], others: list[int]) -> int:
    count = 0
    while count < min(len(some), len(others)) and some[count] == others[count]:
        count += 1
    return count


def ancestors(parents: list[int], row: int) -> list[int]:
    found = []
    while (row := parents[row]) >= 0:
        found.append(row)
    return found


@pytest.mark.parametrize("functions", [1, 2, 3, 10])
@pytest.mark.parametrize("rows", [1, 2, 60, 300])
def test_chains_are_compared_as_lists(rows: int, functions: int) -> None:
    parents, labels = random_tree(rows + functions, rows, functions)
    chains = Chains(np.array(parents), np.array(labels), rows + 1)
    whole = [chain(parents, labels, row) for row in range(rows)]
    order = sorted(range(rows), key=chains.order.__getitem__)
    assert order == sorted(range(rows), key=whole.__getitem__)
    shared, behind = chains.shared(np.array(order[1:], np.int64), np.array(order[:-1], np.int64))
    for at, count in enumerate(shared.tolist()):
        some, others = whole[order[at + 1]], whole[order[at]]
        assert count == common(some, others)
        assert int(behind[at]) == [order[at + 1], *ancestors(parents, order[at + 1])][count]


@pytest.mark.parametrize("functions", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_few_functions_of_a_chain_count(most: int, functions: int) -> None:
    parents, labels = random_tree(most, 200, functions)
    chains = Chains(np.array(parents), np.array(labels), most)
    order = np.argsort(chains.order, kind="stable")
    cut = [chain(parents, labels, row)[:most] for row in order.tolist()]
    assert cut == sorted(cut)
    shared, _ = chains.shared(order[1:], order[:-1])
    for at, count in enumerate(shared.tolist()):
        assert min(count, most) == common(cut[at + 1], cut[at])


@pytest.mark.parametrize("functions", [1, 2, 3])
@pytest.mark.parametrize("rows", [5, 100, 400])
def test_most_shared_callers_are_those_of_compared_chains(rows: int, functions: int) -> None:
    parents, labels = random_tree(7 * rows + functions, rows, functions)
    chains = Chains(np.array(parents), np.array(labels), rows + 1)
    ends = [row + 1 for row in range(rows)]
    for row in range(rows - 1, 0, -1):
        if parents[row] >= 0:
            ends[parents[row]] = max(ends[parents[row]], ends[row])
    chosen = [row for row in range(rows) if labels[row] == 0]
    chosen.sort(key=chains.order.__getitem__)
    found = most_shared_with_ancestors(chains, np.array(chosen, np.int64), np.array(ends))
    whole = {row: chain(parents, labels, row) for row in chosen}
    for row, count in list(zip(chosen, found.tolist(), strict=True))[:: max(len(chosen) // 60, 1)]:
        others = [whole[one] for one in ancestors(parents, row) if one in whole]
        assert count == max((common(whole[row], one) for one in others), default=0)
