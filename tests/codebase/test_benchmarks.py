"""The benchmarks' own code: what is checked, how figures are made, and what recordings are made of."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from perf_script import needs_perf
from readers import NODE, READERS, node_package
from rounds import needs_emulator

import ptkit
from ptkit import _core
from ptkit.cli.synthetic import CODE, synthetic_stream

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import recordings  # noqa: E402
from harness import contest, headline, machine, perf_data, table  # noqa: E402
from harness.contest import Checks, Contestant, timing_of  # noqa: E402
from harness.questions import QUESTIONS  # noqa: E402
from pages import run as pages  # noqa: E402
from taken_branches import perf as perf_text  # noqa: E402

# Its folder `coverage` is not the package of that name.
sys.path[:] = [folder for folder in sys.path if folder != str(BENCHMARKS)]

OURS = Contestant("edges/ptkit")
LIBIPT = Contestant("blocks/libipt")
ROUNDS = {"rows": 4, "sum": "7", "bytes": 1000, "rounds": [[0.5, 0.4], [0.2, 0.1], [0.4, 0.3]]}


def told(rows: int, digest: str) -> dict[str, Any]:
    return {"rows": rows, "errors": 0, "sum": "0", "digest": digest}


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checks:
    """Both contestants give the digest that the trace's name says; what libipt says is kept."""
    for contestant in (OURS, LIBIPT):
        program = tmp_path / "benchmarks" / "bin" / contestant.program
        program.parent.mkdir(parents=True)
        program.write_text("")
    names = iter(["a", "b"])
    monkeypatch.setattr(contest, "answer", lambda words, may_fail=False: told(1, next(names)))
    return Checks(tmp_path / "checks.json")


def test_contestants_that_differ_end_the_benchmark(checks: Checks, tmp_path: Path) -> None:
    trace = tmp_path / "trace.pt"
    trace.write_text("")
    with pytest.raises(SystemExit, match="nothing was timed"):
        checks.agree((OURS, LIBIPT), tmp_path, trace)


def test_what_libipt_said_is_asked_once_for_a_trace(checks: Checks, tmp_path: Path) -> None:
    trace = tmp_path / "trace.pt"
    trace.write_text("")
    assert checks.ask(LIBIPT, tmp_path, trace)["digest"] == "a"
    assert Checks(checks.path).ask(LIBIPT, tmp_path, trace)["digest"] == "a"
    trace.write_text("another one")
    assert Checks(checks.path).ask(LIBIPT, tmp_path, trace)["digest"] == "b"


def test_figures_leave_the_first_decode_out() -> None:
    timing = timing_of(OURS, [ROUNDS, ROUNDS], first=False)
    assert (timing.cpu, timing.cpu_median, timing.wall, timing.first) == (0.1, 0.2, 0.2, 0.4)
    assert timing.megabytes_per_second == pytest.approx(0.01)
    assert timing_of(OURS, [ROUNDS], first=True).cpu == 0.4


def test_a_contestant_must_say_the_same_every_time() -> None:
    with pytest.raises(SystemExit, match="not the same result"):
        timing_of(OURS, [ROUNDS, {**ROUNDS, "rows": 5}], first=False)


def test_every_contestant_has_its_source() -> None:
    for question in QUESTIONS:
        for contestant in question.contestants:
            if not contestant.python:
                sources = [
                    BENCHMARKS / f"{contestant.program}{suffix}" for suffix in (".cpp", ".c", ".rs", ".py")
                ]
                assert sum(source.exists() for source in sources) == 1, contestant


def test_inputs_of_recordings_are_as_large_as_asked_for() -> None:
    assert len(recordings.text(10_000)) == 10_000
    assert recordings.text(500) == recordings.text(10_000)[:500]
    assert recordings.source(5).count("\nint f") == 4
    for _, sizes in recordings.PROGRAMS.values():
        found = [sizes[scale] for scale in recordings.SCALES if scale in sizes]
        assert found == sorted(found)
        assert len(found) > 1


def test_summary_compares_with_other_decoders(capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*seconds: float) -> dict[str, Any]:
        names = ("ptkit", "ptkit --disretc", "c_library", "libxdc", "libipt")
        timings = [{"contestant": name, "cpu": cpu} for name, cpu in zip(names, seconds, strict=True)]
        return {"question": "coverage", "ratio": 9.0, "least": 0, "stretch": 0, "timings": timings}

    three = [asked(1, 0.5, 2, 0.5, 9), asked(2, 1, 2, 6, 9), asked(1, 1, 1, 1.25, 9)]
    table.summary([{"name": str(number), "questions": [one]} for number, one in enumerate(three)])
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "coverage, ptkit against libxdc: median 1.25, 0.50 to 3.00, of 3",
        "coverage, ptkit --disretc against libxdc: median 1.25, 1.00 to 6.00, of 3",
    ]


def test_the_time_of_a_program_is_its_own() -> None:
    busy = [sys.executable, "-I", "-S", "-c", "for i in range(300_000): pass"]
    cpu, wall = headline.native(busy, 0.0)
    assert 0 < cpu < wall * 1.5
    with pytest.raises(SystemExit, match="ended with 3"):
        headline.native([sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"], 0.0)


def test_the_machine_is_described(tmp_path: Path) -> None:
    folder = tmp_path / "CMakeFiles" / "3.25"
    folder.mkdir(parents=True)
    lines = ('set(CMAKE_CXX_COMPILER_ID "GNU")', 'set(CMAKE_CXX_COMPILER_VERSION "12.2.0")')
    (folder / "CMakeCXXCompiler.cmake").write_text("\n".join(lines))
    facts = machine.machine(tmp_path)
    assert facts["compiler"] == "GNU 12.2.0"
    assert facts["cpu"]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder of the corpus' form: pages of code, and the stream."""
    folder = tmp_path / "made"
    folder.mkdir()
    ((address, code),) = CODE.items()
    (folder / "page_cache.addr").write_bytes(address.to_bytes(8, "little"))
    (folder / "page_cache.dump").write_bytes(code.ljust(4096, b"\0"))
    (folder / "trace").write_bytes(synthetic_stream(8192))
    return folder


def asked(contestant: Contestant, trace: Path, action: str = "check", *more: str) -> dict[str, Any]:
    words = contestant.words(Path(), action, trace, *more)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.skipif("libipt" not in _core.engines(), reason="needs a build with libipt")
@pytest.mark.parametrize(
    "question", ["columns", "edges", "branches", "taken_branches", "timed_branches", "instructions"]
)
def test_contestants_in_python_agree_with_libipt(question: str, made: Path) -> None:
    answers = [
        asked(Contestant(question, options, python=True), made) for options in ((), ("--engine", "libipt"))
    ]
    assert answers[0] == answers[1]
    assert answers[0]["rows"] > 1000
    assert answers[0]["errors"] == 0


@needs_perf
def test_perf_agrees(made: Path, tmp_path: Path) -> None:
    trace = perf_data.perf_data_of(made, tmp_path)
    assert trace != made
    assert perf_data.perf_data_of(trace, tmp_path) == trace
    perf = Contestant("taken_branches/perf", needs="perf")
    ours = asked(Contestant("taken_branches", python=True), trace)
    told = asked(perf, trace)
    assert {**told, "sum": 0} == {**ours, "sum": 0}
    assert told["rows"] > 1000
    timed = asked(perf, trace, "time", "0")
    assert timed["rows"] == told["rows"]
    assert timed["bytes"] == (made / "trace").stat().st_size
    unread = asked(Contestant("taken_branches/perf", ("--null",)), trace, "time", "0")
    assert unread["rows"] == 0
    assert all(cpu > 0 for answer in (timed, unread) for _, cpu in answer["rounds"])


def test_perfs_text_becomes_rows() -> None:
    text = (
        b"                0 =>           473fb0\n"
        b"           473fdc =>           401c48\n"
        b" instruction trace error type 1 cpu 0 pid 1 tid 1 ip 0 code 6: Never-ending loop\n"
        b" ffffffff81000000 =>                0\n"
    )
    rows, errors = perf_text.rows_of(text)
    assert errors == 1
    assert rows.tolist() == [[0x473FDC, 0x401C48], [0xFFFFFFFF81000000, 0]]
    assert perf_text.rows_of(b"")[0].shape == (0, 2)
    assert b"".join(perf_text.blocks(io.BytesIO(text))) == text


def asked_about(name: str, made: Path) -> dict[str, Any]:
    """The table's answer to a question, by contestants that do not run."""
    question = next(question for question in QUESTIONS if question.name == name)
    result = table.ask(question, made, made, Checks(made / "checks.json"), rounds=1, seconds=0.0)
    assert result is not None
    return result


def contestants(result: dict[str, Any]) -> list[str]:
    return [timing["contestant"] for timing in result["timings"]]


def test_a_contestant_without_its_program_is_left_out(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(table, "perf_data_of", lambda trace, build: trace)
    monkeypatch.setattr(contest, "answer", lambda words, may_fail=False: {**told(4, "a"), **ROUNDS})
    result = asked_about("taken_branches", made)
    assert contestants(result) == ["Python", "Python --engine libipt"]
    reason = "perf is not installed"
    assert result["left_out"] == {"perf --null": reason, "perf": reason}


def test_a_decoder_that_was_not_found_is_left_out(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    monkeypatch.setattr(contest, "answer", lambda words, may_fail=False: {**told(4, "a"), **ROUNDS})
    monkeypatch.setattr(Contestant, "version", lambda self, build: "1")
    result = asked_about("coverage", made)
    assert contestants(result) == ["ptkit", "c_library", "libipt"]
    reason = "it was built without PTKIT_LIBXDC"
    assert result["left_out"] == {"ptkit --disretc": reason, "libxdc": reason}


def test_a_decoder_that_refuses_a_trace_is_left_out(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    def answer(words: list[str], may_fail: bool = False) -> dict[str, Any]:
        return {"failure": "unknown packet"} if may_fail else {**told(4, "a"), **ROUNDS}

    folder = made / "benchmarks" / "bin" / "coverage"
    folder.mkdir(parents=True)
    for name in ("ptkit", "libxdc"):
        (folder / name).write_text("")
    monkeypatch.setattr(contest, "answer", answer)
    monkeypatch.setattr(contest, "page_cache_of", lambda trace, build: trace)
    monkeypatch.setattr(Contestant, "version", lambda self, build: "1")
    result = asked_about("coverage", made)
    assert contestants(result) == ["ptkit", "c_library", "libipt"]
    assert result["left_out"] == {"ptkit --disretc": "unknown packet", "libxdc": "unknown packet"}


def test_a_program_that_fails_ends_the_benchmark_unless_it_may() -> None:
    words = [sys.executable, "-I", "-S", "-c", "import sys; sys.exit('cannot decode')"]
    assert contest.answer(words, may_fail=True) == {"failure": "cannot decode"}
    with pytest.raises(SystemExit, match="cannot decode"):
        contest.answer(words)


@pytest.mark.parametrize("question", ["columns", "edges", "branches", "timed_branches", "instructions"])
def test_plain_calls_have_as_many_rows(question: str, made: Path) -> None:
    plain = asked(Contestant(question, ("--plain",), python=True), made, "time", "0")
    assert plain["rows"] == asked(Contestant(question, python=True), made)["rows"]


def opened(seconds: float) -> dict[str, float]:
    answer = {"opened": seconds, "asked": 0.5, "intervals": [16.0] * 18 + [40.0, 50.0], "memory": 2e6}
    return pages.opened_of({**answer, "heap": {"used": 1e6, "arrays": 3e6}})


def test_pages_that_fail_are_said_beside_medians() -> None:
    made = [{"wall": 2.0, "cpu": 1.0, "peak": 4e6}]
    ours = pages.Figures("ptkit", "", 1_000_000, made, [opened(1), opened(2), opened(9)])
    other = pages.Figures("other", "", 3_000_000, made, [opened(6)], ["it crashed", "it crashed"])
    missing = pages.Figures("third", "no third in build")
    _, _, *rows, calls, failed, left_out = pages.table([ours, other, missing], [{**made[0], "wall": 1.0}])
    assert rows == [
        "| ptkit | 2.0 | 1.0 | 4 | 1.0 | 2.00 | 1.50 | 16 | 40 | 4 | 2 |",
        "| other | 2.0 (1.0) | 1.0 (1.0) | 4 (1.0) | 3.0 (3.0) | 6.00 (3.0) | 5.50 (3.7)"
        " | 16 (1.0) | 40 (1.0) | 4 (1.0) | 2 (1.0) |",
        "| third | - | - | - | - | - | - | - | - | - | - |",
    ]
    assert calls == "| `calls()` | 1.0 (0.5) | 1.0 (1.0) | 4 (1.0) | - | - | - | - | - | - | - |"
    assert failed == "other: 2 of 3 failed: it crashed"
    assert left_out == "third: left out: no third in build"


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loops")
    words = [build("counted_loops", folder), "7"]
    ptkit.record(words, output=folder / "loops.ptk", backend="emulator", quiet=True)
    return folder / "loops.ptk"


@needs_emulator
def test_a_page_without_all_calls_ends_the_benchmark(loops: Path, tmp_path: Path) -> None:
    trace = ptkit.open(loops)
    trace.view().save(tmp_path / "calls.html")
    rows = len(trace.calls())
    assert pages.check_page(tmp_path / "calls.html", rows) == rows
    with pytest.raises(SystemExit, match="nothing was timed"):
        pages.check_page(tmp_path / "calls.html", rows + 1)


@needs_emulator
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.skipif(node_package("puppeteer-core") is None, reason="puppeteer-core is not installed (npm)")
def test_pages_are_opened_and_moved(loops: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert NODE is not None
    monkeypatch.setenv("PTKIT_READERS", READERS)
    words = [str(loops), "--rounds", "1", "--makes", "1", "--seconds", "1", "--output", str(tmp_path)]
    found = pages.measure(loops, tmp_path, pages.parse_arguments(words))["viewers"]
    assert [one["title"] for one in found] == ["ptkit", "Perfetto", "speedscope"]
    assert found[0]["opened"], found[0]["failures"]
    for one in found:
        assert one["left_out"] or one["opened"], one["failures"]
        for figures in one["opened"]:
            assert 0 < figures["loaded"] <= figures["opened"] < 120
            assert 10 < figures["frame"] <= figures["p95"]
            assert figures["heap"] > 1e6
            assert figures["memory"] > 1e7
