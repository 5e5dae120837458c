"""Every test here leaves no file in the folder for temporary files. A trace of programs that overlap."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from small_elf import elf
from small_pe import pe

import ptkit

PATIENCE = 5  # seconds, with processes that a test has started and that are about to end


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for temporary files of these tests, and of the processes that they start."""
    folder = tmp_path_factory.mktemp("t")  # a short name: paths of sockets are no longer than 107 bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setitem(os.environ, "TMPDIR", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def leaves_nothing(temporary_folder: Path) -> Iterator[None]:
    """Fail a test that leaves something there."""
    before = set(temporary_folder.iterdir())
    yield
    left = set(temporary_folder.iterdir()) - before
    if left:
        gc.collect()  # traces remove theirs once no reference is left
    deadline = time.monotonic() + PATIENCE
    while (left := set(temporary_folder.iterdir()) - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    for path in left:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    names = sorted(path.name for path in left)
    assert not names, f"left in the folder for temporary files: {', '.join(names)}"


@pytest.fixture(scope="session")
def brief(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program tests/programs/branches/brief.c, which single steps record at once."""
    program = build("brief", tmp_path_factory.mktemp("brief"), "-static", "-nostdlib", "-Wl,--build-id")
    return str(program)


@pytest.fixture
def spaces(loop: Any, tmp_path: Path) -> Any:
    """Streams of spaces 1 and 2 with a program each, and of space 3, which sees that of space 0."""
    bundle = ptkit._core.Bundle()
    for number, name in enumerate(("shared_fn", "alpha_fn", "beta_fn")):
        if number:
            assert bundle.add_space(pid=number) == number
        path = tmp_path / name
        path.write_bytes(elf(loop.CODE, loop.BASE, name))
        bundle.add_image(str(path), space=number)
    bundle.add_space(pid=3)
    for number in (1, 2, 3):
        bundle.add_stream(loop.stream(10 * number), space=number, pid=number, tid=number)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


@pytest.fixture
def dumped(loop: Any, tmp_path: Path) -> Any:
    """A trace of page dumps of space 1 over an image of all spaces: driver.sys at 0."""
    path = tmp_path / "driver.sys"
    path.write_bytes(pe(loop.CODE, 0))
    bundle = ptkit._core.Bundle()
    bundle.add_space(cr3=0x1000)
    bundle.add_image(str(path))
    bundle.add_code(loop.BASE, loop.CODE, space=1)
    bundle.add_stream(loop.stream(3), space=1)
    return ptkit.Trace(bundle, ptkit.decode.Settings())
