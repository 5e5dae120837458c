"""The recorder by single steps, with the methods of the emulator's recorder."""

from __future__ import annotations

from typing import Any

from ptkit import _core
from ptkit.errors import UnsupportedError

__all__ = ["StepRecorder"]


class StepRecorder:
    """Runs a program by single steps."""

    pid = 0  # the core does not report it

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments
        self._stopped = False
        self._instructions = 0

    def run(self) -> dict[str, Any]:
        """Record until the program ends or `request_stop` was called."""
        return _core.record_steps(**self._arguments, progress=self._at)

    def _at(self, instructions: int) -> None:
        self._instructions = instructions
        if self._stopped:
            raise KeyboardInterrupt  # the core ends, and keeps what was recorded

    def request_stop(self) -> None:
        """End the recording: SIGINT for the program."""
        self._stopped = True

    def progress(self) -> tuple[int, int]:
        """Instructions, and no bytes of trace."""
        return self._instructions, 0

    def _missing(self) -> None:
        raise UnsupportedError("backend 'step' can only be stopped; use backend='emulator'")

    request_detach = snapshot = pause = resume = _missing
