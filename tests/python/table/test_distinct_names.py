"""What tells functions with equal short names apart."""

from __future__ import annotations

import pytest

from ptkit.table.distinct_names import distinct_names

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("full", "shown"),
    [
        (["a::f(int)", "a::f(double)"], ["a::f(int)", "a::f(double)"]),
        (["a::f(int)", f"a::f({STRING} const&)"], ["a::f(int)", "a::f(*basic_string*)"]),
        (
            ["s::Map<int, long>::insert(int, long)", "s::Map<char, long>::insert(char, long)"],
            ["s::Map<int*>::insert", "s::Map<char*>::insert"],
        ),
        (
            ["s::Map<int, int>::at(int)", "s::Map<int, long>::at(int)"],
            ["s::Map<int, int>::at", "s::Map<int, long>::at"],
        ),
        (
            [f"s::Map<{STRING}, {last}>::at()" for last in ("int", "long", "unsigned long")],
            ["s::Map<*int>::at", "s::Map<*, long>::at", "s::Map<*unsigned*>::at"],
        ),
        (["long f<int>(int)", "long f<char>(char)"], ["f<int>", "f<char>"]),
        (["long f<int>(int)", "long f<int>(char)"], ["*f<*>(int)", "*f<*>(char)"]),
        (["f(int) const", "f(int)", "g(int)", None], ["f(int) const", "f(int)", "g"]),
        (
            ["void sort<A, B<main::{lambda(int, int)#1}> >(A)", "void sort<A, C<long> >(A)"],
            ["sort<A, B*>", "sort<A, C*>"],
        ),
        (["a::f(int)", "long a::f<int>(int)"], ["a::f(int)", "long a::f<int>(int)"]),  # of different forms
        (["a::operator<<(int)", "a::operator<<(long)"], ["a::operator<<(int)", "a::operator<<(long)"]),
        (["main", "memcpy (avx)", "[syscall]"], ["main", "memcpy (avx)", "[syscall]"]),
    ],
)
def test_names_have_what_differs(full: list[str | None], shown: list[str]) -> None:
    assert list(distinct_names(full).values()) == shown
