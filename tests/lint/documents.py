#!/usr/bin/env python3
"""Checks the documents: their tree, their links, and what they name of the programs, the charts and the metrics.

usage: documents.py ROOT

Pages are the *.md below docs. Each of them
  - has at most MAX_LINES lines, and cells of tables with at most MAX_CELL characters of text;
  - begins with its owner, "<!-- tested by: COMMAND -->": the command that fails when the page is wrong, which must exist;
  - is reached by links from docs/README.md.

Of all *.md of the tree: blocks are closed, and diagrams begin with their type; relative links lead to files, and their anchors to headings. Of all other texts: a path docs/….md exists, and
so does the section that follows it in quotes.

Of the pages and READMEs: blocks `sh` and `console` call our programs by commands and flags that they have; keys behind --set are
values of the chart; names gitops_… are metrics of a source; names of alerts are in a file of alerts, and every alert is on a page
of docs/operations; tests that a page names exist; and each code of an error of app-proxy is explained. documents_trial.py shows that
each of these can fail.
"""
import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys

MAX_LINES = 300
MAX_CELL = 150
# Pages that a program writes, or that are tables of facts in its words.
LONG_CELLS = ["docs/reference/values/*", "docs/reference/configuration/*", "docs/reference/control-plane/api.md", "docs/reference/gitopsctl*",
              "docs/guides/older-chart.md"]
OWNER = re.compile(r"<!-- tested by: (.+) -->")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
MENTION = re.compile(r"\bdocs/[\w./-]+?\.md\b")
SECTION = re.compile(r"(docs/[\w./-]+?\.md),\s+\"([^\"]+)\"")
TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|PEER_TEST\w*)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
METRIC = re.compile(r"\bgitops_[a-z0-9_]*[a-z0-9]")
ALERT = re.compile(r"`((?:EventReporter|RequestRouter|AppProxy|TunnelClient|TunnelServer|ControlPlane)[A-Z]\w+)`")
DAEMONS = ["app-proxy", "control-plane", "event-reporter", "request-router", "tunnel-client", "tunnel-server"]
# Flags of every daemon that its table does not list.
DAEMON_FLAGS = {"--help", "--version", "--config", "--check-config", "--print-config-table", "--log-level"}
CHARTS = ["gitops-runtime", "gitops-control-plane"]
TEXTS = {".md", ".cpp", ".hpp", ".py", ".txt", ".cmake", ".ts", ".tsx", ".mjs", ".yaml", ".json", ".tpl", ".graphql", ".sh", ".snap", ""}


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def blocks(text: str):
    """Yields (line number from 1, language or None, line): the language of the block that the line is in."""
    language = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            language = (line.strip()[3:] or "text") if language is None else None
            continue
        yield number, language, line


class Tree:
    def __init__(self, root: pathlib.Path):
        self.root = root
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                                check=True)
        self.files = [name for name in listed.stdout.splitlines() if (root / name).is_file()]
        self.markdown = [name for name in self.files if name.endswith(".md")]
        self.pages = [name for name in self.markdown if name.startswith("docs/")]
        self.found: list[str] = []

    @functools.lru_cache(maxsize=None)
    def text(self, name: str) -> str:
        return (self.root / name).read_text(errors="replace")

    def report(self, name: str, line: int, message: str) -> None:
        self.found.append(f"{name}:{line}: {message}")

    @functools.lru_cache(maxsize=None)
    def headings(self, name: str) -> list[str]:
        return [line.lstrip("#").strip() for _, language, line in blocks(self.text(name))
                if language is None and re.match(r"#+ ", line)]

    @functools.lru_cache(maxsize=None)
    def anchors(self, name: str) -> set[str]:
        found: dict[str, int] = {}
        names = set()
        for heading in self.headings(name):
            anchor = slug(heading)
            count = found.get(anchor, 0)
            found[anchor] = count + 1
            names.add(f"{anchor}-{count}" if count else anchor)
        return names | set(re.findall(r'<a (?:id|name)="([^"]+)"', self.text(name)))


# The tree of pages


def check_form(tree: Tree) -> None:
    for page in tree.pages:
        lines = tree.text(page).splitlines()
        if len(lines) > MAX_LINES:
            tree.report(page, MAX_LINES, f"{len(lines)} lines, more than {MAX_LINES}; divide the page")
        if any(pathlib.PurePath(page).match(pattern) for pattern in LONG_CELLS):
            continue
        for number, language, line in blocks(tree.text(page)):
            if language is not None or not line.startswith("|"):
                continue
            for cell in re.split(r"(?<!\\)\|", line):
                length = len(LINK.sub(lambda match: match.group()[1:match.group().index("]")], cell).strip())
                if length > MAX_CELL:
                    tree.report(page, number, f"a cell of {length} characters, more than {MAX_CELL}; make it text or a list: "
                                              f"{cell.strip()[:40]}…")


def check_pictures(tree: Tree) -> None:
    """Blocks are closed, diagrams have a type and closed subgraphs, and a page of concepts has a diagram."""
    for name in tree.markdown:
        text = tree.text(name)
        if len(re.findall(r"^\s*```", text, re.M)) % 2:
            tree.report(name, text.count("\n"), "a block is not closed")
        diagrams = re.findall(r"^```mermaid\n(.*?)^```", text, re.M | re.S)
        for diagram in diagrams:
            if not re.match(r"(flowchart (LR|TB|TD)|sequenceDiagram|stateDiagram-v2)\n", diagram):
                tree.report(name, 1, f"a diagram without a type: {diagram.splitlines()[0]}")
            if len(re.findall(r"^\s*subgraph\b", diagram, re.M)) != len(re.findall(r"^\s*end$", diagram, re.M)):
                tree.report(name, 1, "a subgraph of a diagram has no end")
        if name.startswith("docs/concepts/") and not diagrams:
            tree.report(name, 1, "a page of concepts has a picture")


def targets(tree: Tree, name: str):
    """Yields (line, target, path or None, anchor) of each relative link."""
    for number, language, line in blocks(tree.text(name)):
        if language is not None:
            continue
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target) or target.startswith("/"):
                continue
            path, _, anchor = target.partition("#")
            where = (tree.root / name).parent / path if path else tree.root / name
            try:
                yield number, target, where.resolve().relative_to(tree.root.resolve()).as_posix(), anchor
            except ValueError:
                yield number, target, None, anchor


def check_links(tree: Tree) -> None:
    known = set(tree.files)
    reached, waiting = set(), ["docs/README.md"]
    links: dict[str, list[str]] = {}
    for name in tree.markdown:
        links[name] = []
        for number, target, path, anchor in targets(tree, name):
            if path is None or not (path in known or (tree.root / path).is_dir()):
                tree.report(name, number, f"the link {target} leads nowhere")
                continue
            links[name].append(path)
            if anchor and path.endswith(".md") and anchor not in tree.anchors(path):
                tree.report(name, number, f"{path} has no heading for #{anchor}")
    while waiting:
        name = waiting.pop()
        if name in reached or name not in links:
            continue
        reached.add(name)
        waiting += links[name]
    for page in tree.pages:
        if page not in reached:
            tree.report(page, 1, "no link leads here from docs/README.md")


def check_mentions(tree: Tree) -> None:
    known = set(tree.files)
    for name in tree.files:
        if pathlib.PurePath(name).suffix not in TEXTS or name.startswith(("tests/fuzz/corpus/", "tests/lint/")):
            continue
        text = tree.text(name)
        if "docs/" not in text:
            continue
        joined = re.sub(r"\n *(?://|#|\*) ?", " ", text)  # a mention may go on in the next line of a comment
        for match in MENTION.finditer(joined):
            before = joined[max(0, match.start() - 1):match.start()]
            if match.group() not in known and before not in ("/", "-") and not before.isalnum():
                tree.report(name, text.count("\n", 0, max(0, text.find(match.group()))) + 1, f"there is no {match.group()}")
        for path, section in SECTION.findall(joined):
            if path in known and not any(heading.startswith(section) or f"`{section}`" in heading or section in tree.text(path)
                                         for heading in tree.headings(path)):
                tree.report(name, text.count("\n", 0, max(0, text.find(path))) + 1, f'{path} has no section "{section}"')


# Owners


@functools.lru_cache(maxsize=None)
def suites(tree: Tree) -> list[tuple[str, str, set[str]]]:
    """(tier, stem of the file, names "Suite.Case") of each source of a gitops_test()."""
    found = []
    for name in tree.files:
        if not name.startswith("tests/") or not name.endswith("CMakeLists.txt"):
            continue
        for call in re.findall(r"gitops_test\(([^)]*)\)", re.sub(r"#.*", "", tree.text(name))):
            tier = re.search(r"\bTIER\s+(\w+)", call)
            for source in re.findall(r"[\w./-]+\.cpp", call):
                path = (pathlib.PurePosixPath(name).parent / source).as_posix()
                cases = {f"{suite}.{case}" for suite, case in TEST.findall(tree.text(path))} if path in tree.files else set()
                found.append((tier.group(1) if tier else "", pathlib.PurePath(source).stem.removesuffix("_test"), cases))
    return found


def mistake_of_owner(tree: Tree, command: str) -> str | None:
    words = shlex.split(command)
    if words[:2] == ["./dev", "test"]:
        filters = [words[at + 1] for at, word in enumerate(words) if word == "-R" and at + 1 < len(words)]
        tiers = [word for word in words[2:] if not word.startswith("-") and word not in filters]
        if not filters:
            return "names no test: add -R NAME"
        text = filters[0].lower()
        fitting = [tier for tier, stem, cases in suites(tree)
                   if text in stem.lower() or any(text in case.lower() for case in cases)]
        if not fitting:
            return f"no test has {filters[0]} in its name or in that of its file"
        wrong = [tier for tier in tiers if tier not in fitting]
        return f"{filters[0]} is not in tier {wrong[0]}, but in {sorted(set(fitting))[0]}" if wrong else None
    if words[0] == "./dev":
        return mistake_of_dev(tree, words)
    script = words[1] if words[0] in ("python3", "node") else words[0]
    return None if script in tree.files else f"there is no {script}"


def check_owners(tree: Tree) -> None:
    for page in tree.pages:
        lines = tree.text(page).splitlines() or [""]
        owners = []
        for line in lines:
            match = OWNER.fullmatch(line)
            if not match:
                break
            owners.append(match.group(1))
        if not owners:
            tree.report(page, 1, "begin with the owner: <!-- tested by: COMMAND -->")
        for number, owner in enumerate(owners, 1):
            mistake = mistake_of_owner(tree, owner)
            if mistake:
                tree.report(page, number, f"owner {owner}: {mistake}")


# Commands


@functools.lru_cache(maxsize=None)
def table_flags(tree: Tree, page: str) -> set[str]:
    """The flags in the first column of a table of settings."""
    if page not in tree.files:
        return set()
    return {f"--{name}" for name in re.findall(r"^\| `--([\w.-]+)", tree.text(page), re.M)}


@functools.lru_cache(maxsize=None)
def ctl_commands(tree: Tree) -> dict[str, set[str]]:
    """gitopsctl's commands and the flags of their own, from its generated pages."""
    commands: dict[str, set[str]] = {}
    for name in tree.files:
        if not re.match(r"docs/reference/gitopsctl[\w/-]*\.md$", name):
            continue
        for words, flags in re.findall(r"^\| `([a-z][\w -]*?)(?: [A-Z\[][^`]*)?` \| [^|]* \|([^|]*)\|$", tree.text(name), re.M):
            commands[words] = set(re.findall(r"`(--[\w-]+)", flags))
    check = table_flags(tree, "docs/reference/configuration/gitopsctl.md")
    for name in ("check", "version", "webhooks"):
        commands.setdefault(name, set(check) | {"--router-url"})
    commands.setdefault("help", set())
    commands.setdefault("completion", set())
    return commands


# Flags that every command of gitopsctl has.
CTL_FLAGS = {"--context", "--control-plane-url", "--control-plane-token-file", "--control-plane-ca-file", "--control-plane-insecure",
             "--timeout", "--verbose", "--config", "--help", "--output", "-o", "-v", "-h"}


@functools.lru_cache(maxsize=None)
def literals(tree: Tree, folder: str) -> set[str]:
    """The texts in quotes of the sources of a program."""
    return {text for name in tree.files if name.startswith(folder) and name.endswith((".cpp", ".hpp"))
            for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', tree.text(name))}


def flags_of(words: list[str]) -> list[str]:
    return [word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]


def mistake_of_ctl(tree: Tree, words: list[str]) -> str | None:
    plain = [word for word in words[1:] if not word.startswith("-")]
    commands = ctl_commands(tree)
    if not plain or plain[0] in ("COMMAND", "…"):
        return None
    if plain[0] in ("help", "completion"):
        return None
    name = next((candidate for candidate in (" ".join(plain[:2]), plain[0]) if candidate in commands), None)
    if name is None:
        return f"gitopsctl has no command {' '.join(plain[:2])}"
    flag = next((flag for flag in flags_of(words) if flag not in commands[name] | CTL_FLAGS and flag != "-n"), None)
    return f"gitopsctl {name} has no flag {flag}" if flag else None


def mistake_of_daemon(tree: Tree, words: list[str]) -> str | None:
    name = words[0].rsplit("/", 1)[-1]
    flags = table_flags(tree, f"docs/reference/configuration/{name}.md") | DAEMON_FLAGS
    plain = []
    for word in words[1:]:
        if word.startswith("-"):
            break
        plain.append(word)
    if plain and name == "control-plane":
        command = " ".join(plain)
        known = literals(tree, "apps/control-plane/")
        if command not in known and plain[0] not in known:
            return f"control-plane has no command {command}"
        flags = flags | {f"--{text}" for text in known}
    flag = next((flag for flag in flags_of(words) if flag not in flags), None)
    return f"{name} has no flag {flag}" if flag else None


def mistake_of_dev(tree: Tree, words: list[str]) -> str | None:
    usage = re.search(r"usage\(\) \{(.*?)\n\}", tree.text("dev"), re.S).group(1)
    if len(words) > 1 and not re.search(rf"^  {re.escape(words[1])}\b", usage, re.M):
        return f"./dev has no command {words[1]}"
    if words[1:2] == ["bench"]:
        for name in words[2:]:
            if not name.startswith("-") and not (tree.root / f"tests/bench/{name}_bench.cpp").exists() and name not in tree.text("dev"):
                return f"there is no benchmark {name}"
    flag = next((flag for flag in flags_of(words) if flag not in usage and flag not in tree.text("dev")), None)
    return f"./dev has no flag {flag}" if flag else None


@functools.lru_cache(maxsize=None)
def schema(tree: Tree, chart: str) -> dict:
    return json.loads(tree.text(f"charts/{chart}/values.schema.json"))


def has_value(node: dict, path: list[str]) -> bool:
    """Whether a schema knows the key."""
    if not path:
        return True
    name = re.sub(r"\[\d+\]$", "", path[0])
    for one in [node, *node.get("anyOf", []), *node.get("oneOf", [])]:
        if name in one.get("properties", {}):
            child = one["properties"][name]
            return has_value(child.get("items", {}), path[1:]) if "[" in path[0] else has_value(child, path[1:])
        if "properties" not in one and "additionalProperties" not in one and "anyOf" not in one:
            return True  # a map of the user's, or of another chart
        if one.get("additionalProperties") not in (None, False):
            return True
    return False


def mistake_of_helm(tree: Tree, words: list[str]) -> str | None:
    chart = next((name for name in CHARTS if any(word.rstrip("/").endswith(f"/{name}") or re.search(rf"(^|/){name}-[\d.]+\.tgz$", word)
                                                 for word in words)), None)
    if chart is None:
        return None
    for at, word in enumerate(words):
        if word not in ("--set", "--set-string", "--set-file", "--set-json") or at + 1 == len(words):
            continue
        for pair in re.split(r"(?<!\\),(?=[\w\"])", words[at + 1]):
            key = pair.split("=")[0]
            path = [part.replace("\\", "") for part in re.split(r"(?<!\\)\.", key)]
            if not has_value(schema(tree, chart), path):
                return f"the chart {chart} has no value {key}"
    return None


def commands_of(text: str):
    """Yields (line, words) of each simple command in the blocks sh and console."""
    pending, start = "", 0
    for number, language, line in blocks(text):
        if language not in ("sh", "console"):
            pending = ""
            continue
        line = line.strip()
        if not pending and language == "console":
            if not line.startswith("$ "):
                continue
            line = line[2:]
        start = start if pending else number
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        whole, pending = pending, ""
        for part in re.split(r"&&|\|\|?|;|<\(|\$\(|&(?!\d)", re.sub(r"(^|\s)#.*", "", whole)):
            part = part.strip().rstrip(")").strip()
            try:
                words = shlex.split(part)
            except ValueError:
                words = part.split()
            while words and re.match(r"[A-Za-z_]\w*=", words[0]):
                words = words[1:]
            words = [word for word in words if not re.match(r"\d?[<>]", word)]
            if words:
                yield start, words


def check_commands(tree: Tree) -> int:
    count = 0
    for name in tree.markdown:
        for number, words in commands_of(tree.text(name)):
            program = words[0].rsplit("/", 1)[-1]
            if program == "gitopsctl":
                mistake = mistake_of_ctl(tree, words)
            elif program in DAEMONS:
                mistake = mistake_of_daemon(tree, words)
            elif words[0] == "./dev":
                mistake = mistake_of_dev(tree, words)
            elif program == "helm":
                mistake = mistake_of_helm(tree, words)
            else:
                continue
            count += 1
            if mistake:
                tree.report(name, number, mistake)
    return count


# Metrics and alerts


def check_metrics(tree: Tree) -> None:
    sources = [name for name in tree.files if name.startswith(("apps/", "libs/")) and name.endswith((".cpp", ".hpp"))]
    served = {metric for name in sources for metric in METRIC.findall(tree.text(name))}
    for name in tree.pages:
        for number, _, line in blocks(tree.text(name)):
            for match in METRIC.finditer(line):
                metric = match.group()
                rest = line[match.end():match.end() + 2]
                is_prefix = rest.startswith(("_", "*")) or rest == "…"
                base = re.sub(r"_(bucket|count|sum)$", "", metric)
                if metric in served or base in served or (is_prefix and any(one.startswith(metric) for one in served)):
                    continue
                if re.search(r"gitops_test|gitops_demo", metric):
                    continue
                tree.report(name, number, f"no program has the metric {metric}")


def check_alerts(tree: Tree) -> None:
    alerts = {alert for name in tree.files if re.search(r"alerts[\w-]*\.yaml$", name)
              for alert in re.findall(r"alert: (\w+)", tree.text(name))}
    # In the chart the names of the reporters' alerts are the same for both.
    explained = set()
    for name in tree.pages:
        for number, _, line in blocks(tree.text(name)):
            for alert in ALERT.findall(line):
                if name.startswith("docs/operations/"):
                    explained.add(alert)
                if alert not in alerts:
                    tree.report(name, number, f"there is no alert {alert}")
    for alert in sorted(alerts - explained):
        tree.report("docs/operations", 1, f"no page explains the alert {alert}")


def check_tests(tree: Tree) -> None:
    """Tests that pages name by suite and case."""
    cases = {case for _, _, found in suites(tree) for case in found}
    names = {case.split(".")[0] for case in cases}
    for name in tree.pages:
        for number, _, line in blocks(tree.text(name)):
            for suite, case, rest in re.findall(r"`([A-Z]\w*[a-z]\w*)\.([A-Z]\w*?)(\*?)`", line):
                if suite not in names:
                    tree.report(name, number, f"there is no suite {suite}")
                elif not any(one == f"{suite}.{case}" or (rest and one.startswith(f"{suite}.{case}")) for one in cases):
                    tree.report(name, number, f"there is no test {suite}.{case}{rest}")


def check_codes(tree: Tree) -> None:
    """Codes of errors that clients of app-proxy see."""
    header, page = "apps/app-proxy/errors/client_codes.hpp", "docs/reference/app-proxy/errors.md"
    if header not in tree.files or page not in tree.files:
        return
    for code in re.findall(r'"([A-Z_]{4,})"', tree.text(header)):
        if f"`{code}`" not in tree.text(page):
            tree.report(page, 1, f"the code {code} is not explained")


def check(root: pathlib.Path) -> tuple[list[str], str]:
    tree = Tree(root)
    check_form(tree)
    check_pictures(tree)
    check_links(tree)
    check_mentions(tree)
    check_owners(tree)
    commands = check_commands(tree)
    check_metrics(tree)
    check_alerts(tree)
    check_tests(tree)
    check_codes(tree)
    return tree.found, f"{len(tree.pages)} pages, {commands} commands of ours in documents, all of it is there"


def main() -> int:
    found, summary = check(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found) if found else summary)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
