"""Builds the portable part for other systems, runs its tests there, and compares tables with this machine's.

portable_part.py HERE BUILD TARGET...   (aarch64, windows)

HERE is a build of this machine with tests; its targets plain_bundle and table_hashes are made. BUILD/TARGET
is the build of a target, BUILD/zydis what is downloaded.
docs/portability.md says what runs where.
"""

from __future__ import annotations

import lzma
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support" / "machines"))

from cross_libraries import JOBS, build_zydis, call, cmake  # noqa: E402
from debian import Missing  # noqa: E402

TOOLCHAINS = {"aarch64": "aarch64.cmake", "windows": "mingw64.cmake"}


def googletest() -> Path:
    """Where the package googletest has its sources."""
    for line in call("dpkg-query", "-L", "googletest").splitlines():
        if line.endswith("/googletest/googletest/CMakeLists.txt"):
            return Path(line).parents[1]
    raise Missing("the package googletest has no sources")


def build_target(build: Path, target: str) -> Path:
    tree = build / target / "ptkit"
    prefix = build / target / "libraries"
    build_zydis(prefix, build / "zydis", build / target, ROOT / "cmake" / TOOLCHAINS[target])
    cmake(
        ROOT, tree,
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / TOOLCHAINS[target]}", f"-DCMAKE_FIND_ROOT_PATH={prefix}",
        f"-DPTKIT_GTEST_SOURCE={googletest()}",
        "-DPTKIT_PORTABLE=ON", "-DPTKIT_TESTS=ON", "-DPTKIT_WERROR=ON", "-DPTKIT_UNITY=ON", "-DPTKIT_PCH=ON",
    )  # fmt: skip
    call("cmake", "--build", tree, "-j", JOBS, "--target", "all", "table_hashes")
    return tree


def run_tests(tree: Path) -> str:
    """Runs the unit tests in the emulator of the toolchain file; returns how many passed."""
    for report in (tree / "gtest").glob("*.xml"):
        report.unlink()
    call("ctest", "--test-dir", tree, "-j", JOBS, "--output-on-failure")
    return count_tests(tree)


def count_tests(tree: Path) -> str:
    """How many tests passed, by folder of src/, in a run without failures."""
    counts: dict[str, int] = {}
    skipped = 0
    for report in (tree / "gtest").glob("*.xml"):
        cases = list(ElementTree.parse(report).iter("testcase"))
        here = sum(case.get("result") == "skipped" for case in cases)
        ran = sum(case.get("status") == "run" for case in cases) - here
        folder = report.name.split(".")[0].removeprefix("test_")
        counts[folder] = counts.get(folder, 0) + ran
        skipped += here
    if not counts:
        sys.exit(f"{tree / 'gtest'} has no report of a test")
    by_folder = ", ".join(f"{folder} {count}" for folder, count in sorted(counts.items()))
    return f"{sum(counts.values())} tests passed ({by_folder}), {skipped} skipped"


def recordings(unpacked: Path) -> list[list[str | Path]]:
    """Our recordings and those of other people, each with the code that does not come with it."""
    corpus = Path(os.environ.get("PTKIT_CORPUS", ROOT.parent / "shared" / "traces"))
    found: list[list[str | Path]] = []
    manifest = corpus / "libipt-ptt" / "manifest.tsv"
    if manifest.exists():
        rows = [line.split("\t") for line in manifest.read_text().splitlines()[1:]]
        for test, address in sorted({(row[0], row[6]) for row in rows}):
            stem = manifest.parent / test / test
            found.append([stem.with_suffix(".pt"), stem.with_suffix(".bin"), address])
    lldb = ("lldb/*/trace.json", "lldb/*/multi-file-no-ld.json")
    for pattern in ("libxdc/*/trace", *lldb, "quipper/*intel_pt*"):
        found += [[path.parent if path.name == "trace" else path] for path in sorted(corpus.glob(pattern))]
    for packed in sorted((ROOT / "tests" / "golden" / "recordings").glob("*.perf.data.xz")):
        path = unpacked / packed.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        found.append([path])
    return found


def plain_bundles(build: Path, here: Path) -> list[Path]:
    """The recordings as files that the portable part reads."""
    folder = build / "bundles"
    for name in ("unpacked", "plain"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    written = []
    program = here / "tests" / "machines" / "portable" / "plain_bundle"
    for recording, *code in recordings(folder / "unpacked"):
        name = "-".join(Path(recording).parts[-2:])
        call(program, recording, folder / "plain" / name, *code)
        written.append(folder / "plain" / name)
    return written


def tables_here(here: Path, bundles: list[Path]) -> list[str]:
    """The lines of table_hashes on this machine: by the scalar code, and by the best that it has."""
    program = here / "tests" / "machines" / "portable" / "table_hashes"
    return [call(program, *bundles, PTKIT_FORCE_ISA=isa) for isa in ("scalar", "")]


def tables_there(tree: Path, bundles: list[Path]) -> str:
    (program,) = (tree / "tests" / "machines" / "portable").glob("table_hashes*")
    cache = (tree / "CMakeCache.txt").read_text().splitlines()
    emulator = next(line.partition("=")[2] for line in cache if line.startswith("PTKIT_EMULATOR:"))
    return call(*emulator.split(";"), program, *bundles).replace("\r", "")


def compare(target: str, here: list[str], there: str) -> str:
    ours = there.splitlines()
    for text in here:
        lines = text.splitlines()
        different = [pair for pair in zip(lines, ours, strict=True) if pair[0] != pair[1]]
        if different:
            shown = "\n".join(f"  here:  {one}\n  {target}: {other}" for one, other in different[:10])
            sys.exit(f"{target}: {len(different)} of {len(lines)} tables differ\n{shown}")
    rows = sum(int(line.split()[3]) for line in ours)
    return f"{len(ours)} tables with {rows} rows are equal to this machine's"


def main(arguments: list[str]) -> None:
    if len(arguments) < 3 or not set(arguments[2:]) <= TOOLCHAINS.keys():
        sys.exit(__doc__)
    here, build = Path(arguments[0]).resolve(), Path(arguments[1]).resolve()
    os.environ.update(WINEPREFIX=str(build / "wine"), WINEDEBUG="-all")
    call("cmake", "--build", here, "-j", JOBS, "--target", "plain_bundle", "table_hashes")
    bundles = plain_bundles(build, here)
    tables = tables_here(here, bundles)
    for target in arguments[2:]:
        tree = build_target(build, target)
        print(f"{target}: {run_tests(tree)}", flush=True)
        if bundles:
            print(f"{target}: {compare(target, tables, tables_there(tree, bundles))}", flush=True)
        else:
            print(f"{target}: no recordings to compare: set PTKIT_CORPUS", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Missing as missing:
        sys.exit(str(missing))
