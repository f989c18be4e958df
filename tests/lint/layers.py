#!/usr/bin/env python3
"""Checks who includes whom (docs/architecture.md, "Who may include whom"), and that the pages show the tables below.

usage: layers.py ROOT [--write]

The diagrams of the pages stand between "<!-- layers: NAME -->" and "<!-- layers: end -->" and are made from the
tables; --write makes them again. NAME is "libraries", "fences", or an app that is divided into folders.
"""
import itertools
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
    "libs/common/store": CORE + ["libs/common/sqlite"],
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
        "identity": [],
        "users": ["identity"],
        "providers": ["errors"],
        "git": [],
        "integrations": ["errors", "providers", "identity"],
        "entities": ["errors", "git"],
        "runtime": ["git", "entities", "identity", "errors"],
        "sealing": ["errors", "git", "entities", "identity"],
        "clusters": ["git", "entities", "identity", "errors"],
        "images": [],
        "actions": ["errors", "users", "identity"],
        "logs": ["errors", "users", "actions", "identity"],
        "resolvers": ["errors", "users", "providers", "git", "integrations", "entities", "sealing", "clusters", "actions", "logs", "identity"],
        "promotions": ["users", "providers", "git", "integrations", "entities", "resolvers", "errors", "sealing", "clusters", "actions", "logs", "identity"],
        "http": ["users", "providers", "git", "integrations", "entities", "sealing", "clusters", "images", "logs", "resolvers", "promotions", "errors", "actions", "identity"],
        "errors": [],
    },
    "apps/control-plane": {
        "projection": [],
        "storage": ["projection"],
        "audit": ["projection"],
        "accounts": ["audit", "projection"],
        "sso": ["accounts", "audit", "projection"],
        "intake": ["accounts", "audit", "projection", "storage"],
        "views": ["projection", "storage"],
        "live": ["accounts", "audit", "projection", "storage", "views"],
        "runtimes": ["accounts", "audit", "projection"],
        "resolvers": ["accounts", "audit", "live", "projection", "runtimes", "storage", "views"],
        "http": ["accounts", "audit", "live", "projection", "resolvers", "runtimes", "storage", "views"],
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
    r"yaml-cpp/": r"(libs/common/core/config_yaml|libs/k8s-client/config|apps/app-proxy/git/manifest_edit|apps/app-proxy/entities/plain_folder)\.cpp|tests/.*",
    r"git2": r"apps/app-proxy/git/(libgit2|repository|transport)\.[ch]pp",
    r"openssl/": r"libs/common/(core/crypto|net/tls_[a-z_]+)\.cpp|tests/(common|app-proxy/sealing|control-plane/sso)/.*",
    r"(spdlog|fmt)/": r"libs/common/core/log\.cpp",
    r"snappy": r"libs/common/tunnel/snappy_stream\.cpp",
    r"libpq-fe\.h": r"libs/common/store/postgres_connection\.cpp",
    r"argon2\.h": r"apps/control-plane/accounts/passwords\.cpp",
    r"zstd\.h": r"apps/control-plane/(intake/zstd_coding|storage/body_codec)\.cpp|tests/.*",
    r"sqlite3\.h": r"(libs|tests)/common/sqlite/[a-z_]+\.cpp",
    r"simdjson": r"libs/(common/core/json_text|common/graphql/(engine|input|operation|print)|k8s-client/json_tokens)\.cpp|apps/event-reporter/event/document\.cpp|tests/.*",
}
# The name of each fenced library in the page.
LIBRARIES = {
    r"yaml-cpp/": "yaml-cpp", r"git2": "libgit2", r"openssl/": "OpenSSL", r"(spdlog|fmt)/": "spdlog, fmt",
    r"snappy": "libsnappy", r"sqlite3\.h": "SQLite", r"simdjson": "simdjson", r"libpq-fe\.h": "libpq", r"zstd\.h": "libzstd",
    r"argon2\.h": "libargon2",
}
# Page -> the diagrams that it has.
PAGES = {
    "docs/architecture.md": ["libraries", "fences"],
    "libs/common/README.md": ["libraries"],
    **{f"{app}/README.md": [app.removeprefix("apps/")] for app in APP_FOLDERS},
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


def arrows(table: dict[str, list[str]], above: str = "") -> list[str]:
    """The table as lines "a, b ──► c ──► d" with the fewest arrows; what is behind an arrow may be included.

    `above` may include everything, and stands before what nothing else includes.
    """
    for name, may in table.items():
        for below in may:
            if missing := set(table[below]) - set(may):
                sys.exit(f"layers.py: {name} may include {below}, so it must also name {', '.join(sorted(missing))}")
    direct = {name: tuple(sorted(x for x in may if not any(x in table[y] for y in may))) for name, may in table.items()}
    included = set(itertools.chain.from_iterable(direct.values()))
    groups: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for name in sorted(table):
        if direct[name]:
            groups.setdefault((direct[name], name in included), []).append(name)
    chains: list[tuple[list[str], str]] = []
    within: set[str] = set()  # what a chain shows behind its first arrow
    for (below, inner), names in sorted(groups.items(), key=lambda item: (item[0][1], -len(item[1]), item[1])):
        line = ", ".join(names) + " ──► " + ", ".join(below)
        while len(below) == 1 and direct[below[0]]:
            within.add(below[0])
            below = direct[below[0]]
            line += " ──► " + ", ".join(below)
        chains.append((names, f"{above} ──► {line}" if above and not inner else line))
    lines = [line for names, line in chains if not set(names) <= within]
    alone = sorted(name for name in table if not direct[name] and name not in included)
    return lines + ([f"{', '.join(alone)}: include none, and are included by none"] if alone else [])


def alternatives(pattern: str) -> list[str]:
    """The paths that a fence's pattern allows, with * for any name."""
    pattern = pattern.replace("[a-z_]+", "*").replace(r"\.[ch]pp", "").replace(r"\.cpp", "").replace(".*", "*")
    paths: list[str] = []
    depth = begin = 0
    for at, char in enumerate(pattern + "|"):
        depth += (char == "(") - (char == ")")
        if char != "|" or depth > 0:
            continue
        choice, begin = pattern[begin:at], at + 1
        opened = choice.find("(")
        if opened < 0:
            paths.append(choice)
            continue
        closed = next(i for i in range(opened, len(choice))
                      if choice[opened:i + 1].count("(") == choice[opened:i + 1].count(")"))
        paths += [choice[:opened] + inner + rest for inner in alternatives(choice[opened + 1:closed])
                  for rest in alternatives(choice[closed + 1:])]
    return paths


def fences() -> list[str]:
    lines = ["| Library | Only in |", "|---|---|"]
    for header in sorted(FENCES, key=lambda h: LIBRARIES[h].lower()):
        folders: dict[str, list[str]] = {}
        for path in alternatives(FENCES[header]):
            if not path.startswith("tests/"):
                folder, _, name = re.sub(r"^(libs/common|libs|apps)/", "", path).rpartition("/")
                folders.setdefault(folder, []).append(name)
        cells = [f"`{folder}/{names[0]}`" if len(names) == 1 else f"`{folder}/{{{','.join(names)}}}`"
                 for folder, names in sorted(folders.items())]
        lines.append(f"| {LIBRARIES[header]} | {', '.join(cells)} |")
    return lines


def diagram(name: str) -> str:
    if name == "fences":
        return "\n".join(fences())
    if name == "libraries":
        table = {layer.split("/")[-1]: [x.split("/")[-1] for x in may] for layer, may in LAYERS.items()}
        return "\n".join(["```", *arrows(table, "app"), "```"])
    return "\n".join(["```", *arrows(APP_FOLDERS[f"apps/{name}"]), "```"])


def check_page(page: str, write: bool) -> list[str]:
    """What is wrong with the diagrams of a page; with `write`, they are recreated."""
    path = ROOT / page
    text = path.read_text() if path.exists() else ""
    found = []
    for name in PAGES[page]:
        begin, end = f"<!-- layers: {name} -->", "<!-- layers: end -->"
        block = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.S)
        if not block.search(text):
            found.append(f"{page}: lacks the lines {begin} and {end}, for the diagram")
            continue
        fresh = block.sub(lambda _: f"{begin}\n{diagram(name)}\n{end}", text)
        if fresh != text and not write:
            found.append(f"{page}: the diagram \"{name}\" is not the table in tests/lint/layers.py; "
                         "run tests/lint/layers.py . --write")
        text = fresh
    if write and path.exists():
        path.write_text(text)
    return found


ROOT = pathlib.Path(sys.argv[1]).resolve()
files = [p for top in ("libs", "apps", "tests", "demo") for p in sorted((ROOT / top).rglob("*.[ch]pp"))
         if "tests/lint/compiler" not in p.as_posix()]
problems = [problem for path in files for problem in check(path)]
problems += [problem for page in PAGES for problem in check_page(page, "--write" in sys.argv[2:])]
print("\n".join(problems) if problems else f"{len(files)} files keep to the layers, {len(PAGES)} pages show them")
sys.exit(1 if problems else 0)
