#!/usr/bin/env python3
"""Checks the commit messages since this check exists (CONTRIBUTING.md, "Commits").

usage: commits.py ROOT [RANGE]

"area: what changes" in at most 72 columns, where an area is the name of a folder, or a topic of
this list; several are separated by commas. Then an empty line and a body.
"""
import re
import subprocess
import sys

TOPICS = {"build", "changelog", "dev", "layout"}
ROOT = sys.argv[1]


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True).stdout


def faults(message: str, areas: set[str]) -> list[str]:
    subject, _, rest = message.partition("\n")
    found = []
    if len(subject) > 72:
        found.append(f"the subject has {len(subject)} columns, 72 are allowed")
    match = re.match(r"([\w., -]+): \S", subject)
    if not match:
        found.append('the subject is not of the form "area: what changes"')
    else:
        found += [f'"{area}" is neither a folder nor a topic'
                  for area in re.split(r", *", match.group(1)) if area not in areas]
    if rest and not rest.startswith("\n"):
        found.append("no empty line after the subject")
    if not re.sub(r"^[\w-]+: .*$", "", rest, flags=re.M).strip():
        found.append("no body: say why, and what was before")
    return found


def main() -> int:
    if len(sys.argv) > 2:
        commits = git("rev-list", "--no-merges", sys.argv[2]).split()
    else:
        first = git("log", "--diff-filter=A", "--format=%H", "--", "tests/lint/commits.py").split()
        if not first:  # not committed yet, or a copy without its history
            print("no commits to check")
            return 0
        commits = git("rev-list", "--no-merges", f"{first[-1]}..HEAD").split()
    areas = TOPICS | {part for path in git("ls-files").splitlines() for part in path.split("/")[:-1]}
    bad = 0
    for commit in commits:
        message = git("log", "-1", "--format=%B", commit).strip("\n")
        for fault in faults(message, areas):
            print(f"{commit[:10]} {message.splitlines()[0]}\n           {fault}")
            bad += 1
    print(f"{len(commits)} commits, {bad} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
