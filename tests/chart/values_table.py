#!/usr/bin/env python3
"""Makes the table of values in docs/chart.md from the comments of charts/gitops-runtime/values.yaml.

values_table.py           rewrites the table
values_table.py --check   exit code 1 when the table is stale, a key has no comment, or the schema does not describe a key

The file is read line by line, in the form it has: two spaces of indentation, a comment of one line above each key.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "gitops-runtime"
PAGE = ROOT / "docs" / "chart.md"
BEGIN = "<!-- values: made by tests/chart/values_table.py -->"
END = "<!-- end of values -->"
KEY = re.compile(r"^( *)([^\s#:][^:]*):(?: (.*))?$")


class Key:
    def __init__(self, path, default, meaning):
        self.path = path  # list of names
        self.default = default
        self.meaning = meaning  # "" for a key that only groups others

    def name(self):
        return ".".join(f'"{name}"' if "." in name else name for name in self.path)


def read_values(text):
    """The keys that carry a value or a meaning, and what is wrong with the file."""
    keys, mistakes, path, comment = [], [], [], ""
    block = None  # a commented key whose own lines are its default: (indentation, key)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("#"):
            comment = line.strip()[1:].strip()
            continue
        found = KEY.match(line)
        if not found:
            if line.strip():
                mistakes.append(f"values.yaml:{number}: not a key, a comment or an empty line")
            comment = ""
            continue
        indent, name, value = len(found[1]), found[2], found[3] or ""
        if block and indent > block[0] and not comment:
            block[1].default += f"\n{line[block[0] + 2:]}"
            continue
        block = None
        path = path[: indent // 2] + [name]
        key = Key(path, value, comment)
        if comment and indent or value:
            if not comment:
                mistakes.append(f"values.yaml:{number}: {key.name()} has no comment")
            keys.append(key)
            if not value:
                block = (indent, key)
        comment = ""
    return keys, mistakes


def default_cell(key):
    if not key.default:
        return "see below"
    return "<br>".join(f"`{line.replace(' ', chr(0xA0))}`" for line in key.default.strip("\n").split("\n"))


def table(keys):
    rows = ["| Key | Default | Meaning |", "|---|---|---|"]
    for key in keys:
        rows.append(f"| `{key.name()}` | {default_cell(key)} | {key.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def in_schema(schema, node, path):
    """Does the schema describe this key? A map of free names describes every name in it."""
    if "$ref" in node:
        node = schema["definitions"][node["$ref"].rsplit("/", 1)[1]]
    if not path:
        return True
    parts = node.get("allOf", [node])
    if parts != [node]:
        return any(in_schema(schema, part, path) for part in parts)
    if path[0] in node.get("properties", {}):
        return in_schema(schema, node["properties"][path[0]], path[1:])
    return isinstance(node.get("additionalProperties"), dict)


def main():
    keys, mistakes = read_values((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    mistakes += [f"values.schema.json: {key.name()} is not described" for key in keys if not in_schema(schema, schema, key.path)]

    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    fresh = f"{before}{BEGIN}\n{table(keys)}\n{END}{after}"
    if sys.argv[1:] == ["--check"]:
        if fresh != page:
            mistakes.append("docs/chart.md: the table of values is stale; run tests/chart/values_table.py")
    elif not mistakes:
        PAGE.write_text(fresh)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
