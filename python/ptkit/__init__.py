"""ptkit: capture and decode Intel Processor Trace into NumPy columns.

>>> import ptkit
>>> table = ptkit.packets(bytes.fromhex("711093388506f80000"))
>>> table.named("kind")
['TIP_PGE', 'PAD']
"""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit._core import (
    BranchKind,
    ErrorCode,
    ErrorFlag,
    EventFlag,
    EventKind,
    GapCause,
    InsnClass,
    PacketFlag,
    PacketKind,
    RecordFlag,
    RowFlag,
    TimeSource,
)
from ptkit.bundle import redact
from ptkit.errors import (
    ColumnError,
    ConfigError,
    DecodeError,
    FormatError,
    MissingFileError,
    OpenError,
    OutOfMemoryError,
    PtkitError,
    PtkitWarning,
    SymbolError,
    TraceWarning,
    UnsupportedError,
)
from ptkit.info import MissingFile, PacketCounts, StreamInfo, TraceInfo
from ptkit.schema import BRANCH_RECORD
from ptkit.table import Table
from ptkit.trace import IndexInfo, Trace, View, open, packet_counts, packets

if TYPE_CHECKING:
    from ptkit import analysis as analysis
    from ptkit import capture as capture
    from ptkit import export as export
    from ptkit import msr as msr
    from ptkit.capture import Filter, Trigger
    from ptkit.trace.coverage import CoverageDecoder, CoverageResult
    from ptkit.trace.recording import Recorder, record
    from ptkit.trace.records import open_branches

__version__ = "0.1.0"


def _check_instructions() -> None:
    """What PTKIT_FORCE_ISA asks for must be there."""
    try:
        _core.isa()
    except PtkitError as error:
        if _sys.argv[0].rsplit("/", 1)[-1] != "ptkit" and _sys.orig_argv[1:3] != ["-m", "ptkit"]:
            raise
        # The command line's own handling of errors comes after this import.
        print(f"ptkit: error: {error}", file=_sys.stderr)
        _sys.exit(2)


_check_instructions()

# Loaded when first asked for: modules, and names of modules.
_LAZY = ("analysis", "capture", "export", "msr")
_LAZY_NAMES = {
    "CoverageDecoder": "ptkit.trace.coverage",
    "CoverageResult": "ptkit.trace.coverage",
    "Filter": "ptkit.capture",
    "Recorder": "ptkit.trace.recording",
    "Trigger": "ptkit.capture",
    "open_branches": "ptkit.trace.records",
    "record": "ptkit.trace.recording",
}

__all__ = [
    "BRANCH_RECORD",
    "BranchKind",
    "ColumnError",
    "ConfigError",
    "CoverageDecoder",
    "CoverageResult",
    "DecodeError",
    "ErrorCode",
    "ErrorFlag",
    "EventFlag",
    "EventKind",
    "Filter",
    "FormatError",
    "GapCause",
    "IndexInfo",
    "InsnClass",
    "MissingFile",
    "MissingFileError",
    "OpenError",
    "OutOfMemoryError",
    "PacketCounts",
    "PacketFlag",
    "PacketKind",
    "PtkitError",
    "PtkitWarning",
    "RecordFlag",
    "Recorder",
    "RowFlag",
    "StreamInfo",
    "SymbolError",
    "Table",
    "TimeSource",
    "Trace",
    "TraceInfo",
    "TraceWarning",
    "Trigger",
    "UnsupportedError",
    "View",
    "__version__",
    "open",
    "open_branches",
    "packet_counts",
    "packets",
    "record",
    "redact",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        return import_module(f"ptkit.{name}")
    if name in _LAZY_NAMES:
        return getattr(import_module(_LAZY_NAMES[name]), name)
    raise AttributeError(f"module 'ptkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})
