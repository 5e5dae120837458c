"""Annotated code as HTML, without scripts: everything of a recording is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape

from ptkit.support.text import counted, last_part, one_line
from ptkit.view.annotated.extents import signed
from ptkit.view.annotated.function import AnnotatedFunction
from ptkit.view.annotated.text import heat, loops_at, pairs, path_lines, span_lines

__all__ = ["fragment", "page"]

_STYLE = """\
:root{color-scheme:light dark}
body{margin:1.5rem;font:14px/1.45 system-ui,sans-serif;background:light-dark(#fff,#16191d)}
"""
_OWN_STYLE = """\
.ptkit-annotated{--muted:light-dark(#5a6472,#9aa5b3);--line:light-dark(#d5d9df,#343a42);\
--note:light-dark(#8a5a00,#e0b050);--hot:light-dark(#fbd3c4,#5c2a1c);--warm:light-dark(#fdf0d0,#3f3418);\
--path:light-dark(#c5221f,#ff7a70);\
background:light-dark(#fff,#16191d);color:light-dark(#1b1f24,#e4e7eb)}
.ptkit-annotated h2{font-size:1.15em;margin:1.4em 0 .4em}
.ptkit-annotated h3{font-size:1em;font-weight:600;margin:1em 0 .3em;color:var(--muted)}
.ptkit-annotated table{border-collapse:collapse;font:12.5px/1.5 ui-monospace,monospace}
.ptkit-annotated :is(th,td){padding:0 .7em;text-align:right;white-space:pre;border:0;background:none}
.ptkit-annotated th{color:var(--muted);font-weight:normal;border-bottom:1px solid var(--line)}
.ptkit-annotated .t{text-align:left}
.ptkit-annotated .path td:first-child{border-left:3px solid var(--path)}
.ptkit-annotated td:first-child{border-left:3px solid transparent}
.ptkit-annotated .hot td.c{background:var(--hot)}
.ptkit-annotated .warm td.c{background:var(--warm)}
.ptkit-annotated .dim td,.ptkit-annotated td.w{color:var(--muted)}
.ptkit-annotated td.n{color:var(--note)}
.ptkit-annotated td.d{color:var(--muted);padding:0}
.ptkit-annotated p,.ptkit-annotated ul{color:var(--muted)}
.ptkit-annotated .wrap{overflow-x:auto}
"""
_MOST_BARS = 6
_LEGEND = "Counts are executions. A bar on the left: the hottest path. |: a loop around."


def page(
    name: str, functions: Sequence[AnnotatedFunction], missing: Sequence[str], *, has_source: bool
) -> bytes:
    """One file. Nothing in it may run or be fetched: its only style is known by its hash."""
    style = _STYLE + _OWN_STYLE
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    text = "".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n',
            '<meta http-equiv="Content-Security-Policy" ',
            f"content=\"default-src 'none'; style-src 'sha256-{allowed}'\">\n",
            '<meta name="viewport" content="width=device-width">',
            f"<title>ptkit: {_text(name)}</title>\n<style>{style}</style></head>\n<body>",
            *_body(functions, missing, has_source),
            "</body></html>\n",
        ]
    )
    return text.encode()


def fragment(functions: Sequence[AnnotatedFunction], missing: Sequence[str], *, has_source: bool) -> str:
    """An element for a notebook."""
    return f"<style>{_OWN_STYLE}</style>{''.join(_body(functions, missing, has_source))}"


def _text(text: str) -> str:
    return escape(one_line(text))


def _body(functions: Sequence[AnnotatedFunction], missing: Sequence[str], has_source: bool) -> Iterator[str]:
    yield '<div class="ptkit-annotated">\n'
    yield f"<p>{_LEGEND}</p>\n"
    for function in functions:
        yield f"<h2>{_text(function.title)}</h2>\n"
        if function.full_name != function.name:
            yield f"<h3>{_text(function.full_name)}</h3>\n"
        if has_source and function.lines:
            for path, _ in path_lines(function):
                yield f"<h3>{_text(path)}</h3>\n"
                yield from _table(("count", "taken/not", "", "line", "source"), _source_rows(function, path))
            yield "<h3>Instructions</h3>\n"
        heads = ("count", "taken", "not", "", "offset", "instruction", "source line")
        yield from _table(heads, _code_rows(function))
    if missing:
        yield f"<ul>{''.join(f'<li>{_text(one)}</li>' for one in missing)}</ul>\n"
    yield "</div>"


_LEFT = ("", "instruction", "source", "source line")


def _table(heads: Sequence[str], rows: Iterator[str]) -> Iterator[str]:
    cells = "".join(f'<th class="t">{head}</th>' if head in _LEFT else f"<th>{head}</th>" for head in heads)
    yield f'<div class="wrap"><table><thead><tr>{cells}</tr></thead><tbody>\n'
    yield from rows
    yield "</tbody></table></div>\n"


def _row(cells: Sequence[tuple[str, str]], colour: str, *, is_hottest: bool) -> str:
    """A row of cells, each of a class and a text."""
    names = " ".join(name for name in ("path" if is_hottest else "", colour) if name)
    begin = f'<tr class="{names}">' if names else "<tr>"
    inside = "".join(
        f'<td class="{name}">{_text(text)}</td>' if name else f"<td>{_text(text)}</td>"
        for name, text in cells
    )
    return f"{begin}{inside}</tr>\n"


def _loop(text: str, before: int, after: int) -> str:
    return f'<tr><td colspan="{before}"></td><td class="t n" colspan="{after}">{_text(text)}</td></tr>\n'


def _bars(depth: int) -> str:
    return "|" * min(depth, _MOST_BARS)


def _code_rows(function: AnnotatedFunction) -> Iterator[str]:
    rows, loops, depth = function.rows, loops_at(function), function.depth
    counts, taken, passed = (one.tolist() for one in (rows.count, rows.taken, rows.passed))
    most = max(counts, default=0)
    for row in function.code():
        if not isinstance(row, int):
            text = f"{counted(row.size, 'byte')} that did not run"
            cells = [("", "")] * 4 + [("", signed(row.at - function.rva)), ("t", text), ("", "")]
            yield _row(cells, "dim", is_hottest=False)
            continue
        if row in loops:
            yield _loop(loops[row], 5, 2)
        path, inlined = rows.lines.path[row], rows.lines.inlined[row]
        where = "" if path is None else f"{last_part(path)}:{rows.lines.line[row]}"
        where += "" if inlined is None else f" [{inlined}]"
        is_branch = taken[row] >= 0
        cells = [
            ("c", f"{counts[row]:,}"),
            ("", f"{taken[row]:,}" if is_branch else ""),
            ("", f"{passed[row]:,}" if is_branch else ""),
            ("t d", _bars(depth[row])),
            ("", signed(function.offset(row))),
            ("t", function.shown(row)),
            ("t w", where),
        ]
        yield _row(cells, heat(counts[row], most), is_hottest=bool(rows.is_hottest[row]))


def _source_rows(function: AnnotatedFunction, path: str) -> Iterator[str]:
    loops, file = loops_at(function), function.source(path)
    most = max(one.count for one in function.lines)
    for shown in span_lines(dict(path_lines(function))[path], has_texts=file.texts is not None):
        if shown is None:
            yield _row([("", "")] * 3 + [("w", "..."), ("", "")], "", is_hottest=False)
            continue
        number, row = shown
        for at in row.rows if row is not None else ():
            if at in loops:
                yield _loop(loops[at], 4, 1)
        cells = [
            ("c", "" if row is None else f"{row.count:,}"),
            ("", "" if row is None else pairs(row.branches)),
            ("t d", "" if row is None else _bars(row.depth)),
            ("w", str(number)),
            ("t", file.line(number) or ""),
        ]
        colour = "" if row is None else heat(row.count, most)
        yield _row(cells, colour, is_hottest=row is not None and row.is_hottest)
