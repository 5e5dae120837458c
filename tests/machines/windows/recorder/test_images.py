"""Images that are mapped late, or unloaded, or are mapped at another one's addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
from windows_recording import BASE, IMAGE_BYTES, OTHER_THREAD, Recorder, Script, decoded, executed

import ptkit

pytestmark = pytest.mark.slow


def unload(script: Script) -> None:
    script.add("unload", 0, hex(BASE), hex(IMAGE_BYTES))


def opened(folder: Path) -> ptkit.Trace:
    """A bundle by the recorder as it is shipped, for which Wine has no ETW."""
    with pytest.warns(ptkit.PtkitWarning, match="ETW refuses"):
        return ptkit.open(folder / "trace.ptk")


def test_an_image_that_is_told_of_late_has_code_from_the_beginning(recorder: Recorder) -> None:
    script = Script()
    for cpu in range(4):
        script.run(cpu, 500)
    script.map(recorder.image)
    for cpu in range(4):
        script.run(cpu, 500)
    folder = recorder.record("late", script)
    trace = opened(folder)
    assert len(trace.errors) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)
        assert len(executed(folder, cpu)) == 1000


def replaced(recorder: Recorder) -> Script:
    """A DLL is loaded where another one was."""
    script = Script()
    script.know(0, OTHER_THREAD)
    script.map(recorder.image)
    for cpu in range(4):
        script.run(cpu, 700)
    unload(script)
    script.map(recorder.other_image)
    for cpu in range(4):
        script.run(cpu, 900, OTHER_THREAD)
    return script


def check_replaced(trace: ptkit.Trace, folder: Path) -> None:
    assert len(trace.errors) == 0
    for cpu in range(4):
        both = executed(folder, cpu) + executed(folder, cpu, OTHER_THREAD)
        assert decoded(trace, cpu) == both
        assert len(both) == 1600


def test_a_dll_at_the_address_of_another_one(with_events: Recorder) -> None:
    folder = with_events.record("replaced", replaced(with_events))
    check_replaced(ptkit.open(folder / "trace.ptk"), folder)


def test_a_dll_at_the_address_of_another_one_without_etw(recorder: Recorder) -> None:
    folder = recorder.record("replaced-without", replaced(recorder))
    check_replaced(opened(folder), folder)


# Such as code that is generated at run time, which is not recorded.
def test_code_of_an_unloaded_image_is_not_used(with_events: Recorder) -> None:
    script = Script()
    script.know(0, OTHER_THREAD)
    script.map(with_events.image)
    for cpu in range(4):
        script.run(cpu, 700)
    unload(script)
    for cpu in range(4):
        script.run(cpu, 900, OTHER_THREAD)
    folder = with_events.record("unloaded", script)
    trace = ptkit.open(folder / "trace.ptk")
    assert len(trace.errors) > 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)
