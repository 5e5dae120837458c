"""The client of this folder, walk.c, with the driver's test build: natively and in Wine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from walker import Walker
from windows_driver import build_client, build_natively

SOURCE = Path(__file__).resolve().with_name("walk.c")


@pytest.fixture(scope="session", params=["natively", "in_wine"])
def walker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walker]:
    if request.param == "natively":
        folder = tmp_path_factory.mktemp("walks")
        objects = request.getfixturevalue("native_driver")
        yield Walker(folder, build_natively(folder / "walk", objects, SOURCE), None)
    else:
        wine = request.getfixturevalue("wine")
        shutil.copy(request.getfixturevalue("model_driver"), wine.folder)
        yield Walker(wine.folder, build_client(wine.folder / "walk.exe", SOURCE), wine)
