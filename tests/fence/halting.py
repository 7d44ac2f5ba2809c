"""A leader that is stopped between the head and the body of its requests, by SIGSTOP.

`python -m tests.fence.halting` reads lines `PORT TOKEN PATH`. For each it sends the head and half
of the body, stops itself, sends the rest when it is woken, and prints the status of the answer.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys

from tests.fence.writers import ROOT

BODY = b"x" * 1000
NO_ANSWER = 0


def main() -> None:
    for line in sys.stdin:
        port, token, path = line.split()
        with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nHustings-Token: {token}\r\n"
            connection.sendall(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY[:500])
            os.kill(os.getpid(), signal.SIGSTOP)
            sys.stdout.write(f"{finish(connection)}\n")
            sys.stdout.flush()


def finish(connection: socket.socket) -> int:
    try:
        connection.sendall(BODY[500:])
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer.read()
    except (OSError, http.client.HTTPException):
        return NO_ANSWER
    return answer.status


class Leader:
    """Such a process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fence.halting"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send_half(self, port: int, token: int, path: str) -> None:
        """Returns when half of the request is sent and the process is stopped."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{port} {token} {path}\n")
        self._process.stdin.flush()
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def status(self) -> int:
        """Of the answer, when there is one."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


if __name__ == "__main__":
    main()
