#!/usr/bin/env python3
"""Which test binaries a command needs, and what they reported.

usage: suites.py select LIST LABEL [TEXT]
         prints the binaries of a tier, one a line; with TEXT only those with a test that matches
         it, and before them, on the first line, the filter for gtest
       suites.py count RESULTS NAME...
         reads RESULTS/NAME.xml; prints "NAME TOTAL FAILED SKIPPED" for each report that is there

LIST is suites.txt of a build folder, which CMake writes: "name|labels|sources" a line. TEXT matches a
test when its full name contains it, or the name of its source file does; case does not matter.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)


def filters_of(source: pathlib.Path, text: str) -> list[str]:
    """gtest patterns for the tests of a source that match."""
    content = source.read_text()
    whole_file = text in source.stem.removesuffix("_test").lower()
    found = []
    for match in TEST.finditer(content):
        suite, case = match.groups()
        if not whole_file and text not in f"{suite}.{case}".lower():
            continue
        found.append({"TEST_P": f"*/{suite}.{case}/*", "TYPED_TEST": f"{suite}/*.{case}",
                      "TYPED_TEST_P": f"*/{suite}/*.{case}"}.get(match.group(0).split("(")[0], f"{suite}.{case}"))
    return found


def value_names(content: str) -> list[str]:
    """What may name a value of TEST_P: a literal in CamelCase, as the lists of cases have them, or
    one beside the instantiation."""
    beside = "".join(re.findall(r"^INSTANTIATE_TEST_SUITE_P.*?;$", content, re.M | re.S))
    return re.findall(r'"([A-Z][a-z]+[A-Z]\w+)"', content) + [
        name.replace("-", "_") for name in re.findall(r'"([\w-]+)"', beside)]


def select(list_file: str, label: str, text: str) -> None:
    names, patterns = [], []
    for line in pathlib.Path(list_file).read_text().splitlines():
        name, labels, sources = line.split("|")
        if label not in labels.split(","):
            continue
        paths = [pathlib.Path(source) for source in sources.split(",")]
        found = [pattern for path in paths for pattern in filters_of(path, text)]
        contents = [path.read_text() for path in paths]
        if any("TEST_P(" in content for content in contents):
            found += [f"*/*{name}*" for content in contents for name in value_names(content) if text in name.lower()]
        if not text or found:
            names.append(name)
            patterns += found
    if text:
        print(":".join(dict.fromkeys(patterns)))
    for name in names:
        print(name)


def count(results: str, names: list[str]) -> None:
    for name in names:
        report = pathlib.Path(results) / f"{name}.xml"
        if not report.exists():
            continue
        total = failed = skipped = 0
        for case in tree.parse(report).getroot().iter("testcase"):
            if case.get("status") != "run" and case.get("result") != "skipped":
                continue
            total += 1
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif case.get("result") == "skipped" or case.find("skipped") is not None:
                skipped += 1
        print(name, total, failed, skipped)


if sys.argv[1] == "select":
    select(sys.argv[2], sys.argv[3], (sys.argv[4:] or [""])[0].lower())
else:
    count(sys.argv[2], sys.argv[3:])
