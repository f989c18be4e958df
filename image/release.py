#!/usr/bin/env python3
"""Makes the folder of a release, and proves one.

usage: release.py version [--source DIR]
       release.py check [--source DIR]
       release.py make --bin DIR --out DIR --key FILE [--repository URL | --without-argo] [--helm PROGRAM]
                       [--version TEXT] [--level N] [--unhardened] [NAME...]
       release.py verify DIR --key FILE

version prints the version of the tree, that of CMakeLists.txt. Refuses a tree whose charts or package.json files have another one.
check   refuses such a tree, too, and one with changes that are not committed or without a section of this version in CHANGELOG.md.
make    checks the tree, and writes

          OUT/NOTES.md                          the version's section of CHANGELOG.md, and the digests of the images
          OUT/charts/                           packages of both charts, as charts/package.py makes them, each with a bill of materials
          OUT/images/layout                     OCI layout of the images, as build.py makes it; OUT/images/NAME.spdx.json
          OUT/images/NAME.tar                   one image as an OCI archive, for podman load and ctr images import
          OUT/images/signatures                 OCI layout with a signature of each image in the form of cosign, as sha256-DIGEST.sig
          OUT/programs/                         archives of gitopsctl and gitops-runtime, which has gitops-demo, too;
                                                each with a bill of materials
          OUT/SHA256SUMS, OUT/SHA256SUMS.sig    of every other file but the signatures of images, which prove themselves

        The key is a PEM file that openssl reads: ECDSA on P-256, or RSA of at least 2048 bits. All but the signatures depends on the
        commit and on the Debian packages only; signatures by RSA do, too. --version takes the place of the tree's version, and the
        tree is not checked: for tests. So are --level, --unhardened and NAME, which build.py knows.
verify  exit code 0 if every file is as the holder of the private key has signed it, and no file is missing or added. The key is the
        public one, in PEM.
"""
import argparse
import base64
import gzip
import hashlib
import io
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import build as images
from build import ALL, ARCHITECTURES, PROGRAMS, Refused, as_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHIVES = ["gitopsctl", ALL]
DEMO = "gitops-demo"
CHARTS = ["gitops-control-plane", "gitops-runtime"]
SUMS, SUMS_SIGNATURE, SIGNATURES = "SHA256SUMS", "SHA256SUMS.sig", "images/signatures"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, **options).stdout


def sha256(content):
    return hashlib.sha256(content).hexdigest()


# -- the tree --


def versions(source):
    """Each version that a file of the tree names, as (place, version)."""
    found = re.search(r"^project\([^)]*?VERSION ([0-9][^ )]*)", (source / "CMakeLists.txt").read_text(), re.M)
    yield "CMakeLists.txt, project VERSION", found[1] if found else ""
    for chart in CHARTS:
        text = (source / "charts" / chart / "Chart.yaml").read_text()
        for key in ("version", "appVersion"):
            found = re.search(rf"^{key}: *[\"']?([^\"'\s]+)", text, re.M)
            yield f"charts/{chart}/Chart.yaml, {key}", found[1] if found else ""
        for name, tag in re.findall(r"^ +image: (\S+):(\S+)$", text, re.M):
            yield f"charts/{chart}/Chart.yaml, image {name}", tag
    for folder in ("apps/control-plane/console", "tests/console"):
        for name in ("package.json", "package-lock.json"):
            document = json.loads((source / folder / name).read_text())
            yield f"{folder}/{name}", document.get("version", "")
            if "packages" in document:
                yield f"{folder}/{name}, packages", document["packages"][""].get("version", "")


def version_of(source):
    """The version of the tree. Refuses a tree whose files disagree."""
    (_, version), *others = versions(source)
    wrong = [f"{place} is {other or 'missing'}" for place, other in others if other != version]
    if not version or wrong:
        raise Refused(f"CMakeLists.txt has version {version or '(none)'}, but " + "; ".join(wrong or ["a release needs one"]))
    return version


def notes_of(source, version):
    """The text below "## [VERSION]" in CHANGELOG.md, without the heading."""
    _, heading, after = (source / "CHANGELOG.md").read_text().partition(f"\n## [{version}]")
    if not heading:
        raise Refused(f"CHANGELOG.md has no section [{version}]")
    return re.split(r"^## ", after.partition("\n")[2], maxsplit=1, flags=re.M)[0].strip()


def check(source):
    """The version of a tree that can be released."""
    changes = run("git", "-C", source, "status", "--porcelain").decode().splitlines()
    if changes:
        raise Refused(f"the tree has changes that are not committed: {', '.join(line[3:] for line in changes[:5])}")
    version = version_of(source)
    notes_of(source, version)
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", (source / "CHANGELOG.md").read_text(), re.M | re.S)
    if unreleased and unreleased[1].strip():
        print(f"release: warning: CHANGELOG.md has entries below [Unreleased], which are not in the notes of {version}", file=sys.stderr)
    return version


# -- archives --


def archive(entries, epoch):
    """A tar archive of {path: (mode, content, or a link's target as str)} whose bytes depend on them and the epoch only."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(entries):
            mode, content = entries[path]
            info = tarfile.TarInfo(path)
            info.mtime, info.mode = epoch, mode
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def compressed(tar, level):
    return gzip.compress(tar, compresslevel=min(level, 9), mtime=0)


def program_archives(out, arguments, version, epoch):
    """The programs as they are in their images, for machines with Debian's libraries. The one with all has the demo, too."""
    machine = ARCHITECTURES[platform.machine()]
    folder, layout = out / "programs", out / "images/layout"
    folder.mkdir()
    for name in (name for name in ARCHIVES if name in entries_of(layout)):
        files = files_of_image(layout, name)
        document = json.loads(files[f"usr/share/sbom/{name}.spdx.json"])
        document, needs = of_archive(document, name)
        document = (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()
        top = f"{name}-{version}-linux-{machine}"
        entries = {f"{top}/{name}": (0o755, files[f"usr/bin/{name}"]),
                   f"{top}/LICENSE": (0o644, (ROOT / "LICENSE").read_bytes()),
                   f"{top}/NEEDS": (0o644, needs_file(needs)),
                   f"{top}/{name}.spdx.json": (0o644, document)}
        for path, content in files.items():
            if path.endswith("/copyright") and path.split("/")[-2] not in needs:
                entries[f"{top}/licenses/{path.split('/')[-2]}"] = (0o644, content)
        if name == ALL:
            demo, needs_of_demo = demo_entries(arguments, version, epoch)
            entries |= {f"{top}/{path}": entry for path, entry in demo.items()}
            entries |= {f"{top}/{link}": (0o777, ALL) for link in PROGRAMS}
            needs = sorted({*needs, *needs_of_demo})
            entries[f"{top}/NEEDS"] = (0o644, needs_file(needs))
        (folder / f"{top}.tar.gz").write_bytes(compressed(archive(entries, epoch), arguments.level))
        (folder / f"{top}.spdx.json").write_bytes(document)


def needs_file(packages):
    return "".join(f"{package}\n" for package in packages).encode()


def demo_entries(arguments, version, epoch):
    """The program of `gitopsctl demo`, which no image has, with its bill of materials; and the packages that it needs."""
    program = arguments.bin / DEMO
    if not program.exists():
        raise Refused(f"not built in {arguments.bin}: {DEMO}")
    missing = [] if arguments.unhardened else images.missing_hardening(program)
    if missing:
        raise Refused(f"{DEMO} lacks {', '.join(missing)}")
    content = images.strip(program, arguments.out / "images/symbols")
    document, licences = images.spdx(DEMO, version, epoch, content, images.closure(program))
    document, needs = of_archive(json.loads(document), DEMO)
    entries = {DEMO: (0o755, content),
               f"{DEMO}.spdx.json": (0o644, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())}
    for licence in licences:
        if licence.parent.name not in needs:
            entries[f"licenses/{licence.parent.name}"] = (0o644, licence.resolve().read_bytes())
    return entries, needs


def of_archive(document, name):
    """An image's bill of materials as one of its program alone, and the packages whose libraries the program needs."""
    needs = []
    parts = []
    for part in document["packages"]:
        library = "comment" in part and f"/usr/bin/{name}" not in part["comment"].removeprefix("Files: ").split(", ")
        if part["name"] == "ca-certificates":
            continue
        if library:
            needs.append(part["name"])
        parts.append(part)
    identifiers = {part["SPDXID"]: part["name"] for part in parts}
    relations = []
    for relation in document["relationships"]:
        if relation["relatedSpdxElement"] not in identifiers:
            continue
        if identifiers[relation["relatedSpdxElement"]] in needs:
            relation = {**relation, "relationshipType": "DYNAMIC_LINK"}
        relations.append(relation)
    rename = {"SPDXRef-image": "SPDXRef-archive"}
    parts = [{**part, "SPDXID": rename.get(part["SPDXID"], part["SPDXID"])} for part in parts]
    relations = [{key: rename.get(value, value) for key, value in relation.items()} for relation in relations]
    return {**document, "name": document["name"] + "-archive", "packages": parts, "relationships": relations,
            "documentNamespace": document["documentNamespace"] + ":archive"}, sorted(needs)


def image_archives(layout, version):
    for name, entry in entries_of(layout).items():
        digests = [entry["digest"]]
        manifest = json.loads(blob(layout, entry["digest"]))
        digests += [manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                 "manifests": [{**entry, "annotations": {"org.opencontainers.image.ref.name": f"{name}:{version}"}}]}
        files = {f"blobs/sha256/{digest.split(':')[1]}": blob(layout, digest) for digest in digests}
        files |= {"index.json": as_json(index), "oci-layout": (layout / "oci-layout").read_bytes()}
        (layout.parent / f"{name}.tar").write_bytes(archive({path: (0o644, text) for path, text in files.items()}, 0))


# -- images --


def blob(layout, digest):
    return (layout / "blobs/sha256" / digest.split(":")[1]).read_bytes()


def entries_of(layout):
    """The index's entry of each image, by name."""
    index = json.loads((layout / "index.json").read_bytes())
    return {entry["annotations"]["org.opencontainers.image.ref.name"]: entry for entry in index["manifests"]}


def files_of_image(layout, name):
    files = {}
    for layer in json.loads(blob(layout, entries_of(layout)[name]["digest"]))["layers"]:
        content = run("zstd", "-dqc", input=blob(layout, layer["digest"]))
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            files |= {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isreg()}
    return files


# -- charts --


def charts(out, arguments, version, epoch):
    """Both charts' packages. helm writes the time into them; they are packed again without it."""
    folder = out / "charts"
    command = [sys.executable, ROOT / "charts/package.py", "--out", folder, "--version", version]
    command += ["--repository", arguments.repository] if arguments.repository else []
    command += ["--plain"] if arguments.without_argo else []
    command += ["--helm", arguments.helm] if arguments.helm else []
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        raise Refused(made.stderr.strip())
    for package in sorted(folder.glob("*.tgz")):
        with tarfile.open(package) as tar:
            entries = {entry.name: (0o644, tar.extractfile(entry).read()) for entry in tar if entry.isreg()}
        package.write_bytes(compressed(archive(entries, epoch), arguments.level))
        document = json.dumps(of_chart(package, entries, epoch), indent=1, sort_keys=True) + "\n"
        package.with_suffix(".spdx.json").write_text(document)


def of_chart(package, entries, epoch):
    """SPDX 2.3: the chart, the charts inside it, and the images of ours that it runs."""
    def fact(text, key):
        found = re.search(rf"^{key}: *[\"']?([^\"'\s]+)", text, re.M)
        return found[1] if found else "NOASSERTION"

    heads = {path: content.decode() for path, (_, content) in entries.items() if path.endswith("/Chart.yaml")}
    own = min(heads, key=len)
    items, relations = [], []
    for path, text in sorted(heads.items()):
        identifier = "SPDXRef-chart-" + re.sub(r"[^A-Za-z0-9.-]", "-", path.removesuffix("/Chart.yaml"))
        items.append({"SPDXID": identifier, "name": fact(text, "name"), "versionInfo": fact(text, "version"),
                      "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "copyrightText": "NOASSERTION",
                      "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0" if path == own else "NOASSERTION",
                      "comment": f"appVersion {fact(text, 'appVersion')}"})
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", identifier) if path == own else (chart_id(own), "CONTAINS", identifier))
    for name, tag in re.findall(r"^ +image: (\S+):(\S+)$", heads[own], re.M):
        items.append({"SPDXID": f"SPDXRef-image-{name}", "name": name, "versionInfo": tag, "downloadLocation": "NOASSERTION",
                      "filesAnalyzed": False, "copyrightText": "NOASSERTION", "licenseConcluded": "NOASSERTION",
                      "licenseDeclared": "Apache-2.0"})
        relations.append((chart_id(own), "DEPENDS_ON", f"SPDXRef-image-{name}"))
    return images.spdx_document(package.stem, f"chart:{sha256(package.read_bytes())}", epoch, items, relations)


def chart_id(path):
    return "SPDXRef-chart-" + re.sub(r"[^A-Za-z0-9.-]", "-", path.removesuffix("/Chart.yaml"))


# -- signatures --


def openssl(*command, content=b""):
    done = subprocess.run(["openssl", *map(str, command)], input=content, capture_output=True)
    return done.returncode == 0, done.stdout, done.stderr.decode().strip()


def check_key(key, *options):
    """Refuses a key that is neither ECDSA on P-256 nor RSA of 2048 bits or more: cosign's, too, are one of them."""
    ok, text, error = openssl("pkey", "-in", key, *options, "-noout", "-text_pub")
    text = text.decode()
    bits = re.search(r"\((\d+) bit", text)
    if not ok:
        raise Refused(f"{key} is no key that openssl reads: {error.splitlines()[0] if error else 'it is empty'}")
    if "prime256v1" not in text and not ("Exponent:" in text and bits and int(bits[1]) >= 2048):
        raise Refused(f"{key} is neither an ECDSA key on P-256 nor an RSA key of 2048 bits or more")


def sign(key, content):
    ok, signature, error = openssl("dgst", "-sha256", "-sign", key, content=content)
    if not ok:
        raise Refused(f"openssl cannot sign: {error}")
    return signature


def is_signed(key, content, signature):
    with tempfile.NamedTemporaryFile() as file:
        file.write(signature)
        file.flush()
        return openssl("dgst", "-sha256", "-verify", key, "-signature", file.name, content=content)[0]


def payload(name, digest):
    """What is signed of an image: cosign's form of "simple signing" (specs/SIGNATURE_SPEC.md of sigstore/cosign)."""
    return as_json({"critical": {"identity": {"docker-reference": name}, "image": {"docker-manifest-digest": digest},
                                 "type": "cosign container image signature"}, "optional": None})


def signature_layout(images_signed):
    """The files of the OCI layout with the signatures of [(name, digest, signature)]."""
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def add(content, media):
        digest = sha256(content)
        files[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    manifests = []
    for name, digest, signature in images_signed:
        text = payload(name, digest)
        layer = add(text, "application/vnd.dev.cosign.simplesigning.v1+json")
        layer["annotations"] = {"dev.cosignproject.cosign/signature": base64.b64encode(signature).decode()}
        config = add(as_json({"architecture": "", "config": {}, "created": "0001-01-01T00:00:00Z", "os": "",
                              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(text)}"]}}),
                     "application/vnd.oci.image.config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}
        entry = add(as_json(manifest), manifest["mediaType"])
        entry["annotations"] = {"org.opencontainers.image.ref.name": f"{digest.replace(':', '-')}.sig"}
        manifests.append(entry)
    files["index.json"] = as_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests})
    return files


def signature_of(layout, digest):
    """The signature of an image in the layout of signatures; b"": there is none."""
    try:
        entry = entries_of(layout)[f"{digest.replace(':', '-')}.sig"]
        layer = json.loads(blob(layout, entry["digest"]))["layers"][0]
        return base64.b64decode(layer["annotations"]["dev.cosignproject.cosign/signature"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return b""


# -- the commands --


def write_notes(out, text, version, revision):
    rows = "".join(f"| `{name}` | `{entry['digest']}` |\n" for name, entry in entries_of(out / "images/layout").items())
    (out / "NOTES.md").write_text(f"# GitOps Runtime {version}\n\n{text}\n\n## Images\nBuilt from commit {revision}.\n\n"
                                  f"| Image | Digest |\n|---|---|\n{rows}")


def make(arguments):
    check_key(arguments.key)
    version = arguments.version or check(ROOT)
    text = notes_of(ROOT, version_of(ROOT))
    revision = run("git", "-C", ROOT, "rev-parse", "HEAD").decode().strip()
    epoch = int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    out = arguments.out
    if out.exists():
        shutil.rmtree(out)
    options = [*(["--unhardened"] if arguments.unhardened else []), "--level", arguments.level, *arguments.names]
    built = subprocess.run([sys.executable, str(ROOT / "image/build.py"), "--bin", str(arguments.bin), "--out", str(out / "images"),
                            "--version", version, "--revision", revision, "--epoch", str(epoch), *map(str, options)])
    if built.returncode != 0:
        raise Refused("the images could not be built")
    layout = out / "images/layout"
    image_archives(layout, version)
    program_archives(out, arguments, version, epoch)
    shutil.rmtree(out / "images/symbols")
    charts(out, arguments, version, epoch)
    write_notes(out, text, version, revision)
    sums = "".join(f"{sha256((out / path).read_bytes())}  {path}\n" for path in files_below(out))
    (out / SUMS).write_text(sums)
    (out / SUMS_SIGNATURE).write_bytes(sign(arguments.key, sums.encode()))
    signed = [(name, entry["digest"], sign(arguments.key, payload(name, entry["digest"]))) for name, entry in entries_of(layout).items()]
    for path, content in signature_layout(signed).items():
        file = out / SIGNATURES / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    print(f"release {version} of {revision} in {out}")


def files_below(folder):
    """Relative paths of all that is no folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def problems(folder, key):
    """What is not as it was signed, one line for each file."""
    try:
        sums, signature = (folder / SUMS).read_bytes(), (folder / SUMS_SIGNATURE).read_bytes()
    except OSError as error:
        return [f"{error.filename}: {error.strerror}"]
    if not is_signed(key, sums, signature):
        return [f"{SUMS}: its signature is not by this key"]
    expected = {path: digest for digest, path in (line.split("  ", 1) for line in sums.decode().splitlines())}
    found = [path for path in files_below(folder)
             if path not in (SUMS, SUMS_SIGNATURE) and not path.startswith(SIGNATURES + "/")]
    wrong = [f"{path}: missing" for path in sorted(expected.keys() - set(found))]
    for path in found:
        if path not in expected:
            wrong.append(f"{path}: not in {SUMS}")
        elif (folder / path).is_symlink() or sha256((folder / path).read_bytes()) != expected[path]:
            wrong.append(f"{path}: its checksum is another one")
    return wrong or problems_of_images(folder, key)


def problems_of_images(folder, key):
    wrong, signed = [], []
    layout = folder / SIGNATURES
    for name, entry in entries_of(folder / "images/layout").items():
        signature = signature_of(layout, entry["digest"])
        signed.append((name, entry["digest"], signature))
        if not is_signed(key, payload(name, entry["digest"]), signature):
            wrong.append(f"image {name}, {entry['digest']}: no signature by this key")
    if wrong:
        return wrong
    # The layout has these signatures and nothing else.
    expected = signature_layout(signed)
    found = {path: layout / path for path in files_below(layout)}
    wrong = [f"{SIGNATURES}/{path}: missing" for path in sorted(expected.keys() - found.keys())]
    return wrong + [f"{SIGNATURES}/{path}: not as it was signed" for path, file in found.items()
                    if file.is_symlink() or file.read_bytes() != expected.get(path)]


def verify(arguments):
    check_key(arguments.key, "-pubin")
    wrong = problems(arguments.folder, arguments.key)
    if wrong:
        raise Refused("\nrelease: ".join(wrong))
    count = len(entries_of(arguments.folder / "images/layout"))
    print(f"{arguments.folder}: {len(files_below(arguments.folder))} files and the signatures of {count} images are right")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("version", "check"):
        commands.add_parser(name).add_argument("--source", type=pathlib.Path, default=ROOT)
    making = commands.add_parser("make")
    making.add_argument("--bin", type=pathlib.Path, required=True)
    making.add_argument("--out", type=pathlib.Path, required=True)
    making.add_argument("--key", type=pathlib.Path, required=True)
    making.add_argument("--repository")
    making.add_argument("--without-argo", action="store_true")
    making.add_argument("--helm")
    making.add_argument("--version")
    making.add_argument("--level", type=int, default=19)
    making.add_argument("--unhardened", action="store_true")
    making.add_argument("names", nargs="*")
    proving = commands.add_parser("verify")
    proving.add_argument("folder", type=pathlib.Path)
    proving.add_argument("--key", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    try:
        if arguments.command == "version":
            print(version_of(arguments.source))
        elif arguments.command == "check":
            print(check(arguments.source))
        elif arguments.command == "make":
            make(arguments)
        else:
            verify(arguments)
    except (Refused, subprocess.CalledProcessError) as refused:
        print(f"release: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
