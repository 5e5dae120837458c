"""What the verbs that rebuild call stacks have in common: names, notes, widths."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

import numpy as np

from ptkit.cli import selection
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.progress import notices
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import say
from ptkit.info import EMULATED_TIMES, EMULATOR
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["decoding", "fit", "indentation", "line_width", "note", "print_sums_json", "report", "shown_name"]

_LEAST_NAME = 8  # columns that a name keeps on a narrow terminal
_INDENTED = 0.5  # of what is left of a line may be indentation
_MOST_LEVELS = 60  # that are indented where lines are not cut
_CUT = "..."


def note(options: argparse.Namespace, text: str) -> None:
    """Print a note on standard error."""
    say(f"ptkit {options.verb}: note: {text}", errors=True)


@contextmanager
def decoding(trace: Trace) -> Iterator[None]:
    """Say on a terminal's standard error that the trace is decoded, while the core does it at one go."""
    with notices() as show:
        size = sum(stream.size for stream in trace.streams)
        show(f"decoding {PurePath(trace.source).name or trace.source} ({size / 1e6:,.1f} MB)")
        yield


def report(trace: Trace, options: argparse.Namespace, rows: int) -> None:
    """Say that nothing was selected, what the times are good for, and what was not decoded."""
    selection.report_no_rows(trace, options, rows)
    if rows and trace.info.recording.get("backend") == EMULATOR:
        note(options, EMULATED_TIMES)
    losses = Losses()
    streams = selection.chosen_streams(trace, options)
    with decoding(trace):
        for side, name in ((trace.errors, "errors"), (trace.gaps, "gaps")):
            setattr(losses, name, int(np.isin(side["stream"], streams).sum()))
    if rows and (losses.errors or losses.gaps):
        note(options, "call stacks end at gaps: counts, instructions and times are at least what is printed")
    losses.report(options.path)


def line_width() -> int | None:
    """Columns of the terminal that standard output is; None: lines are not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fit(text: str, used: int, width: int | None) -> str:
    """Cut a name for what is left of a line: its begin and its end stay, for both tell names apart."""
    if width is None:
        return text
    left = max(width - used, _LEAST_NAME)
    if len(text) <= left:
        return text
    end = (left - len(_CUT)) // 3
    return text[: left - len(_CUT) - end] + _CUT + text[-end:]


def indentation(level: int, used: int, width: int | None) -> str:
    """Blanks before the name at a level; deep ones begin with the level, and leave room for the name."""
    most = _MOST_LEVELS if width is None else int((width - used) * _INDENTED) // 2
    return "  " * level if level <= most else f"{level}> ".rjust(2 * most)


def shown_name(function: str | None, module: str | None) -> str:
    """The function, and its file behind it unless its name has the file."""
    name = function or "[unknown]"
    return name if module is None or name.startswith(f"{module}!") else f"{name} ({module})"


def print_sums_json(trace: Trace, sums: Table) -> None:
    """Print rows of ``functions`` or ``call_tree`` as JSON; names of functions and files come last."""
    rows = JsonRows(trace, sums.name, symbols=False)
    rows.print_header()
    names = [name for name in ("function", "module") if name in sums.columns]

    def more(writer: LineWriter) -> None:
        for name in names:
            writer.literal(f', "{name}": ')
            writer.texts([json.dumps(text).encode() for text in sums.named(name)])

    stored = [name for name in sums.columns if name not in names]
    rows.print_lines(sums._with_columns(stored), [], more)
