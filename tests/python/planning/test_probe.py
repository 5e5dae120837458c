"""What a probe tries, and what it leaves behind, with a recorder that refuses options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

import ptkit
from ptkit.planning import probe


class Fake:
    """A recorder that takes only some options."""

    backend = "perf"
    takes: frozenset[str] = frozenset()
    started: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, command: list[str], output: Path, **options: Any) -> None:
        self.options = options

    def start(self) -> Fake:
        self.started.append(self.options)
        for name in ("buffer", "cyc"):
            if (name in self.options or name in self.options.get("timing", ())) and name not in self.takes:
                raise ptkit.UnsupportedError(f"{name} is refused")
        if "levels" in self.options:
            raise ptkit.ConfigError("levels: refused in any case")
        return self


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    monkeypatch.setattr(probe, "Recorder", Fake)
    monkeypatch.setattr(Fake, "started", [])
    return Fake


@pytest.mark.parametrize(
    ("takes", "timing", "attempts", "large"),
    [
        ({"buffer", "cyc"}, ("tsc", "mtc", "cyc"), 1, True),
        ({"cyc"}, ("tsc", "mtc", "cyc"), 2, False),
        ({"buffer"}, ("tsc", "mtc"), 3, True),
        (set(), ("tsc", "mtc"), 4, False),
    ],
)
def test_all_packets_and_large_buffers_are_tried_first(
    fake: type[Fake], takes: set[str], timing: tuple[str, ...], attempts: int, large: bool
) -> None:
    fake.takes = frozenset(takes)
    recorder, attempt, refused = probe._started([], Path("x"), {"pid": 1})
    assert attempt.get("timing", ("tsc", "mtc")) == timing
    assert (refused is None) is (attempts == 1)
    assert len(fake.started) == attempts
    assert ("buffer" in recorder.options) is large  # type: ignore[attr-defined]
    assert all(options["pid"] == 1 for options in fake.started)


def test_a_refusal_of_the_plain_recording_is_raised(fake: type[Fake]) -> None:
    fake.takes = frozenset({"buffer", "cyc"})
    with pytest.raises(ptkit.ConfigError, match="levels: refused in any case"):
        probe._started([], Path("x"), {"levels": "both"})


def test_a_large_buffer_is_a_power_of_two_that_leaves_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for free, size in ((1 << 40, 64 << 20), (100 << 20, 2 << 20), (0, 64 << 10)):
        monkeypatch.setattr(probe, "available_memory", lambda free=free: free)
        assert probe._large_buffer() == size


def test_available_memory_is_known() -> None:
    assert probe.available_memory() > 1 << 20


def test_a_family_has_children_and_their_children() -> None:
    child = f"{sys.executable} -c 'import time; time.sleep(60)'"
    with subprocess.Popen(["sh", "-c", f"{child} & wait"]) as shell:
        assert wait_for(lambda: len(probe._family(shell.pid)) == 2)
        family = probe._family(shell.pid)
        assert family[0] == shell.pid
        probe._signal(family, 15)
        assert shell.wait(10) != 0
    assert wait_for(lambda: not Path(f"/proc/{family[1]}").exists())
