"""The page that ptkit brings is the one that viewer/ makes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ptkit

ROOT = Path(__file__).resolve().parents[3]
VIEWER = ROOT / "viewer"
# sha256 of files of python/ptkit/view: `npm run build` in viewer/ changes them.
BUILT = {
    "page.html": "f5244e07270bc44013a056305533bb269da82f1a4dbaa3d58d0ab0f1bd698bde",
    "widget.js": "2d6c8d2eb46b89593d4382fd612993d9ac9cf453d9f4daeac9e997c2d4f15196",
}


@pytest.mark.parametrize("name", BUILT)
def test_the_page_is_the_one_that_was_reviewed(name: str) -> None:
    for folder in (ROOT / "python" / "ptkit" / "view", Path(ptkit.__file__).parent / "view"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == BUILT[name], folder


def test_the_lock_file_has_hashes_and_no_addresses() -> None:
    packages = json.loads((VIEWER / "package-lock.json").read_text())["packages"]
    others = {name: one for name, one in packages.items() if name}
    assert len(others) > 3
    assert all(re.fullmatch(r"sha512-[\w+/]+=*", one["integrity"]) for one in others.values())
    assert not any("resolved" in one for one in others.values())
    wanted = json.loads((VIEWER / "package.json").read_text())
    exact = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in exact.values())


def test_parts_of_the_page_have_a_row_in_third_party() -> None:
    parts = json.loads((VIEWER / "package.json").read_text())["dependencies"]
    text = (ROOT / "THIRD_PARTY.md").read_text().lower()
    assert all(f"| {name} | {version} |" in text for name, version in parts.items())


def test_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    copy = tmp_path / "viewer"
    shutil.copytree(VIEWER, copy, ignore=shutil.ignore_patterns("node_modules"))
    target = tmp_path / "python" / "ptkit" / "view"
    target.mkdir(parents=True)
    got = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund"], cwd=copy, capture_output=True, text=True, check=False
    )
    if got.returncode != 0:
        assert re.search(
            r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|ECONNRESET|EAI_AGAIN|ENETUNREACH|E40[134]", got.stderr
        )
        pytest.skip("npm answers nothing here")
    done = subprocess.run(["npm", "run", "build"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in BUILT:
        assert (target / name).read_bytes() == (ROOT / "python/ptkit/view" / name).read_bytes()
