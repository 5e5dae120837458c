"""Cost and memory over the length of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.contest import answer

SIZES = (1, 4, 16, 64, 256, 1024, 2048)  # MB
TABLES = ("edges", "branches")


def grow(table: str, build: Path, trace: Path, most: int) -> list[dict[str, Any]]:
    """A process for each size: a part of the trace, or the trace again and again."""
    program = str(build / "benchmarks" / "bin" / "growth" / "ptkit")
    sizes = [size for size in SIZES if size <= most]
    return [{"table": table, **answer([program, table, str(trace), str(size * 10**6)])} for size in sizes]


def differing(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Tables of the same bytes have the same branches and errors; sentences about those that have not."""
    known: dict[int, dict[str, Any]] = {}
    found = []
    for row in rows:
        first = known.setdefault(row["bytes"], row)
        for what in ("rows", "errors"):
            if row[what] != first[what]:
                found.append(
                    f"{row['bytes']:,} bytes: {first[what]:,} {what} by {first['table']}, "
                    f"{row[what]:,} by {row['table']}"
                )
    return found


def show(rows: Sequence[dict[str, Any]]) -> None:
    """One line for each size."""
    heads = zip(
        ("MB", "M rows", "s", "MB/s", "ns/row", "errors", "peak MB"), (9, 9, 9, 8, 8, 7, 8), strict=True
    )
    print(f"{'table':10}" + "".join(f" {head:>{width}}" for head, width in heads))
    for row in rows:
        print(
            f"{row['table']:10} {row['bytes'] / 1e6:9.1f} {row['rows'] / 1e6:9.1f} {row['cpu']:9.3f}"
            f" {row['bytes'] / row['cpu'] / 1e6:8.1f} {row['cpu'] / row['rows'] * 1e9:8.2f}"
            f" {row['errors']:7} {row['peak'] / 1e6:8.1f}"
        )
