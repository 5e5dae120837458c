"""The layers of docs/architecture.md hold, and the check that says so can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check_layers.py"


def test_layers_hold() -> None:
    done = subprocess.run([sys.executable, CHECK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_upward_include_is_found(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "check_layers.py").write_text(CHECK.read_text())
    for name, text in {
        "src/base/a.h": '#include "flow/rows.h"\n',
        "src/flow/b.cpp": "#include <pybind11/pybind11.h>\n",
        "src/mystery/c.h": "",
        "python/ptkit/errors.py": "from ptkit.trace import Trace\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, tmp_path / "tools" / "check_layers.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.count("\n") == 4, done.stdout
