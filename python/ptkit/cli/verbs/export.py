"""``ptkit export``: a recording in another tool's format."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from ptkit.capture.sizes import size_of
from ptkit.cli import common, selection
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import print_text
from ptkit.errors import ConfigError
from ptkit.export import Exporter, ExportOption, exporters
from ptkit.export.registry import SELECTING, check_output, exporter_of, format_of, own_options
from ptkit.trace import Trace

DESCRIPTION = """\
Writes a recording in a format that other tools read. The suffix of OUT says the format where it is plain, as
calls.csv; else it is perf.data. --list prints all formats, with their suffixes and options.

perf.data: a file for Linux perf, or a folder as `perf record --kcore` writes it, if the recording has kernel
code. Code that perf would not find on this machine goes to OUT.debug, which `perf --buildid-dir` takes;
with --with-code all, all code goes there, for other machines. Notes on standard error list what perf.data
cannot hold.

drcov: the basic blocks that were executed, by module with RVA and size, as DynamoRIO's drcov writes them, for
Lighthouse and other readers. offsets: the begins of these blocks as lines of module+RVA; with --hits, how
often the instruction there was executed. Each block is there once. Memory without a file is a module of its
own, [anon 0x10000000].

tenet: the address of each executed instruction of one thread (--tid), for the trace explorer Tenet.

raw: the bytes of a stream as the processor wrote them (--stream N where there are several). code: a folder
with the code that was executed, a file for each region and version, and index.json.

csv, arrow, parquet: the rows of a table (--table, default: branches) with threads, times and functions, for
spreadsheets, DuckDB, pandas and Polars; parquet is a folder with a folder for each stream, or for each table
(--table all). csv needs no package.

folded: a line for each calling context, for flame graphs and the Firefox Profiler. pprof: a profile for
`go tool pprof` and `go build -pgo`. callgrind: instructions by line and address, and calls by call site, for
KCachegrind and callgrind_annotate. They count all executed instructions; notes say what may be missing.

perfetto, fxt, chrome, speedscope: every call as a slice on the track of its thread, by time, or by
instructions where times are emulated or not known (--of). --size 20M merges short calls until the file is no
larger; the slowest calls of each function stay."""
EXAMPLES = """examples:
  ptkit export --list
  ptkit export sort.ptk -o sort.data
  ptkit export sort.ptk --format perf.data --with-code all -o sort.data
  ptkit export sort.ptk --format drcov -o sort.drcov
  ptkit export sort.ptk --format offsets --module libc.so.6 -o sort.txt
  ptkit export sort.ptk --format offsets --hits -o hits.txt
  ptkit export sort.ptk -o sort.tenet.txt
  ptkit export sort.ptk --format raw --stream 0 -o sort.pt
  ptkit export sort.ptk --format code -o sort.code
  ptkit export sort.ptk --table calls -o calls.csv
  ptkit export sort.ptk -o sort.folded
  ptkit export sort.ptk -o sort.pb.gz
  ptkit export sort.ptk -o sort.callgrind
  ptkit export sort.ptk --size 20M -o sort.pftrace
  ptkit export sort.ptk --kind CALL --time 10%-20% --redact -o calls.csv
then, where perf is installed:
  perf script -i sort.data --itrace=b
  perf --buildid-dir sort.data.debug script -i sort.data --itrace=i0ns"""


_MOST_BYTES = 2**63 - 1
_OPTION = "option_"  # before names of options, which may be those of a selection


class _List(argparse.Action):
    """Lists formats: nothing else has to be given then."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any) -> None:
        setattr(namespace, self.dest, True)
        for action in parser._actions:
            action.required = False


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file or folder to write")
    parser.add_argument(
        "--force", action="store_true", help="overwrite the output also if it is no file of the format"
    )
    # Formats of other packages are not named here: their modules would be imported by each verb.
    parser.add_argument(
        "--format",
        dest="to",
        metavar="FORMAT",
        help="a format that --list prints (default: that of OUT's suffix, else perf.data)",
    )
    parser.add_argument(
        "--list", action=_List, nargs=0, default=False, help="print all formats, and write nothing"
    )
    parser.add_argument(
        "--redact",
        action="store_true",
        help="without paths, command lines, names of threads and source, as `ptkit redact`",
    )
    group = parser.add_argument_group("options of formats")
    for option in own_options():
        _add_option(group, option)
    group = parser.add_argument_group(
        "which rows or blocks, of formats that select them; --stream: also of raw", "Repeated options add up."
    )
    selection.add_choice_options(group)
    common.add_open_options(parser, decoding=False, format_option="--input-format")
    common.add_json_option(parser)


def _add_option(group: argparse._ArgumentGroup, option: ExportOption) -> None:
    """Add an option of formats; its default is None: it is not given."""
    more: dict[str, Any] = {"dest": _OPTION + option.name, "help": option.help.replace("%", "%%")}
    metavar = option.metavar or option.name.replace("_", "-").upper()
    if option.kind == "flag":
        group.add_argument(option.switch, action="store_true", default=None, **more)
    elif option.kind == "choice":
        group.add_argument(option.switch, choices=option.choices, **more)
    elif option.kind == "names":
        group.add_argument(option.switch, action="append", metavar=metavar, **more)
    else:
        types: dict[str, Any] = {"text": str, "integer": common.number(), "size": _size}
        group.add_argument(option.switch, type=types[option.kind], metavar=metavar, **more)


def _size(text: str) -> int:
    """Read a number of bytes."""
    try:
        return size_of("size", text, 1, _MOST_BYTES)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("size=")) from None


def run(options: argparse.Namespace) -> int:
    """Write the recording in the other format."""
    known = exporters()
    if options.list:
        _print_formats(known, as_json=options.json)
        return 0
    exporter = exporter_of(known, format_of(known, options.output) if options.to is None else options.to)
    own = _own_options(options, exporter, known)
    check_output(exporter, options.output, force=options.force)
    trace = common.open_trace(options)
    chosen = _selection(trace, options, exporter, known)
    with decoding(trace, activity="exporting") if exporter.selects in SELECTING else nullcontext():
        written = trace.export(options.output, exporter.name, redact=options.redact, **chosen | own)
    if options.json:
        print_document("export", asdict(written))
        return 0
    for note in written.notes:
        print_text(f"ptkit export: {note}", errors=True)
    print(f"{written.path}: {written.bytes:,} bytes")
    if exporter.command:
        print(exporter.command(written))
    return 0


def _own_options(
    options: argparse.Namespace, exporter: Exporter, known: Mapping[str, Exporter]
) -> dict[str, Any]:
    """Options of the format that are given; one that it does not declare is refused."""
    given = {}
    for option in own_options():
        value = getattr(options, _OPTION + option.name)
        if value is None:
            continue
        if option.name not in exporter.option_names:
            formats = [one.name for one in known.values() if option.name in one.option_names]
            raise ConfigError(f"{option.switch} is for --format {', '.join(formats)}")
        choices = next((one.choices for one in exporter.options if one.name == option.name), ())
        if choices and value not in choices:
            raise ConfigError(f"{option.switch} {value}: --format {exporter.name} takes {', '.join(choices)}")
        given[option.name] = value
    return given


def _selection(
    trace: Trace, options: argparse.Namespace, exporter: Exporter, known: Mapping[str, Exporter]
) -> dict[str, Any]:
    """The selection, as far as the format takes one."""
    chosen = selection.selection(trace, options)
    if exporter.selects in SELECTING:
        return chosen
    if exporter.selects == "stream":
        return _one_stream(chosen, exporter.name)
    if chosen:
        formats = [one.name for one in known.values() if one.selects in SELECTING]
        raise ConfigError(f"--{next(iter(chosen))} is for --format {', '.join(formats)}")
    return {}


def _print_formats(known: Mapping[str, Exporter], *, as_json: bool) -> None:
    """Print the formats by name: suffixes, options, and what their files have besides."""
    rows = [known[name] for name in sorted(known)]
    if as_json:
        print_document("export list", {"formats": [_described(one) for one in rows]})
        return
    width = max(len(one.name) for one in rows)
    for one in rows:
        print_text(f"{one.name:{width}}  {one.description}")
        switches = [_switch(one, name) for name in one.option_names]
        facts = {
            "suffixes": ", ".join(one.suffixes),
            "selects": one.selects,
            "options": ", ".join(switches),
            "has besides code and times": one.embeds,
        }
        for subject, text in facts.items():
            if text:
                print_text(f"{'':{width}}  {subject}: {text}")


def _described(one: Exporter) -> dict[str, Any]:
    return {
        "format": one.name,
        "description": one.description,
        "suffixes": list(one.suffixes),
        "selects": one.selects or None,
        "options": [_switch(one, name) for name in one.option_names],
        "embeds": one.embeds or None,
    }


def _switch(exporter: Exporter, name: str) -> str:
    """The word of the command line for an option of a format."""
    found = [option.switch for option in exporter.options if option.name == name]
    return found[0] if found else f"--{name.replace('_', '-')}"


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
