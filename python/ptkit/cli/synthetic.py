"""A synthetic stream, for benchmarks where nothing can be recorded."""

from __future__ import annotations

__all__ = ["CODE", "synthetic_stream"]

#: Code in which every TNT packet is possible: jz +2; nop; nop; jz -6; jmp -8.
CODE: dict[int, bytes] = {0x401000: bytes.fromhex("7402909074faebf8")}

_PSB = bytes.fromhex("0282" * 8)
_PSBEND = bytes.fromhex("0223")
_MODE_64 = bytes.fromhex("9901")
_IP = (0x401000).to_bytes(8, "little")
_ENABLED = bytes.fromhex("d1") + _IP
# The loop has two conditional jumps, so that every TNT packet ends at its beginning.
_INTERRUPTED = bytes.fromhex("dd") + _IP + bytes.fromhex("01")
_TNT = 0x80  # the stop bit of a TNT packet with six branches; they are bits 6 to 1
_PERIOD = 4096  # bytes from PSB to PSB


def synthetic_stream(size: int) -> bytes:
    """Branches of a small loop, for `size` bytes at most: TNT packets, a PSB every 4096 bytes.

    Parameters
    ----------
    size : int
        Bytes; rounded down to periods of 4096, one at least.
    """
    head = _PSB + _PSBEND + _MODE_64 + _ENABLED
    count = _PERIOD - len(head) - len(_INTERRUPTED)
    value, packets = 1, bytearray()
    for _ in range(count):
        value = value * 1103515245 + 12345 & 0x7FFFFFFF
        packets.append(_TNT | (value >> 16 & 0x3F) << 1)
    return (head + bytes(packets) + _INTERRUPTED) * max(size // _PERIOD, 1)
