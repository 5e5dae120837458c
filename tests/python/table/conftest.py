"""A trace of which the code has names, and the clock is known: its tables have every column there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from small_elf import elf


@pytest.fixture(scope="session")
def clocked(loop: Any, open_trace: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """200 rounds of the program `again`, by a clock of 1 GHz, and an error at the end."""
    path = tmp_path_factory.mktemp("clocked") / "again.elf"
    path.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    return open_trace(loop.stream(200) + b"\xff" * 30, images=[path], tsc_hz=1_000_000_000)


@pytest.fixture(scope="session")
def ask(clocked: Any) -> Callable[..., Any]:
    """Ask for a table by name, with all or some of its columns."""

    def asked(name: str, columns: list[str] | None = None) -> Any:
        if name in ("errors", "gaps", "stack_anomalies"):
            table = getattr(clocked, name)
        elif name in ("mappings", "threads", "waits"):
            table = getattr(clocked, name)()
        elif name == "callers":
            return clocked.callers("again", columns=columns)
        elif name == "at_times":
            return clocked.at_times([1500, 2500], clock="ns", columns=columns)
        else:
            return getattr(clocked, name)(columns=columns)
        return table if columns is None else table[columns]

    return asked
