#!/usr/bin/env python3
"""Makes what depends on the chart's values:

  docs/reference/values                 a page for each component, from the comments of charts/gitops-runtime/values.yaml
  files/defaults.yaml of the chart      from values.yaml: what templates put in the place of a key that is missing or null
  values.schema.json of the chart       from values_schema.json, which is shorter: "allOf" joins the keys of a component with its
                                        own; every key gets its description, and any other key is an error; every key may be null
  files/value-formats.json              from "pattern" and "form" of values_schema.json: templates check them, since Helm's
                                        own message would be the regular expression; "quote" marks a text that looks like a
                                        number and "reference" a reference to a key of a Secret
  files/older-values.json, and the      from older_values.json, a line of state, key and note for each key of an older chart;
  table in docs/guides/older-chart.md   REPORTER stands for the three places of a reporter's values

chart_values.py           writes them
chart_values.py --check   exit code 1 when one is stale, a key has no comment, or the schema does not describe a key

values.yaml is read line by line, in the form it has: two spaces of indentation, comment lines above each key.
"""
import copy
import itertools
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "gitops-runtime"
HERE = pathlib.Path(__file__).resolve().parent
KEY = re.compile(r"^( *)([^\s#:][^:]*):(?: (.*))?$")
REPORTERS = ["global/event-reporters", "event-reporters/runtime-event-reporter", "event-reporters/cluster-event-reporter"]
OWNER = "<!-- tested by: python3 tests/chart/chart_values.py --check -->\n"
# Page -> its title and the groups of keys on it.
VALUES_PAGES = {
    "global": ("Values of all daemons", ["image", "tracing", "global"]),
    "event-reporters": ("Values of the reporters", ["global.event-reporters", "event-reporters"]),
    "internal-router": ("Values of the router", ["internal-router"]),
    "app-proxy": ("Values of app-proxy", ["app-proxy"]),
    "tunnel-client": ("Values of tunnel-client", ["tunnel-client"]),
    "tunnel-server": ("Values of tunnel-server", ["tunnel-server"]),
    "argo": ("Values of the Argo charts", ["argo-workflows", "argo-cd", "argo-rollouts", "argo-events", "sealed-secrets"]),
    "others": ("Other values", ["extraObjects", "upgrade", "test"]),
}
VALUES_INDEX = """# Values

Every key of the chart gitops-runtime. [Install](../../get-started/install.md) and [access modes](../../guides/access-modes.md) say which of
them you need; [the older chart](../../guides/older-chart.md#keys-of-older-charts) has other keys.

| Page | Keys |
|---|---|
PAGES
The chart gitops-control-plane has [values of its own](control-plane.md).

A key that is not listed is an error, and so is a value of the wrong form. Other keys are accepted below `global`, since they may belong
to other charts, and in `config` of the reporters and of app-proxy, which becomes a ConfigMap; the notes after an installation name them.

A key that is null has its default. A list or a map that is null is empty, and a null in a map such as `resources` is left out. In
`env` and `config` a null takes a variable or a setting away.

The pages are generated from `charts/gitops-runtime/values.yaml` (`tests/chart/chart_values.py`).
"""
TABLE_BEGIN = "<!-- keys of older charts: made by tests/chart/chart_values.py -->"
TABLE_END = "<!-- end of the keys -->"


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
            comment = f"{comment} {line.strip()[1:].strip()}".strip()
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
        if comment or value:
            if not comment:
                mistakes.append(f"values.yaml:{number}: {key.name()} has no comment")
            keys.append(key)
            if not value:
                block = (indent, key)
        comment = ""
    return keys, mistakes


def defaults(text, schema, needed):
    """The values without comments. A list or a map of the user's is empty, but for those that are needed."""
    lines, path, comment, inside = [], [], False, None
    rows = text.splitlines()
    for number, line in enumerate(rows):
        found = KEY.match(line)
        if not found or line.strip().startswith("#"):
            comment = line.strip().startswith("#")
            continue
        indent, name, value = len(found[1]), found[2], found[3] or ""
        if inside is not None and indent > inside:
            continue
        inside = None
        path = path[: indent // 2] + [name]
        if not value and comment and not rows[number + 1].strip().startswith("#"):
            value, inside = "{}", indent  # its own lines are its default
        node = node_at(schema, path) or {}
        if not value and isinstance(node.get("additionalProperties"), dict):
            value, inside = "{}", indent  # settings, of which null takes one away
        if value[:1] in ("{", "[") and not (path in needed or node.get("minItems")):
            value = value[0] + {"{": "}", "[": "]"}[value[0]]
        lines.append(f"{' ' * indent}{name}:{' ' + value if value else ''}")
        comment = False
    return "# Made by tests/chart/chart_values.py from values.yaml.\n" + "\n".join(lines) + "\n"


def default_cell(key):
    if not key.default:
        return "see below"
    return "<br>".join(f"`{line.replace(' ', chr(0xA0))}`" for line in key.default.strip("\n").split("\n"))


def group_of(key):
    """The component to which the key belongs, which is a heading."""
    return ".".join(key.path[: 2 if key.path[0] == "global" and key.path[1:2] == ["event-reporters"] else 1])


def values_group(name, keys):
    """The heading and the table of one component."""
    text = f"## {name}\n\n"
    if keys[0].path == [name] and not keys[0].default:
        text += f"{keys[0].meaning}\n\n"
        keys = keys[1:]
    text += "| Key | Default | Meaning |\n|---|---|---|\n"
    for key in keys:
        text += f"| `{key.name()}` | {default_cell(key)} | {key.meaning.replace('|', chr(92) + '|')} |\n"
    return text


def values_pages(keys, mistakes):
    """The index and a page for each component, by path."""
    folder = ROOT / "docs" / "reference" / "values"
    groups = {}
    for key in keys:
        groups.setdefault(group_of(key), []).append(key)
    rows, pages = "", {}
    for page, (title, names) in VALUES_PAGES.items():
        rows += f"| [{title}]({page}.md) | {', '.join(f'`{name}`' for name in names)} |\n"
        text = "\n".join(values_group(name, groups.pop(name)) for name in names)
        pages[folder / f"{page}.md"] = f"{OWNER}# {title}\n\n[How values are read](README.md).\n\n{text}"
    pages[folder / "README.md"] = OWNER + VALUES_INDEX.replace("PAGES\n", rows + "\n")
    mistakes += [f"VALUES_PAGES of chart_values.py has no page for {name}" for name in groups]
    return pages


def older_keys():
    """(state, path, note) for each key of older_values.json that is not read under its own name."""
    for state, path, note in json.loads((HERE / "older_values.json").read_text()):
        if state == "works":
            continue
        places = [path.replace("REPORTER", reporter) for reporter in REPORTERS] if "REPORTER" in path else [path]
        for place in places:
            found = re.match(r"(.*)\{(.*)\}$", place)
            for name in found[2].split(",") if found else [""]:
                yield state, ((found[1] + name) if found else place).split("/"), note


def flat(node, definitions):
    """The node with references and allOf written out."""
    if not isinstance(node, dict):
        return [flat(item, definitions) for item in node] if isinstance(node, list) else node
    if "$ref" in node:
        return flat(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    out = {key: flat(value, definitions) for key, value in node.items() if key != "allOf"}
    for part in node.get("allOf", []):
        out = joined(out, flat(part, definitions))
    return out


def joined(one, other):
    out = dict(one)
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = joined(out[key], value)
        elif key == "required":
            out[key] = sorted(set(out.get(key, [])) | set(value))
        else:
            out[key] = value
    return out


def take_formats(node, path, formats):
    """Moves pattern, maxLength, form, quote and reference of the node and those below it into formats."""
    if not isinstance(node, dict):
        return
    pattern, form, longest = node.pop("pattern", None), node.pop("form", None), node.pop("maxLength", None)
    quote, reference = node.pop("quote", False), node.pop("reference", False)
    if reference:
        formats.append({"path": path, "reference": True})
    if pattern:
        formats.append({"path": path, "pattern": pattern, "maxLength": longest or 0, "form": form, "quote": quote})
    elif longest:
        node["maxLength"] = longest
    for name, child in node.get("properties", {}).items():
        take_formats(child, path + [name], formats)
    take_formats(node.get("items"), path + ["[]"], formats)
    if isinstance(node.get("propertyNames"), dict):
        take_formats(node["propertyNames"], path + ["{keys}"], formats)
        if not node["propertyNames"]:
            del node["propertyNames"]
    take_formats(node.get("additionalProperties"), path + ["{}"], formats)
    for alternative in node.get("anyOf", []) + node.get("oneOf", []):
        take_formats(alternative, path, formats)


def close(node):
    """Every key that is not named is an error, except in maps whose keys are the user's and in those of other charts: open is
    true for all that is below, and "here" for the keys of this map only."""
    if not isinstance(node, dict):
        return
    is_open = node.pop("open", False)
    if is_open is True:
        return
    if "properties" in node and "additionalProperties" not in node and not is_open:
        node["additionalProperties"] = False
    for child in itertools.chain(node.get("properties", {}).values(), [node.get("items")]):
        close(child)


def allow_null(node, known, path=()):
    """Lets every key be null that values.yaml does not have: Helm itself removes those that it has."""
    if not isinstance(node, dict):
        return
    for name, child in node.get("properties", {}).items():
        here = (*path, name)
        if here not in known and name not in node.get("required", []):
            if isinstance(child.get("type"), str):
                child["type"] = [child["type"]]
            if "type" in child and "null" not in child["type"]:
                child["type"].append("null")
            if "enum" in child and None not in child["enum"]:
                child["enum"].append(None)
            if "anyOf" in child and {"type": "null"} not in child["anyOf"]:
                child["anyOf"].append({"type": "null"})
        allow_null(child, known, here)
    allow_null(node.get("items"), known, (*path, "[]"))


def take_needed(node, path=()):
    """The paths of the maps that may not be empty, which "needed" marks."""
    if not isinstance(node, dict):
        return
    if node.pop("needed", False):
        yield list(path)
    for name, child in node.get("properties", {}).items():
        yield from take_needed(child, (*path, name))


def node_at(schema, path):
    for name in path:
        if name in schema.get("properties", {}):
            schema = schema["properties"][name]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        else:
            return None
    return schema


def make_schema(keys, mistakes):
    source = json.loads((HERE / "values_schema.json").read_text())
    definitions = source.pop("definitions")
    schema = flat(source, definitions)
    for _, path, note in older_keys():
        node = schema
        for name in path[:-1]:
            node = node.setdefault("properties", {}).setdefault(name, {"type": "object"})
        if path[-1] not in node.setdefault("properties", {}):
            node["properties"][path[-1]] = {"description": f"Of older charts; not read: {note}."}
    formats, needed = [], list(take_needed(schema))
    take_formats(schema, [], formats)
    close(schema)
    allow_null(schema, {tuple(key.path[:length]) for key in keys for length in range(1, len(key.path) + 1)})
    for key in keys:
        node = node_at(schema, key.path)
        if node is None:
            mistakes.append(f"values_schema.json: {key.name()} is not described")
        elif key.meaning and node_at(schema, key.path[:-1]).get("properties", {}).get(key.path[-1]) is node:
            node["description"] = key.meaning
    describe_overrides(schema)
    return schema, formats, needed


def describe_overrides(schema):
    """The values of one reporter override those of both, so they mean the same."""
    shared = schema["properties"]["global"]["properties"]["event-reporters"]

    def copy_descriptions(source, target):
        for name, child in target.get("properties", {}).items():
            other = source.get("properties", {}).get(name)
            if other is not None:
                if "description" in other:
                    child.setdefault("description", other["description"])
                copy_descriptions(other, child)

    for reporter in schema["properties"]["event-reporters"]["properties"].values():
        copy_descriptions(shared, reporter)


def as_json(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def rows(items):
    """A JSON array with an item a line."""
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in items) + "\n]\n"


def older_table():
    text = f"{TABLE_BEGIN}\n| Key | | |\n|---|---|---|\n"
    for state, path, note in json.loads((HERE / "older_values.json").read_text()):
        name = path.replace("REPORTER", "*reporter*").replace("config/", "config.").replace("/", ".")
        text += f"| `{name}` | {state} | {('now ' if state == 'renamed' else '') + note} |\n".replace("`*reporter*", "*reporter*`")
    return text + TABLE_END


def outputs():
    values = (CHART / "values.yaml").read_text()
    keys, mistakes = read_values(values)
    schema, formats, needed = make_schema(keys, mistakes)
    pages = {
        **values_pages(keys, mistakes),
        CHART / "files" / "defaults.yaml": defaults(values, schema, needed),
        CHART / "values.schema.json": as_json(schema),
        CHART / "files" / "value-formats.json": rows(formats),
        CHART / "files" / "older-values.json": rows(
            {"path": path, "state": state, "note": note} for state, path, note in older_keys()),
    }
    older = ROOT / "docs" / "guides" / "older-chart.md"
    page = older.read_text() if older.exists() else f"{TABLE_BEGIN}\n{TABLE_END}\n"
    before, _, rest = page.partition(TABLE_BEGIN)
    _, _, after = rest.partition(TABLE_END)
    pages[older] = before + older_table() + after
    return pages, mistakes


def main():
    pages, mistakes = outputs()
    for path, text in pages.items():
        if path.exists() and path.read_text() == text:
            continue
        if sys.argv[1:] == ["--check"]:
            mistakes.append(f"{path.relative_to(ROOT)} is stale; run tests/chart/chart_values.py")
        elif not mistakes:
            path.write_text(text)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
