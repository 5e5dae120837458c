"""One version everywhere, extras that hold together, and a build that names the packages it lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from windows_wheel import package_files

import ptkit

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()


def configure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs CMake on the project where only what `options` name is found."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is missing")
    return subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder / "build", "-DPTKIT_REFERENCE=OFF", *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_version() -> None:
    (project,) = re.findall(r'^version = "(.+)"$', PYPROJECT, flags=re.MULTILINE)
    (cmake,) = re.findall(r"project\(ptkit VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    (module,) = re.findall(
        r'^PACKAGE_VERSION="(.+)"$', (ROOT / "kernel/dkms.conf").read_text(), flags=re.MULTILINE
    )
    assert project == cmake == module == ptkit.__version__


def test_the_wheel_for_windows_has_the_files_of_that_for_linux() -> None:
    names = set(package_files())
    assert {"ptkit/py.typed", "ptkit/schemas/rows-1.json", "ptkit/view/page.html"} < names
    installed = set(package_files(Path(ptkit.__file__).parent))  # with the driver's sources
    assert names == {name for name in installed if (ROOT / "python" / name).exists()}


def test_all_has_every_extra_for_users() -> None:
    extras = PYPROJECT.split("[project.optional-dependencies]")[1].split("\n[")[0]
    names = set(re.findall(r"^(\w+) = ", extras, flags=re.MULTILINE))
    (everything,) = re.findall(r'^all = \["ptkit\[(.+)\]"\]$', extras, flags=re.MULTILINE)
    assert set(everything.split(",")) == names - {"all", "test", "lint"}


def test_wheels_for_the_pythons_that_are_supported() -> None:
    listed = set(re.findall(r"Python :: 3\.(\d+)", PYPROJECT))
    built = set(re.findall(r'"cp3(\d+)-\*"', PYPROJECT))
    (lowest,) = re.findall(r'requires-python = ">=3\.(\d+)"', PYPROJECT)
    assert listed == built
    assert min(map(int, listed)) == int(lowest)


def test_missing_libraries_are_named_with_their_packages(tmp_path: Path) -> None:
    only = [f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("LIBRARY", "INCLUDE")]
    done = configure(tmp_path, f"-DCMAKE_FIND_ROOT_PATH={tmp_path}", *only)
    assert done.returncode != 0
    for package in (
        "libzydis-dev",
        "libelf-dev",
        "libdw-dev",
        "liblzma-dev",
        "libzstd-dev",
        "nlohmann-json3-dev",
    ):
        assert package in done.stderr
    for package in (
        "zydis-devel",
        "elfutils-libelf-devel",
        "elfutils-devel",
        "xz-devel",
        "libzstd-devel",
        "json-devel",
    ):
        assert package in done.stderr


def test_an_old_zydis_is_refused(tmp_path: Path) -> None:
    header = tmp_path / "Zydis" / "Zydis.h"
    header.parent.mkdir()
    header.write_text("#define ZYDIS_VERSION (ZyanU64)0x0003000200010000\n")
    done = configure(
        tmp_path, f"-Dptkit_zydis_INCLUDE={tmp_path}", f"-Dptkit_zydis_LIBRARY={tmp_path}/libZydis.so"
    )
    assert done.returncode != 0
    assert "Zydis 4 or newer" in done.stderr
    assert "libzydis-dev" in done.stderr


def test_third_party_names_what_is_linked() -> None:
    text = (ROOT / "THIRD_PARTY.md").read_text()
    libraries = re.findall(r"^ *ptkit_find_library\(\S+ \S+ (\S+)", _dependencies(), flags=re.MULTILINE)
    homes = {
        "Zydis": "Zydis",
        "Zycore": "Zydis",
        "elf": "libelf",
        "dw": "libelf and libdw",
        "lzma": "liblzma",
        "zstd": "Zstandard",
    }
    assert set(libraries) == set(homes)
    for name in (*homes.values(), "libipt", "JSON for Modern C++", "LLVMDemangle", "pybind11"):
        assert f"| {name}" in text


def test_the_command_is_installed_where_ptkit_is() -> None:
    try:
        installed = metadata.distribution("ptkit")
    except metadata.PackageNotFoundError:
        pytest.skip("this ptkit was not installed: it runs from its sources")
    assert {entry.name: entry.value for entry in installed.entry_points} == {"ptkit": "ptkit.cli:main"}


def _dependencies() -> str:
    return (ROOT / "cmake" / "PtkitDependencies.cmake").read_text()
