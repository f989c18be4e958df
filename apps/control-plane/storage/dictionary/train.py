#!/usr/bin/env python3
"""Trains the dictionary of the table `body`, with ZDICT of the program `zstd`.

usage: apps/control-plane/storage/dictionary/train.py RECORDING… --out FILE [--id N] [--size BYTES]

A recording has one request body of /2.0/api/events per line. The bodies are laid out as pack_body() in
storage/body_codec.cpp does. A shipped dictionary never changes: a newer one gets a file, an id and a codec of its own.
"""
import argparse
import base64
import json
import pathlib
import struct
import subprocess
import sys
import tempfile


def text_of(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def texts_of(request: str) -> list[str]:
    """The texts of an object in the order of ObjectBody: live, desired, in_git, source, errors."""
    data = json.loads(request)["data"]
    live = data["object"]
    if not live.startswith("{"):
        live = base64.b64decode(live).decode()
    errors = text_of(data["errors"]) if data.get("errors") else ""
    source = data.get("source")
    if source is None:
        return [live, "", "", "", errors]
    manifests = {name: source.pop(name, "") for name in ("actualManifest", "desiredManifest", "gitManifest")}
    if json.loads(live).get("kind") != "Application" and manifests["actualManifest"]:
        live = manifests["actualManifest"]
    desired = manifests["desiredManifest"]
    return [live, "" if desired == live else desired, manifests["gitManifest"], text_of(source), errors]


def body_of(request: str) -> bytes:
    texts = [text.encode() for text in texts_of(request)]
    return b"".join(struct.pack("<I", len(text)) for text in texts) + b"".join(texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--id", type=int, default=1)
    parser.add_argument("--size", type=int, default=32 * 1024, help="a larger one is no better on other recordings")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for recording in arguments.recordings:
            for line in recording.read_text().splitlines():
                (pathlib.Path(folder) / f"{count:06}").write_bytes(body_of(line))
                count += 1
        subprocess.run(["zstd", "-q", "--train", "-r", folder, f"--maxdict={arguments.size}",
                        f"--dictID={arguments.id}", "-f", "-o", str(arguments.out)], check=True)
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes from {count} bodies", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
