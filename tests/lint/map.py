#!/usr/bin/env python3
"""Checks that every unit is named once, in the README of its app or library.

usage: map.py ROOT

A unit is a .hpp/.cpp pair (or one of the two) under libs/ or apps/, but for main.cpp and the *_impl.cpp that
compile a header-only library. The README of an app (apps/NAME) or a library (libs/NAME, libs/common/NAME) has a
section "## Units". There each unit stands once in backticks, without its ending: units of a subfolder in the list
item that begins with the folder's name ("- `ledger/`: ..."), the others outside of such items. Nothing but units
and folders stands in backticks there. Every app has a README, and every library has one.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()


def home_of(folder: str) -> str:
    """The folder with the README that names the units of `folder`."""
    return "/".join(folder.split("/")[: 3 if folder.startswith("libs/common/") else 2])


def items(readme: pathlib.Path) -> dict[str, list[str]] | None:
    """Subfolder ("" for the README's own folder) -> the names in its item; None without the section."""
    section = re.search(r"^## Units\n(.*?)(?=^## |\Z)", readme.read_text(), re.M | re.S)
    if not section:
        return None
    named: dict[str, list[str]] = {"": []}
    folder = ""
    for line in section.group(1).splitlines():
        if match := re.match(r"- `([\w/-]+)/`", line):
            folder = match.group(1)
            line = line[match.end():]
            if folder in named:
                named[folder].append(folder + "/")  # a second item: reported as no unit
            named.setdefault(folder, [])
        elif not line.startswith(" "):
            folder = ""
        named[folder] += re.findall(r"`([^`]+)`", line)
    return named


def check_readme(home: str, units: dict[str, set[str]]) -> list[str]:
    """What is wrong with the README of `home`, whose units are given by subfolder."""
    readme = f"{home}/README.md"
    if not (ROOT / readme).exists():
        return [f"{readme}: missing; write it with a section \"## Units\" that names the units of {home}"]
    named = items(ROOT / readme)
    if named is None:
        return [f"{readme}: add a section \"## Units\" that names each unit of {home} in backticks"]
    found = []
    for folder in sorted(units):
        place = f"the list item \"- `{folder}/`\" of \"## Units\"" if folder else "\"## Units\""
        for unit in sorted(units[folder]):
            times = named.get(folder, []).count(unit)
            if times == 0:
                found.append(f"{readme}: {'/'.join(filter(None, (home, folder, unit)))} is missing; "
                             f"name it as `{unit}` in {place}")
            elif times > 1:
                found.append(f"{readme}: `{unit}` stands {times} times in {place}; name it once")
    for folder, names in named.items():
        for name in dict.fromkeys(names):
            if name not in units.get(folder, set()):
                found.append(f"{readme}: `{name}` is no unit of {'/'.join(filter(None, (home, folder)))}; "
                             "remove it from \"## Units\", or write it without backticks")
        if folder and folder not in units:
            found.append(f"{readme}: \"- `{folder}/`\" is no folder with units of {home}")
    return found


def main() -> int:
    homes: dict[str, dict[str, set[str]]] = {}
    for base in ("libs", "apps"):
        for path in (ROOT / base).rglob("*.[ch]pp"):
            if path.name == "main.cpp" or path.stem.endswith("_impl"):
                continue
            folder = path.parent.relative_to(ROOT).as_posix()
            home = home_of(folder)
            homes.setdefault(home, {}).setdefault(folder.removeprefix(home).lstrip("/"), set()).add(path.stem)
    found = [line for home in sorted(homes) for line in check_readme(home, homes[home])]
    for line in found:
        print(line)
    count = sum(len(names) for folders in homes.values() for names in folders.values())
    print(f"{count} units in {len(homes)} READMEs, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
