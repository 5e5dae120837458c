"""From a session of the core to tables: what to compute, which rows, in which order, in which parts."""

from __future__ import annotations

from ptkit.decode.plan import Plan, Query, Range, Settings, plan_of
from ptkit.decode.read import iterate, read

__all__ = ["Plan", "Query", "Range", "Settings", "iterate", "plan_of", "read"]
