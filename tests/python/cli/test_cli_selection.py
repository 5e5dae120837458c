"""Selections on the command line: by owner, address and time, in time order; what a terminal shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminals import python_on_a_terminal

import ptkit
from ptkit.cli import main, selection

VERBS = ("packets", "branches", "instructions")
# Tests on streams that are made in memory replace ptkit.open by this.
IN_MEMORY = "in-memory"


@pytest.fixture
def threads(loop: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Streams of threads 11, 12 and 21: 1,000 to 2,000, 1,500 to 3,500 and 10,000 to 13,000 ticks of 1 ns."""
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.set_clock(tsc_hz=10**9)
    for cpu, pid, tid, rounds, tsc in ((0, 1, 11, 10, 1_000), (1, 1, 12, 20, 1_500), (1, 2, 21, 30, 10_000)):
        data = loop.stream(rounds, psb_every=1, tsc=tsc, step=100)
        bundle.add_stream(data, name=f"t{tid}", cpu=cpu, pid=pid, tid=tid)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: trace)
    return trace


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main([*arguments, IN_MEMORY])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def rows(out: str) -> list[dict[str, Any]]:
    header, *found = [json.loads(line) for line in out.splitlines()]
    assert header["table"] == "header"
    return [row for row in found if row["table"] == header["rows"]]


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("--tid 11 --tid 21", {"tid": [11, 21]}),
        ("--pid 1", {"pid": 1}),
        ("--pid 1 --pid 2", {"pid": [1, 2]}),
        ("--cpu 1", {"cpu": 1}),
        ("-C 0,1", {"cpu": [0, 1]}),
        ("--cpu 0 --cpu 1", {"cpu": [0, 1]}),
        ("--stream 0 --stream 2", {"stream": [0, 2]}),
        ("--stream 2 --cpu 1 --tid 21", {"stream": 2}),
        ("--time 1us-2us", {"time": (2_000, 3_000)}),
        ("--time 0.001ms-2000ns", {"time": (2_000, 3_000)}),
        ("--time 1e-6s-2e-6s", {"time": (2_000, 3_000)}),
        ("--time 50%-100%", {"time": (7_000, None)}),
        ("--time 0%-1us", {"time": (1_000, 2_000)}),
        ("--time 1,500-0x7d0", {"time": (1_500, 2_000)}),
        ("--time -2000", {"time": (None, 2_000)}),
        ("--time 10us-", {"time": (11_000, None)}),
    ],
)
@pytest.mark.parametrize("verb", VERBS)
def test_selections_are_those_of_python(
    threads: Any, capsys: pytest.CaptureFixture[str], verb: str, words: str, query: dict[str, Any]
) -> None:
    status, out, err = run(capsys, verb, "--json", *words.split())
    expected = getattr(threads, verb)(**query)
    assert (status, err) == (0, "")
    assert [(row["stream"], row["offset"]) for row in rows(out)] == list(
        zip(expected["stream"].tolist(), expected["offset"].tolist(), strict=True)
    )
    assert len(expected) > 0


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("--ip 0x1002", {"ip": 0x1002}),
        ("--ip 4098", {"ip": 0x1002}),
        ("--ip 0x1000 --ip 0x1004-0x1006", {"ip": [(0x1000, 0x1001), (0x1004, 0x1006)]}),
        ("--ip 00000000`00001002 --space 0", {"ip": 0x1002}),
    ],
)
def test_addresses_add_up(
    threads: Any, capsys: pytest.CaptureFixture[str], words: str, query: dict[str, Any]
) -> None:
    _, out, _ = run(capsys, "instructions", "--json", *words.split())
    assert len(rows(out)) == len(threads.instructions(**query)) > 0


def test_kinds_add_up_in_any_case(threads: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "branches", "--json", "--kind", "cond", "--kind", "JUMP_indirect")
    assert len(rows(out)) == len(threads.branches())
    _, out, _ = run(capsys, "branches", "--json", "--kind", "cond")
    assert len(rows(out)) == len(threads.branches(kind="COND")) > 0


@pytest.mark.parametrize(
    "words",
    [
        "--time 1-2 --time 3-4",
        "--limit 1 --limit 2",
        "--order time --order stream",
        "--time-unit s --time-unit ns",
    ],
)
def test_what_takes_one_value_is_refused_twice(
    threads: Any, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["branches", *words.split(), IN_MEMORY])
    err = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert len(err.splitlines()) == 1
    assert f"{words.split()[0]} is given twice: it takes one value" in err


def test_other_verbs_refuse_options_given_twice(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["record", "-o", "a", "--output", "b", "--", "true"],
        ["info", "--format", "a", "--format", "b", "X"],
    ):
        with pytest.raises(SystemExit) as exit_info:
            main(words)
        assert exit_info.value.code == 2
        assert "is given twice: it takes one value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--tid 13", "no thread 13 in this trace: it has 11, 12, 21"),
        ("--tid 11 --tid 13", "no thread 13 in this trace"),
        ("--pid 11", "no process 11 in this trace: it has 1, 2"),
        ("--cpu 7", "no processor 7 in this trace: it has 0, 1"),
        ("--stream 3", "no stream 3 in this trace: it has streams 0 to 2"),
        ("--module libc", "no module 'libc' in this trace"),
        ("--symbol mian", "no symbol 'mian'"),
        ("--space 3", "no address space 3 in this trace: it has 0"),
        ("--cr3 0x1000", "no CR3 0x1000 in this trace: it has no CR3 of any process"),
        ("--time 0-100", "outside the trace, which spans TSC 1,000 to 13,000 (0.000012000 s; "),
        ("--time 1s-2s", "--time takes s, ms, us, ns and %, too: --time 10ms-20ms"),
        ("--time 20000-", "TSC ticks from 20,000 on are outside the trace"),
        ("--time 50%-101%", "101% is more than 100%"),
        ("--time 2us-1us", "FROM must be below TO"),
    ],
)
def test_what_the_trace_does_not_have_is_one_line(
    threads: Any, capsys: pytest.CaptureFixture[str], words: str, text: str
) -> None:
    status, out, err = run(capsys, "branches", *words.split())
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("ptkit branches: error: ")
    assert text in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--time 0.1-0.2", "0.1 has no unit, and TSC ticks are whole numbers"),
        ("--time 10-20ms", "give both ends a unit, or none (TSC ticks)"),
        ("--time 100", "'100' is not an interval of time: write FROM-TO, such as 10ms-20ms"),
        ("--time -", "'-' is not an interval of time"),
        ("--time 1h-2h", "'1h-2h' is not an interval of time"),
        (
            "--ip main",
            "'main' is not an address: write 0x401000, fffff803`12345678 or decimal digits; names of "
            "functions go to --symbol",
        ),
        ("--ip 0x2000-0x1000", "FROM must be below TO"),
        ("--cpu 6/142/9", "'6/142/9' is a processor's model: write --processor 6/142/9"),
        ("--cpu one", "expected numbers such as 0,2-3, found 'one'"),
        ("--kind calls", "--kind: 'calls': BranchKind has no member of this name; did you mean CALL"),
    ],
)
def test_misuse_is_one_line(capsys: pytest.CaptureFixture[str], words: str, text: str) -> None:
    option, value = words.split()
    with pytest.raises(SystemExit) as exit_info:
        main(["branches", f"{option}={value}", IN_MEMORY])
    err = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert len(err.splitlines()) == 1
    assert text in err


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("--time 5000-6000", "no rows match --time; the trace spans TSC 1,000 to 13,000"),
        ("--stream 0 --tid 21", "no rows match --stream, --tid\n"),
        ("--ip 0x9999", "no rows match --ip\n"),
    ],
)
@pytest.mark.parametrize("verb", VERBS)
def test_an_empty_answer_says_so(
    threads: Any, capsys: pytest.CaptureFixture[str], verb: str, words: str, note: str
) -> None:
    for form in ([], ["--json"]):
        status, out, err = run(capsys, verb, *form, *words.split())
        assert status == 0
        shown = [line for line in out.splitlines() if not line.startswith("[stream")]
        assert len(shown) == len(form)  # JSON has its header
        assert f"ptkit {verb}: note: {note}" in err
        assert len(err.splitlines()) == 1


def test_a_limit_of_no_rows_is_no_empty_answer(threads: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "branches", "--limit", "0", "--tid", "11") == (0, "", "")


def test_headings_are_those_of_selected_streams(threads: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS:
        _, out, _ = run(capsys, verb, "--tid", "12")
        assert [line for line in out.splitlines() if line.startswith("[stream")] == ["[stream 1: t12]"]


@pytest.mark.parametrize("verb", VERBS)
def test_order_time_merges_streams(threads: Any, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    _, out, err = run(capsys, verb, "--order", "time", "--json", "--pid", "1")
    expected = getattr(threads, verb)(order="time", pid=1)
    assert err == ""
    assert [(row["stream"], row["offset"]) for row in rows(out)] == list(
        zip(expected["stream"].tolist(), expected["offset"].tolist(), strict=True)
    )
    _, out, _ = run(capsys, verb, "--order", "time", "--pid", "1", "--time-unit", "tsc")
    owners = [line.split()[:2] for line in out.splitlines()]
    assert owners == [[str(stream), str(11 + stream)] for stream in expected["stream"].tolist()]
    _, out, _ = run(capsys, verb, "--order", "time", "--limit", "5", "--json")
    assert len(rows(out)) == 5


@pytest.mark.parametrize("verb", VERBS)
def test_order_by_time_has_errors_and_gaps_at_their_times(
    loop: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(loop.stream(20, psb_every=1, tsc=1_000))
    damaged = loop.stream(5, psb_every=1, tsc=1_050) + b"\x02\xff" + loop.stream(5, psb_every=1, tsc=2_000)
    bundle.add_stream(damaged)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: trace)
    _, out, err = run(capsys, verb, "--order", "time", "--json")
    printed = [json.loads(line) for line in out.splitlines()]
    tables = [row["table"] for row in printed]
    at = tables.index("errors")
    assert tables.count("errors") == 1
    assert "gaps" in tables
    before = [int(row["tsc"], 16) for row in printed[:at] if row["table"] == verb]
    after = [int(row["tsc"], 16) for row in printed[at:] if row["table"] == verb]
    assert max(before) <= int(printed[at]["tsc"], 16) <= min(after)
    assert max(before) > 1_300
    assert "errors" in err or "error" in err
    _, out, _ = run(capsys, verb, "--order", "time")
    assert sum(line.startswith("[error: ") for line in out.splitlines()) == 1


def test_packets_with_branches_are_not_merged(threads: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "packets", "--branches", "--order", "time")
    assert status == 2
    assert "leave out --order time" in err


def test_time_unit_chooses_the_unit_of_output(threads: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def first(*words: str) -> str:
        out = run(capsys, "branches", "--tid", "12", "--limit", "1", *words)[1]
        return out.splitlines()[1].split()[0]

    tsc = int(first())
    assert tsc == int(threads.branches(tid=12)["tsc"][0])
    assert int(first("--time-unit", "tsc")) == tsc
    assert int(first("--time-unit", "ns")) == tsc - 1_000
    assert first("--time-unit", "s") == f"{(tsc - 1_000) / 1e9:.9f}"
    out = run(capsys, "packets", "--tid", "11", "--time-unit", "ns")[1]
    assert "0 ns" in next(line for line in out.splitlines() if " tsc " in line)
    out = run(capsys, "packets", "--tid", "11", "--tsc")[1]
    assert " tsc 1000 +" in out.splitlines()[1]
    out = run(capsys, "instructions", "--tid", "11", "--no-events", "--time-unit", "ns", "--limit", "1")[1]
    # The first instruction runs after the PSB+ at 1,100 ticks.
    assert out.splitlines()[1].split()[:2] == ["100", f"{0x1000:016x}"]


def test_a_unit_needs_a_clock(
    loop: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_stream(loop.stream(3))
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: trace)
    for words in (["--time-unit", "s"], ["--time", "1ms-2ms"]):
        status, out, err = run(capsys, "branches", *words)
        assert (status, out) == (2, "")
        assert "the clock of this trace is not known" in err
        assert "--tsc-hz" in err


def test_headings_on_a_terminal(
    loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_a_terminal(arguments: list[str]) -> str:
        """Run a verb as if standard output were a terminal."""
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True)
            assert main(arguments) == 0
        return capsys.readouterr().out

    path, code = tmp_path / "loop.pt", tmp_path / "code.bin"
    path.write_bytes(loop.stream(3))
    code.write_bytes(loop.CODE)
    source = [str(path), "--code", f"{code}@{loop.BASE:#x}", "--processor", "6/142/9"]
    clock = ["--tsc-hz", "1000000000"]
    shown = python_on_a_terminal(["-m", "ptkit", "branches", *source, *clock], errors_too=False)
    lines = shown.replace("\r\n", "\n").splitlines()
    assert lines == on_a_terminal(["branches", *source, *clock]).splitlines()
    assert lines[0].split() == ["time", "[s]", "from", "to", "kind", "names"]
    assert lines[1].split()[0] == "0.000000000"
    assert on_a_terminal(["branches", *source]).splitlines()[0].split()[:2] == ["TSC", "[ticks]"]
    lines = on_a_terminal(["branches", *source, *clock, "--time-unit", "ns"]).splitlines()
    assert lines[0].split()[:2] == ["time", "[ns]"]
    assert on_a_terminal(["packets", *source]).splitlines()[0].split() == ["offset", "packet", "payload"]
    lines = on_a_terminal(["packets", "--tsc", *source, *clock]).splitlines()
    assert lines[0].split() == ["offset", "packet", "payload", "time", "[s]"]
    lines = on_a_terminal(["instructions", *source]).splitlines()
    assert lines[0].split() == ["address", "instruction", "symbol"]
    assert on_a_terminal(["branches", "--json", *source]).startswith("{")
    piped = subprocess.run(
        [sys.executable, "-m", "ptkit", "branches", *source, *clock],
        capture_output=True,
        text=True,
        check=True,
    )
    assert piped.stdout.split()[0] == "1000"


def test_info_prints_times(threads: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "info")
    assert "times:         TSC 1,000 to 13,000, span 0.000012000 s (12,000 ticks)" in out
    _, out, _ = run(capsys, "info", "--json")
    info = json.loads(out)
    assert (info["first_tsc"], info["last_tsc"]) == (hex(1_000), hex(13_000))
    assert info["seconds"] == 12e-6
    assert info["streams"][1]["first_tsc"] == hex(1_500)


def test_the_processor_has_an_option_of_its_own(
    tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(3))
    assert main(["info", str(path), "--processor", "6/142/9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cpu"]["model"] == 142


@pytest.mark.parametrize("verb", ["branches", "instructions", "edges", "functions", "tree"])
def test_an_index_is_offered_where_much_was_decoded(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(loop.stream(30, psb_every=1, tsc=1_000, step=100), tid=11)
    recorded = tmp_path / "loop.ptk"
    ptkit.Trace(bundle, ptkit.decode.Settings()).save(recorded)
    words = [verb, str(recorded), "--time", "10%-20%"]
    assert main(words) == 0
    assert "ptkit index" not in capsys.readouterr().err
    monkeypatch.setattr(selection, "_LONG", 100)
    assert main(words) == 0
    error = capsys.readouterr().err
    assert f"ptkit {verb}: note: --time decoded 0 MB of trace; `ptkit index {recorded}` makes" in error
    has_sums = verb not in ("branches", "instructions")
    assert main([verb, str(recorded)]) == 0
    assert ("note: this decoded 0 MB of trace; `ptkit index" in capsys.readouterr().err) == has_sums
    assert main(["index", str(recorded)]) == 0
    for given in (words, words[:2]):
        assert main(given) == 0
        assert "ptkit index" not in capsys.readouterr().err
