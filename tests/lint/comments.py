#!/usr/bin/env python3
"""Checks that comments begin with a noun or a verb (CONTRIBUTING.md, "English").

usage: comments.py ROOT [PATH…]

A comment is a block of consecutive // lines of the same indentation. Its first word must not be one of OPENERS:
such a comment answers a question that its reader has not asked, or lacks a subject. Comments behind code are
not judged. Without a PATH the sources of apps and libs are checked, else the files and folders that are named,
relative to ROOT.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
PATHS = sys.argv[2:] or ["apps", "libs"]
SUFFIXES = {".cpp", ".hpp"}
OPENERS = ["What", "Who", "Whom", "Whose", "How", "Why", "Where",
           "Of", "With", "Without", "From", "By", "At", "Than"]
# These begin a sentence with a subject: "At most 16 requests wait."
ALLOWED = ["At least", "At most", "By default"]

COMMENT = re.compile(r"( *)//")
BEHIND_CODE = re.compile(r"[^ ].* //")
FIRST = re.compile(rf" *// *(?!(?:{'|'.join(ALLOWED)})\b)({'|'.join(OPENERS)})\b")


def first_lines(lines: list[str]):
    """Yields the number (from 1) and the text of the first line of each comment."""
    before = None  # the column of the comment in the line above
    for number, line in enumerate(lines, 1):
        start = COMMENT.match(line)
        if start and before != len(start.group(1)):
            yield number, line
        behind = None if start else BEHIND_CODE.match(line)
        before = len(start.group(1)) if start else behind.end() - 2 if behind else None


def main() -> int:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--", *PATHS], capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if pathlib.Path(name).suffix in SUFFIXES and (ROOT / name).is_file()]
    count = 0
    found = []
    for name in names:
        for number, line in first_lines((ROOT / name).read_text().splitlines()):
            count += 1
            opener = FIRST.match(line)
            if opener:
                found.append(f'{name}:{number}: the comment begins with "{opener.group(1)}": begin with a noun or a verb')
    print("\n".join(found) if found else f"{len(names)} files, {count} comments, none begins with one of {len(OPENERS)} words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
