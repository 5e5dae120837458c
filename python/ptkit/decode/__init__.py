"""From a session of the core to tables: what to compute, which rows, in which order, in which parts."""

from __future__ import annotations

from ptkit.decode.calls import (
    Window,
    iterate_calls,
    read_calls,
    read_functions,
    read_tree,
    whole_sums,
    window_of,
)
from ptkit.decode.index_sums import IndexSums, encoded, parts_of
from ptkit.decode.instruction_range import OF_OWNERS, InstructionRanges, instruction_range
from ptkit.decode.line_counts import (
    BLOCK_COLUMNS,
    EDGE_COLUMNS,
    ExecutedCode,
    read_code,
    read_counts,
    read_lines,
)
from ptkit.decode.merge import sorted_by_time
from ptkit.decode.moments import overlapping, read_ptwrites, read_times
from ptkit.decode.opened import Opened, OpenTrace, Settings
from ptkit.decode.plan import Plan, plan_of
from ptkit.decode.query import Query
from ptkit.decode.read import ALL_EDGES, iterate, read, whole_edges
from ptkit.decode.runs import Runs, read_runs
from ptkit.decode.scope import Range, Scope
from ptkit.decode.timelines import CallTimeline, read_timeline

__all__ = [
    "ALL_EDGES",
    "BLOCK_COLUMNS",
    "EDGE_COLUMNS",
    "OF_OWNERS",
    "CallTimeline",
    "ExecutedCode",
    "IndexSums",
    "InstructionRanges",
    "OpenTrace",
    "Opened",
    "Plan",
    "Query",
    "Range",
    "Runs",
    "Scope",
    "Settings",
    "Window",
    "encoded",
    "instruction_range",
    "iterate",
    "iterate_calls",
    "overlapping",
    "parts_of",
    "plan_of",
    "read",
    "read_calls",
    "read_code",
    "read_counts",
    "read_functions",
    "read_lines",
    "read_ptwrites",
    "read_runs",
    "read_timeline",
    "read_times",
    "read_tree",
    "sorted_by_time",
    "whole_edges",
    "whole_sums",
    "window_of",
]
