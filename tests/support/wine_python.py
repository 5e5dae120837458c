"""CPython for Windows in Wine, with ptkit's package as `make windows-python` builds it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from wine import LOADER, SECONDS, Wine


def windows_path(path: Path) -> str:
    """A path of this machine as programs in Wine name it."""
    return f"Z:{path}"


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

    def _process(self, *arguments: str | Path, seconds: float) -> subprocess.CompletedProcess[bytes]:
        # In Wine, CPython does not start if its output is a file.
        return subprocess.run(
            [str(LOADER), str(self.program), *map(str, arguments)], capture_output=True, timeout=seconds,
            stdin=subprocess.DEVNULL, env=self.wine.environment | self.environment, cwd=self.wine.folder,
            check=False,
        )  # fmt: skip

    def run(self, *arguments: str | Path, seconds: float = SECONDS) -> str:
        """What Python prints on its standard output; fails if it exits with an error."""
        done = self._process(*arguments, seconds=seconds)
        if done.returncode != 0:
            pytest.fail(f"Python exited with {done.returncode}:\n{_text(done.stderr)[-2000:]}", pytrace=False)
        return _text(done.stdout)

    def refused(self, *arguments: str | Path) -> tuple[int, str]:
        """The exit status, and what Python and ptkit say on the standard error."""
        done = self._process(*arguments, seconds=SECONDS)
        lines = _text(done.stderr).splitlines(keepends=True)
        return done.returncode, "".join(line for line in lines if ":err:" not in line)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\r", "")
