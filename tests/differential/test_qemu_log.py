"""The reader of QEMU's own log, with which the emulator back end is compared."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import qemu_log
from compiling import build
from truth import first_difference, resolve, surroundings

QEMU = shutil.which("qemu-x86_64")

HEADER = "----------------\nIN: f\n"
REPEATED = "0x00001001:  f3 aa                    rep stosb %al, (%rdi)\n\n"
BLOCK = HEADER + "0x00001000:  90                       nop\n" + REPEATED
REST = HEADER + REPEATED
CALL = HEADER + "0x00001003:  0f 05                    syscall\n\n"
HANDLER = HEADER + "0x00002000:  c3                       retq\n\n"


def entered(code: int, address: int, count: int = 0x200, cpu: int = 0) -> str:
    return f"Trace {cpu}: 0x{code:x} [0000000000000000/{address:016x}/00c0b3/{count:08x}] f\n"


def read(tmp_path: Path, text: str) -> list[qemu_log.Run]:
    (tmp_path / "log.7.7.1").write_text(text)
    return qemu_log.read(tmp_path)


FINISHED = "7 exit_group(0)"


def test_a_repeated_instruction_counts_once(tmp_path: Path) -> None:
    text = BLOCK + entered(16, 0x1000) + REST + entered(32, 0x1001) * 5 + CALL + entered(48, 0x1003)
    text += FINISHED
    (run,) = read(tmp_path, text)
    assert list(run.ips) == [0x1000, 0x1001, 0x1003]
    assert not run.doubts
    assert (run.pid, run.tid) == (7, 7)


def test_an_entry_is_taken_back(tmp_path: Path) -> None:
    stopped = "Stopped execution of TB chain before 0x20 [0000000000001001] f\n"
    signal = "--- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL, si_pid=0, si_uid=0} ---\n"
    text = BLOCK + entered(16, 0x1000) + REST + entered(32, 0x1001) + entered(32, 0x1001) + stopped + signal
    text += HANDLER + entered(64, 0x2000) + entered(32, 0x1001) + CALL + entered(48, 0x1003) + FINISHED
    (run,) = read(tmp_path, text)
    assert list(run.ips) == [0x1000, 0x2000, 0x1001, 0x1003]


def test_a_fault_leaves_a_block_somewhere(tmp_path: Path) -> None:
    signal = "--- SIGSEGV {si_signo=SIGSEGV, si_code=1, si_addr=0x0000000000000008} ---\n"
    text = BLOCK + entered(16, 0x1000) + signal + HANDLER + entered(64, 0x2000) + REST + entered(32, 0x1001)
    (run,) = read(tmp_path, text + CALL + entered(48, 0x1003) + FINISHED)
    assert run.doubts == [qemu_log.Doubt(0, (0x1000, 0x1001), (0, 1))]
    exact = np.array(run.ips, dtype=np.uint64)
    for before in ([], [0x1000]):
        executed = np.array([*before, 0x2000, 0x1001, 0x1003], dtype=np.uint64)
        assert np.array_equal(resolve(executed, exact, run.doubts)[0], executed)


def test_a_block_is_left_for_one_instruction(tmp_path: Path) -> None:
    straight = HEADER + "".join(f"0x{0x1000 + i:08x}:  90                       nop\n" for i in range(4))
    alone = HEADER + "0x00001002:  90                       nop\n\n"
    rest = HEADER + "0x00001003:  c3                       retq\n\n"
    text = (
        straight
        + "\n"
        + entered(16, 0x1000)
        + alone
        + entered(32, 0x1002, 0x201)
        + rest
        + entered(48, 0x1003)
    )
    (run,) = read(tmp_path, text)
    assert list(run.ips) == [0x1000, 0x1001, 0x1002]


def test_code_is_translated_again(tmp_path: Path) -> None:
    long = "0x00001000:  b8 01 00 00 00           movl     $1, %eax\n"
    text = HEADER + long + "0x00001005:  c3                       retq\n\n" + entered(16, 0x1000)
    text += (
        HEADER + "0x00001000:  90                       nop\n0x00001001:  c3                       retq\n\n"
    )
    text += entered(16, 0x1000) + CALL + entered(48, 0x1003) + FINISHED
    (run,) = read(tmp_path, text)
    assert list(run.ips) == [0x1000, 0x1005, 0x1000, 0x1001, 0x1003]


def test_long_instructions_and_branches(tmp_path: Path) -> None:
    text = (
        HEADER
        + "0x00001000:  48 c7 84 24 90 00 00 00  movq     $0x37f, 0x90(%rsp)\n0x00001008:  7f 03 00 00\n"
    )
    text += "0x0000100c:  f2 e9 00 00 00 00        bnd jmp  0x1012\n\n" + entered(16, 0x1000)
    text += HEADER + "0x00001012:  0f 05                    syscall\n\n" + entered(32, 0x1012) + FINISHED
    (run,) = read(tmp_path, text)
    assert list(run.ips) == [0x1000, 0x100C, 0x1012]


TAIL = HEADER + "0x00001002:  90                       nop\n" + CALL.removeprefix(HEADER)
LEAVES = HEADER + "0x00001002:  eb 00                    jmp      0x1003\n\n"
STARTS = BLOCK.replace(REPEATED, "0x00001001:  90                       nop\n\n")


def test_a_call_that_began_was_executed(tmp_path: Path) -> None:
    text = CALL + entered(48, 0x1003)
    for answer in (FINISHED, "7 Unknown syscall 999\n"):
        (run,) = read(tmp_path, text + answer)
        assert (list(run.ips), run.doubts) == ([0x1003], [])


def test_execve_was_executed_where_another_program_follows(tmp_path: Path) -> None:
    execve = HEADER + "0x00001003:  b8 3b 00 00 00           movl     $0x3b, %eax\n"
    execve += "0x00001008:  0f 05                    syscall\n\n" + entered(48, 0x1003)
    (run,) = read(tmp_path, execve)
    assert run.doubts == [qemu_log.Doubt(0, (0x1003, 0x1008), (0, 1, 2))]
    (tmp_path / "log.7.7.2").write_text(CALL + entered(48, 0x1003) + FINISHED)
    runs = qemu_log.read(tmp_path)
    assert [(list(run.ips), run.doubts) for run in runs] == [([0x1003, 0x1008], []), ([0x1003], [])]


def test_a_call_that_did_not_begin_is_doubted(tmp_path: Path) -> None:
    (run,) = read(tmp_path, STARTS + entered(16, 0x1000) + TAIL + entered(32, 0x1002))
    assert list(run.ips) == [0x1000, 0x1001]
    assert run.doubts == [qemu_log.Doubt(2, (0x1002, 0x1003), (0, 1, 2))]
    again = CALL + entered(48, 0x1003) + "7 getppid()"
    (run,) = read(tmp_path, again + " = 1\n" + entered(48, 0x1003))
    assert list(run.ips) == [0x1003]
    assert run.doubts == [qemu_log.Doubt(1, (0x1003,), (0, 1))]


def test_a_killed_thread_may_not_have_begun_its_last_block(tmp_path: Path) -> None:
    """Then who looks at beginnings of blocks cannot know that the branch before it was executed."""
    text = STARTS + entered(16, 0x1000) + LEAVES + entered(32, 0x1002) + CALL + entered(48, 0x1003)
    (run,) = read(tmp_path, text)
    assert list(run.ips) == [0x1000, 0x1001]
    assert run.doubts == [qemu_log.Doubt(2, (0x1002, 0x1003), (0, 1, 2))]
    exact = np.array(run.ips, dtype=np.uint64)
    for last in ([], [0x1002], [0x1002, 0x1003]):
        executed = np.array([0x1000, 0x1001, *last], dtype=np.uint64)
        assert np.array_equal(resolve(executed, exact, run.doubts)[0], executed)
    lost = np.array([0x1000], dtype=np.uint64)
    assert not np.array_equal(resolve(lost, exact, run.doubts)[0], lost)


def test_a_killed_thread_may_have_translated_what_another_one_enters(tmp_path: Path) -> None:
    (tmp_path / "log.7.7.1").write_text(BLOCK + entered(16, 0x1000) + CALL)
    (tmp_path / "log.7.8.2").write_text(entered(48, 0x1003, cpu=1) + "8 exit(0)")
    _, thread = qemu_log.read(tmp_path)
    assert list(thread.ips) == [0x1003]
    # Two that differ: it is not known which one it was.
    (tmp_path / "log.7.9.3").write_text(CALL.replace("0f 05", "0f 34").replace("syscall", "sysenter"))
    with pytest.raises(qemu_log.LogError, match=r"log\.7\.8\.2: which block is 0x1003"):
        qemu_log.read(tmp_path)


def test_impossible_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(qemu_log.LogError, match="from 0x1001 to 0x2000"):
        read(tmp_path, BLOCK + entered(16, 0x1000) + HANDLER + entered(64, 0x2000))
    with pytest.raises(qemu_log.LogError, match="which block"):
        read(tmp_path, entered(16, 0x1000))


def logged(command: Sequence[str], folder: Path) -> list[qemu_log.Run]:
    folder.mkdir()
    environment = dict(os.environ, **qemu_log.environment(folder))
    command = [str(QEMU), "-seed", "1", *command]
    subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
    return qemu_log.read(folder)


@pytest.mark.skipif(QEMU is None, reason="no qemu-x86_64 (apt-get install qemu-user)")
@pytest.mark.parametrize("name", ["odd", "selfmod", "faults", "forks"])
def test_one_instruction_at_a_time(name: str, tmp_path: Path) -> None:
    program = str(build(name, tmp_path, "-static"))
    # Folders with names of the same length: the program sees them in its environment.
    blocks = logged([program], tmp_path / "some")
    steps = logged(["-singlestep", program], tmp_path / "each")
    assert len(blocks) == len(steps) >= 1
    for several, one in zip(blocks, steps, strict=True):
        exact = np.array(one.ips, dtype=np.uint64)
        exact, _ = resolve(exact, exact, one.doubts)
        merged, _ = resolve(exact, np.array(several.ips, dtype=np.uint64), several.doubts)
        at = first_difference(merged, exact)
        assert at is None, surroundings(merged, exact, at)
