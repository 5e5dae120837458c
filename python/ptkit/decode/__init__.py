"""From a session of the core to tables: what to compute, which rows, in which order, in which parts."""

from __future__ import annotations

from ptkit.decode.calls import iterate_calls, read_calls, read_functions, read_tree
from ptkit.decode.opened import Opened, OpenTrace, Settings
from ptkit.decode.plan import Plan, Query, plan_of
from ptkit.decode.read import iterate, read
from ptkit.decode.scope import Range, Scope

__all__ = [
    "OpenTrace",
    "Opened",
    "Plan",
    "Query",
    "Range",
    "Scope",
    "Settings",
    "iterate",
    "iterate_calls",
    "plan_of",
    "read",
    "read_calls",
    "read_functions",
    "read_tree",
]
