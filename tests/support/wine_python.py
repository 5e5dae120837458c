"""CPython for Windows in Wine, with ptkit's package as `make windows-python` builds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wine import SECONDS, Wine, errors_of


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
        }

    def run(self, *arguments: str | Path, seconds: float = SECONDS) -> str:
        """What Python prints on its standard output; fails if it exits with an error."""
        return self.wine.run(self.program, *arguments, seconds=seconds, environment=self.environment)

    def refused(self, *arguments: str | Path) -> tuple[int, str]:
        """The exit status, and what Python says on its standard error."""
        log = self.wine.folder / "python"
        process = self.wine.begin(log, self.program, *arguments, environment=self.environment)
        status = process.wait(SECONDS)
        return status, errors_of(log).read_text(errors="replace").replace("\r", "")
