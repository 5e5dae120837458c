"""Our own module's Branch Trace Store in the emulated machine: every branch that was executed is a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boot_image
import numpy as np
import pytest
from compare import RECORD_BYTES, records, share_in_pieces
from executed import Executed, Truth
from kernels import ROOT, build_module, debian_kernel
from machine import Machine, Run

import ptkit

pytestmark = pytest.mark.emulated

# name: (output, levels), as guest/trace.c takes them
RECORDINGS = {
    "user": ("bts", "user"),
    "both": ("bts", "both"),
    "kernel": ("bts", "kernel"),
    "ring": ("btsring", "user"),
}
RING_BYTES = 64 << 10  # as in guest/session.h


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run; under page-table isolation there is no Branch Trace Store."""
    folder = run_folder / "module_bts"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    flags = (f"-I{ROOT / 'kernel/include'}", "-Wl,-Ttext-segment=0x10000000")
    trace = boot_image.compile_static(boot_image.GUEST / "trace.c", folder / "trace", *flags)
    script = "insmod /bin/ptkit.ko || exit 1\n"
    for name, (output, levels) in RECORDINGS.items():
        script += f"host log tracing\ntrace {output} {levels} all /tmp/{name} || exit 1\nhost log never\n"
        script += f"host put {name} /tmp/{name}\n"
    script += "rmmod ptkit || exit 1\n"
    files = {"bin/ptkit.ko": module, "bin/trace": trace}
    # The watchdog would have a counter, and perf a DS area for it.
    run = machine.run(script, folder / "run", files=files, arguments="pti=off nmi_watchdog=0")
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


def executed_in(run: Run, name: str) -> Executed:
    """Instructions that were executed while branches were stored."""
    return Truth(run.truth).executed(2 * list(RECORDINGS).index(name) + 1)


Branches = list[tuple[int, int]]  # from where to where


def stretches_of(run: Run, name: str) -> list[Branches]:
    """The branches between marks of the driver (struct ptkit_branch_mark)."""
    assert len(run.files[name]) % RECORD_BYTES == 0
    stretches: list[Branches] = [[]]
    last = 0
    for source, target, tsc in np.frombuffer(run.files[name], dtype="<u8").reshape(-1, 3).tolist():
        if source != 0:
            stretches[-1].append((source, target))
            continue
        assert last < tsc
        last = tsc
        stretches.append([])
    return [stretch for stretch in stretches if stretch]


def records_of(run: Run, name: str) -> Branches:
    """All of them."""
    return [record for stretch in stretches_of(run, name) for record in stretch]


def stored_records(run: Run, name: str) -> np.ndarray[Any, Any]:
    """As the recorder gives them to the decoder: between marks, branches of the kernel are missing."""
    stretches = stretches_of(run, name)
    records = np.zeros(sum(map(len, stretches)), dtype=ptkit.BRANCH_RECORD)
    found = records_of(run, name)
    records["from_ip"], records["to_ip"] = np.array(found, dtype="<u8").T
    if name != "user":
        begins = np.cumsum([0, *(len(stretch) for stretch in stretches[:-1])])
        records["flags"][begins] = ptkit.RecordFlag.FIRST
    return records


def of_user(records: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that do not come from the kernel."""
    return [(source, target) for source, target in records if not source >> 63]


def user_branches(executed: Executed) -> list[tuple[int, int]]:
    """From where to where user code jumps, of each process by itself."""
    user = np.flatnonzero(executed.cpl == 3)
    found: list[tuple[int, int, int]] = []
    for space in np.unique(executed.cr3[user]).tolist():
        own = user[executed.cr3[user] == space]
        ip = executed.ip[own]
        jumps = np.flatnonzero(ip[1:] != ip[:-1] + executed.size[own[:-1]])
        found += zip(own[jumps].tolist(), ip[jumps].tolist(), ip[jumps + 1].tolist(), strict=True)
    return [(source, target) for _, source, target in sorted(found)]


MOST_MISSING = 200  # jumps of the kernel that the driver does not store, from one stretch to the next one


def assert_all(stretches: list[Branches], executed: Executed, user: bool) -> None:
    """Every jump, to the kernel or of any code, is a record, and hardly any other is one.

    A jump whose target was interrupted before it was executed is two records, but one jump of what was
    executed. A branch to what is behind it is none. Where user code is not recorded, neither is its jump
    before such an interrupt, nor one to it: the interrupt comes from user code of which nothing was executed.
    Between two stretches, jumps of the driver itself are missing.
    """
    sizes = dict(zip(executed.ip.tolist(), executed.size.tolist(), strict=True))
    jumps = np.flatnonzero(executed.ip[1:] != executed.ip[:-1] + executed.size[:-1])
    levels = executed.cpl.tolist()
    ip = executed.ip.tolist()
    wanted = [i for i in jumps.tolist() if levels[i + 1] != 3 or user]
    at = 0
    for stretch in stretches:
        records = [(source, target) for source, target in stretch if source + sizes.get(source, 0) != target]
        if not records:
            continue
        missing = next(n for n in range(MOST_MISSING) if begins_at(records[0], ip, wanted[at + n]))
        assert all(ip[i] >> 63 for i in wanted[at : at + missing])
        at += missing
        row = 0
        while row < len(records):
            i = wanted[at]
            source, target = ip[i], ip[i + 1]
            if records[row][0] == source and records[row][1] != target:
                assert records[row + 1][0] == records[row][1]
                row += 1
            else:
                # An interrupt comes from what would have been executed next.
                of_user = levels[i] == 3 or records[row][0] >> 63 == 0
                assert records[row][0] in (source, source + sizes[source]) or (of_user and not user)
            assert records[row][1] == target
            row += 1
            at += 1
    assert len(wanted) - at < MOST_MISSING


def begins_at(record: tuple[int, int], ip: list[int], jump: int) -> bool:
    """Whether a record can be this jump of what was executed."""
    return record[1] == ip[jump + 1] or record[0] == ip[jump]


def test_module_leaves_nothing(run: Run) -> None:
    _, _, since = run.files["dmesg"].partition(b"ptkit: ABI ")
    assert since
    for complaint in (b"WARNING:", b"BUG:", b"Oops", b"unchecked MSR", b"unknown reason"):
        assert complaint not in since


def test_user_code(run: Run) -> None:
    records = records_of(run, "user")
    assert not any(target >> 63 for _, target in records)
    assert len(of_user(records)) > 10_000
    assert of_user(records) == user_branches(executed_in(run, "user"))


def test_ring_keeps_the_newest(run: Run) -> None:
    assert len(run.files["ring"]) == RING_BYTES // RECORD_BYTES * RECORD_BYTES
    assert len(stretches_of(run, "ring")) > 1
    found = of_user(records_of(run, "ring"))
    assert len(found) > 2000
    assert found == user_branches(executed_in(run, "ring"))[-len(found) :]


def test_user_and_kernel_code(run: Run) -> None:
    assert len(records_of(run, "both")) > 10_000
    assert_all(stretches_of(run, "both"), executed_in(run, "both"), user=True)


def test_kernel_code(run: Run) -> None:
    records = records_of(run, "kernel")
    assert len(records) > 1000
    assert all(target >> 63 for _, target in records)
    assert_all(stretches_of(run, "kernel"), executed_in(run, "kernel"), user=False)


@pytest.mark.parametrize("name", ["user", "both", "kernel"])
def test_decoded(run: Run, name: str) -> None:
    """Our decoder makes pieces of what was executed of the records, and nearly all of it."""
    part = 2 * list(RECORDINGS).index(name) + 1
    executed = executed_in(run, name)
    levels = {"user": executed.cpl == 3, "both": executed.cpl <= 3, "kernel": executed.cpl == 0}[name]
    table, gaps = records(stored_records(run, name), Truth(run.truth).code(part), name)
    assert share_in_pieces(table, gaps, executed.select(levels)) > 0.99
