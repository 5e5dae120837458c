"""What separates failing from passing recordings, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ptkit import _core
from ptkit.analysis.coverage.files import CodeFile
from ptkit.analysis.coverage.rows import PASSES
from ptkit.analysis.suspects.facts import FactKind
from ptkit.analysis.suspects.measure import Chance, fisher
from ptkit.analysis.suspects.ranking import Ranked, main_steps
from ptkit.support.schema import schema_of
from ptkit.support.text import counted, one_line
from ptkit.table import Table
from ptkit.table.made import TextColumns, made_table

__all__ = ["LeftOut", "Suspects", "suspects_table"]

_COND = int(_core.BranchKind.COND)
_RETURNS = (int(_core.BranchKind.RETURN), int(_core.BranchKind.FAR_RETURN))
_KINDS = ("branch", "call", "path", "order", "order")  # by FactKind
_SHOWN = (
    *("score", "failing", "passing", "aspect", "function", "line", "fact", "more_than", "threads", "p"),
    *("source", "module", "rva", "file", "flags"),
)


@dataclass(frozen=True)
class LeftOut:
    """A recording that nothing was taken of.

    Attributes
    ----------
    source : str
        Path or description of the recording.
    reason : str
        Why, as a sentence.
    """

    source: str
    reason: str


@dataclass(frozen=True)
class Suspects:
    """Branches, calls and paths that separate failing from passing recordings, the best one first.

    Made by `ptkit.suspects`.

    Attributes
    ----------
    table : Table
        A row for each fact: docs/tables.md has the columns, docs/flaky.md what they mean.
    passing, failing : tuple of str
        The recordings.
    left_out : tuple of LeftOut
        Recordings that cannot be read, or of other builds.
    files : tuple of CodeFile
        Files of machine code, by the number that the table has.
    facts : int
        How many facts were looked at.
    chance : Chance
        How easily chance separates the recordings as well as the first row does.
    notes : tuple of str
        What recordings do not say, a sentence each.
    """

    table: Table
    passing: tuple[str, ...]
    failing: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    files: tuple[CodeFile, ...]
    facts: int
    chance: Chance
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """How far the first row can be trusted, as a sentence."""
        recordings = counted(len(self.passing) + len(self.failing), "recording")
        if not len(self.table):
            return f"no fact of {self.facts:,} separates the {recordings}"
        return f"with {recordings} and {counted(self.facts, 'fact')}, chance does this well {self.chance}"

    def __str__(self) -> str:
        lines = [f"{len(self.failing)} failing, {len(self.passing)} passing: {self.sentence}"]
        lines += [f"left out: {one_line(one.source)}: {one_line(one.reason)}" for one in self.left_out]
        lines += map(one_line, self.notes)
        return "\n".join([*lines, str(self.table)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        *heads, _ = [*str(self).splitlines()[: 1 + len(self.left_out) + len(self.notes)], ""]
        return "".join(f"<p>{escape(head)}</p>" for head in heads) + self.table._repr_html_()


def suspects_table(ranked: Ranked, files: Sequence[CodeFile], texts: Sequence[str], failing: Any) -> Table:
    """Table of ranked facts.

    Parameters
    ----------
    ranked : Ranked
    files : sequence of CodeFile
    texts : sequence of str
    failing : numpy.ndarray of bool
        Which recordings failed.
    """
    facts, splits, edges = ranked.facts, ranked.splits, ranked.edges
    at = np.minimum(np.searchsorted(edges["key"], main_steps(facts)), max(len(edges) - 1, 0))
    shown = _shown(edges[at])
    having = splits.has[:, failing].sum(axis=1)
    others = splits.has[:, ~failing].sum(axis=1)
    count, rest = int(failing.sum()), int((~failing).sum())
    names = TextColumns()
    names.add("module", shown["file"], [file.name for file in files])
    names.add_functions(shown["function"], texts)
    names.add("source", shown["source"], texts)
    names.add_texts("aspect", [_KINDS[kind] for kind in facts["kind"].tolist()])
    words = _Words(edges, texts, files)
    names.add_texts("fact", [words.of(fact) for fact in facts])
    names.add_texts("threads", [_threads(fact, texts) for fact in facts])
    schema = schema_of("suspects").columns
    flags = np.zeros(len(facts), np.uint8)
    for name, holds in (
        ("line_known", shown["source"] >= 0),
        ("is_own", shown["own"]),
        ("of_failing", splits.score > 0),
    ):
        flags |= np.where(holds, schema[name].mask, 0).astype(np.uint8)
    cells = {
        "score": splits.score,
        "p": [
            fisher(one, count, other, rest)
            for one, other in zip(having.tolist(), others.tolist(), strict=True)
        ],
        "failing": having,
        "passing": others,
        "more_than": splits.more_than,
        "file": shown["file"],
        "rva": shown["rva"],
        "line": shown["line"],
        "flags": flags,
    }
    return made_table("suspects", cells, names, _SHOWN)


def _shown(rows: Any) -> Any:
    """Edges as they are shown: returns to source lines at their target, where the thread goes on."""
    returns = np.isin(rows["kind"], _RETURNS) & (rows["to_source"] >= 0)
    for name in ("file", "rva", "function", "source", "line"):
        rows[name] = np.where(returns, rows[f"to_{name}"], rows[name])
    return rows


def _threads(fact: Any, texts: Sequence[str]) -> str | None:
    names = [texts[fact[name]] for name in ("thread", "other") if fact[name] >= 0]
    return " and ".join(names) or None


class _Words:
    """Facts in words."""

    def __init__(self, edges: Any, texts: Sequence[str], files: Sequence[CodeFile]) -> None:
        self._edges = edges
        self._texts = texts
        self._files = files

    def of(self, fact: Any) -> str:
        """Return what a fact says."""
        kind = FactKind(int(fact["kind"]))
        steps = fact["steps"].tolist()[: int(fact["size"])]
        if kind is FactKind.BRANCH:
            return self._outcome(self._edge(steps[0]))
        if kind is FactKind.CALL:
            return f"calls {self._target(self._edge(steps[0]))}"
        if kind is FactKind.PATH:
            texts = [self._step(step) if step else "end of the thread" for step in steps]
            return " > ".join(texts)
        if kind is FactKind.INTERLEAVING:
            before, between, after = steps
            return f"{self._step(between)}, while another thread is {self._between(before, after)}"
        first, second = (self._step(step) for step in steps)
        return f"{first} in {self._texts[fact['thread']]} before {second} in {self._texts[fact['other']]}"

    def _between(self, before: int, after: int) -> str:
        if not before:
            return f"before {self._step(after)}, its first branch"
        if not after:
            return f"behind {self._step(before)}, its last branch"
        return f"between {self._step(before)} and {self._step(after)}"

    def _edge(self, key: int) -> Any:
        return self._edges[int(np.searchsorted(self._edges["key"], np.uint64(key)))]

    def _outcome(self, edge: Any) -> str:
        if edge["kind"] == _COND:
            return f"{'not taken' if edge['flags'] & PASSES else 'taken'}, to {self._line(edge, 'to_')}"
        return f"to {self._target(edge)}"

    def _target(self, edge: Any) -> str:
        if edge["to_function"] >= 0:
            [short] = _core.short_names([self._texts[edge["to_function"]]])
            return short
        return self._line(edge, "to_")

    def _step(self, key: int) -> str:
        edge = self._edge(key)
        if edge["kind"] in _RETURNS:
            return f"return to {self._line(edge, 'to_')}"
        at = self._line(edge, "")
        if edge["kind"] == _COND:
            return f"{at} {'not taken' if edge['flags'] & PASSES else 'taken'}"
        return f"{at} to {self._target(edge)}"

    def _line(self, edge: Any, end: str) -> str:
        if edge[f"{end}source"] >= 0:
            path = self._texts[edge[f"{end}source"]].replace("\\", "/")
            return f"{path.rpartition('/')[2]}:{edge[f'{end}line']}"
        return f"{self._files[edge[f'{end}file']].name}+{edge[f'{end}rva']:#x}"
