"""Coverage: sets of blocks, edges, functions and lines that ran, with operators."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ptkit.analysis.coverage.files import CodeFile, matched, united
from ptkit.analysis.coverage.rows import LEVELS, Rows, combined, grouped, with_numbers
from ptkit.analysis.coverage.runs import CoverageRun
from ptkit.analysis.coverage.saved import SavedSet, load_set, save_set
from ptkit.analysis.coverage.tables import (
    block_rows,
    block_table,
    branch_table,
    edge_table,
    function_table,
    line_table,
)
from ptkit.analysis.coverage.texts import Texts
from ptkit.errors import ConfigError
from ptkit.support.text import counted

if TYPE_CHECKING:
    from ptkit.analysis.coverage.known import KnownCode
    from ptkit.table import Table

__all__ = ["Coverage"]

_BY = ("function", "line", "block")


class Coverage:
    """What ran: blocks, edges, conditional branches, functions and source lines, as sets with counts.

    Elements are known by the identity of their file (build-id; GUID and age of a PDB, or time stamp and
    size of a PE file; else the name and the code) and their RVA, source lines by path and number: load
    addresses and moved files do not matter.

    ``a | b`` has what ran in either set, ``a & b`` what ran in both, ``a - b`` what ran in `a` alone, and
    ``a ^ b`` what ran in one of them alone: each table by its own elements, so that a line of ``a - b`` did
    not run at all in `b`. Counts are those of both sets together.

    Made by `Trace.coverage` and `Coverage.load`.

    Attributes
    ----------
    files : tuple of CodeFile
        Files of machine code, by the number that tables have.
    runs : tuple of CoverageRun
        The recordings that it was made of.
    has_lines_only : bool
        It is a set of lines alone; see `by_line`.
    """

    def __init__(
        self,
        files: tuple[CodeFile, ...],
        runs: tuple[CoverageRun, ...],
        texts: tuple[str, ...],
        rows: Mapping[str, Rows],
        known: tuple[KnownCode, ...] = (),
        *,
        has_lines_only: bool = False,
    ) -> None:
        self._files = files
        self.runs = runs
        self.has_lines_only = has_lines_only
        self._texts = texts
        self._rows = dict(rows)
        self._known = known

    def __repr__(self) -> str:
        lines = np.count_nonzero(self._rows["lines"]["instructions"])
        parts = [counted(int(lines), "line")]
        if not self.has_lines_only:
            functions = self._rows["functions"]
            parts[:0] = [
                counted(int(np.count_nonzero(functions["instructions"])), "function"),
                counted(len(self.blocks), "block"),
            ]
        bound = ", lower bound" if self.is_lower_bound else ""
        return f"<ptkit.Coverage of {counted(len(self.runs), 'run')}: {', '.join(parts)}{bound}>"

    @property
    def files(self) -> tuple[CodeFile, ...]:
        """Files of machine code, by the number that tables have."""
        return self._files

    # Tables.

    @cached_property
    def blocks(self) -> Table:
        """Basic blocks: each instruction that ran is in one of them, in the order of file and RVA.

        A block begins where a branch led or where a branch is before it, and ends before the next one.
        Columns: docs/coverage-sets.md.
        """
        return block_table(self._level("code"), self.files, self._texts)

    @cached_property
    def edges(self) -> Table:
        """Branches of which both ends lie in files, also those that were not taken."""
        return edge_table(self._level("edges"), self.files, self._texts)

    @cached_property
    def branches(self) -> Table:
        """Conditional branches: how often each was taken, and not taken."""
        return branch_table(self._level("edges"), self.files, self._texts)

    @cached_property
    def functions(self) -> Table:
        """Functions of which an instruction ran, with the number of entries at their begin.

        Instructions without a symbol are one row for each file, without a name.
        """
        return function_table(self._level("functions"), self.files, self._texts)

    @cached_property
    def lines(self) -> Table:
        """Source lines of which an instruction ran, with executions by gcov's rule (docs/source-lines.md)."""
        return line_table(self._level("lines"), self._texts)

    @property
    def known_functions(self) -> Table:
        """All named functions of the files, as `functions`; those that are not in the set have 0."""
        self._look_up()
        return function_table(self._level("functions"), self.files, self._texts, ran_only=False)

    @property
    def known_lines(self) -> Table:
        """All lines that have code, as `lines`; those that are not in the set have 0.

        Where it is not known what could have run (`total`), those that are in the set alone.
        """
        self._look_up()
        return line_table(self._level("lines"), self._texts, ran_only=False)

    def _level(self, name: str) -> Rows:
        if self.has_lines_only and name != "lines":
            raise ConfigError(
                "the set was made by by_line(), and has lines alone; compare blocks, edges and functions of "
                "recordings of one build"
            )
        return self._rows[name]

    # For other analyses of ptkit.

    def rows(self, level: str) -> Rows:
        """Rows of a level of `ptkit.analysis.coverage.rows.LEVELS`, with numbers of `files` and `texts`."""
        return self._level(level)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of functions and paths of source files, by the numbers that rows have."""
        return self._texts

    # What could have run.

    def percent(self, by: str = "line") -> float | None:
        """Share of the known lines, or named functions, that are in the set.

        Parameters
        ----------
        by : str
            ``"line"`` or ``"function"``.

        Returns
        -------
        float or None
            Per cent; None: it is not known what could have run, as there is no debug information (or no list
            of symbols) of the build that ran. A lower bound where `is_lower_bound` says so.

        Raises
        ------
        ConfigError
            If `by` is another word. Of blocks, those that did not run are not known.
        """
        total = self.total(by)
        return None if not total else 100 * self.covered(by) / total

    def covered(self, by: str = "line") -> int:
        """Number of lines, named functions or blocks that are in the set."""
        if by == "block":
            return int(np.count_nonzero(block_rows(self._level("code"))["instructions"]))
        return int(np.count_nonzero(self._countable(by)["instructions"]))

    def total(self, by: str = "line") -> int | None:
        """Number of lines, or named functions, that could have run; None: not known."""
        if by == "block":
            return None
        self._look_up()
        has_all = (one.all_lines if by == "line" else one.all_functions for one in self.files)
        return len(self._countable(by)) if any(has_all) else None

    def summary(self) -> list[tuple[str, str, int, int | None]]:
        """How much is in the set: of each source file its lines, of each file its functions and blocks.

        Returns
        -------
        list of (str, str, int, int or None)
            ``"line"``, ``"function"`` or ``"block"``; path of the source file, or of the file; how many are
            in the set; how many could have run, where that is known.
        """
        total = self.total("line")
        rows = self._rows["lines"]
        found: list[tuple[str, str, int, int | None]] = []
        sources = {self._texts[code]: code for code in np.unique(rows["source"]).tolist()}
        for path in sorted(sources):
            own = rows["source"] == sources[path]
            known = None if total is None else int(np.count_nonzero(own))
            found.append(("line", path, int(np.count_nonzero(own & (rows["instructions"] > 0))), known))
        if self.has_lines_only:
            return found
        functions, blocks = self._countable("function"), block_rows(self._rows["code"])
        for number, file in enumerate(self.files):
            own = functions["file"] == number
            known = int(np.count_nonzero(own)) if file.all_functions else None
            ran = int(np.count_nonzero(own & (functions["instructions"] > 0)))
            in_file = int(np.count_nonzero(blocks["file"] == number))
            if ran or in_file:
                found.append(("function", file.path, ran, known))
                found.append(("block", file.path, in_file, None))
        return found

    def _countable(self, by: str) -> Rows:
        if by not in _BY:
            raise ConfigError(f"by={by!r}: there are {', '.join(map(repr, _BY))}")
        rows = self._level(f"{by}s")
        return rows if by == "line" else rows[rows["function"] >= 0]

    def _look_up(self, done: Collection[tuple[str, str]] = ()) -> None:
        """Add known code that did not run, of files without those of `done`."""
        if not self._known:
            return
        texts = Texts()
        texts.add(self._texts)
        ran = {
            number
            for number in np.unique(self._rows["functions"]["file"]).tolist()
            if self._files[number].key not in done
        }
        parts: dict[str, list[Rows]] = {name: [self._rows[name]] for name in ("lines", "functions")}
        files = list(self._files)
        for known in self._known:
            lines, functions, of_lines, of_functions = known.rows(ran, texts)
            parts["lines"].append(lines)
            parts["functions"].append(functions)
            for number in of_lines | of_functions:
                files[number] = replace(
                    files[number],
                    all_lines=files[number].all_lines or number in of_lines,
                    all_functions=files[number].all_functions or number in of_functions,
                    is_whole=files[number].is_whole or known.is_whole,
                )
        for name, found in parts.items():
            self._rows[name] = grouped(LEVELS[name], np.concatenate(found))
        self._files, self._texts, self._known = tuple(files), texts.all(), ()

    # What is missing.

    @property
    def is_lower_bound(self) -> bool:
        """More may have run than the set has: a recording that it has elements of has errors or gaps."""
        return any(run.is_added and bool(run.loss) for run in self.runs)

    @property
    def missing(self) -> list[str]:
        """What the recordings do not say, one sentence for each fact; empty: they say everything."""
        found = []
        for run in self.runs:
            if run.loss and run.is_added:
                found.append(f"lower bound: {run.source}: {run.loss}: code that ran there may be missing")
            if run.loss and run.is_removed:
                found.append(
                    f"{run.source}: {run.loss}: what only others seem to have may have run there, too"
                )
            if run.outside:
                found.append(
                    f"{run.source}: {counted(run.outside, 'instruction')} ran in no file (JIT code, or code "
                    "that no file is known for) and are left out"
                )
        return found

    # Operators.

    def __or__(self, other: object) -> Coverage:
        return self._with("|", other)

    def __and__(self, other: object) -> Coverage:
        return self._with("&", other)

    def __sub__(self, other: object) -> Coverage:
        return self._with("-", other)

    def __xor__(self, other: object) -> Coverage:
        return self._with("^", other)

    def _with(self, operator: str, other: object) -> Coverage:
        if not isinstance(other, Coverage):
            raise TypeError(
                f"coverage {operator} {type(other).__name__}: both sides must be ptkit.Coverage: "
                "trace.coverage() gives one"
            )
        if self.has_lines_only != other.has_lines_only:
            raise ConfigError("one set has lines alone, the other all; use by_line() of both")
        lines_only = self.has_lines_only
        # Sets of which only some know all code would have totals of some.
        self._look_up()
        other._look_up({one.key for one in self._files if one.is_whole})
        if lines_only:
            files, here = united([*self.files, *other.files])
            there = here[len(self.files) :]
        else:
            files, here, there = matched(self.files, other.files)
        texts = Texts()
        codes, others = texts.add(self._texts), texts.add(other._texts)
        rows = {}
        for name, level in LEVELS.items():
            if name not in self._rows:
                continue
            some = with_numbers(level, self._rows[name], here, codes)
            more = with_numbers(level, other._rows[name], there, others)
            if name == "code":
                _check_code(some, more, files)
            rows[name] = combined(level, operator, some, more)
        runs = (*self.runs, *(run.as_operand(operator) for run in other.runs))
        if operator == "^":
            runs = tuple(run.as_operand(operator) for run in runs)
        return Coverage(files, runs, texts.all(), rows, has_lines_only=lines_only)

    def check_builds(self, other: Coverage) -> None:
        """Refuse a set that has another build of a file.

        Parameters
        ----------
        other : Coverage

        Raises
        ------
        ConfigError
            If both have a file of one name, and no build of it in common; or a file without a build-id of
            which the code differs.
        """
        files, here, there = matched(self.files, other.files)
        none = np.zeros(max(len(self._texts), len(other._texts)), np.int32)
        level = LEVELS["code"]
        some = with_numbers(level, self._level("code"), here, none)
        _check_code(some, with_numbers(level, other._level("code"), there, none), files)

    def by_line(self) -> Coverage:
        """The set of lines alone: compares with that of another build, where lines have the same numbers."""
        self._look_up()
        return Coverage(
            self.files, self.runs, self._texts, {"lines": self._rows["lines"]}, has_lines_only=True
        )

    # Files.

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the set, with what is known of code that did not run.

        Parameters
        ----------
        path : path
            The file to write; an earlier one is replaced when the new one is complete.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        OpenError
            If it cannot be written.
        """
        self._look_up()
        return save_set(SavedSet(self._files, self.runs, self._texts, self._rows), path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Coverage:
        """Read a set that `save` wrote.

        Parameters
        ----------
        path : path

        Raises
        ------
        OpenError
            If it cannot be read.
        FormatError
            If it is no such file, is damaged, or is of a version that is not known.
        """
        found = load_set(path)
        return Coverage(
            found.files, found.runs, found.texts, found.rows, has_lines_only="code" not in found.rows
        )


def _check_code(some: Rows, others: Rows, files: tuple[CodeFile, ...]) -> None:
    """Refuse files without a build-id of which both sets have different code.

    Raises
    ------
    ConfigError
        If there is one.
    """
    rows = np.concatenate([some, others])
    order = np.lexsort((rows["rva"], rows["file"]))
    rows = rows[order]
    same = (rows["file"][1:] == rows["file"][:-1]) & (rows["rva"][1:] == rows["rva"][:-1])
    differs = same & (rows["check"][1:] != rows["check"][:-1])
    if differs.any():
        row = rows[int(np.flatnonzero(differs)[0])]
        name = files[int(row["file"])].name
        raise ConfigError(
            f"{name}: two builds of the file ran: their code differs at RVA {int(row['rva']):#x}. Record "
            "both runs with one build, or compare by line: a.by_line() - b.by_line(), or --by line"
        )
