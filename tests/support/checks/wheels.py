"""A wheel of ptkit as it stands in the source tree, made once for each state of the sources."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from debian import Missing
from kernels import ROOT

# Sources of a wheel, and of the tools that make it.
SOURCES = (
    "src", "ptmodel", "python", "kernel", "cmake", "CMakeLists.txt", "pyproject.toml", "tools/layout.toml",
    "tools/make_wheel.sh", "tools/repair_wheel.py", "tests/codebase/wheel_smoke.py",
)  # fmt: skip


def find_wheel(folder: Path, version: str) -> Path:
    """The wheel for a Python such as "3.11": what `make wheel` left, if it is up to date, or made alike.

    Parameters
    ----------
    folder
        Keeps wheels, by a hash of the sources.

    Raises
    ------
    Missing
        It cannot be made here.
    """
    target = folder / "wheels" / f"{version}-{_sources_hash()}"
    if not target.exists():
        unfinished = target.with_name(target.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        there = _up_to_date(version)
        if there is not None:
            shutil.copy(there, unfinished)
        else:
            _make(unfinished, version, folder / "wheel.log")
        unfinished.rename(target)
    return next(target.glob("ptkit-*.whl"))


def _make(into: Path, version: str, log: Path) -> None:
    command = ["bash", str(ROOT / "tools" / "make_wheel.sh"), str(into), _python(version)]
    with log.open("w") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise Missing(f"no wheel for Python {version}: {' '.join(command)}:\n{log.read_text()[-3000:]}")


def _up_to_date(version: str) -> Path | None:
    """The wheel in the source tree's `dist`, if no source is newer."""
    newest = max(file.stat().st_mtime for file in _sources())
    wheels = (ROOT / "dist").glob(f"ptkit-*-cp{version.replace('.', '')}-*.whl")
    return next((wheel for wheel in wheels if wheel.stat().st_mtime > newest), None)


def _sources() -> list[Path]:
    """All files that go into the wheel."""
    named = [ROOT / name for name in SOURCES]
    files = [file for path in named for file in ([path] if path.is_file() else path.rglob("*"))]
    built = {".so", ".pyc", ".o", ".ko"}
    return sorted(file for file in files if file.is_file() and file.suffix not in built)


def _sources_hash() -> str:
    digest = hashlib.sha256()
    for file in _sources():
        digest.update(f"{file.relative_to(ROOT)}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _python(version: str) -> str:
    """Debian's own: others of the same version may come without headers."""
    debian = Path(f"/usr/bin/python{version}")
    found = str(debian) if debian.exists() else shutil.which(f"python{version}")
    if found is None:
        raise Missing(f"python{version} is not installed")
    return found
