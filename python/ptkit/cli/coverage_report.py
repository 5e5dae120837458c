"""Coverage as lines of text, and as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ptkit.analysis.coverage import Coverage
from ptkit.cli import common
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.terminal import line_of, print_lines
from ptkit.cli.stacks import note
from ptkit.support.text import counted
from ptkit.table import Table

__all__ = ["print_coverage", "print_coverage_json"]

_MEMBERS = {
    "function": (
        *("function", "function_full", "module", "rva", "source", "line"),
        *("count", "instructions"),
    ),
    "line": ("source", "line", "count", "instructions"),
    "block": (
        *("module", "rva", "size", "instructions", "count"),
        *("function", "function_full", "source", "line"),
    ),
}


def _table(coverage: Coverage, by: str) -> Table:
    tables = {"function": "functions", "line": "lines", "block": "blocks"}
    table: Table = getattr(coverage, tables[by])
    return table


def print_coverage(coverage: Coverage, options: argparse.Namespace) -> None:
    """Print a line for each element, or how many there are."""
    if options.by is None:
        _print_summary(coverage, options)
        return
    table = _table(coverage, options.by)
    shown = table[: options.limit]
    lines = {"function": _function_lines, "line": _source_lines, "block": _block_lines}[options.by]
    heads, cells, names = lines(options, shown)
    _print_columns(options, heads, cells, names)
    note(options, _share(coverage, options.by))
    if len(shown) < len(table):
        note(options, f"{counted(len(table) - len(shown), 'more line')}: without --limit, all are printed")


def _share(coverage: Coverage, by: str) -> str:
    covered, total = coverage.covered(by), coverage.total(by)
    if total is None:
        return f"{counted(covered, by)}; how many could have run is not known"
    share = f" ({100 * covered / total:.1f} %)" if total else ""
    return f"{covered:,} of {counted(total, by)}{share}"


def _print_summary(coverage: Coverage, options: argparse.Namespace) -> None:
    kinds = ("line",) if coverage.has_lines_only else ("line", "function", "block")
    rows = [(f"{kind}s", coverage.covered(kind), coverage.total(kind)) for kind in kinds]
    rows += [(f"{kind}s of {name}", ran, total) for kind, name, ran, total in coverage.summary()]
    rows = rows[: options.limit]
    cells = [
        [f"{ran:,}" for _, ran, _ in rows],
        ["-" if total is None else f"{total:,}" for _, _, total in rows],
        [f"{100 * ran / total:.1f}%" if total else "-" for _, ran, total in rows],
    ]
    _print_columns(options, ("ran", "of", "share", ""), cells, [name for name, *_ in rows])


def _print_columns(
    options: argparse.Namespace, heads: tuple[str, ...], cells: list[list[str]], names: Iterable[str]
) -> None:
    """Print columns of numbers, and a name after them."""
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=False)]
    print_heading(options, f"{' '.join(map(str.rjust, heads, widths))}  {heads[-1]}".rstrip())
    print_lines(
        line_of(f"{' '.join(map(str.rjust, row, widths))}  {name}")
        for *row, name in zip(*cells, names, strict=True)
    )


_Columns = tuple[tuple[str, ...], list[list[str]], list[str]]


def _numbers(table: Table, *names: str) -> list[list[str]]:
    return [["-" if one is None else f"{one:,}" for one in table.named(name)] for name in names]


def _function_lines(options: argparse.Namespace, table: Table) -> _Columns:
    functions, modules = common.function_names(options, table), table.named("module")
    names = [
        f"{module}: {'[no symbol]' if name is None else name}"
        for name, module in zip(functions, modules, strict=True)
    ]
    return ("calls", "instructions", "function"), _numbers(table, "count", "instructions"), names


def _source_lines(options: argparse.Namespace, table: Table) -> _Columns:
    del options
    names = [f"{path}:{line}" for path, line in zip(table.named("source"), table.named("line"), strict=True)]
    return ("times", "instructions", "source line"), _numbers(table, "count", "instructions"), names


def _block_lines(options: argparse.Namespace, table: Table) -> _Columns:
    functions = common.function_names(options, table)
    names = [
        f"{module}+{rva:#x}" + ("" if name is None else f" ({name})")
        for module, rva, name in zip(table.named("module"), table.named("rva"), functions, strict=True)
    ]
    heads = ("times", "bytes", "instructions", "block")
    return heads, _numbers(table, "count", "size", "instructions"), names


def print_coverage_json(coverage: Coverage, options: argparse.Namespace, paths: list[str]) -> None:
    """Print one document."""
    elements: list[dict[str, Any]] = []
    if options.by is not None:
        table = _table(coverage, options.by)[: options.limit]
        columns = {name: table.named(name) for name in _MEMBERS[options.by]}
        elements = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    totals = [(kind, None) for kind in ("line", *(() if coverage.has_lines_only else ("function", "block")))]
    summary = [(kind, name, coverage.covered(kind), coverage.total(kind)) for kind, name in totals]
    print_document(
        "coverage",
        {
            "paths": paths,
            "only_in": options.only_in,
            "by": options.by,
            "lower_bound": coverage.is_lower_bound,
            "missing": coverage.missing,
            "runs": [asdict(run) for run in coverage.runs],
            "files": [{"path": file.path, "build_id": file.build_id or None} for file in coverage.files],
            "summary": [
                {
                    "by": kind,
                    "name": name,
                    "covered": covered,
                    "total": total,
                    "percent": 100 * covered / total if total else None,
                }
                for kind, name, covered, total in [*summary, *coverage.summary()]
            ],
            "elements": elements,
        },
    )
