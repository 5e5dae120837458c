"""Runs in Wine: records as a JSON file asks, and answers with what came of it.

record_in_wine.py QUESTION   writes answer.json to the folder of QUESTION, and rows.u64 if "decode" is true
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ptkit

SECONDS = 120


def wait_for(path: str) -> None:
    end = time.monotonic() + SECONDS
    while not Path(path).exists():
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.05)


def take_steps(recorder: ptkit.Recorder, steps: list[list[str]]) -> None:
    """Controls a recording. A step is a method of the recorder, or a file to wait for or to make."""
    for step, *names in steps:
        if step == "wait_for":
            wait_for(names[0])
        elif step == "touch":
            Path(names[0]).touch()
        elif step == "settle":
            time.sleep(1)  # the loop of the recorder follows a request within 0.1 s
        else:
            getattr(recorder, step)()


def recorded(asked: dict[str, Any]) -> dict[str, Any]:
    import ptkit

    recorder = ptkit.Recorder(asked["argv"], asked["output"], backend="driver", **asked["options"])
    started: list[object] = [recorder.backend]
    if asked.get("steps") is not None:
        recorder.start()
        started.append(recorder.pid)
        take_steps(recorder, asked["steps"])
    recording = recorder.run()
    answer: dict[str, Any] = {
        name: getattr(recording, name)
        for name in ("exit_status", "streams", "trace_bytes", "bundle_bytes", "snapshots", "interrupted")
    }
    answer |= {
        "started": started,
        "limited": recording.limited,
        "warnings": [str(one) for one in recording.warnings],
        "progress": recorder.progress.trace_bytes,
    }
    return answer


def save_rows(bundle: str, file: Path) -> dict[str, Any]:
    """Decodes the bundle here, in Wine."""
    import numpy as np

    import ptkit

    trace = ptkit.open(bundle)
    table = trace.instructions(columns=["ip", "cpu"])
    rows = np.stack([table["ip"], table["cpu"].astype(np.uint64)])
    rows.astype("<u8").tofile(file)
    return {"rows": rows.shape[1], "errors": len(trace.errors)}


def printed(command: list[str]) -> str:
    """The output of a command of ptkit."""
    from ptkit.cli import main as ptkit_main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        ptkit_main(command)
    return output.getvalue()


def answer_to(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    import ptkit

    warnings.simplefilter("ignore", ptkit.PtkitWarning)
    if "command" in asked:
        return {"printed": printed(asked["command"])}
    try:
        answer = recorded(asked)
    except ptkit.PtkitError as error:
        return {"error": type(error).__name__, "text": str(error)}
    if asked.get("decode"):
        answer |= save_rows(asked["output"], folder / "rows.u64")
    return answer


def main(file: Path) -> None:
    try:
        answer = answer_to(json.loads(file.read_text(encoding="utf-8")), file.parent)
    except BaseException:
        answer = {"traceback": traceback.format_exc()}
    part = file.parent / "answer.part"
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(file.parent / "answer.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
