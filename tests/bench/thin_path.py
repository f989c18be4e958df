#!/usr/bin/env python3
"""Measures small requests through the tunnel while downloads fill a thin path.

usage: thin_path.py BIN [SECONDS [BITS]]

BIN is a folder with tunnel-server and tunnel-client. The client and its upstream run in a network namespace of their own,
whose link to the server is limited by `tc` to BITS a second (2,000,000); so it needs root, iproute2 and openssl. Four users
download without end; a fifth asks for 200 bytes, over and over. The goal is twice the time that the path needs for 64 KiB.
"""
import http.client
import http.server
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

RATE = int(sys.argv[3]) if len(sys.argv) > 3 else 2_000_000  # bit/s, each way
QUEUE = 64 * 1024  # bytes that the path's router holds
GOAL = 2 * 64 * 1024 * 8 / RATE
NAMESPACE = f"thin{os.getpid() % 10000}"
NEAR, FAR = "10.213.77.2", "10.213.77.1"
HOST = "acc-rt.example.test"


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = 64 * 1024 * 1024 if self.path == "/large" else 200
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        try:
            for _ in range(0, size, 65536):
                self.wfile.write(b"x" * min(size, 65536))
        except OSError:
            pass

    def log_message(self, *_):
        pass


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def start_in_namespace(arguments: list[str]) -> subprocess.Popen:
    return subprocess.Popen(["ip", "netns", "exec", NAMESPACE, *arguments])


def add_path() -> None:
    run("ip", "netns", "add", NAMESPACE)
    run("ip", "link", "add", NAMESPACE, "type", "veth", "peer", "name", "path", "netns", NAMESPACE)
    run("ip", "addr", "add", f"{FAR}/30", "dev", NAMESPACE)
    run("ip", "link", "set", NAMESPACE, "up")
    for command in (["ip", "link", "set", "lo", "up"], ["ip", "addr", "add", f"{NEAR}/30", "dev", "path"],
                    ["ip", "link", "set", "path", "up"]):
        run("ip", "netns", "exec", NAMESPACE, *command)
    shape = ["root", "tbf", "rate", f"{RATE}bit", "burst", "8kb", "limit", str(QUEUE)]
    run("tc", "qdisc", "add", "dev", NAMESPACE, *shape)
    run("ip", "netns", "exec", NAMESPACE, "tc", "qdisc", "add", "dev", "path", *shape)


def download(port: int, received: list[int], ends: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/large", headers={"Host": HOST})
    answer = connection.getresponse()
    while not ends.is_set():
        received.append(len(answer.read1(65536)))
    connection.close()


def ask(port: int) -> float:
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/small", headers={"Host": HOST})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}")
    return time.monotonic() - began


def measure(users: int, seconds: float, ends: threading.Event) -> tuple[list[float], float, float]:
    """Returns the seconds of each small request, those of one while the path was empty, and the bit/s of the downloads."""
    give_up = time.monotonic() + 20
    while True:
        try:
            alone = ask(users)
            break
        except (OSError, RuntimeError):
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)
    received: list[int] = []
    for _ in range(4):
        threading.Thread(target=download, args=[users, received, ends], daemon=True).start()
    while sum(received) < 512 * 1024:  # the path is full
        time.sleep(0.1)
    times, before, began = [], sum(received), time.monotonic()
    while time.monotonic() - began < seconds:
        times.append(ask(users))
        time.sleep(0.05)
    return times, alone, (sum(received) - before) * 8 / (time.monotonic() - began)


def main() -> int:
    if sys.argv[1] == "--upstream":
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Upstream).serve_forever()
    programs, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 30
    tunnel, users, upstream = free_port(), free_port(), 8080
    processes: list[subprocess.Popen] = []
    ends = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key", f"{folder}/certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                        "-subj", "/CN=path", "-addext", f"subjectAltName=IP:{FAR}", "-keyout", key, "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        try:
            add_path()
            processes.append(start_in_namespace([sys.executable, __file__, "--upstream", str(upstream)]))
            processes.append(subprocess.Popen(
                [programs / "tunnel-server", "--subdomain-host=example.test", "--tunnel.listen-address=0.0.0.0",
                 f"--tunnel.port={tunnel}", "--listen-address=127.0.0.1", f"--port={users}", "--admin-address=127.0.0.1",
                 "--admin-port=0", f"--tunnel.tls-certificate-file={certificate}", f"--tunnel.tls-key-file={key}",
                 "--tunnel.require-tls=true", "--log-level=warn"], env={**os.environ, "TUNNEL_SERVER_TOKEN": "s3cret"}))
            processes.append(start_in_namespace(
                ["env", "TUNNEL_SERVER_TOKEN=s3cret", str(programs / "tunnel-client"), f"--tunnel-server.host={FAR}",
                 f"--tunnel-server.port={tunnel}", "--tunnel-server.protocol=wss", f"--tunnel-server.ca-file={certificate}",
                 "--tunnel.subdomain-prefix=acc-rt", "--tunnel.forward-to.host=127.0.0.1",
                 f"--tunnel.forward-to.port={upstream}", "--admin-address=127.0.0.1", "--admin-port=0", "--log-level=warn"]))
            times, alone, rate = measure(users, seconds, ends)
        finally:
            ends.set()
            for process in processes:
                process.terminate()
            subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)
    median = statistics.median(times)
    print(f"{len(times)} small requests beside 4 downloads of {rate / 1e6:.2f} Mbit/s in all: median {median:.3f} s, "
          f"at most {max(times):.3f} s; alone {alone:.3f} s; goal {GOAL:.3f} s: {'holds' if median <= GOAL else 'missed'}")
    return 0 if median <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
