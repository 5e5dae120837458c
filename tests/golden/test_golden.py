"""Golden cases: libipt's own suite (not part of this project) and ours, in `cases/`.

PTKIT_BUILD: the build directory (default build/test). PTKIT_PTT: a directory with a manifest.tsv or with .ptt
sources (default: libipt-ptt in PTKIT_CORPUS). PTKIT_PTT_SOURCES: a folder of .ptt sources to run as well.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ptt
import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"
MOST_DIFFERENCES = 8  # rows of libipt's suite that may differ, each with its reason in allowed.h
# Errata with workarounds on every processor, so no case can fail without the flag.
ALWAYS_HANDLED = {
    "bdm70": "a FUP in the PSB+ right before TIP.PGE means nothing else, whatever the model",
    "skl014": "a direct branch out of a known filter region ends tracing, whether TIP.PGD has an IP or not",
    "skl168": "cycles count as a lower limit of time, so that lost ones leave the interval true",
}
# Sources of libipt that nasm assembles differently: it gives a far jump in 64-bit code a REX prefix.
YASM_ONLY = {"mode_exec-tip"}


@pytest.fixture(scope="session")
def golden_runner() -> Path:
    build = Path(os.environ.get("PTKIT_BUILD", ROOT / "build" / "test"))
    runner = build / "tests" / "golden" / "ptkit_golden"
    if not runner.exists():
        pytest.skip(f"{runner} is not built (set PTKIT_BUILD to a build directory with PTKIT_TESTS=ON)")
    return runner


def run(runner: Path, directory: Path) -> list[dict[str, Any]]:
    done = subprocess.run([runner, "--dir", directory, "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert rows
    return rows


def failures(rows: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"{row['test']} ({row['tool']} {row['decoder']}) {row['options']}\n{row['difference']}"
        for row in rows
        if row["outcome"] == "failed"
    )


def compile_cases(sources: Path, output: Path) -> Path:
    if ptt.find_assembler() is None:
        pytest.skip("neither yasm nor nasm is installed")
    pytest.importorskip("ptkit._core", reason="the extension module is not built")
    ptt.compile_folder(sources, output)
    return output


@pytest.fixture(scope="session")
def libipt_rows(golden_runner: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    corpus = Path(os.environ.get("PTKIT_CORPUS", ROOT.parent / "shared" / "traces"))
    directory = Path(os.environ.get("PTKIT_PTT", corpus / "libipt-ptt"))
    if not (directory / "manifest.tsv").exists():
        if any(directory.glob("*.ptt")):
            return run(golden_runner, compile_cases(directory, tmp_path_factory.mktemp("ptt")))
        pytest.skip(f"{directory} has no manifest.tsv (set PTKIT_PTT or PTKIT_CORPUS)")
    return run(golden_runner, directory)


@pytest.mark.parametrize("tool", ["ptdump", "ptxed"])
def test_libipt_suite(libipt_rows: list[dict[str, Any]], tool: str) -> None:
    rows = [row for row in libipt_rows if row["tool"] == tool]
    assert not failures(rows), failures(rows)
    assert any(row["outcome"] == "passed" for row in rows) or not rows


def test_differences_have_reasons(libipt_rows: list[dict[str, Any]]) -> None:
    allowed = [row for row in libipt_rows if row["outcome"] == "allowed"]
    assert len(allowed) <= MOST_DIFFERENCES
    assert all(row["reason"] for row in allowed)
    # Only the options that print libipt's own estimate of time are omitted.
    assert all("time" in row["reason"] for row in libipt_rows if row["outcome"] == "skipped")


def test_own_cases(golden_runner: Path, tmp_path: Path) -> None:
    rows = run(golden_runner, compile_cases(CASES, tmp_path))
    assert not failures(rows), failures(rows)
    assert {row["outcome"] for row in rows} == {"passed"}


@pytest.mark.parametrize(
    "erratum",
    [
        path.stem
        for path in sorted(CASES.glob("erratum-*.ptt"))
        if path.stem.removeprefix("erratum-") not in ALWAYS_HANDLED
    ],
)
def test_case_fails_without_its_erratum(golden_runner: Path, tmp_path: Path, erratum: str) -> None:
    compile_cases(CASES, tmp_path)
    manifest = tmp_path / "manifest.tsv"
    header, *lines = manifest.read_text().splitlines()
    kept = []
    for line in lines:
        test, cpu, *others = line.split("\t")
        if test == erratum:
            assert cpu, f"{erratum}.ptt names no cpu"
            kept.append("\t".join([test, "", *others]).replace(f"--cpu {cpu}", ""))
    manifest.write_text("\n".join([header, *kept]) + "\n")
    outcomes = [row["outcome"] for row in run(golden_runner, tmp_path)]
    assert "failed" in outcomes, "nothing shows that the workaround is applied"


def test_every_erratum_has_a_case() -> None:
    text = (ROOT / "src" / "packet" / "errata.def").read_text()
    names = {line.split("(")[1].split(",")[0] for line in text.splitlines() if line.startswith("PT_ERRATUM(")}
    assert {path.stem.removeprefix("erratum-") for path in CASES.glob("erratum-*.ptt")} == names


def test_sources_of_libipt(golden_runner: Path, tmp_path: Path) -> None:
    sources = os.environ.get("PTKIT_PTT_SOURCES")
    if not sources:
        pytest.skip(
            "PTKIT_PTT_SOURCES is not set (a folder of .ptt files, such as test/src of a libipt checkout)"
        )
    rows = run(golden_runner, compile_cases(Path(sources), tmp_path))
    if Path(ptt.find_assembler() or "").name == "nasm":
        rows = [row for row in rows if row["test"] not in YASM_ONLY]
    assert not failures(rows), failures(rows)


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("tnt(t.n t)", "1a"),
        ("tip(1: %label)", "2d0300"),
        ("tip.pgd(0: %label)", "01"),
        ("pip(0x1afafa5, nr)", "0243fbfa1a000000"),
        ("pwre(c0.2, hw)", "022208f1"),
        ("pwrx(st: c1, c6)", "02a20504000000"),
        ("ptw(0: 0x90abcdef, ip)", "0292efcdab90"),
        ("cfe(1: 14, ip)", "0213810e"),
        ("trig(0xa1, mult, icnt: 23)", "d960a11700"),
        ("mode.exec(32bit, if)", "9906"),
        ("raw-16(0x1234)", "3412"),
        ("bbp(1, 4)", "026381"),
    ],
)
def test_directives(directive: str, expected: str) -> None:
    pytest.importorskip("ptkit._core", reason="the extension module is not built")
    stream = ptt.Stream(ptt.Assembly(b"", 0x1000, {"label": 0x100003}))
    match = ptt.DIRECTIVE.search(f"; @pt {directive}")
    assert match
    stream.directive(match.group(2), match.group(3))
    assert stream.data.hex() == expected


def test_expected_lines() -> None:
    stream = ptt.Stream(ptt.Assembly(b"", 0, {"l1": 0x4242}), labels={"p1": 0x10})
    for line, expected in {
        "%l1 # comment": "4242",
        "%0l1": "0000000000004242",
        "%?l1.1": "??????????????42",
        "%?l1.0": "????????????????",
        "%l1.1)": "42)",
        "%0p1  psb": "0000000000000010  psb",
        "[%p1, x]": "[10, x]",
    }.items():
        assert ptt.expected_line(line, stream) == expected


def test_bad_source_reports_its_line(tmp_path: Path) -> None:
    if ptt.find_assembler() is None:
        pytest.skip("neither yasm nor nasm is installed")
    source = tmp_path / "bad.ptt"
    source.write_text("org 0x1000\nbits 64\n; @pt fup(3: %nowhere)\n")
    with pytest.raises(ptt.PttError, match=r"bad\.ptt:3: .*nowhere"):
        ptt.compile_source(source)
