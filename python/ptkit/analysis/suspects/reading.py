"""Facts of one recording after another: identities of files, names and counts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage import CodeFile, Coverage
from ptkit.analysis.coverage.files import united
from ptkit.analysis.coverage.rows import Rows
from ptkit.analysis.coverage.texts import Texts
from ptkit.analysis.diff.named import is_jit_list
from ptkit.analysis.diff.strands import is_system
from ptkit.analysis.suspects.events import BRANCH_COLUMNS, Walk
from ptkit.analysis.suspects.facts import (
    EDGE,
    FactKind,
    Found,
    counted_facts,
    edge_keys,
    fact_rows,
    mixed,
)
from ptkit.analysis.suspects.threads import order_facts, roles_of, thread_facts
from ptkit.support.text import counted

__all__ = ["Recordings"]

_NAMED = CodeFile("perf.map", "")  # JIT code, by names instead of RVAs
_LATE = 1 << 60  # ticks, for what has no time
_PART = 1 << 18  # branches that are looked at together
_KINDS = _core.BranchKind
_CALLS = tuple(map(int, (_KINDS.CALL, _KINDS.CALL_INDIRECT, _KINDS.FAR_CALL)))
_CHOICES = tuple(map(int, (_KINDS.COND, _KINDS.JUMP_INDIRECT, _KINDS.CALL_INDIRECT)))


class Recordings:
    """What recordings have in common: numbers of files, texts, and edges.

    Attributes
    ----------
    files : tuple of CodeFile
        By the numbers that edges have.
    texts : Texts
    """

    def __init__(self) -> None:
        self.files: tuple[CodeFile, ...] = ()
        self.texts = Texts()
        self._references: list[Coverage] = []

    def read(self, trace: Any, query: dict[str, Any], *, all_own: bool) -> Found:
        """Read a recording.

        Parameters
        ----------
        trace : Trace
        query : dict
            Which code.
        all_own : bool
            All of it counts as the program's own code.

        Raises
        ------
        ConfigError
            If another build of a file ran in a recording that was read before.
        PtkitError
            If it cannot be read.
        """
        coverage = trace.coverage(**query)
        for reference in self._references:
            reference.check_builds(coverage)
        # Names of JIT code are in a file for each process: the functions of all of them are in one.
        named = [_NAMED if is_jit_list(file.path) else file for file in coverage.files]
        files, numbers = united([*self.files, *named])
        if len(files) > len(self.files):
            self._references.append(coverage)
        of_coverage = numbers[len(self.files) :]
        self.files = files
        edges = self._edges(coverage, of_coverage, all_own=all_own)
        opened = trace.opened
        walk = Walk(
            opened.session, self._numbers(opened.bundle.files), _own_keys(edges), trace.info.first_tsc
        )
        walk.read(trace.iter_branches(rows=_PART, columns=list(BRANCH_COLUMNS), **query))
        return self._found(coverage, edges, walk)

    def _numbers(self, files: Sequence[tuple[str, str]]) -> NDArray[np.int32]:
        """Numbers of the files of a trace; -1: no code of it ran."""
        number_of = {file.key: number for number, file in enumerate(self.files)}
        return np.array([number_of.get(CodeFile(*file).key, -1) for file in files], np.int32)

    def _edges(self, coverage: Coverage, files: NDArray[np.int32], *, all_own: bool) -> Rows:
        """Edges of a set, with the names of both ends, in the order of their keys."""
        rows, code, texts = coverage.rows("edges"), coverage.rows("code"), self.texts.add(coverage.texts)
        codes, numbers = np.append(texts, np.int32(-1)), np.append(files, np.int32(-1))
        edges = np.zeros(len(rows), EDGE)
        edges["file"], edges["to_file"] = numbers[rows["from_file"]], numbers[rows["to_file"]]
        edges["rva"], edges["to_rva"] = rows["from_rva"], rows["to_rva"]
        edges["kind"], edges["flags"], edges["line"] = rows["kind"], rows["flags"], rows["line"]
        edges["function"], edges["source"] = codes[rows["function"]], codes[rows["source"]]
        at = _code_rows(code, rows["to_file"], rows["to_rva"])
        for name in ("function", "source"):
            edges[f"to_{name}"] = codes[np.where(at >= 0, np.append(code[name], np.int32(-1))[at], -1)]
        edges["to_line"] = np.append(code["line"], np.uint32(0))[at]
        edges["count"] = rows["count"]
        edges["own"] = True if all_own else self._are_own(edges, code, numbers)
        is_named = np.array([file == _NAMED for file in self.files], np.bool_)
        if is_named.any():
            hashes = np.array([zlib.crc32(text.encode()) for text in self.texts.all()] + [0], np.uint64)
            for end in ("", "to_"):
                by_name = is_named[edges[f"{end}file"]]
                edges[f"{end}rva"][by_name] = hashes[edges[f"{end}function"][by_name]]
        columns = (edges[name] for name in ("file", "rva", "to_file", "to_rva", "kind"))
        edges["key"] = edge_keys(*columns)
        return edges[np.argsort(edges["key"])]

    def _are_own(self, edges: Rows, code: Rows, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether edges begin in the program's own code: that with source lines, of files with any."""
        is_own = np.array([not is_system(file.path) for file in self.files], np.bool_)
        has_lines = np.zeros(len(self.files), np.bool_)
        has_lines[numbers[np.unique(code["file"][code["source"] >= 0])]] = True
        of = edges["file"]
        return np.asarray(is_own[of] & ((edges["source"] >= 0) | ~has_lines[of]))

    def _found(self, coverage: Coverage, edges: Rows, walk: Walk) -> Found:
        names = self.texts.all()
        own = edges[edges["own"]]
        functions = {
            int(key): names[function]
            for key, function in zip(own["key"].tolist(), own["function"].tolist(), strict=True)
            if function >= 0
        }
        parts = [_branch_facts(edges), _call_facts(edges), walk.paths]
        notes = list(walk.notes)
        roles_of_edges: dict[int, set[int]] = {}
        if len(walk.threads) > 1:
            roles = roles_of(list(walk.threads.values()), functions, self.texts)
            parts.append(thread_facts(roles, own["key"][np.isin(own["kind"], _CHOICES)]))
            for role in roles:
                for keys, _ in role.thread.counts:
                    for key in keys.tolist():
                        roles_of_edges.setdefault(key, set()).add(role.function)
            if walk.has_order:
                parts.append(order_facts(roles))
            else:
                notes.append("too many branches of its own code for the order of threads, which is left out")
        [run] = coverage.runs
        if run.loss:
            notes.append(f"{run.loss}: code that ran there may be missing")
        if run.outside:
            notes.append(f"{counted(run.outside, 'instruction')} ran in no file and are left out")
        at = np.searchsorted(walk.keys, edges["key"])
        at[at == len(walk.keys)] = 0
        seen = (walk.keys[at] == edges["key"]) if len(walk.keys) else np.zeros(len(edges), np.bool_)
        first, last = (
            np.where(seen, times[at] if len(times) else 0, _LATE) for times in (walk.first, walk.last)
        )
        facts = counted_facts([part for part in parts if len(part)])
        return Found(edges, facts, first, last, roles_of_edges, notes)


def _own_keys(edges: Rows) -> NDArray[np.uint64]:
    return np.ascontiguousarray(edges["key"][edges["own"]])


def _code_rows(code: Rows, file: NDArray[np.int32], rva: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Index of the instruction at each location, or -1."""
    found = np.full(len(file), -1, np.int64)
    for one in np.unique(file).tolist():
        begin, end = np.searchsorted(code["file"], [one, one + 1])
        rows = np.flatnonzero(file == one)
        known = code["rva"][begin:end]
        if not len(known):
            continue
        at = np.minimum(np.searchsorted(known, rva[rows]), len(known) - 1)
        found[rows] = np.where(known[at] == rva[rows], at + begin, -1)
    return found


def _branch_facts(edges: Rows) -> NDArray[Any]:
    """Outcomes of conditional branches, and targets of indirect ones."""
    rows = edges[np.isin(edges["kind"], _CHOICES) & (edges["count"] > 0)]
    return fact_rows(FactKind.BRANCH, [rows["key"]], rows["count"])


def _call_facts(edges: Rows) -> NDArray[Any]:
    """Calls from one function to another; the step is one of the calls."""
    rows = edges[np.isin(edges["kind"], _CALLS) & (edges["count"] > 0)]
    keys = mixed(rows["file"], rows["function"], rows["to_file"], rows["to_rva"])
    return counted_facts([fact_rows(FactKind.CALL, [rows["key"]], rows["count"], keys=keys)])
