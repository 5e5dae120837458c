"""Texts for terminals and messages."""

from __future__ import annotations

import pytest

from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.text import fitted, number

NAME = "store::detail::HashMap::insert"


def test_namespaces_give_way_first() -> None:
    assert fitted(f"{NAME} (kv)", 35) == f"{NAME} (kv)"
    assert fitted(f"{NAME} (kv)", 34) == "...::detail::HashMap::insert (kv)"
    assert fitted(f"{NAME} (kv)", 30) == "...::HashMap::insert (kv)"
    assert fitted(NAME, 20) == "...::HashMap::insert"


def test_files_give_way_before_classes() -> None:
    assert fitted(f"{NAME} (libstdc++.so.6)", 32) == NAME
    assert fitted(f"{NAME} (libstdc++.so.6)", 29) == "...::HashMap::insert (lib...)"
    assert fitted(f"{NAME} (libstdc++.so.6)", 24) == "...::HashMap::insert"
    assert fitted(f"{NAME} (libstdc++.so.6)", 16) == "...::insert"
    assert fitted("insert (libstdc++.so.6)", 16) == "insert (libs...)"
    assert fitted("store::insert (kv)", 16) == "store::insert"


def test_paths_of_traits_give_way_first() -> None:
    name = "<core::hash::sip::DefaultHasher as core::hash::Hasher>::write"
    assert fitted(f"{name} (kv)", 45) == "<*DefaultHasher as *Hasher>::write (kv)"
    assert fitted(f"{name} (kv)", 37) == "<*DefaultHasher as *Hasher>::write"
    assert fitted(f"{name} (kv)", 20) == "...::write (kv)"


def test_arguments_that_tell_names_apart_stay_longest() -> None:
    name = "store::detail::Table<int*>::insert<*>"
    assert fitted(f"{name} (kv)", 34) == "...::Table<int*>::insert<*> (kv)"
    assert fitted(f"{name} (kv)", 23) == "...<int*>::insert<*>"
    assert fitted(f"{name} (kv)", 15) == "...::insert<*>"
    name = "store::Table<std::__cxx11::basic_string*>::insert"
    assert fitted(f"{name} (kv)", 41) == "...<std::__cxx11::basic_string*>::insert"
    assert fitted(f"{name} (kv)", 33) == "...::basic_string*>::insert (kv)"


def test_last_parts_are_cut_only_where_they_do_not_fit() -> None:
    assert fitted("read_all_of_the_configuration (kv)", 12) == "read_a...ion"
    assert fitted("ns::read_all_of_the_configuration", 12).startswith("ns::re...")


@pytest.mark.parametrize(
    "name", [f"{NAME} (kv)", "<a::Vec as b::Clone>::clone", "(anonymous namespace)::f", "f"]
)
def test_texts_are_never_wider(name: str) -> None:
    for most in range(4, len(name) + 1):
        assert len(fitted(name, most)) <= most


def test_what_tells_instances_apart_stays() -> None:
    name = "store::detail::HashMap<*, long>::insert"
    for most in (24, 28, 32, 36):
        assert "long>::insert" in fitted(name, most), most
        assert len(fitted(name, most)) <= most


def test_numbers() -> None:
    assert [number(text) for text in ("0", "12", "0x1F", "0X1f", b"0x10", str(LAST_ADDRESS))] == [
        0,
        12,
        31,
        31,
        16,
        LAST_ADDRESS,
    ]
    assert [number(text, 16) for text in ("12", "0x12", b"ff", "0" * 30 + "1")] == [0x12, 0x12, 255, 1]
    assert number("12", 10) == 12
    assert number("0x12", 10) is None
    for bad in (
        "",
        "0x",
        "x1",
        "0x0x12",
        "1x2",
        "1_0",
        "+1",
        "-1",
        " 1",
        "1 ",
        "1\n",
        "\u0661",
        "f",
        "0" * 41,
    ):
        assert number(bad) is None, bad
        assert number(bad.encode(), 10) is None, bad
    for base in (0, 10):
        assert number(str(LAST_ADDRESS + 1), base) is None
    assert number("1" + "0" * 16, 16) is None
