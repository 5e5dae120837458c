"""Functions that have no code of their own, as all calls of them were inlined."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptkit import _core
from ptkit.export.frame_rows import has_source
from ptkit.export.instruction_costs import locations_of
from ptkit.view.code import CodeTrace

__all__ = ["inlined_into"]

_MOST = 3  # functions that are named


def inlined_into(trace: CodeTrace, name: str, query: dict[str, Any]) -> list[str]:
    """The functions that executed inlined calls of a function most often; none if it is not known.

    Parameters
    ----------
    trace : CodeTrace
    name : str
        Short or full name.
    query : dict
        Selection of code.
    """
    if not has_source(trace):
        return []
    session = trace.opened.session
    code, _ = trace.code_counts(**query)
    ip, space, count = code.ip, code.space, code.count
    levels = _core.inline_levels(session, ip, space)
    is_it = np.zeros(len(ip), np.bool_)
    for level in range(1, int(levels.max(initial=0)) + 1):
        wanted = np.where(levels >= level, level, 0).astype(np.uint8)
        codes, names = _core.name_inlined(session, ip, space, None, None, wanted)
        numbers = [
            number
            for number, both in enumerate(zip(names, _core.short_names(names), strict=True))
            if name in both
        ]
        is_it |= (wanted > 0) & np.isin(codes, numbers)
    where = locations_of(trace, ip[is_it], space[is_it])
    work: dict[str, int] = {}
    for symbol, times in zip(where.symbol.tolist(), count[is_it].tolist(), strict=True):
        if symbol >= 0:
            work[where.names[symbol]] = work.get(where.names[symbol], 0) + times
    return sorted(work, key=lambda one: (-work[one], one))[:_MOST]
