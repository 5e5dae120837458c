"""Names, notes and widths of the verbs that rebuild call stacks."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable

from ptkit.cli import common, selection
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_text
from ptkit.decode.call_table import FRAME_VIEWS
from ptkit.info import EMULATED_TIMES, EMULATOR
from ptkit.support.text import fitted
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = [
    "add_bound",
    "add_frames_option",
    "add_inlines",
    "address_names",
    "call_command",
    "call_counts",
    "entry_names",
    "fit",
    "indentation",
    "line_width",
    "note",
    "print_sums_json",
    "report",
    "report_counts",
    "shown_name",
]

_LEAST_NAME = 8  # columns that a name keeps on a narrow terminal
_INDENTED = 0.5  # of what is left of a line may be indentation
_MOST_LEVELS = 60  # that are indented where lines are not cut
_TO = " -> "
# Addresses and source lines, marks of begins and ends, and an RVA.
_BEFORE_NAME = re.compile(r"(?:.*  )?(?:[<>] )?(?:\S+\+0x[0-9a-f]+ \()?")
_NAMES_OF_JIT_CODE = re.compile(r"perf-[0-9]+\.map|jit-[0-9]+\.dump")


def add_bound(parser: argparse.ArgumentParser, default: int, text: str, all_text: str) -> None:
    """Add ``--limit``, how many lines are printed, and ``--all``; `text` has the default as ``{}``."""
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument(
        "--limit", metavar="N", type=common.number(first=1), default=default, help=text.format(default)
    )
    bound.add_argument("--all", action="store_true", help=all_text)


def add_inlines(parser: argparse.ArgumentParser) -> None:
    """Add the option for inlined functions."""
    parser.add_argument(
        "--inlines",
        action="store_true",
        help="also inlined functions, by the debug information of files (docs/calls.md)",
    )


def note(options: argparse.Namespace, text: str) -> None:
    """Print a note on standard error."""
    print_text(f"ptkit {options.verb}: note: {text}", errors=True)


def add_frames_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--frames``."""
    parser.add_argument(
        "--frames",
        choices=FRAME_VIEWS,
        default=FRAME_VIEWS[0],
        help="functions of a Python program (3.12 or later with -X perf): as they are (native, the default), "
        "without CPython's evaluation of Python code (python), or without its trampolines only (mixed)",
    )


def call_command(options: argparse.Namespace, number: int, stream: int | None = None) -> str:
    """The command that prints a call with all that it called.

    `number`: among the calls of the streams and threads that were chosen; with `stream`, of that one alone.
    """
    words = ["ptkit", "calls", options.path]
    owners = selection.OWNERS if stream is None else selection.OWNERS[1:]
    for name in owners:
        given = getattr(options, name, None) or ()
        words += [word for one in given for word in (f"--{name}", hex(one) if name == "cr3" else str(one))]
    words += [] if stream is None else ["--stream", str(stream)]
    words += ["--inlines"] if getattr(options, "inlines", False) else []
    frames = getattr(options, "frames", "native")
    words += [] if frames == "native" else ["--frames", frames]
    return shlex.join([*words, "--id", str(number)])


def report(
    trace: Trace, options: argparse.Namespace, rows: int, losses: Losses, *, times: bool = True
) -> None:
    """Say that nothing was selected, what printed `times` are good for, and what was not decoded."""
    selection.report_no_rows(trace, options, rows)
    if rows and times and trace.info.recording.get("backend") == EMULATOR:
        note(options, EMULATED_TIMES)
    if rows and (losses.errors or losses.gaps):
        note(options, "call stacks end at gaps: counts, instructions and times are at least what is printed")
    losses.report(options.path)


def call_counts(sums: Table) -> list[tuple[str, list[str]]]:
    """Columns of calls: heads and cells. A ``~`` marks counts that are not certain.

    Frames of which the begin is not in the trace have a column if there are any, and those that go on beyond
    a window of time.
    """
    exact = sums["count_exact"].tolist()
    counts = [f"{'' if sure else '~'}{n:,}" for n, sure in zip(sums["count"].tolist(), exact, strict=True)]
    columns = [("calls", counts)]
    for head, name in (("unseen", "begin_unseen"), ("crossing", "crossing")):
        others = sums[name].tolist()
        if any(others):
            columns.append((head, [f"{n:,}" for n in others]))
    return columns


def report_counts(options: argparse.Namespace, shown: Table) -> None:
    """Say that counts of calls are not certain."""
    if not shown["count_exact"].all():
        note(options, "~: not certain, as stacks were left and resumed; trace.stack_anomalies has where")


def line_width(options: argparse.Namespace) -> int | None:
    """Columns of the terminal that standard output is; None: lines are not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and options.names != "full" else None


def fit(text: str, used: int, width: int | None) -> str:
    """Cut a name, or names of both ends of an edge, for what is left of a line; what is before them stays."""
    if width is None:
        return text
    left = max(width - used, _LEAST_NAME)
    if len(text) <= left:
        return text
    head = _BEFORE_NAME.match(text)
    begin = head.end() if head is not None else 0
    ends = text[begin:].split(_TO)
    space = left - begin - len(_TO) * (len(ends) - 1)
    if space < _LEAST_NAME * len(ends):
        return fitted(text, left)
    return text[:begin] + _TO.join(fitted(end, space // len(ends)) for end in ends)


def indentation(level: int, used: int, width: int | None) -> str:
    """Blanks before the name at a level; deep ones begin with the level, and leave room for the name."""
    most = _MOST_LEVELS if width is None else int((width - used) * _INDENTED) // 2
    return "  " * level if level <= most else f"{level}> ".rjust(2 * most)


def shown_name(function: str | None, module: str | None, inlined: bool = False) -> str:
    """The function, and its file after it unless its name has the file, or it is JIT code."""
    name = function or "[unknown]"
    if inlined:
        name += " [inlined]"
    if module is None or name.startswith(f"{module}!") or _NAMES_OF_JIT_CODE.fullmatch(module):
        return name
    return f"{name} ({module})"


def entry_names(names: Iterable[str], rows: Table) -> list[str]:
    """Names of functions or calls after module and RVA of their entries: ``gzip+0x1010 (main)``."""
    module = "entry_module" if rows.name == "calls" else "module"
    of_file = (rows[name].tolist() for name in (module, "entry_module_offset"))
    return [
        name if module is None else f"{module}+{offset:#x} ({name})"
        for name, module, offset in zip(names, *of_file, strict=True)
    ]


def address_names(rows: Table, writer: LineWriter, column: str) -> list[str]:
    """Names of a column of addresses, or the addresses; empty where they are not known."""
    writer.begin(rows)
    writer.address("name", column)
    names = [line.decode("utf-8", "surrogateescape") for line in writer.lines()]
    ips = rows.named(column)
    return ["" if ip is None else name or f"{ip:#x}" for name, ip in zip(names, ips, strict=True)]


def print_sums_json(trace: Trace, sums: Table) -> None:
    """Print rows of ``functions`` or ``call_tree`` as JSON; names of functions and files come last."""
    rows = JsonRows(trace, sums.name, symbols=False)
    rows.print_header()
    names: list[str] = [name for name in ("function", "function_full", "module") if name in sums.columns]
    names += ["entry_module_offset"] if "entry_ip" in sums.columns else []

    def more(writer: LineWriter) -> None:
        for name in names:
            writer.literal(f', "{name}": ')
            writer.texts([json.dumps(value).encode() for value in sums.named(name)])

    stored = [name for name in sums.columns if name not in (*names, "code_tsc")]
    rows.print_lines(sums._with_columns(stored), [], more)
