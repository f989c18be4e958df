#!/usr/bin/env python3
"""Checks that words of our own that were given up do not come back (CONTRIBUTING.md, "English").

usage: words.py ROOT

BANNED has a row for each word: a regular expression, the term to use, and where the word is right:
regular expressions over paths. Code and comments of the sources are searched, and the documents;
texts in quotes are not, since users, peers and stored files know some of these words.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
FOLDERS = ("apps", "demo", "docs", "libs", "tests")
SUFFIXES = {".cpp", ".hpp", ".md", ".py", ".txt"}

BANNED = [
    # Of program structure
    (r"Door|door_|at_door|door\.hpp", "RequestGate, or `gate`", []),
    (r"\w*::Parts|struct Parts|Around|around_", "Dependencies",
     [r"tests/event-reporter/report/(resource_reporter_test|reporter_fixture)\.[ch]pp", r"libs/common/core/README\.md"]),
    (r"(Git|Argo)Trouble|\w*[a-z]Troubles?|Trouble\w*", "`last_error()`, Error or Failure",
     [r"docs/.*\.md"]),
    (r"troubles?(_\w*)?|\w+_troubles?_?", "`last_error()`, `error` or `failure`",
     [r"apps/app-proxy/(.*/)?log_routes\.hpp", r"docs/.*\.md"]),
    (r"told_(turn|at|errors|without|busy|queued)\w*|tell_(status|log|loop|peer|closed|workers)", "`reported_*`, `report_*`, `notify`", []),
    (r"ToldClusters", "ReportedClusters", []),
    (r"Rights[A-Z]\w*|\w+Rights|NeededRight|RightUse|rights_(check|audit|of_runtime|granted|known)", "Permissions, as in RBAC", []),
    (r"k(Most|Longest)([A-Z]\w*)?", "`kMax…`", []),
    (r"shown_\w+|Shown(Commit|Page|Repository|PullRequest|Rollback|Application|Log)\w*|kShown[A-Z]\w*", "`to_graphql()`, `render_*`, or a noun with View", []),
    (r"word_failure", "`render_error`", []),
    (r"(Got|Made|Told|Entered|Begun)(?= \w+[;={])|struct (Got|Made|Told|Entered|Asked)", "a noun",
     [r"apps/app-proxy/(.*/)?git_login_routes\.[ch]pp"]),
    (r"WaitLine::Place|Gate::Place|take_place", "Permit, Slot or Ticket", []),
    # Of the reporters
    (r"StandIn(Steps|Options|s)?|stand_ins?", "Failover", []),
    (r"farewell", "`handover_grace`", []),
    (r"patience_?|\w+_patience|\w*Patience|kImpatience", "a time limit: `timeout`, `time_limit`, `rank_delay`", []),
    (r"Whose::\w+|enum class Whose|anothers", "Owner", []),
    # Of the tunnel, the router and the proxy core
    (r"RequestWatch|request_watch", "HttpActivityTracker", []),
    (r"(?<!Certificate)(?<!::)(?<!no)Authority", "Authorizer", []),
    (r"Entrance|entrance_", "TransportHandshake", []),
    (r"(?<!\w)Edge|edge_\.", "VhostProxy", []),
    (r"max_strangers\w*|strangers?_\w*|no_stranger|kStreamsOfStranger", "`unauthenticated`",
     [r"tests/contract/control_plane_\w+\.[ch]pp", r"docs/.*\.md"]),
    (r"[Ss]creening", "RequestInspection", []),
    (r"(server|peer)_is_leaving|peer_leaving_?|on_leaving_?", "`draining`", []),
    (r"proxy::Exchange\w*|ExchangeRecord|ExchangeContext", "`proxy::Transaction`", []),
    # Of app-proxy
    (r"RuntimeLife|runtime_life", "RuntimeRegistration", []),
    (r"RoundStep|run_round|round_on_pool|Committer::Lane", "PushStep, `run_attempt`, BranchQueue", []),
    # Of everyday
    (r"keep_(house|fresh|link|control|up|pool|servers|settings|registered)", "`maintain_*`, `refresh_*`, `do_*`", []),
    (r"come_in", "`inbound`", []),
    (r"anew|\w+_anew|\w*[a-z]Anew\w*", "again, from scratch, recreated", []),
]
TOKENS = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>R"(?P<d>[^\s()\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\')', re.S)


def without_texts(source: str) -> str:
    """A C++ source with each text in quotes emptied; the lines stay where they are."""
    return TOKENS.sub(lambda m: m.group() if m.group("comment") else '"' + "\n" * m.group().count("\n") + '"', source)


def main() -> int:
    rows = [(re.compile(rf"(?<![\w]){word}(?!\w)"), term, [re.compile(path) for path in paths]) for word, term, paths in BANNED]
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", *FOLDERS], capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines()
             if pathlib.Path(name).suffix in SUFFIXES and not name.startswith(("tests/lint/", "tests/fuzz/corpus/"))]
    found = []
    for name in names:
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_text()
        if path.suffix in {".cpp", ".hpp"}:
            text = without_texts(text)
        for word, term, paths in rows:
            if any(allowed.fullmatch(name) for allowed in paths):
                continue
            for match in word.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f'{name}:{line}: "{match.group()}": say {term}')
    print("\n".join(found) if found else f"{len(names)} files, none of {len(rows)} banned words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
