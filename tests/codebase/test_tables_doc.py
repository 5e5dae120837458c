"""docs/tables.md says what the sources say, and enumerations point to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")

ROOT = Path(__file__).resolve().parents[2]
schema = pytest.importorskip("ptkit.support.schema")
PAGE = (ROOT / "docs" / "tables.md").read_text()


def test_page_is_up_to_date() -> None:
    tool = ROOT / "tools" / "make_tables_doc.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["BranchKind", "EventKind", "GapCause", "InsnClass", "ErrorCode"])
def test_every_member_has_a_meaning(name: str) -> None:
    for member in getattr(ptkit, name):
        lines = [
            line for line in PAGE.splitlines() if line.startswith(f"| {int(member)} | `{member.name}` |")
        ]
        assert any(line.split("|")[3].strip() for line in lines), member


def test_enumerations_point_to_the_page() -> None:
    for name in ("PacketKind", "PacketFlag", "BranchKind", "RowFlag", "EventKind", "EventFlag", "GapCause"):
        assert "docs/tables.md" in getattr(ptkit, name).__doc__, name
    assert "docs/time.md" in ptkit.TimeSource.__doc__


def test_packets_say_what_payloads_hold() -> None:
    for kind in ptkit.PacketKind:
        assert kind.__doc__, kind
    assert "payload: CR3" in ptkit.PacketKind.PIP.__doc__
    assert "payload2: number of bits" in ptkit.PacketKind.TNT_8.__doc__


def test_schema_points_to_the_page() -> None:
    for table, words in (("packets", "packet kinds"), ("events", "event kinds")):
        for name in ("payload", "payload2"):
            assert f"{words} in docs/tables.md" in schema.schema_of(table).columns[name].doc
    for heading in ("## Packet kinds", "## Event kinds", "## Error codes"):
        assert heading in PAGE
