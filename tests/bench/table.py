#!/usr/bin/env python3
"""Runs benchmark programs and prints their rows as one table.

usage: table.py BENCH_DIR JSON_FILE|'' [NAME...]
Each program prints one JSON object per row on standard output (tests/bench/CMakeLists.txt).
With GITOPS_DISK_WAIT_US in the environment every fsync of the programs takes at least so long.
"""
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIMIT_SECONDS = 2400  # for one program

folder, json_file, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
programs = sorted(folder.glob("*_bench"))
known = [p.name.removesuffix("_bench") for p in programs]
unknown = [n for n in names if n not in known]
if unknown:
    sys.exit(f"bench: no such benchmark: {', '.join(unknown)} (there are: {', '.join(known)})")

environment = dict(os.environ)
libraries = tempfile.TemporaryDirectory()
if "GITOPS_DISK_WAIT_US" in environment:
    # PostgreSQL's user cannot read every folder of ours.
    os.chmod(libraries.name, 0o755)
    environment["LD_PRELOAD"] = shutil.copy(folder / "libgitops_disk_wait.so", libraries.name)
    os.chmod(environment["LD_PRELOAD"], 0o755)

rows, broken = [], []
for program, name in zip(programs, known):
    if names and name not in names:
        continue
    print(f"== {name}", file=sys.stderr)
    try:
        run = subprocess.run([program], stdout=subprocess.PIPE, timeout=LIMIT_SECONDS, env=environment)
        printed = run.stdout
        if run.returncode != 0:
            broken.append(f"{name} ended with {run.returncode}")
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
        broken.append(f"{name} took longer than {LIMIT_SECONDS} s")
    for line in printed.decode().splitlines():
        if line.startswith("{"):  # other lines tell what the peers do
            rows.append(json.loads(line) | {"program": name})


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def show(value):
    return "–" if value is None else f"{value:,.3g}" if isinstance(value, float) and abs(value) < 100 \
        else f"{value:,.0f}" if isinstance(value, (int, float)) else str(value)


table = [["name", "unit", "ours", "peer", "ratio", "goal", "holds"]]
for row in rows:
    holds = {True: "yes", False: "NO", None: "–"}[row.get("holds")]
    table.append([row["name"], row["unit"], *(show(row.get(k)) for k in ("ours", "peer", "ratio", "goal")), holds])
widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
for line in table:
    print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
for row in rows:
    if row.get("note"):
        print(f"{row['name']}: {row['note']}")
print(f"{os.cpu_count()} x {processor()}, {datetime.date.today()}, load {os.getloadavg()[0]:.1f}; "
      f"command: ./dev bench {' '.join(names)}".rstrip())
if json_file:
    pathlib.Path(json_file).write_text(json.dumps(rows, indent=1) + "\n")
if broken:
    sys.exit("bench: " + "; ".join(broken))
