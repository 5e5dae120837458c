"""The C library: what it exports, and that other projects find what is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compiling import compiled

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PTKIT_BUILD", ROOT / "build" / "test")).resolve()
LIBRARY = BUILD / "src" / "api" / "c" / "libptkit.so"
HEADER = ROOT / "include" / "ptkit.h"
EXAMPLE = ROOT / "examples" / "fuzzer"

PSB = bytes.fromhex("0282" * 8 + "9901 0223")  # PSB, MODE.Exec 64, PSBEND
ON_AT_1000 = bytes.fromhex("51 00100000")  # TIP.PGE
CODE = bytes.fromhex("74fe 90 c3")  # 1000 jz 1000; 1002 nop; 1003 ret
LEFT, REPEATED = b"\x04\x01", b"\xfe\x04\x01"  # TNT n, or tttttt n; TIP.PGD


def run(*command: str | Path, **options: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C", **options}
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def library() -> Path:
    if not LIBRARY.exists():
        pytest.skip(f"no build of the C library in {BUILD} (set PTKIT_BUILD)")
    return LIBRARY


def install(prefix: Path, component: str) -> Path:
    run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
    return prefix


@pytest.fixture(scope="module")
def prefix(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C library alone, installed."""
    return install(tmp_path_factory.mktemp("library"), "library")


def test_statuses_of_the_header_are_those_of_the_core() -> None:
    rows = re.findall(r"^PT_STATUS\((\w+), (\d+),", (ROOT / "src/base/status.def").read_text(), re.MULTILINE)
    header = HEADER.read_text()
    names = re.findall(r"PTKIT_(\w+) = (\d+)", header.split("enum ptkit_status", 1)[1].split("};", 1)[0])
    own = [(name, value) for name, value in names if int(value) > 255]
    assert [name for name, _ in own] == ["IN_USE", "INTERNAL"]
    assert len(names) > 20
    assert set(names) - set(own) <= set(rows)


def test_only_functions_of_the_header_are_exported(library: Path) -> None:
    declared = set(re.findall(r"^PTKIT_API .*?\b(ptkit_\w+)\(", HEADER.read_text(), re.MULTILINE))
    assert len(declared) > 12
    lines = run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    exported = dict(line.split()[-1].split("@@") for line in lines if "@@" in line)
    assert set(exported) == declared
    since_1_1 = {"ptkit_coverage_add_code_at", "ptkit_coverage_add_image_at"}
    assert exported == {name: "PTKIT_1.1" if name in since_1_1 else "PTKIT_1" for name in declared}


def test_the_name_has_the_number_of_the_interface(library: Path) -> None:
    (abi,) = re.findall(r"define PTKIT_ABI_VERSION (\d+)", HEADER.read_text())
    assert f"soname: [libptkit.so.{abi}]" in run("readelf", "-d", library)
    assert library.with_name(f"libptkit.so.{abi}").exists()


def test_no_library_of_python_is_needed(library: Path) -> None:
    needed = re.findall(r"NEEDED.*\[lib([a-zA-Z]+)", run("readelf", "-d", library))
    assert set(needed) <= {"Zydis", "dw", "elf", "lzma", "zstd", "stdc", "m", "gcc", "c", "ld"}


def traces(folder: Path) -> list[Path]:
    """A dump of memory, then runs: the second takes another edge, the third is the first again."""
    files = {
        "memory": CODE,
        "a": PSB + ON_AT_1000 + LEFT,
        "b": PSB + ON_AT_1000 + REPEATED,
        "c": b"\x55" * 40,
    }
    for name, contents in files.items():
        (folder / name).write_bytes(contents)
    return [folder / name for name in ("memory", "a", "b", "a", "c")]


def check_example(program: Path, folder: Path, **options: str) -> None:
    memory, *runs = traces(folder)
    lines = run(program, memory, "1000", *runs, **options).splitlines()
    assert [line.removeprefix(f"{folder}/") for line in lines] == [
        "a: 1 edges, 1 new",
        "b: 2 edges, 1 new",
        "a: 1 edges, 0 new",
        "c: 0 edges, 0 new",
        "  1 errors; at byte 40: no PSB packet in the stream",
    ]


def test_cmake_finds_the_library(prefix: Path, tmp_path: Path) -> None:
    run("cmake", "-S", EXAMPLE, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    check_example(tmp_path / "build" / "fuzz_loop", tmp_path)


def pkg_config(prefix: Path, *options: str) -> list[str]:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    (file,) = prefix.rglob("ptkit.pc")
    return run("pkg-config", *options, "ptkit", PKG_CONFIG_PATH=str(file.parent)).split()


def strict(program: Path, *arguments: str | Path) -> Path:
    return compiled(
        program, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", EXAMPLE / "fuzz_loop.c", *arguments
    )


def test_pkg_config_finds_the_library(prefix: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    program = strict(tmp_path / "fuzz_loop", *pkg_config(moved, "--cflags", "--libs"))
    (library,) = moved.rglob("libptkit.so")
    check_example(program, tmp_path, LD_LIBRARY_PATH=str(library.parent))
    header = (ROOT / "CMakeLists.txt").read_text()
    (version,) = re.findall(r"project\(ptkit VERSION (\S+)", header)
    assert pkg_config(moved, "--modversion") == [version]


def test_the_static_library_links(library: Path, tmp_path: Path) -> None:
    installed = install(tmp_path / "core", "core")
    assert not list(installed.rglob("libptkit.so"))
    program = strict(tmp_path / "fuzz_loop", *pkg_config(installed, "--static", "--cflags", "--libs"))
    check_example(program, tmp_path)


def test_the_library_is_installed_alone(prefix: Path) -> None:
    files = {path.name for path in prefix.rglob("*") if path.is_file()}
    targets = {name for name in files if name.startswith("ptkitLibraryTargets")}
    assert "ptkitLibraryTargets.cmake" in targets
    configs = {"ptkitConfig.cmake", "ptkitConfigVersion.cmake", "ptkit.pc"}
    libraries = {name for name in files if name.startswith("libptkit.so")}
    assert libraries >= {"libptkit.so", "libptkit.so.1"}
    assert files == {"ptkit.h"} | targets | configs | libraries
