"""States of a machine's processors, by QEMU's monitor."""

from __future__ import annotations

import re
import socket
from pathlib import Path

_PROMPT = b"(qemu) "
_INTERRUPTS = 1 << 9  # in RFLAGS
_INT3_GATE = 3 * 16  # bytes in the IDT
_ENTRY_BYTES = 0x60  # of asm_exc_int3()
_SAMPLES = 8


class Monitor:
    """A connection to the monitor (``-monitor unix:PATH,server=on,wait=off``).

    Parameters
    ----------
    path
        The socket.
    """

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self._answer()

    def ask(self, command: str) -> str:
        """Return what the monitor prints for a command, without the command itself, which it prints first."""
        self._socket.sendall(command.encode() + b"\n")
        return self._answer().partition("\r\n")[2]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _answer(self) -> str:
        data = b""
        while not data.endswith(_PROMPT):
            part = self._socket.recv(65536)
            if not part:
                raise ConnectionError("QEMU's monitor has ended")
            data += part
        return data.decode(errors="replace")


def loops_at_int3(monitor: Monitor, cpus: int) -> bool:
    """Whether a processor takes INT3 again and again with interrupts disabled.

    Parameters
    ----------
    monitor
        Of a machine that seems to hang.
    cpus
        How many processors it has.
    """
    return any(all(_handles_int3(monitor, cpu) for _ in range(_SAMPLES)) for cpu in range(cpus))


def _handles_int3(monitor: Monitor, cpu: int) -> bool:
    """Whether a processor is in the handler of INT3, or at the instruction that it returns to."""
    monitor.ask(f"cpu {cpu}")
    registers = monitor.ask("info registers")
    rip, rsp, flags = (_register(registers, name) for name in ("RIP", "RSP", "RFL"))
    entry = _entry(_words(monitor.ask(f"x /2xg {_register(registers, 'IDT') + _INT3_GATE:#x}")))
    stack = _words(monitor.ask(f"x /64xg {rsp & ~7:#x}"))
    # The frame of the exception stays below the stack pointer while the INT3 itself is executed.
    below = _words(monitor.ask(f"x /64xg {(rsp & ~7) - 64 * 8:#x}"))
    inside = any(entry <= value < entry + _ENTRY_BYTES for value in (rip, *stack, *below))
    return entry != 0 and not flags & _INTERRUPTS and inside


def _register(text: str, name: str) -> int:
    found = re.search(rf"\b{name}= *([0-9a-f]+)", text)
    return int(found[1], 16) if found else 0


def _words(text: str) -> list[int]:
    """The values that the monitor's command x prints."""
    return [
        int(value, 16) for line in text.splitlines() for value in re.findall(r" 0x([0-9a-f]{16})\b", line)
    ]


def _entry(gate: list[int]) -> int:
    """The address in a gate of the IDT (Intel SDM vol. 3, "64-Bit Mode IDT")."""
    if len(gate) < 2:
        return 0
    return gate[0] & 0xFFFF | gate[0] >> 32 & 0xFFFF0000 | (gate[1] & 0xFFFFFFFF) << 32
