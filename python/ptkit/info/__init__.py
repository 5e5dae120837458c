"""Facts about a trace, without decoding it."""

from __future__ import annotations

from ptkit.info.facts import MissingFile, ModuleInfo, ProcessInfo, StreamInfo
from ptkit.info.lines import EMULATED_TIMES, EMULATOR
from ptkit.info.model import (
    EFFECTIVE,
    LINEAR,
    PacketCounts,
    TraceInfo,
    complete,
    count_packets,
    info_of,
    modules_of,
)

__all__ = [
    "EFFECTIVE",
    "EMULATED_TIMES",
    "EMULATOR",
    "LINEAR",
    "MissingFile",
    "ModuleInfo",
    "PacketCounts",
    "ProcessInfo",
    "StreamInfo",
    "TraceInfo",
    "complete",
    "count_packets",
    "info_of",
    "modules_of",
]
