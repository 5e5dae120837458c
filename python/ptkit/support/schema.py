"""Names, dtypes, units and meaning of every column, as the core has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from types import MappingProxyType

import numpy as np

from ptkit import _core

__all__ = [
    "BRANCH_RECORD",
    "ENUMS",
    "Column",
    "TableSchema",
    "made_tables",
    "row_tables",
    "schema_of",
    "tables",
]

#: A record of a stream of kind "branch records"; docs/branch-records.md says what its fields hold.
BRANCH_RECORD = np.dtype(
    [("from_ip", "<u8"), ("to_ip", "<u8"), ("tsc", "<u8"), ("flags", "<u4"), ("cycles", "<u4")]
)

#: Enumerations by the name that a column's unit has.
ENUMS: Mapping[str, type[IntEnum]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            _core.BranchKind,
            _core.CallEnd,
            _core.CallKind,
            _core.ErrorCode,
            _core.EventKind,
            _core.GapCause,
            _core.InsnClass,
            _core.PacketKind,
            _core.StackAnomaly,
            _core.TimeSource,
        )
    }
)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        What ``table[name]`` takes.
    dtype : numpy.dtype
        Of the values; bool for flags.
    unit : str
        ``"address"``, ``"bytes"``, ``"TSC ticks"``, the name of an enumeration, or empty.
    doc : str
        What it means; docs/tables.md has all columns.
    role : str
        ``"stored"``; ``"on demand"``: stored where it is asked for by name; ``"run"``: kept as runs, spread
        over rows on access; ``"flag"``: a bit of ``flags``; ``"run flag"``: a bit of a run; ``"derived"``:
        made of other columns (`ptkit.table.derived`).
    mask : int
        The bits, for flags.
    """

    name: str
    dtype: np.dtype[np.generic]
    unit: str
    doc: str
    role: str = "stored"
    mask: int = 0

    @property
    def enum(self) -> type[IntEnum] | None:
        """The enumeration of the values, if there is one."""
        return ENUMS.get(self.unit)


@dataclass(frozen=True)
class TableSchema:
    """One table: its columns by name, and which flag says that a value is known.

    Attributes
    ----------
    name : str
        ``"packets"``, ``"branches"``, ...
    columns : mapping of str to Column
        Every column but derived ones, which a trace may or may not have.
    validity : mapping of str to str
        By column: the bool column that is true where the value is known.
    """

    name: str
    columns: Mapping[str, Column]
    validity: Mapping[str, str]

    def names(self, *roles: str) -> tuple[str, ...]:
        """Columns that have one of these roles, in order."""
        return _names(self.name, roles)


@cache
def _names(table: str, roles: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name, column in schema_of(table).columns.items() if column.role in roles)


def _column(row: tuple[str, str, str, str], role: str) -> Column:
    name, dtype, unit, doc = row
    return Column(name, np.dtype(dtype), unit, doc, role)


# The table of mappings: no decoder gives its rows, so the core has no schema of it.
_U8, _I32, _U32, _U64 = (np.dtype(name) for name in ("u1", "i4", "u4", "u8"))
_MAPPINGS = (
    Column("address", _U64, "address", "of the first byte"),
    Column("size", _U64, "bytes", ""),
    Column("file", _I32, "", "index of the file; see file_known"),
    Column("file_offset", _U64, "bytes", "of the first byte in the file; see file_known"),
    Column("rva", _U64, "bytes", "`address` less the load address of the file; see file_known"),
    Column("space", _U32, "", "index of the address space; 0: all of them"),
    Column("tsc_from", _U64, "TSC ticks", "mapped from this time on; see from_known"),
    Column("tsc_to", _U64, "TSC ticks", "until this time; see until_known"),
    Column("flags", _U8, "MappingFlag", "file known, begin known, end known"),
    Column("file_known", np.dtype(np.bool_), "", "it is of a file", "flag", 1),
    Column("from_known", np.dtype(np.bool_), "", "it did not begin before the recording", "flag", 2),
    Column("until_known", np.dtype(np.bool_), "", "it ended before the recording did", "flag", 4),
)
_MAPPINGS_KNOWN = {
    "file": "file_known",
    "file_offset": "file_known",
    "rva": "file_known",
    "tsc_from": "from_known",
    "tsc_to": "until_known",
}


# Tables of threads, which are made of frames and context switches.
_I64, _BOOL = np.dtype("i8"), np.dtype(np.bool_)
_THREADS = (
    Column("pid", _I32, "", "process; see tid_known"),
    Column("tid", _I32, "", "thread; see tid_known"),
    Column("instructions", _I64, "", "that were executed"),
    Column(
        "running", _I64, "TSC ticks", "on a processor; without switches_known: in traced code; see time_known"
    ),
    Column(
        "untraced", _I64, "TSC ticks", "packets were disabled, mostly in system calls; see untraced_known"
    ),
    Column("waiting", _I64, "TSC ticks", "switched out, and could not go on; see switches_known"),
    Column("waits", _I64, "", "how often; see switches_known"),
    Column("preempted", _I64, "TSC ticks", "switched out, and could have gone on; see switches_known"),
    Column("preemptions", _I64, "", "how often; see switches_known"),
    Column("flags", _U8, "", "thread known, times known, switches known, untraced known, data lost"),
    Column("tid_known", _BOOL, "", "pid and tid are known", "flag", 1),
    Column("time_known", _BOOL, "", "running is known", "flag", 2),
    Column("switches_known", _BOOL, "", "context switches with times are recorded", "flag", 4),
    Column("untraced_known", _BOOL, "", "untraced is known", "flag", 8),
    Column("incomplete", _BOOL, "", "data of its streams was lost: amounts are not exact", "flag", 16),
)
_THREADS_KNOWN = {
    "pid": "tid_known",
    "tid": "tid_known",
    "running": "time_known",
    "untraced": "untraced_known",
    "waiting": "switches_known",
    "waits": "switches_known",
    "preempted": "switches_known",
    "preemptions": "switches_known",
}
_WAITS = (
    Column("pid", _I32, "", "process; see tid_known"),
    Column("tid", _I32, "", "thread; see tid_known"),
    Column("ip", _U64, "address", "of the system call; see ip_known"),
    Column("caller_ip", _U64, "address", "of the call that led to its file; see caller_known"),
    Column("space", _U32, "", "index of the address space"),
    Column("count", _I64, "", "how often it was switched out there; without is_switched: system calls"),
    Column("length", _I64, "TSC ticks", "how long, in all; see time_known"),
    Column(
        "flags", _U8, "", "thread known, time known, address known, caller known, switched out, preempted"
    ),
    Column("tid_known", _BOOL, "", "pid and tid are known", "flag", 1),
    Column("time_known", _BOOL, "", "length is known", "flag", 2),
    Column("ip_known", _BOOL, "", "it was in a system call that is known", "flag", 4),
    Column("caller_known", _BOOL, "", "the call is known", "flag", 8),
    Column("is_switched", _BOOL, "", "the thread was switched out, by the record of a switch", "flag", 16),
    Column("is_preempted", _BOOL, "", "it did not wait, but was preempted", "flag", 32),
)
_WAITS_KNOWN = {
    "pid": "tid_known",
    "tid": "tid_known",
    "ip": "ip_known",
    "caller_ip": "caller_known",
    "length": "time_known",
}


def _made(name: str, columns: tuple[Column, ...], known: Mapping[str, str]) -> TableSchema:
    by_name = MappingProxyType({column.name: column for column in columns})
    return TableSchema(name, by_name, MappingProxyType(known))


# The table of callers: a call tree from the inside out.
_CALLERS = {
    "node": "number of the row",
    "parent": "number of the row of the function that it calls; see parent_known",
    "depth": "calls from it to the function that was asked for; 0: that function",
    "parent_known": "it is a caller, not the function that was asked for",
}


def _callers(tree: TableSchema) -> TableSchema:
    columns = {
        name: replace(column, doc=_CALLERS.get(name, column.doc)) for name, column in tree.columns.items()
    }
    return TableSchema("callers", MappingProxyType(columns), tree.validity)


# Tables that no decoder gives.
_OTHERS = (
    "mappings",
    "calls",
    "stack_anomalies",
    "functions",
    "call_tree",
    "callers",
    "threads",
    "waits",
    "ptwrites",
    "at_times",
)


# Tables of `ptkit.Coverage`, which no trace gives: a set may be of several.
_FILE = Column("file", _I32, "", "index in `coverage.files`")
_RVA = Column("rva", _U64, "bytes", "of the first byte in its file; address less load address")
_LINE = Column("line", _U32, "", "of `source`; see line_known")
_LINE_KNOWN = Column("line_known", _BOOL, "", "it has a source line", "flag", 1)
_COVERED = {
    "covered_blocks": (
        _FILE,
        _RVA,
        Column("size", _U32, "bytes", ""),
        Column("instructions", _I64, "", "of one execution"),
        Column("count", _I64, "", "executions"),
        _LINE,
        Column("flags", _U8, "", "line known"),
        _LINE_KNOWN,
    ),
    "covered_edges": (
        Column("from_file", _I32, "", "index in `coverage.files`"),
        Column("from_rva", _U64, "bytes", "of the branch in its file"),
        Column("to_file", _I32, "", "index in `coverage.files`"),
        Column("to_rva", _U64, "bytes", "of the target in its file"),
        Column("kind", _U8, "BranchKind", ""),
        Column("count", _I64, "", "how often it was executed"),
    ),
    "covered_branches": (
        _FILE,
        Column("rva", _U64, "bytes", "of the conditional branch in its file"),
        Column("taken", _I64, "", "executions that took it"),
        Column("not_taken", _I64, "", "executions that did not"),
        _LINE,
        Column("flags", _U8, "", "line known"),
        _LINE_KNOWN,
    ),
    "covered_functions": (
        _FILE,
        Column("rva", _U64, "bytes", "of the begin in its file; see entry_known"),
        Column("count", _I64, "", "entries at the begin; see entry_known"),
        Column("instructions", _I64, "", "that were executed in it, without calls"),
        Column("line", _U32, "", "of the begin in `source`; see line_known"),
        Column("flags", _U8, "", "line known, symbol known"),
        _LINE_KNOWN,
        Column("entry_known", _BOOL, "", "it has a symbol", "flag", 2),
    ),
    "covered_lines": (
        Column("line", _U32, "", "of `source`"),
        Column("count", _I64, "", "executions, by gcov's rule"),
        Column("instructions", _I64, "", "that were executed"),
    ),
}
_COVERED_KNOWN = {"line": "line_known", "rva": "entry_known", "count": "entry_known"}

# Tables of `ptkit.Annotation`.
_CONDITIONAL = Column("is_conditional", _BOOL, "", "it has a conditional branch that ran", "flag", 2)
_HOTTEST = Column("is_hottest", _BOOL, "", "it is on the hottest path through the function", "flag", 4)
_HEAD = Column("is_head", _BOOL, "", "a loop begins here", "flag", 8)
_TAKEN = (
    Column("taken", _I64, "", "executions of conditional branches that took them; see is_conditional"),
    Column("not_taken", _I64, "", "executions of conditional branches that did not; see is_conditional"),
)
_ANNOTATED_FLAGS = Column("flags", _U8, "", "line known, conditional, on the hottest path, head of a loop")
_ANNOTATED = {
    "annotated_instructions": (
        Column("number", _U32, "", "index in `annotation.functions`"),
        Column("ip", _U64, "address", "in the first address space where it ran"),
        Column("rva", _U64, "bytes", "in its file; outside of files the address"),
        Column(
            "offset", _I64, "bytes", "from the begin of the function; negative where a part lies before it"
        ),
        Column("size", _U8, "bytes", ""),
        Column("count", _I64, "", "executions; 0: it did not run"),
        *_TAKEN,
        Column("line", _U32, "", "of `source`; see line_known"),
        Column("depth", _U8, "", "loops that it is in"),
        _ANNOTATED_FLAGS,
        _LINE_KNOWN,
        _CONDITIONAL,
        _HOTTEST,
        _HEAD,
    ),
    "annotated_lines": (
        Column("number", _U32, "", "index in `annotation.functions`"),
        Column("line", _U32, "", "of `source`"),
        Column("count", _I64, "", "executions by gcov's rule, of this function's code; 0: it did not run"),
        Column("instructions", _I64, "", "that were executed"),
        *_TAKEN,
        Column("depth", _U8, "", "loops that its code is in"),
        _ANNOTATED_FLAGS,
        _LINE_KNOWN,
        _CONDITIONAL,
        _HOTTEST,
        _HEAD,
    ),
    "annotated_loops": (
        Column("number", _U32, "", "index in `annotation.functions`"),
        Column("rva", _U64, "bytes", "of the head in its file; outside of files the address"),
        Column("offset", _I64, "bytes", "of the head, from the begin of the function"),
        Column("count", _I64, "", "executions of the head; count / entries is the mean of its trips"),
        Column("entries", _I64, "", "of these, those that came from outside of the loop"),
        Column("instructions", _I64, "", "that were executed in the loop, without calls"),
        Column("depth", _U8, "", "loops that the head is in, with its own"),
        Column("line", _U32, "", "of `source`; see line_known"),
        Column("flags", _U8, "", "line known"),
        _LINE_KNOWN,
    ),
}
_ANNOTATED_KNOWN = {"line": "line_known", "taken": "is_conditional", "not_taken": "is_conditional"}

# Tables of `ptkit.Difference`.
_DIFFERENCE = {
    "diff_threads": (
        Column("a_tid", _I32, "", "thread of run a; see a_known"),
        Column("b_tid", _I32, "", "thread of run b; see b_known"),
        Column("branches", _I64, "", "that are equal in both"),
        Column("divergences", _I64, "", "of the selected code"),
        Column("a_unjudged", _I64, "", "branches of run a that could not be compared"),
        Column("b_unjudged", _I64, "", "branches of run b that could not be compared"),
        Column("flags", _U8, "", "a known, b known"),
        Column("a_known", _BOOL, "", "run a has the thread, and its number is known", "flag", 1),
        Column("b_known", _BOOL, "", "run b has the thread, and its number is known", "flag", 2),
    ),
    "divergences": (
        Column("thread", _I32, "", "row of `difference.threads`"),
        Column("a_tid", _I32, "", "thread of run a; -1: its number is not known"),
        Column("b_tid", _I32, "", "thread of run b; -1: its number is not known"),
        Column("a_stream", _I32, "", "stream of run a; -1: it has no branches"),
        Column("b_stream", _I32, "", "stream of run b; -1: it has no branches"),
        Column("rva", _U64, "bytes", "of the branch in its file; address less load address"),
        Column("line", _U32, "", "of `source`; see line_known"),
        Column("depth", _I32, "", "frames that both left until they went on equally"),
        Column(
            "a_instruction", _I64, "", "instructions of the stream of run a before the first other branch"
        ),
        Column("b_instruction", _I64, "", "the same of run b"),
        Column("a_branches", _I64, "", "branches of run a until both go on equally"),
        Column("b_branches", _I64, "", "the same of run b"),
        Column("a_branch", _I64, "", "compared branches of the thread of run a before it"),
        Column("b_branch", _I64, "", "the same of run b"),
        Column("flags", _U8, "", "line known, own"),
        _LINE_KNOWN,
        Column("is_own", _BOOL, "", "it is in a file of the program, not of the system", "flag", 2),
    ),
}
_OF_RUNS = (
    Column("a_count", _I64, "", "how often, in run a"),
    Column("b_count", _I64, "", "how often, in run b"),
)
_COSTS = (
    Column("a_instructions", _I64, "", "executed by it alone in run a"),
    Column("b_instructions", _I64, "", "executed by it alone in run b"),
    Column("delta", _I64, "", "instructions that run b executed more"),
)
_DIFFERENCE |= {
    "diff_functions": (
        *_OF_RUNS,
        *_COSTS,
        Column("a_total", _I64, "", "instructions of run a with what it called"),
        Column("b_total", _I64, "", "instructions of run b with what it called"),
        Column("line", _U32, "", "of the begin in `source`; see line_known"),
        Column("flags", _U8, "", "line known"),
        _LINE_KNOWN,
    ),
    "diff_calls": (
        *_OF_RUNS,
        Column("a_instructions", _I64, "", "of these calls in run a, with what they called"),
        Column("b_instructions", _I64, "", "of these calls in run b, with what they called"),
    ),
    "diff_lines": (
        Column("line", _U32, "", "of `source`; see line_known"),
        *_OF_RUNS,
        *_COSTS,
        Column("flags", _U8, "", "line known"),
        _LINE_KNOWN,
    ),
}
_DIFFERENCE_KNOWN = {"line": "line_known", "a_tid": "a_known", "b_tid": "b_known"}

# The table of `ptkit.Suspects`.
_F64 = np.dtype("f8")
_SUSPECTS = {
    "suspects": (
        Column(
            "score", _F64, "", "share of the failing recordings that have it, less that of the passing ones"
        ),
        Column("p", _F64, "", "of Fisher's exact test, two-sided; of this fact alone"),
        Column("failing", _I64, "", "failing recordings that have it"),
        Column("passing", _I64, "", "passing recordings that have it"),
        Column("more_than", _I64, "", "a recording has it if it was executed more often than this"),
        Column("file", _I32, "", "index in `suspects.files`"),
        Column(
            "rva", _U64, "bytes", "of the branch in its file; of a path the last one; of a return its target"
        ),
        _LINE,
        Column("flags", _U8, "", "line known, own code, more of the failing recordings"),
        _LINE_KNOWN,
        Column("is_own", _BOOL, "", "it is code of the program, not of a library", "flag", 2),
        Column("of_failing", _BOOL, "", "more of the failing recordings have it", "flag", 4),
    ),
}
_SUSPECTS_KNOWN = {"line": "line_known"}

# Tables of how branches behave.
_KIND = Column("kind", _U8, "BranchKind", "kind of branch")
_SPACE = Column("space", _U32, "", "index of the address space")
_IS_EXACT = "nothing is missing or rounded; else numbers are those of what is in the trace"
_BEHAVIOUR: dict[str, tuple[Column, ...]] = {
    "branch_stats": (
        Column("from_ip", _U64, "address", "of the branch instruction"),
        _KIND,
        Column("count", _I64, "", "executions"),
        Column("taken", _I64, "", "executions that took it; see is_conditional"),
        Column("not_taken", _I64, "", "executions that did not; see is_conditional"),
        Column(
            "runs", _I64, "", "maximal runs of the same outcome, of each thread alone; see is_conditional"
        ),
        Column("longest_taken", _I64, "", "executions of the longest run that took it; see is_conditional"),
        Column("longest_not_taken", _I64, "", "the same of those that did not; see is_conditional"),
        Column(
            "run_entropy",
            _F64,
            "bits",
            "Shannon entropy of (outcome, length) of the runs: bits for each run; see is_conditional",
        ),
        Column("targets", _I64, "", "different targets; see is_indirect"),
        Column(
            "entropy",
            _F64,
            "bits",
            "Shannon entropy of the outcomes, or of the targets: bits for each execution, whatever the order",
        ),
        Column(
            "cut_runs", _I64, "", "runs that end because rows behind them are missing; see is_conditional"
        ),
        _LINE,
        _SPACE,
        Column("flags", _U8, "", "line known, conditional, indirect, exact"),
        _LINE_KNOWN,
        Column("is_conditional", _BOOL, "", "it is a conditional branch", "flag", 2),
        Column("is_indirect", _BOOL, "", "it is an indirect jump or call", "flag", 4),
        Column("exact", _BOOL, "", _IS_EXACT, "flag", 8),
    ),
    "indirect_targets": (
        Column("from_ip", _U64, "address", "of the branch instruction"),
        Column("to_ip", _U64, "address", "where control went; see to_known"),
        _KIND,
        Column("count", _I64, "", "how often"),
        Column("share", _F64, "", "of the executions of the branch, from 0 to 1"),
        Column("targets", _I64, "", "targets that the row stands for; 1 unless is_rest"),
        _LINE,
        _SPACE,
        Column("flags", _U8, "", "line known, to known, rest"),
        _LINE_KNOWN,
        Column("to_known", _BOOL, "", "`to_ip` is known; see `edges`", "flag", 2),
        Column("is_rest", _BOOL, "", "it stands for the rarest targets of the branch", "flag", 4),
    ),
}
_BEHAVIOUR["loops"] = (
    Column("head_ip", _U64, "address", "of the first instruction: the only way into the loop"),
    Column("outer_ip", _U64, "address", "head of the innermost loop around it; see outer_known"),
    Column("depth", _U8, "", "loops that it is in, with itself"),
    Column("count", _I64, "", "executions of the head"),
    Column("visits", _I64, "", "from an entry until the loop is left, of which nothing is missing"),
    Column("cut_visits", _I64, "", "those of which the begin, the end or a part is missing: in no trips"),
    Column("least", _I64, "", "trips of a visit: executions of the head; see trips_known"),
    Column("p50", _I64, "", "trips that half of the visits do not exceed; see trips_known"),
    Column("p99", _I64, "", "trips that 99 % of the visits do not exceed; see trips_known"),
    Column("most", _I64, "", "trips of the visit with most; see trips_known"),
    Column("mean", _F64, "", "trips of all visits, divided by their number; see trips_known"),
    Column("instructions", _I64, "", "that were executed in the loop, without calls"),
    _LINE,
    _SPACE,
    Column("flags", _U8, "", "line known, outer known, trips known, exact"),
    _LINE_KNOWN,
    Column("outer_known", _BOOL, "", "it is in another loop", "flag", 2),
    Column("trips_known", _BOOL, "", "there is a visit of which nothing is missing", "flag", 4),
    Column("exact", _BOOL, "", "nothing is missing or rounded: visits have all executions", "flag", 8),
)
_BEHAVIOUR["loop_paths"] = (
    Column("head_ip", _U64, "address", "of the loop's first instruction"),
    Column("rounds", _I64, "", "how often it led to the head again"),
    Column("exits", _I64, "", "how often it led out of the loop"),
    Column("share", _F64, "", "of all rounds and exits of the loop, from 0 to 1"),
    Column("steps", _U32, "", "of `path`; 0 of a rest"),
    Column("paths", _I64, "", "that the row stands for; 1 unless is_rest, and with more_paths at least"),
    _LINE,
    _SPACE,
    Column("flags", _U8, "", "line known, rest, more paths"),
    _LINE_KNOWN,
    Column("is_rest", _BOOL, "", "it stands for the rarest paths of the loop", "flag", 2),
    Column("more_paths", _BOOL, "", "the loop has further paths, which are counted together", "flag", 4),
)
_BEHAVIOUR_KNOWN = {
    "outer_ip": "outer_known",
    **dict.fromkeys(("least", "p50", "p99", "most", "mean"), "trips_known"),
    "line": "line_known",
    "to_ip": "to_known",
    "targets": "is_indirect",
    **dict.fromkeys(
        (
            *("taken", "not_taken", "runs", "longest_taken", "longest_not_taken", "run_entropy"),
            "cut_runs",
        ),
        "is_conditional",
    ),
}

_MADE = (
    (_COVERED, _COVERED_KNOWN),
    (_ANNOTATED, _ANNOTATED_KNOWN),
    (_DIFFERENCE, _DIFFERENCE_KNOWN),
    (_SUSPECTS, _SUSPECTS_KNOWN),
    (_BEHAVIOUR, _BEHAVIOUR_KNOWN),
)


@cache
def made_tables() -> Mapping[str, TableSchema]:
    """Tables of `ptkit.Coverage`, `Annotation`, `Difference` and `Suspects`, and of branches, by name."""
    found = {}
    for tables_of, all_known in _MADE:
        for name, columns in tables_of.items():
            flags = {column.name for column in columns if column.role == "flag"}
            stored = {column.name for column in columns}
            known = {column: flag for column, flag in all_known.items() if column in stored and flag in flags}
            found[name] = _made(name, columns, known)
    return MappingProxyType(found)


# Columns that only call stacks are made of.
_INTERNAL = frozenset({("branches", "number")})


@cache
def tables() -> Mapping[str, TableSchema]:
    """All tables by name."""
    result = {}
    for table, rows in _core.schema().items():
        columns = [
            _column(row, "on demand" if row[0] in rows["on_demand"] else "stored")
            for row in rows["columns"]
            if (table, row[0]) not in _INTERNAL
        ]
        columns += [_column(row, "run") for row in rows["runs"]]
        boolean = np.dtype(np.bool_)
        columns += [Column(name, boolean, "", doc, "flag", mask) for name, mask, doc in rows["derived"]]
        columns += [
            Column(name, boolean, "", doc, "run flag", mask) for name, mask, doc in rows["run_derived"]
        ]
        by_name = MappingProxyType({column.name: column for column in columns})
        result[table] = TableSchema(table, by_name, MappingProxyType(rows["validity"]))
    result["mappings"] = _made("mappings", _MAPPINGS, _MAPPINGS_KNOWN)
    result["threads"] = _made("threads", _THREADS, _THREADS_KNOWN)
    result["waits"] = _made("waits", _WAITS, _WAITS_KNOWN)
    result["callers"] = _callers(result["call_tree"])
    return MappingProxyType(result)


def row_tables() -> Mapping[str, TableSchema]:
    """Tables of rows that a decoder gives: not mappings, and not those that are made of other rows."""
    return {name: schema for name, schema in tables().items() if name not in _OTHERS}


def schema_of(table: str) -> TableSchema:
    """The schema of one table: of a trace, or one that is made in Python."""
    return made_tables()[table] if any(table in of for of, _ in _MADE) else tables()[table]
