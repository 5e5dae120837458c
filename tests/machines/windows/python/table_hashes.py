"""Prints a line for each table of recordings: how many rows it has, and a hash of all its cells.

table_hashes.py RECORDING...   The tests run it here and in Wine, and compare what it prints.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ptkit

TABLES = (
    "packets",
    "branches",
    "blocks",
    "instructions",
    "events",
    "calls",
    "functions",
    "edges",
    "errors",
    "gaps",
)


def digest_of(table: ptkit.Table) -> str:
    """Of names, dtypes and cells of all columns."""
    digest = hashlib.sha256()
    for name in table.columns:
        cells = np.asarray(table[name])
        text = repr(cells.tolist()).encode() if cells.dtype == object else cells.tobytes()
        digest.update(f"{name} {cells.dtype} {len(text)} ".encode() + text)
    return digest.hexdigest()


def named(trace: ptkit.Trace) -> Iterator[str]:
    """Each address of a branch, as a line of ptkit shows it."""
    for address in np.unique(np.asarray(trace.branches()["from_ip"])):
        yield str(trace.symbolize(int(address)))


def lines_of(path: Path) -> list[str]:
    trace = ptkit.open(path)
    lines = []
    for name in TABLES:
        table = getattr(trace, name)
        table = table() if callable(table) else table
        lines.append(f"{path.name} {name} {len(table)} {digest_of(table)}")
    names = list(itertools.islice(named(trace), 2000))
    return [*lines, f"{path.name} names {len(names)} {hashlib.sha256(repr(names).encode()).hexdigest()}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore", ptkit.PtkitWarning)
    for argument in sys.argv[1:]:
        print("\n".join(lines_of(Path(argument))))
