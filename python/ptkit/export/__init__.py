"""Traces in the formats of other tools."""

from __future__ import annotations

from ptkit.export.options import ExportOption
from ptkit.export.raw import stream_bytes
from ptkit.export.registry import Exported, Exporter, export, exporters

__all__ = ["ExportOption", "Exported", "Exporter", "export", "exporters", "stream_bytes"]
