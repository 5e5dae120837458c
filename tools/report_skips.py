#!/usr/bin/env python3
"""Print the tests that were skipped, by reason, and fail if the list of expected skips lacks a reason.

    report_skips.py SECTION RESULTS.xml...

RESULTS are JUnit files of pytest and of GoogleTest. SECTION names the part of tests/expected_skips.txt
that holds for this run: "test" or "emulated". A pattern of the list that matched no skip is no error:
machines differ.
"""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

EXPECTED = Path(__file__).resolve().parents[1] / "tests" / "expected_skips.txt"
_COLLECTION = "collection skipped"  # what pytest writes for a module that skips as a whole
# GoogleTest writes "FILE:LINE" and the message of GTEST_SKIP on the line after it.
_GTEST_SKIP = re.compile(r"\S+:\d+\n(.*)")


def expected_patterns(text: str, section: str) -> list[str]:
    """Return the patterns of a section of the list; lines that begin with # are comments.

    Raises
    ------
    ValueError
        If there is no such section.
    """
    patterns: list[str] | None = None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            if patterns is not None:
                break
            patterns = [] if line == f"[{section}]" else None
        elif patterns is not None and line and not line.startswith("#"):
            patterns.append(line)
    if patterns is None:
        raise ValueError(f"there is no section [{section}] in {EXPECTED.name}")
    return patterns


def _reason_of_pytest(skipped: ElementTree.Element) -> str:
    message = skipped.get("message", "")
    if message == _COLLECTION:
        # The text is repr((file, line, "Skipped: reason")).
        message = str(ast.literal_eval(skipped.text or "")[2])
    return message.removeprefix("Skipped: ")


def skip_reasons(path: Path) -> Iterator[str]:
    """Yield the reason of each skipped test in a JUnit file."""
    for case in ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None:
            continue
        if skipped.get("type") == "pytest.skip" or skipped.get("message") == _COLLECTION:
            yield _reason_of_pytest(skipped)
        elif found := _GTEST_SKIP.match(skipped.get("message", "")):
            yield found[1].strip()
        else:
            yield f"{case.get('name')} gives no reason"


def main(arguments: Sequence[str]) -> int:
    """Print the skips by reason; return 1 if the list lacks one of them."""
    section, *files = arguments
    patterns = expected_patterns(EXPECTED.read_text(encoding="utf-8"), section)
    reasons = Counter(reason for name in files for reason in skip_reasons(Path(name)))
    unexpected = {
        reason for reason in reasons if not any(fnmatchcase(reason, pattern) for pattern in patterns)
    }
    print(f"skipped tests: {reasons.total()}")
    for reason, count in reasons.most_common():
        note = "  <-- unexpected" if reason in unexpected else ""
        print(f"{count:6}  {reason}{note}")
    if unexpected:
        print(f"{len(unexpected)} reasons are not in tests/{EXPECTED.name}, section [{section}]:")
        print("mend what made the tests skip, or add the reason and why it may happen")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
