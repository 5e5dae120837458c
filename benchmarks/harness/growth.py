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


def contradictions(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Tables of the same bytes have the same errors, and an edge is a branch with two known ends."""
    sizes = sorted({row["bytes"] for row in rows})
    found = []
    for size in sizes:
        result = {row["table"]: row for row in rows if row["bytes"] == size}
        if len({row["errors"] for row in result.values()}) > 1:
            found.append(f"{size:,} bytes: errors differ by table")
        counted, listed = result["edges"]["rows"], result["branches"]["rows"]
        if not 0.999 * listed <= counted <= listed:
            found.append(f"{size:,} bytes: {counted:,} branches are counted and {listed:,} listed")
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
