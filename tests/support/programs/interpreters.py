"""Interpreters of Python other than the one that runs the tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def interpreter(version: str) -> Path | None:
    """Find ``python3.12`` on PATH or among the versions that pyenv has; None: it is not installed.

    A launcher of pyenv (`shims`) is a script, and not what is wanted.
    """
    found = shutil.which(f"python{version}")
    if found is not None and "shims" not in Path(found).parts:
        return Path(found)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    paths = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    return paths[-1] if paths else None
