#!/usr/bin/env python3
"""Starts the programs of built images as a node would: from the image's root and nothing else.

usage: start.py --out DIR [NAME...]
       start.py --out DIR --enter NAME --root FOLDER [--hostname NAME] -- PROGRAM [ARGUMENT...]

For each image of OUT/layout its layers are unpacked; the programs run in that folder with chroot, read-only but for /tmp, as a user
that the image does not know, in the group root, as on OpenShift. Each program must print its help; each daemon must answer
/healthz, and the time that takes is printed. Needs root, or a kernel that lets users have namespaces; exit code 77 where neither
is given, as in most containers.

With --enter this process becomes PROGRAM in the same way, in the foreground, with its own environment over that of the image and
with the /tmp of the machine. The image is unpacked into FOLDER unless something is there; a FOLDER/etc/hosts stays.
"""
import argparse
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

STRANGER = 1000730000  # a user id as OpenShift hands them out
ALL = "gitops-runtime"
PROGRAMS = ["event-reporter", "request-router", "tunnel-client", "tunnel-server", "app-proxy", "control-plane", "gitopsctl"]
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: gitops}}]
current-context: x
"""
# What each daemon needs to start. Nothing listens at these addresses: a daemon starts without its peers.
NOWHERE = "http://127.0.0.1:1"
ENVIRONMENT = {
    "event-reporter": {"KUBECONFIG": "/tmp/kubeconfig", "CODEFRESH_URL": NOWHERE, "CODEFRESH_TOKEN": "x",
                       "ARGOCD_SERVER": "127.0.0.1:1", "ARGOCD_TOKEN": "x", "LISTEN_PORT": "0"},
    "request-router": {"POD_NAMESPACE": "gitops", "LISTEN_PORT": "0"},
    "tunnel-client": {"TUNNEL_SERVER_HOST": "127.0.0.1", "TUNNEL_SERVER_PORT": "1", "TUNNEL_SUBDOMAIN_PREFIX": "a",
                      "TUNNEL_FORWARD_TO_HOST": "127.0.0.1", "TUNNEL_FORWARD_TO_PORT": "1", "AUTHORIZATION": "x"},
    "tunnel-server": {"SUBDOMAIN_HOST": "tunnels.example.test", "TUNNEL_SERVER_TOKEN": "x", "LISTEN_PORT": "0",
                      "TUNNEL_PORT": "0"},
    "app-proxy": {"KUBECONFIG": "/tmp/kubeconfig", "CF_HOST": NOWHERE, "RUNTIME_TOKEN": "x", "RUNTIME_NAME": "a",
                  "NAMESPACE": "gitops", "PORT": "0", "REPOS_DIR": "/tmp/repos"},
    "control-plane": {"DATABASE_PATH": "/tmp/control-plane.db", "PORT": "0"},
}


def unpack(layout, manifest, root):
    for layer in manifest["layers"]:
        blob = layout / "blobs" / "sha256" / layer["digest"].split(":")[1]
        content = subprocess.run(["zstd", "-dqc", str(blob)], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(root)
    root.chmod(0o755)  # a user that the image does not know has to enter it, whatever the umask here


def namespaces():
    return ["unshare", "--mount", "--uts"] + ([] if os.geteuid() == 0 else ["--map-root-user"])


def why_not_here():
    """Why nothing can be started on this machine; empty where it can."""
    done = subprocess.run([*namespaces(), "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip() or f"unshare ended with {done.returncode}"


def command(root, scratch, arguments, hostname=None):
    """Runs arguments in root: its own mounts, a read-only root, /dev and /proc of here, and scratch as /tmp."""
    script = (('echo "$4" >/proc/sys/kernel/hostname && ' if hostname else '') +
              'mount --bind "$1" "$1" && mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" && '
              'mount --bind "$2" "$1/tmp" && mount -o remount,bind,ro "$1" && '
              'root=$1 user=$3 && shift 4 && exec chroot --userspec="$user:0" "$root" "$@"')
    user = STRANGER if os.geteuid() == 0 else 0  # a namespace of one's own has one user only
    return [*namespaces(), "sh", "-c", script, "sh", str(root), str(scratch), str(user), hostname or "", *arguments]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_healthy(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2).status == 200
    except (urllib.error.URLError, OSError):
        return False


def help_of(program, root, scratch, config):
    done = subprocess.run(command(root, scratch, [f"/usr/bin/{program}", "--help"]), env=config, capture_output=True, text=True)
    if done.returncode != 0 or program not in done.stdout:
        raise RuntimeError(f"{program} --help: {done.stdout}{done.stderr}")


def serve(program, root, scratch, config):
    """Milliseconds from the start until /healthz answers."""
    port = free_port()
    environment = {**config, **ENVIRONMENT[program], "ADMIN_PORT": str(port), "METRICS_LISTEN_ADDRESS": "127.0.0.1",
                   "LISTEN_ADDRESS": "127.0.0.1"}
    begin = time.monotonic()
    with open(scratch / f"{program}.log", "w+") as log:
        process = subprocess.Popen(command(root, scratch, [f"/usr/bin/{program}"]), env=environment, stdout=log, stderr=log)
        try:
            while not is_healthy(port):
                if process.poll() is not None or time.monotonic() - begin > 30:
                    log.seek(0)
                    raise RuntimeError(f"{program} does not answer /healthz: {log.read()}")
                time.sleep(0.002)
            return (time.monotonic() - begin) * 1000
        finally:
            process.terminate()
            process.wait(30)


def images(layout):
    """(name, manifest, environment) of each image."""
    def blob(digest):
        return json.loads((layout / "blobs" / "sha256" / digest.split(":")[1]).read_text())

    for entry in json.loads((layout / "index.json").read_text())["manifests"]:
        manifest = blob(entry["digest"])
        environment = dict(line.split("=", 1) for line in blob(manifest["config"]["digest"])["config"]["Env"])
        environment["PATH"] += ":/usr/sbin:/bin:/sbin"  # for the commands that enter the root
        yield entry["annotations"]["org.opencontainers.image.ref.name"], manifest, environment


def enter(layout, arguments):
    for name, manifest, environment in images(layout):
        if name == arguments.enter:
            if not (arguments.root / "usr").exists():
                unpack(layout, manifest, arguments.root)
            become = command(arguments.root, "/tmp", arguments.names, arguments.hostname)
            os.execvpe(become[0], become, {**environment, **os.environ, "PATH": environment["PATH"]})
    sys.exit(f"no image {arguments.enter} in {layout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--enter")
    parser.add_argument("--root", type=pathlib.Path)
    parser.add_argument("--hostname")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    layout = arguments.out / "layout"
    if arguments.enter:
        enter(layout, arguments)
    reason = why_not_here()
    if reason:
        print(f"image: no program was started: {reason}", file=sys.stderr)
        return 77
    failures = 0
    for name, manifest, config in images(layout):
        if arguments.names and name not in arguments.names:
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gitops-image-"))
        try:
            root, scratch = folder / "root", folder / "scratch"
            root.mkdir()
            scratch.mkdir(mode=0o777)
            scratch.chmod(0o777)
            (scratch / "kubeconfig").write_text(KUBECONFIG)
            unpack(layout, manifest, root)
            for program in PROGRAMS if name == ALL else [name]:
                help_of(program, root, scratch, config)
                if program in ENVIRONMENT:
                    print(f"{name}: {program} answers /healthz after {serve(program, root, scratch, config):.0f} ms")
                else:
                    print(f"{name}: {program} starts")
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failures += 1
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
