#!/usr/bin/env python3
"""Checks that the map in docs/architecture.md names every unit and that every library has a README.

usage: map.py ROOT

A unit is a .hpp/.cpp pair (or one of the two) under libs/ or apps/, but for main.cpp and the *_impl.cpp that
compile a header-only library. The map's entry for a folder starts
with the folder's path; an indented name with a slash is a folder in the one above. The unit's
name must stand, as a word, in the entry of its folder.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()


def entries() -> dict[str, str]:
    """Folder -> the text of its entry in the map."""
    page = (ROOT / "docs/architecture.md").read_text()
    block = re.search(r"^## Map\n```\n(.*?)^```", page, re.M | re.S)
    found: dict[str, str] = {}
    top = folder = ""
    for line in block.group(1).splitlines() if block else []:
        if match := re.match(r"([\w-]+(?:/[\w-]+)+/?)(?:\s|$)", line):
            top = folder = match.group(1).rstrip("/")
        elif match := re.match(r" {1,4}([\w-]+)/(?:\s|$)", line):
            folder = f"{top}/{match.group(1)}"
        elif not line.startswith(" "):
            folder = ""
        found[folder] = found.get(folder, "") + "\n" + line
    return found


def main() -> int:
    found, known, units = [], entries(), set()
    for base in ("libs", "apps"):
        for path in (ROOT / base).rglob("*.[ch]pp"):
            if path.name != "main.cpp" and not path.stem.endswith("_impl"):
                units.add((path.parent.relative_to(ROOT).as_posix(), path.stem))
    for folder, unit in sorted(units):
        if folder not in known:
            found.append(f"{folder}: no entry in the map")
        elif not re.search(rf"\b{unit}\b", known[folder]):
            found.append(f"{folder}/{unit}: missing in the entry of its folder")
    for folder in sorted({folder for folder, _ in units if folder.startswith("libs/")}):
        if not (ROOT / folder / "README.md").exists():
            found.append(f"{folder}: no README.md")
    for line in dict.fromkeys(found):
        print(f"docs/architecture.md: {line}" if "README" not in line else line)
    print(f"{len(units)} units, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
