"""`celery beat` in several processes, of which exactly one sends tasks.

    app.conf.beat_scheduler = "hustings.celery_beat:BeatScheduler"
    app.conf.hustings_beat = {"group": "shop-beat", "guard": "valkey://10.0.0.5:6379", "ttl": "1s"}

`hustings_beat` has the name of the group, options of `hustings.join`, and `store`: the Redis or
Valkey that keeps the state of the schedule. Without `store` that is the broker, if it is one.

**State.** For each entry of the schedule: how often it ran, when it ran last, and the id of that
run. A leader reads it when it begins to lead, so a period goes on where the last leader was. What
was due meanwhile is sent once.

**Guarantee.** Each run of an entry is recorded under its number, and only by the first that asks. A
leader whose token is not the highest is refused, even if it was paused just before it sent.

- With the state in the broker, record and message are one step: no run is sent twice, and none is
  left out, whenever a leader is killed.
- With the state elsewhere the run is recorded before it is sent, and ticked off afterwards. If a
  leader is killed in between, the next one sends the run again, with the same task id. So none is
  left out, and one may arrive twice.

Each message has the headers `hustings_run`, `hustings_term` and `hustings_token`. A task passes the
token on to a fence of what it writes to.

Law: nothing is sent that is not recorded.
"""

from __future__ import annotations

import heapq
import re
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import quote

from celery.beat import Scheduler
from celery.utils.log import get_logger
from kombu.utils.json import dumps

from hustings.blocking import Term
from hustings.blocking.loop import wait_for_any
from hustings.core.errors import BadInput, HustingsError, UnknownName, printable
from hustings.extras import install_command
from hustings.fence import RedisFence, StaleToken
from hustings.net.member_state import LeadershipLost
from hustings.scheduled import JOIN_OPTIONS, RunningJob, ScheduledJob, once

SETTING = "hustings_beat"
_RETRY_S, _LONGEST_RETRY_S = 1.0, 60.0  # until what failed is tried again; this doubles
_DRAIN_S = 2.0  # for the message that is being sent when leadership is handed over
_EXIT_S = 2.0  # for a goodbye
_IO_S = 5.0  # for an answer of the server that keeps the state
_UNGUARDED = 1  # without a guard there is no token, and every leader has this one

_LOG = get_logger(__name__)

# KEYS[2] is a hash with four fields for each entry: count, last, run and sent.
_LOAD = """
for place = 3, #ARGV do
  redis.call('HSETNX', KEYS[2], 'count:' .. ARGV[place], '0')
  redis.call('HSETNX', KEYS[2], 'last:' .. ARGV[place], ARGV[2])
end
return redis.call('HGETALL', KEYS[2])
"""
# The same run may be recorded again: its answer was lost, or it goes to a second queue, KEYS[3].
_RECORD = """
local name, count, counted, last, run = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local found = redis.call('HMGET', KEYS[2], 'count:' .. name, 'run:' .. name, 'sent:' .. name)
local sent = found[3] or ''
if found[2] ~= run then
  if found[1] ~= count then return 'moved' end
  sent = ''
  redis.call('HSET', KEYS[2], 'count:' .. name, counted, 'last:' .. name, last,
    'run:' .. name, run, 'sent:' .. name, sent)
end
if KEYS[3] and not string.find(sent, '\\n' .. KEYS[3] .. '\\n', 1, true) then
  redis.call('LPUSH', KEYS[3], ARGV[7])
  redis.call('HSET', KEYS[2], 'sent:' .. name, sent .. '\\n' .. KEYS[3] .. '\\n')
end
return 'recorded'
"""
_TICK_OFF = """
if redis.call('HGET', KEYS[2], 'run:' .. ARGV[2]) == ARGV[3] then
  redis.call('HSET', KEYS[2], 'sent:' .. ARGV[2], 'elsewhere')
end
"""


class AlreadySent(HustingsError):
    """Another leader has recorded this run."""


@dataclass(slots=True)
class _Run:
    """One run of an entry, until it is sent."""

    name: str
    count: int  # of the runs before
    last: datetime  # when it was due: the entry's next `last_run_at`
    id: str
    recorded: bool = False
    tries: int = 0


class _State:
    """Where the runs of one group are recorded."""

    def __init__(self, group: str, prefix: str) -> None:
        fence = RedisFence("beat:" + quote(prefix + group, safe=":"))
        self._key = fence.key("schedule")
        self._load, self._record, self._tick_off = map(fence.script, (_LOAD, _RECORD, _TICK_OFF))

    def load(self, client: Any, token: int, now: datetime, names: list[str]) -> dict[str, str]:
        """All fields; an entry that is new has not run yet, and its first period begins now."""
        flat = self._load.call(client, token, [self._key], [now.isoformat(), *names])
        words = [word.decode() if isinstance(word, bytes) else str(word) for word in flat]
        return dict(zip(words[::2], words[1::2], strict=True))

    def record(
        self, client: Any, token: int, run: _Run, queue: str | None = None, message: str = ""
    ) -> None:
        """Record a run, and in the same step put a message into a queue."""
        keys = [self._key] if queue is None else [self._key, queue]
        counts = str(run.count), str(run.count + 1)
        words = [run.name, *counts, run.last.isoformat(), run.id, message]
        answer = self._record.call(client, token, keys, words)
        if answer not in ("recorded", b"recorded"):
            raise AlreadySent(f"run {run.count + 1} of {run.name} was recorded by another leader")
        run.recorded = True

    def tick_off(self, client: Any, token: int, run: _Run) -> None:
        """The broker has the message."""
        self._tick_off.call(client, token, [self._key], [run.name, run.id])


class _Recorder:
    """Records the run that is being sent, for the channel that sends it."""

    def __init__(self, state: _State, token: int, run: _Run) -> None:
        self._state, self._token, self._run = state, token, run
        self.queued = False  # whether the message is in its queue, by the same step
        self.refused: HustingsError | None = None

    def record(self, client: Any, queue: str | None = None, message: str = "") -> None:
        """As `_State.record`, and remember a refusal: Celery wraps what is raised."""
        try:
            self._state.record(client, self._token, self._run, queue, message)
        except HustingsError as error:
            self.refused = error
            raise
        self.queued = self.queued or queue is not None

    def finish(self, client: Any) -> None:
        """The broker has the message."""
        if self.queued:
            return
        if not self._run.recorded:  # it was not sent by a channel: no queue takes it
            self.record(client)
        self._state.tick_off(client, self._token, self._run)


_SENDING: ContextVar[_Recorder | None] = ContextVar("hustings_beat", default=None)


class _RecordingChannel:
    """What comes before a channel of kombu: a message and the record of its run are one step."""

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        channel: Any = self
        recorder = _SENDING.get()
        if recorder is None:
            super()._put(queue, message, **kwargs)  # type: ignore[misc]  # of the channel
        elif queue in (getattr(channel, "_expires", None) or ()):  # more than one command
            recorder.record(_client_of(channel))
            super()._put(queue, message, **kwargs)  # type: ignore[misc]  # of the channel
        else:
            priority = channel._get_message_priority(message, reverse=False)
            key = _prefix_of(channel) + channel._q_for_pri(queue, priority)
            recorder.record(_client_of(channel), key, dumps(message))

    def _put_fanout(self, *args: Any, **kwargs: Any) -> None:
        if recorder := _SENDING.get():
            recorder.record(_client_of(self))
        super()._put_fanout(*args, **kwargs)  # type: ignore[misc]  # of the channel


def _client_of(channel: Any) -> Any:
    """A client that adds no prefix to keys."""
    import redis  # noqa: PLC0415 (only where the broker or the state is one)

    return redis.Redis(connection_pool=channel.pool)


def _prefix_of(channel: Any) -> str:
    return getattr(channel, "global_keyprefix", "") or ""


def _recording(transport: type) -> type:
    """The same transport, with channels that record what they send."""
    mixed: Any = transport
    channel = type("RecordingChannel", (_RecordingChannel, mixed.Channel), {})
    return type("RecordingTransport", (transport,), {"Channel": channel})


class BeatScheduler(Scheduler):  # type: ignore[misc]  # Celery comes without types
    """A scheduler of `celery beat` that sends tasks only while its process leads a group."""

    def __init__(self, app: Any, *args: Any, **kwargs: Any) -> None:
        self._term: Term | None = None  # in which this process leads
        self._loaded: Term | None = None  # for which the state was read
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._sending = threading.Lock()
        self._closing = False
        self._member: RunningJob | None = None
        self._own_client: Any = None  # of a state that is not in the broker
        self._due: list[tuple[float, int, str]] = []  # a heap: when, in which order, what
        self._order = 0
        self._open: dict[str, _Run] = {}  # runs that were begun, and may not have been sent
        super().__init__(app, *args, **kwargs)

    def setup_schedule(self) -> None:
        """Read the options, and join the group; exit code 2 if an option is wrong."""
        try:
            self.read_setting()
        except BadInput as error:
            _LOG.critical("%s: %s", SETTING, error)
            raise SystemExit(2) from None
        self.merge_inplace(self.app.conf.beat_schedule)
        self.install_default_entries(self.schedule)
        self._member = self._job().start()

    def read_setting(self) -> None:
        """Read `app.conf.hustings_beat`, and start nothing; `BadInput` says what is wrong."""
        self._options = _options(self.app)
        self._job().check()
        self._find_state()

    def close(self) -> None:
        """Leave the group, so that another process leads; Celery calls this when beat ends.

        Once in the handler of SIGTERM, which may interrupt a message that is being sent, and once
        more when its loop has ended. Only the second call may close that message's connection.
        """
        self._closing = True
        member, self._member = self._member, None
        if member is not None:
            member.stop(_EXIT_S)
        if not self._sending.locked():
            super().close()
            if self._own_client is not None:
                self._own_client.close()

    @property
    def info(self) -> str:
        """A line of what `celery beat` shows at its start."""
        given = getattr(self.app.conf, SETTING, None)
        group = given.get("group") if isinstance(given, Mapping) else None
        return f"       . group -> {group}"

    # The group

    def _job(self) -> ScheduledJob[Any, Any]:
        options = {name: value for name, value in self._options.items() if name in JOIN_OPTIONS}
        return once(self._options["group"], drain=_DRAIN_S, **options)(self._lead)

    def _lead(self, term: Term) -> None:
        """In a thread: this process leads until this returns."""
        self._term = term
        self._wake.put(None)
        try:
            wait_for_any((term.lost, term.draining))
        finally:
            self._term = None
            # Not while closing: then the thread that sends waits for this one.
            if not self._closing and self._sending.acquire(timeout=_DRAIN_S):
                self._sending.release()

    # The loop of `celery beat`

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send a task that is due, or wait; Celery calls this again and again."""
        term = self._term
        if self._closing:  # a client may have lost the end that a signal's handler has raised
            raise SystemExit
        if term is None:
            self._wait(self.max_interval)
        elif not self._reads(term):
            self._wait(_RETRY_S)
        elif not self._due:
            self._wait(self.max_interval)
        elif (early := self._due[0][0] - time.monotonic()) > 0:
            self._wait(min(early, self.max_interval))
        else:
            self._take(term, heapq.heappop(self._due)[2])
        return 0.0

    def _wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._wake.get(timeout=seconds)

    def _reads(self, term: Term) -> bool:
        """Whether the state is known in this term."""
        if self._loaded is term:
            return True
        try:
            fields = self._state.load(self._client(), _token(term), _now(), list(self.schedule))
            self._begin(fields)
        except Exception as error:
            _LOG.error("The state of the schedule cannot be read: %s", printable(str(error)))
            return False
        self._loaded = term
        return True

    def _begin(self, fields: Mapping[str, str]) -> None:
        """Go on where the last leader was."""
        self._due, self._open = [], {}
        now = _now()
        for name, entry in self.schedule.items():
            count = int(fields[f"count:{name}"])
            # The clock of that leader may have been wrong.
            last = min(datetime.fromisoformat(fields[f"last:{name}"]), now)
            if fields.get(f"sent:{name}") == "":  # recorded, and maybe not sent
                self._open[name] = _Run(name, count - 1, last, fields[f"run:{name}"])
            self._advance(entry, count, last)
            self._plan(name, 0.0)

    def _advance(self, entry: Any, count: int, last: datetime) -> None:
        entry.total_run_count = count
        entry.last_run_at = last.astimezone(self.app.timezone)

    def _plan(self, name: str, seconds: float) -> None:
        """Look at an entry again; early enough to notice that the date was changed meanwhile."""
        self._order += 1
        at = time.monotonic() + min(seconds, self.max_interval)
        heapq.heappush(self._due, (at, self._order, name))

    def _take(self, term: Term, name: str) -> None:
        """Send an entry if it is due, and plan it again."""
        entry, run = self.schedule[name], self._open.get(name)
        try:
            is_due, seconds = self.is_due(entry)
        except Exception:
            _LOG.exception("The next run of %s cannot be calculated", name)
            is_due, seconds = False, self.max_interval
        if is_due or run is not None:
            run = run or _Run(name, entry.total_run_count, _now(), str(uuid.uuid4()))
            seconds = 0.0 if self._sent(term, entry, run) else self._later(run)
        self._plan(name, seconds)

    def _later(self, run: _Run) -> float:
        run.tries += 1
        return min(_LONGEST_RETRY_S, _RETRY_S * 2.0 ** min(run.tries - 1, 10))

    def _sent(self, term: Term, entry: Any, run: _Run) -> bool:
        self._open[run.name] = run
        with self._sending:
            if self._term is not term:
                return False
            recorder = _Recorder(self._state, _token(term), run)
            try:
                term.check()
                self._publish(term, entry, run, recorder)
            except Exception as error:
                self._tell(run, recorder.refused or error)
                return False
        del self._open[run.name]
        self._advance(entry, run.count + 1, run.last)
        _LOG.info("Scheduler: Sending due task %s (%s)", entry.name, entry.task)
        return True

    def _publish(self, term: Term, entry: Any, run: _Run, recorder: _Recorder) -> None:
        producer = self.producer
        if not self._one_step:
            recorder.record(self._client())
        headers = {
            **(entry.options.get("headers") or {}),
            "hustings_run": run.count + 1,
            "hustings_term": term.number,
            "hustings_token": term.token,
        }
        options = {"task_id": run.id, **entry.options, "headers": headers}
        stamped = self.Entry(**{**dict(entry), "options": options})
        sending = _SENDING.set(recorder if self._one_step else None)
        try:
            self.apply_async(stamped, producer=producer, advance=False)
        finally:
            _SENDING.reset(sending)
        recorder.finish(self._client())

    def _tell(self, run: _Run, error: Exception) -> None:
        if isinstance(error, AlreadySent | StaleToken | LeadershipLost):
            self._loaded = None  # another leader may have changed the state
            _LOG.warning("Run %d of %s is not sent: %s", run.count + 1, run.name, error)
        else:
            said = "Run %d of %s could not be sent, and is tried again: %s"
            _LOG.error(said, run.count + 1, run.name, printable(str(error)), exc_info=error)

    # The broker, and where the state is

    @cached_property
    def connection(self) -> Any:
        """The broker; if the state is there, too, its channels record what they send."""
        connection = self.app.connection_for_write()
        if self._one_step:
            connection.transport_cls = _recording(connection.get_transport_cls())
        return connection

    def _find_state(self) -> None:
        """Find out where the state is; nothing is connected."""
        url, prefix = self._options.get("store"), ""
        self._one_step = url is None
        if url is None:
            broker = self.app.connection_for_write()
            if not _is_redis(broker.get_transport_cls()):
                raise BadInput(
                    f"the broker {broker.as_uri()} cannot keep the state of the schedule: name a "
                    f"Redis or Valkey that does, as app.conf.{SETTING}['store'] = 'valkey://...'"
                )
            prefix = (broker.transport_options or {}).get("global_keyprefix") or ""
        else:
            self._own_client = _client_at(url)
        self._state = _State(self._options["group"], prefix)

    def _client(self) -> Any:
        return _client_of(self.producer.channel) if self._one_step else self._own_client


def _now() -> datetime:
    return datetime.now(UTC)


def _token(term: Term) -> int:
    return _UNGUARDED if term.token is None else term.token


def _options(app: Any) -> dict[str, Any]:
    given = getattr(app.conf, SETTING, None)
    if not isinstance(given, Mapping) or not isinstance(given.get("group"), str):
        raise BadInput(
            f"name the group of the beats, as app.conf.{SETTING} = {{'group': 'shop-beat'}}"
        )
    known = ["group", "store", *JOIN_OPTIONS]
    for name in given:
        if name not in known:
            raise UnknownName("option", str(name), known)
    return dict(given)


def _is_redis(transport: type) -> bool:
    from kombu.transport.redis import Transport  # noqa: PLC0415 (for those who have it)

    return issubclass(transport, Transport)


def _client_at(url: object) -> Any:
    """A client of Redis or Valkey; nothing is connected."""
    try:
        import redis  # noqa: PLC0415 (for those who have it)
    except ImportError:
        raise BadInput(f"store needs redis-py: {install_command('redis')}") from None
    try:
        text = re.sub(r"^valkey(s?)://", r"redis\1://", str(url))
        return redis.Redis.from_url(text, socket_timeout=_IO_S, socket_connect_timeout=_IO_S)
    except ValueError as error:
        raise BadInput(f"store: {printable(str(error))}") from None
