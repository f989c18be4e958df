#!/usr/bin/env python3
"""Checks who includes whom (docs/architecture.md, "Who may include whom").

usage: layers.py ROOT
"""
import pathlib
import re
import sys

# Folder -> the folders it may include besides itself. Down only; peers never include each other.
CORE = ["libs/common/core"]
NET = CORE + ["libs/common/net"]
HTTP = NET + ["libs/common/http"]
PROXY = HTTP + ["libs/common/proxy"]
LAYERS = {
    "libs/common/core": [],
    "libs/common/net": CORE,
    "libs/common/http": NET,
    "libs/common/proxy": HTTP,
    "libs/common/sqlite": CORE,
    "libs/common/tunnel": HTTP,
    "libs/common/argo": HTTP,
    "libs/common/control_plane": HTTP,
    "libs/common/graphql": HTTP,
    "libs/common/daemon": HTTP,
    "libs/common/cli": CORE,
    "libs/k8s-client": HTTP,
}
APP_MAY = list(LAYERS)

# The folders of an app that is divided: the folders of the same app that each may include besides
# itself. What lies in the app's own folder may include all of them, and none of them includes it.
LEDGER = ["ledger"]
EVENT = LEDGER + ["event"]
APP_FOLDERS = {
    "apps/app-proxy": {
        "users": [],
        "providers": [],
        "git": [],
        "integrations": ["providers"],
        "entities": ["git"],
        "runtime": ["git", "entities"],
        "sealing": ["git", "entities"],
        "clusters": ["git", "entities"],
        "images": [],
        "actions": ["users"],
        "logs": ["users", "actions"],
        "resolvers": ["users", "providers", "git", "integrations", "entities", "sealing", "clusters", "actions", "logs"],
    },
    "apps/event-reporter": {
        "ledger": [],
        "event": LEDGER,
        "argo": EVENT,
        "delivery": [],
        "watch": [],
        "shards": LEDGER,
        "report": EVENT + ["argo", "delivery", "watch", "shards"],
    },
}

# A third-party header -> the only files that may include it.
FENCES = {
    r"boost/beast": r"libs/common/http/[a-z_]+\.cpp",
    r"yaml-cpp/": r"(libs/common/core/config_yaml|libs/k8s-client/config|apps/app-proxy/git/manifest_edit|apps/app-proxy/entities/plain_folder)\.cpp|tests/.*",
    r"git2": r"apps/app-proxy/git/(libgit2|repository|transport)\.[ch]pp",
    r"openssl/": r"libs/common/(core/crypto|net/tls_[a-z_]+)\.cpp|tests/(common|app-proxy/sealing)/.*",
    r"(spdlog|fmt)/": r"libs/common/core/log\.cpp",
    r"snappy": r"libs/common/tunnel/snappy_stream\.cpp",
    r"sqlite3\.h": r"(libs|tests)/common/sqlite/[a-z_]+\.cpp",
    r"simdjson": r"libs/(common/core/json_text|common/graphql/(engine|input|operation|print)|k8s-client/json_tokens)\.cpp|apps/event-reporter/event/document\.cpp|tests/.*",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path: str) -> str | None:
    """The layer that a project file belongs to."""
    for layer in LAYERS:
        if path.startswith(layer + "/"):
            return layer
    match = re.match(r"apps/[^/]+", path)
    return match.group(0) if match else None


def target_of(include: str) -> str | None:
    """The layer that a quoted include names (include roots: libs/, apps/, tests/)."""
    for root in ("libs/", "apps/"):
        folder = folder_of(root + include)
        if folder and (root != "apps/" or (ROOT / root / include).exists()):
            return folder
    return None


def part_of(path: str, app: str) -> str:
    """The folder within a divided app; empty for a file that lies in the app's own folder."""
    return path.removeprefix(app + "/").rpartition("/")[0]


def check_within_app(name: str, include: str, app: str) -> str | None:
    """What is wrong with an include from one folder of a divided app to another."""
    folders = APP_FOLDERS[app]
    own, target = part_of(name, app), part_of("apps/" + include, app)
    for part in (own, target):
        if part and part not in folders:
            return f"{app}/{part} is not in the table of folders"
    if own in ("", target) or target in folders[own]:
        return None
    return f"{app}/{own} must not include {app}/{target}".rstrip("/")


def check(path: pathlib.Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    own = folder_of(name)
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if "asio::detached" in line:
            found.append(f"{name}:{number}: asio::detached loses exceptions; use a TaskGroup")
        if re.search(r"\b_Exit\(", line) and name.startswith(("libs/", "apps/")) and name != "libs/common/core/process.cpp":
            found.append(f"{name}:{number}: _Exit loses log lines; use end_process()")
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, include = match.groups()
        for fence, allowed in FENCES.items():
            if re.match(fence, include) and not re.fullmatch(allowed, name):
                found.append(f"{name}:{number}: <{include}> is fenced: only {allowed}")
        if kind != '"' or own is None:
            continue
        target = target_of(include)
        if target is None:
            found.append(f"{name}:{number}: \"{include}\" is not found from libs/ or apps/")
        elif target != own:
            may = APP_MAY if own.startswith("apps/") else LAYERS[own]
            if target not in may:
                found.append(f"{name}:{number}: {own} must not include {target}")
        elif own in APP_FOLDERS and (wrong := check_within_app(name, include, own)):
            found.append(f"{name}:{number}: {wrong}")
    return found


ROOT = pathlib.Path(sys.argv[1]).resolve()
files = [p for top in ("libs", "apps", "tests", "demo") for p in sorted((ROOT / top).rglob("*.[ch]pp"))
         if "tests/lint/compiler" not in p.as_posix()]
problems = [problem for path in files for problem in check(path)]
print("\n".join(problems) if problems else f"{len(files)} files keep to the layers")
sys.exit(1 if problems else 0)
