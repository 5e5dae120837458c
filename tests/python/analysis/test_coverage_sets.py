"""Coverage of recordings as sets: elements and counts, operators, files of sets, what is missing."""

from __future__ import annotations

import json
import pickle
import shutil
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, compiled, line_with
from executed_parts import time_at
from same_rows import rows_of
from small_pe import pe
from windows_programs import LOAD, LOOP_SOURCE, windows_program

import ptkit
from ptkit import _core, capture
from ptkit.analysis.coverage import rows as set_rows
from ptkit.analysis.coverage import saved
from ptkit.decode.line_counts import BLOCK_COLUMNS, EDGE_COLUMNS, read_code

SOURCE = PROGRAMS / "branches" / "inputs.c"
TEXTS = ["", *SOURCE.read_text().splitlines()]
line = partial(line_with, SOURCE)
ROUNDS = 5
LEVELS = ("blocks", "edges", "branches", "functions", "lines")
Program = Callable[..., ptkit.Trace]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coverage")
    compiled(folder / "inputs", "-O0", "-g", "-static", "-Wl,--build-id", SOURCE)
    return folder


def recorded(program: Path, *arguments: str) -> ptkit.Trace:
    path = program.parent / f"{program.name}-{'-'.join(arguments)}.ptk"
    command = [str(program), *arguments]
    return ptkit.open(ptkit.Recorder(command, path, backend="emulator", quiet=True).run())


@pytest.fixture(scope="module")
def left_trace(folder: Path) -> ptkit.Trace:
    return recorded(folder / "inputs", "left")


@pytest.fixture(scope="module")
def left(left_trace: ptkit.Trace) -> ptkit.Coverage:
    return left_trace.coverage()


@pytest.fixture(scope="module")
def right(folder: Path) -> ptkit.Coverage:
    return recorded(folder / "inputs", "right").coverage()


def lines_of(coverage: ptkit.Coverage) -> dict[int, int]:
    """Executions of the lines of the program's own source."""
    rows = coverage.lines
    columns = (rows.named(name) for name in ("source", "line", "count"))
    return {line: count for path, line, count in zip(*columns, strict=True) if path.endswith(SOURCE.name)}


def functions_of(coverage: ptkit.Coverage) -> dict[str, int]:
    rows = coverage.functions
    return dict(zip(rows.named("function"), rows.named("count"), strict=True))


def same(some: ptkit.Coverage, others: ptkit.Coverage) -> None:
    for level in LEVELS:
        assert rows_of(getattr(some, level)) == rows_of(getattr(others, level)), level


def test_counts_are_those_of_the_trace(left_trace: ptkit.Trace, left: ptkit.Coverage) -> None:
    blocks = left.blocks
    executed = int((blocks["instructions"] * blocks["count"]).sum())
    assert executed == len(left_trace.instructions(columns=["cls"])) == left.functions["instructions"].sum()
    edges = left_trace.edges()
    assert left.edges["count"].sum() == edges["count"].sum()
    assert not left.missing
    assert not left.is_lower_bound
    own = functions_of(left)
    assert (own["main"], own["left"]) == (1, 1)
    assert not {"right", "never"} & own.keys()


def test_lines_are_counted_by_gcovs_rule(left: ptkit.Coverage, left_trace: ptkit.Trace) -> None:
    found = lines_of(left)
    assert found[line("sum += i;")] == ROUNDS
    assert line("sum += rounds;") not in found
    assert found[line("left(5);")] == 1
    rows = left_trace.functions(by="line", columns=["source", "line", "count"])
    expected = {
        number: count
        for path, number, count in rows_of(rows)
        if path is not None and path.endswith(SOURCE.name)
    }
    assert found == expected


def test_code_is_that_of_all_rows_and_of_the_simple_decoder(left_trace: ptkit.Trace) -> None:
    """One pass for blocks and edges counts what rows of blocks have, in views and selections, too."""
    path = left_trace.source
    simple = ptkit.open(path, engine="simple", index=False)
    entry = int(left_trace.edges()["to_ip"][0])
    for query in ({}, {"ip": (entry, entry + 0x400)}, {"threads": 1}):
        code, edges = left_trace._counts(query)[1:]
        plan = left_trace._plan("blocks", {**query, "columns": BLOCK_COLUMNS})
        slow, slow_edges = simple._counts(query)[1:]
        by_rows = read_code(plan)
        for name in ("ip", "space", "size", "count", "instructions"):
            np.testing.assert_array_equal(getattr(code, name), getattr(by_rows, name))
            np.testing.assert_array_equal(getattr(code, name), getattr(slow, name))
        for name in EDGE_COLUMNS:
            np.testing.assert_array_equal(edges[name], slow_edges[name])


def test_where_no_instruction_ran_it_is_empty(folder: Path) -> None:
    program, path = folder / "inputs", folder / "filtered.ptk"
    recorder = ptkit.Recorder(
        [str(program), "left"], path, backend="emulator", quiet=True, filters="filter main @ inputs"
    )
    trace = ptkit.open(recorder.run())
    executed = set(trace.instructions(columns=["ip"])["ip"].tolist())
    left = next(ip for ip in trace.edges()["to_ip"].tolist() if ip not in executed)
    coverage = trace.coverage(ip=(left, left + 1))
    assert len(coverage.blocks) == len(coverage.functions) == len(coverage.lines) == 0


def test_blocks_do_not_overlap(left: ptkit.Coverage) -> None:
    file, rva, size = (np.asarray(left.blocks[name]) for name in ("file", "rva", "size"))
    assert (size > 0).all()
    same_file = file[1:] == file[:-1]
    assert (rva[:-1] + size[:-1] <= rva[1:])[same_file].all()
    starts = set(zip(file.tolist(), rva.tolist(), strict=True))
    edges = left.edges
    targets = set(zip(edges["to_file"].tolist(), edges["to_rva"].tolist(), strict=True))
    assert targets <= starts


def test_branches_have_both_outcomes(left: ptkit.Coverage) -> None:
    rows = left.branches
    at = [(path or "").endswith(SOURCE.name) for path in rows.named("source")]
    own = rows[np.array(at)]
    [loop] = rows_of(own.where(function="left")[["taken", "not_taken"]])
    assert sorted(loop) == [1, ROUNDS]
    conditions = left.edges.where(kind="COND")["count"].sum()
    assert rows["taken"].sum() + rows["not_taken"].sum() == conditions


def test_operators_combine_elements(left: ptkit.Coverage, right: ptkit.Coverage) -> None:
    only_left, only_right = line("sum += i;"), line("sum -= rounds;")
    both = line("return 0;")
    found = {
        operator: lines_of(made)
        for operator, made in (
            ("|", left | right),
            ("&", left & right),
            ("-", left - right),
            ("^", left ^ right),
        )
    }
    assert {only_left, only_right, both} <= found["|"].keys()
    assert found["|"][both] == 2
    assert both in found["&"]
    assert not {only_left, only_right} & found["&"].keys()
    assert only_left in found["-"]
    assert not {only_right, both} & found["-"].keys()
    assert {only_left, only_right} <= found["^"].keys()
    assert both not in found["^"]
    assert {"left"} == functions_of(left - right).keys() & {"left", "right", "main"}


def test_operators_are_those_of_sets(left: ptkit.Coverage, right: ptkit.Coverage) -> None:
    same(left | right, right | left)
    same((left - right) | (right - left), left ^ right)
    same((left | right) - (left & right), left ^ right)
    nothing = left - left
    assert [len(getattr(nothing, level)) for level in LEVELS] == [0] * len(LEVELS)
    same(nothing | right, right)


def test_what_is_removed_begins_no_blocks() -> None:
    level = set_rows.LEVELS["code"]
    some, others = (np.zeros(2, level.dtype) for _ in range(2))
    for rows in (some, others):
        rows["rva"], rows["size"], rows["count"] = (0, 4), 4, 1
    some["flags"] = set_rows.BEGINS  # a branch of one run alone leads to the second instruction
    others["flags"] = set_rows.BEGINS, 0
    nothing = set_rows.combined(level, "-", some, some)
    again = set_rows.combined(level, "|", nothing, others)
    assert again.tolist() == others.tolist()
    assert set_rows.combined(level, "|", some, others)["flags"].tolist() == [set_rows.BEGINS] * 2


def test_parts_of_a_trace_add_up(left_trace: ptkit.Trace, left: ptkit.Coverage) -> None:
    event = left_trace.events(stream=0)[:1]
    whole = left_trace.slice(after=event).coverage()
    assert functions_of(whole) == functions_of(left)
    middle = time_at(left_trace, 50)
    begin = left_trace.between(None, middle).coverage()
    end = left_trace.between(middle, None).coverage()
    assert 0 < begin.covered("block") < left.covered("block")
    assert functions_of(begin | end).keys() == functions_of(left).keys()
    of_function = left_trace.coverage(symbol="left")
    assert set(lines_of(of_function)) < set(lines_of(left))
    assert functions_of(of_function).keys() == {"left"}


def test_what_did_not_run_is_known(left: ptkit.Coverage) -> None:
    total = left.total("line")
    assert total is not None
    missed = total - left.covered("line")
    expected = {line(text) for text in ("sum += rounds;", "sum -= rounds;", "sum = 0;", "right(i);")}
    assert missed > len(expected)
    assert left.percent("line") == pytest.approx(100 * left.covered("line") / total)
    functions = left.total("function")
    assert functions is not None
    assert functions > left.covered("function")
    assert left.total("block") is None


def test_percentages_are_of_what_is_selected(left_trace: ptkit.Trace) -> None:
    assert left_trace.coverage(symbol="left").percent("line") == 100
    assert left_trace.coverage(symbol="left").total("function") == 1


def test_without_debug_information_there_are_no_percentages(folder: Path) -> None:
    stripped = compiled(folder / "bare", "-O0", "-static", SOURCE)
    found = recorded(stripped, "left").coverage()
    assert found.percent("line") is None
    assert len(found.lines) == 0
    assert found.covered("block") > 0


def test_another_build_gives_no_percentages(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "inputs"
    shutil.copy(folder / "inputs", program)
    trace = recorded(program, "left")
    program.unlink()
    compiled(program, "-O1", "-g", "-static", "-Wl,--build-id", SOURCE)
    with pytest.warns(ptkit.PtkitWarning, match="build"):
        found = ptkit.open(trace.source).coverage()
    assert found.percent("line") is None
    assert found.covered("function") > 0


def test_moved_files_are_the_same(folder: Path, left: ptkit.Coverage, tmp_path: Path) -> None:
    shutil.copy(folder / "inputs", tmp_path / "renamed")
    moved = recorded(tmp_path / "renamed", "left").coverage()
    assert len(moved.files) == len((moved | left).files) == 1
    assert functions_of(moved - left).keys().isdisjoint({"main", "left"})


def test_load_addresses_do_not_matter(open_trace: Any, packets: Any) -> None:
    sets = []
    for base in (0x7F0000000000, 0x7E0000400000):
        image = [(_core.__file__, base)]
        [(_, start, _)] = open_trace(packets.PSB, images=image).symbols("PyInit__core")
        stream = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(start) + packets.TIP_PGD
        sets.append(open_trace(stream, images=image).coverage())
    counts = sets[0].blocks["count"].tolist()
    assert set(counts) == {1}
    assert (sets[0] ^ sets[1]).covered("block") == 0
    assert (sets[0] | sets[1]).blocks["count"].tolist() == [2] * len(counts)


def test_address_randomisation_does_not_matter(tmp_path: Path) -> None:
    """Steps of the processor itself, so the system chooses addresses."""
    program = compiled(tmp_path / "inputs", "-O0", "-g", "-static-pie", "-Wl,--build-id", SOURCE)
    if "step" not in {one.name for one in capture.probe() if one.available}:
        pytest.skip("single steps are not available here: ptrace is not allowed")
    sets, bases = [], set()
    while len(bases) < 2 and len(sets) < 5:
        path = tmp_path / f"{len(sets)}.ptk"
        trace = ptkit.open(ptkit.Recorder([program, "left"], path, backend="step", quiet=True).run())
        sets.append(trace.coverage(module="inputs"))
        bases.add(next(one.base for one in trace.info.modules if one.path.endswith("inputs")))
    assert len(bases) > 1, "the system gives each run the same addresses"
    first, last = sets[0], sets[-1]
    assert functions_of(first ^ last).keys().isdisjoint({"main", "left"})
    assert line("sum += i;") not in lines_of(first ^ last)
    both = functions_of(first | last)
    assert both["left"] == 2 * functions_of(first)["left"] > 0


def windows_sets(paths: list[Path], bases: list[int], entry: int, loop: Any, **options: Any) -> list[Any]:
    """Coverage of runs of a loop in programs for Windows."""
    sets = []
    for path, base in zip(paths, bases, strict=True):
        start = base + entry
        moved = type("Moved", (loop,), {"BASE": start, "JNZ": start + 2, "JMP": start + 4})
        trace = ptkit.open(moved.stream(20), cpu="6/142/9", images=[(path, base)], **options)
        sets.append(trace.coverage())
    return sets


def test_windows_programs_have_lines_of_their_pdb(loop: Any, tmp_path: Path) -> None:
    program = windows_program(tmp_path, "loop", {"loop.c": LOOP_SOURCE}, "-O1")
    moved = tmp_path / "moved" / "renamed.exe"
    moved.parent.mkdir()
    shutil.copy(program.path, moved)
    paths, bases = [program.path, moved], [LOAD, LOAD + 0x5670000]
    some, other = windows_sets(paths, bases, program.entry, loop, debug_path=[program.pdb])
    assert [file.build_id for file in (some | other).files] == [program.pdb_id]
    assert (some ^ other).covered("block") == (some ^ other).covered("line") == 0
    columns = (some.lines.named(name) for name in ("source", "line", "count"))
    [(path, number, count)] = list(zip(*columns, strict=True))
    assert (path.endswith("loop.c"), number, count) == (True, 2, 120)
    [(taken, not_taken)] = zip(
        *(some.branches[name].tolist() for name in ("taken", "not_taken")), strict=True
    )
    assert (taken, not_taken) == (100, 20)
    assert functions_of(some | other) == {"start": 2 * functions_of(some)["start"]}


def test_windows_programs_without_a_pdb_are_known_by_time_stamp_and_size(loop: Any, tmp_path: Path) -> None:
    paths = []
    for name, stamp in (("a.exe", 0x65A1B2C3), ("b.exe", 0x65A1B2C3), ("c/a.exe", 0x65A1B2C4)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(pe(loop.CODE, LOAD, 0x3000, stamp))
        paths.append(tmp_path / name)
    some, moved, other = windows_sets(paths, [LOAD, LOAD + 0x670000, LOAD], 0x1000, loop)
    assert [file.build_id for file in (some | moved).files] == ["65a1b2c3-3000"]
    assert (some ^ moved).covered("block") == 0
    with pytest.raises(ptkit.ConfigError, match=r"a.exe: two builds .*65a1b2c3-3000.*65a1b2c4-3000"):
        some | other


def test_two_builds_are_refused_and_compare_by_line(
    folder: Path, left: ptkit.Coverage, tmp_path: Path
) -> None:
    program = compiled(
        tmp_path / "inputs", "-O0", "-fomit-frame-pointer", "-g", "-static", "-Wl,--build-id", SOURCE
    )
    other = recorded(program, "right").coverage()
    with pytest.raises(ptkit.ConfigError, match=r"inputs: two builds of the file ran: .*by_line"):
        left | other
    by_line = left.by_line() - other.by_line()
    assert line("sum += i;") in lines_of(by_line)
    assert line("return 0;") not in lines_of(by_line)
    with pytest.raises(ptkit.ConfigError, match="lines alone"):
        len(by_line.blocks)
    with pytest.raises(ptkit.ConfigError, match="by_line"):
        left - other.by_line()


def test_a_selection_leaves_other_files_out(tmp_path: Path) -> None:
    """Another build of a library matters where its code is in the sets."""
    (tmp_path / "twice.c").write_text("int twice(int x) { return FACTOR * x; }\n")
    (tmp_path / "main.c").write_text("int twice(int); int main(void) { return twice(0); }\n")
    library = tmp_path / "libtwice.so"

    def build_library(factor: str) -> None:
        flags = "-shared", "-fPIC", "-Wl,--build-id", f"-DFACTOR={factor}"
        compiled(library, *flags, tmp_path / "twice.c")

    build_library("2")
    program = compiled(
        tmp_path / "twice", "-g", tmp_path / "main.c", library, f"-Wl,-rpath,{tmp_path}", "-Wl,--build-id"
    )
    some = recorded(program, "some")
    build_library("3")
    other = recorded(program, "other")
    assert {"twice", library.name} < {file.name for file in some.coverage().files}
    with pytest.raises(ptkit.ConfigError, match=r"libtwice.so: two builds .* --module"):
        some.coverage() | other.coverage()
    parts = [one.coverage(module="twice") for one in (some, other)]
    assert [file.name for file in parts[0].files] == ["twice"]
    assert set(parts[0].edges.named("to_module")) == {"twice"}
    assert (parts[0] ^ parts[1]).covered("block") == 0
    assert functions_of(parts[0] & parts[1])["main"] == 2


def test_nothing_ran(open_trace: Any, packets: Any) -> None:
    nothing = open_trace(packets.PSB, images=[_core.__file__]).coverage()
    assert (nothing.covered("block"), nothing.covered("line"), nothing.total("line")) == (0, 0, None)
    assert [len(getattr(nothing | nothing, level)) for level in LEVELS] == [0] * len(LEVELS)
    assert nothing.summary() == []


def test_files_without_a_build_id_are_known_by_name_and_code(tmp_path: Path) -> None:
    def build(folder: str, *flags: str) -> Path:
        (tmp_path / folder).mkdir()
        return compiled(tmp_path / folder / "inputs", "-g", "-static", "-Wl,--build-id=none", *flags, SOURCE)

    some = recorded(build("a", "-O0"), "left").coverage()
    again = recorded(build("b", "-O0"), "left").coverage()
    other = recorded(build("c", "-O2"), "left").coverage()
    assert not some.files[0].build_id
    assert (some & again).covered("function") > 0
    assert functions_of(some - again).keys().isdisjoint({"main", "left"})
    with pytest.raises(ptkit.ConfigError, match="their code differs at RVA"):
        some | other


def test_losses_are_said(open_trace: Any, loop: Any, left: ptkit.Coverage) -> None:
    stream = loop.stream(10)
    damaged = open_trace(stream + b"\x02\xff" + stream, images=loop.images()[0]).coverage()
    assert damaged.is_lower_bound
    [bound, outside] = damaged.missing
    assert bound.startswith("lower bound: ")
    assert "1 error" in bound
    assert "ran in no file" in outside
    both = left - damaged
    assert not both.is_lower_bound
    assert "may have run there, too" in both.missing[0]
    assert (left | damaged).is_lower_bound


def test_saved_sets_are_read_again(left: ptkit.Coverage, right: ptkit.Coverage, tmp_path: Path) -> None:
    path = tmp_path / "left.cov"
    assert left.save(path) == path.stat().st_size
    again = ptkit.Coverage.load(path)
    same(again, left)
    assert (again.files, again.runs) == (left.files, left.runs)
    assert again.total("line") == left.total("line")
    same(again - right, left - right)
    by_line = left.by_line()
    by_line.save(path)
    assert rows_of(ptkit.Coverage.load(path).lines) == rows_of(left.lines)
    assert ptkit.Coverage.load(path).has_lines_only


def test_damaged_files_are_refused(left: ptkit.Coverage, tmp_path: Path) -> None:
    path = tmp_path / "left.cov"
    left.save(path)
    whole = path.read_bytes()
    for at in {*range(0, len(whole), max(len(whole) // 200, 1)), *range(20)}:
        for text in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            path.write_bytes(text)
            with pytest.raises(ptkit.FormatError, match="set of coverage"):
                ptkit.Coverage.load(path)
    path.write_bytes(whole[:8] + b"\x02\x00\x00\x00" + whole[12:])
    with pytest.raises(ptkit.FormatError, match="version 2, and this ptkit reads version 1"):
        ptkit.Coverage.load(path)


def changed(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write the file anew with other members of its head, or rows, and checksums that fit."""
    found = saved.load_set(path)
    begin = saved._HEAD
    contents = path.read_bytes()
    size = begin.unpack_from(contents)[2]
    head = json.loads(contents[begin.size : begin.size + size])
    rows = dict(found.rows)
    change(head, rows)
    packed = []
    for name, some in rows.items():
        packed.append(zlib.compress(some.tobytes()))
        about = {"rows": len(some), "bytes": len(packed[-1]), "crc": zlib.crc32(packed[-1])}
        head["levels"][name] = about | head["levels"][name].pop("more", {})
    text = json.dumps(head).encode()
    path.write_bytes(begin.pack(saved._SIGNATURE, 1, len(text), zlib.crc32(text)) + text + b"".join(packed))


def _file_out_of_range(head: dict[str, Any], rows: dict[str, Any]) -> None:
    rows["code"]["file"][0] = 7


def _text_out_of_range(head: dict[str, Any], rows: dict[str, Any]) -> None:
    rows["lines"]["source"][0] = len(head["texts"])


def _negative_count(head: dict[str, Any], rows: dict[str, Any]) -> None:
    rows["edges"]["count"][0] = -1


def _repeated(head: dict[str, Any], rows: dict[str, Any]) -> None:
    rows["lines"] = np.concatenate([rows["lines"], rows["lines"][:1]])


def _huge(head: dict[str, Any], rows: dict[str, Any]) -> None:
    head["levels"]["edges"]["more"] = {"rows": 2**50}


def _no_path(head: dict[str, Any], rows: dict[str, Any]) -> None:
    head["files"][0]["path"] = 3


def _text_is_number(head: dict[str, Any], rows: dict[str, Any]) -> None:
    head["texts"][0] = 5


CHANGES = (
    _file_out_of_range,
    _text_out_of_range,
    _negative_count,
    _repeated,
    _huge,
    _no_path,
    _text_is_number,
)


@pytest.mark.parametrize("change", CHANGES)
def test_hostile_files_are_refused(left: ptkit.Coverage, change: Any, tmp_path: Path) -> None:
    path = tmp_path / "left.cov"
    left.save(path)
    changed(path, lambda head, rows: None)
    same(ptkit.Coverage.load(path), left)
    changed(path, change)
    with pytest.raises(ptkit.FormatError, match="damaged"):
        ptkit.Coverage.load(path)


def test_tables_have_names_and_are_pickled(left: ptkit.Coverage) -> None:
    rows = left.functions.where(function="left")
    assert rows.named("module") == ["inputs"]
    assert rows["source"][0].endswith(SOURCE.name)
    assert TEXTS[int(rows["line"][0])].startswith("__attribute__((noinline)) static void left")
    again = pickle.loads(pickle.dumps(left.functions))
    assert rows_of(again) == rows_of(left.functions)
    assert "covered_lines" in repr(left.lines)
    assert left.functions.to_pandas()["function"].tolist() == left.functions.named("function")


def test_misuse_is_refused(left: ptkit.Coverage, left_trace: ptkit.Trace) -> None:
    with pytest.raises(ptkit.ConfigError, match="kind: coverage is of all branches"):
        left_trace.coverage(kind="CALL")
    with pytest.raises(ptkit.ConfigError, match="by='file'"):
        left.percent("file")
    with pytest.raises(TypeError, match="both sides must be"):
        left | {1}
