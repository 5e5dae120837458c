"""ptkit: capture and decode Intel Processor Trace into NumPy columns.

>>> import ptkit
>>> table = ptkit.packets(bytes.fromhex("711093388506f80000"))
>>> table.named("kind")
['TIP_PGE', 'PAD']
"""

from __future__ import annotations

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
    RowFlag,
    TimeSource,
)
from ptkit.errors import (
    ColumnError,
    ConfigError,
    DecodeError,
    FormatError,
    MissingFileError,
    OpenError,
    PtkitError,
    PtkitWarning,
    SymbolError,
    UnsupportedError,
)
from ptkit.info import StreamInfo, TraceInfo
from ptkit.table import Table
from ptkit.trace import Trace, open, packets, record

__version__ = "0.1.0"

__all__ = [
    "BranchKind",
    "ColumnError",
    "ConfigError",
    "DecodeError",
    "ErrorCode",
    "ErrorFlag",
    "EventFlag",
    "EventKind",
    "FormatError",
    "GapCause",
    "InsnClass",
    "MissingFileError",
    "OpenError",
    "PacketFlag",
    "PacketKind",
    "PtkitError",
    "PtkitWarning",
    "RowFlag",
    "StreamInfo",
    "SymbolError",
    "Table",
    "TimeSource",
    "Trace",
    "TraceInfo",
    "UnsupportedError",
    "__version__",
    "open",
    "packets",
    "record",
]
