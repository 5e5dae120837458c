"""Files of pages: private ones, those that may be replaced, and the browser that opens them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ptkit.errors import ConfigError, OpenError

__all__ = ["check_page", "no_browser", "open_in_browser", "private_file"]

_HEAD = 4096
_TITLE = b"<title>ptkit"  # what comes after it differs
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_NAME = 60


def check_page(path: str, *, force: bool) -> None:
    """Refuse a path of a file that is no page of ptkit, or of a folder.

    Raises
    ------
    ConfigError
        If there is one; `force` replaces files.
    OpenError
        If it cannot be read.
    """
    target = Path(path)
    if target.is_dir():
        raise ConfigError(f"{path}: is a folder; give the name of a file, such as page.html")
    if force or not target.exists():
        return
    try:
        with target.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise OpenError(f"{path}: cannot read: {error.strerror or error}") from None
    if head and _TITLE not in head:
        raise ConfigError(f"{path}: is no page of ptkit; --force replaces it")


@contextmanager
def private_file(title: str) -> Iterator[str]:
    """Give the path of a new file in a folder of the user's own; if an exception comes, both are removed.

    Raises
    ------
    OpenError
        If there is no such folder.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="ptkit-view-"))  # mode 0700
    except OSError as error:
        raise OpenError(f"{tempfile.gettempdir()}: cannot write: {error.strerror or error}") from None
    name = _PLAIN.sub("-", title)[:_MOST_NAME].strip(".-") or "page"
    path = folder / f"{name}.html"
    try:
        yield str(path)
        path.chmod(0o600)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def no_browser(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Why no browser is started; empty: one may be."""
    if environment.get("CI"):
        return "this is CI"
    if any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")):
        return "this is a session of SSH"
    has_display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    if platform not in ("win32", "darwin") and not has_display:
        return "there is no display"
    return ""


def open_in_browser(path: str) -> str:
    """Open a page in the user's browser; returns why it was not opened, or nothing."""
    reason = no_browser()
    if reason:
        return reason
    try:
        opened = webbrowser.open(Path(path).absolute().as_uri())
    except (OSError, webbrowser.Error):
        opened = False
    return "" if opened else "no browser was found"
