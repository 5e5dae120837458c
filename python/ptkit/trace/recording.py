"""Recorders that open their recording as a trace."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptkit.capture.recorder import BundleRecorder
from ptkit.errors import FormatError
from ptkit.support.arguments import flag
from ptkit.trace.facade import Trace
from ptkit.trace.opening.opening import open

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ptkit import capture

__all__ = ["Recorder", "record"]


class Recorder(BundleRecorder):
    """Runs a program and records it; or records processes that run already (`pid`, `cpus`).

    Entering the block starts the program; leaving it waits for the program's end, or ends the recording if an
    exception leaves the block. Standard input and output pass through.

    Parameters
    ----------
    argv : sequence of str or path
        Program (searched for in PATH) and arguments; empty with the option `pid`, and maybe with `cpus`.
    output : path, optional
        The bundle to write; by default a temporary file that is removed with the recorder and its trace.
    **options
        See `ptkit.capture.Options`.

    Raises
    ------
    ConfigError
        If an option is out of range or there is no such program.
    UnsupportedError
        If the back end does not work on this system.

    Examples
    --------
    >>> import ptkit
    >>> with ptkit.Recorder(["sh", "-c", "sleep 0.1"]) as recorder:
    ...     finished = recorder.wait(timeout=0.001)
    >>> finished, recorder.recording.exit_status
    (False, 0)
    >>> len(recorder.trace.branches()) > 1000
    True
    """

    _trace: Trace | None = None

    def start(self) -> Self:
        """Run the program; recording goes on in the background.

        Raises
        ------
        OpenError
            If the bundle cannot be written.
        ConfigError, UnsupportedError
            If the recorder refuses the options, or the program.
        """
        super().start()
        if self._temporary:
            self._removal = self._remove_with(self)
        return self

    def _remove_with(self, owner: object) -> weakref.finalize[..., object]:
        """Remove the temporary bundle with its owner: this recorder, then its trace."""
        return weakref.finalize(owner, Path(os.fsdecode(self._output)).unlink, missing_ok=True)

    @property
    def trace(self) -> Trace:
        """The trace.

        Raises
        ------
        ConfigError
            If the recording has not ended.
        OpenError, UnsupportedError
            Exception that made it fail.
        FormatError
            If nothing was recorded.
        """
        if self._trace is None:
            recording = self.recording
            if recording.streams == 0:
                raise FormatError(
                    f"{recording.path}: nothing was recorded; see filters, triggers and detach()"
                )
            self._trace = open(recording)
            self._trace.recording = recording
            if self._temporary:
                self._removal.detach()
                self._remove_with(self._trace)
        return self._trace


def record(
    command: Sequence[str | os.PathLike[str]],
    *,
    output: str | os.PathLike[str] | None = None,
    progress: Callable[[capture.Progress], object] | None = None,
    index: bool = False,
    **options: Unpack[capture.Options],
) -> Trace:
    """Record a program with the best back end of this machine, and open the recording.

    Threads, children and programs that it executes are followed. Standard input and output pass through.
    Ctrl-C ends the recording: the program gets SIGINT too, and what was recorded until then is kept.

    Parameters
    ----------
    command : sequence of str or path
        Program (searched for in PATH) and arguments.
    output : path, optional
        Where to keep the recording; by default a temporary file that is removed with the trace.
    progress : callable, optional
        Called with a `ptkit.capture.Progress` some times a second. What it raises ends the recording.
    index : bool, optional
        Make the index of the recording, beside `output` if that is given: see `Trace.index`.
    **options
        See `ptkit.capture.Options`: ``backend``, ``timing``, ``filters``, ``triggers``, ``ring``, ...

    Returns
    -------
    Trace
        Its attribute ``recording`` is the `ptkit.capture.Recording`: exit status, back end, counts.

    Raises
    ------
    ConfigError
        If an option is out of range or there is no such program.
    UnsupportedError
        If the back end does not work on this system.
    OpenError
        If the recording cannot be written.
    FormatError
        If nothing was recorded.

    Examples
    --------
    >>> import ptkit
    >>> trace = ptkit.record(["true"])
    >>> trace.recording.exit_status, len(trace.errors)
    (0, 0)
    """
    recorder = Recorder(command, output, **options)
    recorder.run(progress)
    if flag("index", index):
        recorder.trace.index(save=output is not None)
    return recorder.trace
