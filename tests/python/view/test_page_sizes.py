"""Pages of a size: details give way first, then slices merge; the slowest calls stay."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiling import compiled
from rounds import needs_emulator
from view_pages import PageData

import ptkit
from ptkit.view.document import shell


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording with some hundred thousand calls."""
    folder = tmp_path_factory.mktemp("many")
    source = folder / "many.c"
    source.write_text(
        """
        static unsigned seed = 1;
        static unsigned __attribute__((noinline)) next(void) { return seed = seed * 1664525 + 1013904223; }
        static unsigned __attribute__((noinline)) some(unsigned n) {
          unsigned sum = 0;
          for (unsigned i = 0; i < n; ++i) sum += next() >> 30 ? next() : i;
          return sum;
        }
        static unsigned __attribute__((noinline)) tree(unsigned depth) {
          return depth == 0 ? some(next() >> 29) : tree(depth - 1) + tree(depth - 1) + some(depth);
        }
        int main(void) { return tree(15) == 1; }
        """
    )
    program = compiled(folder / "many", "-g", "-O1", source)
    return ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)


@needs_emulator
def test_a_page_that_fits_has_everything(many: ptkit.Trace) -> None:
    page = many.view(size="20M")
    found = PageData(page)
    assert page.bytes < 20 << 20
    assert len(found.columns()["id"]) == len(many.call_timeline("instructions"))
    assert -1 not in found.runs[0]["functions"]["detail"]
    assert not any("merged" in note or "without details" in note for note in page.notes)
    assert len(found.text) == page.bytes


@needs_emulator
@pytest.mark.parametrize("part", [0.7, 0.4])
def test_sizes_are_kept_within_five_per_cent(many: ptkit.Trace, part: float) -> None:
    whole = PageData(many.view())
    fixed = sum(map(len, shell())) + len(whole.elements["head"])
    size = fixed + int((len(whole.text) - fixed) * part)
    page = many.view(size=size)
    found = PageData(page)
    assert 0.95 * size <= page.bytes <= size
    columns = found.columns()
    merged = columns["calls"] > 1
    assert int(columns["calls"].sum()) == len(whole.columns()["id"])
    if merged.any():
        assert any(re.search("calls are merged into .* slices", note) for note in page.notes)
        assert found.runs[0]["notes"] != whole.runs[0]["notes"]
    # Functions with most work have details, and no others.
    functions = found.runs[0]["functions"]
    own = np.array(functions["self_instructions"])
    has = np.array(functions["detail"]) >= 0
    assert has.any() or len(has) == 0
    assert own[has].min(initial=own.max()) >= own[~has].max(initial=0)
    # The slowest call of each function is whole.
    ids = set(columns["id"][~merged].tolist())
    for detail in found.details().values():
        assert detail["slowest"][0]["id"] in ids
    # What is not known of merged calls is not there: lengths were counted before they were merged.
    for number, detail in found.details().items():
        assert sum(detail["histogram"]["counts"]) >= functions["calls"][number]


@needs_emulator
def test_a_size_that_is_too_small_is_refused(many: ptkit.Trace) -> None:
    with pytest.raises(ptkit.ConfigError, match=r"size=70,?000: the page has at least [0-9,]+ bytes"):
        many.view(size=70_000)
    with pytest.raises(ptkit.ConfigError, match="size="):
        many.view(size="20X")


@needs_emulator
def test_functions_of_a_large_head_become_one(many: ptkit.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptkit.view import document

    monkeypatch.setattr(document, "_LEAST_FUNCTIONS", 5)
    monkeypatch.setattr(document, "_OF_NAMES", 0.0)
    page = many.view()
    found, rows = PageData(page), many.functions()
    functions = found.runs[0]["functions"]
    assert functions["name"][-1] == "[other functions]"
    assert len(functions["name"]) == 5
    assert functions["calls"][:4] == rows["count"][:4].tolist()
    assert sum(functions["calls"]) == int(rows["count"].sum())
    assert sum(functions["self_instructions"]) == int(rows["self_instructions"].sum())
    assert functions["instructions"][-1] is None
    assert set(functions["full"]) == {None}
    assert int(found.columns()["function"].max()) == 4
    assert any("[other functions]" in note for note in page.notes)
    assert all(len(values) == 5 for name, values in functions.items() if name != "modules")


def test_a_shell_has_one_mark() -> None:
    before, after = shell()
    assert b"<title>ptkit</title>" in before
    assert b"<!--PTKIT-DATA-->" not in before + after
    assert Path(ptkit.__file__).with_name("view").joinpath("page.html").is_file()
