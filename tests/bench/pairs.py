#!/usr/bin/env python3
"""Compares two builds: runs the same benchmark of both in turns, and prints the median of each row and their ratio.

usage: pairs.py BEFORE_FOLDER AFTER_FOLDER ROUNDS NAME...
The folders are those of benchmark programs (build/release/bench). Each round runs both, the first one by turns, so that
what else the machine does meets both alike. A ratio above 1.00 is worse.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

LIMIT = 1.02


def rows_of(program: pathlib.Path) -> dict[str, dict]:
    run = subprocess.run([program], stdout=subprocess.PIPE, check=True, text=True)
    return {row["name"]: row for row in map(json.loads, run.stdout.splitlines())}


def main() -> int:
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    folders, rounds, names = [pathlib.Path(f) for f in sys.argv[1:3]], int(sys.argv[3]), sys.argv[4:]
    worse = 0
    print(f"{'row':62} {'unit':22} {'before':>10} {'after':>10} {'ratio':>6}  of each round")
    for name in names:
        seen: dict[str, list[list[float]]] = {}
        units = {}
        for turn in range(rounds):
            for side in ((0, 1), (1, 0))[turn % 2]:
                print(f"{name}: round {turn + 1} of {rounds}, {('before', 'after')[side]}", file=sys.stderr)
                for row in rows_of(folders[side] / f"{name}_bench").values():
                    units[row["name"]] = row.get("unit", "")
                    seen.setdefault(row["name"], [[], []])[side].append(row["ours"])
        for row, (before, after) in seen.items():
            if not before or not after:
                print(f"{row:62} {units[row]:22} only in {'this build' if after else 'the one before'}")
                continue
            more_is_better = "per CPU-s" in units[row] or units[row].endswith("/s")
            ratios = [b / a if more_is_better else a / b for b, a in zip(before, after) if a and b]
            if not ratios:
                continue
            ratio = statistics.median(ratios)
            worse += ratio > LIMIT
            print(f"{row:62} {units[row]:22} {statistics.median(before):10.3f} {statistics.median(after):10.3f} {ratio:6.3f}  "
                  + " ".join(f"{r:.3f}" for r in sorted(ratios)))
    print(f"{worse} rows above {LIMIT}; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
