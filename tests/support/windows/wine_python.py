"""CPython for Windows in Wine, with ptkit's package as `make windows-python` builds it."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from wine import LOADER, SECONDS, Wine


def windows_path(path: Path) -> str:
    """A path of this machine as programs in Wine name it."""
    return f"Z:{path}"


@dataclass(frozen=True)
class _Ended:
    output: str
    errors: str
    code: int


@dataclass(frozen=True)
class WinePython:
    """The interpreter, and the folder of packages that it imports from."""

    wine: Wine
    program: Path
    site: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PYTHONPATH": windows_path(self.site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONIOENCODING": "utf-8",
            "PTKIT_DEBUG_PATH": "Z:/usr/lib/debug",  # where Linux looks by itself
        }

    def _process(self, *arguments: str | Path, seconds: float) -> _Ended:
        # In Wine, CPython does not start if its output is a file.
        process = subprocess.Popen(
            [str(LOADER), str(self.program), *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.wine.environment | self.environment, cwd=self.wine.folder,
        )  # fmt: skip
        with process:
            return _Ended(*_output_of(process, seconds), process.returncode)

    def run(self, *arguments: str | Path, seconds: float = SECONDS) -> str:
        """Python's standard output; fails if it exits with an error."""
        done = self._process(*arguments, seconds=seconds)
        if done.code != 0:
            pytest.fail(f"Python exited with {done.code}:\n{done.errors[-2000:]}", pytrace=False)
        return done.output

    def refused(self, *arguments: str | Path) -> tuple[int, str]:
        """The exit status, and what Python and ptkit say on the standard error."""
        done = self._process(*arguments, seconds=SECONDS)
        lines = done.errors.splitlines(keepends=True)
        return done.code, "".join(line for line in lines if ":err:" not in line)


def _output_of(process: subprocess.Popen[bytes], seconds: float) -> tuple[str, str]:
    """The output of a program until it exits: Wine's services, which it may start, keep its pipes open."""
    assert process.stdout is not None
    assert process.stderr is not None
    printed = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as pipes:
        for pipe in printed:
            pipes.register(pipe, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            ready = pipes.select(0 if ended else 0.1)
            for key, _ in ready:
                printed[key.fd] += (read := os.read(key.fd, 1 << 16))
                if not read:
                    pipes.unregister(key.fd)
            if ended and not ready:
                break
            if time.monotonic() > end:
                process.kill()
                pytest.fail(f"Python ran for {seconds} s:\n{printed}", pytrace=False)
    output, errors = (text.decode("utf-8", "replace").replace("\r", "") for text in printed.values())
    return output, errors
