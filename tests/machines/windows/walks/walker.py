"""The client of this folder, walk.c, as a Python object."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from wine import Wine


@dataclass(frozen=True)
class Walker:
    """Has threads of the model execute code; `folder` is where files are."""

    folder: Path
    program: Path
    wine: Wine | None

    def walk(self, *arguments: str) -> None:
        """Runs walk.c, which describes the arguments."""
        if self.wine is not None:
            self.wine.run(self.program, *arguments, seconds=120)
            return
        done = subprocess.run(
            [self.program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
        assert "unloaded, and all was given back" in done.stderr
