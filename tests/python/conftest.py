"""What holds for each of these tests: it leaves nothing in the folder for temporary files."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE = 5  # seconds, with processes that a test has started and that are about to end


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for temporary files of these tests, and of what they start: nobody else's."""
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
        gc.collect()  # traces remove theirs when nobody has them any more
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
