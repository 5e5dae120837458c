"""Static libraries for other systems, from the sources of Debian's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from debian import Packages

ROOT = Path(__file__).resolve().parents[3]
JOBS = os.environ.get("JOBS", str(os.cpu_count()))


def call(*command: str | Path, **more: str) -> str:
    """Runs a program, and returns its output. Ends with the output if it fails."""
    words, environment = [str(word) for word in command], {**os.environ, **more}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-8000:]}{done.stderr[-8000:]}")
    return done.stdout


def cmake(source: Path, build: Path, *options: str) -> None:
    call("cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *options)


def sources(folder: Path, package: str) -> Path:
    """The unpacked sources of a package of Debian."""
    folder.mkdir(parents=True, exist_ok=True)
    unpacked = folder / package
    if not unpacked.exists():
        tarball = Packages(folder / "apt").source_tarball(package)
        unfinished = folder / f"{package}.part"
        unfinished.mkdir(exist_ok=True)
        call("tar", "-C", unfinished, "--strip-components=1", "-xf", tarball)
        unfinished.rename(unpacked)
    return unpacked


def _install(
    prefix: Path, source: Path, own: Path, toolchain: Path, *options: str, target: str = "install"
) -> None:
    cmake(
        source, own, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DCMAKE_INSTALL_PREFIX={prefix}",
        "-DCMAKE_INSTALL_LIBDIR=lib", *options,
    )  # fmt: skip
    call("cmake", "--build", own, "-j", JOBS, "--target", target)


def build_zydis(prefix: Path, downloads: Path, build: Path, toolchain: Path) -> None:
    """Installs Zydis and Zycore to `prefix`."""
    zycore = sources(downloads, "zycore-c")
    for source, name in ((zycore, "Zycore"), (sources(downloads, "zydis"), "Zydis")):
        if (prefix / "include" / name).exists():
            continue
        _install(
            prefix, source, build / name, toolchain, f"-DZYAN_ZYCORE_PATH={zycore}",
            "-DZYDIS_BUILD_EXAMPLES=OFF", "-DZYDIS_BUILD_TOOLS=OFF", "-DZYDIS_BUILD_DOXYGEN=OFF",
            "-DZYDIS_BUILD_MAN=OFF",
        )  # fmt: skip


def build_readers(prefix: Path, downloads: Path, build: Path, toolchain: Path) -> None:
    """Installs to `prefix` what readers of formats need: libelf, libdw, liblzma, libzstd, JSON's header."""
    include = prefix / "include"
    if not (include / "libelf.h").exists():
        elfutils = [
            f"-D{name}_SOURCE={sources(downloads, package)}"
            for name, package in (("ELFUTILS", "elfutils"), ("ZLIB", "zlib"))
        ]
        _install(prefix, ROOT / "cmake" / "elfutils", build / "elfutils", toolchain, *elfutils)
    if not (include / "zstd.h").exists():
        _install(
            prefix, sources(downloads, "libzstd") / "build" / "cmake", build / "zstd", toolchain,
            "-DZSTD_BUILD_SHARED=OFF", "-DZSTD_BUILD_PROGRAMS=OFF", "-DZSTD_BUILD_TESTS=OFF",
            "-DZSTD_LEGACY_SUPPORT=OFF",
        )  # fmt: skip
    if not (include / "lzma.h").exists():
        xz = sources(downloads, "xz-utils")
        _install(prefix, xz, build / "xz", toolchain, "-DBUILD_SHARED_LIBS=OFF", target="liblzma")
        shutil.copy(build / "xz" / "liblzma.a", prefix / "lib")
        shutil.copytree(xz / "src" / "liblzma" / "api", include, dirs_exist_ok=True)
    if not (include / "nlohmann").exists():
        (include / "nlohmann").symlink_to("/usr/include/nlohmann")
