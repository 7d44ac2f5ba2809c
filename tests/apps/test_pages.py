"""The pages: what they tell to paste runs, and their table is what was measured."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from hustings.net.keys import new_key, write_key
from scripts import measure_apps
from scripts.measure_apps import PATIENCE_S, SETUPS, Setup, free_port, running, wait_until
from tests.guard.engines import started

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/guide/01-five-minutes.md", "docs/guide/frameworks/asgi.md"]
PASTED = re.compile(r"Save this as `shop\.py`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEADS = re.compile(r"shop-invoices/\S+-(\d+)-\w+: leads in term \d+")
AGENT = "hustings agent --group shop-invoices --observer"
SENT = re.compile(r"^sending invoices, in term \d+$", re.MULTILINE)


def pasted(page: str) -> str:
    found = PASTED.search((ROOT / page).read_text("utf-8"))
    assert found is not None
    return found.group(1)


def test_all_pages_show_the_same_few_lines() -> None:
    programs = {pasted(page) for page in PAGES}
    assert len(programs) == 1
    assert len(programs.pop().splitlines()) < 15


def test_one_of_four_workers_sends_the_invoices_and_another_one_goes_on(tmp_path: Path) -> None:
    setup = _of_page(4)
    (tmp_path / "page.py").write_text(pasted("README.md").replace("5s", "20ms"), "utf-8")
    with running(setup, tmp_path) as app:
        wait_until(lambda: len(app.members()) == 4, "four members")
        wait_until(lambda: len(SENT.findall(app.log())) > 5, "invoices")
        (leader,) = LEADS.findall(app.log())
        assert int(leader) in app.members()
        sent = len(SENT.findall(app.log()))
        os.kill(int(leader), signal.SIGKILL)
        wait_until(lambda: len(LEADS.findall(app.log())) > 1, "another leader")
        wait_until(lambda: len(SENT.findall(app.log())) > sent + 1, "its invoices")
        assert app.end() == [0]


def test_one_url_makes_it_one_of_the_workers_of_two_machines(tmp_path: Path) -> None:
    """Two servers with nothing in common but the engine: neither finds the other's members."""
    with started("valkey") as engine:
        program = pasted("README.md").replace("5s", "20ms")
        program = program.replace('every="20ms"', f'every="20ms", guard="{engine.url()}", ttl="1s"')
        assert engine.url() in program
        setup = _of_page(2)
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "page.py").write_text(program, "utf-8")
        with running(setup, tmp_path / "one") as one, running(setup, tmp_path / "two") as two:
            both = (one, two)
            wait_until(lambda: all(len(app.members()) == 2 for app in both), "all members")
            wait_until(lambda: any(SENT.search(app.log()) for app in both), "invoices")
            (first,) = [app for app in both if LEADS.search(app.log())]
            second = two if first is one else one
            assert not SENT.search(second.log())
            assert first.end() == [0]
            wait_until(lambda: SENT.search(second.log()), "invoices of the other machine")


def test_seeds_and_an_observer_on_each_machine_do_it_without_an_engine(tmp_path: Path) -> None:
    """Nobody knows the ports of the workers, and an observer has one that others know."""
    chapter = (ROOT / "docs/guide/18-frameworks.md").read_text("utf-8")
    port, key = free_port(), new_key()
    places = [f"127.0.0.{number}:{port}" for number in (1, 2)]
    setup = _of_page(2)
    with ExitStack() as stack:
        machines = []
        for own, other in (places, places[::-1]):
            folder = tmp_path / own
            folder.mkdir()
            write_key(folder / "shop.key", key)
            bind = own.replace(str(port), "0")
            options = f'every="20ms", seeds={places}, bind="{bind}", key="shop.key"'
            program = pasted("README.md").replace('every="5s"', options)
            (folder / "page.py").write_text(program, "utf-8")
            machines.append(stack.enter_context(running(setup, folder)))
            assert f"{AGENT} --bind 10.0.0.1:7400 --join 10.0.0.2:7400 --key shop.key\n" in chapter
            options = f"--bind {own} --join {other} --key shop.key --http 127.0.0.1:{free_port()}"
            observer = machines[-1].popen(("-m", *AGENT.split(), *options.split()))
            stack.callback(observer.wait, PATIENCE_S)
            stack.callback(observer.kill)
        wait_until(lambda: any(SENT.search(app.log()) for app in machines), "invoices")
        (first,) = [app for app in machines if SENT.search(app.log())]
        (second,) = [app for app in machines if app is not first]
        assert first.end() == [0]
        wait_until(lambda: SENT.search(second.log()), "invoices of the other machine")


def _of_page(workers: int) -> Setup:
    setup = SETUPS["fastapi"].with_workers(workers)
    command = tuple("page:app" if word == "fastapi_app:app" else word for word in setup.command)
    return dataclasses.replace(setup, command=command)


def test_the_table_is_what_was_measured() -> None:
    rows = measure_apps.stored()
    shown = measure_apps.TABLE.search(measure_apps.PAGE.read_text("utf-8"))
    assert shown is not None
    assert shown.group().strip() == measure_apps.markdown(rows).strip()
    measured = {(row["setup"], row["way"]) for row in rows}
    assert measured == {(name, way) for name, setup in SETUPS.items() for way in setup.ways}
    assert [row for row in rows if row["duplicates"]] == []
    assert [row for row in rows if row["rounds"] < 5] == []


@pytest.mark.parametrize(
    "lines, found",
    [
        ([(0.0, 1, 1), (0.1, 1, 1), (0.3, 2, 2)], (0.2, 0, 0)),
        ([(0.0, 1, 1), (0.1, 2, 2), (0.15, 1, 1), (0.2, 2, 2)], (0.1, 1, 0)),
        ([(0.0, 1, 1), (0.1, 2, 2), (0.2, 2, 3)], (0.1, 0, 1)),
    ],
)
def test_a_round_is_judged(
    lines: list[tuple[float, int, int]], found: tuple[float, int, int]
) -> None:
    round_ = measure_apps.judged("kill", [measure_apps.Line(*line) for line in lines])
    assert (round_.gap_s, round_.duplicates, round_.starts) == found
