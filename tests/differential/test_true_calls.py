"""Frames of `trace.calls()` against true ones, which are built from stack pointers (`call_truth`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_code import code_of
from call_comparison import differences, of_table, of_truth, report
from call_log import read_log
from call_truth import true_frames
from compiling import build, compiled_by

import ptkit
from ptkit import capture
from ptkit.selftest.logged import LoggedRecorder

pytestmark = pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)


def _c(name: str, *flags: str) -> Callable[[Path], Path]:
    return lambda folder: build(name, folder, "-fcf-protection=none", *flags)


def _rust(name: str, *flags: str) -> Callable[[Path], Path]:
    return lambda folder: compiled_by("rustc", f"{name}.rs", folder, "-O", *flags)


_INLINE = ("-mindirect-branch=thunk-inline",)

PROGRAMS: dict[str, Callable[[Path], Path]] = {
    "recursion": _c("calls/recursion"),
    "tails": _c("calls/tails", "-O2"),
    "stubs": _c("calls/stubs", "-O2"),
    "pic-thunks": _c("calls/thunks"),
    "pointers": _c("calls/indirect", "-O2"),
    "retpolines": _c("calls/indirect", "-O2", "-mindirect-branch=thunk"),
    "return-thunks": _c("calls/indirect", "-O2", "-mfunction-return=thunk"),
    "both-thunks": _c("calls/indirect", "-O2", "-mindirect-branch=thunk", "-mfunction-return=thunk"),
    "hand-made-retpolines": _c("calls/retpolines", "-O2"),
    "inline-retpolines": _c("calls/retpolines", "-O2", *_INLINE, "-fjump-tables"),
    "inline-registers": _c("calls/retpolines", "-O2", *_INLINE, "-mindirect-branch-register"),
    "inline-returns": _c("calls/retpolines", "-O1", *_INLINE, "-mfunction-return=thunk-inline"),
    "slow-inline-retpolines": _c("calls/retpolines", "-O0", *_INLINE, "-Wl,-z,lazy"),
    "unwinding": _c("calls/unwind", "-O2"),
    "exceptions": _c("exceptions"),
    "cancelled": _c("calls/cancel"),
    "longjmp": _c("calls/jumps"),
    "handlers": _c("calls/handlers"),
    "signals": _c("signals"),
    "threads": _c("threads"),
    "forks": _c("forks"),
    "children": _c("calls/children"),
    "coroutines": _c("calls/coroutines"),
    "panic": _rust("calls/panic"),
    "static-recursion": _c("calls/recursion", "-static"),
    "static-stubs": _c("calls/stubs", "-O2", "-static"),
    "static-thunks": _c(
        "calls/indirect", "-O2", "-mindirect-branch=thunk", "-mfunction-return=thunk", "-static"
    ),
    "static-inline-retpolines": _c("calls/retpolines", "-O2", *_INLINE, "-static"),
    "static-panic": _rust("calls/panic", "-C", "target-feature=+crt-static"),
    "static-unwinding": _c("calls/unwind", "-O2", "-static"),
    "static-cancelled": _c("calls/cancel", "-static"),
    "static-longjmp": _c("calls/jumps", "-static"),
    "static-handlers": _c("calls/handlers", "-static"),
    "static-threads": _c("threads", "-static"),
    "static-coroutines": _c("calls/coroutines", "-static"),
}


def check(trace: ptkit.Trace, folder: Path) -> tuple[int, list[str]]:
    """How many rows differ, and what differs in each stream."""
    table: Any = trace.calls()
    rows, texts = 0, []
    for number, stream in enumerate(trace.streams):
        code = code_of(trace, stream.space)
        true = of_truth(true_frames(read_log(folder / f"stream-{number}.transfers", code)))
        found = of_table(table[np.flatnonzero(table["stream"] == number)])
        rows += differences(found, true).rows
        texts.append(f"stream {number}, {stream.name}: {report(found, true, code)}")
    return rows, texts


@pytest.mark.parametrize("compressed", [True, False], ids=["compressed", "plain"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_are_true(name: str, compressed: bool, tmp_path: Path) -> None:
    """With and without return compression."""
    form: dict[str, Any] = {"return_compression": compressed, "quiet": True, "transfers": tmp_path}
    recording = LoggedRecorder(
        [PROGRAMS[name](tmp_path)], tmp_path / "out.ptk", backend="emulator", **form
    ).run()
    assert not recording.warnings
    rows, texts = check(ptkit.open(recording), tmp_path)
    assert rows == 0, "\n".join(texts)
