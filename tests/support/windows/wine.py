"""A private Wine: its own prefix, no display, nothing downloaded, and no process of it left at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

LIBRARIES = Path("/usr/lib/wine")  # where Debian has the loader and the server
SECONDS = 60
CONTROL = r"HKLM\System\CurrentControlSet\Control"  # a driver may take long to load on a busy machine


def _find(*names: str) -> str | None:
    for name in names:
        path = shutil.which(name) or shutil.which(name, path=str(LIBRARIES))
        if path is not None:
            return path
    return None


LOADER = _find("wine64", "wine")
SERVER = _find("wineserver64", "wineserver")


def require_wine() -> None:
    """Skips where Wine is not installed."""
    if LOADER is None or SERVER is None:
        pytest.skip("Wine is not installed (package wine64)")


@dataclass(frozen=True)
class Wine:
    """A prefix; `folder` is where its files and the programs' output are."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of each program."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return kept | {
            "WINEPREFIX": str(self.folder / "prefix"),
            "WINEDEBUG": "fixme-all,err-winediag,err-systray",
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
        }

    def begin(
        self, log: Path, program: str | Path, *arguments: str | Path, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        """Starts a program. Output goes to a file, as Wine's services keep a pipe open when it ends.

        What Wine itself says is on the standard error, and goes to another one.
        """
        command = [str(LOADER), str(program), *map(str, arguments)]
        with log.open("wb") as output, errors_of(log).open("wb") as errors:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                env=self.environment | environment, cwd=self.folder,
            )  # fmt: skip

    def run(
        self,
        program: str | Path,
        *arguments: str | Path,
        seconds: float = SECONDS,
        environment: dict[str, str] | None = None,
    ) -> str:
        """The output of a program; fails if it takes too long or exits with an error."""
        log = self.folder / "output"
        process = self.begin(log, program, *arguments, environment=environment or {})
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.stop()
            pytest.fail(f"{program} ran for {seconds} s:\n{_end_of(log)}", pytrace=False)
        if code != 0:
            pytest.fail(f"{program} exited with {code}:\n{_end_of(log)}", pytrace=False)
        return log.read_text(errors="replace").replace("\r", "")

    def keep_server(self) -> None:
        """Starts the server, which stays until `stop`.

        Otherwise it ends with the last program, and the next one may get "Connection reset by peer" from it.
        """
        nothing = subprocess.DEVNULL
        subprocess.run(
            [str(SERVER), "-p"],
            env=self.environment,
            timeout=SECONDS,
            check=True,
            stdout=nothing,
            stderr=nothing,
        )

    def stop(self) -> None:
        """Ends all processes of the prefix, and waits for them."""
        for option in ("-k", "-w"):
            subprocess.run([str(SERVER), option], env=self.environment, timeout=SECONDS, check=False)


def errors_of(log: Path) -> Path:
    """Where the standard error of a program goes."""
    return log.with_suffix(".errors")


def _end_of(log: Path) -> str:
    return "".join(path.read_text(errors="replace")[-2000:] for path in (log, errors_of(log)))


@contextmanager
def private_wine() -> Iterator[Wine]:
    """A new prefix, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="ptkit-wine-") as name:
        wine = Wine(Path(name))
        try:
            wine.run("wineboot", "--init", seconds=180)
            wine.run(
                "reg", "add", CONTROL, "/v", "ServicesPipeTimeout", "/t", "REG_DWORD", "/d", "120000", "/f"
            )
            wine.stop()  # services.exe reads it when it starts
            wine.keep_server()
            yield wine
        finally:
            wine.stop()


def version() -> str:
    """Such as "8.0"."""
    said = subprocess.run([str(LOADER), "--version"], capture_output=True, text=True).stdout
    return said.strip().removeprefix("wine-").split()[0]
