"""Every method and verb on traces without rows or times, with one row, and with times near 2**64."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")

from ptkit.cli.main import main  # noqa: E402

LAST = 2**64 - 1
CODE = {0x1000: bytes.fromhex("e8 01000000 f4 74fd 90 c3")}  # call 0x1006; hlt; jz 0x1005; nop; ret
PSB = bytes.fromhex("0282" * 8)
PSBEND, TSC = bytes.fromhex("0223"), bytes.fromhex("19 00000001 000000")
ON = bytes.fromhex("5100100000 0001")  # TIP.PGE 0x1000, pads
ROWS = ["tsc", "tsc_error", "flags"]


def of_records(*times: int) -> Any:
    """Calls and returns that were read at these times."""
    records = {"from_ip": [], "to_ip": [], "tsc": list(times)}
    for index in range(len(times)):
        records["from_ip"].append(0x1009 if index % 2 else 0x1000)
        records["to_ip"].append(0x1005 if index % 2 else 0x1006)
    return records


MAKERS: dict[str, Callable[[], Any]] = {
    "no rows": lambda: ptkit.open(PSB + PSBEND, images=CODE, cpu="6/158/10"),
    "no rows, a time": lambda: ptkit.open(PSB + TSC + PSBEND, images=CODE, cpu="6/158/10"),
    "no code": lambda: ptkit.open(PSB + PSBEND + bytes.fromhex("3100100000 06"), cpu="6/158/10"),
    "errors alone": lambda: ptkit.open_branches({"from_ip": [1 << 60], "to_ip": [1 << 60], "tsc": [LAST]}),
    "no times": lambda: ptkit.open_branches(of_records(0, 0), images=CODE),
    "one row": lambda: ptkit.open_branches(of_records(5), images=CODE, tsc_hz=10**9),
    "late": lambda: ptkit.open_branches(of_records(LAST - 9, LAST - 5, LAST - 1, LAST), images=CODE),
    "late, with a clock": lambda: ptkit.open_branches(
        of_records(LAST - 9, LAST - 1, LAST), images=CODE, tsc_hz=10**9
    ),
    "early and late": lambda: ptkit.open_branches(
        of_records(1, LAST - 1), images=CODE, perf_time=(512, 10, 0)
    ),
    "middle": lambda: ptkit.open_branches(of_records(2**63 - 1, 2**63, 2**63 + 1), images=CODE, tsc_hz=10**9),
}


@pytest.fixture(params=sorted(MAKERS))
def trace(request: pytest.FixtureRequest) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        yield MAKERS[request.param]()


METHODS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda trace, name=name: getattr(trace, name)()
        for name in ("packets", "branches", "blocks", "instructions", "events", "edges", "calls", "functions")
    },
    **{
        f"iter_{name}": lambda trace, name=name: list(getattr(trace, f"iter_{name}")(rows=1))
        for name in (
            "packets",
            "branches",
            "blocks",
            "instructions",
            "events",
            "edges",
            "calls",
            "errors",
            "gaps",
        )
    },
    **{
        f"{name} by time": lambda trace, name=name: getattr(trace, name)(order="time")
        for name in ("branches", "instructions", "events", "calls")
    },
    **{
        f"{name} of a time": lambda trace, name=name: getattr(trace, name)(time=(LAST - 5, LAST))
        for name in ("branches", "instructions", "events", "calls", "functions", "edges")
    },
    **{
        f"around {clock} {time}": lambda trace, clock=clock, time=time: trace.around(time, time, clock=clock)
        for clock, time in (("tsc", 0), ("tsc", LAST), ("percent", 50), ("seconds", 0.1), ("ns", 2**62))
    },
    **{
        f"at_times {clock} {time}": lambda trace, clock=clock, time=time: trace.at_times([time], clock=clock)
        for clock, time in (("tsc", 0), ("tsc", LAST), ("percent", 50), ("seconds", 0.1), ("monotonic", 5))
    },
    "at_times of none": lambda trace: trace.at_times([], clock="tsc"),
    "functions by module": lambda trace: trace.functions("module"),
    "functions by line": lambda trace: trace.functions("line"),
    "replaced tails": lambda trace: trace.functions(tails="replaced"),
    "call_tree": lambda trace: trace.call_tree(),
    "tree of calls": lambda trace: trace.calls().tree(),
    "functions of calls": lambda trace: trace.calls().functions(),
    "histogram": lambda trace: trace.calls().histogram("time"),
    "slowest": lambda trace: trace.calls().slowest(3, "time"),
    "callers": lambda trace: trace.callers("*"),
    "threads": lambda trace: trace.threads(),
    "waits": lambda trace: trace.waits(),
    "whole calls": lambda trace: trace.functions(whole_calls=True, time=(LAST - 5, LAST)),
    "imports": lambda trace: trace.functions(imports=True),
    "sorted": lambda trace: trace.functions().sort("instructions").nlargest(2, "count"),
    "pickled": lambda trace: pickle.loads(pickle.dumps(trace.branches())),
    "compare": lambda trace: trace.compare("nothing"),
    "between": lambda trace: trace.between(LAST - 5, LAST).branches(),
    "between seconds": lambda trace: trace.between(seconds=(0, 1)).branches(),
    "between ns": lambda trace: trace.between(ns=(-(2**63), 2**63 - 1)).branches(),
    "between percent": lambda trace: trace.between(percent=(0, 100)).instructions(),
    "touching": lambda trace: trace.touching(0x1000).branches(),
    "slice": lambda trace: trace.slice(after=trace.events()[:1]).branches(),
    "stack_anomalies": lambda trace: trace.stack_anomalies,
    "errors": lambda trace: (trace.errors, trace.errors.messages()),
    "gaps": lambda trace: (trace.gaps, trace.gaps.messages()),
    "info": lambda trace: trace.info.text(verbose=True),
    "index": lambda trace: trace.index(save=False),
    "mappings": lambda trace: trace.mappings()["module"],
    "packet_counts": lambda trace: trace.packet_counts(),
    "ptwrites": lambda trace: trace.ptwrites()["function"],
    "symbolize": lambda trace: trace.symbolize([0, 0x1000, LAST], modules=True, lines=False),
    "locate": lambda trace: trace.locate([0, 0x1000, LAST]),
    "modules": lambda trace: trace.modules([0, 0x1000, LAST]),
    "code": lambda trace: (trace.code(LAST, 16), trace.disassemble(LAST)),
    "to_pandas": lambda trace: trace.branches().to_pandas(),
    "to_arrow": lambda trace: trace.branches().to_arrow(),
    "derived": lambda trace: [trace.branches().named(name) for name in ("from_symbol", "to_module_offset")],
    "columns": lambda trace: trace.branches(columns=["tsc", "tsc_estimate", "time_ns"]),
    "repr": lambda trace: (repr(trace.branches()), repr(trace.calls()), repr(trace)),
}


@pytest.mark.parametrize("method", sorted(METHODS))
def test_methods_give_rows_or_an_error_in_words(trace: Any, method: str) -> None:
    try:
        found = METHODS[method](trace)
    except ptkit.PtkitError as error:
        found = str(error) or None
    assert found is not None


VERBS = (
    "calls --around 50%",
    "calls --around 50% --window 10us",
    "calls --around 0 --json",
    "calls --around 18446744073709551615 --window 18446744073709551615",
    "calls --slowest 3",
    "calls --json",
    "branches",
    "branches --rva",
    "branches --json --order time",
    "branches --time 10%-20%",
    "branches --time 0s-1s",
    "branches --time 18446744073709551614-18446744073709551615",
    "instructions --rva --time-unit tsc",
    "instructions --time-unit ns",
    "events --time-unit s",
    "packets --tsc --rva",
    "packets --branches",
    "functions",
    "functions --rva",
    "functions --by module",
    "functions --by line",
    "functions --histogram f",
    "functions --slow f",
    "tree --all --rva",
    "tree --callers f",
    "calls --anomalies",
    "calls --id 0",
    "functions --imports",
    "functions --whole-calls --time 10%-20%",
    "threads",
    "threads --waits --json",
    "edges --rva",
    "edges --by module",
    "info --decode --rva",
    "info --json --decode",
    "verify",
    "index",
    "export --format offsets --hits -o {folder}/offsets",
    "export --format drcov -o {folder}/drcov",
    "export --format raw -o {folder}/raw",
    "export --format code -o {folder}/code",
    "export -o {folder}/perf.data",
    "bench --seconds 0.01",
)


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_print_lines_or_an_error_in_words(
    trace: Any, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "few.ptk"
    trace.save(path)
    name, *options = verb.format(folder=tmp_path).split()
    try:
        status = main([name, str(path), *options])
    except SystemExit as exit:
        status = exit.code
    said = capsys.readouterr().err
    assert status in (0, 1, 2), said
    assert "Error:" not in said, said  # of Python: "IndexError: ..."
    assert "PTKIT_DEBUG" not in said, said


def test_around_says_that_there_is_no_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        MAKERS["errors alone"]().save(tmp_path / "few.ptk")
    assert main(["calls", str(tmp_path / "few.ptk"), "--around", "50%"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"no call is open at TSC {LAST:,}, and none begins or ends near it" in printed.err
