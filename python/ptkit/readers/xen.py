"""``xen-vmtrace DOMAIN VCPU > file``: the ring of a guest's trace.

The file has no magic, so that Xen's settings apply only if the user names the format.
"""

from __future__ import annotations

import os

from ptkit import _core
from ptkit.readers.recording import Reader, Source

__all__ = ["XEN"]

# TraceEn, OS, User, TSCEn, BranchEn: all that Xen lets a user of vmtrace set. DisRETC is unknown: compressed
# and uncompressed RETs are both decoded.
_ALLOWED = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 10 | 1 << 13


def _read(source: Source) -> _core.Bundle:
    name = os.fsencode(source.path)
    if source.data is None:
        recording = _core.open_bundle(name, "raw", without_psb=source.without_psb)
    else:
        recording = _core.open_bundle_bytes(name, source.data, "raw", without_psb=source.without_psb)
    recording.set_rtit_ctl(_ALLOWED)
    _core.add_warning(recording, "XEN_RING_LAPPED", [], name)
    return recording


XEN = Reader(
    "xen",
    "a guest's stream by xen-vmtrace (never guessed: name it)",
    _read,
    before="bts",
    reads_pipes=True,
    unverified=True,
)
