"""Names, dtypes, units and meaning of every column, as the core has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np

from ptkit import _core
from ptkit.support.answer_columns import ANSWERS
from ptkit.support.table_schema import ENUMS, Column, TableSchema

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


@cache
def made_tables() -> Mapping[str, TableSchema]:
    """Tables of `ptkit.Coverage`, `Annotation`, `Difference` and `Suspects`, and of branches, by name."""
    found = {}
    for tables_of, all_known in ANSWERS:
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
    return made_tables()[table] if any(table in of for of, _ in ANSWERS) else tables()[table]
