"""On a Dask cluster: the same numbers, workers that die, schedulers that are gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.lab.runs import executors
from hustings.lab.runs.engines import play_block
from hustings.lab.runs.executors import LOCAL, check_place, open_pool
from hustings.lab.runs.playing import Progress
from hustings.lab.sweeps import play_points
from hustings.lab.sweeps.points import play_points_in
from tests.unit.lab.runs.samples import grid


def test_a_cluster_that_loses_a_worker_plays_the_same() -> None:
    killed: list[int] = []

    def kill(reached: Progress) -> None:
        if reached.played >= 3 and not killed:  # several blocks may end at once
            workers = [each for each in active_children() if "Dask" in each.name]
            assert len(workers) == 2
            assert workers[0].pid is not None
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    with open_pool(LOCAL, 2, play_block) as pool:
        found = play_points_in(pool, grid(), tell=kill)
    assert [each.block for each in found] == [each.block for each in play_points(grid())]
    assert killed


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CONNECTING", 0.5)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        port = deaf.getsockname()[1]
        told = rf"no Dask scheduler answers at 127.0.0.1:{port} within 0.5 s"
        where = f"dask://127.0.0.1:{port}"
        with pytest.raises(BadInput, match=told), open_pool(where, 1, play_block):
            pass


CLUSTER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    here = LocalCluster(n_workers=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    print(here.scheduler_address, flush=True)
    time.sleep(100)
"""


def test_a_cluster_elsewhere_that_goes_away(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was finished is kept, and goes on anywhere else."""
    (tmp_path / "cluster.py").write_text(CLUSTER, encoding="utf-8")
    path, points = tmp_path / "kept", grid()
    command = [sys.executable, str(tmp_path / "cluster.py")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as cluster:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip().replace("tcp:", "dask:")

        def end(reached: Progress) -> None:
            if reached.played >= 2 and cluster.poll() is None:
                os.killpg(cluster.pid, signal.SIGKILL)
                cluster.wait()

        told = "(the Dask scheduler is gone|gave up): what is finished is kept"
        with pytest.raises(BadInput, match=told), open_pool(address, 1, play_block) as pool:
            play_points_in(pool, points, checkpoint=path, tell=end)
    assert capfd.readouterr().err == ""
    reached: list[Progress] = []
    found = play_points(points, checkpoint=path, tell=reached.append)
    whole: list[Progress] = []
    assert [one.block for one in found] == [
        one.block for one in play_points(points, tell=whole.append)
    ]
    assert reached[-1].played <= whole[-1].played - 2


@pytest.mark.parametrize(
    "where, told",
    [
        ("dask://", "is no address of a Dask scheduler: write dask://host:8786"),
        ("dask://host", "is no address"),
        ("dask://host:0", "is no address"),
        ("dask://host:99999", "is no address"),
        ("dask://user@host:1", "is no address"),
        ("thread", "did you mean 'threads'?"),
        ("", "unknown place"),
    ],
)
def test_a_place_that_is_none(where: str, told: str) -> None:
    with pytest.raises(BadInput, match=told.replace("?", r"\?")):
        check_place(where)


@pytest.mark.parametrize("where", ["threads", "dask://localhost:8786", "dask://[::1]:8786"])
def test_a_place(where: str) -> None:
    check_place(where)
