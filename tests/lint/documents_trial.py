#!/usr/bin/env python3
"""Shows that documents.py finds what it is for: each fault is put into a small tree of its own, and has to be the only finding.

usage: documents_trial.py ROOT
"""
import pathlib
import subprocess
import sys
import tempfile

import documents

PAGE = "<!-- tested by: ./dev test unit -R Widget -->\n# A page\n\n## A part\nText.\n"
FILES = {
    "README.md": "[Documents](docs/README.md)\n",
    "docs/README.md": "<!-- tested by: python3 tests/lint/documents.py . -->\n# Documents\n[A page](page.md#a-part)\n[Alerts](operations/a.md)\n",
    "docs/page.md": PAGE,
    "docs/operations/a.md": "<!-- tested by: ./dev bench http -->\n# Alerts\n`AppProxyMissing` asks `gitops_app_proxy_things`.\n",
    "docs/reference/gitopsctl.md": "<!-- tested by: ./dev lint -->\n# gitopsctl\n[Up](../README.md)\n\n| Command | Does | Flags of its own |\n|---|---|---|\n"
                                   "| `app list` | List | `--runtime` |\n",
    "docs/reference/configuration/app-proxy.md": "<!-- tested by: ./dev lint -->\n# Settings\n\n| Flag | |\n|---|---|\n| `--port NUMBER` | |\n",
    "dev": "usage() {\n  cat <<'TEXT'\n  test [TIER] [-R TEXT]\n  bench [NAME]\n  lint [--tidy]\nTEXT\n}\n",
    "tests/lint/documents.py": "",
    "tests/bench/http_bench.cpp": "",
    "tests/CMakeLists.txt": "gitops_test(widget_test TIER unit SOURCES widget_test.cpp)\n",
    "tests/widget_test.cpp": "TEST(Widget, Works) {}\n",
    "apps/app-proxy/a.cpp": '// docs/page.md, "A part"\nauto name = "gitops_app_proxy_things";\n',
    "apps/control-plane/a.cpp": 'auto command = "user add"; auto flag = "name";\n',
    "charts/gitops-runtime/values.schema.json": '{"properties": {"a": {"properties": {"b": {}}, "additionalProperties": false}}, '
                                                '"additionalProperties": false}',
    "charts/gitops-control-plane/values.schema.json": "{}",
    "charts/gitops-runtime/files/alerts.yaml": "- alert: AppProxyMissing\n",
}
LINKED = "[Commands](reference/gitopsctl.md) [Settings](reference/configuration/app-proxy.md)\n"


def block(*lines: str) -> str:
    return PAGE + "```sh\n" + "\n".join(lines) + "\n```\n"


# What is changed in the tree -> what has to be found.
FAULTS = [
    ({}, None),
    ({"docs/page.md": PAGE + "line\n" * 300}, "305 lines, more than"),
    ({"docs/page.md": PAGE + "| a | " + "word " * 40 + "|\n"}, "a cell of"),
    ({"docs/page.md": PAGE.split("\n", 1)[1]}, "begin with the owner"),
    ({"docs/page.md": PAGE.replace("Widget", "Gadget")}, "no test has Gadget"),
    ({"docs/page.md": PAGE.replace("unit", "e2e")}, "not in tier e2e"),
    ({"docs/page.md": PAGE.replace("./dev test unit -R Widget", "python3 tests/none.py")}, "there is no tests/none.py"),
    ({"docs/other.md": PAGE}, "no link leads here"),
    ({"docs/page.md": PAGE + "```mermaid\nflowchart LR\n  a --> b\n```\n"}, None),
    ({"docs/page.md": PAGE + "```mermaid\na --> b\n```\n"}, "without a type"),
    ({"docs/page.md": PAGE + "```sh\n"}, "a block is not closed"),
    ({"docs/README.md": FILES["docs/README.md"] + "[c](concepts/c.md)\n", "docs/concepts/c.md": PAGE}, "has a picture"),
    ({"docs/page.md": PAGE + "[x](gone.md)\n"}, "leads nowhere"),
    ({"docs/page.md": PAGE + "[x](#gone)\n"}, "no heading for #gone"),
    ({"README.md": "[x](docs/page.md#b-part)\n"}, "no heading for #b-part"),
    ({"apps/app-proxy/b.cpp": "// docs/gone.md\n"}, "there is no docs/gone.md"),
    ({"apps/app-proxy/b.cpp": '// docs/page.md, "B part"\n'}, 'no section "B part"'),
    ({"docs/page.md": block("gitopsctl app list --runtime x -o json")}, None),
    ({"docs/page.md": block("gitopsctl app find")}, "no command app find"),
    ({"docs/page.md": block("gitopsctl app list \\", "  --colour")}, "no flag --colour"),
    ({"docs/page.md": block("X=1 app-proxy --port=1 && true")}, None),
    ({"docs/page.md": block("true | app-proxy --ports=1")}, "app-proxy has no flag --ports"),
    ({"docs/page.md": block("control-plane user add --name=x")}, None),
    ({"docs/page.md": block("control-plane user ban --name=x")}, "no command user ban"),
    ({"docs/page.md": block("./dev tests")}, "./dev has no command tests"),
    ({"docs/page.md": block("helm install x charts/gitops-runtime --set a.b=1")}, None),
    ({"docs/page.md": block("helm install x charts/gitops-runtime \\", "  --set a.b=1 --set a.c=1")}, "no value a.c"),
    ({"docs/page.md": PAGE + "`gitops_app_proxy_thing`\n"}, "no program has the metric"),
    ({"docs/page.md": PAGE + "`AppProxyGone`\n"}, "there is no alert AppProxyGone"),
    ({"charts/gitops-runtime/files/alerts.yaml": "- alert: AppProxyMissing\n- alert: AppProxyLate\n"}, "no page explains the alert AppProxyLate"),
    ({"docs/page.md": PAGE + "`Widget.Works` `Widget.W*`\n"}, None),
    ({"docs/page.md": PAGE + "`Widget.Breaks`\n"}, "there is no test Widget.Breaks"),
]


def main() -> int:
    failures = []
    for changes, wanted in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {**FILES, **changes}
            files["docs/README.md"] += LINKED
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            subprocess.run(["git", "init", "-q", folder], check=True)
            found, _ = documents.check(root)
            if (wanted is None and found) or (wanted is not None and not (len(found) == 1 and wanted in found[0])):
                failures.append(f"{changes}: wanted {wanted}, found {found}")
    print("\n".join(failures) or f"{len(FAULTS)} trees, each fault is found and nothing else")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
