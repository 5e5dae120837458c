"""Sentences of errors and gaps, made from their columns on access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.support.text import counted, one_line, shortened

if TYPE_CHECKING:
    from ptkit.table.base import BaseTable

_CODE = _core.ErrorCode
_MISMATCHES = {_CODE.TNT_MISMATCH, _CODE.TIP_MISMATCH, _CODE.FUP_MISMATCH, _CODE.UNEXPECTED_PACKET}
_BYTES = {_CODE.BAD_OPCODE, _CODE.BAD_PACKET, _CODE.TRUNCATED_PACKET, _CODE.BAD_IP_COMPRESSION}
_CODE_NEEDED = {_CODE.NO_CODE, _CODE.BAD_INSN}

# Bytes for each row, about: the values that a text is made of, as Python has them, and the text.
_ROW_BYTES = 800

_CAUSES = {
    _core.GapCause.ERROR: "after an error",
    _core.GapCause.OVERFLOW: "the processor's buffer overflowed",
    _core.GapCause.LOST: "the recorder lost bytes",
    _core.GapCause.START: "before the first PSB",
    _core.GapCause.TNT_DISABLED: "conditional branches were not recorded",
    _core.GapCause.TRACE_STOP: "a TraceStop range was entered",
    _core.GapCause.FILTERED: "what ran in between was not to be recorded, or another thread ran",
}

_START_OF_RECORDS = "start of a branch stack, or of the branch records: what ran before is not recorded"


def _addresses(table: BaseTable, column: str, form: str = "{:#x}", *, rva: bool) -> list[str | None]:
    """Addresses as text, None where they are not known; `rva`: with module and RVA."""
    ips = [None if ip is None else form.format(ip) for ip in table.named(column)]
    if not rva or table.data.context.name_rows is None:
        return ips
    end = column.removesuffix("ip")
    of_file = (table[f"{end}module"].tolist(), table[f"{end}module_offset"].tolist())
    return [
        ip if ip is None or module is None else f"{ip} = {one_line(module)}+{offset:#x}"
        for ip, module, offset in zip(ips, *of_file, strict=True)
    ]


def messages_of(table: BaseTable, *, rva: bool = False) -> list[str]:
    """A line of text per row; see `Table.messages`. `rva`: with module and RVA of addresses."""
    table._require_memory(f"messages of {len(table):,} rows", len(table) * _ROW_BYTES)
    if table.name == "errors":
        return _error_messages(table, rva=rva)
    if table.name == "gaps":
        return _gap_messages(table, rva=rva)
    if table.name == "events":
        return _event_messages(table, rva=rva)
    if table.name == "packets":
        return _packet_messages(table)
    raise ConfigError(f"{table.name} has no messages: errors, gaps, events and packets have")


def _error_messages(table: BaseTable, *, rva: bool) -> list[str]:
    """One sentence per row of an errors table: what, where, and what to do."""
    context = table.data.context
    columns = ("code", "offset", "argument", "argument2", "file", "file_known")
    values = [table[name].tolist() for name in columns]
    values.insert(2, _addresses(table, "ip", rva=rva))
    rows = zip(*values, strict=True)
    return [
        _error_message(context.files, of_record, *row)
        for of_record, row in zip(_of_records(table), rows, strict=True)
    ]


def _of_records(table: BaseTable) -> list[bool]:
    """Which rows are of streams of branch records."""
    records = table.data.context.record_streams
    return [stream in records for stream in table["stream"].tolist()] if records else [False] * len(table)


def _error_message(
    files: Sequence[str],
    of_record: bool,
    code: int,
    offset: int,
    ip: str | None,
    argument: int,
    argument2: int,
    file: int,
    file_known: bool,
) -> str:
    sentence, remedy = _core.status_text(code)
    if code == _CODE.TNT_MISMATCH and argument == _core.PacketKind.TIP_PGD:
        sentence = "packets were disabled at a branch that cannot disable them"
    where = f"at record {offset:,}" if of_record else f"at stream offset {offset:#x}"
    if ip is not None:
        where += f", ip {ip}"
    particulars = _particulars(code, argument, argument2)
    if file_known and file < len(files):
        image = f"image {shortened(one_line(files[file]))}"
        particulars = f"{image}, {particulars}" if particulars else image
    text = f"{sentence} ({where})"
    if particulars:
        text += f": {particulars}"
    return f"{text}; {remedy}" if remedy else text


def _particulars(code: int, argument: int, argument2: int) -> str:
    if code in _BYTES and argument2:
        return "bytes " + argument.to_bytes(8, "little")[: min(argument2, 8)].hex(" ")
    if code in _CODE_NEEDED and argument2:
        return f"addresses [{argument:#x}, {argument + argument2:#x})"
    if code == _CODE.FUP_MISMATCH:
        return f"looked for {argument2:#x}"
    if code == _CODE.RECORD_MISMATCH:
        return f"from {argument:#x} the code leads to the branch at {argument2:#x}"
    if code == _CODE.BAD_RECORD and argument:
        return f"{argument} bytes are left of it"
    if code in _MISMATCHES and argument < len(_core.PacketKind):
        target = f" to {argument2:#x}" if code == _CODE.TNT_MISMATCH and argument2 else ""
        return f"packet {_core.PacketKind(argument).name}{target}"
    return ""


def _gap_messages(table: BaseTable, *, rva: bool) -> list[str]:
    """One sentence per row of a gaps table."""
    values = [table[name].tolist() for name in ("cause", "code", "begin", "end")]
    ends = [_addresses(table, name, rva=rva) for name in ("from_ip", "to_ip")]
    rows = zip(*values, *ends, strict=True)
    return [
        _START_OF_RECORDS if of_records and row[0] == _core.GapCause.START else _gap_message(of_records, *row)
        for of_records, row in zip(_of_records(table), rows, strict=True)
    ]


def _gap_message(
    of_records: bool,
    cause: int,
    code: int,
    begin: int,
    end: int,
    from_ip: str | None,
    to_ip: str | None,
) -> str:
    if of_records:
        text = f"control flow between records {begin:,} and {end:,} is unknown"
    else:
        text = f"{counted(end - begin, 'byte')} of trace ({begin:#x} to {end:#x}) could not be followed"
    text = f"{_CAUSES[_core.GapCause(cause)]}: {text}"
    if code:
        text += f" ({_core.status_text(code)[0]})"
    if from_ip is not None:
        text += f", from ip {from_ip}"
    if to_ip is not None:
        text += f", to ip {to_ip}"
    return text


def _event_messages(table: BaseTable, *, rva: bool) -> list[str]:
    """The text of each event, in the manner of ptxed, with its IP where it has one; `rva`: with its RVA."""
    columns = [table[name] for name in ("kind", "payload", "payload2", "payload3", "flags")]
    texts = _core.event_texts(*columns, annotated=table.data.context.annotated)
    ips = _addresses(table, "ip", "{:016x}", rva=rva)
    return [text if ip is None else f"{text}, ip: {ip}" for text, ip in zip(texts, ips, strict=True)]


def _packet_messages(table: BaseTable) -> list[str]:
    """Name and payload of each packet, in the manner of ptdump."""
    columns = (table[name] for name in ("kind", "payload", "payload2", "flags"))
    texts = _core.packet_texts(*columns, annotated=table.data.context.annotated)
    return [f"{opcode:<10} {payload:<24} {detail}".rstrip() for opcode, payload, detail in texts]
