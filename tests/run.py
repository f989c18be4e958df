#!/usr/bin/env python3
"""Builds and runs tests as one schedule of ctest, and counts their cases. `./dev test` calls it.

usage: run.py [--filter TEXT] [--long] [--real [--real-within MINUTES]] TIER...

Each build folder lists its test binaries in suites.txt, which CMake writes: a line
"binary|labels|timeout|shards|locks|sources" each. From these and from the checks below this script writes
build/schedule/CTestTestfile.cmake: what a tier needs is built by an entry of the schedule, too, as the
set-up of a fixture. So the suites of a tier run as soon as they are linked, while the next tier is built.

TEXT selects a test when its full name contains it, or the name of its source file does; case does not matter.
"""
import argparse
import dataclasses
import fcntl
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import threading
import time
import typing
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEDULE = ROOT / "build/schedule"
CORES = os.cpu_count() or 1
# Most suites wait more than they work. Four slots a core; an entry takes as many as stand here.
SLOTS = 4 * CORES
SLOTS_OF = {"build": 1, "lint": 2, "unit": 1, "threads": 4, "component": 2, "contract": 4, "e2e": 2,
            "faults": 2, "fuzz": 2, "soak": SLOTS, "peers": 4, "suite": 4}
# Entries with this lock take other numbers. A browser waits little: beside other suites its pages miss their limits.
SLOTS_OF_LOCK = {"browser": SLOTS - 2}
# In the order in which they are built and run: what fails fastest and most often comes first.
TIERS = ["lint", "unit", "component", "contract", "e2e", "faults", "fuzz", "peers", "suite"]
# The real programs that the tier `suite` runs; the tier `peers` runs all.
REAL_PROGRAMS_OF_SUITE = ["etcd", "kubernetes", "kwok", "argo-cd", "argo-events"]
TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)


@dataclasses.dataclass
class Suite:
    binary: pathlib.Path
    labels: list[str]
    timeout: int
    shards: int
    locks: str
    sources: list[pathlib.Path]

    def patterns(self, text: str) -> list[str]:
        """gtest patterns for the cases that match `text`."""
        found = []
        for path in self.sources:
            content = path.read_text()
            whole_file = text in path.stem.removesuffix("_test").lower()
            for kind, suite, case in TEST.findall(content):
                if whole_file or text in f"{suite}.{case}".lower():
                    found.append({"TEST_P": f"*/{suite}.{case}/*", "TYPED_TEST": f"{suite}/*.{case}",
                                  "TYPED_TEST_P": f"*/{suite}/*.{case}"}.get(kind, f"{suite}.{case}"))
            if "TEST_P(" in content:
                found += [f"*/*{name}*" for name in value_names(content) if text in name.lower()]
        return found


def value_names(content: str) -> list[str]:
    """What may name a value of TEST_P: a literal in CamelCase, as the lists of cases have them, or
    one beside the instantiation."""
    beside = "".join(re.findall(r"^INSTANTIATE_TEST_SUITE_P.*?;$", content, re.M | re.S))
    return re.findall(r'"([A-Z][a-z]+[A-Z]\w+)"', content) + [
        name.replace("-", "_") for name in re.findall(r'"([\w-]+)"', beside)]


def suites(preset: str, label: str) -> list[Suite]:
    found = []
    for line in (ROOT / "build" / preset / "suites.txt").read_text().splitlines():
        binary, labels, timeout, shards, locks, sources = line.split("|")
        if label in labels.split(","):
            found.append(Suite(pathlib.Path(binary), labels.split(","), int(timeout), int(shards), locks,
                               [pathlib.Path(source) for source in sources.split(",")]))
    return found


@dataclasses.dataclass
class Entry:
    """One test of ctest."""
    name: str
    tier: str
    command: list[str]
    directory: pathlib.Path = ROOT
    timeout: int = 600
    slots: int = 0
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    locks: str = ""
    sets_up: str = ""
    needs: list[str] = dataclasses.field(default_factory=list)
    report: pathlib.Path | None = None  # gtest's; without one the entry is one case

    def written(self, cost: int) -> str:
        def quoted(text: object) -> str:
            return "[==[" + str(text) + "]==]"
        properties = {"WORKING_DIRECTORY": self.directory, "TIMEOUT": self.timeout,
                      "PROCESSORS": min(self.slots or SLOTS_OF[self.tier], SLOTS), "COST": cost, "RESOURCE_LOCK": self.locks,
                      "ENVIRONMENT": ";".join(f"{key}={value}" for key, value in self.environment.items()),
                      "SKIP_RETURN_CODE": 77, "FIXTURES_SETUP": self.sets_up, "FIXTURES_REQUIRED": ";".join(self.needs)}
        listed = " ".join(f"{key} {quoted(value)}" for key, value in properties.items() if value not in ("", 0))
        return (f"add_test({quoted(self.name)} {' '.join(map(quoted, self.command))})\n"
                f"set_tests_properties({quoted(self.name)} PROPERTIES {listed})\n")


class Schedule:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.entries: list[Entry] = []
        self.left_out: list[str] = []  # checks that ask git, in a tree that it does not know

    def add_build(self, preset: str, stage: str, targets: list[str]) -> None:
        self.entries.append(Entry(f"build {preset} {stage}", "build",
                                  [sys.executable, __file__, "--build", preset, stage, *targets],
                                  timeout=7200, locks="build", sets_up=f"{preset}.{stage}"))

    def add_suites(self, preset: str, label: str, needs: list[str] | None = None,
                   environment: dict[str, str] | None = None) -> None:
        """The suites of a tier, and the entry that builds them."""
        chosen = []
        for suite in suites(preset, label):
            patterns = suite.patterns(self.options.filter) if self.options.filter else ["*"]
            if patterns:
                chosen.append((suite, ":".join(dict.fromkeys(patterns))))
        if not chosen:
            return
        self.add_build(preset, label, [suite.binary.name for suite, _ in chosen])
        for suite, pattern in chosen:
            shards = suite.shards if pattern == "*" else 1
            for shard in range(shards):
                name = suite.binary.name if preset == "asan" else f"{suite.binary.name} ({preset})"
                name += f" {shard + 1}/{shards}" if shards > 1 else ""
                report = SCHEDULE / "reports" / (re.sub(r"\W+", "_", name) + ".xml")
                sharding = {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)} if shards > 1 else {}
                self.entries.append(Entry(
                    name, label, [str(suite.binary)], suite.binary.parent, suite.timeout, SLOTS_OF_LOCK.get(suite.locks, 0),
                    environment={"GTEST_OUTPUT": f"xml:{report}", "GTEST_FILTER": pattern, **sharding, **(environment or {})},
                    locks=suite.locks, needs=[f"{preset}.{label}", *(needs or [])], report=report))

    def add_lint(self) -> None:
        in_git = is_repository() or os.environ.get("CI") == "true"

        def check(name: str, *command: str, needs: list[str] | None = None, asks_git: bool = False) -> None:
            if asks_git and not in_git:
                self.left_out.append(name)
                return
            self.entries.append(Entry(f"lint: {name}", "lint", [*command], needs=needs or []))
        lint = ROOT / "tests/lint"
        check("include layers", sys.executable, f"{lint}/layers.py", str(ROOT))
        check("standard headers", sys.executable, f"{lint}/standard_headers.py", str(ROOT), asks_git=True)
        check("map of the units", sys.executable, f"{lint}/map.py", str(ROOT))
        check("words", sys.executable, f"{lint}/words.py", str(ROOT), asks_git=True)
        check("comments", sys.executable, f"{lint}/comments.py", str(ROOT), asks_git=True)
        check("length of functions", sys.executable, f"{lint}/function_length.py", str(ROOT))
        check("layout of the tests", sys.executable, f"{lint}/test_layout.py", str(ROOT))
        check("documents", sys.executable, f"{lint}/documents.py", str(ROOT), asks_git=True)
        check("the command dev", sys.executable, f"{lint}/dev_command.py", str(ROOT))
        check("documents, tried", sys.executable, f"{lint}/documents_trial.py", str(ROOT))
        for script in ("chart_values", "control_plane_values"):
            check(script, sys.executable, str(ROOT / f"tests/chart/{script}.py"), "--check")
        check("commit messages", sys.executable, f"{lint}/commits.py", str(ROOT), asks_git=True)
        check("one version", sys.executable, str(ROOT / "image/release.py"), "version")
        check("cost of the build", sys.executable, f"{lint}/build_cost.py", str(ROOT), asks_git=True)
        check("format", str(ROOT / "dev"), "format", "--check", asks_git=True)
        check("generated documentation", f"{lint}/generated_docs", str(ROOT), str(ROOT / "build/asan/bin"),
              needs=["asan.programs"])
        self.add_suites("asan", "lint")

    def add_fuzz(self) -> None:
        seconds = 300 if self.options.long else 10
        names = [path.stem for path in sorted((ROOT / "tests/fuzz").glob("*_fuzz.cpp")) if self.options.filter in path.stem]
        if not names:
            return
        self.add_build("fuzz", "targets", names)
        for name in names:
            self.entries.append(Entry(f"{name} for {seconds} s", "fuzz",
                                      [str(ROOT / "tests/fuzz/run"), str(ROOT), name, str(seconds)],
                                      timeout=seconds + 120, slots=SLOTS // CORES, needs=["fuzz.targets"]))

    def fill(self) -> None:
        options = self.options
        tiers = [tier for tier in TIERS if tier in options.tiers]
        if "peers" in tiers or "suite" in tiers:
            names = [] if "peers" in tiers else REAL_PROGRAMS_OF_SUITE
            self.entries.append(Entry("build real programs", "build", [sys.executable, __file__, "--build-real",
                                      str(options.real_within or 0), *names], timeout=14400, sets_up="real.programs"))
        last = seconds_of_last_run()
        for tier in tiers:
            start = len(self.entries)
            if tier == "lint" and options.filter:
                self.add_suites("asan", "lint")
            elif tier == "lint":
                self.add_lint()
            elif tier in ("peers", "suite"):
                self.add_suites("asan", tier, ["real.programs"])
            else:
                self.add_suites("asan", tier)
            if tier == "unit":
                self.add_suites("tsan", "threads")
            if tier == "fuzz" and (options.real or options.long):  # coverage-guided
                self.add_fuzz()
            if tier == "faults" and options.long:  # the release build: a sanitizer's own memory grows
                self.add_suites("release", "soak", environment={"GITOPS_SOAK": "1"})
            # Builds as they stand, then what took longest the last time, so that no long suite begins alone at the end.
            self.entries[start:] = sorted(self.entries[start:], key=lambda entry: (
                -math.inf if entry.tier == "build" else -last.get(entry.name, entry.timeout)))
        if "lint" in tiers and not options.filter:
            self.add_build("asan", "programs", ["programs"])
        if options.whole and options.real:
            self.entries.append(Entry("minimal machine", "peers", [str(ROOT / "tests/minimal-machine/run")], timeout=3600,
                                      slots=SLOTS))
        # So that what this run does not need compiles, too; a newcomer need not wait for it.
        if options.whole and (options.real or os.environ.get("CI") == "true"):
            self.add_build("asan", "all", ["all", *(["headers_alone"] if options.real else [])])

    def run(self) -> None:
        (SCHEDULE / "reports").mkdir(parents=True, exist_ok=True)
        for old in [*SCHEDULE.glob("*.log"), *SCHEDULE.glob("*.jsonl"), *SCHEDULE.glob("*.ccache"), *SCHEDULE.glob("reports/*")]:
            old.unlink()
        (SCHEDULE / "CTestTestfile.cmake").write_text(
            "".join(entry.written(len(self.entries) - at) for at, entry in enumerate(self.entries)))
        done = threading.Event()
        watcher = threading.Thread(target=report_progress, args=[done])
        watcher.start()
        try:
            subprocess.run(["ctest", "--test-dir", str(SCHEDULE), "-j", str(SLOTS), "--output-on-failure", "--no-tests=ignore",
                            "--output-junit", str(SCHEDULE / "ctest.xml")], check=False)
        finally:
            done.set()
            watcher.join()

    def count(self) -> int:
        """Prints what the run did; returns the exit code."""
        total = {"passed": 0, "failed": 0, "skipped": 0}
        of_tier: dict[str, list[float]] = {}
        failures = []
        results = {case.get("name"): case for case in tree.parse(SCHEDULE / "ctest.xml").getroot().iter("testcase")}
        late = SCHEDULE / "real-programs-missing"
        for entry in self.entries:
            result = results.get(entry.name)
            ran = result is not None and result.get("status") != "notrun"
            good = ran and result.get("status") == "run"
            passed = failed = skipped = 0
            if result is not None and result.find("skipped") is not None and entry.name == "minimal machine":
                skipped = 1
            elif entry.report is not None and entry.report.exists():
                passed, failed, skipped, failed_cases = cases_of(entry.report)
                failures += [f"{entry.name}: {case}" for case in failed_cases]
                if not good and not failed:
                    failed += 1
                    failures.append(f"{entry.name}: failed after its cases")
            elif not ran and "real.programs" in entry.needs and late.exists():
                continue
            elif entry.report is not None or not good:
                if entry.sets_up == "real.programs" and late.exists():
                    continue
                failed = 1
                why = "crashed or timed out" if entry.report is not None else "failed"
                failures.append(f"{entry.name}: {why if ran else 'not run'}{end_of_output(result)}")
            elif entry.tier != "build":
                passed = 1
            total["passed"] += passed
            total["failed"] += failed
            total["skipped"] += skipped
            if entry.tier != "build" and result is not None:
                sums = of_tier.setdefault(entry.tier, [0, 0])
                sums[0] += passed + failed + skipped
                sums[1] += float(result.get("time") or 0)
        print()
        for tier, (cases, seconds) in of_tier.items():
            print(f"{tier:<10}{cases:>6} cases {seconds:>7.0f} s, added up over its suites")
        for line in costs():
            print(line)
        for failure in failures:
            print(f"FAILED {failure}")
        self.report_not_run(late)
        print(f"\n{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
        return 0 if total["failed"] == 0 and total["passed"] + total["skipped"] > 0 else 1

    def report_not_run(self, late: pathlib.Path) -> None:
        if self.left_out:
            print(f"\nlint: not run, since git does not know the files of this tree: {', '.join(self.left_out)}")
        real = suites("asan", "peers") + suites("asan", "suite")
        cases = sum(len(TEST.findall(path.read_text())) for suite in real for path in suite.sources)
        if late.exists():
            print(f"\nreal programs: {len(real)} suites with about {cases} cases not run; not built in time: {late.read_text().strip()}")
        elif self.options.whole and "peers" not in self.options.tiers:
            print(f"\nreal programs: {len(real)} suites with about {cases} cases not run; `./dev test --all` runs them too, "
                  "and builds the programs once, in about 40 minutes")


def is_repository() -> bool:
    """Whether this tree is a repository that git reads; a copy without its history is none, also within another one."""
    asked = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--show-prefix"], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and not asked.stdout.strip()


def seconds_of_last_run() -> dict[str, float]:
    try:
        return {case.get("name"): float(case.get("time") or 0) for case in tree.parse(SCHEDULE / "ctest.xml").getroot().iter("testcase")}
    except (OSError, tree.ParseError):
        return {}


def cases_of(report: pathlib.Path) -> tuple[int, int, int, list[str]]:
    """How many cases passed, failed and were skipped, and each failed one with the beginning of its reason."""
    passed = failed = skipped = 0
    failures = []
    for case in tree.parse(report).getroot().iter("testcase"):
        if case.get("status") != "run" and case.get("result") != "skipped":
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
            failures.append(f"{case.get('classname')}.{case.get('name')}{reason_of(case)}")
        elif case.get("result") == "skipped" or case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped, failures


def end_of_output(result: tree.Element | None) -> str:
    """The last lines that a suite printed before it ended without a report, in indented lines: a sanitizer's
    summary, or the case that ran."""
    output = "" if result is None else result.findtext("system-out") or ""
    shown = [line[:300] for line in output.splitlines() if line.strip()][-20:]
    return "".join(f"\n    {line}" for line in shown)


def reason_of(case: tree.Element) -> str:
    """The beginning of what the case's failures say, in indented lines: the whole output is far above, or cut off."""
    lines: list[str] = []
    for failure in [*case.findall("failure"), *case.findall("error")]:
        lines += (failure.text or failure.get("message") or "").splitlines()
    shown = [line[:300] for line in lines if line.strip()][:12]
    return "".join(f"\n    {line}" for line in shown)


def costs() -> list[str]:
    """A line for each build folder: what was compiled, what ccache had, and what it took."""
    lines = []
    sums: dict[str, dict[str, float]] = {}
    for path in SCHEDULE.glob("*.jsonl"):
        of = sums.setdefault(path.stem, {"cpu": 0, "compiled": 0})
        for line in path.read_text().splitlines():
            for key, value in json.loads(line).items():
                of[key] += value
    for preset, of in sorted(sums.items()):
        log = SCHEDULE / f"{preset}.ccache"
        hits = len(re.findall(r"^(?:direct|preprocessed)_cache_hit", log.read_text(), re.M)) if log.exists() else 0
        lines.append(f"{preset + ' tree':<10}{of['compiled']:>6.0f} files compiled, {hits} of them from ccache; {of['cpu']:.0f} s of CPU")
    return lines


def report_progress(done: threading.Event) -> None:
    """Prints the newest line of each build from time to time, since ctest keeps it to itself."""
    told: dict[pathlib.Path, str] = {}
    while not done.wait(15):
        for log in SCHEDULE.glob("*.log"):
            lines = log.read_text(errors="replace").splitlines()
            steps = [line for line in lines[-50:] if line.startswith(("[", "peers: ["))]
            if steps and told.get(log) != steps[-1]:
                told[log] = steps[-1]
                print(f"    {log.stem}: {steps[-1][:100]}", flush=True)


def watched(command: list[str], log: pathlib.Path, environment: dict[str, str], minutes: float = 0) -> int | None:
    """Runs a command whose output goes to `log`; the end of it to standard output. None: it took too long."""
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **environment},
                                   start_new_session=True)
        try:
            code = process.wait(minutes * 60 if minutes else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 15)
            process.wait()
            code = None
    print("\n".join(log.read_text(errors="replace").splitlines()[-60:]))
    return code


def build(preset: str, stage: str, targets: list[str]) -> int:
    log = SCHEDULE / f"building {preset} {stage}.log"
    # Tests that run meanwhile come first.
    code = watched(["nice", "-n", "5", "ninja", "-C", str(ROOT / "build" / preset), "-j", str(CORES), "-k", "20", *targets], log,
                   {"NINJA_STATUS": "[%f/%t %es] ", "CCACHE_STATSLOG": str(SCHEDULE / f"{preset}.ccache")})
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    compiled = len(re.findall(r"^\[.*\] Building CXX object", log.read_text(errors="replace"), re.M))
    with (SCHEDULE / f"{preset}.jsonl").open("a") as out:
        out.write(json.dumps({"cpu": used.ru_utime + used.ru_stime, "compiled": compiled}) + "\n")
    return code or 0


def build_real(minutes: float, names: list[str]) -> int:
    log, missing = SCHEDULE / "real programs.log", SCHEDULE / "real-programs-missing"
    missing.unlink(missing_ok=True)
    code = watched([str(ROOT / "tests/peers/build"), *names], log, {}, minutes)
    if code is None:
        listed = subprocess.run([str(ROOT / "tests/peers/build"), "--list"], capture_output=True, text=True, check=True).stdout
        missing.write_text(", ".join(line.split()[0] for line in listed.splitlines() if line.endswith("missing")) + "\n")
        return 1
    return code


def only_run() -> typing.IO[str] | None:
    """A file that is locked until this process ends. None: another run has the build folders and their reports."""
    SCHEDULE.mkdir(parents=True, exist_ok=True)
    file = (SCHEDULE / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def main() -> int:
    if sys.argv[1:2] == ["--build"]:
        return build(sys.argv[2], sys.argv[3], sys.argv[4:])
    if sys.argv[1:2] == ["--build-real"]:
        return build_real(float(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser()
    parser.add_argument("tiers", nargs="+", choices=TIERS)
    parser.add_argument("--filter", default="", type=str.lower)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--real-within", type=float)
    parser.add_argument("--whole", action="store_true", help="everything was asked for: build every target")
    options = parser.parse_args()
    lock = only_run()
    if lock is None:
        print("another ./dev test or ./dev lint runs in this tree; it would lose its reports", file=sys.stderr)
        return 2
    schedule = Schedule(options)
    schedule.fill()
    if not schedule.entries:
        print("no test matches")
        return 1
    schedule.run()
    return schedule.count()


if __name__ == "__main__":
    sys.exit(main())
