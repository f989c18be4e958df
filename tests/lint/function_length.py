#!/usr/bin/env python3
"""Checks that no function has more than 80 lines: a longer one has to be proved by reading.

usage: function_length.py ROOT
"""
import pathlib
import re
import sys

MOST = 80
# Tables: a row after the other, without logic.
TABLES = {
    "bind": "rows of settings",
    "reason_phrase": "the phrases of RFC 9110",
    "permissions_of_runtime": "rows of permissions",
    "add_repository_types": "rows of GraphQL types",
}
# A definition begins at the left or within a class, ends its line with an opening brace, and closes in its own column.
HEAD = re.compile(r"( {0,2})(?!namespace\b|struct\b|class\b|enum\b|if\b|for\b|while\b|switch\b|return\b|else\b|extern\b|constexpr\b)"
                  r"[A-Za-z~].*\{$")
NAME = re.compile(r"([A-Za-z_~]\w*)\(")


def functions(lines: list[str]):
    """Yields name, first line (from 1) and number of lines of each definition."""
    at = 0
    while at < len(lines):
        head = HEAD.match(lines[at]) if ")" in lines[at] else None
        start = at
        # The name may stand on a line above, when the parameters do not fit on one.
        while head and "(" not in lines[start] and start > 0 and at - start < 8:
            start -= 1
        name = NAME.search(lines[start]) if head else None
        if not name or "=" in lines[start][:name.start()]:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not re.match(rf"{head.group(1)}\}}", lines[end]):
            end += 1
        yield name.group(1), start + 1, end - start + 1
        at = end if not head.group(1) else at + 1


ROOT = pathlib.Path(sys.argv[1]).resolve()
count = 0
found = []
for top in ("apps", "libs", "demo"):
    for path in sorted((ROOT / top).rglob("*.[ch]pp")):
        for name, line, length in functions(path.read_text().splitlines()):
            count += 1
            if length > MOST and name not in TABLES:
                found.append(f"{path.relative_to(ROOT)}:{line}: {name}() has {length} lines, more than {MOST}; divide it")
print("\n".join(found) if found else f"{count} functions, at most {MOST} lines each but for {len(TABLES)} tables")
sys.exit(1 if found else 0)
