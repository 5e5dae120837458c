"""How fast this machine packs trace and writes it to a folder."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptkit.trace import Trace

__all__ = ["Drain", "measure"]

_SECONDS = 0.25


@dataclass(frozen=True)
class Drain:
    """Bytes that the recorder can take.

    Attributes
    ----------
    bytes_per_second : float
        Of trace: read, packed and written until the disk has it.
    packed : float
        Bytes of a bundle for each byte of trace and code.
    """

    bytes_per_second: float
    packed: float


def measure(trace: Trace, folder: Path) -> Drain:
    """Write the bundle of a trace to a folder, again and again for a quarter of a second.

    Trace and code are read and unpacked, too, so a recorder is a little faster.
    """
    path = folder / "drain.ptk"
    plain = trace.info.bytes + trace.info.code_bytes
    rounds, size, begin = 0, 0, time.perf_counter()
    while rounds == 0 or time.perf_counter() - begin < _SECONDS:
        size = trace.save(path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        rounds += 1
    seconds = time.perf_counter() - begin
    path.unlink()
    return Drain(rounds * plain / seconds, size / max(plain, 1))
