"""drcov: basic blocks by module, as DynamoRIO's client writes them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.export.blocks import Blocks, BlockTrace, executed_blocks, loss_notes, merged_files
from ptkit.info import ModuleInfo
from ptkit.support.text import one_line

__all__ = ["write_drcov"]

# A row of the table of blocks.
_ENTRY = np.dtype([("start", "<u4"), ("size", "<u2"), ("module", "<u2")])
_LARGEST_BLOCK = 2**16 - 1
_MOST_MODULES = 2**16
_END_OF_STARTS = 2**32
_PAGE = 4096


def write_drcov(trace: BlockTrace, path: str, **query: Any) -> dict[str, Any]:
    """Write the blocks that were executed as a drcov file: version 2, table of modules version 2.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    **query
        Which blocks: ``pid=``, ``time=``, ``module=``, ...; see `ptkit.decode.Query`.

    Notes
    -----
    A file is one module, wherever it was loaded: blocks of several processes and load addresses are united.
    """
    blocks = executed_blocks(trace, **query)
    files = np.array(merged_files(blocks.modules), np.int64)[blocks.file]
    start, size = blocks.rva, blocks.size
    kept = start < _END_OF_STARTS
    numbers = {file: number for number, file in enumerate(np.unique(files[kept]).tolist())}
    kept &= np.array([numbers.get(file, 0) < _MOST_MODULES for file in files.tolist()], np.bool_)
    entries = _entries(
        start[kept], size[kept], np.array([numbers[f] for f in files[kept].tolist()], np.int64)
    )
    names = _module_lines(list(numbers)[:_MOST_MODULES], trace, blocks)
    head = [
        "DRCOV VERSION: 2",
        "DRCOV FLAVOR: drcov",
        f"Module Table: version 2, count {len(names)}",
        "Columns: id, base, end, entry, path",
        *names,
        f"BB Table: {len(entries)} bbs",
    ]
    contents = "\n".join(head).encode("utf-8", "surrogateescape") + b"\n" + entries.tobytes()
    _core.write_file(os.fsencode(path), contents)
    notes = loss_notes(blocks)
    if left := int(len(start) - np.count_nonzero(kept)):
        notes.append(f"{left:,} blocks are left out: drcov has no RVAs above 4 GiB and 65,536 modules")
    return {"bytes": len(contents), "notes": notes}


def _entries(start: NDArray[Any], size: NDArray[Any], module: NDArray[Any]) -> NDArray[Any]:
    """Rows of the table, each once; blocks of 64 KiB and more become several."""
    rows = []
    while len(start):
        row = np.empty(len(start), _ENTRY)
        row["start"], row["module"] = start, module
        row["size"] = np.minimum(size, _LARGEST_BLOCK)
        rows.append(row)
        longer = size > _LARGEST_BLOCK
        start, size, module = start[longer] + _LARGEST_BLOCK, size[longer] - _LARGEST_BLOCK, module[longer]
    found = np.unique(np.concatenate(rows)) if rows else np.zeros(0, _ENTRY)
    return found[np.lexsort((found["size"], found["start"], found["module"]))]


def _module_lines(files: list[int], trace: BlockTrace, blocks: Blocks) -> list[str]:
    modules: dict[tuple[str, str], ModuleInfo] = {}
    for module in trace.info.modules:
        modules.setdefault((module.path, module.build_id), module)
    memory = [
        ModuleInfo(name, "", first, last - first + 1, space)
        for name, space, first, last in _core.anon_memory(trace.opened.session)
    ]
    lines = []
    for number, file in enumerate(files):
        is_file = file < blocks.files
        module = modules[blocks.modules[file]] if is_file else memory[file - blocks.files]
        end = module.base + -(-module.size // _PAGE) * _PAGE
        # Readers split lines at ", ".
        path = one_line(module.path).replace(", ", ",_")
        lines.append(f"{number:3}, {module.base:#018x}, {end:#018x}, {0:#018x}, {path}")
    return lines
