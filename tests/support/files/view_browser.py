"""Pages of `ptkit view` in Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from readers import node_package

CHROMIUM = shutil.which("chromium")
DRIVER = Path(__file__).with_name("drive_page.cjs")
DECODED = ["until", "document.documentElement.dataset.state === 'decoded'"]
SELECTION = ["value", "document.querySelector('section[aria-label=Selection]').innerText"]

needs_browser = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(
        node_package("puppeteer-core") is None, reason="puppeteer-core is not installed (npm)"
    ),
]


class Browser:
    """A page that was opened, and what was done on it; `files`: those beside it that it shows in frames."""

    def __init__(self, page: Path, *actions: list[Any], files: Sequence[str] = ()) -> None:
        package = node_package("puppeteer-core")
        assert package is not None
        command = ["node", str(DRIVER), str(package.parent), str(CHROMIUM), str(page)]
        done = subprocess.run(
            command, input=json.dumps(actions), capture_output=True, text=True, timeout=400, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        said = json.loads(done.stdout)
        self.results: list[Any] = said["results"]
        self.page = page
        self.requests: list[str] = said["requests"]
        assert said["errors"] == []
        assert said["dialogs"] == 0
        # The page, its worker, which is a part of the page, and frames and modules that are part of it, too.
        assert self.requests[0] == f"file://{page}"
        parts = ("blob:null/", "data:", "about:srcdoc", *(f"file://{page.with_name(name)}" for name in files))
        assert [address for address in self.requests[1:] if not address.startswith(parts)] == []
