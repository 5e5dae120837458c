#!/usr/bin/env python3
"""Writes python/ptkit/schemas/rows-1.json: what verbs print of rows with --json, from the schema of tables.

With --check it writes nothing, and fails if the file is not up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ptkit.cli.output.json_rows import NAMED
from ptkit.cli.output.json_values import SCHEMA, form_of
from ptkit.support.schema import Column, TableSchema, schema_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "python" / "ptkit" / "schemas" / f"rows-{SCHEMA}.json"
TITLE = (
    "A line that packets, branches, instructions, events, edges, functions, calls, tree and threads print "
    f"with --json, schema {SCHEMA}"
)
# In the order of the file; tables that no name of `ptkit.support.schema` has are in OTHERS.
TABLES = (
    *("packets", "branches", "instructions", "events", "edges", "edge_sums", "functions", "calls"),
    *("stack_anomalies", "call_tree", "callers", "threads", "waits", "ptwrites", "at_times", "source_lines"),
    *(
        "call_histogram",
        "call_differences",
        "errors",
        "gaps",
        "branch_stats",
        "indirect_targets",
        "loops",
        "loop_paths",
        "folded_branches",
        "fold_begin",
        "fold_end",
        "fold_gap",
        "fold_thread",
    ),
)
VALUES: dict[str, dict[str, Any]] = {
    "count": {
        "description": "A size, an offset in a file or stream, an index, an id or a count: below 2**53.",
        "type": "integer",
        "minimum": 0,
        "maximum": 2**53,
    },
    "hexadecimal": {
        "description": "A quantity of 64 bits: an address, TSC ticks, a register, a payload.",
        "type": "string",
        "pattern": "^0x(0|[1-9a-f][0-9a-f]{0,15})$",
    },
    "nanoseconds": {
        "description": "A time in nanoseconds, decimal.",
        "type": "string",
        "pattern": "^-?[0-9]+$",
    },
    "enumerator": {
        "description": "Name of an enumerator: docs/tables.md lists them.",
        "type": "string",
        "pattern": "^[A-Z][A-Z0-9_]*$",
    },
    "flags": {
        "description": "Names of the flags that are set.",
        "type": "array",
        "items": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
    },
}
OR_NULL = ("count", "hexadecimal", "nanoseconds", "enumerator")
SIGNED = ("depth", "pid", "tid")
TEXT, TEXT_OR_NULL = {"type": "string"}, {"type": ["string", "null"]}
NUMBER = {"type": "number"}
NUMBER_OR_NULL = {"type": ["number", "null"]}


def ref(name: str, about: str = "") -> dict[str, Any]:
    """A reference to one of the definitions."""
    said = {"description": about} if about else {}
    return {**said, "$ref": f"#/$defs/{name}"}


COUNT, COUNT_OR_NULL = ref("count"), ref("count-or-null")
# Functions are named by columns of their own, and where they are not named, by their addresses.
FUNCTION = {"function": TEXT, "function_full": TEXT, "module": TEXT_OR_NULL}
ENTRY = {"entry_ip": ref("hexadecimal-or-null"), "entry_module_offset": COUNT_OR_NULL}
EDGE_NAMES = {
    f"{end}_{name}": TEXT_OR_NULL for end in ("from", "to") for name in ("symbol", "symbol_full", "module")
} | {f"{end}_module_offset": COUNT_OR_NULL for end in ("from", "to")}
# Members that rows of a table have besides those of its columns: some rows only, and all rows.
SOMETIMES: dict[str, dict[str, Any]] = {
    "instructions": {"disassembly": TEXT, "bytes": TEXT},
    "edges": EDGE_NAMES,
    "functions": {**FUNCTION, **ENTRY, "inline_level": ref("count", "With --inlines.")},
    "call_tree": ENTRY,
    "callers": ENTRY,
}
ALWAYS: dict[str, dict[str, Any]] = {
    "events": {"message": TEXT},
    "errors": {"message": TEXT},
    "gaps": {"message": TEXT},
    "functions": {"module": TEXT_OR_NULL},
    "call_tree": FUNCTION,
    "callers": FUNCTION,
    "threads": {"name": TEXT_OR_NULL},
    "branch_stats": {"source": TEXT_OR_NULL},
    "indirect_targets": {"source": TEXT_OR_NULL},
    "loops": {"source": TEXT_OR_NULL},
    "loop_paths": {"path": TEXT, "source": TEXT_OR_NULL},
}
# Stored columns that only some rows have as a member, and those that none has.
OPTIONAL = {
    "functions": {"entry_ip", "space", "file", "import_ip", "inline_level"},
    "calls": {"import_ip"},
    "call_tree": {"entry_ip"},
    "callers": {"entry_ip"},
    "ptwrites": {"import_ip"},
    "at_times": {"import_ip"},
}
OF_SUMS = {"code_tsc", "space", "file", "inline_level", "import_ip"}
LEFT_OUT = {
    "functions": {"code_tsc"},
    "calls": {"inline_level"},
    "call_tree": OF_SUMS,
    "callers": OF_SUMS,
}
# Meanings of members where their names do not show it, and other types than those of the column.
CHANGED: dict[tuple[str, str], dict[str, Any]] = {
    ("edges", "to_ip"): ref("hexadecimal-or-null", "null: a branch through the import slot of to_symbol."),
    ("calls", "depth"): {
        "description": "Negative: below the first frame that was known.",
        "type": "integer",
    },
    ("stack_anomalies", "expected_ip"): ref("hexadecimal-or-null", "Return address of the call at the top."),
    ("callers", "parent"): ref("count-or-null", "The row that it calls."),
    ("callers", "depth"): COUNT,
    ("waits", "ip"): ref("hexadecimal-or-null", "Of the system call."),
    ("waits", "caller_ip"): ref("hexadecimal-or-null", "Of the call from another file that led there."),
}
UNNAMED = ("edges", "functions", "call_tree", "callers")
# Rows that are made of tables: all members, and those that only some rows have.
OTHERS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "edge_sums": (
        "Counts of all edges from one function or file to another (edges --by).",
        dict.fromkeys(("from", "from_full", "to", "to_full"), TEXT_OR_NULL) | {"count": COUNT},
        ("from_full", "to_full"),
    ),
    "source_lines": (
        "",
        {
            **FUNCTION,
            "source": {"description": "Path of the source file.", **TEXT_OR_NULL},
            "line": COUNT_OR_NULL,
            "entry_ip": ref("hexadecimal", "The lowest address that was executed."),
            "count": COUNT,
            "self_instructions": COUNT,
        },
        (),
    ),
    "call_histogram": (
        "",
        {
            "unit": {"enum": ["instructions", "TSC ticks"]},
            "begin": COUNT,
            "end": {
                "description": "The first length that is in the next bin.",
                "type": "integer",
                "minimum": 1,
            },
            "count": COUNT,
            "total": COUNT,
        },
        (),
    ),
    "folded_branches": (
        "A branch of branches --fold.",
        {
            **dict.fromkeys(("from_ip", "to_ip"), ref("hexadecimal-or-null")),
            **dict.fromkeys(("from_symbol", "to_symbol"), TEXT_OR_NULL),
            "kind": ref("enumerator"),
            "taken": {"type": "boolean"},
            "in_tx": {"type": "boolean"},
        },
        (),
    ),
    "fold_begin": (
        "The lines up to the fold_end that belongs to it are repeated.",
        {"times": COUNT, "head_ip": ref("hexadecimal"), "head_symbol": TEXT},
        (),
    ),
    "fold_end": ("", {"cut": {"description": "By --limit.", "type": "boolean"}}, ("cut",)),
    "fold_gap": ("Control flow is not known.", {}, ()),
    "fold_thread": (
        "The following lines are of this thread.",
        {"stream": COUNT, "tid": {"type": ["integer", "null"]}, "space": COUNT},
        (),
    ),
    "call_differences": (
        "",
        {
            "kind": {"enum": ["function", "line", "edge", "untraced", "switched", "lost", "gap"]},
            "name": TEXT,
            "name_full": TEXT,
            "extra": {"description": "Mean of slow calls less that of fast ones.", **NUMBER},
            **dict.fromkeys(("slow", "fast", "slow_count", "fast_count"), NUMBER),
            "slow_example": COUNT_OR_NULL,
            "fast_example": COUNT_OR_NULL,
        },
        (),
    ),
}


def value_of(schema: TableSchema, column: Column) -> dict[str, Any]:
    """The type of the member that a column becomes."""
    if (schema.name, column.name) in CHANGED:
        return CHANGED[schema.name, column.name]
    if column.name == "flags":
        return ref("flags")
    nullable = column.name in schema.validity
    if column.name in SIGNED:
        return {"type": ["integer", "null"] if nullable else "integer"}
    if column.dtype == "float64":
        return NUMBER_OR_NULL if nullable else NUMBER
    form = "enumerator" if column.enum is not None else form_of(column)
    name = {"plain": "count", "decimal": "nanoseconds"}.get(form, form)
    return ref(f"{name}-or-null" if nullable else name)


def members_of(schema: TableSchema) -> tuple[dict[str, Any], list[str]]:
    """Members of the rows of a table, and those that every row has."""
    name = schema.name
    members: dict[str, Any] = {}
    required = []
    for column in schema.columns.values():
        if column.role not in ("stored", "run") or column.name in LEFT_OUT.get(name, ()):
            continue
        members[column.name] = value_of(schema, column)
        if column.name not in OPTIONAL.get(name, ()):
            required.append(column.name)
        if column.name == "flags" and "taken" in schema.names("flag"):
            members["taken"] = {"type": "boolean"}
            required.append("taken")
    if "tsc" in members:
        members["time_ns"] = ref("nanoseconds-or-null")
        required.append("time_ns")
    always = ALWAYS.get(name, {})
    members |= always
    required += always
    if name not in UNNAMED:
        for address in [one for one in members if one in NAMED]:
            for kind in ("symbol", "module"):
                named = address.removesuffix("ip") + kind
                members[named] = TEXT_OR_NULL
                if kind == "symbol":
                    members[f"{named}_full"] = TEXT_OR_NULL
                members[f"{named}_offset"] = COUNT_OR_NULL
    return {**members, **SOMETIMES.get(name, {})}, required


def row_of(name: str) -> dict[str, Any]:
    """The definition of a row."""
    if name in OTHERS:
        about, members, optional = OTHERS[name]
        required = [one for one in members if one not in optional]
    else:
        about = ""
        members, required = members_of(schema_of(name))
    return {
        **({"description": about} if about else {}),
        "type": "object",
        "properties": {"table": {"const": name}, **members},
        "required": ["table", *required],
    }


def header() -> dict[str, Any]:
    """The definition of the first line."""
    texts = ("rows", "source", "format", "version")
    members = {"table": {"const": "header"}, "schema": {"const": SCHEMA}, **dict.fromkeys(texts, TEXT)}
    return {"type": "object", "properties": members, "required": list(members)}


def document() -> dict[str, Any]:
    """The whole schema."""
    definitions = {**VALUES, "header": header(), **{name: row_of(name) for name in TABLES}}
    definitions |= {f"{name}-or-null": {"anyOf": [ref(name), {"type": "null"}]} for name in OR_NULL}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        "description": "docs/json.md says what is promised.",
        "oneOf": [ref(name) for name in ("header", *TABLES)],
        "$defs": definitions,
    }


def text_of(schema: dict[str, Any]) -> str:
    """The schema with a line for each definition."""
    members = []
    for name, value in schema.items():
        text = json.dumps(value)
        if name == "$defs":
            lines = (f"    {json.dumps(one)}: {json.dumps(about)}" for one, about in value.items())
            text = "{\n" + ",\n".join(lines) + "\n  }"
        members.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="fail if the file is not up to date")
    text = text_of(document())
    if not parser.parse_args().check:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        print(f"{PAGE.relative_to(ROOT)} is not up to date: run tools/make_json_schema.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
