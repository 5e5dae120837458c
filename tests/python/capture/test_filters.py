"""Filters and triggers: as objects, and in the words of perf and of the command line."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import compiling
import pytest

import ptkit
from ptkit import Filter, Trigger
from ptkit.support.arguments import LAST_ADDRESS

SOURCE = """
__attribute__((noinline, noclone)) int first(int n) { return n + 1; }
__attribute__((noinline, noclone)) int second(int n) { return n * 3; }
int main(int argc, char **argv) { (void)argv; return second(first(argc)) == 0; }
"""
TWIN = """
__attribute__((noinline, noclone)) static int twin(int n) { return n + %d; }
int f%d(int n) { return twin(n); }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with functions `first`, `second`, and two that are called `twin`."""
    folder = tmp_path_factory.mktemp("filters")
    (folder / "a.c").write_text(SOURCE)
    (folder / "b.c").write_text(TWIN % (5, 5))
    (folder / "c.c").write_text(TWIN % (7, 7))
    sources = [folder / name for name in ("a.c", "b.c", "c.c")]
    return compiling.compiled(folder / "a.out", "-O1", *sources)


def _symbol(file: Path, name: str) -> list[tuple[int, int]]:
    """(address, size) of functions as nm says; in these programs the address is the offset in the file."""
    out = subprocess.run(["nm", "-S", file], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return sorted((int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[3] == name)


def test_filters_as_perf_has_them() -> None:
    assert Filter.parse("filter main") == [Filter("filter", "main")]
    assert Filter.parse("filter 0x1000/0x200 @ a.out") == [Filter("filter", "", "a.out", 0x1000, 0x11FF)]
    assert Filter.parse("filter 0x1000 / 512@a.out") == [Filter("filter", "", "a.out", 0x1000, 0x11FF)]
    assert Filter.parse("filter * @ libc.so.6") == [Filter("filter", "", "libc.so.6", 0, LAST_ADDRESS)]
    assert Filter.parse("start main @ a.out, stop exit") == [
        Filter("start", "main", "a.out"),
        Filter("stop", "exit"),
    ]
    assert Filter.parse(" stop 16@a.out tracestop fini ,filter x ") == [
        Filter("stop", "", "a.out", 16, 16),
        Filter("tracestop", "fini"),
        Filter("filter", "x"),
    ]
    assert Filter.parse('filter "ns::f(int, char const*)" @ "my prog"') == [
        Filter("filter", "ns::f(int, char const*)", "my prog")
    ]


def test_constructors_make_filters() -> None:
    assert [Filter.function("f")] == Filter.parse("filter f")
    assert [Filter.range(0x10, 0x20, "a")] == Filter.parse("filter 0x10/0x20 @ a")
    assert [Filter.module("a")] == Filter.parse("filter * @ a")
    assert [Filter.start("f"), Filter.stop(5, "a")] == Filter.parse("start f, stop 5 @ a")
    assert [Filter.tracestop("f"), Filter.tracestop(5, 3, "a")] == Filter.parse(
        "tracestop f, tracestop 5/3@a"
    )
    assert Filter.range(0, LAST_ADDRESS + 1).last == LAST_ADDRESS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write filter"),
        ("main", "write filter"),
        ("trace main", "'trace main': write filter"),
        ("filter", "write filter"),
        ("filter 0x1000", "an address needs a size"),
        ("filter 0x1000/0", r"size=0: .*\[1, "),
        ("filter 12abc/3", "'12abc' is neither a number nor the name"),
        ("filter 0x10000000000000000/1", r"2\*\*64"),
        ("start f / 10 @ a", "start is for one location"),
        ("start * @ a", "write `filter . @ FILE`"),
        ("filter *", "write `filter . @ FILE`"),
        ("filter main @", "write filter"),
        ("filter main ! x", "write filter"),
        ("filter main#2", "give the path of its file after @"),
        ("filter main / 16 @ a.out", "give the path of its file after @, not only 'a.out'"),
        ("filter main @ /no/such/file", "no file '/no/such/file'"),
    ],
)
def test_wrong_filters_are_refused(text: str, words: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=words) as caught:
        Filter.parse(text)
    assert str(caught.value).startswith("filter ")


def test_fields_are_checked() -> None:
    for make in (
        lambda: Filter("all"),
        lambda: Filter("filter", "", "", 5, 4),
        lambda: Filter("filter", "", "", -1, 4),
        lambda: Filter("filter", "a\0b"),
        lambda: Filter.function(""),
        lambda: Filter.module(""),
        lambda: Filter.range(2**64 - 1, 2),
        lambda: Filter("filter", "f", 5),  # type: ignore[arg-type]
        lambda: Trigger("symbol"),
        lambda: Trigger("dawn"),
        lambda: Trigger.symbol("f", action="explode"),
        lambda: Trigger.symbol("f", count=0),
        lambda: Trigger.symbol("f", count=1.5),  # type: ignore[arg-type]
        lambda: Trigger.address(-1),
        lambda: Trigger.signal("SIGNONE"),
        lambda: Trigger.signal(0),
        lambda: Trigger.signal(65),
    ):
        with pytest.raises(ptkit.ConfigError):
            make()


def test_paths_are_those_that_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "real"
    target.touch()
    (tmp_path / "link").symlink_to(target)
    monkeypatch.chdir(tmp_path)
    assert Filter.function("f", "./link").file == os.path.realpath(target)
    assert Filter.parse("filter f @ ./link")[0].file == os.path.realpath(target)
    assert Filter.function("f", Path("/") / tmp_path / "link").file == os.path.realpath(target)
    assert Filter.function("f", "link").file == "link"
    assert Trigger.parse("stop at f @ ./link").file == os.path.realpath(target)


def test_ranges_of_symbols(compiled: Path) -> None:
    ((first, size),) = _symbol(compiled, "first")
    ((second, second_size),) = _symbol(compiled, "second")
    assert first < second
    file = os.path.realpath(compiled)
    assert Filter.parse(f"filter first / 3 @ {compiled}") == [Filter("filter", "", file, first, first + 2)]
    assert Filter.parse(f"tracestop first / second @ {compiled}") == [
        Filter("tracestop", "", file, first, second + second_size - 1)
    ]
    assert Filter.parse(f"filter {first:#x} / second @ {compiled}")[0].last == second + second_size - 1
    assert Filter.parse(f"filter first#1 @ {compiled}") == [
        Filter("filter", "", file, first, first + size - 1)
    ]
    with pytest.raises(ptkit.ConfigError, match="first lies before second"):
        Filter.parse(f"filter second / first @ {compiled}")
    with pytest.raises(ptkit.ConfigError, match=r"'_first': .* has none of this name"):
        Filter.parse(f"filter _first / 3 @ {compiled}")
    with pytest.raises(ptkit.ConfigError, match=r"'seconds': .* has none of this name; it has second"):
        Filter.parse(f"filter seconds / 3 @ {compiled}")


def test_symbols_of_one_name_have_numbers(compiled: Path) -> None:
    (one, one_size), (two, two_size) = _symbol(compiled, "twin")
    file = os.path.realpath(compiled)
    assert Filter.parse(f"filter twin #2 @ {compiled}") == [
        Filter("filter", "", file, two, two + two_size - 1)
    ]
    assert Filter.parse(f"stop twin#1 @ {compiled}") == [Filter("stop", "", file, one, one)]
    assert Filter.parse(f"filter twin#1 / twin#2 @ {compiled}")[0].last == two + two_size - 1
    with pytest.raises(ptkit.ConfigError, match=rf"has 2: #1 at {one:#x}, #2 at {two:#x}; say which one"):
        Filter.parse(f"filter twin / 3 @ {compiled}")
    with pytest.raises(ptkit.ConfigError, match="has no #3, only 2"):
        Filter.parse(f"filter twin#3 @ {compiled}")
    assert one_size


def test_triggers_in_words() -> None:
    assert Trigger.parse("stop at main") == Trigger.symbol("main")
    assert Trigger.parse("start at work x3 @ a.out") == Trigger.symbol(
        "work", count=3, action="start", file="a.out"
    )
    assert Trigger.parse('snapshot at "f(int)" x 12') == Trigger.symbol("f(int)", count=12, action="snapshot")
    assert Trigger.parse("stop at 0x401000") == Trigger.address(0x401000)
    assert Trigger.parse("stop at 16@a.out") == Trigger.address(16, file="a.out")
    for name in ("USR1", "SIGUSR1", "sigusr1", "10", signal.SIGUSR1, 10):
        assert Trigger.signal(name, action="snapshot") == Trigger.parse("snapshot on USR1")
    assert Trigger.parse("stop on HUP x2") == Trigger.signal(signal.SIGHUP, count=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write start"),
        ("stop main", "write start"),
        ("halt at main", "write start"),
        ("stop at main twice", "write start"),
        ("stop at main xy", "xy is not a count|write start"),
        ("stop at main x0", "count=0: "),
        ("stop at 12q", "neither a number nor the name"),
        ("stop on NOISE", "there is no signal 'NOISE'; `kill -l`"),
        ("stop on 99", "signal=99: "),
        ("stop on USR1 @ a.out", "a signal has no file"),
    ],
)
def test_wrong_triggers_are_refused(text: str, words: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=words) as caught:
        Trigger.parse(text)
    assert str(caught.value).startswith("trigger ")
