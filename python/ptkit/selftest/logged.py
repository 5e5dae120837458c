"""Recordings with a log of what was executed, for checks and tests that compare decoders with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import ptkit
from ptkit.capture.options import path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.capture import Options

__all__ = ["LoggedRecorder"]


class LoggedRecorder(ptkit.Recorder):
    """A recorder by ``emulator`` or ``step`` that writes execution logs.

    Parameters
    ----------
    argv, output, **options
        As of `ptkit.Recorder`.
    truth : path, optional
        A folder for ``stream-N.u64``: the IP of every instruction that stream N executed, 64 bits each.
    transfers : path, optional
        A folder for ``stream-N.transfers``: every transfer of control with the stack pointer after it
        (docs/emulator.md). Only for ``emulator``.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        output: str | os.PathLike[str] | None = None,
        *,
        truth: str | os.PathLike[str] | None = None,
        transfers: str | os.PathLike[str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(argv, output, **options)
        for name, folder in (("truth", truth), ("transfers", transfers)):
            if folder is not None:
                self._plan.arguments[name] = path_of(name, folder)
