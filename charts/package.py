#!/usr/bin/env python3
"""Makes the packages of the chart.

usage: package.py --out DIR [--repository URL] [--helm PROGRAM]

  gitops-runtime-VERSION.tgz             the chart as it is in the tree
  gitops-runtime-with-argo-VERSION.tgz   the same with the charts below inside, each installed with NAME.enabled=true only

The charts come from the public Helm repositories of their projects, or all of them from --repository: the URL of a Helm repository, or
a folder with the packages NAME-VERSION.tgz.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHART = pathlib.Path(__file__).resolve().parent / "gitops-runtime"
ARGO = "https://argoproj.github.io/argo-helm"
DEPENDENCIES = [
    ("argo-cd", "10.1.1", ARGO),
    ("argo-workflows", "1.0.18", ARGO),
    ("argo-rollouts", "2.41.0", ARGO),
    ("argo-events", "2.4.22", ARGO),
    ("sealed-secrets", "2.18.0", "https://bitnami-labs.github.io/sealed-secrets"),
]


class Refused(Exception):
    pass


def helm(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"helm {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def fetch(program, name, version, repository, folder):
    package = pathlib.Path(repository) / f"{name}-{version}.tgz"
    if package.exists():
        shutil.copy(package, folder)
    elif "://" in repository:
        helm(program, "pull", name, "--version", version, "--repo", repository, "--destination", folder)
    else:
        raise Refused(f"there is no {package}")


def find_helm():
    built = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gitops-runtime/peers/bin/helm"
    return str(built) if built.exists() else "helm"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--repository")
    parser.add_argument("--helm", default=find_helm())
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gitops-chart-") as folder:
        chart = pathlib.Path(folder) / "gitops-runtime-with-argo"
        shutil.copytree(CHART, chart)
        text = (chart / "Chart.yaml").read_text().replace("name: gitops-runtime\n", "name: gitops-runtime-with-argo\n", 1)
        text += "dependencies:\n"
        (chart / "charts").mkdir()
        try:
            print(helm(arguments.helm, "package", CHART, "--destination", arguments.out).strip())
            for name, version, repository in DEPENDENCIES:
                fetch(arguments.helm, name, version, arguments.repository or repository, chart / "charts")
                text += f"  - {{name: {name}, version: {version}, condition: {name}.enabled, repository: {repository!r}}}\n"
            (chart / "Chart.yaml").write_text(text)
            print(helm(arguments.helm, "package", chart, "--destination", arguments.out).strip())
        except Refused as refused:
            print(f"package: {refused}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
