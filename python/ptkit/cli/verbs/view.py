"""``ptkit view``: a page that shows a whole run."""

from __future__ import annotations

import argparse
import copy
from contextlib import ExitStack
from typing import Any

from ptkit.cli import common, selection
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import print_text
from ptkit.cli.stacks import add_frames_option, add_inlines
from ptkit.errors import ConfigError
from ptkit.export.files import NewFile
from ptkit.export.timelines import AXES
from ptkit.support.text import last_part
from ptkit.trace import Trace
from ptkit.trace.viewing import SIZE, page_of, page_size
from ptkit.view.opening import check_page, open_in_browser, private_file

DESCRIPTION = """\
Writes one HTML file that shows a whole run, and opens it: every call on the track of its thread, where
nothing was traced or trace data was lost, and of each function its calls, code and source lines with counts.
The page needs neither a server nor a network. With FILE2, two runs stand side by side, from their begins.

Without -o, the page is a private file in your temporary folder. No browser is started with --no-open, without
a display, over SSH and in CI: then the path is printed.

The page has source lines, paths, the command line and disassembly, unless --redact is given. It is no larger
than --size: of functions with least work, code and lengths of calls are left out first, then short calls are
merged with those next to them. The slowest calls of each function stay."""
EXAMPLES = """examples:
  ptkit view sort.ptk
  ptkit view sort.ptk -o sort.html
  ptkit view sort.ptk --time 10%-20% --of instructions
  ptkit view before.ptk after.ptk
  ptkit view sort.ptk --symbol 'mem*' --names full
  ptkit view sort.ptk --redact --size 4M -o sort.html"""

_PASSES = 2  # calls with functions, code


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: a private file)")
    parser.add_argument(
        "--force", action="store_true", help="overwrite the output also if it is no page of ptkit"
    )
    parser.add_argument("--no-open", action="store_true", help="start no browser")
    parser.add_argument("--size", type=_size, default=page_size(SIZE), help=f"most bytes (default: {SIZE})")
    parser.add_argument(
        "--of",
        choices=AXES,
        help="what positions are (default: time, but instructions where times are emulated or not known)",
    )
    parser.add_argument(
        "--redact",
        action="store_true",
        help="without paths, command lines, names of threads, source and disassembly",
    )
    parser.add_argument(
        "--names",
        choices=("short", "full"),
        default="short",
        help="names of C++ and Rust without template arguments, parameters and hashes (short, the default), "
        "or with them; the page shows the full ones beside short ones",
    )
    add_frames_option(parser)
    add_inlines(parser)
    group = parser.add_argument_group("which calls", "Repeated options add up.")
    selection.add_choice_options(group)
    common.add_open_options(parser)
    common.add_json_option(parser)
    parser.add_argument(
        "other", metavar="FILE2", type=common.trace_path, nargs="?", help="a second run, beside the first one"
    )


def _size(text: str) -> int:
    """Read a number of bytes."""
    try:
        return page_size(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("size=")) from None


def run(options: argparse.Namespace) -> int:
    """Write the page, and open it."""
    if options.output is not None:
        check_page(options.output, force=options.force)
    traces = [common.open_trace(options)]
    if options.other is not None:
        second = copy.copy(options)
        second.path = options.other
        traces.append(common.open_trace(second))
    chosen = [selection.selection(trace, options) for trace in traces]
    with ExitStack() as stack:
        path = options.output
        if path is None:
            path = stack.enter_context(
                private_file(" and ".join(last_part(one.info.source) for one in traces))
            )
        file = stack.enter_context(NewFile(path))  # refuses a path before the calls are read
        if len(traces) == 1:  # two lines of progress would be drawn over each other
            stack.enter_context(decoding(traces[0], activity="reading", passes=_PASSES))
        page = _page(traces, chosen, options)
        page.write(file)
    reason = "" if options.no_open else open_in_browser(path)
    if options.json:
        opened = not (options.no_open or reason)
        shown = {"path": path, "bytes": page.bytes, "notes": list(page.notes), "opened": opened}
        print_document("view", shown)
        return 0
    for note in page.notes:
        print_text(f"ptkit view: {note}", errors=True)
    print_text(f"{path}: {page.bytes:,} bytes")
    if reason:
        print_text(f"ptkit view: no browser is started, as {reason}: open {path}", errors=True)
    return 0


def _page(traces: list[Trace], chosen: list[dict[str, Any]], options: argparse.Namespace) -> Any:
    runs: Any = list(zip(traces, chosen, strict=True))
    return page_of(
        runs,
        of=options.of,
        size=options.size,
        names=options.names,
        frames=options.frames,
        inlines=options.inlines,
        redact=options.redact,
    )
