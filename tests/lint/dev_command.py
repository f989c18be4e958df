#!/usr/bin/env python3
"""Checks that ./dev explains itself, refuses what it does not know before it installs or builds anything, and shows progress.

usage: dev_command.py ROOT
"""
import fcntl
import pathlib
import re
import select
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
SECONDS = 20  # much less than a build takes

# What somebody may type, and a part of the message on standard error.
REFUSED = {
    "tset": "unknown command: tset",
    "demo --kep": "unknown option --kep",
    "test unti": "unknown tier or option: unti",
    "test -R": "-R needs a text",
    "test --real-within": "--real-within needs minutes",
    "build relase": "unknown preset relase",
    "image --psh": "unknown option --psh",
    "image app_proxy": "no image app_proxy; there are gitops-runtime",
    "image --push": "--push needs a registry",
    "console --screenshot": "unknown option --screenshot",
    "chart pack": "the only subcommand is package",
    "release": "--key FILE is missing",
    "release --key": "--key needs a value",
    "release --sign": "unknown option --sign",
    "bench rooter": "no benchmark rooter; there are app_proxy",
    "bench --jsn": "unknown option --jsn",
    "bench control_plane --disk-wait": "--disk-wait needs microseconds",
    "bench http --disk-wait 1000": "--disk-wait is for the benchmark control_plane alone",
    "lint --tdy": "unknown option --tdy",
    "format --chek": "unknown option --chek",
}


def run(words):
    return subprocess.run([ROOT / "dev", *words.split()], capture_output=True, text=True, timeout=SECONDS, check=False,
                          stdin=subprocess.DEVNULL)


def function(name):
    """The text of a function of ./dev."""
    return re.search(rf"^{name}\(\) \{{.*?^\}}", (ROOT / "dev").read_text(), re.M | re.S)[0]


def caches(environment):
    """HOME and XDG_CACHE_HOME as ./dev leaves them, in a tree at /tree."""
    script = f'set -euo pipefail\nroot=/tree\n{function("choose_caches")}\nchoose_caches\necho "$HOME ${{XDG_CACHE_HOME:-}}"'
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, env=environment, check=False)
    return done.stdout.strip() + done.stderr


def wrong_caches():
    home = str(pathlib.Path(__file__).parent)
    expected = {
        (("HOME", home),): home,
        (("HOME", home), ("XDG_CACHE_HOME", "/c")): f"{home} /c",
        (("HOME", "/nowhere"),): "/nowhere /tree/build/cache",
        (("HOME", "/nowhere"), ("XDG_CACHE_HOME", "/c")): "/nowhere /c",
        (): "/tree/build/home /tree/build/cache",
    }
    for environment, wanted in expected.items():
        found = caches(dict(environment))
        if found != wanted:
            yield f"caches with {dict(environment)}: {found!r}; expected {wanted!r}"


def wrong_sudo():
    """A user who is not root installs by sudo, which is told to keep the proxies where there are some."""
    for proxies, kept in (({}, ""), ({"http_proxy": "http://proxy:3128"}, "--preserve-env=http_proxy,https_proxy,no_proxy ")):
        # In place of the programs: nothing is installed, and sudo prints what it shall run.
        stubs = 'say() { :; }; die() { exit 1; }; id() { echo 1000; }; dpkg-query() { :; }; sudo() { echo "sudo $*" >&3; }'
        script = f"set -euo pipefail\n{stubs}\n{function('need')}\nexec 3>&1\nneed no-such-package"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", **proxies})
        wanted = f"sudo {kept}apt-get update -qq"
        if wanted not in done.stdout.splitlines() or f"sudo {kept}env " not in done.stdout:
            yield f"packages with {proxies}: {done.stdout!r} {done.stderr!r}; expected {wanted!r}"


def wrong_second_run():
    """Two runs at once would remove each other's reports. This check is a part of one, unless it is run by hand."""
    schedule = ROOT / "build/schedule"
    schedule.mkdir(parents=True, exist_ok=True)
    with (schedule / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # the run that this is a part of has it
        done = subprocess.run([sys.executable, ROOT / "tests/run.py", "lint"], capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 2 or "another ./dev test" not in done.stderr:
        yield f"a second run: exit {done.returncode}, {done.stderr[:200]!r}"


def wrong_lint():
    """In a copy without its history the checks that ask git are left out, but not by CI."""
    script = "\n".join([
        "import argparse, run",
        "run.is_repository = lambda: False",
        "schedule = run.Schedule(argparse.Namespace(filter='', long=False, real=False))",
        "schedule.add_suites = lambda *_: None",
        "schedule.add_lint()",
        "asks = lambda path: path.endswith('.py') and '[\"git\", \"-C\", ' in open(path).read()",
        "asking = [entry.name for entry in schedule.entries if any(map(asks, entry.command))]",
        "print(len(schedule.left_out), *asking, sep=',')"])
    # This file asks git itself, about other trees.
    for environment, wanted in (({}, "7,lint: the command dev"),
                                ({"CI": "true"}, "0,lint: standard headers,lint: words,lint: comments,lint: documents,"
                                                 "lint: the command dev,lint: commit messages,lint: cost of the build")):
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "tests"), **environment})
        if done.stdout.strip() != wanted or done.returncode != 0:
            yield f"checks left out with {environment}: {done.stdout.strip()!r}; expected {wanted!r}; {done.stderr[-300:]}"


def identity(folder):
    """Revision and time of the images of a tree there."""
    script = f"set -euo pipefail\nroot={folder}\nsay() {{ :; }}\n{function('identify_tree')}\nidentify_tree\necho $revision $epoch"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"})
    return done.stdout.strip() + done.stderr


def wrong_identity():
    with tempfile.TemporaryDirectory(prefix="gitops-tree-") as name:
        plain, tree = pathlib.Path(name) / "plain", pathlib.Path(name) / "tree"
        inner = tree / "copy"
        for folder in (plain, inner):
            folder.mkdir(parents=True)
        when = {"GIT_AUTHOR_DATE": "@7 +0000", "GIT_COMMITTER_DATE": "@7 +0000", "PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run(["git", "init", "-q", tree], check=True, env=when)
        subprocess.run(["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "-q", "--allow-empty", "-m", "a"],
                       check=True, env=when)
        for folder, form in ((tree, r"[0-9a-f]{40} 7"), (plain, "unknown 0"), (inner, "unknown 0")):
            found = identity(folder)
            if not re.fullmatch(form, found):
                yield f"identity of {folder.name}: {found!r}; expected {form}"


def first_line_of_progress():
    """What is shown of the first step while the second one still runs."""
    with subprocess.Popen(["bash", "-c", f"{function('show_progress')}\nshow_progress"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shown:
        shown.stdin.write(b"[1 10 6.5] Building a.cpp.o\n")
        shown.stdin.flush()
        came = select.select([shown.stdout], [], [], SECONDS)[0]
        line = shown.stdout.readline().decode() if came else ""
        shown.stdin.close()
    return line.strip()


def main():
    wrong = []
    for words, message in REFUSED.items():
        try:
            done = run(words)
        except subprocess.TimeoutExpired:
            wrong.append(f"./dev {words}: does not end")
            continue
        if done.returncode != 2 or message not in done.stderr or done.stdout:
            wrong.append(f"./dev {words}: exit {done.returncode}, {done.stderr.strip()[:200]!r}; expected exit 2, {message!r}")
    whole = run("help").stdout
    commands = sorted(set(re.findall(r"^  ([a-z]+)", whole, re.M)))
    for command in commands:
        one = run(f"{command} --help")
        if one.returncode != 0 or command not in one.stdout.split() and command != "peers" or len(one.stdout) >= len(whole):
            wrong.append(f"./dev {command} --help: exit {one.returncode}, {one.stdout[:80]!r}")
    progress = first_line_of_progress()
    if progress != "1 of 10 steps in 6 s, about 55 s left":
        wrong.append(f"progress after the first step: {progress!r}")
    wrong += [*wrong_caches(), *wrong_sudo(), *wrong_identity(), *wrong_second_run(), *wrong_lint()]
    for line in wrong:
        print(line)
    print(f"{len(REFUSED)} mistakes and the help of {len(commands)} commands")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
