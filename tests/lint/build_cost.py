#!/usr/bin/env python3
"""Checks that building has not become more than 5 % dearer than tests/lint/build_cost.json says.

usage: build_cost.py ROOT [--write]

Seconds differ between machines, so the check compares what causes them, and the seconds stand beside it:
  files     sources to compile, by folder
  headers   the five headers of ours that cost most: KB after preprocessing, alone and without a precompiled header,
            and the sources that include it
  read_mb   text of ours that compilers read: for every source its own, and that of each header of ours it includes
  cpu       seconds of CPU for each build folder, of a run of ./dev test --all that compiled everything (for people)

--write takes the figures of these sources, and `cpu` from the last ./dev test if it found nothing in ccache. A
commit that makes building dearer on purpose changes this file, and says why.
"""
import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
FIGURES = ROOT / "tests/lint/build_cost.json"
GROWTH = 1.05
ROOTS = ["libs", "apps", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


@functools.cache
def included(path: pathlib.Path) -> tuple[pathlib.Path, ...]:
    found = []
    for name in INCLUDE.findall(path.read_text()):
        for folder in [path.parent, *(ROOT / root for root in ROOTS)]:
            if (folder / name).exists():
                found.append((folder / name).resolve())
                break
    return tuple(found)


@functools.cache
def closure(path: pathlib.Path) -> frozenset[pathlib.Path]:
    found, left = set(), [path]
    while left:
        for header in included(left.pop()):
            if header not in found:
                found.add(header)
                left.append(header)
    return frozenset(found)


def weight(header: pathlib.Path) -> int:
    """KB that a compiler reads for this header alone."""
    command = ["clang++-19", "-std=c++23", "-E", "-P", "-DBOOST_ASIO_SEPARATE_COMPILATION", "-DBOOST_ASIO_NO_DEPRECATED",
               *(f"-I{ROOT / root}" for root in ROOTS), "-x", "c++", str(header)]
    return len(subprocess.run(command, capture_output=True, check=True).stdout) // 1024


def measured() -> dict:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--", "*.cpp"], capture_output=True, text=True, check=True)
    sources = [ROOT / line for line in listed.stdout.splitlines()
               if not line.startswith("tests/lint/compiler/") and (ROOT / line).exists()]
    files: dict[str, int] = {}
    reach: dict[pathlib.Path, int] = {}
    read = 0
    for source in sources:
        folder = source.relative_to(ROOT).parts[0]
        files[folder] = files.get(folder, 0) + 1
        read += source.stat().st_size
        for header in closure(source):
            reach[header] = reach.get(header, 0) + 1
            read += header.stat().st_size
    # A header that few sources include can't be among the five.
    candidates = sorted(reach, key=lambda header: -reach[header])[:40]
    weights = {header: weight(header) for header in candidates}
    dearest = sorted(candidates, key=lambda header: -weights[header] * reach[header])[:5]
    return {"files": files, "headers": {str(header.relative_to(ROOT)): [weights[header], reach[header]] for header in dearest},
            "read_mb": round(read / 1e6, 1)}


def cpu_of_last_run() -> dict[str, int]:
    schedule = ROOT / "build/schedule"
    found = {}
    for path in sorted(schedule.glob("*.jsonl")):
        log = schedule / f"{path.stem}.ccache"
        if log.exists() and "_cache_hit" in log.read_text():
            return {}
        found[path.stem] = round(sum(json.loads(line)["cpu"] for line in path.read_text().splitlines()))
    return found


def compare(now: dict, then: dict) -> list[str]:
    faults = []

    def check(what: str, value: float, limit: float) -> None:
        if value > limit * GROWTH:
            faults.append(f"{what}: {value}, was {limit}")
    for folder, count in now["files"].items():
        check(f"sources in {folder}", count, then["files"].get(folder, 0))
    check("MB read for the five dearest headers", *(
        sum(size * sources // 1024 for size, sources in figures["headers"].values()) for figures in (now, then)))
    check("MB of ours that compilers read", now["read_mb"], then["read_mb"])
    return faults


def main() -> int:
    now = measured()
    then = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if "--write" in sys.argv:
        FIGURES.write_text(json.dumps({**now, "cpu": cpu_of_last_run() or then.get("cpu", {})}, indent=2) + "\n")
        return 0
    faults = compare(now, then)
    for fault in faults:
        print(fault)
    if faults:
        print("Building has become dearer. If that is meant: tests/lint/build_cost.py . --write, and commit the file.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
