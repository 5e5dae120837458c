"""Every test checks something, and the search for those that do not can fail."""

from __future__ import annotations

from pathlib import Path

from test_bodies import cpp_file, python_file, unchecked, unchecked_below

TESTS = Path(__file__).resolve().parents[1]
#: Tests without an assertion, each with the reason why it needs none. This list may only shrink.
WITHOUT: dict[str, str] = {}


def test_every_test_has_an_assertion() -> None:
    assert unchecked_below(TESTS) == sorted(WITHOUT)
    assert all(WITHOUT.values())


def test_python_bodies_without_an_assertion_are_found() -> None:
    helpers = "def same(a, b):\n    assert a == b\ndef run(a):\n    return a\n"
    tests = (
        "from helpers import same, run\n"
        "def test_empty():\n    run(1)\n"
        "def test_asserts():\n    assert run(1)\n"
        "def test_raises():\n    with pytest.raises(ValueError):\n        run(1)\n"
        "def test_by_helper():\n    both(1)\n"
        "def both(a):\n    same(a, a)\n"
    )
    files = {"helpers": python_file(helpers), "test_it": python_file(tests)}
    assert unchecked(files) == ["test_it::test_empty"]
    # A function of the same name in a module that is not imported does not count.
    files["test_other"] = python_file("def test_other():\n    same(1, 2)\n")
    assert unchecked(files) == ["test_it::test_empty", "test_other::test_other"]


def test_cpp_bodies_without_an_assertion_are_found() -> None:
    header = "inline void expect_same(int a, Options options = {}) { EXPECT_EQ(a, 1); }\n"
    tests = """#include "same.h"
TEST(A, Empty) { const char brace = '{'; run("EXPECT_EQ(1, 2) }"); /* ASSERT_TRUE(x) */ }
TEST(A, Asserts) { if (x) { ASSERT_TRUE(x); } }
TEST_F(B, ByHelper) { both(1'000); }
TEST_P(B, ByLambda) {
  const auto check = [&](int a) { EXPECT_EQ(a, 1); };
  for (int a : {1, 2}) check(a);
}
void both(int a) { expect_same(a); }
"""
    files = {"same.h": cpp_file(header), "test_it.cpp": cpp_file(tests)}
    assert unchecked(files) == ["test_it.cpp::A.Empty"]
