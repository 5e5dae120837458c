"""ptkit.record(backend="driver") in Wine, with the driver's test build."""

from __future__ import annotations

import array
from pathlib import Path
from typing import Any

import pytest
from driven_python import DrivenPython
from windows_recording import Recorder, Script, decoded, executed, wait_for, wandering
from wine_python import windows_path

import ptkit

pytestmark = pytest.mark.slow

BLOCKS = 600  # that a step executes on each processor


def question(recorder: Recorder, folder: Path, **options: Any) -> dict[str, Any]:
    """The recording of the traced program with the script of a folder."""
    return {
        "argv": [windows_path(recorder.program), "play", str(folder)],
        "output": windows_path(folder / "trace.ptk"),
        "options": options,
    }


def stepwise(recorder: Recorder, name: str, *steps: str) -> Path:
    """The folder of a program that executes blocks at each step, when it is told to."""
    script = Script()
    script.map(recorder.image)
    for step in steps:
        script.add("wait", f"begin-{step}")
        for cpu in range(4):
            script.run(cpu, BLOCKS)
        script.add("mark", f"done-{step}")
    script.add("wait", "end")
    return recorder.folder(name, script)


def step(folder: Path, name: str) -> list[list[str]]:
    """Has the program do a step, and waits for its end."""
    return [
        ["touch", windows_path(folder / f"begin-{name}")],
        ["wait_for", windows_path(folder / f"done-{name}")],
    ]


def opened(folder: Path) -> ptkit.Trace:
    with pytest.warns(ptkit.PtkitWarning, match="ETW refuses"):
        return ptkit.open(folder / "trace.ptk")


def check_all(folder: Path, blocks: int) -> ptkit.Trace:
    trace = opened(folder)
    assert len(trace.errors) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)
        assert len(executed(folder, cpu)) == blocks
    return trace


def test_a_program_is_recorded_and_decoded_in_one_process(recorder: Recorder, python: DrivenPython) -> None:
    folder = recorder.folder("py-program", wandering(recorder.image, 40000))
    answer = python.answer(folder, question(recorder, folder) | {"decode": True})
    assert answer["started"] == ["driver"]
    assert (answer["exit_status"], answer["streams"], answer["interrupted"]) == (0, 4, False)
    assert any("ETW refuses" in text for text in answer["warnings"])
    trace = check_all(folder, 10000)
    rows = array.array("Q")
    rows.frombytes((folder / "rows.u64").read_bytes())
    table = trace.instructions(columns=["ip", "cpu"])
    assert answer["rows"] == len(table) > 100_000
    assert answer["errors"] == 0
    assert rows[: len(table)].tolist() == table["ip"].tolist()
    assert rows[len(table) :].tolist() == table["cpu"].tolist()


def test_stop_ends_the_program_too(recorder: Recorder, python: DrivenPython) -> None:
    folder = stepwise(recorder, "py-stop", "one")
    asked = question(recorder, folder) | {"steps": [*step(folder, "one"), ["stop"]]}
    answer = python.answer(folder, asked)
    assert answer["interrupted"]
    assert answer["started"][1] > 0
    assert answer["exit_status"] == 1  # Wine sends no Ctrl-Break: the program was ended by force
    check_all(folder, BLOCKS)


def test_detach_leaves_the_program_to_its_end(recorder: Recorder, python: DrivenPython) -> None:
    folder = stepwise(recorder, "py-detach", "one", "two")
    end = [["touch", windows_path(folder / "end")]]
    asked = question(recorder, folder) | {
        "steps": [*step(folder, "one"), ["detach"], ["settle"], *step(folder, "two"), *end]
    }
    answer = python.answer(folder, asked)
    assert (answer["exit_status"], answer["interrupted"]) == (0, False)
    trace = opened(folder)
    assert [len(decoded(trace, cpu)) for cpu in range(4)] == [BLOCKS] * 4


def test_nothing_is_traced_in_a_pause(recorder: Recorder, python: DrivenPython) -> None:
    folder = stepwise(recorder, "py-pause", "one", "two", "three")
    asked = question(recorder, folder) | {
        "steps": [
            *step(folder, "one"), ["pause"], ["settle"], *step(folder, "two"), ["resume"], ["settle"],
            *step(folder, "three"), ["touch", windows_path(folder / "end")],
        ]
    }  # fmt: skip
    answer = python.answer(folder, asked)
    assert answer["exit_status"] == 0
    trace = opened(folder)
    assert [len(decoded(trace, cpu)) for cpu in range(4)] == [2 * BLOCKS] * 4


def test_snapshots_keep_what_the_ring_had(recorder: Recorder, python: DrivenPython) -> None:
    folder = stepwise(recorder, "py-snapshot", "one", "two")
    end = [["touch", windows_path(folder / "end")]]
    asked = question(recorder, folder, ring="64K") | {
        "steps": [*step(folder, "one"), ["snapshot"], ["settle"], *step(folder, "two"), *end]
    }
    answer = python.answer(folder, asked)
    assert answer["snapshots"] == 1
    check_all(folder, 2 * BLOCKS)


def test_ctrl_c_ends_the_recording_and_keeps_it(
    recorder: Recorder, python: DrivenPython, press_ctrl_c: Path
) -> None:
    folder = stepwise(recorder, "py-ctrl-c", "one")
    file = folder / "press"
    process = python.begin(folder, question(recorder, folder), press_ctrl_c, file)
    (folder / "begin-one").touch()
    wait_for(folder / "done-one", process)
    file.touch()
    assert python.end(process, folder)["interrupted"]
    check_all(folder, BLOCKS)


def test_processors_are_recorded_for_some_time(recorder: Recorder, python: DrivenPython) -> None:
    folder = recorder.folder("py-cpus", Script())
    asked = question(recorder, folder, cpus=[1], seconds=0.5) | {"argv": []}
    answer = python.answer(folder, asked)
    assert (answer["streams"], answer["limited"]) == (1, True)


def test_the_code_of_a_driver_is_recorded(recorder: Recorder, python: DrivenPython) -> None:
    folder = recorder.folder("py-driver", Script())
    options = {"cpus": "all", "levels": "kernel", "filters": "filter * @ mountmgr.sys", "seconds": 0.3}
    python.answer(folder, question(recorder, folder, **options) | {"argv": []})
    with pytest.warns(ptkit.PtkitWarning) as warned:
        trace = ptkit.open(folder / "trace.ptk")
    assert "mountmgr.sys" in " ".join(str(one.message) for one in warned)
    assert "filter range:  [0x10400000, 0x105fffff]" in str(trace.info)


def test_branch_trace_store_is_recorded(recorder: Recorder, python: DrivenPython) -> None:
    folder = recorder.folder("py-bts", wandering(recorder.image, 4000))
    python.answer(folder, question(recorder, folder, bts=True, buffer="256K"))
    with pytest.warns(ptkit.PtkitWarning):
        trace = ptkit.open(folder / "trace.ptk")
    assert len(trace.branches(columns=["to_ip"])) > 1000


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"per_thread": True}, "UnsupportedError", "per_thread: Windows calls no driver"),
        ({"filters": "filter main"}, "UnsupportedError", "filters: the function main"),
        ({"levels": "kernel", "filters": "filter * @ a.sys"}, "ConfigError", "kernel driver a.sys"),
        ({"with_debug": True}, "UnsupportedError", "with_debug: "),
        ({"owner": "root"}, "ConfigError", "owner: files of Windows"),
        ({"branch_stack": True}, "ConfigError", "backend 'driver': it has no branch_stack"),
        ({"psb_period": 5000}, "ConfigError", "psb_period: expected a power of two"),
        ({"cpus": [999]}, "ConfigError", "cpus: expected numbers below 4"),
    ],
)
def test_wrong_options_get_one_line(
    recorder: Recorder, python: DrivenPython, tmp_path: Path,
    options: dict[str, Any], error: str, words: str,
) -> None:  # fmt: skip
    asked = question(recorder, tmp_path, **options)
    asked["argv"] = [] if "cpus" in options else ["cmd", "/c", "exit"]
    answer = python.answer(tmp_path, asked)
    assert answer["error"] == error
    assert words in answer["text"]
    assert "\n" not in answer["text"]
    assert not (tmp_path / "trace.ptk").exists()


def test_a_missing_program_gets_one_line(recorder: Recorder, python: DrivenPython, tmp_path: Path) -> None:
    asked = question(recorder, tmp_path) | {"argv": ["no-such-program"]}
    answer = python.answer(tmp_path, asked)
    assert answer["error"] == "ConfigError"
    assert "there is no program 'no-such-program'" in answer["text"]


def test_doctor_says_what_ptkit_capture_says(
    recorder: Recorder, python: DrivenPython, tmp_path: Path
) -> None:
    said = python.answer(tmp_path, {"command": ["doctor"]})["printed"]
    for line in recorder.wine.run(recorder.recorder, "doctor").splitlines():
        assert line in said
    assert "uses: driver" in said
