#!/usr/bin/env python3
"""Makes the packages of the charts.

usage: package.py --out DIR [--plain] [--repository URL] [--untested NAME=VERSION]... [--version TEXT] [--helm PROGRAM]
       package.py --list

  gitops-control-plane-VERSION.tgz       the chart of the control plane
  gitops-runtime-VERSION.tgz             the chart of a runtime, as it is in the tree
  gitops-runtime-with-argo-VERSION.tgz   the same with the charts below inside, each installed with NAME.enabled=true only; not
                                         made with --plain

The charts come from the public Helm repositories of their projects, or all of them from --repository: the URL of a Helm repository, or
a folder with the packages NAME-VERSION.tgz. Their programs are those of the test suite (tests/peers/*/go.mod); --list prints them. No
chart brings some of these versions along: there the package sets the tag of the image.

--untested takes another version of a chart, with the programs that it brings along. The package then says what was not tested: in an
annotation of its Chart.yaml, and after each installation.

--version gives charts and images another version than that of the tree, for tests.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CHARTS = pathlib.Path(__file__).resolve().parent
ARGO = "https://argoproj.github.io/argo-helm"


@dataclasses.dataclass
class Part:
    name: str
    version: str  # of the chart
    program: str  # its version
    repository: str = ARGO
    tag: tuple = ()  # the key below NAME that sets the image's tag, where the chart brings another version along
    tested: bool = True


PARTS = [
    Part("argo-cd", "9.3.7", "v3.2.11", tag=("global", "image", "tag")),
    Part("argo-workflows", "0.46.1", "v3.7.4"),
    Part("argo-rollouts", "2.41.0", "v1.10.1", tag=("controller", "image", "tag")),
    Part("argo-events", "2.4.22", "v1.9.10"),
    Part("sealed-secrets", "2.16.1", "v0.27.1", "https://bitnami-labs.github.io/sealed-secrets"),
]


class Refused(Exception):
    pass


def helm(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"helm {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def fetch(program, part, repository, folder):
    package = pathlib.Path(repository) / f"{part.name}-{part.version}.tgz"
    if package.exists():
        shutil.copy(package, folder)
    elif "://" in repository:
        helm(program, "pull", part.name, "--version", part.version, "--repo", repository, "--destination", folder)
    else:
        raise Refused(f"there is no {package}")


def program_of(program, package):
    """The version of the programs that a chart brings along."""
    found = re.search(r"^appVersion: *[\"']?([^\"'\s]+)", helm(program, "show", "chart", package), re.M)
    return found[1] if found else "unknown"


def with_tag(values, part):
    """The chart's values with the tag of the part's image."""
    lines = "".join(f"{'  ' * (depth + 1)}{key}:\n" for depth, key in enumerate(part.tag[:-1]))
    lines += f"{'  ' * len(part.tag)}# The version that was tested.\n{'  ' * len(part.tag)}{part.tag[-1]}: {part.program}\n"
    before, key, after = values.partition(f"\n{part.name}:\n")
    if not key:
        raise Refused(f"values.yaml has no {part.name}")
    return before + key + lines + after


def wanted(choices):
    """The parts, with the versions that were chosen in place of tested ones."""
    parts = {part.name: dataclasses.replace(part) for part in PARTS}
    for choice in choices:
        name, _, version = choice.partition("=")
        if name not in parts or not version:
            raise Refused(f"--untested {choice}: write NAME=VERSION, with one of {', '.join(parts)}")
        parts[name] = dataclasses.replace(parts[name], version=version, tested=False)
    return list(parts.values())


def fill(chart, parts, arguments):
    """Puts the parts into the copy of the chart."""
    values = (chart / "values.yaml").read_text()
    text = "dependencies:\n"
    untested = []
    for part in parts:
        fetch(arguments.helm, part, arguments.repository or part.repository, chart / "charts")
        brought = program_of(arguments.helm, chart / "charts" / f"{part.name}-{part.version}.tgz")
        if not part.tested:
            untested.append(f"{part.name} {part.version} ({brought})")
            print(f"package: {untested[-1]} was not tested; the tests run {part.program}", file=sys.stderr)
        elif part.tag:
            values = with_tag(values, part)
        elif brought.removeprefix("v") != part.program.removeprefix("v"):
            raise Refused(f"{part.name} {part.version} brings {brought} along; {part.program} was tested")
        text += (f"  - {{name: {part.name}, version: {part.version}, condition: {part.name}.enabled, "
                 f"repository: {part.repository!r}}}\n")
    (chart / "values.yaml").write_text(values)
    head = (chart / "Chart.yaml").read_text().replace("name: gitops-runtime\n", "name: gitops-runtime-with-argo\n", 1)
    if untested:
        head = head.replace("annotations:\n", f"annotations:\n  gitops-runtime/untested: {', '.join(untested)!r}\n", 1)
    (chart / "Chart.yaml").write_text(head + text)


def copy_of(name, folder, version):
    """A copy of a chart of the tree, with another version if one is given."""
    chart = folder / name
    shutil.copytree(CHARTS / name, chart)
    if version:
        head = chart / "Chart.yaml"
        own = re.search(r"^version: (\S+)$", head.read_text(), re.M)[1]
        head.write_text(re.sub(rf"((?:[vV]ersion: |:))({re.escape(own)})$", rf"\g<1>{version}", head.read_text(), flags=re.M))
    return chart


def find_helm():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    peers = pathlib.Path(os.environ.get("GITOPS_PEERS_DIR") or cache / "gitops-runtime/peers")
    return str(peers / "bin/helm") if (peers / "bin/helm").exists() else "helm"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--repository")
    parser.add_argument("--version")
    parser.add_argument("--untested", action="append", default=[], metavar="NAME=VERSION")
    parser.add_argument("--helm", default=find_helm())
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        for part in PARTS:
            print(part.name, part.version, part.program)
        return 0
    if not arguments.out:
        parser.error("--out is required")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gitops-chart-") as folder:
        folder = pathlib.Path(folder)
        try:
            for name in ("gitops-control-plane", "gitops-runtime"):
                chart = copy_of(name, folder, arguments.version)
                print(helm(arguments.helm, "package", chart, "--destination", arguments.out).strip())
            if not arguments.plain:
                chart = chart.rename(folder / "gitops-runtime-with-argo")
                (chart / "charts").mkdir()
                fill(chart, wanted(arguments.untested), arguments)
                print(helm(arguments.helm, "package", chart, "--destination", arguments.out).strip())
        except Refused as refused:
            print(f"package: {refused}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
