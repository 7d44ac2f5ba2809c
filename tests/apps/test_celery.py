"""`hustings.celery_beat`: each run is sent once, by one beat, from a Valkey or past it."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from kombu import Exchange, Queue

from hustings.celery_beat import BeatScheduler
from scripts.measure_apps import SETUPS, Setup, wait_until
from tests.apps.played import served
from tests.guard.engines import started
from tests.guard.engines.base import Engine

TASK = "shop.send_invoices"
SENDER = re.compile(r"gen(\d+)@")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with started("valkey") as engine:
        yield engine


@pytest.fixture
def url(engine: Engine) -> str:
    return redis_url(engine.url())


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url) as client:
        yield client


@pytest.fixture
def group() -> str:
    return uuid.uuid4().hex[:12]


def redis_url(guard: str) -> str:
    return guard.replace("valkey://", "redis://").partition("?")[0]


@dataclasses.dataclass(frozen=True)
class Message:
    """A message in a queue of the broker."""

    run: int
    token: int | None
    id: str
    sender: int


def messages(client: Any, queue: str) -> list[Message]:
    """What is in a queue, the oldest first."""
    found = []
    for text in reversed(client.lrange(queue, 0, -1)):
        headers = json.loads(text)["headers"]
        sender = SENDER.match(headers["origin"])
        assert sender is not None
        run, token = headers["hustings_run"], headers["hustings_token"]
        found.append(Message(run, token, headers["id"], int(sender.group(1))))
    return found


# Processes


@pytest.mark.parametrize("guarded", [False, True])
def test_each_run_is_sent_once_whoever_is_killed_or_stands_still(
    guarded: bool, tmp_path: Path
) -> None:
    """No worker takes the messages, so that all of them can be looked at."""
    setup = dataclasses.replace(SETUPS["celery"], beside=(), guarded=guarded)
    with served(setup, tmp_path) as app:
        client = redis.Redis.from_url(app.environment["SHOP_BROKER"])

        def sent() -> list[Message]:
            return messages(client, "celery")

        def go_on(messages: int = 10) -> int:
            """Wait for three members and some messages; who sent the last one."""
            before = len(sent())
            wait_until(lambda: len(app.members()) == 3, "three members")
            wait_until(lambda: len(sent()) > before + messages, "more messages")
            return sent()[-1].sender

        leader = go_on()
        for _ in range(3):
            os.kill(leader, signal.SIGKILL)
            (gone,) = [each for each in app.processes if each.pid == leader]
            gone.wait()
            app.processes.remove(gone)
            app.start()
            wait_until(lambda: sent()[-1].sender != leader, "a change")  # noqa: B023 (at once)
            leader = go_on()
        os.kill(leader, signal.SIGSTOP)
        wait_until(lambda: sent()[-1].sender != leader, "another leader")
        os.kill(leader, signal.SIGCONT)
        go_on(50)
        assert set(app.end()) == {0}
        found = sent()
        client.close()
    assert [each.run for each in found] == list(range(1, len(found) + 1))
    assert len({each.sender for each in found}) > 4
    tokens = [each.token or 0 for each in found]
    assert tokens == sorted(tokens)
    assert (len(set(tokens)) > 4) is guarded


def test_past_another_broker_no_run_is_left_out(url: str, group: str, tmp_path: Path) -> None:
    """The broker is a folder. A run that arrives twice has one id."""
    box = tmp_path / "box"
    box.mkdir()
    app_file = f"""
        from celery import Celery

        app = Celery("shop", broker="filesystem://")
        places = {{"data_folder_in": "{box}", "data_folder_out": "{box}"}}
        app.conf.broker_transport_options = {{**places, "control_folder": "{tmp_path}/control"}}
        app.conf.beat_scheduler = "hustings.celery_beat:BeatScheduler"
        app.conf.hustings_beat = {{"group": "{group}", "store": "{url}"}}
        app.conf.beat_schedule = {{"invoices": {{"task": "{TASK}", "schedule": 0.01}}}}
    """
    lines = [line.strip() for line in app_file.splitlines()]
    (tmp_path / "box_app.py").write_text("\n".join(lines), "utf-8")
    command = ("-m", "celery", "-A", "box_app", "beat", "-l", "INFO")
    setup = Setup("a folder as broker", command, copies=2)

    def sent() -> list[Message]:
        found = []
        for file in sorted(box.glob("*.msg")):
            text = file.read_text("utf-8")
            if text.endswith("}"):  # else it is still written
                headers = json.loads(text)["headers"]
                sender = SENDER.match(headers["origin"])
                assert sender is not None
                run = headers["hustings_run"]
                found.append(Message(run, None, headers["id"], int(sender.group(1))))
        return sorted(found, key=lambda each: each.run)

    with served(setup, tmp_path) as app:
        for _ in range(3):
            wait_until(lambda: len(app.members()) == 2, "two members")
            before = len(sent())
            wait_until(lambda: len(sent()) > before + 10, "messages")  # noqa: B023 (at once)
            leader = sent()[-1].sender
            os.kill(leader, signal.SIGKILL)
            (gone,) = [each for each in app.processes if each.pid == leader]
            gone.wait()
            app.processes.remove(gone)
            app.start()
            wait_until(lambda: sent()[-1].sender != leader, "a change")  # noqa: B023 (at once)
        wait_until(lambda: len(app.members()) == 2, "two members")
        assert set(app.end()) == {0}
        found = sent()
    runs = {each.run for each in found}
    assert runs == set(range(1, max(runs) + 1))
    assert len({(each.run, each.id) for each in found}) == len(runs)


# One beat in this process, driven by hand


class Leads:
    """Stands for a term that goes on."""

    number = 1

    def __init__(self, token: int | None = None) -> None:
        self.token = token

    def check(self) -> None:
        """It goes on."""


ENTRY = {"invoices": {"task": TASK, "schedule": 0.0}}  # always due


Beat = Callable[..., Any]


@pytest.fixture
def beat(url: str, group: str) -> Iterator[Beat]:
    """Makes beats of one group that lead, because a test says so."""
    made: list[Any] = []

    def make(
        token: int | None = None,
        schedule: Mapping[str, Any] = ENTRY,
        broker: str = url,
        store: str | None = None,
        **conf: Any,
    ) -> Any:
        app = Celery("shop", broker=broker, set_as_current=False)
        app.conf.task_default_queue = group
        app.conf.update(conf)
        app.conf.beat_schedule = dict(schedule)
        app.conf.hustings_beat = {"group": group} | ({"store": store} if store else {})
        made.append(BeatScheduler(app, lazy=True))
        made[-1].read_setting()
        made[-1].merge_inplace(app.conf.beat_schedule)
        made[-1]._term = Leads(token)
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_leader_that_was_replaced_cannot_send(beat: Beat, group: str, client: Any) -> None:
    old, new = beat(token=5), beat(token=6)
    old.tick()
    new.tick()
    old.tick()
    assert [each.token for each in messages(client, group)] == [5, 6]
    old.tick()
    new.tick()
    found = messages(client, group)
    assert [(each.run, each.token) for each in found] == [(1, 5), (2, 6), (3, 6)]


def test_of_two_leaders_without_a_guard_one_sends_a_run(
    beat: Beat, group: str, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = beat(), beat()
    assert a._reads(a._term)
    assert b._reads(b._term)
    a.tick()
    b.tick()
    assert [each.run for each in messages(client, group)] == [1]
    assert "Run 1 of invoices is not sent: run 1 of invoices was recorded by another" in caplog.text
    b.tick()  # it has read the state again
    a.tick()
    a.tick()
    assert [each.run for each in messages(client, group)] == [1, 2, 3]


@pytest.mark.parametrize("times", [1, 6])
def test_a_run_whose_answer_was_lost_is_sent_once(
    times: int, beat: Beat, group: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Celery itself tries again, a few times, and then the beat does."""
    made = beat()
    record, lost = type(made._state).record, [True] * times

    def loses(self: Any, *words: Any) -> None:
        record(self, *words)
        if lost:
            lost.pop()
            raise redis.ConnectionError("connection reset")

    monkeypatch.setattr(type(made._state), "record", loses)
    monkeypatch.setattr("hustings.celery_beat._RETRY_S", 0.0)
    while lost:
        made.tick()
    assert [each.run for each in messages(client, group)] == [1]


def test_a_run_that_was_recorded_and_not_sent_is_sent_by_the_next(
    beat: Beat, url: str, group: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the state in another place than the broker, here another database of the engine."""
    other = url.rpartition("/")[0] + "/1"
    old, new = (beat(token, broker=other, store=url) for token in (1, 2))

    class Killed(BaseException):
        pass

    def killed(*words: Any, **more: Any) -> None:
        raise Killed

    monkeypatch.setattr(old, "apply_async", killed)
    with pytest.raises(Killed):
        old.tick()
    stored = client.hgetall(f"{{beat:{group}}}:schedule")
    assert (stored[b"count:invoices"], stored[b"sent:invoices"]) == (b"1", b"")
    new.tick()
    new.tick()
    with redis.Redis.from_url(other) as broker:
        found = messages(broker, group)
    assert [(each.run, each.token) for each in found] == [(1, 2), (2, 2)]
    assert found[0].id == stored[b"run:invoices"].decode()


def test_a_period_goes_on_where_the_last_leader_was(beat: Beat, group: str, client: Any) -> None:
    hourly = {"invoices": {"task": TASK, "schedule": timedelta(hours=1)}}
    old, new = (beat(token, hourly) for token in (1, 2))
    old.max_interval = new.max_interval = 0.001
    old.tick()
    old.tick()
    first = old.schedule["invoices"].last_run_at
    new.tick()
    assert new.schedule["invoices"].last_run_at == first
    assert messages(client, group) == []
    # An hour and a second later another leader sends at once.
    place = f"{{beat:{group}}}:schedule"
    client.hset(place, "last:invoices", (first - timedelta(seconds=3601)).isoformat())
    last = beat(3, hourly)
    last.tick()
    last.tick()
    assert [each.run for each in messages(client, group)] == [1]
    assert timedelta(hours=1) > datetime.now(UTC) - last.schedule["invoices"].last_run_at


def test_a_clock_that_was_ahead_stops_nothing(beat: Beat, group: str, client: Any) -> None:
    minutely = {"invoices": {"task": TASK, "schedule": 60.0}}
    made = beat(schedule=minutely)
    place = f"{{beat:{group}}}:schedule"
    client.hset(place, "last:invoices", (datetime.now(UTC) + timedelta(days=9)).isoformat())
    assert made._reads(made._term)
    assert made.schedule["invoices"].last_run_at <= datetime.now(UTC)


def test_an_entry_that_is_due_tomorrow_is_looked_at_again_soon(beat: Beat, group: str) -> None:
    """The machine may sleep meanwhile, and its clock may be set."""
    daily = {"invoices": {"task": TASK, "schedule": timedelta(days=1)}}
    made = beat(schedule=daily)
    made.tick()
    assert 0 < made._due[0][0] - time.monotonic() <= made.max_interval


def test_a_state_that_cannot_be_read_sends_nothing(
    beat: Beat, group: str, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = beat()
    client.hset(f"{{beat:{group}}}:schedule", "last:invoices", "yesterday")
    assert not made._reads(made._term)
    assert messages(client, group) == []
    assert "The state of the schedule cannot be read: Invalid isoformat" in caplog.text


def test_a_task_that_cannot_be_sent_does_not_hold_others_up(
    beat: Beat, group: str, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = {"bad": {"task": TASK, "schedule": 0.0, "args": (object(),)}, **ENTRY}
    made = beat(schedule=schedule)
    for _ in range(4):
        made.tick()
    assert [each.run for each in messages(client, group)] == [1, 2, 3]
    assert "Run 1 of bad could not be sent, and is tried again" in caplog.text


def test_a_prefix_of_all_keys_holds_for_queue_and_state(
    beat: Beat, group: str, client: Any
) -> None:
    made = beat(broker_transport_options={"global_keyprefix": "ours:"})
    made.tick()
    assert [each.run for each in messages(client, f"ours:{group}")] == [1]
    assert client.exists(f"{{beat:ours:{group}}}:schedule") == 1


def test_a_message_to_all_workers_is_recorded(beat: Beat, group: str, client: Any) -> None:
    made = beat(task_queues=[Queue(group, Exchange(group, type="fanout"), routing_key=group)])
    made.tick()
    made.tick()
    stored = client.hgetall(f"{{beat:{group}}}:schedule")
    assert (stored[b"count:invoices"], stored[b"sent:invoices"]) == (b"2", b"elsewhere")


def test_options_of_an_entry_are_kept(beat: Beat, group: str, client: Any) -> None:
    options = {"task_id": "mine", "headers": {"tenant": "a"}, "queue": f"{group}-other"}
    made = beat(schedule={"invoices": {**ENTRY["invoices"], "options": options}})
    made.tick()
    (text,) = client.lrange(f"{group}-other", 0, -1)
    headers = json.loads(text)["headers"]
    assert (headers["id"], headers["tenant"], headers["hustings_run"]) == ("mine", "a", 1)
    assert options["headers"] == {"tenant": "a"}


@pytest.mark.parametrize(
    "broker, setting, said",
    [
        ("memory://", None, "name the group of the beats"),
        ("memory://", {"group": 7}, "name the group of the beats"),
        ("memory://", {"group": ""}, "group"),
        ("memory://", {"group": "a", "gaurd": "x"}, "did you mean 'guard'?"),
        ("memory://", {"group": "a", "every": "1s"}, "unknown option 'every'"),
        ("memory://", {"group": "a", "guard": "sqlite://x"}, "sqlite"),
        ("memory://", {"group": "a"}, "cannot keep the state of the schedule: name a"),
        ("memory://", {"group": "a", "store": "postgres://x"}, "store: Redis URL must specify"),
    ],
)
def test_a_wrong_setting_ends_beat_with_a_sentence(
    broker: str, setting: object, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Celery("shop", broker=broker, set_as_current=False)
    if setting is not None:
        app.conf.hustings_beat = setting
    with pytest.raises(SystemExit) as ended:
        BeatScheduler(app)
    assert ended.value.code == 2
    (record,) = [each for each in caplog.records if each.levelno == logging.CRITICAL]
    assert record.getMessage().startswith("hustings_beat: ")
    assert said in record.getMessage()
