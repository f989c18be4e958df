#!/usr/bin/env python3
"""Checks that the set-up before the first test of a file is short (CONTRIBUTING.md, "Tiers").

usage: test_layout.py ROOT

A longer set-up belongs into a file beside the test: x_fixture.hpp for one class with its doubles,
x_harness.hpp for one program with doubles, x_bed.hpp for real programs.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()

MAX_LINES = 150  # before the first test

# File -> why its set-up may be longer.
EXCEPTIONS = {
    "tests/app-proxy/runtime/runtime_rounds_test.cpp": "a small double and one fixture, two lines above the limit",
}

# TEST, TEST_F, TEST_P, TYPED_TEST and macros of ours such as PEER_TEST.
TEST = re.compile(r"[A-Z_]*TEST[A-Z_]*\(")


def lines_before_the_first_test(path: pathlib.Path) -> int | None:
    """None: the file has no test of its own."""
    for number, line in enumerate(path.read_text().splitlines()):
        if TEST.match(line):
            return number
    return None


def main() -> int:
    found, files = [], 0
    unused = set(EXCEPTIONS)
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        name = path.relative_to(ROOT).as_posix()
        lines = lines_before_the_first_test(path)
        if lines is None:
            continue
        files += 1
        if lines <= MAX_LINES:
            continue
        if name in EXCEPTIONS:
            unused.discard(name)
            continue
        found.append(f"{name}: {lines} lines before the first test, more than {MAX_LINES}; move the set-up to a file beside it")
    found += [f"{name} needs no exception" for name in sorted(unused)]
    print("\n".join(found) or f"test layout: {files} files, at most {MAX_LINES} lines before the first test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
