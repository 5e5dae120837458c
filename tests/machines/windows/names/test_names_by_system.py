"""Names of Microsoft's compilers on Linux and on Windows: equal, or a listed row with the reason.

Linux has LLVM's demangler, Windows its own in dbghelp.dll. Compared are LLVM 14 and the dbghelp.dll of Wine,
whose demangler is Wine's own: no test runs Microsoft's. Rows of WINE are Wine's alone.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from mingw import PREFIX, compile_by
from wine import Wine

from ptkit import _core

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
NAMES = ROOT / "src" / "code" / "symbol" / "names"
SOURCES = (HERE / "undecorate.cpp", *(NAMES / f"{name}.cpp" for name in ("microsoft", "microsoft_size")))

COMMA = "no space after a comma"
SPACE = "other spaces around qualifiers and asterisks"
DESTRUCTOR = "`destructor' is not shortened"
VARIABLE = "variables have their type: dbghelp.dll has no flag that leaves it out alone"
CONVENTION = "no calling conventions of function pointers: the flag that removes that of the function"
RESTRICT = "no __restrict: it is one of the keywords that the flag for conventions removes"
THUNK = "thunks have no mark before the name"
WINE = "Wine does not demangle this form, and ptkit shows the mangled name"


class Row(NamedTuple):
    """A name as it is shown; `windows` is None where it is the same."""

    raw: str
    linux: str
    windows: str | None = None
    reason: str = ""


ROWS = (
    Row("?f@@YAXXZ", "f(void)"),
    Row("?f@A@@QEAAXPEAV1@@Z", "A::f(class A *)"),
    Row("??0A@@QEAA@XZ", "A::A(void)"),
    Row("??1A@@UEAA@XZ", "A::~A(void)"),
    Row("??HA@@QEAA?AV0@AEBV0@@Z", "A::operator+(class A const &)"),
    Row("??$f@H@@YAXH@Z", "f<int>(int)"),
    Row("??$f@$0CK@@@YAXXZ", "f<42>(void)"),
    Row("?f@@YAXW4E@@@Z", "f(enum E)"),
    Row("?f@@YAX$$QEAH@Z", "f(int &&)"),
    Row("??2@YAPEAX_K@Z", "operator new(unsigned __int64)"),
    Row("?f@@YA?AUS@@XZ", "f(void)"),
    Row("?f@@YAXZZ", "f(...)"),
    Row("?f@@YAXAAY02H@Z", "f(int (&)[3])"),
    Row("?f@A@@SAXXZ", "A::f(void)"),
    Row("?f@ns@@YAHPEBDAEAH@Z", "ns::f(char const *, int &)", "ns::f(char const *,int &)", COMMA),
    Row("??$f@HH@@YAXHH@Z", "f<int, int>(int, int)", "f<int,int>(int,int)", COMMA),
    Row("?f@@YAXV?$A@HH@@@Z", "f(class A<int, int>)", "f(class A<int,int>)", COMMA),
    Row("?f@@YAXHZZ", "f(int, ...)", "f(int,...)", COMMA),
    Row("??BA@@QEBAHXZ", "A::operator int(void) const", "A::operator int(void)const ", SPACE),
    Row("?f@A@@UEBAXXZ", "A::f(void) const", "A::f(void)const ", SPACE),
    Row("?f@A@@QEGAAXXZ", "A::f(void) &", "A::f(void)& ", SPACE),
    Row("?f@@YAXPEBQEBD@Z", "f(char const *const *)", "f(char const * const *)", SPACE),
    Row("??__Kab@@YA?AUS@@PEBD@Z", 'operator ""ab(char const *)', 'operator "" ab(char const *)', SPACE),
    Row(
        "??_GA@@UEAAPEAXI@Z",
        "A::`scalar deleting dtor'(unsigned int)",
        "A::`scalar deleting destructor'(unsigned int)",
        DESTRUCTOR,
    ),
    Row(
        "??_EA@@UEAAPEAXI@Z",
        "A::`vector deleting dtor'(unsigned int)",
        "A::`vector deleting destructor'(unsigned int)",
        DESTRUCTOR,
    ),
    Row("??_DA@@QEAAXXZ", "A::`vbase dtor'(void)", "A::`vbase destructor'(void)", DESTRUCTOR),
    Row("?x@@3HA", "x", "int x", VARIABLE),
    Row("?x@A@@2HA", "A::x", "int A::x", VARIABLE),
    Row("?f@@YAXP6AHH@Z@Z", "f(int (__cdecl *)(int))", "f(int (*)(int))", CONVENTION),
    Row("?f@@YAXPEIAH@Z", "f(int *__restrict)", "f(int *)", RESTRICT),
    Row("?f@A@@WBA@EAAXXZ", "[thunk]: A::f`adjustor{16}'(void)", "A::f`adjustor{16}' (void)", THUNK),
    Row("?f@@YAX$$T@Z", "f(std::nullptr_t)", "?f@@YAX$$T@Z", WINE),
    Row("?f@?A0x12345678@@YAXXZ", "`anonymous namespace'::f(void)", "?f@?A0x12345678@@YAXXZ", WINE),
    Row("??$f@$1?g@@YAXXZ@@YAXXZ", "f<&g(void)>(void)", "??$f@$1?g@@YAXXZ@@YAXXZ", WINE),
    Row("??__Ex@@YAXXZ", "`dynamic initializer for 'x''(void)", "??__Ex@@YAXXZ", WINE),
    Row(
        "??R<lambda_1>@?0??main@@YAHXZ@QEBA@XZ",
        "`int __cdecl main(void)'::`1'::<lambda_1>::operator()(void) const",
        "??R<lambda_1>@?0??main@@YAHXZ@QEBA@XZ",
        WINE,
    ),
)


def test_rows_that_differ_have_reasons() -> None:
    assert all((row.windows is not None and row.windows != row.linux) == bool(row.reason) for row in ROWS)
    assert len({row.raw for row in ROWS}) == len(ROWS)


def test_names_on_linux() -> None:
    if not _core.has_microsoft_demangler():
        pytest.skip("LLVM's demangler is not installed (package llvm-dev)")
    assert [_core.demangled(row.raw) for row in ROWS] == [row.linux for row in ROWS]


def test_names_on_windows(wine: Wine) -> None:
    compiler = shutil.which(f"{PREFIX}g++-posix")
    if compiler is None:
        pytest.skip("mingw-w64's C++ compiler is not installed (package g++-mingw-w64-x86-64)")
    program = compile_by(
        compiler, wine.folder / "undecorate.exe", "-std=c++20", "-O1", "-static", f"-I{ROOT / 'src'}",
        *SOURCES, NAMES / "win32" / "undecorate.cpp", "-ldbghelp",
    )  # fmt: skip
    shown = wine.run(program, *(row.raw for row in ROWS)).splitlines()
    assert shown == [row.linux if row.windows is None else row.windows for row in ROWS]
