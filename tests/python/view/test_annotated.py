"""Annotated code: counts against rows, source lines, loops, what is not known, text and hostile HTML."""

from __future__ import annotations

import base64
import hashlib
import lzma
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build, compiled
from perf_data import aux_streams
from reduced import unpack
from rounds import needs_emulator
from small_elf import elf
from view_browser import CHROMIUM
from windows_programs import LOAD, windows_program

import ptkit
from ptkit.view.annotated import text as annotated_text
from ptkit.view.code import source_texts

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "recordings"
SOURCE = """\
#include <stdlib.h>
volatile int sink;
__attribute__((cold, noinline)) void rare(int x) { sink += x; }
static inline __attribute__((always_inline)) int twice(int x) { return x + x; }
__attribute__((noinline)) int work(int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    for (int j = 0; j < 3; ++j)
      sum += twice(j) ^ sink;
    if (i == 4) {
      rare(i); sink *= 3; rare(sum);
    }
    if (sink == 12345)
      abort();
  }
  return sum;
}
__attribute__((noinline)) int never(int x) { return x * 3 + sink; }
int main(int argc, char** argv) {
  (void)argv;
  for (int i = 0; i < 7; ++i) sink += work(i);
  return argc > 5 ? never(argc) : 0;
}
"""


def line(text: str) -> int:
    (number,) = (at for at, one in enumerate(SOURCE.splitlines(), 1) if text in one)
    return number


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotated")
    (folder / "work.c").write_text(SOURCE)
    return folder


def recorded(folder: Path, *flags: str) -> ptkit.Trace:
    name = "work" + "".join(flags).replace("/", "")
    program = compiled(folder / name, *flags, "-g", "-static", folder / "work.c")
    path = folder / f"{name}.ptk"
    return ptkit.open(ptkit.Recorder([str(program)], path, backend="emulator", quiet=True).run())


@pytest.fixture(scope="module")
def plain(folder: Path) -> ptkit.Trace:
    return recorded(folder, "-O0")


@pytest.fixture(scope="module")
def optimised(folder: Path) -> ptkit.Trace:
    return recorded(folder, "-O2")


def assert_counts(trace: Any, name: str) -> ptkit.Annotation:
    """Counts of all functions of a name are those of the rows of instructions and of branches."""
    found = trace.annotate(name, functions=1000)
    names = [one.full_name for one in found.functions]
    rows = found.instructions
    ips, counts = np.unique(trace.instructions(symbol=name, columns=["ip"])["ip"], return_counts=True)
    expected = dict(zip(ips.tolist(), counts.tolist(), strict=True))
    ran = rows[rows["count"] > 0]
    ours = dict(zip(ran["ip"].tolist(), ran["count"].tolist(), strict=True))
    assert {ip: ours.get(ip) for ip in expected} == expected, names
    branches = trace.branches(ip=ips.tolist(), kind="COND", columns=["from_ip", "flags"]) if len(ips) else []
    outcomes: dict[int, list[int]] = {}
    if len(ips):
        for ip, taken in zip(branches["from_ip"].tolist(), branches["taken"].tolist(), strict=True):
            if ip in expected:
                outcomes.setdefault(ip, [0, 0])[0 if taken else 1] += 1
    conditional = rows[rows["is_conditional"]]
    columns = (conditional[name].tolist() for name in ("ip", "taken", "not_taken"))
    have = {ip: [taken, passed] for ip, taken, passed in zip(*columns, strict=True) if ip in expected}
    assert have == outcomes, names
    return found


@pytest.mark.parametrize("name", ["small", "tips", "kernel", "thread"])
def test_counts_of_golden_recordings(name: str, open_trace: Any, tmp_path: Path) -> None:
    truth = unpack(GOLDEN / f"{name}.npz")
    streams = aux_streams(lzma.decompress((GOLDEN / f"{name}.perf.data.xz").read_bytes()))
    for stream in list(streams.values())[:2]:
        edges = open_trace(stream, images=[truth.images]).edges()
        begins = np.unique(edges["to_ip"][edges["kind"] == int(ptkit.BranchKind.CALL)])
        work = np.argsort([-int(edges["count"][edges["to_ip"] == one].sum()) for one in begins])[:6]
        if not len(begins):
            continue
        listed = tmp_path / "names.map"
        listed.write_text("".join(f"{ip:016x} T function_{at}\n" for at, ip in enumerate(begins.tolist())))
        trace = open_trace(stream, images=[truth.images], symbols=[str(listed)])
        for at in work.tolist():
            assert assert_counts(trace, f"function_{at}").functions[0].calls > 0


@needs_emulator
@pytest.mark.parametrize("name", ["work", "main", "rare", "mem*", "_IO_*", "work+0x5"])
def test_counts_of_programs(plain: ptkit.Trace, optimised: ptkit.Trace, name: str) -> None:
    for trace in (plain, optimised):
        assert assert_counts(trace, name).missing == []


@needs_emulator
def test_lines_are_those_of_coverage(plain: ptkit.Trace) -> None:
    found = plain.annotate("work", source=True).lines
    coverage = plain.coverage(symbol="work").lines
    columns = ("source", "line", "count", "instructions")
    ran = found[found["count"] > 0]
    assert sorted(zip(*(ran.named(one) for one in columns), strict=True)) == sorted(
        zip(*(coverage.named(one) for one in columns), strict=True)
    )
    counts = dict(zip(found["line"].tolist(), found["count"].tolist(), strict=True))
    rounds = sum(range(7))
    assert counts[line("for (int i = 0; i < rounds")] == rounds + 7
    assert counts[line("sum += twice(j)")] == 3 * rounds
    assert counts[line("rare(i); sink")] == 2
    assert counts[line("      abort();")] == 0
    texts = dict(zip(found["line"].tolist(), found.named("text"), strict=True))
    assert texts[line("      abort();")] == "      abort();"


@needs_emulator
def test_loops_have_their_trips(plain: ptkit.Trace, optimised: ptkit.Trace) -> None:
    rounds = sum(range(7))
    columns = ("count", "entries", "depth")
    found = plain.annotate("work").loops.sort("depth")
    # At -O0 the test is the head: it runs once more for each entry.
    assert [found[one].tolist() for one in columns] == [[rounds + 7, 4 * rounds], [7, rounds], [1, 2]]
    assert found["line"].tolist() == [line("for (int i = 0; i < rounds"), line("for (int j")]
    rows = plain.annotate("work").instructions
    assert np.count_nonzero(rows["is_head"]) == 2
    assert int(rows["depth"].max()) == 2
    outer = optimised.annotate("work").loops.sort("depth")[:1]
    assert outer["count"].tolist() == [rounds]
    assert outer["entries"].tolist() == [6]  # of 0 rounds, the loop is not entered


@needs_emulator
def test_cold_parts_are_of_their_function(optimised: ptkit.Trace) -> None:
    if not any(".cold" in name for name, _, _ in optimised.symbols("work*")):
        pytest.fail("this compiler made no cold part of work()")
    found = optimised.annotate("work")
    assert [one.name for one in found.functions] == ["work"]
    size = max(size for name, _, size in optimised.symbols("work") if name == "work")
    offsets = found.instructions["offset"]
    outside = (offsets < 0) | (offsets >= size)
    assert outside.any()
    assert found.instructions["count"][outside].max() == 2
    inlined = set(found.instructions.named("inlined"))
    assert inlined <= {None, "twice"}


@needs_emulator
def test_a_function_that_was_inlined_everywhere(plain: ptkit.Trace) -> None:
    with pytest.raises(ptkit.SymbolError) as raised:
        plain.annotate("twice")
    assert str(raised.value) == "'twice' has no code of its own: it was inlined into work; annotate that"


@needs_emulator
def test_the_hottest_path_leaves_out_what_is_rare(plain: ptkit.Trace) -> None:
    lines = plain.annotate("work", source=True).lines
    hottest = set(lines["line"][lines["is_hottest"]].tolist())
    assert {line("int sum = 0;"), line("sum += twice(j)"), line("return sum;")} <= hottest
    assert not {line("rare(i); sink"), line("      abort();")} & hottest


@needs_emulator
def test_a_function_that_did_not_run(plain: ptkit.Trace) -> None:
    found = plain.annotate("never", source=True)
    assert found.missing == ["never: did not run, or not in what is selected"]
    assert found.lines["count"].tolist() == [0]
    assert "did not run" in repr(found)
    with pytest.raises(ptkit.SymbolError, match="no symbol 'nevr'; did you mean never"):
        plain.annotate("nevr")


@needs_emulator
def test_several_functions_of_a_name(tmp_path: Path) -> None:
    for part in "ab":
        (tmp_path / f"{part}.c").write_text(
            f'static __attribute__((noinline)) int same(int x) {{ __asm__(""); return x + {ord(part)}; }}\n'
            f"int {part}(int x) {{ int s = 0; for (int i = 0; i < x; ++i) s += same(i); return s; }}\n"
        )
    (tmp_path / "main.c").write_text("int a(int), b(int);\nint main(void) { return a(3) + b(8) == 7; }\n")
    program = compiled(tmp_path / "same", "-O1", "-static", *sorted(tmp_path.glob("*.c")))
    trace = ptkit.open(
        ptkit.Recorder([str(program)], tmp_path / "same.ptk", backend="emulator", quiet=True).run()
    )
    found = assert_counts(trace, "same")
    assert [one.calls for one in found.functions] == [8, 3]
    one = trace.annotate("same", functions=1)
    assert [function.calls for function in one.functions] == [8]
    assert "1 more function of this name ran" in one.missing[0]


@needs_emulator
def test_32_bit_code(folder: Path) -> None:
    program = compiled(folder / "work32", "-m32", "-O1", "-g", "-static", folder / "work.c")
    trace = ptkit.record([str(program)], output=folder / "work32.ptk", backend="step", quiet=True)
    found = assert_counts(trace, "main")
    assert "ebp" in repr(found) or "esp" in repr(found)


def test_a_selection_of_time_and_a_part(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    program = tmp_path / "loop"
    program.write_bytes(elf(loop.CODE, loop.BASE, "spin"))
    trace = open_trace(loop.stream(400), images=[str(program)])
    assert_counts(trace, "spin")
    assert repr(trace.touching("spin").annotate("spin")) == repr(trace.annotate("spin"))
    one = trace.touching(loop.JNZ).annotate("spin")
    assert one.instructions["ip"].tolist() == [loop.JNZ]
    assert one.functions[0].calls == trace.touching(loop.BASE).annotate("spin").functions[0].calls == 0
    first = trace.info.first_tsc
    some = trace.annotate("spin", time=(first, first + 20_000)).instructions
    expected = trace.instructions(symbol="spin", time=(first, first + 20_000))
    assert int(some["count"].sum()) == len(expected) < len(trace.instructions())


def test_losses_are_a_lower_bound(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    program = tmp_path / "loop"
    program.write_bytes(elf(loop.CODE, loop.BASE, "spin"))
    trace = open_trace(loop.stream(10) + b"\x02\xff" + loop.stream(10), images=[str(program)])
    found = assert_counts(trace, "spin")
    assert found.is_lower_bound
    assert found.missing[0].startswith("lower bound: 1 error and ")


@needs_emulator
def test_replaced_code_is_counted_by_address(tmp_path: Path) -> None:
    program = build("selfmod", tmp_path)
    path = ptkit.Recorder([str(program)], tmp_path / "selfmod.ptk", backend="emulator", quiet=True).run()
    begins = [
        address for address, _, file, _, first, _ in ptkit._core.code_regions(ptkit.open(path).opened.session)
        if file < 0 and first
    ]  # fmt: skip
    page = min(begins) & ~4095
    (tmp_path / "names.map").write_text(f"{page:016x} T straight\n{page + 8192:016x} T compiled\n")
    trace = ptkit.open(path, symbols=[str(tmp_path / "names.map")])
    for name in ("straight", "compiled"):
        assert "its code was replaced while it ran" in assert_counts(trace, name).missing[0]


@needs_emulator
def test_source_that_is_missing_or_newer(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "own.c"
    source.write_text(SOURCE)
    program = compiled(tmp_path / "own", "-O0", "-g", "-static", source)
    path = ptkit.Recorder([str(program)], tmp_path / "own.ptk", backend="emulator", quiet=True).run()
    changed = program.stat().st_mtime_ns

    def problems() -> list[str]:
        return ptkit.open(path).annotate("work", source=True).missing

    os.utime(source, ns=(changed, changed))
    assert problems() == []
    os.utime(source, ns=(changed + 10**9, changed + 10**9))
    (problem,) = problems()
    assert "own.c: is newer than the program (" in problem
    source.unlink()
    source_texts.cache_clear()
    (problem,) = problems()
    assert "own.c: the source was not found" in problem
    assert "work" in repr(ptkit.open(path).annotate("work", source=True))


@needs_emulator
def test_redacted_code_has_counts_alone(plain: ptkit.Trace) -> None:
    found = plain.annotate("work", redact=True)
    whole = plain.annotate("work").instructions
    ran = whole[whole["count"] > 0]
    rows = found.instructions
    assert rows["count"][rows["count"] > 0].tolist() == ran["count"].tolist()
    assert set(rows.named("instruction")) == set(rows.named("source")) == {None}
    assert "work.c" not in repr(found) + found._repr_html_()
    with pytest.raises(ptkit.ConfigError, match="redacted code has no source lines"):
        plain.annotate("work", source=True, redact=True)


def test_a_query_of_other_rows_is_refused(loop_trace: ptkit.Trace) -> None:
    for name, value in (("symbol", "main"), ("kind", "COND"), ("columns", ["ip"]), ("ip", 1)):
        with pytest.raises(ptkit.ConfigError, match=f"{name}: annotated code is of all branches of one name"):
            loop_trace.annotate("main", **{name: value})


def test_windows_program_with_lines_of_its_pdb(loop: Any, tmp_path: Path) -> None:
    code = '__asm__("1: dec %ecx\\n jnz 1b\\n jmp *%rax");'
    source = f"__attribute__((naked)) int start(void) {{\n  {code}\n}}\n"
    program = windows_program(tmp_path, "x86_64-w64-windows-gnu", {"loop.c": source}, "-O1")
    base = LOAD + program.entry
    moved = type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})
    trace = ptkit.open(
        moved.stream(20), cpu="6/142/9", images=[(program.path, LOAD)], debug_path=[program.pdb]
    )
    found = trace.annotate("start", source=True)
    rows = found.instructions
    assert rows["count"][:3].tolist() == [120, 120, 20]
    assert rows["taken"][1] == 100
    assert [path.endswith("loop.c") for path in rows.named("source")[:3]] == [True] * 3
    assert found.loops["count"].tolist() == [120]


# Text.


@needs_emulator
@pytest.mark.parametrize("width", [48, 60, 80, 100, 160])
@pytest.mark.parametrize("has_source", [False, True])
def test_lines_fit_the_terminal(plain: ptkit.Trace, width: int, has_source: bool) -> None:
    found = plain.annotate("work", source=has_source)
    lines = [
        "".join(map(annotated_text.plain_part, one))
        for one in annotated_text.listing(found.functions, has_source, width)
    ]
    title, *others = lines
    assert title.startswith("work (")
    assert max(map(len, others)) <= width
    counts = [re.match(r"[\d,]+", one.strip()) for one in others if not one.strip().startswith("loop")]
    assert len([one for one in counts if one is not None]) >= 10
    assert sum("loop: " in one for one in others) == 2


@needs_emulator
def test_direct_branches_have_offsets_and_names(plain: ptkit.Trace) -> None:
    text = repr(plain.annotate("work"))
    assert re.search(r"j\w+ \+0x[0-9a-f]+", text)
    assert "call rare" in text
    assert not re.search(r"(j\w+|call) 0x", text)


# HTML.

HOSTILE = (
    "</style><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><!--",
    "\"'`&lt;&amp;",
    "a\x1b[31m\u202e",
)
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "div", "p", "h2", "h3", "ul", "li"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.policy = ""
        self.title = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["title"]:
            self.title += data


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str, loop: Any, open_trace: Any, tmp_path: Path) -> None:
    raw = name.encode()
    image = elf(loop.CODE, loop.BASE, "x" * len(raw)).replace(b"x" * len(raw) + b"\0", raw + b"\0")
    program = tmp_path / "<b>program&"
    program.write_bytes(image)
    trace = open_trace(loop.stream(20), images=[str(program)])
    (symbol,) = (one for one, *_ in trace.symbols("*"))
    found = trace.annotate(symbol)
    assert found.save(tmp_path / "page.html") == (tmp_path / "page.html").stat().st_size
    written = (tmp_path / "page.html").read_text()
    for text in (written, found._repr_html_()):
        page = Parsed(text)
        assert set(page.tags) <= TAGS
        assert page.names <= {"lang", "charset", "http-equiv", "content", "name", "class", "colspan"}
    (style,) = re.findall("<style>(.*?)</style>", written, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert Parsed(written).policy == f"default-src 'none'; style-src 'sha256-{digest}'"
    assert not any(sign in repr(found) for sign in "\x1b\u2028")


@needs_emulator
def test_hostile_source_lines_are_text(tmp_path: Path) -> None:
    source = tmp_path / "<i>&.c"
    source.write_text("int main(void) { return 0; } /* </td><script>alert(1)</script> \x1b[31m */\n")
    program = compiled(tmp_path / "program", "-O0", "-g", "-static", source)
    path = ptkit.Recorder([str(program)], tmp_path / "main.ptk", backend="emulator", quiet=True).run()
    found = ptkit.open(path).annotate("main", source=True)
    found.save(tmp_path / "page.html")
    written = (tmp_path / "page.html").read_text()
    assert set(Parsed(written).tags) <= TAGS
    assert "&lt;script&gt;alert(1)" in written
    assert "<i>" not in written
    assert "\x1b" not in repr(found) + written


def hostile_page(loop: Any, open_trace: Any, folder: Path) -> Path:
    """A page of a function of which the name would run scripts."""
    raw = b"</td></style><script>document.title = 'ran'</script><img src=x onerror=alert(1)>"
    image = elf(loop.CODE, loop.BASE, "x" * len(raw)).replace(b"x" * len(raw) + b"\0", raw + b"\0")
    (folder / "program").write_bytes(image)
    trace = open_trace(loop.stream(20), images=[str(folder / "program")])
    (symbol,) = (one for one, *_ in trace.symbols("*"))
    trace.annotate(symbol).save(folder / "page.html")
    return folder / "page.html"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_runs_nothing_of_a_page(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    page = hostile_page(loop, open_trace, tmp_path)
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}/user",
    ]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=300, check=True
    )
    shown = Parsed(done.stdout)
    assert set(shown.tags) <= TAGS
    assert shown.title.startswith("ptkit: ")
    assert "dec ecx" in done.stdout
