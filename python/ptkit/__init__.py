"""ptkit: capture and decode Intel Processor Trace into NumPy columns.

>>> import ptkit
>>> table = ptkit.packets(bytes.fromhex("711093388506f80000"))
>>> table.named("kind")
['TIP_PGE', 'PAD']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from ptkit import analysis as analysis
    from ptkit import capture as capture

__version__ = "0.1.0"

_LAZY = ("analysis", "capture")  # loaded when first asked for

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


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return import_module(f"ptkit.{name}")
    raise AttributeError(f"module 'ptkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
