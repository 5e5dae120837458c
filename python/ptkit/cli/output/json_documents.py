"""Verbs' output as one JSON document, member by member (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ptkit.cli.output.json_values import decimal, form_of, hexadecimal, with_hexadecimals
from ptkit.info import TraceInfo
from ptkit.support.schema import schema_of

if TYPE_CHECKING:
    from ptkit.analysis.verify import Difference, Report

__all__ = ["info_document", "verify_document"]

_HEXADECIMAL = frozenset({"id", "tsc", "clocks_tsc"})  # members of `recording`, and of objects in it


def _object(names: Sequence[str], values: Sequence[Any] | None) -> dict[str, Any] | None:
    """An object of values that Python has in a tuple."""
    return None if values is None else dict(zip(names, values, strict=True))


def info_document(info: TraceInfo, counts: Mapping[str, int]) -> dict[str, Any]:
    """The document of ``ptkit info --json``; `counts` is empty where nothing was decoded."""
    times = _object(("time_mult", "time_shift", "time_zero"), info.perf_time)
    document = {
        "source": info.source,
        "format": info.format,
        "engine": info.engine,
        "bytes": info.bytes,
        "cpu": _object(("family", "model", "stepping"), info.cpu),
        "tsc_ctc_ratio": _object(("ebx", "eax"), info.tsc_ctc_ratio),
        "mtc_period": info.mtc_period,
        "max_nonturbo_ratio": info.max_nonturbo_ratio,
        "tsc_hz": info.tsc_hz,
        "perf_time": None if times is None else with_hexadecimals(times, {"time_zero"}),
        "first_tsc": hexadecimal(info.first_tsc),
        "last_tsc": hexadecimal(info.last_tsc),
        "first_ns": decimal(info.first_ns),
        "last_ns": decimal(info.last_ns),
        "seconds": info.seconds,
        "rtit_ctl": hexadecimal(info.rtit_ctl),
        "ip_payloads": info.ip_payloads,
        "cs_base": hexadecimal(info.cs_base),
        "ranges": [
            {"kind": kind, "first": hexadecimal(first), "last": hexadecimal(last)}
            for kind, first, last in info.ranges
        ],
        "streams": [with_hexadecimals(asdict(one), {"first_tsc", "last_tsc"}) for one in info.streams],
        "spaces": [{"pid": pid, "cr3": hexadecimal(cr3)} for pid, cr3 in info.spaces],
        "threads": [_object(("pid", "tid", "name"), thread) for thread in info.threads],
        "files": [{"path": path, "build_id": build_id or None} for path, build_id in info.files],
        "processes": [
            {
                "pid": one.pid,
                "name": one.name,
                "threads": [{"tid": tid, "name": name} for tid, name in one.threads],
                "spaces": [index for index, _ in one.spaces],
            }
            for one in info.processes
        ],
        "modules": [
            with_hexadecimals(asdict(one), {"base"}) | {"build_id": one.build_id or None}
            for one in info.modules
        ],
        "missing_files": [
            {"path": file.path, "build_id": file.build_id or None, "reason": file.reason or None}
            for file in info.missing_files
        ],
        "code_regions": info.code_regions,
        "code_bytes": info.code_bytes,
        "warnings": list(info.warnings),
        "recording": _recorded(info.recording),
    }
    return document | ({"counts": dict(counts)} if counts else {})


def _recorded(value: Any, name: str = "") -> Any:
    """The metadata of a recording, with times and numbers of 64 bits as strings."""
    if isinstance(value, dict):
        return {key: _recorded(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_recorded(one) for one in value]
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if name.endswith("_ns"):
        return decimal(value)
    return hexadecimal(value) if name in _HEXADECIMAL else value


def verify_document(report: Report) -> dict[str, Any]:
    """The document of ``ptkit verify --json``."""
    document = asdict(report) | {"same": report.same}
    if report.difference is not None:
        document["difference"] |= _difference(report.difference)
    return document


def _difference(found: Difference) -> dict[str, Any]:
    """Rows and instructions as they are in the tables' own JSON."""
    instructions = {
        name: [
            {"ip": hexadecimal(one.ip), "code": one.code, "text": one.text} for one in getattr(found, name)
        ]
        for name in ("ours_before", "reference_before")
    }
    return {name: _row(found.level, getattr(found, name)) for name in ("ours", "reference")} | instructions


def _row(table: str, row: Mapping[str, int] | None) -> dict[str, Any] | None:
    return None if row is None else {name: _cell(table, name, value) for name, value in row.items()}


def _cell(table: str, name: str, value: int) -> Any:
    schema = schema_of(table)
    if name == "flags":
        return [flag for flag in schema.names("flag") if value & schema.columns[flag].mask]
    column = schema.columns.get(name)
    if column is None:  # verify's own: which of the row's values are known
        return value
    if column.enum is not None:
        return column.enum(value).name
    return hexadecimal(value) if form_of(column) == "hexadecimal" else value
