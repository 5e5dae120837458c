"""``ptkit diff``: where two runs part."""

from __future__ import annotations

import argparse
from copy import copy
from typing import Any

from ptkit.analysis.diff import Difference
from ptkit.cli import common, selection
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import line_of, print_lines, print_text
from ptkit.cli.stacks import note
from ptkit.cli.suspects_report import add_group_options, has_groups, read_suspects, report_suspects
from ptkit.trace import Trace
from ptkit.trace.several_runs import diff

DESCRIPTION = """\
Compares two runs of one program, branch by branch and thread by thread: prints the first place where they
part in the program's own files, with both stacks, and then all places. After each, both runs are followed to
where they go on equally. Load addresses do not matter: files are known by their build-id (docs/diff.md).
--context adds the branches around that place; --number chooses another one. --by prints what differs in calls
and instructions instead; so are two builds of one program compared, by function. Of many recordings of a
command that fails sometimes, --pass and --fail print what separates those that fail (docs/flaky.md)."""
EXAMPLES = """examples:
  ptkit diff before.ptk after.ptk
  ptkit diff before.ptk after.ptk --exit-code
  ptkit diff before.ptk after.ptk --module sort --context 5
  ptkit diff before.ptk after.ptk --by function --own
  ptkit diff before.ptk after.ptk --symbol main --json
  ptkit diff --pass before.ptk --fail after.ptk"""

_DIFFERENT = 1  # exit status
_LISTED = 20
_OF_TWO = ("own", "time", "tid", "context", "number", "by", "frames")  # options
_ROW = (
    *("where", "own", "is_own", "kind", "a_way", "a_target", "b_way", "b_target", "joined", "depth"),
    *("a_instruction", "b_instruction", "a_branches", "b_branches", "a_branch", "b_branch", "thread"),
    *("module", "rva", "function", "function_full", "source", "line"),
)
_TABLES = {"function": "functions", "call": "calls", "line": "lines"}
_COSTS = {
    "functions": (
        *("function", "function_full", "module", "matched", "b_name", "delta", "a_count", "b_count"),
        *("a_instructions", "b_instructions", "a_total", "b_total", "source", "line"),
    ),
    "calls": (
        *("caller", "function", "function_full", "module", "a_count", "b_count"),
        *("a_instructions", "b_instructions"),
    ),
    "lines": (
        *("source", "line", "function", "function_full", "module", "delta", "a_count", "b_count"),
        *("a_instructions", "b_instructions"),
    ),
}
_THREAD = (
    *("a_tid", "b_tid", "a_name", "b_name", "program", "role", "paired", "branches", "divergences"),
    *("a_unjudged", "b_unjudged"),
)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser, without="recordings of --pass and --fail")
    parser.add_argument("other", metavar="FILE2", type=common.trace_path, nargs="?", help="the other run")
    add_group_options(parser)
    group = parser.add_argument_group("which divergences", "All code is compared. Repeated options add up.")
    group.add_argument(
        "--own", action="store_true", help="those in the program's own files, not in those of the system"
    )
    group.add_argument("--module", metavar="NAME", action="append", help="those in this file")
    group.add_argument(
        "--symbol",
        metavar="NAME",
        dest="function",
        action="append",
        help="those in this function; a pattern (mem*)",
    )
    selection.add_time(group, "those that FILE had then: ")
    group.add_argument(
        "--tid", metavar="N", type=common.number(common.LAST_32), help="those of this thread of either run"
    )
    parser.add_argument(
        "--context", metavar="N", type=common.number(first=1), help="print N branches before and after it"
    )
    parser.add_argument(
        "--number", metavar="N", type=common.number(), help="print this divergence instead of the first one"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=common.number(),
        default=_LISTED,
        help=f"list N divergences at most (default: {_LISTED})",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with status 1 if the runs differ, or if a part could not be judged",
    )
    parser.add_argument(
        "--frames",
        choices=("native", "python"),
        help="python: compare calls of Python functions alone (3.12 or later with -X perf)",
    )
    parser.add_argument(
        "--by",
        choices=("function", "call", "line"),
        help="print what differs in calls and instructions, the largest difference first",
    )
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print where the runs part, or what separates many."""
    if has_groups(options, [(f"--{name}", getattr(options, name, None)) for name in _OF_TWO]):
        suspects = read_suspects(options)
        report_suspects(suspects, options)
        return _DIFFERENT if options.exit_code and len(suspects.table) else 0
    a = common.open_trace(options)
    second = copy(options)
    second.path = options.other
    b = common.open_trace(second)
    found = _difference(a, b, options)
    number = options.number if options.number is not None else found.headline()
    if options.json:
        _print_json(found, options, number)
    else:
        _print(found, options, number)
    return _DIFFERENT if options.exit_code and found.equal is not True else 0


def _difference(a: Trace, b: Trace, options: argparse.Namespace) -> Difference:
    by = "function" if options.by == "call" else options.by
    of_time = argparse.Namespace(time=options.time, verb=options.verb)
    time = selection.selection(a, of_time).get("time")
    with decoding(a, activity="comparing"):
        return diff(
            a,
            b,
            module=options.module,
            symbol=options.function,
            own=options.own,
            time=time,
            tid=options.tid,
            by=by,
            frames=options.frames or "native",
        )


def _print(found: Difference, options: argparse.Namespace, number: int | None) -> None:
    lines = found.summary()
    left = 0
    if found.by != "branch":
        by = options.by or found.by
        lines += found.costs(by, options.limit)
        left = len(getattr(found, _TABLES[by])) - options.limit
    elif number is not None:
        first = found.divergence(number)
        if first.earlier and options.number is None and first.row["is_own"]:
            lines.append(f"{first.earlier_text()}")
        lines += first.lines()
        if options.context is not None:
            lines += found.context(number, options.context).lines()
    if found.by == "branch":
        listed = found.listed(options.limit)
        if len(listed) > 1:
            lines += ["all divergences:", *(f"  {line}" for line in listed)]
        left = len(found.divergences) - options.limit
    print_lines(map(line_of, lines))
    if left > 0 and options.limit:
        note(options, f"{left:,} more: --limit N lists more of them")
    for sentence in found.unjudged:
        print_text(f"ptkit diff: warning: {sentence}", errors=True)


def _rows(table: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = {name: table.named(name) for name in names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _print_json(found: Difference, options: argparse.Namespace, number: int | None) -> None:
    first: dict[str, Any] | None = None
    if number is not None:
        one = found.divergence(number)
        first = {
            "number": number,
            **{
                f"{side}_stack": [dict(frame._asdict(), ip=hex(frame.ip)) for frame in stack]
                for side, stack in (("a", one.a_stack), ("b", one.b_stack))
            },
            "context": None,
        }
        if options.context is not None:
            context = found.context(number, options.context)
            first["context"] = {"before": context.before, "after": context.after}
    print_document(
        "diff",
        {
            "a": found.a,
            "b": found.b,
            "by": found.by,
            "equal": found.equal,
            "unjudged": found.unjudged,
            "threads": _rows(found.threads, _THREAD),
            "first": first,
            "divergences": _rows(found.divergences[: options.limit], _ROW),
            **{
                table: _rows(getattr(found, table)[: options.limit], _COSTS[table])
                if found.by != "branch" and (options.by or found.by) == by
                else []
                for by, table in _TABLES.items()
            },
        },
    )
