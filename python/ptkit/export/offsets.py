"""Lists of ``module+offset``: one line for each basic block that was executed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ptkit import _core
from ptkit.export.blocks import BlockTrace, executed_blocks, loss_notes
from ptkit.text import module_name, one_line

__all__ = ["write_offsets"]


def write_offsets(
    trace: BlockTrace, path: str, *, file_offsets: bool = False, **query: Any
) -> dict[str, Any]:
    """Write the begins of the blocks that were executed, as ``libc.so.6+28a10``, each once.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    file_offsets : bool
        Offsets in files instead of RVAs.
    **query
        Which blocks: ``pid=``, ``time=``, ``module=``, ...; see `ptkit.decode.Query`.
    """
    blocks = executed_blocks(trace, file_offsets=file_offsets, **query)
    names = [one_line(module_name(name)) for name, _ in trace.info.files]
    lines: list[str] = []
    for file in np.unique(blocks.file).tolist():
        places = np.unique(blocks.rva[blocks.file == file]).tolist()
        lines += [f"{names[file]}+{place:x}" for place in places]
    lines = list(dict.fromkeys(lines))  # files of one name, in other folders
    contents = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    _core.write_file(os.fsencode(path), contents)
    return {"bytes": len(contents), "notes": loss_notes(blocks)}
