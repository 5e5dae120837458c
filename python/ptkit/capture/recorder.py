"""The life of a recording: start, wait, control, end."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit.capture.options import Options, path_of, plan_of
from ptkit.capture.output_file import OutputFile
from ptkit.capture.recording import Progress, Recording
from ptkit.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["BundleRecorder"]

_POLL_SECONDS = 0.05
_BEGIN_SECONDS = 0.001


def _has_begun(core: _core.Recorder) -> bool:
    pid, started, instructions, _ = core.status()
    return bool(pid or started or instructions)


class BundleRecorder:
    """Life and control of a recording; `ptkit.Recorder` adds the trace.

    A temporary bundle stays after the recording: its removal is left to the caller.

    Parameters
    ----------
    argv : sequence of str or path
        Program (searched for in PATH) and arguments; empty with the option `pid`, and maybe with `cpus`.
    output : path, optional
        The bundle to write; by default a file in the folder for temporary files.
    **options
        See `ptkit.capture.Options`.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        output: str | os.PathLike[str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._plan = plan_of(argv, options)
        self._temporary = output is None
        self._output = b"" if output is None else path_of("output", output)
        self._earlier: Path | None = None
        self._core: _core.Recorder | None = None
        self._started = False
        self._may_go = threading.Event()
        self._done = threading.Event()
        self._result: dict[str, Any] = {}
        self._failure: BaseException | None = None
        self._pid = 0
        self._begin = self._seconds = 0.0

    # ---- start and end

    def start(self) -> Self:
        """Run the program; recording goes on in the background.

        Raises
        ------
        OpenError
            If the bundle cannot be written.
        ConfigError, UnsupportedError
            If the recorder refuses the options, or the program.
        KeyboardInterrupt
            After Ctrl-C during the start; the recording has ended then.
        """
        if self._started:
            raise ConfigError("this recorder was started before; make a new one for each recording")
        if self._temporary:
            handle, name = tempfile.mkstemp(prefix="ptkit-", suffix=".ptk")
            os.close(handle)
            self._output = os.fsencode(name)
        self._begin = time.monotonic()
        file = OutputFile(self._output, force=self._plan.force)
        try:
            file.keep_earlier()
            self._earlier = file.earlier
            core = _core.Recorder(**self._plan.arguments, output=self._output)
            self._core = core
            threading.Thread(target=self._work, args=(core,), name="ptkit recorder").start()
            self._started = True
            self._may_go.set()
            # An error at the beginning of the recording is raised here, not at its end.
            while not (_has_begun(core) or self._done.wait(_BEGIN_SECONDS)):
                pass
            self._pid = core.status()[0]
            if not self.running:
                self.wait()
        except BaseException:  # by Ctrl-C, too: what goes on in the background has to end
            self._give_up()
            file.restore_earlier()
            raise
        return self

    def _give_up(self) -> None:
        self._may_go.set()
        if self._started:
            self._stop_and_wait()
        else:
            self._remove_temporary()

    def _work(self, core: _core.Recorder) -> None:
        # If Thread.start() was interrupted, the caller cannot know whether this thread has begun: it waits
        # here until start() or _give_up() has decided.
        self._may_go.wait()
        if not self._started:
            return
        try:
            self._result = core.run()
        except BaseException as failure:
            self._failure = failure
            self._remove_temporary()
        self._seconds = time.monotonic() - self._begin
        self._done.set()

    def _remove_temporary(self) -> None:
        if self._temporary:
            Path(os.fsdecode(self._output)).unlink(missing_ok=True)

    def run(self, progress: Callable[[Progress], object] | None = None) -> Recording:
        """Run the program to its end. Ctrl-C ends the recording and keeps what was recorded until then.

        Parameters
        ----------
        progress : callable, optional
            Called with a `Progress` some times a second. What it raises ends the recording.

        Returns
        -------
        Recording

        Raises
        ------
        OpenError, ConfigError, UnsupportedError
            As for `start`.
        """
        if progress is not None and not callable(progress):
            raise ConfigError(f"progress: expected a function of one argument, found {progress!r}")
        try:
            if not self._started:
                self.start()
            while not self.wait(_POLL_SECONDS):
                if progress is not None:
                    progress(self.progress)
        except KeyboardInterrupt:
            if not self._started:
                raise
            self._stop_and_wait()
            self._result["interrupted"] = True  # also if the program, which gets the signal too, was faster
        except BaseException:
            if self.running:
                self._stop_and_wait()
                self._remove_temporary()
            raise
        return self.recording

    def _stop_and_wait(self) -> None:
        self.stop()
        while self.running:
            # A second Ctrl-C changes nothing: a program that does not mind SIGINT gets SIGKILL soon.
            with contextlib.suppress(KeyboardInterrupt):
                self._done.wait(_POLL_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.run()
        else:
            self._stop_and_wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the recording, at most so many seconds.

        Returns
        -------
        bool
            Whether it has ended.

        Raises
        ------
        OpenError, UnsupportedError
            What made the recording fail.
        """
        self._check_started()
        end = None if timeout is None else time.monotonic() + timeout
        # In turns: a signal that another thread got does not end a wait.
        while not self._done.wait(
            _POLL_SECONDS if end is None else min(_POLL_SECONDS, end - time.monotonic())
        ):
            if end is not None and time.monotonic() >= end:
                return False
        if self._failure is not None:
            raise self._failure
        return True

    # ---- control

    def stop(self) -> None:
        """End the recording: a program gets SIGINT, and SIGKILL if it is still there some seconds later."""
        self._request("stop")

    def detach(self) -> None:
        """End the recording; the program runs on untraced, and `wait` waits for it.

        Raises
        ------
        UnsupportedError
            If the back end cannot do this: ``step``. The same holds for all that follow.
        """
        self._request("detach")

    def snapshot(self) -> None:
        """Keep what is in the ring.

        Raises
        ------
        ConfigError
            If there is no ring.
        """
        if not self.has_ring:
            raise ConfigError("snapshot: there is no ring; give its size, such as ring='64M'")
        self._request("snapshot")

    def pause(self) -> None:
        """Record nothing until `resume`; the program runs on."""
        self._request("pause")

    def resume(self) -> None:
        """Go on after `pause`."""
        self._request("resume")

    def _request(self, method: str) -> None:
        self._check_started()
        if self.running:
            getattr(self._core, method)()

    def _check_started(self) -> None:
        if not self._started:
            raise ConfigError("this recorder was not started: use it in a `with` statement")

    # ---- state

    @property
    def backend(self) -> str:
        """Name of the back end that is used."""
        return self._plan.backend

    @property
    def has_ring(self) -> bool:
        """Whether only the last part of the trace is kept."""
        return "ring" in self._plan.arguments

    @property
    def running(self) -> bool:
        """Whether the program, or the recording, has not ended yet."""
        return self._started and not self._done.is_set()

    @property
    def pid(self) -> int | None:
        """The process; None before it was started, if there is none, and with ``step``."""
        return self._pid or None

    @property
    def progress(self) -> Progress:
        """The progress of the recording."""
        if self._core is None:
            return Progress()
        seconds = time.monotonic() - self._begin if self.running else self._seconds
        return Progress(*self._core.status()[2:], seconds)

    @property
    def recording(self) -> Recording:
        """The result of the recording.

        Raises
        ------
        ConfigError
            If the recording has not ended.
        OpenError, UnsupportedError
            What made it fail.
        """
        if not self.wait(0):
            raise ConfigError("the recording has not ended: call wait() or stop(), or leave the `with` block")
        return Recording(
            path=Path(os.fsdecode(self._output)),
            earlier=self._earlier,
            backend=self._plan.backend,
            reason=self._plan.reason,
            seconds=round(self._seconds, 6),
            **self._result,
        )
