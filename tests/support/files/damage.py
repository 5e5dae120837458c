"""Damaged streams."""

from __future__ import annotations

import random


def damaged(data: bytes, changes: int) -> bytes:
    chance = random.Random(changes)
    out = bytearray(data)
    for _ in range(changes):
        at = chance.randrange(len(out))
        out[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
    return bytes(out)
