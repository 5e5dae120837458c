"""``ptkit branches --fold``: rows with the repetitions of loops folded, as text and as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ptkit._core import BranchKind
from ptkit.analysis.folding import BEGIN, END, GAP, OWNER, ROW, Folded
from ptkit.cli import common, selection
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import line_of, print_lines
from ptkit.cli.stacks import fit, line_width
from ptkit.trace import Trace

__all__ = ["print_folded"]

_UNKNOWN = "?" * 16
_FROM, _TO, _TAKEN, _IN_TX = 1, 2, 4, 8  # flow::RowFlag


def print_folded(trace: Trace, options: argparse.Namespace) -> int:
    """Print the rows of each stream."""
    chosen = selection.selection(trace, options)
    streams = selection.chosen_streams(trace, options)
    lines = _Json(trace) if options.json else _Text(trace, options)
    if options.json:
        JsonRows(trace, "folded_branches").print_header()
    else:
        print_heading(options, f"{'from':<16}    {'to':<16}  {'kind':<13}  names")
    left, rows = options.limit, 0
    with decoding(trace, streams=streams, passes=2):
        for part in trace._folded(chosen):
            some = part if left is None else part[:left]
            rows += len(some)
            print_lines(lines.of(some))
            if left is not None:
                left -= len(some)
                if not left:
                    break
    print_lines(lines.end())
    selection.report_no_rows(trace, options, rows)
    return 0


class _Text:
    """Lines of text; repetitions are indented."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._trace, self._options = trace, options
        self._width = line_width(options)
        self._open = 0
        self._stream = -1

    def of(self, part: Folded) -> Iterator[bytes]:
        """Lines of tokens."""
        if part.stream != self._stream:
            self._stream = part.stream
            yield line_of(f"stream {part.stream}")
        names = _Names(self._trace, self._options, part)
        for op, first, second, kind, flags in part.tokens():
            indent = "  " * self._open
            if op == ROW:
                yield line_of(indent + self._row(names, first, second, kind, flags, len(indent)))
            elif op == BEGIN:
                self._open += 1
                yield line_of(f"{indent}x {first:,} {{  loop {names.of(second)}")
            elif op == END:
                self._open -= 1
                yield line_of(f"{'  ' * self._open}}}")
            elif op == GAP:
                yield line_of("[gap: control flow is not known]")
            elif op == OWNER:
                tid = int(np.int64(np.uint64(first)))
                yield line_of(f"thread {tid if tid >= 0 else '?'}, space {second}")

    def end(self) -> list[bytes]:
        """Lines after the last token, where a limit cut repetitions."""
        return [line_of(f"{'  ' * number}... }}") for number in range(self._open - 1, -1, -1)]

    def _row(self, names: _Names, first: int, second: int, kind: int, flags: int, used: int) -> str:
        source = f"{first:016x}" if flags & _FROM else _UNKNOWN
        target = f"{second:016x}" if flags & _TO else _UNKNOWN
        ends = [names.of(first) if flags & _FROM else "?", names.of(second) if flags & _TO else "?"]
        arrow = "=>" if flags & _TAKEN else "--"
        text = f"{source} {arrow} {target}  {BranchKind(kind).name.lower():<13}  "
        return text + fit(" -> ".join(ends), used + len(text), self._width)


class _Json:
    """JSON lines."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._owner: dict[str, Any] = {}
        self._open = 0

    def of(self, part: Folded) -> Iterator[bytes]:
        """Lines of tokens."""
        names = _Names(self._trace, None, part)
        for op, first, second, kind, flags in part.tokens():
            row: dict[str, Any] = {}
            if op == ROW:
                row = {
                    "from_ip": hex(first) if flags & _FROM else None,
                    "from_symbol": names.of(first) if flags & _FROM else None,
                    "to_ip": hex(second) if flags & _TO else None,
                    "to_symbol": names.of(second) if flags & _TO else None,
                    "kind": BranchKind(kind).name,
                    "taken": bool(flags & _TAKEN),
                    "in_tx": bool(flags & _IN_TX),
                }
            elif op == BEGIN:
                self._open += 1
                row = {"times": first, "head_ip": hex(second), "head_symbol": names.of(second)}
            elif op == END:
                self._open -= 1
            elif op == OWNER:
                tid = int(np.int64(np.uint64(first)))
                row = {"stream": part.stream, "tid": tid if tid >= 0 else None, "space": second}
            yield json.dumps({"table": _TABLES[op], **row}).encode()

    def end(self) -> list[bytes]:
        """The ends of repetitions that a limit cut."""
        return [json.dumps({"table": "fold_end", "cut": True}).encode()] * self._open


_TABLES = {
    ROW: "folded_branches",
    BEGIN: "fold_begin",
    END: "fold_end",
    GAP: "fold_gap",
    OWNER: "fold_thread",
}


class _Names:
    """Names of the addresses of tokens."""

    def __init__(self, trace: Trace, options: argparse.Namespace | None, part: Folded) -> None:
        ips, space = part.addresses()
        texts = trace.symbolize(ips, space=space, modules=True)
        self._texts = dict(zip(ips.tolist(), texts, strict=True))
        if options is not None and common.has_short_names(options):
            short = trace.symbolize(ips, space=space, offsets=False)
            shown = common.shown_names(options, short)
            for ip, text, name in zip(ips.tolist(), texts, short, strict=True):
                if text is not None and name is not None:
                    self._texts[ip] = shown.get(name, name) + text[len(name) :]

    def of(self, ip: int) -> str:
        """The name of an address, or the address."""
        return self._texts.get(ip) or f"{ip:#x}"
