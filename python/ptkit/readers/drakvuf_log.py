"""DRAKVUF's logs (one JSON object a line): pages of code, and the process of each CR3."""

from __future__ import annotations

import json
import mmap
import re
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.text import last_part, number

__all__ = ["Log"]

_PAGE = 4096 - 1
_MOST_LINE_BYTES = 1 << 16
_MOST_LEVELS = 100
_BATCH_LINES = 512
# An object without others in it. Several are read as one list: each is one value of that.
_FLAT_OBJECT = re.compile(rb"\s*\{[^{}\[\]]*\}\s*")


class _BadLine(Exception):
    """A line is no JSON object, or lacks a member."""


def _wide(value: Any) -> int:
    """Return a JSON number, or text with a decimal number or one with 0x."""
    found = number(value) if type(value) is str else value
    if type(found) is not int or not 0 <= found <= LAST_ADDRESS:
        raise _BadLine
    return found


def _signed(value: Any) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise _BadLine
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _BadLine
    return value


def _either(line: dict[str, Any], name: str, older: str) -> Any:
    """DRAKVUF renamed plugins and members: return the new or the older member."""
    found = line.get(name)
    return line.get(older) if found is None else found


@dataclass
class Log:
    """Facts of the lines that have a CR3.

    Attributes
    ----------
    pages : list of (CR3, address, physical address, file)
        Pages that were saved at their first execution; the file's name without its folder.
    faults : list of (CR3, address, physical address)
        A page became present in a process: the one at this physical address is at this address, too.
    processes : dict
        PIDs by CR3.
    threads : dict
        Name of the program by PID and TID.
    taken_over : set of int
        CR3 that had another PID later.
    bad_lines : int
        Lines that are no JSON objects, or lack a member.
    """

    pages: list[tuple[int, int, int, str]] = field(default_factory=list)
    faults: list[tuple[int, int, int]] = field(default_factory=list)
    processes: dict[int, int] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    taken_over: set[int] = field(default_factory=set)
    bad_lines: int = 0

    def read(self, text: bytes | mmap.mmap) -> None:
        """Read a log. Lines without a CR3 are left out."""
        lines: list[bytes] = []
        at = text.find(b'"CR3"')
        while at >= 0:
            begin, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
            end = len(text) if end < 0 else end
            if end - begin > _MOST_LINE_BYTES:
                self.bad_lines += 1
            else:
                lines.append(text[begin:end])
            if len(lines) == _BATCH_LINES:
                self._read_lines(lines)
                lines = []
            at = text.find(b'"CR3"', end)
        self._read_lines(lines)

    def _read_lines(self, lines: list[bytes]) -> None:
        """Parse lines that are flat objects together, and others, or if that fails all, one by one."""
        are_flat = [_FLAT_OBJECT.fullmatch(line) is not None for line in lines]
        try:
            values = json.loads(b"[" + b",".join(compress(lines, are_flat)) + b"]")
        except ValueError:
            values = []
        if len(values) != sum(are_flat):
            are_flat = [False] * len(lines)
        following = iter(values)
        for text, is_flat in zip(lines, are_flat, strict=True):
            try:
                self._read_line(text, next(following) if is_flat else json.loads(text))
            except (_BadLine, ValueError, RecursionError):
                self.bad_lines += 1

    def _read_line(self, text: bytes, line: Any) -> None:
        if not isinstance(line, dict) or (
            text.count(b"[") + text.count(b"{") > _MOST_LEVELS and _is_deep(line)
        ):
            raise _BadLine
        if line.get("CR3") is None:
            return
        cr3 = _wide(line["CR3"]) & ~_PAGE
        kind = _either(line, "EventType", "Plugin")
        event = _text(kind) if kind is not None else ""
        pid = thread = None
        if line.get("PID") is not None:
            pid = _signed(line["PID"])
            if line.get("TID") is not None:
                name = line.get("ProcessName")
                thread = _signed(line["TID"]), last_part(_text(name)) if name is not None else ""
        if event == "execframe":
            page = self._page(line, cr3)
            if page is not None:
                self.pages.append(page)
        elif event == "pagefault":
            physical, address = _wide(line.get("PA")), _wide(line.get("VA"))
            self.faults.append((cr3, address & ~_PAGE, physical & ~_PAGE))
        if pid is not None:
            if self.processes.setdefault(cr3, pid) != pid:
                self.taken_over.add(cr3)
            if thread is not None:
                self.threads.setdefault((pid, thread[0]), thread[1])

    @staticmethod
    def _page(line: dict[str, Any], cr3: int) -> tuple[int, int, int, str] | None:
        file = _text(_either(line, "DumpFile", "FrameFile"))
        address = _wide(_either(line, "PageVA", "FrameVA"))
        physical = _wide(line.get("TrapPA"))
        if file == "(null)":  # DRAKVUF could not save the page
            return None
        return cr3, address & ~_PAGE, physical & ~_PAGE, last_part(file)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return any(isinstance(one, (dict, list)) for one in level)
