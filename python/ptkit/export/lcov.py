"""LCOV's tracefile: lines, functions and outcomes of branches by source file, for genhtml and others."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Protocol

from ptkit import _core
from ptkit.analysis.coverage import Coverage
from ptkit.export.blocks import refuse_selection
from ptkit.support.text import one_line

__all__ = ["CoverageTrace", "write_lcov"]


class CoverageTrace(Protocol):
    """A trace, or a part of one, of which coverage is taken."""

    def coverage(self, **query: Any) -> Coverage:
        """What ran."""


@dataclass
class _Source:
    """What is known of a source file."""

    functions: dict[tuple[int, str], int] = field(default_factory=dict)  # entries, by line and name
    branches: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    lines: dict[int, int] = field(default_factory=dict)

    def records(self) -> list[str]:
        """Return lines of text between those that begin and end the file."""
        functions = sorted(self.functions.items())
        found = [f"FN:{line},{name}" for (line, name), _ in functions]
        found += [f"FNDA:{count},{name}" for (_, name), count in functions]
        found += [f"FNF:{len(functions)}", f"FNH:{sum(count > 0 for _, count in functions)}"]
        outcomes = [
            (line, block, number, count)
            for line, branches in sorted(self.branches.items())
            for block, branch in enumerate(branches)
            for number, count in enumerate(branch)
        ]
        found += [f"BRDA:{line},{block},{number},{count}" for line, block, number, count in outcomes]
        found += [f"BRF:{len(outcomes)}", f"BRH:{sum(count > 0 for *_, count in outcomes)}"]
        found += [f"DA:{line},{count}" for line, count in sorted(self.lines.items())]
        return [*found, f"LF:{len(self.lines)}", f"LH:{sum(count > 0 for count in self.lines.values())}"]


def write_lcov(trace: CoverageTrace | Coverage, path: str, **query: Any) -> dict[str, Any]:
    """Write lines, functions and branches as a tracefile.

    Parameters
    ----------
    trace : Trace or Coverage
    path : str
        A file; an earlier one is replaced when the new one is complete.
    **query
        Which code: ``pid=``, ``time=``, ``module=``, ...; see `ptkit.decode.Query`. A set takes none.

    Raises
    ------
    ConfigError
        If a set is to be selected, or has lines alone.
    """
    if isinstance(trace, Coverage):
        refuse_selection(query)
        coverage = trace
    else:
        coverage = trace.coverage(**query)
    sources = _sources(coverage)
    lines = [
        line
        for name, source in sorted(sources.items())
        for line in ("TN:", f"SF:{one_line(name)}", *source.records(), "end_of_record")
    ]
    contents = "".join(f"{line}\n" for line in lines or ["TN:"]).encode("utf-8", "surrogateescape")
    _core.write_file(os.fsencode(path), contents)
    return {"bytes": len(contents), "notes": _notes(coverage)}


def _sources(coverage: Coverage) -> dict[str, _Source]:
    found: dict[str, _Source] = defaultdict(_Source)
    lines = coverage.known_lines
    columns = (lines.named(name) for name in ("source", "line", "count", "instructions"))
    for path, line, count, instructions in zip(*columns, strict=True):
        found[path].lines[line] = _at_least_once(count, instructions)
    functions = coverage.known_functions
    names = ("source", "line", "function_full", "count", "instructions")
    for path, line, name, count, instructions in zip(*map(functions.named, names), strict=True):
        if path is None or name is None:
            continue
        key = line, one_line(name)
        entries = found[path].functions
        entries[key] = entries.get(key, 0) + _at_least_once(count or 0, instructions)
    branches = coverage.branches
    columns = (branches.named(name) for name in ("source", "line", "taken", "not_taken"))
    for path, line, taken, not_taken in zip(*columns, strict=True):
        if path is not None:
            found[path].branches[line].append((taken, not_taken))
    return found


def _at_least_once(count: int, instructions: int) -> int:
    """Executions; 1 of code that was not seen from its begin on."""
    return max(count, 1) if instructions else 0


def _notes(coverage: Coverage) -> list[str]:
    notes = list(coverage.missing)
    if coverage.total("line") is None:
        notes.append(
            "lines that did not run are not known: the file has no debug information of the build that ran"
        )
    else:
        notes.append("branches are those that ran: of others, the file has none")
    return notes
