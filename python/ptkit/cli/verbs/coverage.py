"""``ptkit coverage``: what ran, as sets of several recordings."""

from __future__ import annotations

import argparse
import os
from copy import copy
from pathlib import Path

from ptkit.analysis.coverage import Coverage, is_saved_set
from ptkit.cli import common, selection
from ptkit.cli.coverage_report import print_coverage, print_coverage_json
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import print_text
from ptkit.cli.stacks import note
from ptkit.errors import ConfigError, OpenError
from ptkit.export.registry import Exporter, check_output, export, exporters

DESCRIPTION = """\
Prints how much ran: lines of each source file, functions and blocks of each file, and what share that is,
where debug information of the same build says what could have run. With --by, prints each function, line or
block that ran, with counts. Of several recordings, prints what ran in any of them; with --only-in, what ran
in one and in none of the others. A FILE may also be a set that -o wrote (docs/coverage-sets.md). Exit status
1: --fail-under was not reached."""
EXAMPLES = """examples:
  ptkit coverage sort.ptk
  ptkit coverage sort.ptk --by function
  ptkit coverage before.ptk after.ptk --only-in after.ptk --by line
  ptkit coverage sort.ptk --module sort --fail-under 1 --by function
  ptkit coverage before.ptk after.ptk -o both.cov
  ptkit coverage sort.ptk -o sort.info"""

_BELOW = 1  # exit status
_FORMATS = ("lcov", "drcov")  # of exports of sets, by the suffix of OUT
_SELECTIONS = (
    *("stream", "cpu", "tid", "pid", "space", "cr3", "ip", "symbol", "module", "time", "instructions"),
)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    group = parser.add_argument_group("which code", "Repeated options add up.")
    selection.add_choice_options(group)
    common.add_open_options(parser)
    parser.add_argument(
        "others", metavar="FILE", type=common.trace_path, nargs="*", help="further recordings, or sets"
    )
    parser.add_argument(
        "--only-in",
        metavar="FILE",
        help="what ran in this one of the recordings, and in none of the others",
    )
    parser.add_argument(
        "--by", choices=("function", "line", "block"), help="print each one that ran (default: how many)"
    )
    parser.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=_percent,
        help="exit with status 1 if fewer per cent of the lines ran, or of the functions with --by function",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="also write the set to this file, or as .info for genhtml, or as .drcov",
    )
    parser.add_argument("--limit", metavar="N", type=common.number(first=1), help="print N lines at most")
    parser.add_argument("--force", action="store_true", help="overwrite OUT also if it is no set of coverage")
    common.add_names_option(parser)
    common.add_header_option(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print what ran."""
    paths = [options.path, *options.others]
    _check(options, paths)
    coverage = _combined(options, paths)
    if options.output is not None:
        _write(coverage, options)
    by = options.by or "line"
    percent = coverage.percent(by) if by != "block" else None
    if options.fail_under is not None and percent is None:
        raise ConfigError(
            f"--fail-under: it is not known which {by}s could have run: there is no percentage; record the "
            "debug information, too (`ptkit record --with-debug`), or give it by --debug-path"
        )
    if options.json:
        print_coverage_json(coverage, options, paths)
    else:
        print_coverage(coverage, options)
    for sentence in coverage.missing:
        print_text(f"ptkit coverage: warning: {sentence}", errors=True)
    if percent is None or options.fail_under is None or percent >= options.fail_under:
        return 0
    print_text(
        f"ptkit coverage: {percent:.2f} % of {coverage.total(by):,} {by}s ran, and --fail-under is "
        f"{options.fail_under:g} %",
        errors=True,
    )
    return _BELOW


def _write(coverage: Coverage, options: argparse.Namespace) -> None:
    """Write the set as such, or in the format that the suffix of the path says."""
    format = _format_of(options.output)
    if format is None:
        coverage.save(options.output)
        return
    for sentence in export(coverage, options.output, format=format.name).notes:
        if sentence not in coverage.missing:
            note(options, sentence)


def _format_of(path: str) -> Exporter | None:
    known = exporters()
    return next((known[name] for name in _FORMATS if path.lower().endswith(known[name].suffixes)), None)


def _percent(text: str) -> float:
    return 100 * common.share(text if text.endswith("%") else f"{text}%")


def _check(options: argparse.Namespace, paths: list[str]) -> None:
    """Refuse options that contradict each other, and an output that is another file."""
    if options.only_in is not None:
        if options.only_in not in paths:
            raise ConfigError(f"--only-in {options.only_in} is none of the recordings: {', '.join(paths)}")
        if len(paths) == 1:
            raise ConfigError("--only-in compares with other recordings: give these, too")
    if options.by == "block" and options.fail_under is not None:
        raise ConfigError(
            "--fail-under does not go with --by block: blocks that did not run are not known; use --by line"
        )
    output = options.output
    if output is None:
        return
    if output in paths:
        raise ConfigError(f"-o {output}: is what is read; give another name")
    if (format := _format_of(output)) is not None:
        check_output(format, output, force=options.force)
    elif Path(output).exists() and not (options.force or is_saved_set(output)):
        raise OpenError(f"{output}: exists, and is no set of coverage; --force overwrites it")


def _combined(options: argparse.Namespace, paths: list[str]) -> Coverage:
    """The set of all recordings, or of one without the others, read one after the other."""
    first = options.only_in if options.only_in is not None else paths[0]
    rest = list(paths)
    rest.remove(first)
    coverage = _read(options, first)
    for path in rest:
        other = _read(options, path)
        if options.by == "line" and (coverage.has_lines_only or _differ(coverage, other)):
            if not coverage.has_lines_only:
                note(options, f"{path} ran another build: lines are compared by their numbers")
            coverage, other = coverage.by_line(), other.by_line()
        coverage = coverage - other if options.only_in is not None else coverage | other
    return coverage


def _differ(some: Coverage, others: Coverage) -> bool:
    """Whether two builds of a file ran."""
    try:
        some.check_builds(others)
    except ConfigError:
        return True
    return False


def _read(options: argparse.Namespace, path: str) -> Coverage:
    if is_saved_set(path):
        given = [name for name in _SELECTIONS if getattr(options, name, None)]
        if given:
            raise ConfigError(
                f"--{given[0]}: {path} is a set of coverage, which was selected when it was made; give the "
                "recording"
            )
        return Coverage.load(path)
    one = copy(options)
    one.path = os.fspath(path)
    trace = common.open_trace(one)
    chosen = selection.selection(trace, one)
    with decoding(trace, streams=selection.chosen_streams(trace, one)):
        return trace.coverage(**chosen)
