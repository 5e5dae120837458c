"""Checks of the self-test on recordings with planted differences: each is found, and said in words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptkit import GapCause
from ptkit.selftest import branch_records, control_flow, output, programs
from ptkit.selftest.bench import Bench, Taken
from ptkit.selftest.compare import Rows, expect_all, expect_parts, expect_tail
from ptkit.selftest.outcome import CheckFailed, Unavailable

EXECUTED = np.array([0x400000 + 3 * n * n for n in range(40)], dtype=np.uint64)


class PlantedBench(Bench):
    """Has rows of tests instead of recordings."""

    def __init__(self, folder: Path, executed: NDArray[np.uint64], *rows: Rows, bytes: int = 100_000) -> None:
        super().__init__("perf", 0, folder)
        self._executed = executed
        self._rows = list(rows)
        self._bytes = bytes
        self.options: list[dict[str, Any]] = []

    def executed(self, program: programs.Program) -> NDArray[np.uint64]:
        return self._executed

    def record(self, program: programs.Program, **options: Any) -> Taken:
        self.options.append(options)
        rows = self._rows.pop(0) if len(self._rows) > 1 else self._rows[0]
        recording = SimpleNamespace(trace_bytes=self._bytes, exit_status=0)
        return SimpleNamespace(program=program, rows=lambda: rows, recording=recording)  # type: ignore[return-value]


def changed(row: int, value: int) -> NDArray[np.uint64]:
    copy = EXECUTED.copy()
    copy[row] = value
    return copy


def test_every_instruction_is_compared() -> None:
    assert expect_all(Rows(EXECUTED), EXECUTED) == "40 instructions"
    with pytest.raises(CheckFailed, match=r"instruction 39 of 40: decoded .*0x7, executed .*0x4011d3"):
        expect_all(Rows(changed(39, 7)), EXECUTED)
    with pytest.raises(CheckFailed, match=r"instruction 39 of 40"):
        expect_all(Rows(EXECUTED[:39]), EXECUTED)
    with pytest.raises(CheckFailed, match=r"1 decoding error: NO_CODE at byte 9"):
        expect_all(Rows(EXECUTED, errors=("NO_CODE at byte 9",)), EXECUTED)


def test_instructions_may_be_missing_at_an_overflow() -> None:
    rows = Rows(np.delete(EXECUTED, slice(10, 15)), (10,), overflows=1)
    assert expect_all(rows, EXECUTED) == "88% of 40 instructions, 1 loss (1 OVF packet)"
    newest = Rows(rows.ip[5:], (5,), overflows=1)
    assert expect_tail(newest, EXECUTED, 10).endswith("(1 OVF packet)")
    with pytest.raises(CheckFailed, match="the last 1 instructions are missing"):
        expect_tail(Rows(rows.ip[5:-1], (5,), overflows=1), EXECUTED, 10)


def test_tail_is_the_newest_and_long_enough() -> None:
    assert expect_tail(Rows(EXECUTED[30:]), EXECUTED, 10) == "the last 10 of 40 instructions"
    with pytest.raises(CheckFailed, match="9 instructions decoded, expected at least the last 10"):
        expect_tail(Rows(EXECUTED[31:]), EXECUTED, 10)
    with pytest.raises(CheckFailed, match="instruction 0 of 10"):
        expect_tail(Rows(EXECUTED[29:39]), EXECUTED, 10)


@pytest.mark.parametrize(
    ("kept", "cuts"),
    [
        ([(0, 40)], ()),
        ([(0, 10), (15, 40)], (10,)),
        ([(0, 10)], (10,)),
        ([(5, 40)], (0,)),
        ([(0, 10), (12, 20), (30, 40)], (10, 18)),
    ],
)
def test_pieces_with_stated_losses(kept: list[tuple[int, int]], cuts: tuple[int, ...]) -> None:
    ips = np.concatenate([EXECUTED[begin:end] for begin, end in kept])
    cut = ("TRUNCATED_PACKET at byte 65531",)
    assert expect_parts(Rows(ips, cuts, cut), EXECUTED).startswith(f"{len(ips) / 40:.0%} of 40 instructions")


@pytest.mark.parametrize(
    ("kept", "cuts", "words"),
    [
        ([(0, 10), (15, 40)], (), "instructions 0 to 35 of those decoded were not executed"),
        ([(0, 39)], (), "the last 1 instructions are missing, and no loss is stated"),
        ([(1, 40)], (), "the first 1 instructions are missing, and no loss is stated"),
        ([(20, 30), (0, 10)], (0, 10, 20), "instructions 10 to 20 of those decoded"),
    ],
)
def test_losses_that_are_not_stated(kept: list[tuple[int, int]], cuts: tuple[int, ...], words: str) -> None:
    ips = np.concatenate([EXECUTED[begin:end] for begin, end in kept])
    with pytest.raises(CheckFailed, match=words):
        expect_parts(Rows(ips, cuts), EXECUTED)


def test_return_that_is_wrong_only_if_it_is_compressed(tmp_path: Path) -> None:
    bench = PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED), Rows(changed(7, 1)))
    with pytest.raises(CheckFailed, match="returns, with return compression: instruction 7 of 40"):
        control_flow.compare_returns(bench)
    assert [options["return_compression"] for options in bench.options] == [False, True]


def test_code_outside_of_a_filter(tmp_path: Path) -> None:
    labels = programs.filtered(1).labels
    begin, end = labels["inside"], labels["behind"]
    inside = np.array([begin, begin + 6, end - 1], dtype=np.uint64)
    executed = np.concatenate([[begin - 1], inside, [end, end + 12]]).astype(np.uint64)
    assert "3 instructions of 6" in control_flow.compare_filter(
        PlantedBench(tmp_path, executed, Rows(inside))
    )
    for outside, words in ((end, "the first 0 bytes after it"), (begin - 1, "the first 1 bytes before it")):
        rows = Rows(np.append(inside, np.uint64(outside)))
        with pytest.raises(CheckFailed, match=words):
            control_flow.compare_filter(PlantedBench(tmp_path, executed, rows))
    with pytest.raises(CheckFailed, match="instruction 1 of 3"):
        control_flow.compare_filter(PlantedBench(tmp_path, executed, Rows(inside[[0, 2]])))


def test_regions_and_their_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([{"PMI": 5}, {"PMI": 5}])
    monkeypatch.setattr(output, "interrupts", lambda: next(counts))
    bench = PlantedBench(tmp_path, EXECUTED, Rows(changed(20, 4)))
    with pytest.raises(CheckFailed, match="instruction 20 of 40"):
        output.check_regions(bench)
    with pytest.raises(CheckFailed, match=r"no interrupt .PMI of /proc/interrupts. while 100000 bytes"):
        output.check_interrupts(bench)
    assert len(bench.options) == 1  # both look at one recording


def test_interrupts_that_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([{"PMI": 5}, {"PMI": 7}])
    monkeypatch.setattr(output, "interrupts", lambda: next(counts))
    assert output.check_interrupts(PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED))).startswith(
        "2 interrupts"
    )


def test_trace_that_is_too_short_for_several_regions(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="5 bytes of trace"):
        output.check_regions(PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED), bytes=5))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"IA32_RTIT_CTL": 1}, "TraceEn is still set"),
        ({"IA32_RTIT_CR3_MATCH": 0x1000}, "IA32_RTIT_CR3_MATCH was 0x0 before the recording and is 0x1000"),
    ],
)
def test_registers_that_are_left_changed(
    after: dict[str, int], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {"IA32_RTIT_CTL": 0, "IA32_RTIT_STATUS": 0, "IA32_RTIT_CR3_MATCH": 0}
    values = iter([before, before, before, before | after])
    monkeypatch.setattr(output, "read_registers", lambda cpu: next(values))
    bench = PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED))
    bench.backend = "driver"
    assert output.check_registers(bench).endswith("values as before")
    with pytest.raises(CheckFailed, match=words):
        output.check_registers(bench)


def test_registers_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(cpu: int) -> dict[str, int]:
        raise FileNotFoundError(2, "No such file or directory", "/dev/cpu/0/msr")

    monkeypatch.setattr(output, "read_registers", refuse)
    with pytest.raises(Unavailable, match="modprobe msr"):
        output.check_registers(PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED)))


def test_branch_store_without_the_last_branches(tmp_path: Path) -> None:
    words = branch_records.check_branch_store(PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED[:35])))
    assert words == "88% of 40 instructions"
    with pytest.raises(CheckFailed, match="only 25% of 40 instructions"):
        branch_records.check_branch_store(PlantedBench(tmp_path, EXECUTED, Rows(EXECUTED[:10])))
    with pytest.raises(CheckFailed, match="were not executed in this order"):
        branch_records.check_branch_store(PlantedBench(tmp_path, EXECUTED, Rows(changed(5, 9))))


class SampledBench(PlantedBench):
    """Has branches of samples."""

    def __init__(self, folder: Path, branches: list[tuple[int, int]]) -> None:
        super().__init__(folder, EXECUTED, Rows(EXECUTED))
        ends = np.array(branches, dtype=np.uint64).reshape(-1, 2)
        self._table = {"from_ip": ends[:, 0], "to_ip": ends[:, 1]}

    def record(self, program: programs.Program, **options: Any) -> Taken:
        taken = super().record(program, **options)
        taken.streams = [0]  # type: ignore[misc]
        taken.trace = SimpleNamespace(branches=lambda stream, columns: self._table)  # type: ignore[misc,assignment]
        return taken


def test_branch_stacks_against_single_steps(tmp_path: Path) -> None:
    first, second, third = EXECUTED[:3].tolist()
    kernel = (2**63, 2**63 + 1)
    words = branch_records.check_branch_stacks(
        SampledBench(tmp_path, [(first, second), kernel, (second, third)])
    )
    assert words == "2 branches, 2 different ones, all of them right"
    with pytest.raises(CheckFailed, match="a branch from 0x400000 to 0x40000c, which no single step takes"):
        branch_records.check_branch_stacks(SampledBench(tmp_path, [(first, third)]))
    with pytest.raises(CheckFailed, match="no branch of the program"):
        branch_records.check_branch_stacks(SampledBench(tmp_path, [kernel]))


class KernelBench(PlantedBench):
    """Has instructions of the kernel, too."""

    def __init__(
        self, folder: Path, ips: list[int], causes: list[GapCause], errors: tuple[str, ...] = ()
    ) -> None:
        super().__init__(folder, EXECUTED, Rows(EXECUTED, errors=errors))
        self._table = IpTable(ips, causes)

    def record(self, program: programs.Program, **options: Any) -> Taken:
        taken = super().record(program, **options)
        taken.instructions = lambda: self._table  # type: ignore[method-assign,misc]
        return taken


class IpTable(dict[str, NDArray[np.uint64]]):
    """A table of instructions with gaps."""

    def __init__(self, ips: list[int], causes: list[GapCause]) -> None:
        super().__init__(ip=np.array(ips, dtype=np.uint64))
        self.gaps = {"cause": np.array([int(cause) for cause in causes], dtype=np.uint8)}


KERNEL_IP = 0xFFFFFFFF81000000


@pytest.fixture
def kernel_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kcore").write_bytes(b"")
    monkeypatch.setattr(control_flow, "_KERNEL_CODE", str(tmp_path / "kcore"))


@pytest.mark.usefixtures("kernel_code")
def test_kernel_code_is_continuous(tmp_path: Path) -> None:
    allowed = [GapCause.START, GapCause.OVERFLOW]
    words = control_flow.compare_kernel(KernelBench(tmp_path, [KERNEL_IP, 5, KERNEL_IP + 1], allowed))
    assert words == "40 instructions, and 2 instructions of the kernel"
    with pytest.raises(CheckFailed, match="not continuous: LOST"):
        control_flow.compare_kernel(KernelBench(tmp_path, [KERNEL_IP], [GapCause.LOST]))
    with pytest.raises(CheckFailed, match="no instruction of the kernel"):
        control_flow.compare_kernel(KernelBench(tmp_path, [5], []))
    with pytest.raises(CheckFailed, match="1 decoding error: NO_CODE at byte 3"):
        control_flow.compare_kernel_alone(KernelBench(tmp_path, [KERNEL_IP], [], ("NO_CODE at byte 3",)))


@pytest.mark.usefixtures("kernel_code")
def test_user_code_in_a_trace_of_the_kernel(tmp_path: Path) -> None:
    assert control_flow.compare_kernel_alone(KernelBench(tmp_path, [KERNEL_IP], [])).startswith(
        "1 instruction"
    )
    with pytest.raises(CheckFailed, match="1 instruction of user code"):
        control_flow.compare_kernel_alone(KernelBench(tmp_path, [KERNEL_IP, 5], []))


def test_kernel_code_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_flow, "_KERNEL_CODE", str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="run as root, without lockdown"):
        control_flow.compare_kernel(KernelBench(tmp_path, [KERNEL_IP], []))


@pytest.mark.parametrize(("cpus", "expected"), [([0, 1], [1]), ([None], [0]), ([1, None, 0, 1], [0, 1, 3])])
def test_streams_of_other_processors_are_left_out(cpus: list[int | None], expected: list[int]) -> None:
    trace: Any = SimpleNamespace(streams=[SimpleNamespace(cpu=cpu) for cpu in cpus])
    recording: Any = None
    assert Taken(programs.filtered(1), trace, recording, 1).streams == expected


def test_processor_without_a_stream() -> None:
    trace: Any = SimpleNamespace(streams=[SimpleNamespace(cpu=0)])
    recording: Any = None
    with pytest.raises(CheckFailed, match="nothing was recorded on processor 2"):
        assert Taken(programs.filtered(1), trace, recording, 2).streams
