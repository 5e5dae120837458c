"""Branch records as a processor would have written them of what Processor Trace tells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import ptkit
from ptkit import EventFlag, EventKind, RowFlag

#: An address in a kernel without known code: user code is entered from there.
KERNEL = 0xFFFFFFFF81000000


def records(from_ip: ArrayLike, to_ip: ArrayLike) -> NDArray[Any]:
    """Records of these branches."""
    made = np.zeros(len(np.asarray(from_ip)), ptkit.BRANCH_RECORD)
    made["from_ip"] = from_ip
    made["to_ip"] = to_ip
    return made


def user_records(trace: ptkit.Trace, stream: int, *, returns: bool) -> NDArray[Any]:
    """Records of the taken branches of user code (BTS_OFF_OS), of a trace of user code.

    With `returns` those by which the kernel returned to it as well, as a processor writes them: the level is
    that of the target. Linux leaves them out unless it is asked for an AUX buffer.
    """
    branches = trace.branches(stream=stream, columns=["from_ip", "to_ip", "flags"])
    events = trace.events(stream=stream, columns=["kind", "ip", "flags"])
    again = (events["kind"] == EventKind.ENABLED) & ((events["flags"] & int(EventFlag.STATUS)) == 0)
    entries = events["ip"][again]
    flags = branches["flags"]
    left = (flags & int(RowFlag.TO_KNOWN)) == 0  # and each time but the last one packets went on somewhere
    assert int(left.sum()) in (len(entries), len(entries) - 1)
    from_ip, to_ip = branches["from_ip"].copy(), branches["to_ip"].copy()
    from_ip[left] = KERNEL
    back = np.zeros(int(left.sum()), np.uint64)
    back[: len(entries) - 1] = entries[1 : len(back) + 1]
    to_ip[left] = back
    wanted = (flags & int(RowFlag.TAKEN)) != 0
    wanted &= ~left if not returns else (to_ip != 0) | ~left
    made = records(from_ip[wanted], to_ip[wanted])
    return np.concatenate([records([KERNEL], entries[:1]), made]) if returns else made
