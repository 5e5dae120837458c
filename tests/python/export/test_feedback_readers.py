"""Profiles for compilers, read by the programs that they are for: LLVM, BOLT, AutoFDO, clang and gcc."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiling import PROGRAMS, build
from feedback_files import (
    CLANG,
    CREATE_GCOV,
    CREATE_LLVM_PROF,
    LLVM_BOLT,
    PERF2BOLT,
    PROFDATA,
    PROFGEN,
    gcc_with_autofdo,
    mismatching,
    needs_autofdo,
    needs_bolt,
    needs_profgen,
    perf2bolt,
    read_bolt,
    run,
)
from rounds import needs_emulator

import ptkit

SOURCE = next(PROGRAMS.rglob("counted_loops.c"))
ROUNDS = 40
GZIP = shutil.which("gzip")
TRACES_SINCE = 21  # version of LLVM


@pytest.fixture(scope="module", params=["pie", "fixed"])
def loops(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ptkit.Trace, Path, int]:
    """A recording of counted loops, the program, and how often the C library called it."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = ["-no-pie"] if request.param == "fixed" else ["-fPIE", "-pie"]
    # Debian's AutoFDO reads DWARF 4.
    program = build("counted_loops", folder, "-gdwarf-4", "-Wl,--build-id,--emit-relocs", *flags)
    argv = [program, str(ROUNDS)]
    trace = ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True)
    return trace, program, int(run(program, str(ROUNDS)).split()[1])


def functions(text: str) -> dict[str, int]:
    """Head counts of LLVM's text, by function."""
    return {name: int(head) for name, head in re.findall(r"^(\w+):\d+:(\d+)$", text, re.M)}


@needs_emulator
@needs_profgen
def test_llvm_profgen_reads_it(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    assert PROFGEN is not None
    assert PROFDATA is not None
    trace, program, compared = loops
    trace.export(tmp_path / "out.profgen.txt", "llvm")
    profile = tmp_path / "out.prof"
    command = [PROFGEN, f"--binary={program}", f"--unsymbolized-profile={tmp_path / 'out.profgen.txt'}"]
    run(*command, "--use-offset=0", f"--output={profile}", "--format=text")
    text = profile.read_text()
    heads = functions(text)
    assert heads["leaf"] == 100 * ROUNDS
    assert heads["odd"] == 34 * ROUNDS
    assert heads["work"] == ROUNDS
    assert heads["by_value"] == compared
    body = text[text.index("\nwork:") if "\nwork:" in text else text.index("work:") :]
    assert f"leaf:{100 * ROUNDS}" in body
    assert f"odd:{34 * ROUNDS}" in body
    run(PROFDATA, "merge", "--sample", "--extbinary", profile, "-o", tmp_path / "out.extbinary")
    shown = run(PROFDATA, "show", "--sample", tmp_path / "out.extbinary")
    assert re.search(rf"Function: leaf: \d+, {100 * ROUNDS},", shown)


@needs_emulator
@needs_profgen
@pytest.mark.skipif(CLANG is None, reason="clang is missing")
def test_clang_uses_the_profile(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    assert PROFGEN is not None
    assert CLANG is not None
    trace, program, _ = loops
    trace.export(tmp_path / "out.profgen.txt", "llvm")
    command = [PROFGEN, f"--binary={program}", f"--unsymbolized-profile={tmp_path / 'out.profgen.txt'}"]
    run(*command, "--use-offset=0", f"--output={tmp_path / 'out.prof'}")
    use = f"-fprofile-sample-use={tmp_path / 'out.prof'}"
    run(CLANG, "-O2", use, SOURCE, "-S", "-emit-llvm", "-o", tmp_path / "out.ll")
    text = (tmp_path / "out.ll").read_text()
    counts = {int(count) for count in re.findall(r'!"function_entry_count", i64 (\d+)', text)}
    assert {100 * ROUNDS + 1, 34 * ROUNDS + 1, ROUNDS + 1} <= counts  # clang adds one
    run(CLANG, "-O2", use, SOURCE, "-o", tmp_path / "built")
    assert run(tmp_path / "built", str(ROUNDS)) == run(program, str(ROUNDS))


@needs_emulator
@needs_autofdo
def test_create_gcov_and_gcc_read_it(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    assert CREATE_GCOV is not None
    trace, program, _ = loops
    trace.export(tmp_path / "out.afdo.txt")
    made = tmp_path / "out.afdo"
    common = [f"--binary={program}", f"--profile={tmp_path / 'out.afdo.txt'}", "--profiler=text"]
    run(CREATE_GCOV, *common, f"--gcov={made}", "--gcov_version=1")
    shown = run(shutil.which("dump_gcov") or "dump_gcov", "--gcov_version=1", made)
    assert re.search(rf"^leaf total:\d+ head:{100 * ROUNDS}$", shown, re.M)
    assert re.search(rf"^odd total:\d+ head:{34 * ROUNDS}$", shown, re.M)
    assert re.search(rf"^work total:\d+ head:{ROUNDS}$", shown, re.M)
    gcc = gcc_with_autofdo(made, tmp_path)
    if gcc is None:
        pytest.skip("no gcc reads the files of this create_gcov (package gcc-11)")
    dump = tmp_path / "dump"
    command = [gcc, "-O2", f"-fauto-profile={made}", SOURCE]
    run(*command, f"-fdump-tree-optimized={dump}", "-S", "-o", tmp_path / "out.s")
    text = dump.read_text()
    counted = re.search(r";; Function leaf .*?\[count: (\d+)\]", text, re.S)
    assert counted is not None
    assert int(counted[1]) == 100 * ROUNDS
    run(*command, "-o", tmp_path / "built")
    assert run(tmp_path / "built", str(ROUNDS)) == run(program, str(ROUNDS))


@needs_emulator
@needs_autofdo
def test_create_llvm_prof_reads_it(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    assert CREATE_LLVM_PROF is not None
    trace, program, _ = loops
    trace.export(tmp_path / "out.afdo.txt")
    common = [f"--binary={program}", f"--profile={tmp_path / 'out.afdo.txt'}", "--profiler=text"]
    run(CREATE_LLVM_PROF, *common, f"--out={tmp_path / 'out.prof'}", "--format=text")
    heads = functions((tmp_path / "out.prof").read_text())
    assert (heads["leaf"], heads["odd"], heads["work"]) == (100 * ROUNDS, 34 * ROUNDS, ROUNDS)


def fall_throughs(profile: Path) -> list[str]:
    return [line for line in profile.read_text().splitlines() if line[0] in "Ff"]


def untaken(program: Path, profile: Path, folder: Path, *options: str) -> Iterator[str]:
    """Lines that do not fit the program, though BOLT knows the code that they begin at.

    BOLT 19 has no blocks of PLT stubs, and of functions of which it does not find all targets of a jump:
    there even a line of one address does not fit.
    """
    for line in mismatching(program, fall_throughs(profile), folder, *options):
        kind, begin, _, _ = line.split(" ")
        if not mismatching(program, [f"{kind} {begin} {begin} 1"], folder, *options):
            yield line


@needs_emulator
@needs_bolt
def test_perf2bolt_reads_it(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    trace, program, compared = loops
    profile = tmp_path / "out.preagg"
    trace.export(profile)
    lines, mismatches, outside = perf2bolt(program, profile, tmp_path / "out.fdata")
    assert lines == len(profile.read_text().splitlines())
    assert outside == 0
    assert list(untaken(program, profile, tmp_path)) == []
    assert mismatches == 0
    names: dict[tuple[str, str], int] = {}
    for line in (tmp_path / "out.fdata").read_text().splitlines():
        found = re.fullmatch(r"(\d) (\S+) (\w+) (\d) (\S+) (\w+) (\d+) (\d+)", line)
        assert found is not None, line
        assert found[7] == "0"  # mispredictions
        if found[6] == "0":
            names[found[2], found[5]] = names.get((found[2], found[5]), 0) + int(found[8])
    assert names["work", "leaf"] == 100 * ROUNDS
    assert names["work", "odd"] == 34 * ROUNDS
    assert names["main", "work"] == ROUNDS
    assert names["[unknown]", "by_value"] == compared


@needs_emulator
@needs_bolt
def test_llvm_bolt_uses_the_counts(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    assert LLVM_BOLT is not None
    trace, program, _ = loops
    trace.export(tmp_path / "out.preagg")
    perf2bolt(program, tmp_path / "out.preagg", tmp_path / "out.fdata")
    options = ["-reorder-blocks=ext-tsp", "-print-only=leaf,odd,work", "-print-cfg"]
    said = run(LLVM_BOLT, program, "-o", tmp_path / "bolted", "-data", tmp_path / "out.fdata", *options)
    counts = {
        name: int(count)
        for name, count in re.findall(r'Binary Function "(\w+)" after .*?Exec Count +: (\d+)', said, re.S)
    }
    assert counts == {"leaf": 100 * ROUNDS, "odd": 34 * ROUNDS, "work": ROUNDS}
    assert run(tmp_path / "bolted", str(ROUNDS)) == run(program, str(ROUNDS))


@needs_emulator
@needs_bolt
@pytest.mark.skipif(GZIP is None, reason="gzip is missing")
def test_bolt_optimises_gzip(tmp_path: Path) -> None:
    assert GZIP is not None
    assert LLVM_BOLT is not None
    program = Path(GZIP).resolve()
    text = "".join(f"{number} {number * number}\n" for number in range(6000))
    (tmp_path / "text").write_text(text)
    argv = [program, "-k", "-f", tmp_path / "text"]
    trace = ptkit.record(argv, output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    profile, fdata, bolted = tmp_path / "out.preagg", tmp_path / "out.fdata", tmp_path / "bolted"
    trace.export(profile)
    stripped = "--allow-stripped"
    _, mismatches, _ = perf2bolt(program, profile, fdata, stripped)
    assert list(untaken(program, profile, tmp_path, stripped)) == []
    assert mismatches < sum(read_bolt(profile).ranges.values()) / 1000
    run(LLVM_BOLT, program, stripped, "-o", bolted, "-data", fdata, "-reorder-blocks=ext-tsp")
    outputs = []
    for gzip in (program, bolted):
        for argument in ("-c", "-dc"):
            source = tmp_path / ("text" if argument == "-c" else "text.gz")
            outputs.append(subprocess.run([gzip, argument, source], capture_output=True, check=True).stdout)
    assert outputs[:2] == outputs[2:]
    assert outputs[1].decode() == text


@needs_emulator
@needs_bolt
def test_perf2bolt_reads_traces(loops: tuple[ptkit.Trace, Path, int], tmp_path: Path) -> None:
    assert PERF2BOLT is not None
    version = re.search(r"LLVM version (\d+)", run(PERF2BOLT, "--version"))
    if version is None or int(version[1]) < TRACES_SINCE:
        pytest.skip(f"perf2bolt is older than LLVM {TRACES_SINCE}: it has no T and R lines")
    trace, program, _ = loops
    trace.export(tmp_path / "traces", "bolt-traces")
    trace.export(tmp_path / "out.preagg")
    perf2bolt(program, tmp_path / "traces", tmp_path / "traces.fdata")
    perf2bolt(program, tmp_path / "out.preagg", tmp_path / "out.fdata")
    assert sorted((tmp_path / "traces.fdata").read_text().splitlines()) == sorted(
        (tmp_path / "out.fdata").read_text().splitlines()
    )
