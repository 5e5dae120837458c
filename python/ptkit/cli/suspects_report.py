"""``ptkit diff --pass --fail``: what separates failing from passing recordings, as text and as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict
from functools import partial
from glob import glob, has_magic
from typing import Any

from ptkit.analysis.suspects import Source, Suspects, find_suspects
from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.terminal import line_of, print_lines, print_text
from ptkit.cli.stacks import note
from ptkit.errors import ConfigError, MissingFileError
from ptkit.support.text import counted
from ptkit.table import Table

__all__ = ["add_group_options", "has_groups", "read_suspects", "report_suspects"]

_ROW = (
    *("score", "p", "failing", "passing", "aspect", "fact", "more_than", "threads", "is_own"),
    *("module", "rva", "function", "function_full", "source", "line"),
)


def add_group_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--pass`` and ``--fail``."""
    group = parser.add_argument_group(
        "a flaky command", "What separates many runs, instead of FILE and FILE2 (docs/flaky.md)."
    )
    for name, dest, which in (("--pass", "passing", "passed"), ("--fail", "failing", "failed")):
        group.add_argument(
            name,
            dest=dest,
            metavar="FILE",
            nargs="+",
            action="extend",
            help=f"recordings of runs that {which}; quoted patterns, too ('*.ptk')",
        )


def has_groups(options: argparse.Namespace, refused: Sequence[tuple[str, object]]) -> bool:
    """Whether recordings of many runs are given.

    Parameters
    ----------
    options : argparse.Namespace
    refused : sequence of (str, object)
        Options that only two runs have, and their values.

    Raises
    ------
    ConfigError
        If only one group is given, or what two runs have besides; or neither groups nor two runs.
    """
    if options.passing is None and options.failing is None:
        if options.path is None or options.other is None:
            raise ConfigError("give two recordings, FILE and FILE2; or many of them with --pass and --fail")
        return False
    if options.passing is None or options.failing is None:
        given, missing = ("--pass", "--fail") if options.failing is None else ("--fail", "--pass")
        raise ConfigError(f"{given} needs {missing}: recordings of both are compared")
    if options.path is not None:
        raise ConfigError(
            f"{options.path} does not go with --pass and --fail: give it to one of these, or leave them out"
        )
    for name, value in refused:
        if value:
            raise ConfigError(f"{name} does not go with --pass and --fail: it is of two runs")
    return True


def read_suspects(options: argparse.Namespace) -> Suspects:
    """Read the recordings, one after the other, and say which are left out."""
    query = {"module": options.module, "symbol": options.function}
    return find_suspects(
        _sources(options, options.passing),
        _sources(options, options.failing),
        {name: value for name, value in query.items() if value is not None},
        limit=max(options.limit, 1),
        report=lambda sentence: print_text(f"ptkit diff: warning: {sentence}", errors=True),
    )


def _sources(options: argparse.Namespace, names: Sequence[str]) -> Iterator[Source]:
    paths = []
    for name in names:
        found = sorted(glob(name)) if has_magic(name) else [name]  # noqa: PTH207
        if not found:
            raise MissingFileError(f"{name}: no file has such a name; check the folder")
        paths += found
    for path in dict.fromkeys(paths):
        one = copy(options)
        one.path = path
        yield Source(path, partial(common.open_trace, one))


def report_suspects(found: Suspects, options: argparse.Namespace) -> None:
    """Print the facts, the best one first."""
    table = found.table[: options.limit]
    if options.json:
        _print_json(found, table)
    else:
        print_lines(
            [line_of(f"{len(found.failing)} failing, {len(found.passing)} passing: {found.sentence}")]
        )
        if len(table):
            _print_rows(options, table)
    for sentence in found.notes:
        print_text(f"ptkit diff: warning: {sentence}", errors=True)


def _print_rows(options: argparse.Namespace, table: Table) -> None:
    numbers = [
        [f"{one:+.2f}" for one in table.named("score")],
        *([str(one) for one in table.named(name)] for name in ("failing", "passing")),
        [f"{one:.2g}" for one in table.named("p")],
    ]
    heads = ("score", "failing", "passing", "p")
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, numbers, strict=True)]
    rows = [(*heads, "fact"), *zip(*numbers, _texts(table), strict=True)]
    print_lines(line_of(f"{' '.join(map(str.rjust, row, widths))}  {text}") for *row, text in rows)
    if table["score"].min() < 0:
        note(options, "score below 0: the passing ones have it")


def _texts(table: Table) -> Iterator[str]:
    columns = ("aspect", "function", "module", "rva", "source", "line", "fact", "more_than", "threads")
    for aspect, function, module, rva, source, line, fact, more_than, threads in zip(
        *(table.named(name) for name in columns), strict=True
    ):
        where = f"{module}+{rva:#x}" if function is None else function
        if source is not None:
            where += f" ({source.replace(chr(92), '/').rpartition('/')[2]}:{line})"
        often = f", more than {counted(more_than, 'time')}" if more_than else ""
        of = f", in threads of {threads}" if threads is not None and aspect == "branch" else ""
        yield f"{aspect}  {where}: {fact}{often}{of}"


def _print_json(found: Suspects, table: Table) -> None:
    columns: dict[str, list[Any]] = {name: table.named(name) for name in _ROW}
    print_document(
        "suspects",
        {
            "passing": found.passing,
            "failing": found.failing,
            "left_out": [asdict(one) for one in found.left_out],
            "files": [{"path": file.path, "build_id": file.build_id or None} for file in found.files],
            "facts": found.facts,
            "chance": {
                "hits": found.chance.hits,
                "labelings": found.chance.labelings,
                "is_exact": found.chance.is_exact,
            },
            "sentence": found.sentence,
            "notes": found.notes,
            "suspects": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        },
    )
