"""Recordings by ptkit-capture.exe in Wine, with the driver's test build, decoded here."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from windows_recording import BRANCH, IP, STORED, Recorder, decoded, executed, stays, wait_for, wandering
from wine import SECONDS

import ptkit

pytestmark = pytest.mark.slow


def opened(folder: Path, words: str = "Windows calls no driver at a context switch") -> ptkit.Trace:
    """The bundle, which says what it cannot tell."""
    with pytest.warns(ptkit.PtkitWarning, match=words):
        return ptkit.open(folder / "trace.ptk")


def branch_targets(folder: Path, cpu: int) -> list[int | None]:
    """Where taken branches led, of all threads that ran on a processor.

    The last block of a thread is followed by one that was not executed: None.
    """
    targets: dict[int, list[int | None]] = {}
    for stay in stays(folder):
        targets.setdefault(stay.thread, []).extend(entry & IP for entry in stay.entries)
    for blocks in targets.values():
        blocks.append(None)
    next_target = dict.fromkeys(targets, 0)
    found = []
    for stay in stays(folder):
        for entry in stay.entries:
            next_target[stay.thread] += 1
            after = targets[stay.thread][next_target[stay.thread]]
            if stay.cpu == cpu and entry & BRANCH:
                assert entry & STORED
                found.append(after)
    return found


def test_recorded_program_is_what_the_model_executed(recorder: Recorder) -> None:
    folder = recorder.record("program", wandering(recorder.image, 40000))
    trace = opened(folder)
    assert len(trace.errors) == 0
    assert len(trace.gaps) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)


def test_nothing_is_lost_of_buffers_that_are_filled_again_and_again(recorder: Recorder) -> None:
    folder = recorder.record("wraps", wandering(recorder.image, 1_200_000), "-m", "64K")
    trace = opened(folder)
    assert len(trace.instructions(columns=["ip"])) > 10_000_000
    assert len(trace.errors) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)


def test_a_ring_has_the_newest_blocks(recorder: Recorder) -> None:
    folder = recorder.record("ring", wandering(recorder.image, 400_000), "--ring", "16K")
    trace = opened(folder)
    for cpu in range(4):
        found, all_blocks = decoded(trace, cpu), executed(folder, cpu)
        assert 1000 < len(found) < len(all_blocks)
        assert found == all_blocks[-len(found) :]


@pytest.mark.parametrize(("verb", "options"), [("record", ["--bts"]), ("bts", [])])
def test_branch_trace_store_has_each_taken_branch(recorder: Recorder, verb: str, options: list[str]) -> None:
    script = wandering(recorder.image, 40000)
    folder = recorder.record(f"branches-{verb}", script, *options, "-m", "256K", verb=verb)
    trace = opened(folder)
    table = trace.branches(columns=["to_ip", "taken", "cpu"])
    for cpu in range(4):
        found = [int(to) for to in table["to_ip"][table["taken"] & (table["cpu"] == cpu)]]
        expected = branch_targets(folder, cpu)
        assert len(found) == len(expected) > 1000
        assert all(is_ == wanted or wanted is None for is_, wanted in zip(found, expected, strict=True))


def test_killed_recorder_ends_the_session(recorder: Recorder) -> None:
    script = wandering(recorder.image, 40000)
    script.add("mark", "done")
    script.add("wait", "end")
    script.add("traced", 0)
    script.add("mark", "untraced")
    folder = recorder.folder("killed", script)
    log = recorder.wine.folder / "killed.log"
    process = recorder.wine.begin(log, recorder.recorder, *recorder.command(folder), environment={})
    wait_for(folder / "done", process)
    time.sleep(1.5)  # what is older than a second was flushed
    process.kill()
    process.wait(SECONDS)
    (folder / "end").touch()
    wait_for(folder / "untraced", None)
    trace = opened(folder, "")
    assert decoded(trace, 0) == executed(folder, 0)[: len(decoded(trace, 0))]
    assert len(decoded(trace, 0)) > 1000
    # Another session has no processor any more.
    again = recorder.record("after_killed", wandering(recorder.image, 4000))
    assert decoded(opened(again), 1) == executed(again, 1)


def test_closing_another_handle_of_the_driver_ends_no_session(recorder: Recorder) -> None:
    script = wandering(recorder.image, 4000)
    script.add("close")
    script.lines += wandering(recorder.image, 4000).lines
    folder = recorder.record("closed", script)
    trace = opened(folder)
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)
        assert len(executed(folder, cpu)) > 1500
