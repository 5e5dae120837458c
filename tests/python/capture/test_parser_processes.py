"""A recorder with privileges has files parsed by processes that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

from ptkit import _core, capture

WORKING = [one.name for one in capture.probe() if one.available]
NAME = "ptkit-parser"

pytestmark = pytest.mark.skipif(
    not WORKING,
    reason="no way of recording here: " + "; ".join(f"{one.name}: {one.missing}" for one in capture.probe()),
)


def children(parent: int) -> dict[int, str]:
    """Names of the children of process `parent`."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if lines.get("PPid") == str(parent):
            found[int(status.parent.name)] = lines["Name"]
    return found


@pytest.mark.parametrize("backend", WORKING)
def test_no_child_is_left_by_a_recording(tmp_path: Path, backend: str, brief: str) -> None:
    code = (
        "import os, sys\n"
        "import ptkit\n"
        f"ptkit.Recorder([{brief!r}], sys.argv[1], backend=sys.argv[2]).run()\n"
        "try:\n"
        "    ptkit.Recorder(['/nowhere/at/all'], sys.argv[1], backend=sys.argv[2]).run()\n"
        "except Exception:\n"
        "    print('refused')\n"
        "try:\n"
        "    print(os.waitpid(-1, os.WNOHANG))\n"
        "except ChildProcessError:\n"
        "    print('no child')\n"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "out.ptk"), backend]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "refused\nno child\n"


# A killed emulator leaves the folder of its socket.
@pytest.mark.parametrize("backend", [one for one in WORKING if one != "emulator"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_parser_ends_with_the_recorder(tmp_path: Path, backend: str, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "ptkit", "record", "-q", "--backend", backend, "-o"]
    run = [*command, str(tmp_path / "out.ptk"), "--", "sleep", "1000"]
    recorder = subprocess.Popen(run, start_new_session=True)
    program: list[int] = []
    try:

        def started() -> bool:
            # A child that has not executed its program yet has the recorder's name.
            program[:] = [pid for pid, name in children(recorder.pid).items() if name == "sleep"]
            return bool(program) and (tmp_path / "out.ptk").exists()

        def parser_pids() -> list[int]:
            return [pid for pid, name in children(recorder.pid).items() if name == NAME]

        assert wait_for(started)
        assert wait_for(lambda: len(parser_pids()) == (1 if os.geteuid() == 0 else 0))
        parsers = parser_pids()
        for pid in parsers:
            assert Path(f"/proc/{pid}/exe").readlink() == Path(_core.__file__).with_name(NAME)
            assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        recorder.send_signal(end)
        recorder.wait(60)
        assert wait_for(lambda: not any(is_running(pid) for pid in parsers))
    finally:
        recorder.kill()
        recorder.wait()
        for pid in program:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
