"""ptkit-capture.exe, the recorder for Windows, made by mingw-w64.

windows_client.py BUILD   builds BUILD/ptkit-capture.exe
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "machines"))  # pytest does so by itself

from debian import Missing, Packages

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PTKIT_RECORDER_BUILD", ROOT / "build" / "windows-client"))
TOOLCHAIN = ROOT / "cmake" / "mingw.cmake"


def zstd_sources(folder: Path) -> Path:
    """The unpacked sources of Zstandard: Debian has no package of it for Windows."""
    unpacked = folder / "libzstd"
    if not unpacked.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / "libzstd.part"
        unfinished.mkdir(exist_ok=True)
        tarball = Packages(folder / "apt").source_tarball("libzstd")
        subprocess.run(
            ["tar", "-C", str(unfinished), "--strip-components=1", "-xf", str(tarball)], check=True
        )
        unfinished.rename(unpacked)
    return unpacked


def build_recorder(build: Path, jobs: str = "2") -> Path:
    """Returns the program. Raises Missing with what is wrong. Processes of a test run wait here."""
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build_locked(build, jobs)


def _build_locked(build: Path, jobs: str) -> Path:
    sources = Path(os.environ.get("PTKIT_ZSTD_SOURCE") or zstd_sources(build / "sources"))
    configure = [
        "cmake", "-S", str(ROOT), "-B", str(build / "tree"), f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}",
        "-DCMAKE_BUILD_TYPE=Release", "-DPTKIT_CLIENT=ON", "-DPTKIT_WERROR=ON",
        f"-DPTKIT_ZSTD_SOURCE={sources}",
    ]  # fmt: skip
    for command in (configure, ["cmake", "--build", str(build / "tree"), "-j", jobs]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    program = build / "ptkit-capture.exe"
    unfinished = build / "ptkit-capture.part"
    unfinished.write_bytes(
        (build / "tree" / "src" / "capture" / "windows" / "win32" / "ptkit-capture.exe").read_bytes()
    )
    return unfinished.replace(program)


def link_with_double(build: Path, library: Path, program: Path) -> Path:
    """The recorder once more, with functions of a test's library instead of those of Windows.

    It is linked of the objects of the program that is shipped.
    """
    client = build / "tree" / "src" / "capture" / "windows" / "win32"
    own = [client / f"lib{name}.a" for name in ("ptkit_recorder", "ptkit_capture", "ptkit_zstd")]
    # A build of an earlier state may have left objects that are in the library now.
    listed = subprocess.run(
        ["x86_64-w64-mingw32-ar", "t", own[0]], capture_output=True, text=True, check=True
    )
    left = set(listed.stdout.split())
    objects = sorted((client / "CMakeFiles" / "ptkit_client.dir").glob("*.obj"))
    objects = [one for one in objects if one.name not in left]
    command = [
        "x86_64-w64-mingw32-g++", "-municode", "-static", *objects, *own, library, "-lntdll", "-o", program,
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, command))}\n{done.stderr[-4000:]}")
    return program


if __name__ == "__main__":
    try:
        print(build_recorder(Path(sys.argv[1]), os.environ.get("JOBS", "2")))
    except Missing as missing:
        sys.exit(str(missing))
