#!/usr/bin/env python3
"""Writes docs/tables.md (columns, kinds, payloads, flags and codes of tables) and docs/warnings.md.

All of it comes from the sources of the core itself: src/tables/columns/schema.def (by way of the
extension module), src/packet/packets.def, src/base/status.def, src/trace/warnings.def, and the kinds.def of
rows, instructions and frames. With `--check`: fails if a page is not up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

HEAD = """# Tables

This page is the reference of all tables: columns, kinds, payloads, flags and error codes.
`tools/make_tables_doc.py` generates it; edit the sources that the tool names, then run it.

Every table is a `ptkit.Table`: `table["column"]` is a read-only NumPy array of shape (rows,). A
column has one of these roles:

* *stored*: the decoder fills it; *on demand*: the same, if `columns=[...]` names it;
* *run*: stream, processor, thread or address space; its runs are spread over rows on access;
* *flag*: a bool column, a bit of `flags`; *run flag*: a bool column, a bit of a run;
* *derived*: computed from other columns on access.

Counts and lengths of time are int64, so that differences of them are right where they are negative
(in `blocks`, `instructions` is int32). Points of time (`tsc`), addresses and stream offsets are
uint64: NumPy makes float64 of a sum of int64 and uint64, so convert one of them first.

Only stored columns are among the default columns. All others can be given in `columns=[...]`, and
are available if the columns that they are made of were read. A value means something only if the
flag in "known if" is set; `table.named(...)`, pandas and Arrow have no value elsewhere.

Derived names belong to the row: they come from the code of the row's address space at the time of
the row (in `edges`, which have no time: the last code there). They are str or None (no symbol, no
file); offsets count from the begin of the function, from the load address of the file
(`module_offset`: the RVA, as IDA, Ghidra, WinDbg and addr2line count), or in the file
(`file_offset`). `time_ns` is there if the trace knows its clock; see [time.md](time.md).

`to_pandas()`, `to_polars()`, `to_arrow()` and whatever takes Arrow's capsules (Polars, DuckDB)
get enumerations and names as text: categoricals in pandas, dictionaries of strings in Arrow. A
table of which no columns were chosen has the functions of its addresses there, too, beside them
(`from_symbol`, `entry_symbol`), as they are shown in a terminal: by their short names. Columns
`from_symbol_full`, `function_full` and so on have the full ones, which tell overloads and instances
of templates apart ([calls.md](calls.md#short-and-full-names)). A table that has one of both has the
other one, too. `pandas.DataFrame(table)` works row by row: it is slow, and finds dtypes anew.

A pickled table has the derived columns that its trace could make (names, times) as columns of its
own, so that it means the same in another process or after years; take the columns that you need
first, `table[["from_symbol", "kind"]]`. Sums over `calls` are not pickled. `copy.copy(table)`
shares memory, `copy.deepcopy(table)` does not.

`table.sort("module", "p99", descending=[False, True])`, `table.head(10)` and `table.nlargest(10,
"count")` are tables. A terminal shows as many columns as fit; notebooks show all, with times in
units. `functions.plot()` draws by matplotlib where the work is done; `plot()` of a trace, of a
part of its time and of a slice draws it along the trace.

Sections that are named are those of the Intel SDM vol. 3, "Intel Processor Trace".

`offset` of branches, blocks and instructions has one value for all rows of a packet. A whole table
keeps it as runs, and makes its array when it is first asked for, in new memory; parts (`iter_...`)
have the array at once. In rows of branch records `offset`, and `begin` and `end` of gaps, are the
number of the record ([branch-records.md](branch-records.md)).

A column that has one value in all rows has that value in memory once: its array has stride 0, as
have times of a stream without TSC packets. Arrow, pickle, `np.save` and DataFrames get contiguous
memory; `np.ascontiguousarray(table["column"])` does, too. `table.nbytes` counts what is held.

A table that takes more memory than the process may take raises `ptkit.OutOfMemoryError` (a
`MemoryError`) before much of it is read. Ask for fewer columns (`columns=[...]`), for a part
(`trace.between(...)`, `trace.touching(...)`), or read parts of bounded memory
(`trace.iter_branches()`, and so on).
"""

WARNINGS_HEAD = """# Warnings

This page lists each warning about a trace: its code, how much it matters, what it says, and what to
do about it. Look a warning up here by its words, or test for its code in a program.

Made by `tools/make_tables_doc.py` from `src/trace/warnings.def`; edit that file, then run the tool.

`trace.info.warnings` and `Recording.warnings` hold warnings as `ptkit.TraceWarning`: a str with the
attributes `code`, `severity`, `remedy` and `arguments`. The text is the subject (a file, CPU,
thread or process), the sentence and the remedy. A program tests the code; the words may change.

```python
lost = [one for one in trace.info.warnings if one.severity == "LOSS"]
partial = [one for one in trace.info.warnings if one.code == "AUX_PARTIAL"]
```

Severities: `NOTE` (nothing is lost), `DEGRADED` (rows may be less exact) and `LOSS` (data is
missing). In a sentence, `{0}` is the first of `arguments`; a word with another form in the plural
is written with both forms.

A bundle stores warnings of the recorder as text. A warning that was read from a bundle has the code
`RECORDED` and the text as its argument.
"""

ABOUT = {
    "packets": 'One row per packet ("Packet Definitions"); a run of PAD is one row.',
    "branches": 'One row per branch, taken or not ("TNT Packet", "Return Compression", "Deferred TIPs").',
    "blocks": "One row per block: instructions that were executed one after the other.",
    "instructions": "One row per executed instruction.",
    "events": 'One row per event ("Mode Packets", "Event Trace", "PTWRITE", "PEBS", "Power Event Tracing").',
    "errors": "One row per error: what could not be decoded; `table.messages()` has the sentences.",
    "gaps": "One row per part of a stream where control flow is not known.",
    "edges": "One row per source, target, kind and address space, with the count of its branches.",
    "calls": "`trace.calls()`: one row per frame, an execution of a function ([calls.md](calls.md)).",
    "stack_anomalies": "`trace.stack_anomalies`: returns and jumps that fit no open frame.",
    "functions": "`trace.functions()`: sums over the frames of each function.",
    "call_tree": "`trace.call_tree()`: sums over the frames of each calling context.",
    "callers": "`trace.callers()`: sums over the calls of a function for each chain of its callers.",
    "threads": "`trace.threads()`: one row per thread, when it ran and waited ([calls.md](calls.md)).",
    "waits": "`trace.waits()`: one row per thread and address at which it waited.",
    "ptwrites": "`trace.ptwrites()`: one row per PTWRITE, with the frame that encloses it "
    "([moments.md](moments.md)).",
    "at_times": "`trace.at_times()`: one row per time and stream ([moments.md](moments.md)).",
    "mappings": "`trace.mappings()`: one row per range of addresses with code of one file, or of no file.",
    "covered_blocks": "`coverage.blocks`: basic blocks that ran ([coverage-sets.md](coverage-sets.md)).",
    "covered_edges": "`coverage.edges`: branches of which both ends lie in files.",
    "covered_branches": "`coverage.branches`: conditional branches, with both outcomes.",
    "covered_functions": "`coverage.functions`: functions of which an instruction ran.",
    "covered_lines": "`coverage.lines`: source lines of which an instruction ran.",
    "annotated_instructions": "`annotation.instructions`: instructions of functions, with counts "
    "([annotate.md](annotate.md)).",
    "annotated_lines": "`annotation.lines`: source lines of functions.",
    "annotated_loops": "`annotation.loops`: loops of functions.",
    "diff_threads": "`difference.threads`: pairs of threads, and those of one run ([diff.md](diff.md)).",
    "divergences": "`difference.divergences`: where two runs part.",
    "diff_functions": "`difference.functions`: functions that differ.",
    "diff_calls": "`difference.calls`: calls that only one run has, or other numbers of.",
    "diff_lines": "`difference.lines`: source lines that differ.",
    "suspects": "`ptkit.suspects(passing, failing).table`: what separates recordings ([flaky.md](flaky.md)).",
    "branch_stats": "`trace.branch_stats()`: outcomes and targets of branches ([branches.md](branches.md)).",
    "loops": "`trace.loops()`: loops with their trips.",
    "loop_paths": "`trace.loop_paths()`: paths through loops.",
    "indirect_targets": "`trace.indirect_targets()`: where indirect branches went.",
}

# Enumeration, heading, and the rows with its members' texts.
ENUMS = (
    ("BranchKind", "Branch kinds", "src/flow/rows/kinds.def", "PT_BRANCH_KIND"),
    ("InsnClass", "Instruction classes", "src/code/insn/kinds.def", "PT_INSN_CLASS"),
    ("GapCause", "Gap causes", "src/flow/rows/kinds.def", "PT_GAP_CAUSE"),
    ("CallKind", "How frames begin", "src/tables/calls/stack/kinds.def", "PT_CALL_KIND"),
    ("CallEnd", "How frames end", "src/tables/calls/stack/kinds.def", "PT_CALL_END"),
    ("StackAnomaly", "Stack anomalies", "src/tables/calls/stack/kinds.def", "PT_STACK_ANOMALY"),
)
# Enumeration, heading, and the tables whose flags have these bits.
FLAGS = (
    ("PacketFlag", "Packet flags", ("packets",)),
    ("RowFlag", "Row flags", ("branches", "blocks", "instructions", "gaps")),
    ("EventFlag", "Event flags", ("events",)),
    ("ErrorFlag", "Error flags", ("errors",)),
    ("CallFlag", "Call flags", ("calls",)),
    ("StackAnomalyFlag", "Stack anomaly flags", ("stack_anomalies",)),
    ("FunctionFlag", "Function flags", ("functions", "call_tree", "callers")),
    ("StackFlag", "Stack flags", ("ptwrites", "at_times")),
)


def source(path: str) -> str:
    """Text of a file of the repository."""
    return (ROOT / path).read_text()


def cell(text: str) -> str:
    """Text that a Markdown table can hold."""
    return text.replace("|", "\\|")


def table_of(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines) + "\n"


def rows_of(path: str, macro: str) -> list[list[Any]]:
    """Arguments of each use of a macro in a .def file; names stay as text."""
    rows = []
    for line in source(path).splitlines():
        if line.startswith(f"{macro}("):
            arguments = re.findall(r'"(?:[^"\\]|\\.)*"|[^,\s][^,]*', line[len(macro) + 1 : line.rindex(")")])
            rows.append([ast.literal_eval(text) if text.startswith('"') else text for text in arguments])
    return rows


def kind_rows(kinds: Any, path: str, macro: str) -> list[tuple[str, ...]]:
    """Value, name and meaning of each member of an enumeration."""
    texts = {name: text for name, _, text in rows_of(path, macro)}
    return [(str(int(kind)), f"`{kind.name}`", texts[kind.name]) for kind in kinds]


def columns() -> str:
    """All tables with their columns."""
    from ptkit.support.schema import made_tables, schema_of, tables
    from ptkit.table.derived import derived_of

    parts = ["## Columns\n"]
    for table, about in ABOUT.items():
        schema = schema_of(table)
        lines = []
        for one in schema.columns.values():
            known = schema.validity.get(one.name)
            flag = f"`{known}`" if known else ""
            lines.append((f"`{one.name}`", one.dtype.name, one.unit, one.role, flag, one.doc))
        for made in derived_of(table).values():
            column, made_of = made.column, ", ".join(f"`{name}`" for name in made.needs)
            made_of += "".join(f", and `{name}` if it is there" for name in made.uses)
            dtype = "str" if column.dtype == object else column.dtype.name
            doc = f"{column.doc}; made of {made_of}" if made_of else column.doc
            lines.append((f"`{column.name}`", dtype, column.unit, "derived", made.known_if, doc))
        parts.append(f"### {table}\n\n{about}\n")
        parts.append(table_of(("column", "dtype", "unit", "role", "known if", "meaning"), lines))
    assert set(ABOUT) == {*tables(), *made_tables()}
    return "\n".join(parts)


def packet_kinds(core: Any) -> str:
    """Packets and their payloads."""
    rows = {row[0]: row for row in rows_of("src/packet/packets.def", "PT_PACKET")}
    lines = []
    for kind in core.PacketKind:
        row = rows[kind.name]
        text, payload, payload2 = row[-3:]
        lines.append((str(int(kind)), f"`{kind.name}`", row[1], text, payload, payload2))
    head = ("value", "name", "in the manual", "meaning", "`payload`", "`payload2`")
    return '## Packet kinds\n\nSection "Packet Definitions".\n\n' + table_of(head, lines)


def event_kinds(core: Any) -> str:
    """Events and their payloads."""
    lines = kind_rows(core.EventKind, "src/flow/rows/kinds.def", "PT_EVENT_KIND")
    note = (
        "What a row's `ip`, `payload`, `payload2` and `payload3` hold. Payloads that are not\n"
        "named are 0. With `status` set, the row repeats state (in a PSB+ header) and nothing happened.\n"
    )
    return f"## Event kinds\n\n{note}\n" + table_of(("value", "name", "meaning"), lines)


def error_codes(core: Any) -> str:
    """Sentences and remedies, and what the arguments hold."""
    rows = {row[0]: row for row in rows_of("src/base/status.def", "PT_STATUS")}
    lines = []
    for code in core.ErrorCode:
        _, _, sentence, remedy = rows[code.name]
        lines.append((str(int(code)), f"`{code.name}`", sentence, remedy))
    note = table_of(
        ("codes", "`argument`", "`argument2`"),
        [
            (
                "`NO_CODE`, `BAD_INSN`",
                "start of the image's range (or of the page) concerned",
                "its size in bytes",
            ),
            (
                "`BAD_OPCODE`, `BAD_PACKET`, `TRUNCATED_PACKET`, `BAD_IP_COMPRESSION`",
                "the bytes, little-endian",
                "how many",
            ),
            ("`FUP_MISMATCH`", "kind of the packet (`PacketKind`)", "the IP that was looked for"),
            (
                "`RECORD_MISMATCH`",
                "target of the record before",
                "the branch at which the path from there ends",
            ),
            ("`BAD_RECORD`", "bytes of a record that is cut", ""),
            (
                "`TNT_MISMATCH`",
                "kind of the packet (`PacketKind`)",
                "target of a TIP.PGD that does not fit its conditional branch; else 0",
            ),
            ("`TIP_MISMATCH`, `UNEXPECTED_PACKET`", "kind of the packet (`PacketKind`)", ""),
        ],
    )
    return (
        "## Error codes\n\n"
        + table_of(("value", "name", "sentence", "what to do"), lines)
        + "\nArguments of errors:\n\n"
        + note
    )


def page() -> str:
    """The whole page."""
    from ptkit import _core as core

    schema = core.schema()
    parts = [HEAD, columns(), packet_kinds(core), event_kinds(core)]
    for name, heading, path, macro in ENUMS:
        lines = kind_rows(getattr(core, name), path, macro)
        parts.append(f"## {heading}\n\n" + table_of(("value", "name", "meaning"), lines))
    for name, heading, tables in FLAGS:
        stored = [table for table in reversed(tables) if table in schema]
        said = {mask: doc for table in stored for _, mask, doc in schema[table]["derived"]}
        lines = [(str(int(flag)), f"`{flag.name}`", said[int(flag)]) for flag in getattr(core, name)]
        about = "Bits of `flags` of " + ", ".join(tables) + ".\n\n"
        parts.append(f"## {heading}\n\n{about}" + table_of(("bit", "name", "meaning"), lines))
    parts.append(error_codes(core))
    return "\n".join(parts)


def sentence_for_readers(sentence: str) -> str:
    """A sentence of warnings.def with plural forms as "record(s)"."""
    text = sentence.replace('\\"', '"')
    while found := re.search(r"{\d:([^|}]*)\|([^}]*)}", text):
        one, many = found.groups()
        both = f"{one}({many[len(one) :]})" if one and many.startswith(one) else f"{one}/{many}"
        text = text[: found.start()] + both + text[found.end() :]
    return text


def warnings_page() -> str:
    """docs/warnings.md."""
    lines = []
    for code, severity, sentence, remedy in rows_of("src/trace/warnings.def", "PT_WARNING"):
        lines.append((f"`{code}`", severity, sentence_for_readers(sentence), remedy))
    return WARNINGS_HEAD + "\n" + table_of(("code", "severity", "sentence", "remedy"), lines)


def main() -> int:
    """Write or check the pages."""
    sys.path.append(str(ROOT / "python"))  # where no ptkit is installed: the one built in the tree
    pages = {DOCS / "tables.md": page(), DOCS / "warnings.md": warnings_page()}
    if "--check" not in sys.argv[1:]:
        for path, text in pages.items():
            path.write_text(text)
        return 0
    old = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    for path in old:
        print(f"{path.relative_to(ROOT)} is not up to date: run tools/make_tables_doc.py", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    raise SystemExit(main())
