"""``ptkit annotate``: a function with counts."""

from __future__ import annotations

import argparse
from typing import Any

from ptkit.cli import common, selection
from ptkit.cli.output.colours import print_painted
from ptkit.cli.output.json_values import hexadecimal, print_document
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import print_text
from ptkit.cli.stacks import line_width, note
from ptkit.errors import ConfigError
from ptkit.export.files import NewFile
from ptkit.trace.annotating import FUNCTIONS
from ptkit.view.annotated import AnnotatedFunction, Annotation
from ptkit.view.annotated.text import listing
from ptkit.view.opening import check_page

DESCRIPTION = """\
Prints the instructions of a function, or its source lines (--source), each with how often it was executed,
and how often each conditional branch was taken and not. Lines with > are on the hottest path; a | stands for
each loop around, and before the head of a loop is how many trips it made. With -o, writes one HTML file
(docs/annotate.md)."""
EXAMPLES = """examples:
  ptkit annotate sort.ptk --symbol malloc
  ptkit annotate sort.ptk --symbol malloc --source
  ptkit annotate sort.ptk --symbol 'mem*' --limit 3 --time 10%-20%
  ptkit annotate sort.ptk --symbol malloc -o malloc.html"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--symbol",
        dest="function",
        metavar="NAME",
        required=True,
        help="a function; a pattern (mem*); an address in a function (main+0x10)",
    )
    parser.add_argument(
        "--source", action="store_true", help="print source lines, as they are on this machine now"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write an HTML file instead")
    parser.add_argument(
        "--force", action="store_true", help="overwrite the output also if it is no page of ptkit"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=common.number(10_000, 1),
        default=FUNCTIONS,
        help=f"N functions of that name at most, those with most instructions (default: {FUNCTIONS})",
    )
    parser.add_argument(
        "--redact", action="store_true", help="without paths of source files, source and disassembly"
    )
    group = parser.add_argument_group("which executions", "Repeated options add up.")
    selection.add_owner_options(group)
    selection.add_module_and_time(group)
    common.add_open_options(parser)
    common.add_names_option(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the code of a function, or write it."""
    if options.output is not None:
        if options.output == options.path:
            raise ConfigError(f"-o {options.output}: is what is read; give another name")
        check_page(options.output, force=options.force)
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    with decoding(trace, streams=selection.chosen_streams(trace, options), passes=2):  # blocks and edges
        found = trace.annotate(
            options.function,
            source=options.source,
            functions=options.limit,
            names="short" if common.has_short_names(options) else "full",
            redact=options.redact,
            **chosen,
        )
    written = None
    if options.output is not None:
        with NewFile(options.output) as file:
            found.write(file)
        written = file.bytes
    if options.json:
        print_document("annotate", _document(found, options.output, written))
    elif written is not None:
        print_text(f"{options.output}: {written:,} bytes")
    else:
        for line in listing(found.functions, found.has_source, line_width(options)):
            print_painted(*line)
    for sentence in found.missing:
        note(options, sentence)
    selection.report_index(trace, options)
    return 0


def _document(found: Annotation, output: str | None, written: int | None) -> dict[str, Any]:
    return {
        "symbol": found.name,
        "output": output,
        "bytes": written,
        "lower_bound": found.is_lower_bound,
        "missing": found.missing,
        "functions": [_function(found, number, one) for number, one in enumerate(found.functions)],
    }


def _function(found: Annotation, number: int, function: AnnotatedFunction) -> dict[str, Any]:
    members: dict[str, Any] = {
        "function": function.name,
        "function_full": function.full_name,
        "module": function.module,
        "rva": hexadecimal(function.rva),
        "calls": function.calls,
        "instructions": function.instructions,
        "unknown_bytes": sum(one.size for one in function.rows.unknown),
    }
    for name, columns in _COLUMNS.items():
        table = getattr(found, name)
        rows = table[table["number"] == number]
        cells = {column: rows.named(column) for column in columns}
        for column in _HEXADECIMAL & cells.keys():
            cells[column] = [hexadecimal(value) for value in cells[column]]
        members[_MEMBERS[name]] = [
            dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)
        ]
    return members


_MARKS = ("depth", "is_hottest", "is_head")
_COLUMNS = {
    "instructions": (
        *("offset", "rva", "ip", "size", "count", "taken", "not_taken", "instruction", "target"),
        *("source", "line", "inlined", *_MARKS),
    ),
    "lines": ("source", "line", "count", "instructions", "taken", "not_taken", "text", *_MARKS),
    "loops": ("offset", "rva", "source", "line", "count", "entries", "instructions", "depth"),
}
_MEMBERS = {"instructions": "code", "lines": "lines", "loops": "loops"}
_HEXADECIMAL = {"rva", "ip"}
