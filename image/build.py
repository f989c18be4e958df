#!/usr/bin/env python3
"""Builds the container images as an OCI layout, without a container engine.

usage: build.py --bin DIR --out DIR [--revision TEXT] [--epoch SECONDS] [--level N] [--unhardened] [--strict] [NAME...]
       build.py --list

NAME is a program (event-reporter, ...) or gitops-runtime, the image for all of them; all images by default. gitops-runtime
holds one program that is all seven, and a link to it by the name of each. An image holds its program, the closure of its shared
libraries, the certificate authorities of the machine, and nothing else: no shell, no package manager. Its layers, from the bottom:

  the libraries that all images need, and the authorities      the same in all images, so it is stored and pulled once
  the libraries that all images of one program need            not in gitops-runtime
  the other libraries of the image's program
  the program, stripped; its symbols go to OUT/symbols

Layers are compressed with zstd.

OUT/layout is the OCI layout, with an index entry "NAME" for each image; OUT/NAME.spdx.json its bill of materials, which is in
the image as well. The bytes depend on the programs without their symbols, on the Debian packages and on --epoch only: the same
commit gives the same digests, in whichever folder it is built. A program that lacks a hardening is refused, unless --unhardened is
given (for tests with debug builds). An image has limits, 20 MB, and 8 MB compressed. One that leaves less than 10 % of room below them
is made with a warning, and refused with --strict (for CI: who only wants to install it can't make it smaller). The limits of
images with the control plane are higher. The table that is printed has the room of each image.
--level is that of zstd, 19 by default.
"""
import argparse
import functools
import hashlib
import io
import json
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time

ALL = "gitops-runtime"
PROGRAMS = {
    "event-reporter": "Reports Applications, Rollouts and Workflows to the control plane",
    "request-router": "Entry point for webhooks, app-proxy and the workflows UI",
    "tunnel-client": "Opens the outbound tunnel",
    "tunnel-server": "Accepts tunnels and gives runtimes a host",
    "app-proxy": "Serves the user interface and the command line",
    "control-plane": "Takes the events of runtimes and serves the API of the platform",
    "gitopsctl": "Checks an installation",
}
USER = 65532
LIMITS = (20e6, 8e6)  # bytes of an image, and compressed
ROOM = 0.1  # part of a limit that an image leaves
LIMITS_WITH_CONTROL_PLANE = {"control-plane": (30e6, 11e6), ALL: (36e6, 14e6)}
# Debian packages whose code is within the programs: headers, and archives that are linked.
HEADERS = ["libboost1.81-dev", "libfmt-dev", "libspdlog-dev", "nlohmann-json3-dev"]
# Its licence asks for no copy beside a program, and the file with those of all its parts has 2 MB.
WITHOUT_LICENCE_FILE = {"libboost1.81-dev": "BSL-1.0"}
GIT = ["libgit2-dev", "libhttp-parser-dev", "libmbedtls-dev", "libpcre2-dev"]
EVERYWHERE = ["libdeflate-dev", "libyaml-cpp-dev", "zlib1g-dev"]
WITHIN = {"app-proxy": GIT,
          ALL: [*GIT, "libargon2-dev", "libsnappy-dev", "libsqlite3-dev", "libzstd-dev"]}
OURS = ["libldap-2.5.so.0"]
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LIBRARIES = pathlib.Path("/lib") / f"{platform.machine()}-linux-gnu"
OBJCOPY = "llvm-objcopy-19"


class Refused(Exception):
    pass


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# -- what a program needs --


def closure(program):
    """The shared libraries of a program, each as {path in the image: file here}. The loader is one of them.

    Those that we build, which lie in lib beside the program's folder, take the place of Debian's.
    """
    libraries = {}
    ours = program.resolve().parent.parent / "lib"
    for line in run("env", f"LD_LIBRARY_PATH={ours}", "ldd", str(program)).splitlines():
        found = re.match(r"\s*(\S+) => (/\S+) \(0x", line) or re.match(r"\s*(/\S+)() \(0x", line)
        if "not found" in line:
            raise Refused(f"{program.name}: {line.strip()}")
        if not found or found[1].startswith("linux-vdso"):
            continue
        here = pathlib.Path(found[2] or found[1])
        # Where the loader looks without a cache: it finds /lib/x86_64-linux-gnu by itself.
        path = LIBRARIES / here.name if here.parent == ours else here
        libraries[str(path)] = here.resolve()
    return libraries


def missing_hardening(program):
    """What a program that faces the network should have and lacks."""
    dynamic = run("readelf", "-dW", str(program))
    headers = run("readelf", "-hlW", str(program))
    symbols = run("readelf", "-W", "--dyn-syms", str(program))
    lacks = []
    if "DYN (" not in headers or not re.search(r"FLAGS_1.*\bPIE\b", dynamic):
        lacks.append("position-independent executable (-pie)")
    if "GNU_RELRO" not in headers:
        lacks.append("read-only relocations (-z relro)")
    if not re.search(r"\(FLAGS\).*\bBIND_NOW\b|\(BIND_NOW\)|\(FLAGS_1\).*\bNOW\b", dynamic):
        lacks.append("binding at the start (-z now)")
    if not re.search(r"GNU_STACK.* RW +0", headers):
        lacks.append("a stack that is not executable")
    if "__stack_chk_fail" not in symbols:
        lacks.append("stack protector (-fstack-protector-strong)")
    if not re.search(r"__\w+_chk@", symbols):
        lacks.append("checked calls of the C library (_FORTIFY_SOURCE)")
    if re.search(r"\((?:RPATH|RUNPATH)\)", dynamic):
        lacks.append("no search path of its own (RPATH)")
    return lacks


@functools.cache
def package_of(file):
    """(package, version, copyright file) of Debian, for a file here. None: no package owns it."""
    for path in (str(file), str(file).removeprefix("/usr")):
        found = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True)
        if found.returncode == 0:
            name = found.stdout.splitlines()[0].rsplit(": ", 1)[0].split(",")[0]
            version = run("dpkg-query", "-W", "-f=${Version}", name)
            return name.split(":")[0], version, pathlib.Path("/usr/share/doc") / name.split(":")[0] / "copyright"
    return None


# -- layers --


class Layer:
    """A tar archive whose bytes depend on its entries and the epoch only."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.entries = {}  # path: (mode, content or None for a folder, or a link's target as str)

    def add(self, path, content, mode=0o644):
        self.entries[path.strip("/")] = (mode, content)
        for parent in pathlib.PurePosixPath(path.strip("/")).parents:
            if str(parent) != ".":
                self.entries.setdefault(str(parent), (0o755, None))

    def folder(self, path, mode=0o755):
        self.add(path, None, mode)

    def link(self, path, target):
        self.add(path, target, 0o777)

    def pack(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in sorted(self.entries):
                mode, content = self.entries[path]
                info = tarfile.TarInfo(path)
                info.mtime, info.mode = self.epoch, mode
                if content is None:
                    info.type = tarfile.DIRTYPE
                    tar.addfile(info)
                elif isinstance(content, str):
                    info.type, info.linkname = tarfile.SYMTYPE, content
                    tar.addfile(info)
                else:
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return out.getvalue()


def add_library(layer, path, here):
    """A library under the name by which it is looked for. /lib and /lib64 are links into /usr, as in Debian."""
    layer.add(usr(path), here.read_bytes(), 0o755)


def usr(path):
    return path if path.startswith("/usr/") else "/usr" + path


def layer_of(epoch, libraries):
    layer = Layer(epoch)
    for path, here in libraries.items():
        add_library(layer, path, here)
    return layer


def base_layer(epoch, libraries):
    layer = layer_of(epoch, libraries)
    layer.link("/lib", "usr/lib")
    layer.link("/lib64", "usr/lib64")
    layer.link("/bin", "usr/bin")
    layer.add(str(AUTHORITIES), AUTHORITIES.read_bytes())
    layer.link("/usr/lib/ssl/cert.pem", str(AUTHORITIES))
    layer.add("/etc/passwd", f"root:x:0:0:root:/:/\nnonroot:x:{USER}:{USER}:nonroot:/:/\n".encode())
    layer.add("/etc/group", f"root:x:0:\nnonroot:x:{USER}:\n".encode())
    layer.add("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    for folder in ("/dev", "/proc", "/sys", "/var/lib"):
        layer.folder(folder)
    layer.folder("/tmp", 0o1777)
    return layer


def strip(program, symbols):
    """The program without symbols, which are kept as SYMBOLS/NAME.debug for debuggers.

    The linker's build id depends on the symbols, and they on the folder of the build. So both files get one that depends on the
    code only; by it debuggers find the symbols with SYMBOLS as a folder for them (gdb: set debug-file-directory).
    """
    symbols.mkdir(parents=True, exist_ok=True)
    section = ".note.gnu.build-id"
    debug, bare, note = (symbols / f"{program.name}.{ending}" for ending in ("debug", "stripped", "note"))
    run(OBJCOPY, "--strip-all", f"--remove-section={section}", str(program), str(bare))
    build_id = hashlib.sha1(bare.read_bytes()).digest()
    note.write_bytes(struct.pack("<III4s", 4, len(build_id), 3, b"GNU") + build_id)  # NT_GNU_BUILD_ID
    run(OBJCOPY, "--only-keep-debug", f"--update-section={section}={note}", str(program), str(debug))
    run(OBJCOPY, "--strip-all", f"--update-section={section}={note}", str(program), str(bare))
    link = symbols / ".build-id" / build_id.hex()[:2] / f"{build_id.hex()[2:]}.debug"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(pathlib.Path("..") / ".." / debug.name)
    content = bare.read_bytes()
    for file in (bare, note):
        file.unlink()
    return content


# -- bill of materials --


def spdx(name, version, epoch, program, libraries):
    """SPDX 2.3: the image's program, and the Debian packages of the libraries with their licences' files."""
    packages = {}
    for path, here in sorted(libraries.items()):
        owner = package_of(here)
        if owner is None and pathlib.Path(path).name in OURS:
            continue
        if owner is None:
            raise Refused(f"{here}: no Debian package owns it")
        packages.setdefault(owner, []).append(path)
    packages.setdefault(package_of(AUTHORITIES) or package_by_name("ca-certificates"), []).append(str(AUTHORITIES))
    for package in HEADERS + EVERYWHERE + WITHIN.get(name, []):
        packages.setdefault(package_by_name(package), []).append(f"/usr/bin/{name}")
    digest = hashlib.sha256(program)
    items = [{"SPDXID": "SPDXRef-image", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
              "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
              "filesAnalyzed": False}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")]
    for part in PROGRAMS if name == ALL else [name]:
        items.append({"SPDXID": f"SPDXRef-{part}", "name": part, "versionInfo": version,
                      "downloadLocation": "NOASSERTION", "licenseConcluded": "NOASSERTION",
                      "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "filesAnalyzed": False,
                      "checksums": [{"algorithm": "SHA256", "checksumValue": digest.hexdigest()}]})
        relations.append(("SPDXRef-image", "CONTAINS", f"SPDXRef-{part}"))
    for (package, release, licence), paths in sorted(packages.items()):
        identifier = "SPDXRef-deb-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)
        digest.update(f"{package}={release}".encode())
        items.append({"SPDXID": identifier, "name": package, "versionInfo": release,
                      "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "copyrightText": "NOASSERTION",
                      "licenseConcluded": "NOASSERTION",
                      **({"licenseDeclared": WITHOUT_LICENCE_FILE[package]} if package in WITHOUT_LICENCE_FILE else
                         {"licenseDeclared": "NOASSERTION", "licenseComments": f"See {licence}."}),
                      "comment": "Files: " + ", ".join(sorted(paths)),
                      "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                        "referenceLocator": f"pkg:deb/debian/{package}@{release}"}]})
        relations.append(("SPDXRef-image", "CONTAINS", identifier))
    document = spdx_document(f"{name}-{version}", f"{name}:{digest.hexdigest()}", epoch, items, relations)
    licences = {licence for package, _, licence in packages if package not in WITHOUT_LICENCE_FILE and licence.exists()}
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode(), licences


def spdx_document(name, identity, epoch, items, relations):
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"urn:gitops-runtime:{identity}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)), "creators": ["Tool: gitops-runtime-image"]},
        "packages": items,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }


def package_by_name(name):
    return name, run("dpkg-query", "-W", "-f=${Version}", name), pathlib.Path("/usr/share/doc") / name / "copyright"


# -- the OCI layout --


class Layout:
    def __init__(self, folder, level):
        self.folder = folder
        self.level = level
        self.packed = {}  # compressed layers by their content: several images share the lowest one
        self.manifests = []
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, content, media):
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(content)
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    def compressed(self, tar):
        if tar not in self.packed:
            # A window of 8 MB, which every reader accepts (RFC 8878, 3.1.1.1.2); one thread, for the same bytes each time.
            self.packed[tar] = subprocess.run(["zstd", f"-{self.level}", "--single-thread", f"--stream-size={len(tar)}", "-qc"],
                                              input=tar, check=True, capture_output=True).stdout
        return self.packed[tar]

    def add(self, name, config, layers, architecture, annotations):
        config["rootfs"] = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in layers]}
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.blob(as_json(config), "application/vnd.oci.image.config.v1+json"),
            "layers": [self.blob(self.compressed(tar), "application/vnd.oci.image.layer.v1.tar+zstd") for tar in layers],
            "annotations": annotations,
        }
        entry = self.blob(as_json(manifest), manifest["mediaType"])
        entry["platform"] = {"architecture": architecture, "os": "linux"}
        entry["annotations"] = {"org.opencontainers.image.ref.name": name}
        self.manifests.append(entry)
        return entry["digest"], sum(layer["size"] for layer in manifest["layers"])

    def close(self):
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": self.manifests}
        (self.folder / "index.json").write_bytes(as_json(index))


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def build(arguments):
    programs = {name: arguments.bin / name for name in [ALL, *PROGRAMS]}
    absent = [name for name, path in programs.items() if not path.exists()]
    if absent:
        raise Refused(f"not built in {arguments.bin}: {', '.join(absent)}")
    if not arguments.unhardened:
        lacks = {name: missing_hardening(path) for name, path in programs.items()}
        for name, missing in lacks.items():
            for one in missing:
                print(f"{name} lacks {one}", file=sys.stderr)
        if any(lacks.values()):
            raise Refused("programs that lack hardening are not put into images")
    if arguments.out.exists():
        shutil.rmtree(arguments.out)
    needs = {name: closure(path) for name, path in programs.items()}
    singles = {path: here for path, here in needs["gitopsctl"].items() if all(path in needs[name] for name in PROGRAMS)}
    everywhere = {path: here for path, here in singles.items() if path in needs[ALL]}
    base = base_layer(arguments.epoch, everywhere).pack()
    shared = layer_of(arguments.epoch, {path: here for path, here in singles.items() if path not in everywhere}).pack()
    version = arguments.version
    layout = Layout(arguments.out / "layout", arguments.level)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(arguments.epoch))
    architecture = ARCHITECTURES[platform.machine()]
    rows = []
    for name in arguments.names or [ALL, *PROGRAMS]:
        below = everywhere if name == ALL else singles
        program = strip(programs[name], arguments.out / "symbols")
        document, licences = spdx(name, version, arguments.epoch, program, needs[name])
        own = layer_of(arguments.epoch, {path: here for path, here in needs[name].items() if path not in below})
        for licence in sorted(licences):
            content = licence.resolve().read_bytes()
            same = next((path for path, (_, known) in own.entries.items() if known == content), None)
            own.add(str(licence), f"/{same}" if same else content, 0o777 if same else 0o644)
        top = Layer(arguments.epoch)
        top.add(f"/usr/bin/{name}", program, 0o755)
        if name == ALL:
            for link in PROGRAMS:
                top.link(f"/usr/bin/{link}", ALL)
        top.add(f"/usr/share/sbom/{name}.spdx.json", document)
        (arguments.out / f"{name}.spdx.json").write_bytes(document)
        labels = {
            "org.opencontainers.image.title": name,
            "org.opencontainers.image.description": PROGRAMS.get(name, "Every daemon of the GitOps Runtime"),
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.revision": arguments.revision,
            "org.opencontainers.image.created": created,
            "org.opencontainers.image.licenses": "Apache-2.0",
        }
        config = {
            "architecture": architecture, "os": "linux", "created": created,
            "config": {
                "User": f"{USER}:{USER}", "WorkingDir": "/", "Labels": labels,
                "Env": ["PATH=/usr/bin", f"SSL_CERT_FILE={AUTHORITIES}"],
                **({} if name == ALL else {"Entrypoint": [f"/usr/bin/{name}"]}),
            },
        }
        layers = [base, *([] if name == ALL else [shared]), own.pack(), top.pack()]
        digest, compressed = layout.add(name, config, layers, architecture, labels)
        size = sum(map(len, layers))
        limits = LIMITS_WITH_CONTROL_PLANE.get(name, LIMITS)
        room = 1 - max(size / limits[0], compressed / limits[1])
        rows.append({"name": name, "digest": digest, "bytes": size, "compressed": compressed, "room": room})
        if not arguments.unhardened and room < ROOM:
            large = (f"{name} has {size / 1e6:.1f} MB, {compressed / 1e6:.1f} compressed; the limits are {limits[0] / 1e6:.0f} and "
                     f"{limits[1] / 1e6:.0f}, of which {ROOM:.0%} should be left")
            if arguments.strict:
                raise Refused(large)
            print(f"image: warning: {large}", file=sys.stderr)
    layout.close()
    return rows


def version_of_tree():
    text = (pathlib.Path(__file__).resolve().parent.parent / "CMakeLists.txt").read_text()
    return re.search(r"^project\([^)]*?VERSION ([0-9][^ )]*)", text, re.M)[1]


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--revision", default="unknown")
    parser.add_argument("--version", default=version_of_tree())
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--level", type=int, default=19)
    parser.add_argument("--unhardened", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("names", nargs="*")
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return 0
    if sys.argv[1:] == ["--list"]:
        print("\n".join([ALL, *PROGRAMS]))
        return 0
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name != ALL and name not in PROGRAMS]
    try:
        if unknown:
            raise Refused(f"no such image: {', '.join(unknown)}; there are {', '.join([ALL, *PROGRAMS])}")
        rows = build(arguments)
    except Refused as refused:
        print(f"image: {refused}", file=sys.stderr)
        return 1
    print(f"{'image':<16} {'MB':>6} {'compressed':>11} {'room':>5}  digest")
    for row in rows:
        print(f"{row['name']:<16} {row['bytes'] / 1e6:>6.1f} {row['compressed'] / 1e6:>11.1f} {row['room']:>5.0%}  {row['digest']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
