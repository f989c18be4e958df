#!/usr/bin/env python3
"""Makes what depends on the values of the chart gitops-control-plane:

  docs/reference/values/control-plane.md  from the comments of its values.yaml
  files/defaults.yaml of the chart  from values.yaml: what templates put in the place of a key that is missing or null
  values.schema.json of the chart   from the defaults and WORDS below; any other key is an error; every key may be null
  files/alerts.yaml of the chart    from apps/control-plane/monitoring/alerts.yaml
  files/flags.json of the chart     from docs/reference/configuration: the variable of each flag that config may name

control_plane_values.py           writes them
control_plane_values.py --check   exit code 1 when one is stale or a key has no comment
"""
import json
import re
import sys

import chart_values
from chart_values import ROOT

CHART = ROOT / "charts" / "gitops-control-plane"
PAGE = """<!-- tested by: python3 tests/chart/control_plane_values.py --check -->
# Values of the chart gitops-control-plane

Every key of the chart. [The control plane](../control-plane/README.md#in-a-cluster) says which of them you need. A key that is not listed is an error. A key that is
null has its default, and a null in a map such as `resources` is left out. In `env` and `config` a null takes a variable or a setting away.

This page is generated from `charts/gitops-control-plane/values.yaml` (`tests/chart/control_plane_values.py`).

"""
WORDS = {
    "image.pullPolicy": ["Always", "IfNotPresent", "Never"],
    "logLevel": ["debug", "info", "warn", "error"],
    "service.type": ["ClusterIP", "NodePort", "LoadBalancer"],
    "tunnel.server.clients.service.type": ["ClusterIP", "NodePort", "LoadBalancer"],
    "tunnel.server.users.service.type": ["ClusterIP", "NodePort", "LoadBalancer"],
}
URLS = {
    "publicUrl": r"^(https?://[^\s/?#@]+)?$",
    "database.postgres.url": r"^(postgres(ql)?://[^\s]+)?$",
    "tracing.endpoint": r"^(https?://[^\s/?#@]+(/[^\s?#]*)?)?$",
}
NUMBER_OR_EMPTY = {"service.nodePort"}
CONFIG = {"config": "control-plane", "tunnel.server.config": "tunnel-server"}
FLAG = re.compile(r"^\| `--([\w.-]+)(?: ([^`]*))?` \| `([A-Z0-9_]+)`", re.M)
KEY_REFERENCE = {
    "type": ["object", "null"],
    "properties": {"name": {"type": ["string", "null"]}, "key": {"type": ["string", "null"]}},
    "additionalProperties": False,
}


def flags_of(daemon):
    """The variable of each flag of a daemon but those of Secrets, which are files, and of ports, which the pods name."""
    text = (ROOT / "docs" / "reference" / "configuration" / f"{daemon}.md").read_text()
    return {flag: variable for flag, kind, variable in FLAG.findall(text)
            if kind != "FILE" and not re.search(r"(^|[.-])port$", flag)}


def schema_of(name, default):
    if name in CONFIG:
        scalar = {"type": ["string", "number", "boolean", "null"]}
        return {"type": ["object", "null"], "properties": {flag: scalar for flag in flags_of(CONFIG[name])}, "additionalProperties": False}
    if name in WORDS:
        return {"enum": WORDS[name] + [None]}
    if name in NUMBER_OR_EMPTY:
        return {"anyOf": [{"type": ["integer", "null"]}, {"const": ""}]}
    if name.endswith("SecretKeyRef") or name.endswith("secretKeyRef"):
        return KEY_REFERENCE
    if default.startswith("[") or default.startswith("{") or "\n" in default or not default:
        return {"type": ["array" if default.startswith("[") else "object", "null"]}
    if default in ("true", "false"):
        return {"type": ["boolean", "null"]}
    if name == "tracing.ratio":
        return {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    if re.fullmatch(r"\d+", default):
        kinds = ["integer", "string", "null"] if name.endswith("maxUnavailable") else ["integer", "null"]
        return {"type": kinds, "minimum": 0 if name.endswith("nitialDelaySeconds") else 1}
    out = {"type": ["string", "null"]}
    if name in URLS:
        out["pattern"] = URLS[name]
    return out


def schema(keys):
    root = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart gitops-control-plane",
        "description": "Made by tests/chart/control_plane_values.py.",
        "type": "object",
        "properties": {},
        # Helm gives every chart these, and a chart that has this one as a part its switches.
        "additionalProperties": False,
    }
    for key in keys:
        if not key.default and not key.meaning:
            continue
        node = root
        for part in key.path[:-1]:
            below = node["properties"].setdefault(part, {})
            below.setdefault("type", ["object", "null"])
            below.setdefault("properties", {})
            below.setdefault("additionalProperties", False)
            node = below
        own = schema_of(key.name(), key.default)
        has_parts = any(other.path[: len(key.path)] == key.path and other is not key for other in keys)
        if has_parts:
            own = {"type": ["object", "null"], "properties": {}, "additionalProperties": False}
        node["properties"][key.path[-1]] = {"description": key.meaning, **own}
    for name in ("global", "enabled", "tags"):
        root["properties"].setdefault(name, {})
    return json.dumps(root, indent=2) + "\n"


def page(keys):
    text = PAGE + "| Key | Default | Meaning |\n|---|---|---|\n"
    for key in keys:
        has_parts = any(other.path[: len(key.path)] == key.path and other is not key for other in keys)
        if has_parts and not key.default:
            continue
        text += f"| `{key.name()}` | {chart_values.default_cell(key)} | {key.meaning.replace('|', chr(92) + '|')} |\n"
    return text


def main():
    values = (CHART / "values.yaml").read_text()
    keys, mistakes = chart_values.read_values(values)
    lines = [line for line in values.splitlines() if line.strip() and not line.strip().startswith("#")]
    made = {
        ROOT / "docs" / "reference" / "values" / "control-plane.md": page(keys),
        CHART / "values.schema.json": schema(keys),
        CHART / "files" / "defaults.yaml": "# Made by tests/chart/control_plane_values.py from values.yaml.\n"
        + "\n".join(lines) + "\n",
        CHART / "files" / "flags.json": json.dumps({daemon: flags_of(daemon) for daemon in CONFIG.values()}, indent=2) + "\n",
        CHART / "files" / "alerts.yaml": (ROOT / "apps/control-plane/monitoring/alerts.yaml").read_text(),
    }
    for path, text in made.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            mistakes.append(f"{path.relative_to(ROOT)} is stale: run tests/chart/control_plane_values.py")
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
