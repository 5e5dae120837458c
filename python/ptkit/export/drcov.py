"""drcov: basic blocks by module, as DynamoRIO's client writes them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage import Coverage
from ptkit.export.blocks import (
    Blocks,
    BlockTrace,
    blocks_of,
    executed_blocks,
    loss_notes,
    merged_files,
    refuse_selection,
)
from ptkit.info import ModuleInfo
from ptkit.support.text import one_line

__all__ = ["write_drcov"]

# A row of the table of blocks.
_ENTRY = np.dtype([("start", "<u4"), ("size", "<u2"), ("module", "<u2")])
_LARGEST_BLOCK = 2**16 - 1
_MOST_MODULES = 2**16
_END_OF_STARTS = 2**32
_PAGE = 4096


def write_drcov(trace: BlockTrace | Coverage, path: str, **query: Any) -> dict[str, Any]:
    """Write the blocks that were executed as a drcov file: version 2, table of modules version 2.

    Parameters
    ----------
    trace : Trace or Coverage
    path : str
        A file; an earlier one is replaced when the new one is complete.
    **query
        Which blocks: ``pid=``, ``time=``, ``module=``, ...; see `ptkit.decode.Query`. A set takes none.

    Notes
    -----
    A file is one module, wherever it was loaded: blocks of several processes and load addresses are united.
    Files of a set have no load address: theirs is 0.
    """
    if isinstance(trace, Coverage):
        refuse_selection(query)
        blocks = blocks_of(trace)
        modules = _modules_of_set(blocks)
    else:
        blocks = executed_blocks(trace, **query)
        modules = _modules_of_trace(trace, blocks)
    files = np.array(merged_files(blocks.modules), np.int64)[blocks.file]
    start, size = blocks.rva, blocks.size
    kept = start < _END_OF_STARTS
    numbers = {file: number for number, file in enumerate(np.unique(files[kept]).tolist())}
    kept &= np.array([numbers.get(file, 0) < _MOST_MODULES for file in files.tolist()], np.bool_)
    entries = _entries(
        start[kept], size[kept], np.array([numbers[f] for f in files[kept].tolist()], np.int64)
    )
    names = _module_lines([modules[file] for file in list(numbers)[:_MOST_MODULES]])
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
    notes = trace.missing if isinstance(trace, Coverage) else loss_notes(blocks)
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


def _modules_of_trace(trace: BlockTrace, blocks: Blocks) -> list[ModuleInfo | None]:
    """Modules by number; None of files that nothing was loaded of."""
    loaded: dict[tuple[str, str], ModuleInfo] = {}
    for module in trace.info.modules:
        loaded.setdefault((module.path, module.build_id), module)
    memory = [
        ModuleInfo(name, "", first, last - first + 1, space)
        for name, space, first, last in _core.anon_memory(trace.opened.session)
    ]
    return [*(loaded.get(one) for one in blocks.modules[: blocks.files]), *memory]


def _modules_of_set(blocks: Blocks) -> list[ModuleInfo | None]:
    """Files by number, each as large as its blocks say."""
    ends = np.zeros(len(blocks.modules), np.uint64)
    np.maximum.at(ends, blocks.file, blocks.rva + blocks.size)
    return [
        ModuleInfo(path, build_id, 0, end, 0)
        for (path, build_id), end in zip(blocks.modules, ends.tolist(), strict=True)
    ]


def _module_lines(modules: list[ModuleInfo | None]) -> list[str]:
    lines = []
    for number, module in enumerate(modules):
        assert module is not None  # it has blocks
        end = module.base + -(-module.size // _PAGE) * _PAGE
        # Readers split lines at ", ".
        path = one_line(module.path).replace(", ", ",_")
        lines.append(f"{number:3}, {module.base:#018x}, {end:#018x}, {0:#018x}, {path}")
    return lines
