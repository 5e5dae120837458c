"""Facts of all recordings, ranked by how well each one separates the failing from the passing ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.analysis.suspects.facts import EDGE, FACT, MOST_STEPS, FactKind, Found, Keys
from ptkit.analysis.suspects.measure import Splits, best_splits, distinct

__all__ = ["Ranked", "main_steps", "ranked"]

_FACTS = 1 << 14  # that are looked at together
_POOL = 50  # facts that are ranked, for each one that is kept
_Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Ranked:
    """The best facts.

    Attributes
    ----------
    facts : numpy.ndarray of FACT
        The best one first; `count` is that of all recordings.
    splits : Splits
        Of these.
    edges : numpy.ndarray of EDGE
        All edges, in the order of their keys.
    tried : int
        Facts of all recordings.
    patterns : numpy.ndarray of bool, shape (patterns, recordings)
        All ways in which facts split the recordings.
    """

    facts: NDArray[Any]
    splits: Splits
    edges: NDArray[Any]
    tried: int
    patterns: _Bools


def ranked(found: Sequence[Found], is_failing: _Bools, most: int) -> Ranked:
    """Rank the facts of recordings.

    Parameters
    ----------
    found : sequence of Found
    is_failing : numpy.ndarray of bool
    most : int
        Facts to keep.
    """
    edges = _united_edges([one.edges for one in found])
    facts = _united_facts([one.facts for one in found])
    tried = len(facts)
    splits, patterns = _all_splits(facts, found, is_failing)
    # The best ones first, with room for those that say nothing new.
    by_score = np.argsort(-np.abs(splits.score), kind="stable")
    scores = np.abs(splits.score)[by_score]
    pool = min(most * _POOL, len(by_score))
    if pool:
        least = scores[pool - 1]
        pool = int(np.searchsorted(-scores, -least, side="right"))
    pool = min(pool, int(np.count_nonzero(scores > 0)))
    rows = by_score[:pool]
    facts, splits = facts[rows], _rows_of(splits, rows)
    order = _order(facts, splits, edges, found)
    facts, splits = facts[order], _rows_of(splits, order)
    kept = _telling(facts, splits, found)[:most]
    return Ranked(facts[kept], _rows_of(splits, kept), edges, tried, patterns)


def _rows_of(splits: Splits, rows: NDArray[np.intp]) -> Splits:
    return Splits(splits.score[rows], splits.more_than[rows], splits.has[rows])


def _united_edges(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    rows = np.concatenate([np.zeros(0, EDGE), *parts])
    _, first = np.unique(rows["key"], return_index=True)
    return rows[first]


def _united_facts(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All facts, in the order of their keys."""
    known = np.zeros(0, FACT)
    for part in parts:
        known = np.concatenate([known, part[_indices(known["key"], part["key"]) < 0]])
        known = known[np.argsort(known["key"], kind="stable")]
    return known


def _indices(known: Keys, keys: Keys) -> NDArray[np.int64]:
    """Index of each key among the known ones, which are in order, or -1."""
    if not len(known):
        return np.full(len(keys), -1, np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, at, -1)


def _all_splits(facts: NDArray[Any], found: Sequence[Found], is_failing: _Bools) -> tuple[Splits, _Bools]:
    """The best split of each fact, and all splits; `facts` get the counts of all recordings."""
    scores, thresholds = np.zeros(len(facts)), np.zeros(len(facts), np.int64)
    has = np.zeros((len(facts), len(found)), np.bool_)
    patterns = np.zeros((0, len(found)), np.bool_)
    facts["count"] = 0
    for begin in range(0, len(facts), _FACTS):
        part = facts[begin : begin + _FACTS]
        counts = np.zeros((len(part), len(found)), np.int64)
        for number, one in enumerate(found):
            at = _indices(one.facts["key"], part["key"])
            rows = np.flatnonzero(at >= 0)
            counts[rows, number] = one.facts["count"][at[rows]]
        splits, own = best_splits(counts, is_failing)
        end = begin + len(part)
        scores[begin:end], thresholds[begin:end], has[begin:end] = splits.score, splits.more_than, splits.has
        part["count"] = counts.sum(axis=1)
        patterns = distinct(np.concatenate([patterns, own]))
    return Splits(scores, thresholds, has), patterns


def _order(
    facts: NDArray[Any], splits: Splits, edges: NDArray[Any], found: Sequence[Found]
) -> NDArray[np.intp]:
    """Order of facts: the score; own code; the simplest; what failing runs do; what was executed earliest."""
    main = main_steps(facts)
    is_own = edges["own"][np.maximum(_indices(edges["key"], main), 0)]
    threads = _threads_of_orders(facts, found)
    simple = facts["kind"].astype(np.int64) * 64 + facts["size"] * 8 + (facts["thread"] >= 0)
    simple += np.array([len(one) for one in threads], np.int64)
    earliest = _positions(facts, splits, found)
    score = np.asarray(np.round(np.abs(splits.score), 9), np.float64)
    follows = _follow_order(main, threads, score, earliest, is_own, found)
    return np.lexsort((facts["key"], earliest, splits.score < 0, simple, follows, ~is_own, -score))


def _threads_of_orders(facts: NDArray[Any], found: Sequence[Found]) -> list[frozenset[int]]:
    """Functions that the threads of orders began in; of other facts none."""
    is_order = (facts["kind"] >= int(FactKind.INTERLEAVING)).tolist()
    return [
        frozenset(_roles([step for step in steps if step], found)) if one else frozenset()
        for one, steps in zip(is_order, facts["steps"].tolist(), strict=True)
    ]


def _roles(steps: Sequence[int], found: Sequence[Found]) -> set[int]:
    """Functions that the threads began in which executed steps in any recording."""
    return {role for one in found for step in steps for role in one.roles.get(step, ())}


def _follow_order(
    main: Keys,
    threads: Sequence[frozenset[int]],
    score: NDArray[np.float64],
    earliest: NDArray[np.float64],
    is_own: _Bools,
    found: Sequence[Found],
) -> _Bools:
    """Which facts only other threads executed, after an order of threads that separates as well.

    Such a fact is a consequence, as a check of the result in the thread that joins the others.
    """
    follows = np.zeros(len(main), np.bool_)
    firsts: dict[float, dict[frozenset[int], float]] = {}  # times by score and threads
    for row in np.flatnonzero(is_own).tolist():
        if threads[row]:
            times = firsts.setdefault(float(score[row]), {})
            times[threads[row]] = min(float(earliest[row]), times.get(threads[row], np.inf))
    for row in np.flatnonzero(is_own).tolist():
        times = firsts.get(float(score[row]), {})
        if times and not threads[row]:
            own = _roles([int(main[row])], found)
            follows[row] = any(time < earliest[row] and of.isdisjoint(own) for of, time in times.items())
    return follows


def main_steps(facts: NDArray[Any]) -> Keys:
    """The edge that a fact is shown at: of paths the last one, of two threads that of the other thread."""
    at = np.where(facts["kind"] == int(FactKind.PATH), facts["size"].astype(np.int64) - 1, 0)
    at[np.isin(facts["kind"], (int(FactKind.INTERLEAVING), int(FactKind.ORDER)))] = 1
    rows = np.arange(len(facts))
    main = facts["steps"][rows, at]
    # A path to the end of a thread has no last step.
    return np.where(main == 0, facts["steps"][rows, np.maximum(at - 1, 0)], main)


def _positions(facts: NDArray[Any], splits: Splits, found: Sequence[Found]) -> NDArray[np.float64]:
    """Mean time of the main step, of the recordings that have the fact and of which it is known."""
    total, known = np.zeros(len(facts)), np.zeros(len(facts))
    main = main_steps(facts)
    for number, one in enumerate(found):
        at = _indices(one.edges["key"], main)
        rows = np.flatnonzero((at >= 0) & splits.has[:, number])
        # What was executed too often is what came last.
        times = np.where(splits.more_than[rows] > 0, one.last[at[rows]], one.first[at[rows]])
        total[rows] += times
        known[rows] += 1
    return np.where(known > 0, total / np.maximum(known, 1), np.inf)


def _telling(facts: NDArray[Any], splits: Splits, found: Sequence[Found]) -> NDArray[np.intp]:
    """Facts without those of which a part alone splits the recordings in the same way."""
    texts = [row.tobytes() for row in np.packbits(splits.has, axis=1)]
    kinds = facts["kind"].tolist()
    is_simple = (facts["kind"] <= int(FactKind.CALL)) & (facts["thread"] < 0)
    is_repeated = _are_of_one_step(facts, splits, found)
    steps = [[step for step in row if step] for row in facts["steps"].tolist()]
    seen = {(steps[row][0], texts[row]) for row in np.flatnonzero(is_simple).tolist()}
    kept = []
    for row, kind in enumerate(kinds):
        keys = {(step, texts[row]) for step in steps[row]}
        if not is_simple[row] and (is_repeated[row] or not seen.isdisjoint(keys)):
            continue
        if kind == int(FactKind.PATH):
            seen |= keys
        kept.append(row)
    return np.array(kept, np.intp)


def _are_of_one_step(facts: NDArray[Any], splits: Splits, found: Sequence[Found]) -> _Bools:
    """Whether the recordings that have a fact are those that executed one of its steps at all."""
    is_one = np.zeros(len(facts), np.bool_)
    for number in range(MOST_STEPS):
        steps = np.ascontiguousarray(facts["steps"][:, number])
        is_same = steps != 0
        for recording, one in enumerate(found):
            is_same &= (_indices(one.edges["key"], steps) >= 0) == splits.has[:, recording]
        is_one |= is_same
    return is_one
