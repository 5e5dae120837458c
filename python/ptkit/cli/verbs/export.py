"""``ptkit export``: a recording in another tool's format."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from ptkit.cli import common, selection
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import print_text
from ptkit.errors import ConfigError
from ptkit.export import Exporter, exporters
from ptkit.trace import Trace

DESCRIPTION = """\
Writes a recording in a format that other tools read.

perf.data: a file for Linux perf, or a folder as `perf record --kcore` writes it, if the recording has kernel
code. Code that perf would not find on this machine goes to OUT.debug, which `perf --buildid-dir` takes;
with --with-code all, all code goes there, for other machines. Notes on standard error list what perf.data
cannot hold.

drcov: the basic blocks that were executed, by module with RVA and size, as DynamoRIO's drcov writes them, for
Lighthouse and other readers. offsets: the begins of these blocks as lines of module+RVA; with --hits, how
often the instruction there was executed. Each block is there once. Memory without a file is a module of its
own, [anon 0x10000000].

raw: the bytes of a stream as the processor wrote them (--stream N where there are several). code: a folder
with the code that was executed, a file for each region and version, and index.json."""
EXAMPLES = """examples:
  ptkit export sort.ptk -o sort.data
  ptkit export sort.ptk --format perf.data --with-code all -o sort.data
  ptkit export sort.ptk --format drcov -o sort.drcov
  ptkit export sort.ptk --format offsets --module libc.so.6 -o sort.txt
  ptkit export sort.ptk --format offsets --hits -o hits.txt
  ptkit export sort.ptk --format raw --stream 0 -o sort.pt
  ptkit export sort.ptk --format code -o sort.code
then, where perf is installed:
  perf script -i sort.data --itrace=b
  perf --buildid-dir sort.data.debug script -i sort.data --itrace=i0ns"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file or folder to write")
    common.add_force_option(parser)
    # Packages' own formats are not named here: their modules would be imported by each verb.
    parser.add_argument(
        "--format",
        dest="to",
        metavar="FORMAT",
        default="perf.data",
        help="perf.data (default), drcov, offsets, raw, code, or a format that another package adds; a wrong "
        "name lists all of them",
    )
    parser.add_argument(
        "--with-code",
        choices=("needed", "all", "none"),
        help="perf.data: which code goes to OUT.debug (default: needed)",
    )
    parser.add_argument(
        "--file-offsets", action="store_true", help="offsets: offsets in files instead of RVAs"
    )
    parser.add_argument(
        "--hits", action="store_true", help="offsets: how often each was executed, after the offset"
    )
    group = parser.add_argument_group(
        "which blocks (drcov, offsets, code); --stream: also of raw", "Repeated options add up."
    )
    selection.add_choice_options(group)
    common.add_open_options(parser, decoding=False, format_option="--input-format")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the recording in the other format."""
    if options.to == "perf.data":
        common.check_output(options)
    trace = common.open_trace(options)
    known = exporters()
    exporter = known.get(options.to)
    more = _more(trace, options, known)
    is_decoded = exporter is not None and exporter.selects == "blocks"
    with decoding(trace, activity="exporting") if is_decoded else nullcontext():
        written = trace.export(options.output, options.to, **more)
    if options.json:
        print_document("export", asdict(written))
        return 0
    for note in written.notes:
        print_text(f"ptkit export: {note}", errors=True)
    print(f"{written.path}: {written.bytes:,} bytes")
    if options.to == "perf.data":
        folder = f"--buildid-dir {written.files[0]} " if written.files else ""
        print(f"perf {folder}script -i {written.path} --itrace=b")
    return 0


def _more(trace: Trace, options: argparse.Namespace, known: Mapping[str, Exporter]) -> dict[str, Any]:
    """Arguments of the format besides the path, as its exporter declares them."""
    chosen = selection.selection(trace, options)
    exporter = known.get(options.to)
    selects, switches = ("", ()) if exporter is None else (exporter.selects, exporter.switches)
    for name in ("file_offsets", "hits"):
        if getattr(options, name):
            if name not in switches:
                formats = [one.name for one in known.values() if name in one.switches]
                raise ConfigError(f"--{name.replace('_', '-')} is for --format {', '.join(formats)}")
            chosen[name] = True
    if options.with_code is not None and selects:
        raise ConfigError("--with-code is for --format perf.data")
    if selects == "blocks":
        return chosen
    if selects == "stream":
        return _one_stream(chosen, options.to)
    if chosen:
        formats = [one.name for one in known.values() if one.selects == "blocks"]
        raise ConfigError(f"--{next(iter(chosen))} is for --format {', '.join(formats)}")
    return {} if options.with_code is None else {"code": options.with_code}


def _one_stream(chosen: dict[str, Any], format: str) -> dict[str, Any]:
    """The stream of a format that takes one."""
    others = chosen.keys() - {"stream"}
    if others:
        raise ConfigError(
            f"--{min(others)} does not go with --format {format}: bytes of a stream are written whole"
        )
    streams = chosen.get("stream", [])
    if len(streams) > 1:
        raise ConfigError(f"--format {format} writes one stream: give --stream once")
    return {"stream": streams[0]} if streams else {}
