"""CPython for Windows with ptkit's package, which tests run in Wine.

PTKIT_WINDOWS_PYTHON is the folder with python.exe, PTKIT_WINDOWS_PACKAGES the one with ptkit and numpy.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wine import Wine, errors_of

SECONDS = 180  # of a program: numpy alone takes some to import


def windows_path(path: Path) -> str:
    """The path as programs for Windows have it in Wine."""
    return "Z:" + str(path).replace("/", "\\")


@dataclass(frozen=True)
class WindowsPython:
    """The interpreter, in a prefix."""

    wine: Wine
    folder: Path
    packages: Path

    @property
    def program(self) -> Path:
        return self.folder / "python.exe"

    @property
    def environment(self) -> dict[str, str]:
        """Of each process that imports ptkit."""
        return {"PYTHONPATH": windows_path(self.packages), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}

    def begin(self, log: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Starts a script."""
        return self.wine.begin(log, self.program, *arguments, environment=self.environment)

    def run(self, *arguments: str | Path) -> str:
        """What a script prints; it has to succeed."""
        return self.wine.run(self.program, *arguments, seconds=SECONDS, environment=self.environment)

    def answer(self, script: Path, folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
        """What a script answers to a question: both are JSON files of a folder."""
        process = self.ask(script, folder, asked)
        assert process.wait(SECONDS) == 0, errors_of(folder / "python.log").read_text(errors="replace")
        return self.read_answer(folder)

    def ask(self, script: Path, folder: Path, asked: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Starts a script with a question."""
        return self.begin(folder / "python.log", script, write_question(folder, asked))

    @staticmethod
    def read_answer(folder: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
        return found


def write_question(folder: Path, asked: dict[str, Any]) -> Path:
    """Returns the file of the question."""
    file = folder / "question.json"
    file.write_text(json.dumps(asked), encoding="utf-8")
    return file


def find_windows_python(wine: Wine) -> WindowsPython:
    """Skips where it is not there."""
    folder, packages = (os.environ.get(f"PTKIT_WINDOWS_{name}", "") for name in ("PYTHON", "PACKAGES"))
    if not (Path(folder) / "python.exe").is_file() or not (Path(packages) / "ptkit").is_dir():
        pytest.skip("set PTKIT_WINDOWS_PYTHON and PTKIT_WINDOWS_PACKAGES to test Python on Windows")
    return WindowsPython(wine, Path(folder), Path(packages))
