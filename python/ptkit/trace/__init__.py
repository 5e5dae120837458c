"""The facade: everything that can be asked of a trace, and the ways to get one."""

from __future__ import annotations

from ptkit.trace.facade import Trace
from ptkit.trace.names.names import FileLocations, SourceFrame, SourceLines
from ptkit.trace.opening.index import IndexInfo
from ptkit.trace.opening.opening import open, packet_counts, packets
from ptkit.trace.slice import Slice
from ptkit.trace.view import View

__all__ = [
    "FileLocations",
    "IndexInfo",
    "Slice",
    "SourceFrame",
    "SourceLines",
    "Trace",
    "View",
    "open",
    "packet_counts",
    "packets",
]
