"""Stock perf records what is hard to follow, ptkit opens it as anybody would: against perf and truth."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from compare import assert_same, function, instructions_of, of_function, share_in_pieces
from executed import Executed, merge
from guest_programs import MIXED_WORKLOAD
from kernel_visits import KERNEL, assert_visits, faults_at_once, true_visits
from machine import Machine
from numpy.typing import NDArray
from perf_data import with_early_switch
from stock_recordings import Recorded, Recording, run_all
from warned import warned

import ptkit

pytestmark = pytest.mark.emulated

BUSY = "for i in 1 2 3; do rounds 40; kill -USR2 $PPID; sleep 0.05; done"
# On two CPUs. Of `changes` the kernel is asked before, since looking for functions takes long.
MACHINE = Recording("machine", "-a --kcore -m,1024 -e intel_pt//", MIXED_WORKLOAD, cpl=None)
WHOLE = [
    Recording("user", "-e intel_pt//u", MIXED_WORKLOAD),
    Recording("both", "--kcore -e intel_pt//", MIXED_WORKLOAD, cpl=None),
    Recording("everyone", "-a -e intel_pt//u", MIXED_WORKLOAD),
    MACHINE,
]
THREAD = Recording("thread", "--per-thread -T -e intel_pt//u", MIXED_WORKLOAD)
UNTIMED = Recording("untimed", "--per-thread -e intel_pt//u", MIXED_WORKLOAD)
MADE = Recording("made", "-e intel_pt//u", "jitter 40")
FILTER = Recording(
    "filter", "-m,64 -e intel_pt//u --filter 'filter work @ /bin/multi_process'", "multi_process"
)
OVERLAPS = Recording(
    "overlaps",
    "-S0x8000 -m,8 -e intel_pt//u",
    f"sh -c 'rounds 300; {BUSY}; rounds 3000; kill -USR2 $PPID; sleep 0.05'",
)
WRAPS = Recording("wraps", "-a -S0x10000 -m,16 --kcore -e intel_pt//", f"sh -c '{BUSY}'", cpl=None)
CHANGES = Recording("changes", "--kcore -m,2048 -e intel_pt//", "sh /bin/changes.sh", cpl=None)
SNAPSHOTS = [OVERLAPS, WRAPS]
ALL = [*WHOLE, THREAD, UNTIMED, MADE, FILTER, *SNAPSHOTS, CHANGES]
BEFORE = "echo 'p:inside seq_read_iter+0x20' > /sys/kernel/tracing/kprobe_events || exit 1\n"
DUMPS = "for file in /tmp/jit-*.dump; do host put ${file##*/} $file; done\n"


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path, programs: dict[str, Path]) -> Recorded:
    """The run."""
    folder = run_folder / "stock"
    return run_all(machine, folder, ALL, files=programs, cpus=2, before=BEFORE, after=DUMPS)


def kernels_breakpoints(recorded: Recorded, recording: Recording, executed: Executed) -> NDArray[np.bool_]:
    """Of executed instructions those INT3 that the kernel put where it changes its code.

    A trace cannot tell them from interruptions before what else was there; decoders take them for that.
    """
    names = recorded.run.files[f"{recording.name}.kallsyms"].decode()
    found = re.search(r"^([0-9a-f]+) \w asm_exc_int3$", names, re.MULTILINE)
    assert found is not None
    reached = np.append(executed.ip[1:] == int(found[1], 16), False)
    return reached & (executed.size == 1)


def assert_all_agree(recorded: Recorded, recording: Recording, executed: list[Executed]) -> int:
    """Ptkit, perf and the truth, stream by stream; threads of user code, too. How many instructions."""
    path = recorded.perf.path(recording.name)
    trace = recorded.opened(path)
    assert len(trace.streams) == len(executed)
    for number, expected in enumerate(executed):
        cpu = trace.streams[number].cpu
        table = trace.instructions(stream=number, columns=["ip", "tid"])
        assert_same(instructions_of(trace, number), expected)
        of_perf = recorded.perf.samples(path, cpu)
        assert_same(recorded.perf.decoded(of_perf), expected)
        user = expected.cpl == 3
        assert np.array_equal(table["tid"][user], of_perf.tid[user])
    return sum(len(expected.ip) for expected in executed)


def test_libraries_lay_where_others_had_been(recorded: Recorded) -> None:
    log = recorded.run.files["log"].decode()
    told = re.findall(r"^(main|child|threads) /lib/(\w+)\.so (0x\w+)$", log, re.MULTILINE)
    turns = [line[1:] for line in told if line[0] == "main"]
    assert [name for name, _ in turns[:4]] == ["first", "second"] * 2
    assert len({address for _, address in turns[:4]}) == 1
    threads, child = ([line for line in told if line[0] == who] for who in ("threads", "child"))
    assert threads[0][2] == child[0][2]
    assert threads[0][1] != child[0][1]


@pytest.mark.parametrize("recording", WHOLE, ids=lambda recording: recording.name)
def test_all_processes_are_decoded_to_what_was_executed(recorded: Recorded, recording: Recording) -> None:
    executed = [recorded.executed(recording, cpu) for cpu in range(2)]
    executed = [one for one in executed if len(one.ip) > 0]
    assert assert_all_agree(recorded, recording, executed) > 250_000


@pytest.mark.parametrize("recording", [one for one in WHOLE if one.cpl is None], ids=lambda one: one.name)
def test_frames_of_user_code_and_kernel(recorded: Recorded, recording: Recording) -> None:
    """Page faults within system calls, timers in user code, switches between threads."""
    trace = recorded.opened(recorded.perf.path(recording.name))
    calls, anomalies = trace.calls(), trace.stack_anomalies
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    in_kernel = np.asarray(calls["entry_ip"] >= KERNEL)
    row_of = {number: row for row, number in enumerate(calls["id"].tolist())}
    parents = np.array([row_of.get(number, -1) for number in calls.named("parent")])
    below_kernel = in_kernel[parents] & (parents >= 0)
    interrupts, syscalls = (np.asarray(calls["how"] == how) for how in ("INTERRUPT", "SYSCALL"))
    # The kernel's own interrupts are within its functions, all others above user code.
    assert (interrupts & below_kernel).any()
    assert (interrupts & ~below_kernel).sum() > 100
    # The last one of a stream may be open.
    ends = calls["end_how"][interrupts]
    assert set(ends.tolist()) <= {ptkit.CallEnd.RETURN, ptkit.CallEnd.SWITCH, ptkit.CallEnd.END}
    assert (ends == "END").sum() <= len(trace.streams)
    assert syscalls.sum() > 300
    # No code of a program is above the kernel's, and nothing is left by force.
    assert not (below_kernel & ~in_kernel).any()
    assert "UNWIND" not in calls.named("end_how")
    assert len(anomalies) == 0, str(anomalies)


@pytest.mark.parametrize("recording", [one for one in WHOLE if one.cpl is None], ids=lambda one: one.name)
def test_frames_leave_the_kernel_where_the_thread_does(recorded: Recorded, recording: Recording) -> None:
    """System calls and interrupts of user code, by the privilege levels that the machine has logged."""
    trace = recorded.opened(recorded.perf.path(recording.name))
    executed = [recorded.executed(recording, cpu) for cpu in range(len(trace.streams))]
    columns = ["how", "end_how", "call_ip", "instruction", "end_instruction"]
    visits = true_visits(trace, executed)
    assert len(visits) > 500
    kallsyms = recorded.run.files[f"{recording.name}.kallsyms"].decode()
    assert_visits(trace.calls(columns=columns), visits, faults_at_once(executed, kallsyms))


def test_perf_decodes_all_after_a_switch_that_is_recorded_early(recorded: Recorded) -> None:
    """Perf's decoder ends there without an error if it waits for switches at `__switch_to`."""
    path = recorded.perf.path(MACHINE.name)
    data = path / "data"
    stock = data.read_bytes()
    data.write_bytes(with_early_switch(stock, 1))
    found = recorded.perf.instructions(path, 1)
    data.write_bytes(stock)
    assert_same(found, recorded.executed(MACHINE, 1))


def test_one_thread(recorded: Recorded) -> None:
    executed = merge([recorded.executed(THREAD, cpu) for cpu in range(2)])
    assert assert_all_agree(recorded, THREAD, [executed]) > 200_000


def test_one_thread_without_times_is_doubted(recorded: Recorded) -> None:
    path = recorded.perf.path(UNTIMED.name)
    with warned("NO_TIMESTAMPS"):
        ptkit.open(path, binaries=[recorded.perf.objects])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ptkit.open(recorded.perf.path(THREAD.name), binaries=[recorded.perf.objects])


def test_code_that_a_program_makes(recorded: Recorded, tmp_path: Path) -> None:
    dumps = [name for name in recorded.run.files if name.startswith("jit-")]
    for name in dumps:
        (tmp_path / name).write_bytes(recorded.run.files[name])
    trace = recorded.opened(recorded.perf.path(MADE.name), tmp_path)
    executed = merge([recorded.executed(MADE, cpu) for cpu in range(2)])
    assert len(dumps) == 1
    assert len(trace.streams) == 1
    assert_same(instructions_of(trace), executed)
    names = (
        trace.instructions(symbol="made0", columns=["ip"]),
        trace.instructions(symbol="made2", columns=["ip"]),
    )
    assert len(np.unique(names[0]["ip"])) != len(np.unique(names[1]["ip"]))  # one where the other was


def test_a_filter_on_two_cpus(recorded: Recorded, programs: dict[str, Path]) -> None:
    multi_process = programs["bin/multi_process"]
    parts = [recorded.executed(FILTER, cpu) for cpu in range(2)]
    work = of_function(multi_process, "work", merge(parts), 800)
    begin = int(work.ip.min())
    end = begin + function(multi_process, "work")[1]
    executed = [part.select((part.ip >= begin) & (part.ip < end)) for part in parts]
    assert all(len(one.ip) > 1000 for one in executed)
    assert_all_agree(recorded, FILTER, executed)


@pytest.mark.parametrize("recording", SNAPSHOTS, ids=lambda recording: recording.name)
def test_snapshots(recorded: Recorded, recording: Recording) -> None:
    path = recorded.perf.path(recording.name)
    trace = recorded.opened(path)
    lost, shares = 0, []
    for number, stream in enumerate(trace.streams):
        assert stream.cpu is not None
        table = trace.instructions(stream=number, columns=["ip"])
        assert len(table.errors) == 0, str(table.errors)
        begun = table.gaps["cause"] == ptkit.GapCause.START
        assert (table.gaps["code"][~begun] == ptkit.ErrorCode.RING_WRAPPED).all()
        lost += int((~begun).sum())
        shares.append(share_in_pieces(table, table.gaps, recorded.executed(recording, stream.cpu)))
        of_perf = recorded.perf.instructions(path, stream.cpu)
        assert not of_perf.errors
        assert np.array_equal(of_perf.ip, table["ip"])
    assert lost > 0
    assert min(shares) < 1  # a processor that ran little has lost nothing


def test_a_kernel_that_changes_its_code(recorded: Recorded) -> None:
    parts = [recorded.executed(CHANGES, cpu) for cpu in range(2)]
    breakpoints = [kernels_breakpoints(recorded, CHANGES, part) for part in parts]
    assert sum(int(some.sum()) for some in breakpoints) > 0
    executed = [part.select(~some) for part, some in zip(parts, breakpoints, strict=True)]
    assert assert_all_agree(recorded, CHANGES, executed) > 1_000_000
