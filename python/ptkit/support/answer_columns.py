"""Columns of the tables that are made in Python of what decoders give: coverage, differences, loops, ..."""

from __future__ import annotations

import numpy as np

from ptkit.support.table_schema import Column

__all__ = ["ANSWERS"]

_U8, _I32, _U32, _U64, _I64, _F64 = (np.dtype(name) for name in ("u1", "i4", "u4", "u8", "i8", "f8"))
_BOOL = np.dtype(np.bool_)

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
_TAKEN = (
    Column("taken", _I64, "", "executions of conditional branches that took them; see is_conditional"),
    Column("not_taken", _I64, "", "executions of conditional branches that did not; see is_conditional"),
)
_ANNOTATED_FLAGS = (
    Column("flags", _U8, "", "line known, conditional, on the hottest path, head of a loop"),
    _LINE_KNOWN,
    Column("is_conditional", _BOOL, "", "it has a conditional branch that ran", "flag", 2),
    Column("is_hottest", _BOOL, "", "it is on the hottest path through the function", "flag", 4),
    Column("is_head", _BOOL, "", "a loop begins here", "flag", 8),
)
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
        *_ANNOTATED_FLAGS,
    ),
    "annotated_lines": (
        Column("number", _U32, "", "index in `annotation.functions`"),
        Column("line", _U32, "", "of `source`"),
        Column("count", _I64, "", "executions by gcov's rule, of this function's code; 0: it did not run"),
        Column("instructions", _I64, "", "that were executed"),
        *_TAKEN,
        Column("depth", _U8, "", "loops that its code is in"),
        *_ANNOTATED_FLAGS,
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

#: Columns of tables by name, and by column the flag that says that a value is known.
ANSWERS = (
    (_COVERED, _COVERED_KNOWN),
    (_ANNOTATED, _ANNOTATED_KNOWN),
    (_DIFFERENCE, _DIFFERENCE_KNOWN),
    (_SUSPECTS, _SUSPECTS_KNOWN),
    (_BEHAVIOUR, _BEHAVIOUR_KNOWN),
)
