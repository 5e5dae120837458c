"""Lists of ``module+offset``: one line for each basic block that was executed."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

from ptkit import _core
from ptkit.analysis.coverage import Coverage
from ptkit.errors import ConfigError
from ptkit.export.blocks import BlockTrace, blocks_of, executed_blocks, loss_notes, refuse_selection
from ptkit.export.hits import executions
from ptkit.support.arguments import flag
from ptkit.support.text import module_name, one_line

__all__ = ["write_offsets"]


def write_offsets(
    trace: BlockTrace | Coverage, path: str, *, file_offsets: bool = False, hits: bool = False, **query: Any
) -> dict[str, Any]:
    """Write the begins of the blocks that were executed, as ``libc.so.6+28a10``, each once.

    Parameters
    ----------
    trace : Trace or Coverage
    path : str
        A file; an earlier one is replaced when the new one is complete.
    file_offsets : bool
        Offsets in files instead of RVAs.
    hits : bool
        A number after each: how often the instruction there was executed, also in blocks that begin before
        it.
    **query
        Which blocks: ``pid=``, ``time=``, ``module=``, ...; see `ptkit.decode.Query`. A set takes none.

    Raises
    ------
    ConfigError
        If a set is to be selected, or to give offsets in files: it has RVAs.
    """
    if isinstance(trace, Coverage):
        refuse_selection(query)
        if file_offsets:
            raise ConfigError("file_offsets: a set of coverage has RVAs alone; leave it out")
        blocks, notes = blocks_of(trace), trace.missing
    else:
        blocks = executed_blocks(trace, file_offsets=file_offsets, **query)
        notes = loss_notes(blocks)
    names = [name if at >= blocks.files else module_name(name) for at, (name, _) in enumerate(blocks.modules)]
    counts = None
    if flag("hits", hits):
        counts = (
            _counts_of(trace)
            if isinstance(trace, Coverage)
            else executions(trace, file_offsets=file_offsets, **query)
        )
    lines: dict[str, int] = {}
    for file in np.unique(blocks.file).tolist():
        for offset in np.unique(blocks.rva[blocks.file == file]).tolist():
            line = f"{one_line(names[file])}+{offset:x}"  # the same of files of one name, in other folders
            lines[line] = lines.get(line, 0) + (0 if counts is None else counts[file, offset])
    text = "".join(f"{line}\n" if counts is None else f"{line} {count}\n" for line, count in lines.items())
    contents = text.encode("utf-8", "surrogateescape")
    _core.write_file(os.fsencode(path), contents)
    return {"bytes": len(contents), "notes": notes}


def _counts_of(coverage: Coverage) -> Counter[tuple[int, int]]:
    """How often each block of a set was executed, by number of the file and RVA."""
    columns = (coverage.blocks[name].tolist() for name in ("file", "rva", "count"))
    return Counter({(file, rva): count for file, rva, count in zip(*columns, strict=True)})
