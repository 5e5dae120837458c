"""The Windows driver over a model of the processors: natively under ASan and UBSan, and in Wine.

What the driver handed over is decoded here, and compared with what the model executed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from windows_driver import TESTS, build_client, build_natively, case_sources
from wine import Wine

CASES = re.findall(r"\bCASE\((\w+)\)", (TESTS / "driver_test.c").read_text())[1:]
FUZZ = "survives_nonsense"
FUZZ_SECONDS = int(os.environ.get("PTKIT_FUZZ_SECONDS", "60"))
BLOCK_BYTES = 32  # as program.h has it
TRACED, STORED, BRANCH = (np.uint64(1 << bit) for bit in (63, 62, 61))
GIVEN_BACK = "unloaded, and all was given back"

# Cases with streams that hold all that was traced, each with the number of its streams.
WHOLE = {
    "traces_until_the_buffer_is_full": 2,
    "hands_over_while_it_traces": 1,
    "hands_over_to_another_thread": 1,
    "loses_nothing_at_the_end": 40,
    "goes_on_after_a_pause": 1,
    "follows_a_thread_from_cpu_to_cpu": 4,
    "traces_one_process": 1,
    "traces_user_code_alone": 2,
    "traces_a_range": 1,
    "compresses_returns_or_not": 2,
    "waits_for_the_reader": 5,
    "goes_on_after_sleep": 1,
    "goes_on_after_swallowed_interrupts": 2,
    "goes_on_without_interrupts": 2,
    "goes_on_where_it_was_cleared": 1,
}
# Streams that end, at the end of the buffer, in a packet: what that and TNT bits before it stand for is lost.
# A stream that begins after such an end can be decoded from its first PSB on, after 2 KiB at most.
CUT = ("traces_until_the_buffer_is_full.2", *(f"waits_for_the_reader.{number}" for number in range(5)))
MOST_CUT_BLOCKS = 40
MOST_BLOCKS_BEFORE_PSB = 5000
RINGS = {"keeps_the_newest_bytes": 4, "keeps_the_newest_bytes_of_one_range": 4}

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Run:
    """All cases, run one after the other."""

    folder: Path
    lines: list[str]
    unloads: list[str]

    def said_by(self, case: str) -> list[str]:
        """The lines of a case, with its result."""
        end = next(i for i, line in enumerate(self.lines) if line.split()[-1:] == [case])
        begin = max((i + 1 for i in range(end) if self.lines[i].startswith(("ok ", "not ok "))), default=0)
        return self.lines[begin : end + 1]

    def log(self, case: str, number: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Blocks that the model executed for a stream."""
        return np.fromfile(self.folder / f"{case}.{number}.log", "<u8")


def run_natively(folder: Path, objects: list[Path]) -> Run:
    program = build_natively(folder / "driver_test", objects, *case_sources())
    environment = os.environ | {"PTKIT_FUZZ_SECONDS": str(FUZZ_SECONDS // 4)}
    done = subprocess.run(
        [program], cwd=folder, env=environment, capture_output=True, text=True, timeout=300 + FUZZ_SECONDS
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return Run(folder, done.stdout.splitlines(), re.findall(r"^# (unloaded.*)", done.stderr, re.MULTILINE))


def run_in_wine(driver: Path, wine: Wine) -> Run:
    shutil.copy(driver, wine.folder)
    client = build_client(wine.folder / "driver_test.exe", *case_sources())
    said = wine.run(client, seconds=300 + FUZZ_SECONDS, environment={"PTKIT_FUZZ_SECONDS": str(FUZZ_SECONDS)})
    unloads = (wine.folder / "prefix" / "drive_c" / "ptkit-unloaded.txt").read_text().splitlines()
    return Run(wine.folder, said.splitlines(), unloads)


@pytest.fixture(scope="module", params=["natively", "in_wine"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    if request.param == "natively":
        yield run_natively(tmp_path_factory.mktemp("windows"), request.getfixturevalue("native_driver"))
    else:
        yield run_in_wine(request.getfixturevalue("model_driver"), request.getfixturevalue("wine"))


@pytest.fixture(scope="module")
def blocks_of(run: Run, open_trace: Callable[..., Any]) -> Callable[[str, int], Any]:
    """The addresses of the blocks that a stream has, in order."""
    images = {}
    for path in sorted(run.folder.glob("program.*.code")):
        content = path.read_bytes()
        images[int.from_bytes(content[:8], "little")] = content[16:]
    assert len(images) == 2

    def decode(case: str, number: int) -> Any:
        stream = (run.folder / f"{case}.{number}.pt").read_bytes()
        trace = open_trace(stream, images=[images])
        ips = np.asarray(trace.instructions()["ip"])
        last_packet = len(stream) - 9
        assert (np.asarray(trace.errors["offset"]) >= last_packet).all()
        return ips[ips % BLOCK_BYTES == 0]

    return decode


def addresses(log: Any) -> Any:
    """Of the blocks in a log, without its flags."""
    return ((log << np.uint64(3)).astype(np.int64) >> 3).astype(np.uint64)


def first_of(blocks: Any, executed: Any) -> int:
    """Where the blocks begin among those that were executed."""
    for begin in range(MOST_BLOCKS_BEFORE_PSB):
        if np.array_equal(executed[begin : begin + 100], blocks[:100]):
            return begin
    pytest.fail("the stream begins with none of the executed blocks")


@pytest.mark.parametrize("case", CASES)
def test_case(run: Run, case: str) -> None:
    assert run.said_by(case)[-1] == f"ok {case}", "\n".join(run.said_by(case))


def test_each_unload_gives_all_back(run: Run) -> None:
    assert len(run.unloads) >= len(CASES)
    assert set(run.unloads) == {GIVEN_BACK}


def test_random_requests_are_many(run: Run) -> None:
    (line,) = (line for line in run.said_by(FUZZ) if "random requests" in line)
    assert int(line.split()[1]) > 100 * FUZZ_SECONDS


@pytest.mark.parametrize("case", WHOLE)
def test_stream_has_each_instruction(run: Run, blocks_of: Callable[[str, int], Any], case: str) -> None:
    """As many as the model traced, in its order, from the first to the last one."""
    numbers = sorted(int(path.suffixes[-2][1:]) for path in run.folder.glob(f"{case}.*.pt"))
    assert len(numbers) == WHOLE[case]
    for number in numbers:
        log = run.log(case, number)
        traced = addresses(log[(log & TRACED) != 0])
        assert len(traced) > 0
        blocks = blocks_of(case, number)
        if f"{case}.{number}" in CUT:
            begin = first_of(blocks, addresses(log))
            assert abs(begin + len(blocks) - len(traced)) < MOST_CUT_BLOCKS
            traced = addresses(log)[begin : begin + len(blocks)]
        np.testing.assert_array_equal(blocks, traced)


@pytest.mark.parametrize("case", RINGS)
def test_ring_has_the_newest_instructions(run: Run, blocks_of: Callable[[str, int], Any], case: str) -> None:
    for number in range(RINGS[case]):
        traced = addresses(run.log(case, number))
        blocks = blocks_of(case, number)
        assert len(blocks) > min(len(traced) - 1, 20000)
        np.testing.assert_array_equal(blocks, traced[len(traced) - len(blocks) :])


def branch_records(run: Run, case: str, number: int) -> Any:
    """Records of branches without the driver's marks and padding: from, to."""
    words = np.fromfile(run.folder / f"{case}.{number}.bts", "<u8")
    records = words[: len(words) // 3 * 3].reshape(-1, 3)
    return records[records[:, 0] != 0]


def stored_branches(log: Any) -> Any:
    """From which block and to which address, of branches that the model stored."""
    blocks = addresses(log)
    following = np.append(blocks[1:], np.uint64(0))
    stored = (log & STORED) != 0
    return np.stack([blocks[stored], following[stored]], axis=1)


def same_branches(records: Any, expected: Any) -> bool:
    """The last one's target is not in the log; switches of threads hide some, too."""
    blocks = records[:, 0] // np.uint64(BLOCK_BYTES) * np.uint64(BLOCK_BYTES)
    targets = (records[:, 1] != expected[:, 1]).sum()
    return bool(np.array_equal(blocks, expected[:, 0]) and targets <= 1 + len(records) // 400)


@pytest.mark.parametrize(("case", "number"), [("stores_every_branch", 0), ("stores_every_branch", 1)])
def test_branches_are_those_that_were_stored(run: Run, case: str, number: int) -> None:
    records = branch_records(run, case, number)
    log = run.log(case, number)
    expected = stored_branches(log)
    assert len(records) == len(expected)
    assert same_branches(records, expected)
    if number == 0:
        assert ((log & STORED) != 0).sum() == ((log & BRANCH) != 0).sum()


def test_branches_of_one_level(run: Run) -> None:
    for kernel in (0, 1):
        records = branch_records(run, "stores_branches_of_one_level", kernel)
        expected = stored_branches(run.log("stores_branches_of_one_level", kernel))
        assert len(records) == len(expected) > 1000
        assert set(records[:, 0] >> np.uint64(63)) == {kernel}


def test_branch_ring_has_the_newest_branches(run: Run) -> None:
    words = np.fromfile(run.folder / "keeps_the_newest_branches.0.bts", "<u8").reshape(-1, 3)
    records = words[words[:, 0] != 0]
    expected = stored_branches(run.log("keeps_the_newest_branches", 0))
    assert len(records) > 2000
    assert same_branches(records, expected[len(expected) - len(records) :])
