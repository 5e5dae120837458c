"""What differs between two runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from ptkit import _core
from ptkit.analysis.diff.compare import Parting
from ptkit.analysis.diff.costs import Matching, call_rows, function_rows, line_rows
from ptkit.analysis.diff.divergence import (
    JOINED,
    Context,
    DiffFrame,
    Divergence,
    arrow_of,
    frame_of,
    is_own_code,
    kind_of,
    named_sides,
    own_number,
    own_site_of,
    side_by_side,
    site_of,
    target_of,
    way_of,
)
from ptkit.analysis.diff.named import Location
from ptkit.analysis.diff.pairing import Pair
from ptkit.analysis.diff.reading import Compared, read_runs
from ptkit.analysis.diff.sequence import Loss, Row
from ptkit.analysis.diff.strands import Run, times_at
from ptkit.analysis.diff.tables import (
    call_table,
    divergence_table,
    function_table,
    line_table,
    thread_table,
)
from ptkit.errors import ConfigError
from ptkit.support.text import counted, module_name, one_line
from ptkit.table import Table

__all__ = ["Difference", "difference"]

_LISTED = 20_000  # divergences of a thread
_PRINTED = 10


class Difference:
    """Where two runs part, and what only one of them did; made by `ptkit.diff`.

    Attributes
    ----------
    a, b : str
        Path or description of each run.
    threads : Table
        Pairs of threads, and threads that only one run has.
    divergences : Table
        Where they part, in order, thread by thread: of the selected code.
    unjudged : list of str
        What could not be compared, a sentence for each fact.
    """

    def __init__(
        self,
        sources: tuple[str, str],
        compared: Compared,
        *,
        module: Sequence[str] = (),
        symbol: Sequence[str] = (),
        own: bool = False,
        within: Callable[[Row], bool] | None = None,
    ) -> None:
        self.a, self.b = sources
        self._compared = compared
        self._chosen = module, symbol, within
        self._own_only = own
        self._times: dict[int, tuple[int, int]] = {}
        self._rows = self._named_rows()
        self.threads: Table = thread_table(compared.pairs, compared.results, self._counts())
        self.divergences: Table = divergence_table(self._rows)

    # Making.

    def _named_rows(self) -> list[dict[str, Any]]:
        """Rows of the table of divergences."""
        rows: list[dict[str, Any]] = []
        for thread, (pair, result) in enumerate(
            zip(self._compared.pairs, self._compared.results, strict=True)
        ):
            if pair.a is not None and pair.b is not None:
                rows += self._rows_of(thread, pair, result.partings)
        return rows

    def _rows_of(self, thread: int, pair: Pair, partings: Sequence[Parting]) -> list[dict[str, Any]]:
        assert pair.a is not None
        assert pair.b is not None
        reader = self._compared.reader
        names = reader.names
        is_python = reader.frames == "python"
        sites = [
            (own_site_of(parting, reader.is_own) if is_python else None) or site_of(parting)
            for parting in partings
        ]
        locations = named_sides(names, sites)
        owns = named_sides(names, [own_site_of(parting, reader.is_own) for parting in partings])
        targets = [
            named_sides(names, [target_of(parting.after[side], side) for parting in partings])
            for side in range(2)
        ]
        found = []
        for number, parting in enumerate(partings):
            location, own = locations[number], owns[number]
            # Which thread binds a function first, through a stub of the PLT, is up to the loader.
            is_stub = location is not None and str(location.function).endswith("@plt")
            is_own = location is not None and is_own_code(location) and not is_stub
            row = {
                "thread": thread,
                "a_tid": pair.a.tid,
                "b_tid": pair.b.tid,
                "module": None if location is None else location.module,
                "rva": 0 if location is None else location.rva,
                "function_full": None if location is None else location.function,
                "source": None if location is None else location.source,
                "line": 0 if location is None else location.line,
                "is_own": is_own,
                "where": str(location) if location is not None else "the begin",
                "own": str(location) if is_own else str(own) if own is not None else None,
                "kind": kind_of(parting),
                "depth": parting.depth,
                "joined": JOINED[parting.joined],
                "parting": parting,
            }
            for side, letter in enumerate("ab"):
                after, before = parting.after[side], parting.before[side]
                target = targets[side][number]
                row[f"{letter}_way"] = way_of(after)
                row[f"{letter}_target"] = str(target) if target is not None else None
                row[f"{letter}_instruction"] = (
                    after.instruction if after is not None else before.instruction + 1 if before else 0
                )
                seen = before if after is None else after
                row[f"{letter}_stream"] = -1 if seen is None else seen.stream
                row[f"{letter}_branches"] = parting.skipped[side]
                row[f"{letter}_branch"] = (
                    after.position if after is not None else before.position + 1 if before else 0
                )
            if (is_own or not self._own_only) and self._is_chosen(location, parting):
                found.append(row)
        return found

    def _is_chosen(self, location: Location | None, parting: Parting) -> bool:
        modules, symbols, within = self._chosen
        if modules and (location is None or not {location.module, location.path} & set(modules)):
            return False
        if symbols:
            if location is None or location.function is None:
                return False
            both = (location.function, _core.short_names([location.function])[0])
            if not any(fnmatchcase(one, pattern) for one in both for pattern in symbols):
                return False
        row = parting.after[0] or parting.before[0]
        return within is None or (row is not None and within(row))

    def _counts(self) -> list[int]:
        counts = np.bincount([row["thread"] for row in self._rows], minlength=len(self._compared.pairs))
        result: list[int] = counts.tolist()
        return result

    # Answers.

    @property
    def by(self) -> str:
        """What is compared: ``"branch"``, or of two builds ``"function"``, or what was asked for."""
        return self._compared.by

    @property
    def equal(self) -> bool | None:
        """Both runs took the same path; None: they did as far as it can be judged, see `unjudged`.

        By function and line: both executed each as often.
        """
        if self.by != "branch" and len(self.functions if self.by == "function" else self.lines):
            return False
        if len(self._rows) or any(pair.a is None or pair.b is None for pair in self._compared.pairs):
            return False
        if any(result.more for result in self._compared.results):
            return False
        return None if self.unjudged else True

    # Costs.

    @cached_property
    def _matching(self) -> Matching:
        runs = self._compared.reader.runs
        return function_rows(
            (runs[0].part, runs[1].part),
            self._compared.queries(),
            two_builds=self._compared.reader.has_two_builds,
            frames=self._compared.reader.frames,
            module_of=self._compared.module_of,
        )

    @cached_property
    def functions(self) -> Table:
        """Functions of which calls or instructions differ, by most instructions more or less.

        ``delta`` adds up to the instructions that run `b` executed more. Both runs are decoded once for it.
        """
        return function_table(
            [
                row
                for row in self._matching.rows
                if (row.delta or row.a.count != row.b.count or row.matched.startswith("only"))
                and self._has(row.key.module, row.key.name, row.other_name)
            ]
        )

    @cached_property
    def calls(self) -> Table:
        """Calls that only one run has, by most instructions, then those of which the counts differ."""
        return call_table(
            [row for row in call_rows(self._matching) if self._has(row.callee.module, row.callee.name)]
        )

    @cached_property
    def lines(self) -> Table:
        """Source lines of which executions or instructions differ, by most instructions more or less.

        Code without debug information is a row for each function. ``delta`` adds up as in `functions`.
        """
        runs = self._compared.reader.runs
        rows = line_rows(
            (runs[0].part, runs[1].part), self._compared.queries(), module_of=self._compared.module_of
        )
        return line_table(
            [
                row
                for row in rows
                if (row.delta or row.counts[0] != row.counts[1]) and self._has(row.module, row.function)
            ]
        )

    def _has(self, module: str | None, *names: str | None) -> bool:
        """Whether code of a file and a function is selected."""
        modules, symbols, _ = self._chosen
        if self._own_only and module not in self._compared.reader.own_names:
            return False
        if modules and module not in {module_name(one) for one in modules}:
            return False
        full = [name for name in names if name is not None]
        return not symbols or any(
            fnmatchcase(one, pattern) for one in (*full, *_core.short_names(full)) for pattern in symbols
        )

    @cached_property
    def unjudged(self) -> list[str]:
        """What could not be compared, one sentence for each fact."""
        found = [
            f"{name}: two builds of the file ran: {one} and {other}: its branches are not compared"
            for name, (one, other) in self._compared.reader.builds.items()
        ]
        found += [
            f"{other} is compared with {name}, by function: its branches are not compared"
            for other, name in self._compared.reader.renamed.items()
        ]
        for pair, result in zip(self._compared.pairs, self._compared.results, strict=True):
            for source, strand, losses, rows in zip(
                (self.a, self.b), (pair.a, pair.b), result.losses, result.unjudged, strict=True
            ):
                if strand is None or not (losses or rows):
                    continue
                where = f"{source}: {strand.text}"
                passed = f"{counted(rows, 'branch', 'branches')} could not be compared"
                if losses:
                    found.append(f"{where}: {_of_losses(losses)}; {passed}")
                else:
                    found.append(f"{where}: {passed}: no place was found where both runs go on equally")
            if result.more:
                found.append(f"{counted(result.more, 'more divergence')} after the first {_LISTED:,}")
        for source, losses in zip((self.a, self.b), self._compared.lost, strict=True):
            if losses:
                found.append(f"{source}: {_of_losses(losses)}")
        if self.by == "branch" and not any(result.compared for result in self._compared.results):
            found.append("no branch was compared")
        return found

    def headline(self, thread: int | None = None, module: str | None = None) -> int | None:
        """Row of the divergence that matters: see `first`."""
        rows = [
            (number, row)
            for number, row in enumerate(self._rows)
            if (thread is None or thread in (row["a_tid"], row["b_tid"]))
            and (module is None or row["module"] == module)
        ]
        # Own code, then what own code called, then the loader and what else ran before it.
        ranks = [(not row["is_own"], row["own"] is None) for _, row in rows]
        best = min(ranks) if ranks and module is None else None
        firsts: dict[int, int] = {}  # by thread
        for (number, row), rank in zip(rows, ranks, strict=True):
            if best is None or rank == best:
                firsts.setdefault(row["thread"], number)
        return min(firsts.values(), key=self._time_of if len(firsts) > 1 else int) if firsts else None

    def _time_of(self, number: int) -> tuple[int, int]:
        """When run a parted there, in TSC ticks, which orders threads; where no time is known, the number."""
        if number not in self._times:
            parting: Parting = self._rows[number]["parting"]
            row = parting.before[0] or parting.after[0]
            found = -1
            if row is not None:
                part = self._compared.reader.runs[0].part
                found = int(times_at(part, row.stream, np.array([row.instruction]))[0])
            self._times[number] = found, number
        return self._times[number]

    def first(self, thread: int | None = None, module: str | None = None) -> Divergence | None:
        """The first divergence in the program's own files, with both stacks.

        If there is none, the first one in what own code called; if there is none of these either, the first.

        Parameters
        ----------
        thread : int, optional
            ID of a thread of either run.
        module : str, optional
            Name of a file: the first one there.

        Returns
        -------
        Divergence or None
            None: there is none.
        """
        number = self.headline(thread, module)
        return None if number is None else self.divergence(number)

    def divergence(self, number: int) -> Divergence:
        """A row of `divergences`, with both stacks."""
        row = self._row(number)
        pair = self._compared.pairs[row["thread"]]
        parting = row["parting"]
        stacks = [
            self._stack(side, strand, parting.after[side], parting.before[side])
            for side, strand in enumerate((pair.a, pair.b))
        ]
        earlier = [one for one in self._rows[:number] if one["thread"] == row["thread"] and not one["is_own"]]
        files = dict.fromkeys(one["module"] for one in earlier if one["module"] is not None)
        shown = {name: value for name, value in row.items() if name != "parting"}
        return Divergence(number, shown, stacks[0], stacks[1], len(earlier), tuple(files))

    def _row(self, number: int) -> dict[str, Any]:
        if not -len(self._rows) <= number < len(self._rows):
            raise ConfigError(f"divergence {number}: there are {counted(len(self._rows), 'divergence')}")
        return self._rows[number]

    def _stack(self, side: int, strand: Any, after: Row | None, before: Row | None) -> tuple[DiffFrame, ...]:
        row = after if after is not None else before
        if row is None:
            return ()
        run = self._compared.reader.runs[side]
        at = row.instruction
        query: dict[str, Any] = {"stream": row.stream, "errors": "rows"}
        if strand.tid >= 0:
            query["tid"] = strand.tid
        if strand.spool is not None:
            at = own_number(run, row, query)
        calls = run.trace.calls(instructions=(at, at + 1), frames=self._compared.reader.frames, **query)
        order = np.argsort(np.asarray(calls["depth"]), kind="stable")[::-1]
        ips = np.asarray(calls["call_ip"])[order]
        where = np.concatenate([np.array([row.from_ip], np.uint64), ips[:-1]])
        spaces = np.full(len(where), row.space, np.uint32)
        locations = self._compared.reader.names[side](where.tolist(), spaces.tolist())
        names = calls.named("entry_symbol_full")
        functions = [names[one] for one in order.tolist()]
        return tuple(
            frame_of(function, location, ip)
            for function, location, ip in zip(functions, locations, where.tolist(), strict=True)
        )

    def context(self, divergence: int | Divergence = 0, count: int = 10) -> Context:
        """The last branches before a divergence, and the next ones, of both runs side by side.

        Parameters
        ----------
        divergence : int or Divergence
            Row of `divergences`.
        count : int
            How many before it, and after it.
        """
        number = divergence.number if isinstance(divergence, Divergence) else divergence
        row = self._row(number)
        pair, parting = self._compared.pairs[row["thread"]], row["parting"]
        texts = []
        for side, strand in enumerate((pair.a, pair.b)):
            assert strand is not None
            sequence = self._compared.reader.sequence(strand, side)
            at = row[f"{'ab'[side]}_branch"]
            begin = max(at - count, 0)
            sequence.skip(begin)
            rows: list[Row] = []
            while len(rows) < at - begin + count and (one := sequence.row()) is not None:
                rows.append(one)
                sequence.skip(1)
            texts.append((self._lines(side, rows[: at - begin]), self._lines(side, rows[at - begin :])))
        del parting
        befores, afters = zip(*texts, strict=True)
        return Context(side_by_side(*befores, align_end=True), side_by_side(*afters))

    def _lines(self, side: int, rows: Sequence[Row]) -> list[str]:
        name = self._compared.reader.names[side]
        begins = name([row.from_ip for row in rows], [row.space for row in rows])
        ends = name([row.to_ip for row in rows], [row.space for row in rows])
        return [
            one_line(f"{begin} {arrow_of(row)} {end if row.to_key >> 48 != 0xFFFF else ''}".rstrip())
            for row, begin, end in zip(rows, begins, ends, strict=True)
        ]

    # Printing.

    def summary(self) -> list[str]:
        """Whether they differ, and in what threads, as lines of text."""
        found = [f"a: {self.a}", f"b: {self.b}"]
        if self.by != "branch":
            return [*found, *map(one_line, self._cost_lines())]
        pairs, results = self._compared.pairs, self._compared.results
        compared = sum(result.compared for result in results)
        if self.equal is not False:
            judged = "" if self.equal else ", as far as it can be judged"
            found.append(
                f"no difference{judged}: {counted(compared, 'branch', 'branches')} of "
                f"{counted(len(pairs), 'thread')}"
            )
        else:
            total = len(self._rows) + sum(result.more for result in results)
            own = sum(row["is_own"] for row in self._rows)
            where = f", {own:,} in the program's own files" if not self._own_only else ""
            found.append(
                f"{counted(total, 'divergence')}{where}; {counted(compared, 'branch', 'branches')} are equal"
            )
        for pair in pairs:
            if pair.a is None or pair.b is None:
                strand, side = (pair.a, "a") if pair.b is None else (pair.b, "b")
                assert strand is not None
                role = f", {pair.role}" if pair.role else ""
                found.append(f"only in {side}: {strand.text}{role}: {pair.how}")
        return [one_line(line) for line in found]

    def _cost_lines(self) -> list[str]:
        """Whether costs differ, in words."""
        table = self.functions if self.by == "function" else self.lines
        if not len(table):
            return [f"no difference: each {self.by} was executed as often by both"]
        more = int(table["delta"].sum())
        return [
            f"{counted(len(table), self.by)} differ{'s' if len(table) == 1 else ''}: {more:+,} instructions"
        ]

    def costs(self, by: str, most: int = _PRINTED) -> list[str]:
        """The first rows of `functions`, `calls` or `lines` as lines of text.

        Parameters
        ----------
        by : str
            ``"function"``, ``"call"`` or ``"line"``.
        most : int
        """
        tables = {"function": "functions", "call": "calls", "line": "lines"}
        table: Table = getattr(self, tables[by])[:most]
        if not len(table):
            return []
        heads: tuple[str, ...] = ("a_count", "b_count", "a_instructions", "b_instructions")
        columns = [[f"{value:,}" for value in table.named(name)] for name in heads]
        if by != "call":
            columns.insert(0, [f"{value:+,}" for value in table.named("delta")])
            heads = ("delta", *heads)
        widths = [max(map(len, (head, *column))) for head, column in zip(heads, columns, strict=True)]
        found = [f"{' '.join(map(str.rjust, heads, widths))}  {by}"]
        for row, text in zip(zip(*columns, strict=True), _subjects(table, by), strict=True):
            found.append(one_line(f"{' '.join(map(str.rjust, row, widths))}  {text}"))
        return found

    def listed(self, most: int = _PRINTED) -> list[str]:
        """The first divergences, a line for each."""
        found = []
        for number, row in enumerate(self._rows[:most]):
            ways = [f"{side}: {row[f'{side}_way']} {row[f'{side}_target'] or ''}".rstrip() for side in "ab"]
            own = f", from {row['own']}" if row["own"] is not None and not row["is_own"] else ""
            thread = f" (tid {row['a_tid']}, {row['b_tid']})" if len(self._compared.pairs) > 1 else ""
            joined = f"joined {row['joined']} after {row['a_branches']:,} and {row['b_branches']:,} branches"
            found.append(one_line(f"{number}: {row['where']}{own}{thread}: {'; '.join(ways)}; {joined}"))
        return found

    def __str__(self) -> str:
        lines = [*self.summary(), *map(one_line, self.unjudged)]
        if self.by != "branch":
            return "\n".join([*lines, *self.costs(self.by)])
        first = self.first()
        if first is not None:
            lines += [first.earlier_text()] if first.earlier and first.row["is_own"] else []
            lines += first.lines()
        if len(self._rows) > 1:
            lines += [f"  {line}" for line in self.listed()]
            left = len(self._rows) - _PRINTED
            lines += [f"  ... {left:,} more"] if left > 0 else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        if self.by != "branch":
            return f"<ptkit.Difference: {self._cost_lines()[0]}>"
        said = {True: "equal", None: "equal as far as it can be judged"}
        return f"<ptkit.Difference: {said.get(self.equal, counted(len(self._rows), 'divergence'))}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _subjects(table: Table, by: str) -> list[str]:
    """What rows of costs are of."""
    names = ["-" if one is None else one for one in table.named("function")]
    modules = [f"{one}: " if one is not None else "" for one in table.named("module")]
    if by == "call":
        callers = ["-" if one is None else _core.short_names([one])[0] for one in table.named("caller")]
        return [f"{caller} -> {name}" for caller, name in zip(callers, names, strict=True)]
    if by == "line":
        lines = zip(table.named("source"), table.named("line"), modules, names, strict=True)
        return [
            f"{module}{name}" if source is None else f"{source}:{line} ({name})"
            for source, line, module, name in lines
        ]
    found = []
    for module, name, how, other in zip(
        modules, names, table.named("matched"), table.named("b_name"), strict=True
    ):
        more = f" ({how}{f': {other}' if other else ''})" if how != "name" else ""
        found.append(f"{module}{name}{more}")
    return found


def _of_losses(losses: Sequence[Loss]) -> str:
    more = f", and {counted(len(losses) - 1, 'more loss', 'more losses')}" if len(losses) > 1 else ""
    return f"{losses[0].text}{more}: what ran there is not known"


def difference(
    a: Run,
    b: Run,
    sources: tuple[str, str],
    *,
    tid: int | None = None,
    by: str | None = None,
    frames: str = "native",
    **chosen: Any,
) -> Difference:
    """Compare two runs."""
    return Difference(sources, read_runs(a, b, limit=_LISTED, tid=tid, by=by, frames=frames), **chosen)
