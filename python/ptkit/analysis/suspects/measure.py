"""How well facts separate failing from passing recordings, and how easily chance does the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chance", "Splits", "best_splits", "chance_of", "fisher"]

SHUFFLES = 2000
_EXACT = 5000  # labelings of which all are tried
_SEED = 42
_BLOCK = 1 << 14  # patterns
_PRODUCTS = 2 * 10**10  # multiplications that shuffles may take
_LEAST_SHUFFLES = 100
_TOLERANCE = 1e-9

_Bools = NDArray[np.bool_]
_Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Splits:
    """How facts split recordings, each with its best threshold.

    Attributes
    ----------
    score : numpy.ndarray of float64
        Youden's J: share of the failing recordings that have the fact, less that of the passing ones. Below
        0, the passing ones have it.
    more_than : numpy.ndarray of int64
        A recording has the fact if it was so more often than this.
    has : numpy.ndarray of bool, shape (facts, recordings)
    """

    score: NDArray[np.float64]
    more_than: _Counts
    has: _Bools


@dataclass(frozen=True)
class Chance:
    """In how many labelings of the recordings a fact separates them as well as the best one does.

    Attributes
    ----------
    hits, labelings : int
        Labelings that do, of so many.
    is_exact : bool
        These are all labelings with as many failing recordings; else random ones.
    """

    hits: int
    labelings: int
    is_exact: bool

    @property
    def p(self) -> float:
        """Share of the labelings; of random ones, with that of the recordings as one more."""
        return self.hits / self.labelings if self.is_exact else (self.hits + 1) / (self.labelings + 1)

    def __str__(self) -> str:
        if self.is_exact:
            share = Fraction(self.hits, self.labelings)
            return f"in {share.numerator:,} of {share.denominator:,} labelings"
        return f"in {self.hits:,} of {self.labelings:,} random labelings"


def best_splits(counts: _Counts, is_failing: _Bools) -> tuple[Splits, _Bools]:
    """The best threshold of each fact, and all distinct ways in which facts split the recordings.

    Parameters
    ----------
    counts : numpy.ndarray of int64, shape (facts, recordings)
    is_failing : numpy.ndarray of bool, shape (recordings,)
    """
    failing, passing = int(is_failing.sum()), int((~is_failing).sum())
    weights = np.where(is_failing, 1 / failing, -1 / passing)
    order = np.argsort(counts, axis=1, kind="stable")
    ascending = np.take_along_axis(counts, order, axis=1)
    # Cell j: the recordings of which the count is that of cell j or more.
    sums = np.cumsum(weights[order][:, ::-1], axis=1)[:, ::-1]
    is_step = np.zeros(counts.shape, np.bool_)
    is_step[:, 1:] = ascending[:, 1:] > ascending[:, :-1]
    value = np.where(is_step, np.abs(sums), -1.0)
    # Of equal thresholds the lowest one: that it was executed at all.
    value -= np.arange(counts.shape[1]) * (_TOLERANCE / counts.shape[1])
    best = np.argmax(value, axis=1)
    rows = np.arange(len(counts))
    splits = is_step[rows, best]
    least = np.where(splits, ascending[rows, best], np.iinfo(np.int64).max)
    before = np.where(splits, ascending[rows, np.maximum(best - 1, 0)], 0)
    has = counts >= least[:, None]
    # From whole numbers: sums of weights are not exactly 0 or 1.
    score = has[:, is_failing].sum(axis=1) / failing - has[:, ~is_failing].sum(axis=1) / passing
    return Splits(score, before, has), _patterns(counts, ascending, is_step)


def _patterns(counts: _Counts, ascending: _Counts, is_step: _Bools) -> _Bools:
    """Distinct sets of recordings that any threshold of any fact gives; a set and its rest are one."""
    parts = [np.zeros((0, counts.shape[1]), np.bool_)]
    for cell in range(1, counts.shape[1]):
        rows = is_step[:, cell]
        pattern = counts[rows] >= ascending[rows, cell : cell + 1]
        parts.append(distinct(pattern ^ pattern[:, :1]))
    return distinct(np.concatenate(parts))


def distinct(patterns: _Bools) -> _Bools:
    """Distinct rows."""
    if not len(patterns):
        return patterns
    packed = np.packbits(patterns, axis=1)
    _, first = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True)
    return patterns[first]


def fisher(having: int, failing: int, others: int, passing: int) -> float:
    """Two-sided p-value of Fisher's exact test: `having` of `failing` and `others` of `passing` runs."""
    total, marked = failing + passing, having + others
    tables = math.comb(total, failing)

    def ways(number: int) -> int:
        return math.comb(marked, number) * math.comb(total - marked, failing - number)

    seen = ways(having)
    least, most = max(0, failing - (total - marked)), min(failing, marked)
    return min(1.0, sum(one for one in map(ways, range(least, most + 1)) if one <= seen) / tables)


def chance_of(best: float, patterns: _Bools, is_failing: _Bools, shuffles: int = SHUFFLES) -> Chance:
    """How often labelings of the recordings have a fact that separates them so well.

    Parameters
    ----------
    best : float
        The best |J|.
    patterns : numpy.ndarray of bool, shape (patterns, recordings)
    is_failing : numpy.ndarray of bool
    shuffles : int
        Labelings that are tried where there are too many for all; fewer where there are many patterns.
    """
    recordings, failing = len(is_failing), int(is_failing.sum())
    all_labelings = math.comb(recordings, failing)
    is_exact = all_labelings <= _EXACT
    tried = all_labelings
    if not is_exact:
        room = _PRODUCTS // max(1, len(patterns) * recordings)
        tried = max(min(shuffles, room), min(shuffles, _LEAST_SHUFFLES))
    hits = 0
    cells = patterns.astype(np.float32)
    for labels in _labelings(recordings, failing, tried, is_exact=is_exact):
        weights = np.where(labels, 1 / failing, -1 / (recordings - failing)).astype(np.float32)
        top = np.zeros(len(labels), np.float32)
        for begin in range(0, len(cells), _BLOCK):
            np.maximum(top, np.abs(cells[begin : begin + _BLOCK] @ weights.T).max(axis=0), out=top)
        hits += int(np.count_nonzero(top >= best - 1e-5))
    return Chance(hits, tried, is_exact)


def _labelings(recordings: int, failing: int, tried: int, *, is_exact: bool) -> Iterator[_Bools]:
    """Labelings, some at a time: which recordings would have failed."""
    step = 256
    if is_exact:
        chosen = np.array(list(combinations(range(recordings), failing)), np.intp)
    else:
        random = np.random.default_rng(_SEED)
        chosen = np.array([random.permutation(recordings)[:failing] for _ in range(tried)], np.intp)
    for begin in range(0, len(chosen), step):
        part = chosen[begin : begin + step]
        labels = np.zeros((len(part), recordings), np.bool_)
        np.put_along_axis(labels, part, True, axis=1)
        yield labels
