#!/usr/bin/env python3
"""Gives the chart a wrong value for each rule about values, and expects an error that names the key and says what is wrong.

usage: wrong_values.py HELM VALUES_FILE

The rules are those of values.schema.json, which Helm checks, and of files/value-formats.json, which templates check. VALUES_FILE
holds values that are right. As many wrong values as do not get in each other's way are given at once, since an error names all of
them. Prints how many rules were tried, and each that was not explained.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CHART = pathlib.Path(__file__).resolve().parents[2] / "charts" / "gitops-runtime"
SAMPLES = {"string": "a", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}
WRONG_TYPES = [("string", "text"), ("array", [1]), ("object", {"a": 1}), ("boolean", True)]
UNKNOWN = "noSuchKey"


class Items(list):
    """A list that was made on the way to a rule's value, and takes those of others."""


class Keys(dict):
    """The same for a map."""


class Rule:
    def __init__(self, path, value, messages):
        self.path = path  # keys; "[]" for the first item of a list
        self.value = value
        self.messages = messages  # all of which the error must contain


def types_of(node):
    found = node.get("type", [])
    return [found] if isinstance(found, str) else found


def at(path):
    return "at '" + "".join("/" + ("0" if step == "[]" else step.replace("~", "~0").replace("/", "~1")) for step in path) + "': "


def schema_rules(node, path):
    """The rules of a schema's node and of all below it."""
    place = at(path)
    types = types_of(node)
    if types and path:
        allowed = set(types) | ({"integer"} if "number" in types else set())
        name, wrong = next((name, value) for name, value in WRONG_TYPES if name not in allowed)
        yield Rule(path, wrong, [f"{place}got {name}, want ", *types])
    if "enum" in node:
        choices = [json.dumps(one).strip('"') for one in node["enum"] if one is not None]
        yield Rule(path, "no-such-choice", [f"{place}value must be ", *choices])
    if "minimum" in node:
        yield Rule(path, node["minimum"] - 1, [f"{place}minimum: got ", ", want "])
    if "maximum" in node:
        yield Rule(path, node["maximum"] + 1, [f"{place}maximum: got ", ", want "])
    if "minLength" in node:
        yield Rule(path, "", [f"{place}minLength: got 0, want {node['minLength']}"])
    if "maxLength" in node:
        longest = node["maxLength"]
        yield Rule(path, "a" * (longest + 1), [f"{place}maxLength: got {longest + 1}, want {longest}"])
    if node.get("minItems"):
        yield Rule(path, [], [f"{place}minItems: got 0, want {node['minItems']}"])
    if "maxItems" in node:
        many = [sample(node.get("items", {}))] * (node["maxItems"] + 1)
        yield Rule(path, many, [f"{place}maxItems: got {len(many)}, want {node['maxItems']}"])
    if node.get("additionalProperties") is False:
        yield Rule(path + [UNKNOWN], 1, [f"{place}additional properties '{UNKNOWN}' not allowed"])
    for key in node.get("required", []):
        if path and path[-1] == "[]":
            whole = sample(node)
            whole.pop(key)
            yield Rule(path, whole, [f"{place}missing propert", f"'{key}'"])
        else:
            yield Rule(path + [key], None, [f"{place}missing propert", f"'{key}'"])
    for key, child in node.get("properties", {}).items():
        yield from schema_rules(child, path + [key])
    if isinstance(node.get("additionalProperties"), dict):
        yield from schema_rules(node["additionalProperties"], path + ["a"])
    if isinstance(node.get("items"), dict):
        yield from schema_rules(node["items"], path + ["[]"])


def sample(node):
    """A value that the node accepts."""
    if "enum" in node:
        return node["enum"][0]
    if "anyOf" in node:
        return sample(node["anyOf"][0])
    kind = (types_of(node) or ["string"])[0]
    if kind == "object":
        return {key: sample(node.get("properties", {}).get(key, {})) for key in node.get("required", [])}
    return max(1, node.get("minimum", 1)) if kind in ("integer", "number") else SAMPLES[kind]


def node_at(node, path):
    for step in path:
        if step == "[]":
            node = node.get("items", {})
        elif step in node.get("properties", {}):
            node = node["properties"][step]
        else:
            more = node.get("additionalProperties", {})
            node = more if isinstance(more, dict) else {}
    return node


def format_rules(formats, schema):
    """For each form one text that has not got it, and one that is too long; for a text that looks like a number that number; for a
    reference to a Secret one without a name."""
    for form in formats:
        shown = ".".join(f'"{step}"' if "." in step else step for step in form["path"])
        if form.get("reference"):
            yield Rule(form["path"], {"name": "", "key": "k"}, [f"{shown} must have both name and key"])
            continue
        if form["quote"]:
            yield Rule(form["path"], 83, [f"{shown}: 83 is a number, ", "; quote it in the values file"])
        wrong = [next(text for text in ["!", " ", "\u00e9", ""] if not re.search(form["pattern"], text))]
        too_long = "a" * (form["maxLength"] + 1)
        if form["maxLength"] and re.search(form["pattern"], too_long):
            wrong.append(too_long)
        for text in wrong:
            path, value, shown = [], text, ""
            for step in form["path"]:
                if step == "{keys}":
                    path.append(text)
                    value = sample(node_at(schema, path))
                elif step == "[]":
                    path.append("[]")
                    shown += "[0]"
                else:
                    key = "a" if step == "{}" else step
                    path.append(key)
                    quoted = f'"{key}"' if "." in key else key
                    shown += f".{quoted}" if shown else quoted
            if value is text and "string" not in (types_of(node_at(schema, path)) or ["string"]):
                continue  # of no text; its numbers have the form
            yield Rule(path, value, [f'{shown}: "{text[:80]}" is not {form["form"]}'])


def put(values, path, value, schema):
    """Adds the value to the values; False when another one is in the way."""
    places = [values]
    for i, step in enumerate(path):
        here, last = places[-1], i + 1 == len(path)
        if step == "[]":
            if last:
                if here:
                    return False
                here.append(value)
                return True
            if not here:
                whole = sample(node_at(schema, path[: i + 1]))
                here.append(Keys(whole) if isinstance(whole, dict) else Keys())
            places.append(here[0])
        elif last:
            # What makes an item of a list right may be replaced.
            filled = "[]" in path and step in here and here[step] == sample(node_at(schema, path))
            if step in here and not filled:
                return False
            here[step] = value
            return True
        else:
            places.append(here.setdefault(step, Items() if path[i + 1] == "[]" else Keys()))
        if not isinstance(places[-1], Items if path[i + 1] == "[]" else Keys):
            return False
    return False


def tried(rules, schema):
    """Sets of values, each with its rules, so that every rule is in one of them."""
    left = list(rules)
    while left:
        values, here, later = Keys(), [], []
        for rule in left:
            trial = copy.deepcopy(values)
            if put(trial, rule.path, rule.value, schema):
                values = trial
                here.append(rule)
            else:
                later.append(rule)
        if not here:
            raise RuntimeError(f"no place for {later[0].path}")
        yield values, here
        left = later


def check(helm, right, rules, schema):
    unexplained, sets = [], 0
    for values, here in tried(rules, schema):
        sets += 1
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values, file)
            file.flush()
            done = subprocess.run([helm, "template", "rt", CHART, "-n", "gitops", "-f", right, "-f", file.name],
                                  capture_output=True, text=True)
        lines = done.stderr.splitlines() if done.returncode else []
        for rule in here:
            if not any(all(message in line for message in rule.messages) for line in lines):
                unexplained.append((rule, values))
    return sets, unexplained


def main():
    helm, right = sys.argv[1:]
    schema = json.loads((CHART / "values.schema.json").read_text())
    formats = json.loads((CHART / "files" / "value-formats.json").read_text())
    failures = 0
    for name, rules in (("schema", list(schema_rules(schema, []))), ("forms", list(format_rules(formats, schema)))):
        sets, unexplained = check(helm, right, rules, schema)
        for rule, _ in unexplained:
            print(f"not explained: {'.'.join(rule.path)} = {json.dumps(rule.value)[:80]}; expected: {' '.join(rule.messages)}")
        print(f"{name}: {len(rules)} rules in {sets} sets of values, {len(rules) - len(unexplained)} explained")
        failures += len(unexplained) + (0 if rules else 1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
