"""Options and output that several verbs share."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import ptkit
from ptkit.table import Table
from ptkit.trace import Trace


def _number(text: str) -> int:
    """Read a decimal, 0x or 0b number."""
    return int(text, 0)


def _ratio(text: str) -> tuple[int, int]:
    numerator, _, denominator = text.partition("/")
    return int(numerator, 0), int(denominator or "1", 0)


def _span(text: str) -> tuple[int, int]:
    first, separator, last = text.partition("-")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is no range: write LOW-HIGH")
    return int(first, 0), int(last, 0)


def _image(text: str) -> tuple[str, int | None]:
    path, separator, address = text.rpartition("@")
    if not separator:
        return text, None
    return path, int(address, 0)


def add_open_options(parser: argparse.ArgumentParser) -> None:
    """Add the input and what ``ptkit.open`` takes."""
    parser.add_argument("path", metavar="FILE", help="a trace: bundle, folder or raw stream")
    group = parser.add_argument_group("what the input does not say")
    group.add_argument("--format", help="reader to force (default: by content)")
    group.add_argument("--cpu", metavar="FAMILY/MODEL[/STEPPING]", help="processor, for its errata")
    group.add_argument(
        "--image",
        metavar="PATH[@ADDRESS]",
        type=_image,
        action="append",
        default=[],
        help="an ELF file; may be repeated",
    )
    group.add_argument(
        "--code",
        metavar="PATH@ADDRESS",
        type=_image,
        action="append",
        default=[],
        help="raw code bytes at an address",
    )
    group.add_argument("--tsc-ctc-ratio", metavar="EBX/EAX", type=_ratio, help="of CPUID leaf 15H")
    group.add_argument("--mtc-period", type=_number, help="the field MTCFreq of IA32_RTIT_CTL")
    group.add_argument("--max-nonturbo-ratio", type=_number, help="core:bus ratio at TSC speed")
    group = parser.add_argument_group("decoding")
    group.add_argument(
        "--engine", choices=("ptkit", "libipt"), default="ptkit", help="decoder (default: ptkit)"
    )
    group.add_argument(
        "--resync", choices=("ip", "psb"), default="ip", help="where to go on after an error (default: ip)"
    )
    group.add_argument("--threads", type=_number, help="decoding threads (default: all cores)")


def add_selection_options(parser: argparse.ArgumentParser, *, flow: bool) -> None:
    """Add the choice of rows; `flow` tells whether rows belong to threads and code."""
    group = parser.add_argument_group("selection")
    group.add_argument("--stream", type=_number, help="index of a stream")
    group.add_argument("--time", metavar="FROM-TO", type=_span, help="TSC ticks, [FROM, TO)")
    group.add_argument("--limit", type=_number, metavar="N", help="at most N rows")
    if flow:
        group.add_argument("--tid", type=_number, help="thread")
        group.add_argument("--ip", metavar="FROM-TO", type=_span, help="addresses, [FROM, TO)")
        group.add_argument("--symbol", help="name of a function")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="JSON; tables are one object per line")


def open_trace(options: argparse.Namespace) -> Trace:
    """Open the verb's input; warnings go to standard error, one line each."""
    images: list[Any] = [path if address is None else (path, address) for path, address in options.image]
    code: dict[int, bytes] = {}
    for path, address in options.code:
        if address is None:
            raise ValueError(f"--code {path}: say where it is: --code {path}@ADDRESS")
        code[address] = Path(path).read_bytes()
    if code:
        images.append(code)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = ptkit.open(
            options.path,
            format=options.format,
            cpu=options.cpu,
            images=images or None,
            engine=options.engine,
            resync=options.resync,
            threads=options.threads,
            tsc_ctc_ratio=options.tsc_ctc_ratio,
            mtc_period=options.mtc_period,
            max_nonturbo_ratio=options.max_nonturbo_ratio,
        )
    for warning in caught:
        print(f"ptkit: warning: {warning.message}", file=sys.stderr)
    return trace


def selection(options: argparse.Namespace) -> dict[str, Any]:
    """Collect the selection as keyword arguments of the tables."""
    names = ("stream", "tid", "time", "ip", "symbol")
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


def limited(parts: Iterable[Table], limit: int | None) -> Iterator[Table]:
    """Pass parts on until `limit` rows are reached."""
    left = limit
    for part in parts:
        if left is not None and len(part) >= left:
            if left:
                yield part[:left]
            return
        if left is not None:
            left -= len(part)
        yield part


class Losses:
    """Counts the errors and gaps that come up while parts are read."""

    def __init__(self) -> None:
        self.errors = 0
        self.gaps = 0

    def counted(self, parts: Iterable[Table]) -> Iterator[Table]:
        """Pass parts on, counting."""
        for part in parts:
            self.errors += len(part.errors) if part.errors is not None else 0
            self.gaps += len(part.gaps) if part.gaps is not None else 0
            yield part

    def report(self) -> None:
        """Say on standard error what was not decoded: nothing is lost in silence."""
        if self.errors or self.gaps:
            text = (
                f"{self.errors:,} errors, {self.gaps:,} gaps: `ptkit instructions` shows them at their place"
            )
            print(f"ptkit: warning: {text}", file=sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(value, indent=2, default=str))


def chosen_streams(trace: Trace, options: argparse.Namespace) -> list[int]:
    """Indices of the streams to print."""
    if options.stream is None:
        return list(range(len(trace.streams)))
    if not 0 <= options.stream < len(trace.streams):
        raise ValueError(f"--stream {options.stream}: the trace has streams 0 to {len(trace.streams) - 1}")
    return [options.stream]


def print_stream_heading(trace: Trace, stream: int) -> None:
    """Say which stream follows, where there are several."""
    if len(trace.streams) > 1:
        print(f"[stream {stream}: {trace.streams[stream].name or 'unnamed'}]")


def rows_as_json(part: Table, out: TextIO) -> None:
    """Write a part's rows as one JSON object per line, enumerations by name."""
    names = list(part.columns)
    columns = [part.named(name) for name in names]
    out.writelines(
        json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in zip(*columns, strict=True)
    )


@contextmanager
def progress(trace: Trace, what: str) -> Iterator[None]:
    """Show on a terminal's standard error how far decoding is, if it takes long."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(f"{what} {trace.source}")
        yield
