"""Streams with damage in some places."""

from __future__ import annotations

import random


def damaged(data: bytes, places: int) -> bytes:
    chance = random.Random(places)
    out = bytearray(data)
    for _ in range(places):
        at = chance.randrange(len(out))
        out[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
    return bytes(out)
