"""Tables in a terminal and in a notebook."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.support.schema import tables
from ptkit.table.show import as_text
from ptkit.table.table import from_core

TABLES = tuple(tables())
LONG = "std::map<" + "int, " * 40 + "int>::insert"


class Page(HTMLParser):
    """Heads, and cells of rows, as texts; and their titles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.titles: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.titles += [value or "" for name, value in attributes if name == "title"]
        if tag == "br":
            self.rows[-1][-1] += " / "
            return
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("width", [60, 80, 120, 400])
@pytest.mark.parametrize("name", TABLES)
def test_texts_fit_the_terminal(
    name: str, width: int, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table = ask(name)
    lines = repr(table).splitlines()
    assert max(map(len, lines[:-1])) <= width
    shown = [one for one in lines[0].split() if one in table.columns]
    assert shown == list(table.columns[: len(shown)])
    assert len(shown) > 1 or width == 60
    lacks = len(shown) < len(table.columns)
    assert ("..." in lines[0].split()) == lacks
    assert (f", {len(shown)} shown" in lines[-1]) == lacks
    if width == 400:
        assert not lacks


def test_long_names_are_cut_and_messages_kept(ask: Callable[..., Any], clocked: Any) -> None:
    arrays = {name: np.zeros(2, "u8" if name.endswith("ip") else "i8") for name in ("entry_ip", "count")}
    labels = np.array([0, 0], np.int32)
    context = clocked.open_parts.context.without_trace({"function": [LONG]})
    table = from_core(
        "functions", (2, arrays | {"function": labels}, {}), columns=["function", "count"], context=context
    )
    text = as_text(table, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "  ...::insert " in text
    assert "count" in text
    assert table.named("function") == [LONG] * 2
    page = Page(table._repr_html_())
    assert page.rows[1][1] == "...::insert"
    assert LONG in page.titles
    errors = ask("errors")
    assert len(errors)
    assert "message" in as_text(errors, 80)
    assert "messages() has the whole texts" in as_text(errors, 80)
    assert errors.messages()[0] in as_text(errors, 1000)
    assert "whole texts" not in as_text(errors, 1000)


def test_numbers_have_separators_but_not_names_of_things() -> None:
    arrays: dict[str, Any] = {
        "node": np.array([12345], np.uint32),
        "count": np.array([1234567]),
        "least": np.array([7654321]),
        "flags": np.array([ptkit.FunctionFlag.TIME_KNOWN], np.uint16),
    }
    table = from_core("call_tree", (1, arrays, {}))
    assert repr(table).splitlines()[1].split() == ["0", "12345", "1,234,567", "7,654,321", "0x40"]


def test_html_has_units_separators_and_names(ask: Callable[..., Any]) -> None:
    functions = ask("functions")
    head, *rows = Page(functions._repr_html_()).rows
    assert head[1:] == list(functions.columns)  # times have units of their own
    row = dict(zip(head, rows[0], strict=True))
    assert row["instructions"] == f"{functions['instructions'][0]:,}"
    assert re.fullmatch(r"[\d.]+ (ns|us|ms|s)", row["most"])
    assert any("TSC ticks" in title for title in Page(functions._repr_html_()).titles)
    assert any("TIME_KNOWN" in title for title in Page(functions._repr_html_()).titles)
    branches = ask("branches")
    head, *rows = Page(branches._repr_html_()).rows
    assert "tsc / TSC ticks" in head
    assert "offset / bytes" in head
    assert "tsc_error" in head
    row = dict(zip(head, rows[-1], strict=True))
    assert row["kind"] in ("COND", "JUMP_INDIRECT")
    assert row["from_ip"].startswith("0x1002 again+0x2") or row["from_ip"].startswith("0x1004 again+0x4")
    assert [len(line) for line in rows] == [len(head)] * 11
    assert rows[5] == ["..."] * len(head)


def test_html_without_a_clock_has_ticks(loop_trace: Any) -> None:
    head, *rows = Page(loop_trace.functions()._repr_html_()).rows
    assert "p99 / TSC ticks" in head
    assert re.fullmatch(r"[\d,]+", rows[0][head.index("p99 / TSC ticks")])


def test_html_of_histograms_and_comparisons(clocked: Any) -> None:
    calls = clocked.calls()
    found = calls.histogram(bins=[0, 1000, 10_000])
    head, *rows = Page(found._repr_html_()).rows
    assert head == [
        "from / instructions",
        "to below / instructions",
        "calls",
        "",
        "sum / instructions",
        "share",
    ]
    assert [row[2] for row in rows] == [f"{count:,}" for count in found.counts.tolist()]
    assert [row[4] for row in rows] == [f"{total:,}" for total in found.totals.tolist()]
    assert [row[:2] for row in rows] == [["0", "1,000"], ["1,000", "10,000"]]
    empty = clocked.calls(symbol="again")[:0].histogram()
    assert Page(empty._repr_html_()).rows[1][2] == "0"


def test_html_of_a_comparison() -> None:
    from ptkit.analysis.slow_calls import CallComparison, CallDifference

    some = CallDifference("function", "map<int>", 1234.4, 4, 3, 0.5, 7, None)
    gap = CallDifference("gap", "calls that end at a gap", 0.5, 0, 0.5, 0, 8, None)
    found = CallComparison(
        function_full="operator<",
        by="instructions",
        calls=1000,
        slow=[0] * 10,  # type: ignore[arg-type]
        fast=[0] * 500,  # type: ignore[arg-type]
        slow_from=900,
        fast_to=700,
        left_out=[],  # type: ignore[arg-type]
        functions=(some,) * 12,
        lines=(),
        edges=(),
        times=(gap,),
        sampled=(0, 0),
    )
    text = found._repr_html_()
    assert "<b>operator&lt;</b>: 10 slow and 500 fast of 1,000 calls, by instructions" in text
    assert "2 more in the attribute functions" in text
    rows = Page(text).rows
    assert len(rows) == 1 + 10 + 1 + 1
    assert rows[1] == ["map", "+1,230", "1,234", "4", "3.00", "0.50", "7"]
    assert rows[-1] == ["calls that end at a gap", "+0.50", "0.50", "0.00", "0.50", "0.00", "8"]
