"""CPython for Windows in a prefix of Wine that has the driver: a script answers questions.

Questions and answers are JSON files. In Debian's Wine 8, CPython ends at once if its output is a file: it has
none.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wine import LOADER
from wine_python import WinePython

SECONDS = 240  # of a script on a busy machine: NumPy alone takes some to import


@dataclass(frozen=True)
class DrivenPython:
    """The interpreter in a prefix with the driver, and the script that answers."""

    python: WinePython
    script: Path

    def begin(self, folder: Path, asked: dict[str, Any], *before: str | Path) -> subprocess.Popen[bytes]:
        """Asks. `before`: a program with arguments that starts the interpreter."""
        question = folder / "question.json"
        question.write_text(json.dumps(asked), encoding="utf-8")
        (folder / "answer.json").unlink(missing_ok=True)
        wine = self.python.wine
        command = [str(LOADER), *before, self.python.program, self.script, question]
        return subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=wine.environment | self.python.environment, cwd=wine.folder,
        )  # fmt: skip

    def answer(self, folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
        """Asks, and waits for the answer."""
        return self.end(self.begin(folder, asked), folder)

    @staticmethod
    def end(process: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
        """The answer of a script that was begun."""
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail(f"no answer after {SECONDS} s in {folder}", pytrace=False)
        file = folder / "answer.json"
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        assert status == 0, found
        assert "traceback" not in found, found["traceback"]
        return found
