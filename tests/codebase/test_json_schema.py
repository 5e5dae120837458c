"""The schema of rows that verbs print with --json is that of the tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ptkit", reason="the extension module is not built")

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "make_json_schema.py"
FILE = ROOT / "python" / "ptkit" / "schemas" / "rows-1.json"


def test_file_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_definitions_name_every_member_that_rows_must_have() -> None:
    definitions: dict[str, Any] = json.loads(FILE.read_text())["$defs"]
    rows = {name: one for name, one in definitions.items() if "properties" in one}
    assert len(rows) > 20
    for name, one in rows.items():
        assert set(one["required"]) <= one["properties"].keys(), name
    references = {text.split('"')[0] for text in FILE.read_text().split("#/$defs/")[1:]}
    assert references == definitions.keys()


def test_old_file_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import make_json_schema

    old = tmp_path / FILE.name
    old.write_text(FILE.read_text().replace('"tsc_error"', '"tsc_mistake"'))
    monkeypatch.setattr(make_json_schema, "PAGE", old)
    monkeypatch.setattr(make_json_schema, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", [str(TOOL), "--check"])
    assert make_json_schema.main() == 1
