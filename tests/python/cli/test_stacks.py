"""`ptkit functions`, `ptkit calls` and `ptkit tree`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from compiling import build
from golden_recordings import open_recording
from test_json import ROWS, assert_fits

import ptkit
from ptkit.cli import call_reports, frames, main, stacks
from ptkit.cli.output import colours
from ptkit.support.text import duration

FIB_CALLS = 3 * 67 + 6 * 5  # of tests/programs/branches/calls.c


def recorded(folder: Path, *options: str) -> str:
    program = build("calls", folder, "-foptimize-sibling-calls", "-fno-inline", *options)
    ptkit.record([str(program)], output=folder / "calls.ptk")
    return str(folder / "calls.ptk")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    return recorded(tmp_path_factory.mktemp("stacks"))


@pytest.fixture(scope="module")
def trace(recording: str) -> Any:
    return ptkit.open(recording)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """Lines on standard output, and all of standard error."""
    assert main([*words]) == 0
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(capsys, *words, "--json")[0]]


def test_functions_are_bounded_and_sorted(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(trace.functions())
    lines, errors = printed(capsys, "functions", recording)
    assert len(lines) == 20
    assert f"{count - 20:,} more lines: --all prints them" in errors
    assert "compare instructions, not durations" not in errors  # there are none
    shares = [float(line.split("%")[0]) for line in lines]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0
    everything, errors = printed(capsys, "functions", recording, "--all", "--sort", "name")
    assert len(everything) == count
    assert "more line" not in errors
    assert len(printed(capsys, "functions", recording, "--limit", "3")[0]) == 3


def test_functions_are_sorted_by_each_column(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    headings = {"self": "self_instructions", "total": "instructions", "calls": "count"}
    headings |= {name: f"{name}_instructions" for name in ("p50", "p99", "max")}  # times are emulated
    columns = {"instructions": "instructions", "count": "count"}
    for name, column in (headings | columns).items():
        values = [row[column] for row in rows(capsys, "functions", recording, "--sort", name)[1:]]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) > 2
    by_time = [
        row["max"] for row in rows(capsys, "functions", recording, "--sort", "max", "--of", "time")[1:]
    ]
    assert by_time == sorted(by_time, reverse=True)
    names = [row["function"] for row in rows(capsys, "functions", recording, "--sort", "name")[1:]]
    assert names == sorted(names)


def test_lengths_of_calls_are_instructions_where_times_are_emulated(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["p50_instructions", "p99_instructions", "max_instructions"]
    (expected,) = zip(*(trace.functions(symbol="fib").named(name) for name in names), strict=True)
    ((line,), _) = printed(capsys, "functions", recording, "--symbol", "fib")
    assert tuple(int(cell.replace(",", "")) for cell in line.split()[3:6]) == expected
    ((line,), errors) = printed(capsys, "functions", recording, "--symbol", "fib", "--of", "time")
    assert line.split()[4] in ("ns", "us", "ms")
    assert "compare instructions, not durations" in errors
    monkeypatch.setattr(call_reports, "EMULATOR", "another back end")  # of which times are real
    assert printed(capsys, "functions", recording, "--symbol", "fib")[0] == [line]


def test_selected_functions_have_numbers_instead_of_shares(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ((line,), _) = printed(capsys, "functions", recording, "--symbol", "fib")
    functions = trace.functions(symbol="fib")
    own, total, calls = (int(cell.replace(",", "")) for cell in line.split()[:3])
    assert (own, total) == (functions["self_instructions"][0], functions["instructions"][0])
    assert calls == FIB_CALLS
    assert line.endswith("fib (calls)")


def test_tails_and_files(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    totals = {}
    for tails in ("nested", "replaced"):
        _, row = rows(capsys, "functions", recording, "--symbol", "apply", "--tails", tails)
        totals[tails] = row["instructions"]
    assert totals["nested"] > totals["replaced"]  # apply() jumps to fib()
    lines, _ = printed(capsys, "functions", recording, "--by", "module", "--all")
    assert {"calls", "libc.so.6"} <= {line.split()[-1] for line in lines}
    ((line,), _) = printed(capsys, "functions", recording, "--by", "entry", "--symbol", "fib")
    assert re.search(r" [0-9a-f]{16}  fib", line)


def test_lines_are_those_of_functions_by_line(
    recording: str, trace: ptkit.Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = trace.functions("line", symbol="fib", columns=["source", "line", "count", "self_instructions"])
    found, _ = printed(capsys, "functions", recording, "--by", "line", "--symbol", "fib", "--all")
    expected = sorted(zip(lines["self_instructions"].tolist(), lines["count"].tolist(), strict=True))
    cells = [tuple(int(cell.replace(",", "")) for cell in line.split()[1:3]) for line in found]
    assert sorted(cells) == expected
    assert main(["functions", recording, "--by", "line", "--sort", "max"]) == 2
    assert "--by line" in capsys.readouterr().err
    with pytest.raises(ptkit.ConfigError, match="tails"):
        trace.functions("line", tails="replaced")
    header, *some = rows(capsys, "functions", recording, "--by", "line", "--sort", "name", "--limit", "5")
    assert header["rows"] == "source_lines"
    assert len(some) == 5
    for row in some:
        assert_fits(ROWS, "source_lines", row)


@pytest.mark.parametrize(
    "words",
    [
        ["functions"],
        ["functions", "--by", "entry"],
        ["functions", "--by", "module"],
        ["tree", "--all"],
        ["tree", "--callers", "fib", "--all"],
        ["calls", "--limit", "300"],
        ["calls", "--slowest", "5"],
    ],
)
def test_json_fits_the_schema(words: list[str], recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    header, *found = rows(capsys, words[0], recording, *words[1:])
    table = {"functions": "functions", "tree": "call_tree", "calls": "calls"}[words[0]]
    table = "callers" if "--callers" in words else table
    assert header["rows"] == table
    assert found
    validator = jsonschema.Draft202012Validator(ROWS)
    for row in (header, *found):
        assert validator.is_valid(row)
    for row in found[:20]:
        assert_fits(ROWS, table, row)


def test_calls_are_a_tree_with_repeats_folded(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "calls", recording, "--symbol", "main", "--depth", "2", "--all")
    calls = [line.partition(" | ")[2] for line in lines]
    assert calls[0] == "main() {"
    assert calls[1:5] == ["  fib() x 3", "  even() x 4", "  guarded() x 5", "  apply() x 6"]
    assert calls[-1] == "}"
    main_row = rows(capsys, "calls", recording, "--symbol", "main", "--limit", "1")[1]
    assert int(lines[0].split()[2].replace(",", "")) == main_row["instructions"]


def test_calls_say_how_they_began_and_ended(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "calls", recording, "--symbol", "main", "--all")
    calls = [line.partition(" | ")[2].strip() for line in lines]
    assert "leave() x 4 /* longjmp */ {" in calls  # the first one binds longjmp()
    assert "odd() x 4 /* tail */ {" in calls
    assert "fib() x 6 /* tail */ {" in calls


def test_calls_below_a_selected_one_are_those_of_the_table(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = trace.calls()
    parents = dict(zip(calls.named("id"), calls.named("parent"), strict=True))
    selected = set(calls.where(entry_symbol=["fib", "qsort"]).named("id"))
    expected = []
    for number in parents:
        above: int | None = number
        while above is not None and above not in selected:
            above = parents[above]
        if above is not None:
            expected.append(number)
    found = rows(capsys, "calls", recording, "--symbol", "fib", "--symbol", "qsort", "--all")[1:]
    assert [row["id"] for row in found] == expected
    assert [row["id"] for row in rows(capsys, "calls", recording, "--all")[1:]] == list(parents)


def test_calls_are_bounded(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, errors = printed(capsys, "calls", recording)
    assert sum(not line.endswith("}") for line in lines) == 200
    assert re.search(r"note: [0-9,]+ more calls: --limit N prints N calls", errors)
    monkeypatch.setattr(frames, "_ROWS", 64)  # parts are cut to the first frames again and again
    found = rows(capsys, "calls", recording, "--limit", "10")[1:]
    assert [row["id"] for row in found] == trace.calls().named("id")[:10]
    assert printed(capsys, "calls", recording)[0] == lines


def test_slowest_calls_lead_to_what_they_called(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, _ = printed(capsys, "calls", recording, "--symbol", "fib", "--slowest", "4")
    assert len(lines) == 8
    most = sorted(trace.calls(symbol="fib").named("instructions"), reverse=True)[:4]
    assert [int(line.split()[0].replace(",", "")) for line in lines[::2]] == most
    command = lines[1].split()
    assert command[:2] == ["ptkit", "calls"]
    inside, _ = printed(capsys, *command[1:])
    assert int(inside[0].split()[2].replace(",", "")) == most[0]
    assert {line.partition(" | ")[2].split("(")[0].strip() for line in inside} <= {"fib", "}"}


def test_a_call_by_its_number(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = trace.calls()
    number = int(calls.where(entry_symbol="guarded")["id"][1])
    inside = rows(capsys, "calls", recording, "--id", str(number), "--all")[1:]
    assert inside[0]["id"] == number
    parents = {number: None}
    for row in inside[1:]:
        assert row["parent"] in parents
        parents[row["id"]] = row["parent"]
    assert sum(row["self_instructions"] for row in inside) == calls["instructions"][calls["id"] == number][0]
    direct = np.asarray(calls["parent"] == number) & calls["parent_known"]
    shallow = rows(capsys, "calls", recording, "--id", str(number), "--depth", "2")[1:]
    assert [row["id"] for row in shallow[1:]] == calls["id"][direct].tolist() != []
    assert main(["calls", recording, "--id", str(len(calls))]) == 2
    assert f"they are 0 to {len(calls) - 1:,}" in capsys.readouterr().err
    for words in (["--symbol", "fib"], ["--slowest", "1"]):
        assert main(["calls", recording, "--id", "1", *words]) == 2
        assert f"--id does not go with {words[0]}" in capsys.readouterr().err


def test_numbers_of_calls_go_on_from_stream_to_stream(
    spaces: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: spaces)
    calls = spaces.calls()
    ids, streams = calls["id"].tolist(), calls["stream"].tolist()
    assert len(set(streams)) == 3
    for number, stream in zip(ids, streams, strict=True):
        (row,) = rows(capsys, "calls", "ignored", "--id", str(number), "--depth", "1")[1:]
        assert row["stream"] == stream
        assert row["instructions"] == calls["instructions"][ids.index(number)]
        first = min(one for one, owner in zip(ids, streams, strict=True) if owner == stream)
        words = ["--stream", str(stream), "--id", str(number - first), "--depth", "1"]
        assert rows(capsys, "calls", "ignored", *words)[1:] == [row]


def test_a_call_within_a_time_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = open_recording("all", tmp_path)
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: trace)
    tsc = trace.calls()["tsc"]
    first, last = int(tsc.min()), int(tsc.max())
    time = first + (last - first) * 3 // 10, first + (last - first) * 7 // 10
    calls = trace.calls(time=time)
    assert len(set(calls["stream"].tolist())) == 2
    within = ["--time", f"{time[0]}-{time[1]}", "--depth", "1"]
    for row in range(0, len(calls), len(calls) // 8):
        number = int(calls["id"][row])
        (found,) = rows(capsys, "calls", "ignored", "--id", str(number), *within)[1:]
        assert [found[name] for name in ("stream", "instructions", "tid")] == [
            int(calls[name][row]) for name in ("stream", "instructions", "tid")
        ]
    assert main(["calls", "ignored", "--id", str(2**40), *within]) == 2
    assert ", and not all are within --time" in capsys.readouterr().err


def test_tree_has_contexts_above_a_share(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = trace.call_tree()
    total = tree["self_instructions"].sum()
    lines, errors = printed(capsys, "tree", recording, "--min", "5%")
    assert len(lines) == (tree["instructions"] >= 0.05 * total).sum()
    assert f"{len(tree) - len(lines):,} more contexts: --min SHARE prints smaller ones" in errors
    assert lines[0].startswith("100.0%")
    names = [line.split("  ", 1)[1] for line in lines]
    assert len(printed(capsys, "tree", recording, "--all")[0]) == len(tree)
    shallow, errors = printed(capsys, "tree", recording, "--all", "--depth", "2")
    assert len(shallow) == (tree["depth"] - tree["depth"].min() < 2).sum() < len(tree)
    assert "a larger --depth prints deeper ones" in errors
    assert len(names) > 1
    assert main(["tree", recording, "--all", "--json"]) == 0
    nodes = [json.loads(line) for line in capsys.readouterr().out.splitlines()][1:]
    assert [node["node"] for node in nodes] == tree.named("node")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A recording of returns to addresses that no call has put on the stack."""
    folder = tmp_path_factory.mktemp("chain")
    ptkit.record([str(build("calls/rop", folder, "-nostdlib", "-static"))], output=folder / "rop.ptk")
    return str(folder / "rop.ptk")


def test_anomalies_are_listed(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = printed(capsys, "calls", chain, "--anomalies")
    assert re.search(r"TSC \[ticks\] +tid  kind +from -> to \(\*: no call before it\), expected\n", errors)
    found = [re.split(r" {2,}", line.strip(), maxsplit=1)[1] for line in lines]
    ends = [("victim", "first"), ("first", "second"), ("second", "third")]
    for text, (came, went) in zip(found, ends, strict=True):
        pattern = rf"return elsewhere\*  {came}\+0x\w+ -> {went}\S*, expected _start\+0x5"
        assert re.fullmatch(pattern, text), text
    assert len(printed(capsys, "calls", chain, "--anomalies", "--symbol", "victim")[0]) == 1
    few, errors = printed(capsys, "calls", chain, "--anomalies", "--limit", "1")
    assert few == lines[:1]
    assert "2 more anomalies: --limit N prints N, --all all" in errors
    with_rvas, _ = printed(capsys, "calls", chain, "--anomalies", "--rva")
    assert re.search(r" rop\+0x\w+ \(victim\+0x\w+\) -> rop\+0x\w+ \(first\), ", with_rvas[0])
    assert main(["calls", chain, "--anomalies", "--id", "1"]) == 2
    assert "--id does not go with --anomalies" in capsys.readouterr().err
    for form in (["--anomalies"], ["--around", "50%"]):
        for words in (["--inlines"], ["--frames", "python"], ["--time", "1%-", "--whole-calls"]):
            assert main(["calls", chain, *form, *words]) == 2
            assert f"{words[-1] if len(words) == 3 else words[0]} does not go with" in capsys.readouterr().err


def test_anomalies_as_json_have_all_names(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    header, *found = rows(capsys, "calls", chain, "--anomalies")
    assert header["rows"] == "stack_anomalies"
    assert [row["to_symbol"] for row in found] == ["first", "second", "third"]
    assert {row["expected_symbol"] for row in found} == {"_start"}
    assert all("no_call_before" in row["flags"] for row in found)
    for row in found:
        assert_fits(ROWS, "stack_anomalies", row)


def test_a_program_without_anomalies_has_no_lines(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = printed(capsys, "calls", recording, "--anomalies")
    assert lines == []
    assert "no anomalies: each return went to the return address of an open call" in errors


def test_callers_stand_below_the_function(
    recording: str, trace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    callers = trace.callers("leave")
    whole = int(callers["instructions"][0])
    lines, errors = printed(capsys, "tree", recording, "--callers", "leave", "--min", "95%")
    assert len(lines) == (callers["instructions"] >= 0.95 * whole).sum() < len(callers)
    assert lines[0].split() == ["100.0%", f"{callers['self_instructions'][0] / whole:.1%}", f"{whole:,}"] + [
        *(str(callers["count"][0]), "leave", "(calls)")
    ]
    assert lines[1].endswith("   guarded (calls)")
    assert errors.startswith(" total   self instructions calls  function, called by\n")
    shallow, errors = printed(capsys, "tree", recording, "--callers", "leave", "--depth", "2", "--all")
    assert len(shallow) == (callers["depth"] < 2).sum()
    assert "a larger --depth prints deeper ones" in errors
    both, _ = printed(capsys, "tree", recording, "--callers", "[eo][vd]*", "--depth", "1")
    assert [line.split()[0] for line in both if line.split()[4] in ("even", "odd")] == ["100.0%"] * 2
    monkeypatch.setattr(call_reports, "EMULATOR", "another back end")  # of which times are real
    line, errors = printed(capsys, "tree", recording, "--callers", "leave", "--depth", "1")
    assert re.search(r" 990 +[0-9.]+ (ns|us|ms) +20  leave", line[0])
    assert " instructions " in errors
    assert " least " in errors
    assert main(["tree", recording, "--callers", "leve"]) == 2
    assert "no function 'leve' was called; did you mean 'leave'" in capsys.readouterr().err


def test_inlined_functions_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = build("inlines", tmp_path, "-g", "-O2")
    path = str(tmp_path / "inlines.ptk")
    ptkit.record([str(program), str(tmp_path / "counts")], output=path, with_debug=True)
    functions, _ = printed(capsys, "functions", path, "--inlines", "--all")
    names = [line.split("  ")[-1] for line in functions]
    assert "leaf [inlined] (inlines)" in names
    assert not any("[inlined]" in line for line in printed(capsys, "functions", path, "--all")[0])
    tree, _ = printed(capsys, "tree", path, "--inlines", "--all")
    assert any(line.endswith(" leaf [inlined] (inlines)") for line in tree)
    calls, _ = printed(capsys, "calls", path, "--inlines", "--symbol", "main", "--all")
    assert any("calling() /* inlined */ {" in line for line in calls)
    *_, row = rows(capsys, "functions", path, "--inlines", "--all", "--sort", "name")
    assert_fits(ROWS, "functions", row)
    assert "inline_level" in row
    for words in (["functions", path, "--by", "line"], ["calls", path, "--around", "1ms"]):
        assert main([*words, "--inlines"]) == 2
        assert "--inlines does not go with" in capsys.readouterr().err


def test_stripped_programs_have_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "functions", recorded(tmp_path, "-s"), "--module", "calls", "--all")
    names = {line.split()[-1] for line in lines if "@plt" not in line}
    assert names
    assert all(re.fullmatch(r"calls!0x[0-9a-f]+|\(calls\)", name) for name in names)


@pytest.mark.parametrize("verb", ["functions", "calls"])
def test_functions_that_are_not_there(verb: str, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, recording, "--symbol", "guardet"]) == 2
    assert "no symbol 'guardet'; did you mean guarded" in capsys.readouterr().err
    lines, errors = printed(capsys, verb, recording, "--symbol", "fib", "--ip", "0x10")
    assert lines == []
    assert "no rows match --ip, --symbol" in errors


@pytest.mark.parametrize("verb", ["functions", "calls", "tree"])
def test_losses_are_said(verb: str, tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "code.bin").write_bytes(loop.CODE)
    (tmp_path / "raw.pt").write_bytes(loop.stream(5) + b"\xff\xff\xff" + loop.stream(5))
    words = [str(tmp_path / "raw.pt"), "--code", f"{tmp_path / 'code.bin'}@{loop.BASE:#x}"]
    lines, errors = printed(capsys, verb, *words, "--processor", "6/142/9")
    assert lines
    assert "call stacks end at gaps" in errors
    assert "not everything could be decoded" in errors


@pytest.mark.parametrize("callers", [[], ["--callers", "leave"]])
def test_contexts_with_most_instructions_are_kept_with_their_callers(
    callers: list[str], recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    every = rows(capsys, "tree", recording, "--all", *callers)[1:]
    for limit in (1, 7, 40):
        _, *found = rows(capsys, "tree", recording, "--limit", str(limit), *callers)
        assert len(found) == min(limit, len(every))
        amounts = sorted((row["instructions"] for row in every), reverse=True)
        assert sorted((row["instructions"] for row in found), reverse=True) == amounts[: len(found)]
        nodes = {row["node"] for row in found}
        assert all(row["parent"] in nodes for row in found if row["parent"] is not None)
        assert found == [row for row in every if row["node"] in nodes]
    _, errors = printed(capsys, "tree", recording, "--limit", "2", *callers)
    assert f"{len(every) - 2} more contexts: --limit N prints N\n" in errors
    lines, errors = printed(capsys, "tree", recording, "--limit", "30", "--min", "100%", *callers)
    assert 1 <= len(lines) < 30
    assert "--limit N prints N; --min SHARE prints smaller ones" in errors


def test_options_that_exclude_each_other(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--depth", "2", "--slowest", "3"], ["--limit", "2", "--all"]):
        with pytest.raises(SystemExit):
            main(["calls", recording, *words])
        assert "not allowed with argument" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tree", recording, "--min", "101%"])
    assert "is not a share" in capsys.readouterr().err


def test_lines_fit_a_terminal(
    recording: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb in ("functions", "calls", "tree"):
        module = __import__(f"ptkit.cli.verbs.{verb}", fromlist=["run"])
        monkeypatch.setattr(module, "line_width", lambda options: 80)
        lines, _ = printed(capsys, verb, recording)
        assert max(map(len, lines)) <= 80
        assert lines


def test_names_are_cut_and_what_is_before_them_stays() -> None:
    name = "store::detail::" + "x" * 40 + "::push_back"
    assert stacks.fit(name, 30, 80) == "...::push_back"
    assert stacks.fit(f"0000000000401000  {name} (kv)", 30, 80) == "0000000000401000  ...::push_back (kv)"
    assert stacks.fit(f"> {name}", 0, 40) == "> ...::push_back"
    assert stacks.fit(f"kv+0x1010 ({name})", 30, 80) == "kv+0x1010 (...::push_back)"
    assert stacks.fit(f"main+0x10 -> {name}+0x4", 30, 80) == "main+0x10 -> ...::push_back+0x4"
    assert stacks.fit(name, 30, None) == name
    assert stacks.fit("short", 30, 80) == "short"
    assert stacks.indentation(3, 30, 80) == " " * 6
    assert stacks.indentation(400, 30, 80).endswith("400> ")
    assert len(stacks.indentation(100_000, 30, None)) == 120


def test_durations_have_three_digits() -> None:
    texts = {0: "0 ns", 999: "999 ns", 1234: "1.23 us", 56_789: "56.8 us", 123_456_789: "123 ms"}
    assert {ns: duration(ns) for ns in texts} == texts
    assert duration(3600 * 10**9) == "3,600 s"


def test_limits_count_calls_of_all_streams(
    spaces: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: spaces)
    lines, errors = printed(capsys, "calls", "ignored")
    assert [line.split(":")[0] for line in lines if line.startswith("[")] == [
        f"[stream {number}" for number in range(3)
    ]
    assert "more" not in errors
    lines, errors = printed(capsys, "calls", "ignored", "--limit", "1")
    assert len(lines) == 2
    assert "2 more streams: --limit N prints N calls" in errors
    assert len(rows(capsys, "calls", "ignored", "--all")) == 1 + len(spaces.calls())


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("slow")
    ptkit.record([str(build("slow", folder, "-g"))], output=folder / "slow.ptk")
    return str(folder / "slow.ptk")


def test_slow_calls_are_compared(slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = printed(capsys, "functions", slow, "--slow", "handle", "--limit", "3")
    assert lines[0].startswith("handle: 5,000 calls; 5 slow ones, ")
    assert "4,995 fast ones" in lines[0]
    heads = [row for row, line in enumerate(lines) if line.lstrip().startswith("extra ")]
    assert [lines[row].split()[-1] for row in heads] == ["function", "begin", "edge"]
    assert [lines[heads[0] + row].split()[-1] for row in (1, 2)] == ["walk", "load_page"]
    assert "slow.c:" in lines[heads[1] + 1]
    assert "walk" in lines[heads[2] + 1]
    commands = [line for line in lines if line.startswith("  ptkit calls ")]
    assert len(commands) == 2
    assert "load_page" in "\n".join(printed(capsys, *commands[0].split()[1:])[0])
    assert "load_page" not in "\n".join(printed(capsys, *commands[1].split()[1:])[0])
    assert "emulat" in errors


def test_slow_calls_are_compared_in_json(slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    header, *found = rows(
        capsys, "functions", slow, "--slow", "handle", "--slow-from", "300", "--fast-to", "90%"
    )
    assert header["rows"] == "call_differences"
    assert [one["name"] for one in found[:2]] == ["walk", "load_page"]
    assert {"function", "line", "edge"} <= {one["kind"] for one in found}
    for one in found:
        assert_fits(ROWS, "call_differences", one)
    assert main(["functions", slow, "--slow", "handel"]) != 0
    assert "did you mean 'handle'" in capsys.readouterr().err


def test_calls_are_counted_by_length(slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    header, *found = rows(capsys, "functions", slow, "--histogram", "handle")
    assert header["rows"] == "call_histogram"
    for one in found:
        assert_fits(ROWS, "call_histogram", one)
    assert sum(one["count"] for one in found) == 5000
    lines, _ = printed(capsys, "functions", slow, "--histogram", "handle")
    bins = lines[: len(found)]
    assert [int(line.split()[1].replace(",", "")) for line in bins] == [one["count"] for one in found]
    assert [line.split()[0] for line in lines[len(found) :]] == ["call", "ptkit"] * 3
    by_time, _ = printed(capsys, "functions", slow, "--histogram", "handle", "--of", "time")
    lengths = [line[:15].strip() for line in by_time if "%" in line]
    assert {"0 ns", "1.00 us", "2.00 us", "5.00 us"} <= set(lengths)  # round, and no ticks
    header, *found = rows(capsys, "functions", slow, "--histogram", "handle", "--of", "time")
    assert {one["unit"] for one in found} == {"TSC ticks"}


def test_limits_of_slow_calls_are_times(slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["functions", slow, "--slow", "handle", "--of", "time", "--limit", "1"]
    lines, _ = printed(capsys, *words, "--slow-from", "1us", "--fast-to", "500ns")
    found = re.match(r"handle: 5,000 calls; ([0-9,]+) slow ones, ([0-9.]+ [um]s) or more; ", lines[0])
    assert found is not None
    trace = ptkit.open(slow)
    lengths = trace.open_parts.times.length_ns(trace.calls(symbol="handle").lengths("time")[0])
    assert int(found[1].replace(",", "")) == (lengths >= 1000).sum()
    assert found[2] == duration(int(lengths[lengths >= 1000].min()))
    assert main(["functions", slow, "--slow", "handle", "--slow-from", "1us"]) == 2
    assert "--slow-from 1us is a time: compare by --of time" in capsys.readouterr().err


def test_colours_are_for_terminals(
    slow: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs = (["functions"], ["tree"], ["calls", "--symbol", "handle", "--limit", "3"])
    plain = [printed(capsys, *verb[:1], slow, *verb[1:])[0] for verb in verbs]
    assert "\x1b" not in str(plain)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(colours, "has_colours", lambda: True)
    for verb, lines in zip(verbs, plain, strict=True):
        painted = "\n".join(printed(capsys, *verb[:1], slow, *verb[1:])[0])
        assert "\x1b[" in painted
        assert len(re.sub(r"\x1b\[[0-9;]*m", "", painted).splitlines()) >= len(lines)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("TERM", "xterm", True)],
)
def test_colours_are_switched_off(
    name: str, value: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    assert colours.has_colours() is expected


def test_names_of_a_recording_paint_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    colours.print_painted("a\x1b[31mb", ("c\x1bd", "dim"))
    assert capsys.readouterr().out == "a\\x1b[31mbc\\x1bd\n"
