"""Requests to QEMU's monitor, with a program instead of it that answers as QEMU 7.2 does."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from qemu_monitor import Monitor, loops_at_int3

IDT = 0xFFFFFE0000000000
HANDLER = 0xFFFFFFFF89600BA0
INT3 = 0xFFFFFFFF8945258C
STACK = 0xFF3CFA77403D7CF8
ENABLED, DISABLED = 0x286, 0x86
GATE = [0x8960EE0000100BA0, 0x00000000FFFFFFFF]


class Machine:
    """One processor. Its memory is zero but for the gate of INT3 and for `words`."""

    def __init__(self, path: Path) -> None:
        self.rip, self.flags = INT3, DISABLED
        self.words: dict[int, int] = {}
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection, connection.makefile("rwb") as lines:
            prompt = b"(qemu) "
            lines.write(b"QEMU 7.2.19 monitor - type 'help' for more information\r\n" + prompt)
            lines.flush()
            for line in lines:
                command = line.decode().strip()
                # The line editor prints the line again after each of its characters.
                echo = "".join(
                    command[: end + 1] + "\x1b[K" + (end + 1) * "\x1b[D" for end in range(len(command))
                )
                lines.write(f"{echo}{command}\x1b[K\r\n{self._answer(command)}".encode() + prompt)
                lines.flush()

    def _answer(self, command: str) -> str:
        if command == "info registers":
            return (
                f"RAX=0000000000000000 RBX=0000000000000001 RCX=0000000000000000 RSP={STACK:016x}\r\n"
                f"RIP={self.rip:016x} RFL={self.flags:08x} [---A---] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
                f"IDT=     {IDT:016x} 00000fff\r\n"
            )
        if found := re.fullmatch(r"x /(\d+)xg (0x[0-9a-f]+)", command):
            count, begin = int(found[1]), int(found[2], 16)
            memory = {IDT + 48: GATE[0], IDT + 56: GATE[1]} | self.words
            return "".join(
                f"{at:016x}: 0x{memory.get(at, 0):016x} 0x{memory.get(at + 8, 0):016x}\r\n"
                for at in range(begin, begin + 8 * count, 16)
            )
        return ""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "monitor")
    yield made
    made.close()


@pytest.fixture
def monitor(machine: Machine, tmp_path: Path) -> Iterator[Monitor]:
    made = Monitor(tmp_path / "monitor")
    yield made
    made.close()


def test_answer_has_no_command(monitor: Monitor) -> None:
    assert monitor.ask(f"x /2xg {IDT + 48:#x}").split() == [
        "fffffe0000000030:", "0x8960ee0000100ba0", "0x00000000ffffffff", "(qemu)",
    ]  # fmt: skip


@pytest.mark.parametrize("below", [True, False], ids=["at the INT3", "in its handler"])
def test_processor_that_takes_int3_is_found(machine: Machine, monitor: Monitor, below: bool) -> None:
    """The handler has been called: below the stack pointer, or above it."""
    machine.words[STACK + (-40 if below else 40)] = HANDLER + 0x23
    assert loops_at_int3(monitor, 1)


def test_processor_in_the_first_instruction_of_the_handler_is_found(
    machine: Machine, monitor: Monitor
) -> None:
    machine.rip = HANDLER
    assert loops_at_int3(monitor, 1)


def test_other_loops_are_not(machine: Machine, monitor: Monitor) -> None:
    assert not loops_at_int3(monitor, 1)
    machine.words[STACK - 40] = HANDLER + 0x23
    machine.flags = ENABLED
    assert not loops_at_int3(monitor, 1)
