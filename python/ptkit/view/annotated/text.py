"""Annotated code as lines of text, each of parts with the name of their colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ptkit.support.text import counted, fitted, last_part, one_line
from ptkit.view.annotated.extents import signed
from ptkit.view.annotated.function import AnnotatedFunction
from ptkit.view.annotated.source import LineRow, spans_of

if TYPE_CHECKING:
    from ptkit.analysis.flow import Loop

__all__ = ["Line", "heat", "listing", "loops_at", "pairs", "path_lines", "plain_part", "span_lines"]

#: Parts of a line: a text, or a text and the name of its colour.
Line: TypeAlias = list["str | tuple[str, str]"]

_HOT, _WARM = 0.5, 0.05  # shares of the largest count
_MOST_PAIRS = 4  # branches of a line that are printed
_WIDE = 100  # columns from which on a line has room for its source line
_LINE_WIDTH = 28
_MARK = ">"
_MOST_BARS = 6
_MOST_PADDED = 60


def plain_part(part: str | tuple[str, str]) -> str:
    """The text of a part of a line."""
    return part if isinstance(part, str) else part[0]


def listing(functions: Sequence[AnnotatedFunction], has_source: bool, width: int | None = None) -> list[Line]:
    """Functions as lines; `width`: columns of the terminal, None: lines are not cut."""
    lines: list[Line] = []
    for function in functions:
        if lines:
            lines.append([])
        lines.append([(one_line(function.title), "name")])
        make = _source if has_source and function.lines else _instructions
        lines += make(function, width)
    return lines


def heat(count: int, most: int) -> str:
    """Colour of a count: ``"hot"``, ``"warm"``, ``""``, or ``"dim"`` for what did not run."""
    if not count:
        return "dim"
    return "hot" if count >= most * _HOT else "warm" if count >= most * _WARM else ""


def _loop_text(loop: Loop, instructions: int) -> str:
    """What is known of a loop."""
    if loop.mean is None:
        trips = f"{counted(loop.count, 'trip')}, begun before the trace"
    else:
        entries = counted(loop.entries, "entry", "entries")
        trips = f"{_rounded(loop.mean)} trips on average ({loop.count:,} from {entries})"
    return f"loop: {trips}, {counted(instructions, 'instruction')}"


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.2f}"


def pairs(branches: Sequence[tuple[int, int]]) -> str:
    """Branches of a line: how often each was taken, and not."""
    shown = [f"{taken:,}/{passed:,}" for taken, passed in branches[:_MOST_PAIRS]]
    more = [f"+{len(branches) - _MOST_PAIRS}"] if len(branches) > _MOST_PAIRS else []
    return " ".join([*shown, *more])


def _bars(depth: int) -> str:
    return "|" * min(depth, _MOST_BARS)


def loops_at(function: AnnotatedFunction) -> dict[int, str]:
    """What is known of loops, by their heads."""
    rows = function.rows
    return {loop.head: _loop_text(loop, int(rows.count[loop.rows].sum())) for loop in rows.loops}


def _instructions(function: AnnotatedFunction, width: int | None) -> Iterator[Line]:
    rows, loops, depth = function.rows, loops_at(function), function.depth
    counts = rows.count.tolist()
    most = max(counts, default=0)
    cells = [
        [f"{one:,}" for one in counts],
        *([f"{one:,}" if one >= 0 else "" for one in some.tolist()] for some in (rows.taken, rows.passed)),
    ]
    heads = ["count", "taken", "not"]
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]
    bars = min(max(depth, default=0), _MOST_BARS)
    offsets = [signed(function.offset(row)) for row in range(len(counts))]
    wide = max(map(len, ["offset", *offsets]))
    used = sum(widths) + bars + wide + 7  # columns before the instruction
    wheres, space = _wheres(function), None
    if not any(wheres) or (width is not None and width < _WIDE):
        wheres = [""] * len(counts)
    elif width is not None:
        space = width - used - _LINE_WIDTH
    texts = [one_line(function.shown(row)) for row in range(len(counts))]
    padded = min(max(map(len, texts), default=0), _MOST_PADDED if space is None else space)
    heading = f"{' '.join(map(str.rjust, heads, widths))}  {'':{bars}} {'offset':>{wide}}  instruction"
    yield [heading if width is None else heading[:width]]
    for row in function.code():
        if not isinstance(row, int):
            offset = signed(row.at - function.rva)
            text = f"{counted(row.size, 'byte')} that did not run"
            yield [" " * (used - wide - 2), (f"{offset:>{wide}}  {_cut(text, used, width)}", "dim")]
            continue
        if row in loops:
            yield _indented(loops[row], used, width)
        numbers = [f"{column[row]:>{one}}" for column, one in zip(cells, widths, strict=True)]
        text = _cut(texts[row], used, width) if space is None else _fit(texts[row], space)
        line: Line = [
            (numbers[0], heat(counts[row], most)),
            f" {' '.join(numbers[1:])} ",
            (_MARK, "hot") if rows.is_hottest[row] else " ",
            f"{_bars(depth[row]):<{bars}} {offsets[row]:>{wide}}  ",
            text if counts[row] else (text, "dim"),
        ]
        if wheres[row]:
            line += [" " * (padded - len(text) + 2), (_cut(wheres[row], used + padded + 2, width), "dim")]
        yield line


def _indented(text: str, indent: int, width: int | None) -> Line:
    """A note, which begins further on the left where the line is short."""
    if width is not None:
        indent = max(min(indent, width - len(text)), 0)
    return [" " * indent, (_cut(text, indent, width), "note")]


def _wheres(function: AnnotatedFunction) -> list[str]:
    """Source line and inlined function of each instruction, where they are others than before."""
    found, before = [], ""
    lines = function.rows.lines
    for path, line, inlined in zip(lines.path, lines.line, lines.inlined, strict=True):
        where = f"{last_part(path)}:{line}" if path is not None else ""
        if inlined is not None:
            where = f"{where} [{inlined}]".lstrip()
        found.append("" if where == before else one_line(where))
        before = where
    return found


def _fit(text: str, most: int) -> str:
    """The begin of a text in so many columns."""
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."


def _cut(text: str, used: int, width: int | None) -> str:
    text = one_line(text)
    return text if width is None else _fit(text, max(width - used, 8))


def path_lines(function: AnnotatedFunction) -> list[tuple[str, list[LineRow]]]:
    """Lines with code by their file, in order."""
    found: dict[str, list[LineRow]] = {}
    for one in function.lines:
        found.setdefault(one.path, []).append(one)
    return list(found.items())


def span_lines(lines: Sequence[LineRow], *, has_texts: bool) -> Iterator[tuple[int, LineRow | None] | None]:
    """Numbers of the lines of a file that are shown, with those that have code; None: some are left out."""
    by_line = {one.line: one for one in lines}
    for number, (first, last) in enumerate(spans_of(lines, has_texts=has_texts)):
        if number and has_texts:
            yield None
        for line in range(first, last + 1):
            yield line, by_line.get(line)


def _source(function: AnnotatedFunction, width: int | None) -> Iterator[Line]:
    loops = loops_at(function)
    files = path_lines(function)
    every = function.lines
    most = max(one.count for one in every)
    cells = {(one.path, one.line): (f"{one.count:,}", pairs(one.branches)) for one in every}
    heads = ("count", "taken/not")
    widths = [max(map(len, [heads[at], *(one[at] for one in cells.values())])) for at in range(2)]
    bars = min(max(one.depth for one in every), _MOST_BARS)
    number_width = max(len("line"), *(len(str(one.line)) for one in every))
    for path, lines in files:
        name = one_line(path)
        yield [(name if width is None else fitted(name, width), "note")]
        heading = f"{' '.join(map(str.rjust, heads, widths))}  {'':{bars}} {'line':>{number_width}}  source"
        yield [heading if width is None else heading[:width]]
        file = function.source(path)
        for shown in span_lines(lines, has_texts=file.texts is not None):
            if shown is None:
                yield ["..."]
                continue
            number, row = shown
            count, branches = cells[path, number] if row is not None else ("", "")
            indent = sum(widths) + 3 + bars + 1
            for at in row.rows if row is not None else ():
                if at in loops:
                    yield _indented(loops[at], indent, width)
            used = indent + number_width + 2
            text = _cut(file.line(number) or "", used, width)
            yield [
                (f"{count:>{widths[0]}}", heat(row.count, most) if row is not None else ""),
                f" {branches:>{widths[1]}} ",
                (_MARK, "hot") if row is not None and row.is_hottest else " ",
                f"{_bars(row.depth if row is not None else 0):<{bars}} {number:>{number_width}}  ",
                (text, "dim") if row is not None and not row.count else text,
            ]
