"""ptkit: capture and decode Intel Processor Trace into NumPy columns.

>>> import ptkit
>>> table = ptkit.packets(bytes.fromhex("711093388506f80000"))
>>> table.named("kind")
['TIP_PGE', 'PAD']
"""

from __future__ import annotations

import os as _os
import sys as _sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptkit import analysis as analysis
    from ptkit import capture as capture
    from ptkit import export as export
    from ptkit import msr as msr
    from ptkit import planning as planning
    from ptkit._core import (
        BranchKind,
        CallEnd,
        CallFlag,
        CallKind,
        ErrorCode,
        ErrorFlag,
        EventFlag,
        EventKind,
        FunctionFlag,
        GapCause,
        InsnClass,
        PacketFlag,
        PacketKind,
        RecordFlag,
        RowFlag,
        StackAnomaly,
        StackAnomalyFlag,
        StackFlag,
        TimeSource,
    )
    from ptkit.analysis.coverage import CodeFile, Coverage, CoverageRun
    from ptkit.analysis.diff import Difference
    from ptkit.analysis.slow_calls import CallComparison, CallDifference
    from ptkit.analysis.suspects import Suspects
    from ptkit.capture import Filter, Trigger
    from ptkit.decode.call_histogram import CallHistogram
    from ptkit.decode.call_table import CallTable
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
    from ptkit.info import MissingFile, ModuleInfo, PacketCounts, ProcessInfo, StreamInfo, TraceInfo
    from ptkit.support.schema import BRANCH_RECORD
    from ptkit.table import Table
    from ptkit.table.pool import trim_memory
    from ptkit.trace import (
        FileLocations,
        IndexInfo,
        Slice,
        SourceFrame,
        SourceLines,
        Trace,
        View,
        open,
        packet_counts,
        packets,
    )
    from ptkit.trace.coverage import CoverageDecoder, CoverageResult
    from ptkit.trace.opening.bundle import redact
    from ptkit.trace.opening.records import open_branches
    from ptkit.trace.recording import Recorder, record
    from ptkit.trace.several_runs import diff, suspects
    from ptkit.view.annotated import AnnotatedFunction, Annotation

__version__ = "0.1.0"


def _check_instructions() -> None:
    """Check that the processor has what PTKIT_FORCE_ISA names."""
    from ptkit import _core
    from ptkit.errors import PtkitError

    try:
        _core.isa()
    except PtkitError as error:
        if _sys.argv[0].rsplit("/", 1)[-1] != "ptkit" and _sys.orig_argv[1:3] != ["-m", "ptkit"]:
            raise
        # The command line's own handling of errors comes after this import.
        print(f"ptkit: error: {error}", file=_sys.stderr)
        _sys.exit(2)


if "PTKIT_FORCE_ISA" in _os.environ:
    _check_instructions()

# Everything is loaded when it is first asked for: `import ptkit` and `ptkit --help` need neither NumPy nor
# the core. The names of this module, by the module that has them:
_NAMES = {
    "ptkit._core": (
        "BranchKind",
        "CallEnd",
        "CallFlag",
        "CallKind",
        "ErrorCode",
        "ErrorFlag",
        "EventFlag",
        "EventKind",
        "FunctionFlag",
        "GapCause",
        "InsnClass",
        "PacketFlag",
        "PacketKind",
        "RecordFlag",
        "RowFlag",
        "StackAnomaly",
        "StackAnomalyFlag",
        "StackFlag",
        "TimeSource",
    ),
    "ptkit.analysis.coverage": ("CodeFile", "Coverage", "CoverageRun"),
    "ptkit.analysis.diff": ("Difference",),
    "ptkit.view.annotated": ("AnnotatedFunction", "Annotation"),
    "ptkit.analysis.slow_calls": ("CallComparison", "CallDifference"),
    "ptkit.analysis.suspects": ("Suspects",),
    "ptkit.trace.opening.bundle": ("redact",),
    "ptkit.capture": ("Filter", "Trigger"),
    "ptkit.decode.call_histogram": ("CallHistogram",),
    "ptkit.decode.call_table": ("CallTable",),
    "ptkit.errors": (
        "ColumnError",
        "ConfigError",
        "DecodeError",
        "FormatError",
        "MissingFileError",
        "OpenError",
        "OutOfMemoryError",
        "PtkitError",
        "PtkitWarning",
        "SymbolError",
        "TraceWarning",
        "UnsupportedError",
    ),
    "ptkit.info": ("MissingFile", "ModuleInfo", "PacketCounts", "ProcessInfo", "StreamInfo", "TraceInfo"),
    "ptkit.support.schema": ("BRANCH_RECORD",),
    "ptkit.table": ("Table",),
    "ptkit.table.pool": ("trim_memory",),
    "ptkit.trace": (
        "IndexInfo",
        "FileLocations",
        "Slice",
        "SourceFrame",
        "SourceLines",
        "Trace",
        "View",
        "open",
        "packet_counts",
        "packets",
    ),
    "ptkit.trace.coverage": ("CoverageDecoder", "CoverageResult"),
    "ptkit.trace.recording": ("Recorder", "record"),
    "ptkit.trace.several_runs": ("diff", "suspects"),
    "ptkit.trace.opening.records": ("open_branches",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_PUBLIC_MODULES = ("analysis", "capture", "export", "msr", "planning")
_MODULES = frozenset((*_PUBLIC_MODULES, "_core", "decode", "errors", "info", "support", "table", "trace"))

__all__ = [
    "BRANCH_RECORD",
    "AnnotatedFunction",
    "Annotation",
    "BranchKind",
    "CallComparison",
    "CallDifference",
    "CallEnd",
    "CallFlag",
    "CallHistogram",
    "CallKind",
    "CallTable",
    "CodeFile",
    "ColumnError",
    "ConfigError",
    "Coverage",
    "CoverageDecoder",
    "CoverageResult",
    "CoverageRun",
    "DecodeError",
    "Difference",
    "ErrorCode",
    "ErrorFlag",
    "EventFlag",
    "EventKind",
    "FileLocations",
    "Filter",
    "FormatError",
    "FunctionFlag",
    "GapCause",
    "IndexInfo",
    "InsnClass",
    "MissingFile",
    "MissingFileError",
    "ModuleInfo",
    "OpenError",
    "OutOfMemoryError",
    "PacketCounts",
    "PacketFlag",
    "PacketKind",
    "ProcessInfo",
    "PtkitError",
    "PtkitWarning",
    "RecordFlag",
    "Recorder",
    "RowFlag",
    "Slice",
    "SourceFrame",
    "SourceLines",
    "StackAnomaly",
    "StackAnomalyFlag",
    "StackFlag",
    "StreamInfo",
    "Suspects",
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
    "diff",
    "open",
    "open_branches",
    "packet_counts",
    "packets",
    "record",
    "redact",
    "suspects",
    "trim_memory",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    if name in _MODULES:
        return import_module(f"ptkit.{name}")
    raise AttributeError(f"module 'ptkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_PUBLIC_MODULES})
