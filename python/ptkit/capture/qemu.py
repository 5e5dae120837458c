"""QEMU's user mode emulation for the back end ``emulator``: found, of a fitting version, with plugins?"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ptkit import _core

__all__ = ["Qemu", "find"]

PROGRAM = "qemu-x86_64"
PLUGIN = "libptkit_qemu.so"
_OLDEST = (6, 0)  # the first with plugins of ABI version 1
_NEWEST_TRIED = 8  # major version; later ones have another plugin ABI
_TIME_LIMIT = 2.0  # seconds
_INSTALL = (
    "install QEMU's user mode emulation: `apt-get install qemu-user` (Debian, Ubuntu), "
    "`dnf install qemu-user` (Fedora), `pacman -S qemu-user` (Arch)"
)


@dataclass(frozen=True)
class Qemu:
    """A QEMU, and what makes it unusable.

    Attributes
    ----------
    path : str
        The program; empty if there is none.
    version : str
        Such as ``"7.2.22"``; empty if it did not say.
    plugin : str
        ptkit's plugin for it; empty if this build has none.
    missing : str
        Why programs cannot be recorded with it; empty if they can.
    remedy : str
        What to do about that.
    """

    path: str = ""
    version: str = ""
    plugin: str = ""
    missing: str = ""
    remedy: str = ""

    @property
    def tried(self) -> bool:
        """Whether ptkit is known to work with this version."""
        return int(self.version.partition(".")[0]) <= _NEWEST_TRIED


def find() -> Qemu:
    """Look for QEMU (the program that PTKIT_QEMU names, else qemu-x86_64 in PATH) and for ptkit's plugin."""
    named = os.environ.get("PTKIT_QEMU", "")
    path = shutil.which(named or PROGRAM)
    if path is None:
        if named:
            return Qemu(
                missing=f"PTKIT_QEMU={named} is not a program that can be run", remedy="unset PTKIT_QEMU"
            )
        return Qemu(missing=f"QEMU is missing: there is no {PROGRAM} in PATH", remedy=_INSTALL)
    file = Path(path).stat()
    found = _examine(path, (file.st_mtime_ns, file.st_size))
    plugin = _plugin()
    if not found.missing and not plugin:
        lacks = f"this ptkit was built without its plugin for QEMU ({PLUGIN})"
        return Qemu(path, found.version, "", lacks, "install a wheel of ptkit, or build it again")
    return Qemu(path, found.version, plugin, found.missing, found.remedy)


def _plugin() -> str:
    """The plugin's file: beside the extension module, or in the tree of a build."""
    folders = [Path(_core.__file__).parent]
    if build := os.environ.get("PTKIT_BUILD"):
        folders += [Path(build), Path(build) / "src" / "capture" / "linux" / "emulator" / "plugin"]
    return next((str((folder / PLUGIN).resolve()) for folder in folders if (folder / PLUGIN).is_file()), "")


@functools.lru_cache(maxsize=8)
def _examine(path: str, stamp: tuple[int, int]) -> Qemu:
    """Ask a program for its version and options; `stamp` differs between files of that name."""
    try:
        version_text, help_text = _ask(path, "--version"), _ask(path, "-h")
    except subprocess.TimeoutExpired:
        return Qemu(
            path, missing=f"{path} did not print its version within {_TIME_LIMIT:g} s", remedy=_INSTALL
        )
    except OSError as error:
        return Qemu(path, missing=f"{path} cannot be run: {error.strerror}", remedy=_INSTALL)
    match = re.search(r"version (\d+)\.(\d+)(?:\.\d+)*", version_text)
    if match is None:
        return Qemu(path, missing=f"{path} is not QEMU: it does not print its version", remedy=_INSTALL)
    version = match[0].removeprefix("version ")
    if (int(match[1]), int(match[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        lacks = f"QEMU {version} ({path}) is too old: ptkit's plugin needs {oldest}"
        return Qemu(path, version, missing=lacks, remedy=_INSTALL)
    if "-plugin" not in help_text:
        lacks = f"QEMU {version} ({path}) was built without plugins, as static builds are"
        return Qemu(path, version, missing=lacks, remedy=_INSTALL)
    return Qemu(path, version)


def _ask(path: str, option: str) -> str:
    done = subprocess.run(
        [path, option], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIME_LIMIT, check=False
    )
    return done.stdout.decode(errors="replace")
