"""Branch Trace Store of a program and of a kernel driver as a table: from, to, thread, offsets in modules.

Threads of the model execute a program's code and that of ptkit.sys in turns. Each of their taken branches has
to be a row of the table, in order.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_blocks import Image, read_image
from mingw import strip_image
from model_log import BLOCK_BYTES, BRANCH, STORED, USER, Array, Stay, addresses, programs, stays
from small_pe import pe
from walker import Walker

import ptkit

BASE = 0xFFFFF806_85380000
DRIVER, PROGRAM = "ptkit.sys", "program.exe"
PROGRAM_BASE, PROGRAM_BYTES = 0x140000000, 0x5000  # its code is at PROGRAM_USER_BASE of program.h
TURNS = 6
BLOCKS = TURNS * 4 * 800  # as walk.c has it
COLUMNS = [
    "from_ip", "to_ip", "taken", "pid", "tid", "tid_known", "from_module", "from_module_offset", "to_module",
    "to_module_offset",
]  # fmt: skip

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Row:
    """A taken branch that the model executed; no target: another thread was executed then."""

    from_block: int
    to: int | None
    client: int  # the thread of the client; 0: there were two


def executed(log: list[Stay]) -> Iterator[Row]:
    """Taken branches of all threads, in order."""
    for stay in log:
        ips = addresses(stay.entries).tolist()
        for index, entry in enumerate(stay.entries):
            if not entry & BRANCH:
                continue
            assert entry & STORED
            yield Row(ips[index], ips[index + 1] if index + 1 < len(ips) else None, stay.client)


def without_marks(records: Array) -> tuple[Array, list[tuple[int, int | None, int | None]]]:
    """Records of branches, and the thread from a record on, as two marks around records agree on it.

    struct ptkit_branch_mark: 0, the ids (inverted at the end), the time.
    """
    marks = np.flatnonzero(records[:, 0] == 0)
    begin: tuple[int, int] | None = None
    switches: list[tuple[int, int | None, int | None]] = []
    for count, mark in enumerate(marks.tolist()):
        if records[mark, 1] == 0 and records[mark, 2] == 0:
            continue  # fills the end of the buffer
        pid, tid = records[mark : mark + 1, 1].view("<i4").tolist()
        if pid >= 0:
            begin = (pid, tid)
            switches.append((mark - count, None, None))
        elif begin == (~pid, ~tid):
            switches[-1] = (switches[-1][0], *begin)
    return records[records[:, 0] != 0], switches


@dataclass(frozen=True)
class Stored:
    """Stored branches, and the execution that they are of."""

    image: Image
    rows: list[Row]
    trace: Any


@pytest.fixture(scope="module")
def stored(
    walker: Walker, shipped_driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Stored:  # fmt: skip
    folder = tmp_path_factory.mktemp("table")
    image = read_image(shipped_driver, BASE)
    image.save(walker.folder / "image.blocks")
    walker.walk("programs")
    walker.walk("branches", str(TURNS))
    (folder / PROGRAM).write_bytes(pe(programs(walker.folder)[USER].code, PROGRAM_BASE, PROGRAM_BYTES))
    words = np.fromfile(walker.folder / "branches.0.bts", "<u8").reshape(-1, 3)
    records, switches = without_marks(words)
    trace = ptkit.open_branches(
        records.tobytes(), switches=switches,
        images=[(folder / PROGRAM, PROGRAM_BASE), (strip_image(shipped_driver, folder / DRIVER), BASE)],
    )  # fmt: skip
    return Stored(image, list(executed(list(stays(walker.folder / "branches.0.log")))), trace)


def taken(stored: Stored) -> dict[str, Any]:
    """Columns of the rows of taken branches."""
    table = stored.trace.branches(columns=COLUMNS)
    of_taken = np.asarray(table["taken"])
    return {name: np.asarray(table[name])[of_taken] for name in COLUMNS}


def block_of(image: Image, ip: int) -> int:
    """The block that ends with the instruction."""
    if ip < BASE:
        return ip // BLOCK_BYTES * BLOCK_BYTES
    return image.base + next(block.ip for block in image.blocks.values() if block.end_ip == ip - image.base)


def test_table_has_each_branch(stored: Stored) -> None:
    table = taken(stored)
    ends = {image_ip: block_of(stored.image, image_ip) for image_ip in set(table["from_ip"].tolist())}
    assert [ends[ip] for ip in table["from_ip"].tolist()] == [row.from_block for row in stored.rows]
    for row, to in zip(stored.rows, table["to_ip"].tolist(), strict=True):
        assert row.to in (None, to)
    assert len(stored.rows) > BLOCKS // 2


def test_table_has_offsets_in_modules(stored: Stored) -> None:
    table = taken(stored)
    for end in ("from", "to"):
        ips = table[f"{end}_ip"]
        is_driver = (ips >= BASE) & (ips < BASE + stored.image.size)
        is_program = (ips >= PROGRAM_BASE) & (ips < PROGRAM_BASE + PROGRAM_BYTES)
        assert is_driver.sum() > BLOCKS // 8
        assert is_program.sum() > BLOCKS // 8
        for inside, name, base in ((is_driver, DRIVER, BASE), (is_program, PROGRAM, PROGRAM_BASE)):
            assert set(table[f"{end}_module"][inside].tolist()) == {name}
            np.testing.assert_array_equal(table[f"{end}_module_offset"][inside], ips[inside] - base)
        outside = ~is_driver & ~is_program  # functions that the driver imports
        assert set(table[f"{end}_module"][outside].tolist()) <= {None}


def test_table_has_the_thread_where_it_is_certain(stored: Stored) -> None:
    """The client's, between two of its marks. Between marks of two threads it is not known."""
    table = taken(stored)
    clients = np.array([row.client for row in stored.rows])
    np.testing.assert_array_equal(table["tid_known"], clients != 0)
    known = table["tid_known"]
    assert 0 < known.sum() < len(known)
    np.testing.assert_array_equal(table["tid"][known], clients[known])
    assert len(set(clients[known].tolist())) > 1
    assert len(set(table["pid"][known].tolist())) == 1


def test_command_prints_the_table(stored: Stored, tmp_path: Path) -> None:
    stored.trace.save(tmp_path / "branches.ptk")
    command = [sys.executable, "-m", "ptkit", "branches", str(tmp_path / "branches.ptk"), "--taken"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    table = taken(stored)
    lines = [line for line in done.stdout.splitlines() if " => " in line]
    assert len(lines) == len(table["from_ip"])
    for line, origin, to in zip(lines, table["from_ip"].tolist(), table["to_ip"].tolist(), strict=True):
        assert f"{origin:016x} => {to:016x}" in line
        if PROGRAM_BASE <= origin < PROGRAM_BASE + PROGRAM_BYTES:
            assert f" [{PROGRAM}]+{origin - PROGRAM_BASE:#x} -> " in line
        else:
            assert f" {stored.image.name(DRIVER, origin)} -> " in line
