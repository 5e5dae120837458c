"""Arguments that several verbs share, and the trace that they open."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import ptkit
from ptkit import _core
from ptkit.cli.addresses import (
    ADDRESSES,
    address_range,
    code_at,
    image_at,
    list_at,
    note_decimals,
)
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.terminal import print_text
from ptkit.cli.parser import Rare
from ptkit.errors import ConfigError, PtkitWarning
from ptkit.support.arguments import member
from ptkit.support.system import STANDARD_INPUT
from ptkit.table import Table
from ptkit.table.derived import full_name
from ptkit.table.distinct_names import distinct_names
from ptkit.trace import Trace
from ptkit.trace.opening.images import CodeFile

_LAST_64 = 2**64 - 1
LAST_32 = 2**31 - 1
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)%?")


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        if "," in text:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not one number: write it without commas; options that may be repeated take "
                "one number each time"
            ) from None
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number: write it decimal, 0x... or 0b..."
        ) from None


def number(last: int = _LAST_64, first: int = 0) -> Callable[[str], int]:
    """Make a reader of decimal, 0x or 0b numbers in [first, last]."""

    def read(text: str) -> int:
        value = _integer(text)
        if value < first:
            raise argparse.ArgumentTypeError(f"{text}: must be {first} or more")
        if value > last:
            raise argparse.ArgumentTypeError(f"{text}: must be {last} or less")
        return value

    return read


def share(text: str) -> float:
    """Read a share in percent."""
    found = _PERCENT.fullmatch(text)
    if found is None or float(found[1]) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write a percentage, such as 0.5%")
    return float(found[1]) / 100


def kind(enum: type[IntEnum]) -> Callable[[str], str]:
    """Make a reader of the name of a kind, in any case."""

    def read(text: str) -> str:
        try:
            return member("", enum, text).name
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("=")) from None

    return read


def cpu_numbers(text: str) -> list[int]:
    """Read numbers of processors as perf takes them: ``0,2-3``."""
    from ptkit.capture.option_table import option_rows

    if "/" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} is a processor's model: write --processor {text}; --cpu takes numbers such as 0,2-3"
        )
    found: list[int] = []
    end = option_rows()["cpus"].most + 1
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            numbers = range(int(first), int(last or first) + 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected numbers such as 0,2-3, found {text!r}") from None
        if not numbers or numbers[-1] >= end:
            raise argparse.ArgumentTypeError(f"expected numbers below {end} in order, found {part!r}")
        found += numbers
    return found


def _ratio(text: str) -> tuple[int, int]:
    numerator, separator, denominator = text.partition("/")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not a ratio: write EBX/EAX, such as 168/2")
    read = number(2**32 - 1, 1)
    return read(numerator), read(denominator)


def trace_path(text: str) -> str:
    """Read the path of a trace; ``-`` is standard input."""
    if text != "-":
        return text
    if STANDARD_INPUT is None:
        raise argparse.ArgumentTypeError("-: standard input is not read on Windows; save it to a file")
    return STANDARD_INPUT


def add_open_options(
    parser: argparse.ArgumentParser,
    *,
    decoding: bool = True,
    without: str | None = None,
    format_option: str = "--format",
) -> None:
    """Add the input and what ``ptkit.open`` takes; `decoding`: also the choice of the decoder.

    `without` says what the verb does where no input is given; None: there must be one. `format_option` is
    what names the input's format.
    """
    help = "a trace: bundle, folder or raw stream; - for standard input"
    if without is None:
        parser.add_argument("path", metavar="FILE", type=trace_path, help=help)
    else:
        parser.add_argument(
            "path", metavar="FILE", type=trace_path, nargs="?", help=f"{help} (default: {without})"
        )
    group = parser.add_argument_group("if the recording does not state it", ADDRESSES)
    group.add_argument(
        format_option, dest="format", metavar="FORMAT", help="format of FILE (default: found by its content)"
    )
    group.add_argument(
        "--bts-index",
        metavar="N",
        type=number(),
        help=Rare(
            "with --format bts or bts32: number of the record that would be written next (the BTS index less "
            "the BTS buffer base, divided by the size of a record); the ring is put in order from there"
        ),
    )
    group.add_argument(
        "--ring-offset",
        metavar="OFFSET",
        type=number(),
        help=Rare(
            "a raw stream is a ring as it was in memory, and this is where the next byte would be written: "
            "IA32_RTIT_OUTPUT_MASK_PTRS[63:32] of a single range"
        ),
    )
    group.add_argument(
        "--processor", metavar="FAMILY/MODEL[/STEPPING]", help="the processor that recorded, for its errata"
    )
    group.add_argument(
        "--image",
        metavar="PATH[@ADDRESS][,cr3=VALUE]",
        type=image_at,
        action="append",
        default=[],
        help="a program or library (ELF, PE), or a PE's dump from memory, that ran; with cr3=VALUE, in the "
        "process of this CR3 alone. A dump is known by its contents; ,layout=memory and ,layout=file state "
        "it. May be repeated",
    )
    group.add_argument(
        "--code",
        metavar="PATH@ADDRESS[,cr3=VALUE]",
        type=code_at,
        action="append",
        default=[],
        help="raw code bytes at an address (of one process); may be repeated",
    )
    group.add_argument(
        "--symbols",
        metavar="PATH[@BASE][,cr3=VALUE]",
        type=list_at,
        action="append",
        default=[],
        help="names of functions, as nm, System.map, IDA, linkers, WinDbg, Volatility or perf list them, or "
        "a PDB; BASE is the address of their module (default: where the trace has it), "
        "in the process of a CR3; may be repeated",
    )
    group.add_argument(
        "--binaries",
        metavar="FOLDER",
        action="append",
        default=[],
        help="folder with the programs and libraries that the recording names; may be repeated",
    )
    group.add_argument(
        "--debug-path",
        metavar="PATH",
        action="append",
        default=[],
        help="folder with debug files, as /usr/lib/debug, or with PDBs; or a debug file, or a PDB; may be "
        "repeated",
    )
    group.add_argument(
        "--range",
        metavar="FIRST-LAST",
        type=address_range,
        action="append",
        help="the only addresses that were traced (IA32_RTIT_ADDRn_A to _B, inclusive); may be repeated",
    )
    group.add_argument(
        "--stop-range",
        metavar="FIRST-LAST",
        type=address_range,
        action="append",
        help=Rare("the same for a TraceStop range, where tracing stopped"),
    )
    group.add_argument(
        "--rtit-ctl",
        metavar="VALUE",
        type=number(),
        help="IA32_RTIT_CTL as it was programmed (`ptkit msr explain RTIT_CTL VALUE` explains it)",
    )
    group.add_argument(
        "--tsc-ctc-ratio",
        metavar="EBX/EAX",
        type=_ratio,
        help=Rare("TSC:CTC ratio, EBX and EAX of CPUID leaf 15H"),
    )
    group.add_argument(
        "--mtc-period", metavar="N", type=number(15), help=Rare("the field MTCFreq of IA32_RTIT_CTL")
    )
    group.add_argument(
        "--max-nonturbo-ratio",
        metavar="N",
        type=number(255, 1),
        help=Rare("core:bus ratio at TSC speed (MSR_PLATFORM_INFO)"),
    )
    group.add_argument("--tsc-hz", metavar="HZ", type=number(first=1), help=Rare("TSC ticks in a second"))
    group.add_argument(
        "--no-sync",
        action="store_true",
        help="a stream may begin without a PSB: begin at its first TIP.PGE or FUP with a full IP",
    )
    if not decoding:
        parser.set_defaults(engine="ptkit", resync="ip", threads=None, cs_base=None)
        return
    group = parser.add_argument_group("decoding")
    group.add_argument(
        "--engine",
        choices=("ptkit", "simple", "libipt"),
        default="ptkit",
        help=Rare("decoder (default: ptkit); simple: without its fast path; libipt: Intel's"),
    )
    group.add_argument(
        "--resync",
        choices=("ip", "psb"),
        default="ip",
        help=Rare("after an error continue at the next address (ip, the default) or PSB (psb)"),
    )
    group.add_argument(
        "--threads", metavar="N", type=number(LAST_32, 1), help="decoding threads (default: all cores)"
    )
    group.add_argument(
        "--cs-base",
        metavar="BASE",
        type=number(2**32 - 1),
        help=Rare(
            "base of the code segment of 16 and 32-bit code, where IP payloads are effective addresses"
        ),
    )


def add_json_option(parser: argparse.ArgumentParser, help: str = "print JSON") -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=help)


def add_header_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-header`` of verbs that print rows."""
    parser.add_argument(
        "--no-header",
        action="store_true",
        help="leave out the names of columns; they go to standard error if standard output is no terminal",
    )


def add_rva_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--rva`` of verbs that print addresses."""
    parser.add_argument(
        "--rva",
        action="store_true",
        help="print module and RVA of each address, with its name after it: srv2.sys+0x9310 (Handler+0x10)",
    )


def add_names_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--names`` of verbs that print names of functions."""
    parser.add_argument(
        "--names",
        choices=("short", "full"),
        help="names of C++ and Rust without template arguments, parameters and hashes (short, the default on "
        "a terminal), or with them (full, the default in pipes); --json has both",
    )


def has_short_names(options: argparse.Namespace) -> bool:
    """Whether names of functions are printed in short."""
    return sys.stdout.isatty() if options.names is None else bool(options.names == "short")


def function_names(options: argparse.Namespace, rows: Table, column: str = "function") -> list[Any]:
    """Names of functions to print: on a terminal, with what tells functions with equal short names apart."""
    full = rows.named(full_name(column))
    shown = shown_names(options, full)
    return [shown.get(name, name) for name in full]


def has_distinct_names(options: argparse.Namespace) -> bool:
    """Whether names are printed with what tells functions with equal short ones apart."""
    return has_short_names(options) and sys.stdout.isatty()


def shown_names(options: argparse.Namespace, full: Sequence[str | None]) -> dict[str, str]:
    """Printed names by full names, where they differ: see `function_names`."""
    if not has_short_names(options):
        return {}
    if has_distinct_names(options):
        return distinct_names(full)
    names = list(dict.fromkeys(name for name in full if name))
    return dict(zip(names, _core.short_names(names), strict=True))


def add_address_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--names``, ``--rva`` and ``--file-offsets`` of verbs that print names of addresses."""
    add_names_option(parser)
    group = parser.add_mutually_exclusive_group()
    add_rva_option(group)
    group.add_argument(
        "--file-offsets",
        action="store_true",
        help=Rare("where there is no symbol, print the offset in the file instead of the RVA"),
    )


def line_writer(trace: Trace, options: argparse.Namespace, *, symbols: bool = True) -> LineWriter:
    """Make what writes lines with names of addresses; `symbols`: also of functions."""
    names = "file offset" if options.file_offsets else "symbol"
    if options.rva:
        names = "rva and symbol" if symbols else "rva"
    return LineWriter(trace, names, short=has_short_names(options))


def add_status_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--status`` of verbs that print events."""
    parser.add_argument("--status", action="store_true", help="also events that repeat the state in PSB+")


def add_rows_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` of the verbs that print tables, and ``--no-header`` of their lines."""
    add_header_option(parser)
    add_json_option(
        parser,
        "one JSON object on each line: a header, then rows; errors and gaps stand among them. The "
        'member "table" says which is which (docs/json.md)',
    )


def add_force_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--force`` for verbs that write a recording to ``--output``."""
    parser.add_argument(
        "--force", action="store_true", help="overwrite the output also if it is not a recording"
    )


def check_output(options: argparse.Namespace) -> None:
    """Refuse to overwrite a file that is not a recording, unless ``--force`` is given."""
    from ptkit.capture.output_file import OutputFile

    OutputFile(os.fsencode(options.output), force=options.force)


def _ranges(options: argparse.Namespace) -> list[tuple[str, int, int]] | None:
    """Address ranges that are given; None: those of the recording."""
    kinds = (("filter", options.range), ("stop", options.stop_range))
    return [(kind, *span) for kind, spans in kinds for span in spans or ()] or None


def _has_code(trace: Trace, ip: int) -> bool:
    return any(begin <= ip < begin + size for begin, size, *_ in trace.opened.bundle.code)


def _print_warning(sentence: str) -> None:
    print_text(f"ptkit: warning: {sentence}", errors=True)


def _keep_warning(sentence: str) -> None:
    """Print nothing: ``trace.info`` has the warning, and the verb prints that."""


def open_trace(options: argparse.Namespace, *, index: bool = True, warn: bool = True) -> Trace:
    """Open the verb's input; `warn`: print its warnings on standard error, one line each.

    An unknown function is refused before anything is printed.
    """
    images: list[Any] = [tuple(one) for one in options.image]
    images += [(CodeFile(one.path), one.address, one.cr3) for one in options.code]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PtkitWarning)  # the verb prints the warnings of trace.info
        trace = ptkit.open(
            options.path,
            format=options.format,
            bts_index=options.bts_index,
            ring_offset=options.ring_offset,
            cpu=options.processor,
            ranges=_ranges(options),
            rtit_ctl=options.rtit_ctl,
            images=images or None,
            symbols=[(one.path, one.address, one.cr3) for one in options.symbols],
            binaries=options.binaries,
            debug_path=options.debug_path,
            engine=options.engine,
            resync=options.resync,
            threads=options.threads,
            tsc_ctc_ratio=options.tsc_ctc_ratio,
            mtc_period=options.mtc_period,
            max_nonturbo_ratio=options.max_nonturbo_ratio,
            tsc_hz=options.tsc_hz,
            cs_base=options.cs_base,
            sync=not options.no_sync,
            index=index,
        )
    if warn:
        note_decimals(options, partial(_has_code, trace))
    trace.open_parts.report_warnings_by(_print_warning if warn else _keep_warning)
    trace.open_parts.keep_nothing()
    names = getattr(options, "symbol", None) or ()
    for name in (names,) if isinstance(names, str) else names:
        trace.open_parts.ranges.of_symbol(name)
    for sentence in trace.info.warnings if warn else ():
        _print_warning(sentence)
    return trace
