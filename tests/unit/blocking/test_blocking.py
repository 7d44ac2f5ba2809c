"""Members for threads, on real sockets of this machine: no async in sight."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from hustings import blocking
from hustings.core.errors import BadInput, UnknownName
from hustings.core.names import member_id
from hustings.core.outcome import Guarantee
from hustings.net.logs import notes_of
from hustings.net.member_state import Leadership, LeadershipLost, NotLeader
from tests.waiting import PATIENCE_S, until


class Threads:
    """Threads of a test: what one raises is raised in the end."""

    def __init__(self) -> None:
        self._errors: list[BaseException] = []
        self._all: list[threading.Thread] = []

    def start(self, work: Callable[[], object]) -> threading.Thread:
        def caught() -> None:
            try:
                work()
            except BaseException as error:
                self._errors.append(error)

        thread = threading.Thread(target=caught, daemon=True)
        self._all.append(thread)
        thread.start()
        return thread

    def join(self) -> None:
        for thread in self._all:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        for error in self._errors:
            raise error


@pytest.fixture
def threads() -> Iterator[Threads]:
    started = Threads()
    yield started
    started.join()


class Members:
    """Members of one group, closed in the end."""

    def __init__(self, stack: ExitStack) -> None:
        self.group = uuid.uuid4().hex[:12]
        self._stack = stack
        self._seeds: list[str] = []

    def add(self, name: str, **options: Any) -> blocking.Member:
        joining = blocking.join(self.group, name=name, seeds=list(self._seeds), **options)
        member = self._stack.enter_context(joining)
        self._seeds.append(member.address)
        until(lambda: member.leader is not None, f"{name} knows a leader")
        return member


@pytest.fixture
def members() -> Iterator[Members]:
    before = set(threading.enumerate())  # those of other tests may end meanwhile
    with ExitStack() as stack:
        yield Members(stack)
    until(lambda: before.issuperset(threading.enumerate()), "no thread is left")


def both(members: Members) -> tuple[blocking.Member, blocking.Member]:
    """A leader and one that follows it."""
    one, other = members.add("one"), members.add("other")
    until(lambda: len(one.members()) == len(other.members()) == 2, "they know each other")
    until(lambda: one.is_leader and other.leader, "one leads")
    return one, other


# --- what is known -------------------------------------------------------------------------------


def test_what_a_member_tells(members: Members) -> None:
    one, other = both(members)
    assert (one.name, one.group, one.id) == ("one", members.group, member_id("one"))
    assert (one.guarantee, one.closed) == (Guarantee.ADVISORY, False)
    assert one.bound > 0
    assert one.leader is not None
    assert other.leader is not None
    assert (one.leader.name, one.leader.me) == ("one", True)
    assert (other.leader.name, other.leader.address) == ("one", one.address)
    assert [peer.name for peer in other.members()] == ["one", "other"]
    assert one.term == other.term == one.state.term
    assert one.metrics().is_leader
    assert not other.metrics().is_leader
    assert isinstance(one.notes, list)


def test_what_it_still_tells_when_closed(members: Members) -> None:
    one = members.add("one")
    one.close()
    one.close()
    one.leave()
    assert one.closed
    assert not one.is_leader
    assert one.state.reason == "left"
    assert [peer.name for peer in one.members()] == ["one"]
    assert one.metrics().term == one.term
    with pytest.raises(NotLeader, match="closed"):
        one.elect()
    with pytest.raises(NotLeader, match="closed"), one.campaign():
        pass


# --- campaigns -----------------------------------------------------------------------------------


def test_a_block_is_entered_when_leading_and_told_when_it_is_over(members: Members) -> None:
    one, other = both(members)
    with one.campaign(timeout=PATIENCE_S) as term:
        assert (term.group, term.member) == (members.group, "one")
        assert (term.number, term.token) == (one.term, None)
        assert not term.lost.is_set()
        term.check()
        one.transfer("other")
        assert term.lost.is_set()
        with pytest.raises(LeadershipLost, match="leads group"):
            term.check()
    with other.campaign(timeout=PATIENCE_S) as later:
        assert later.number > term.number
        assert not later.lost.is_set()


def test_leaving_the_block_keeps_leadership(members: Members) -> None:
    one = members.add("one")
    for _ in range(20):
        with one.campaign(timeout=PATIENCE_S) as term:
            term.check()
        assert term.lost.is_set()  # it may be lost from now on, and nobody would tell
        assert one.is_leader


def test_what_is_raised_in_a_block_comes_out_as_it_is(members: Members) -> None:
    one = members.add("one")
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, one.campaign(timeout=PATIENCE_S):
        raise error
    assert caught.value is error
    with one.campaign(timeout=PATIENCE_S):
        pass


def test_who_does_not_lead_in_time_is_told(members: Members) -> None:
    one, other = both(members)
    for timeout in (0.0, 0.05):
        with pytest.raises(TimeoutError, match="did not lead"), other.campaign(timeout=timeout):
            pass
    one.transfer("other")
    with other.campaign(timeout=PATIENCE_S) as term:
        term.check()


def test_a_loss_reaches_a_block_in_another_thread(members: Members, threads: Threads) -> None:
    one, other = both(members)
    entered, left = threading.Event(), threading.Event()

    def work() -> None:
        with one.campaign() as term:
            entered.set()
            assert term.lost.wait(PATIENCE_S)
        left.set()

    threads.start(work)
    assert entered.wait(PATIENCE_S)
    one.resign()
    assert left.wait(PATIENCE_S)
    until(lambda: other.is_leader, "the other leads")


def test_a_hand_over_waits_for_a_block(members: Members, threads: Threads) -> None:
    one, other = both(members)
    entered, finished = threading.Event(), threading.Event()

    def work() -> None:
        with one.campaign(drain=PATIENCE_S) as term:
            entered.set()
            assert term.draining.wait(PATIENCE_S)
            assert not term.lost.is_set()
            assert not other.is_leader
            finished.set()

    threads.start(work)
    assert entered.wait(PATIENCE_S)
    one.transfer("other")
    assert finished.is_set()
    until(lambda: other.is_leader, "the other leads")


@pytest.mark.parametrize("how", ["resign", "transfer", "close"])
def test_a_hand_over_does_not_wait_for_the_block_it_is_called_in(
    members: Members, how: str
) -> None:
    one, other = both(members)
    with one.campaign(timeout=PATIENCE_S, drain=PATIENCE_S) as term:
        since = time.monotonic()
        if how == "transfer":
            one.transfer("other")
        else:
            getattr(one, how)()
        assert time.monotonic() - since < PATIENCE_S / 2
        assert term.lost.is_set()
    until(lambda: other.is_leader, "the other leads")


def test_blocks_in_several_threads(members: Members, threads: Threads) -> None:
    one, _ = both(members)
    inside = threading.Barrier(5)

    def work() -> None:
        with one.campaign() as term:
            inside.wait(PATIENCE_S)
            assert term.lost.wait(PATIENCE_S)

    for _ in range(4):
        threads.start(work)
    inside.wait(PATIENCE_S)
    one.resign()
    threads.join()


# --- observing -----------------------------------------------------------------------------------


def test_observing_shows_what_is_and_what_comes(members: Members) -> None:
    one, other = both(members)
    seen = other.observe(timeout=PATIENCE_S)
    first = next(seen)
    assert first.leader is not None
    assert (first.leader.name, first.leading) == ("one", False)
    one.transfer("other")
    assert any(state.leading for state in seen)
    other.close()
    rest = list(seen)
    assert rest == [] or rest[-1].reason == "left"
    assert list(seen) == []


def test_a_time_out_does_not_end_observing(members: Members) -> None:
    one, other = both(members)
    seen = other.observe(timeout=0.2)
    quiet = settle(seen)
    assert quiet.leader is not None
    assert quiet.leader.name == "one"
    one.transfer("other")
    until(lambda: other.is_leader, "the other leads")
    assert settle(seen).leading


def settle(seen: blocking.Observation) -> Leadership:
    """The last state before one in which nothing happens for a while."""
    last = next(seen)
    with suppress(TimeoutError):
        while True:
            last = next(seen)
    return last


def test_who_stops_observing_leaves_nothing_on_the_loop(members: Members) -> None:
    one = members.add("one")
    with one.campaign(timeout=PATIENCE_S):
        pass
    before = tasks_of(one)
    for _ in range(10):
        for _state in one.observe():
            break
    until(lambda: tasks_of(one) <= before, "the followers are gone")


def tasks_of(member: blocking.Member) -> int:
    """Tasks on its loop. One's own is not counted."""
    return member._thread.call(_tasks) - 1


async def _tasks() -> int:
    return len(asyncio.all_tasks())


# --- closing -------------------------------------------------------------------------------------


def test_closing_wakes_everybody_who_waits(members: Members, threads: Threads) -> None:
    _, other = both(members)
    waiting = threading.Barrier(3)

    def campaign() -> None:
        waiting.wait(PATIENCE_S)
        with pytest.raises(NotLeader), other.campaign():
            pass

    def observe() -> None:
        seen = other.observe()
        next(seen)
        waiting.wait(PATIENCE_S)
        assert all(not state.leading for state in seen)

    threads.start(campaign)
    threads.start(observe)
    waiting.wait(PATIENCE_S)
    other.close()
    threads.join()


def test_closing_from_many_threads_at_once(members: Members, threads: Threads) -> None:
    one = members.add("one")
    together = threading.Barrier(6)

    def close() -> None:
        together.wait(PATIENCE_S)
        one.close()
        assert one.closed

    for _ in range(6):
        threads.start(close)
    threads.join()


def test_closing_in_a_callback(members: Members) -> None:
    """A note is told on the member's own thread, which cannot wait for itself."""
    closing: list[blocking.Member] = []
    refused: list[str] = []

    def note(sentence: str) -> None:
        for member in closing:
            assert [peer.name for peer in member.members()] == ["one"]
            try:
                member.elect()
            except RuntimeError as error:
                refused.append(str(error))
            member.close()

    with notes_of(members.group, note):
        one = members.add("one")
        closing.append(one)
        one._thread.soon(lambda: one._member.note("the end is near"))
        until(lambda: one.closed, "it is closed")
    assert refused == ["a member's own thread cannot wait for it: use another thread"]


def test_an_error_in_the_with_closes(members: Members) -> None:
    with pytest.raises(ZeroDivisionError), blocking.join(members.group, name="one") as one:
        raise ZeroDivisionError
    assert one.closed


# --- what goes wrong -----------------------------------------------------------------------------


def test_errors_cross_threads_as_they_are(members: Members) -> None:
    one, other = both(members)
    with pytest.raises(UnknownName, match="did you mean 'other'"):
        one.transfer("othr")
    with pytest.raises(NotLeader, match="ask its leader"):
        other.transfer("one")
    with pytest.raises(BadInput, match="finite"):
        one.update({"cpu": float("nan")})
    one.update({"cpu": 8.0})
    until(lambda: other.members()[0].attributes == {"cpu": 8.0}, "the other learns of it")


def test_bad_input_is_refused_before_a_thread_starts() -> None:
    before = set(threading.enumerate())
    with pytest.raises(BadInput, match="unknown protocol"):
        blocking.join("billing", protocol="le-z")
    with pytest.raises(TypeError):
        blocking.join("billing", nonsense=1)  # type: ignore[call-arg]  # that is the test
    assert before.issuperset(threading.enumerate())


def test_a_port_in_use_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        joining = blocking.join("billing", bind=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(BadInput), joining:
            pass
    assert before.issuperset(threading.enumerate())


# --- whole programs ------------------------------------------------------------------------------


def program(text: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_program_that_forgets_to_close_ends_and_says_goodbye(members: Members) -> None:
    """Also with a daemon thread in a block, and one that observes."""
    one = members.add("one")
    text = f"""
        import threading
        from hustings import blocking
        member = blocking.join({members.group!r}, name="guest", seeds=[{one.address!r}]).open()
        def work():
            try:
                with member.campaign():
                    pass
            except blocking.NotLeader:
                pass
        threading.Thread(target=work, daemon=True).start()
        threading.Thread(target=lambda: list(member.observe()), daemon=True).start()
        while len(member.members()) < 2:
            pass
        print(member.name)
    """
    with program(text) as guest:
        out, err = guest.communicate(timeout=PATIENCE_S)
    assert (guest.returncode, out, err) == (0, "guest\n", "")
    assert [peer.name for peer in one.members()] == ["one"]  # it said so: nobody had to suspect it


def test_ctrl_c_ends_a_wait(members: Members) -> None:
    one = members.add("one")
    text = f"""
        import signal
        from hustings import blocking
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with blocking.join({members.group!r}, name="guest", seeds=[{one.address!r}]) as member:
            try:
                print("waiting", flush=True)
                with member.campaign():
                    pass
            except KeyboardInterrupt:
                print("interrupted", member.closed, flush=True)
        print(member.closed)
    """
    with program(text) as guest:
        assert guest.stdout is not None
        until(lambda: len(one.members()) == 2, "the guest is there")
        assert guest.stdout.readline() == "waiting\n"
        guest.send_signal(signal.SIGINT)
        out, err = guest.communicate(timeout=PATIENCE_S)
    assert (guest.returncode, out, err) == (0, "interrupted False\nTrue\n", "")


def test_a_forked_child_has_no_member(members: Members) -> None:
    text = f"""
        import os
        from hustings import blocking
        with blocking.join({members.group!r}, name="parent") as member:
            with member.campaign() as term:
                child = os.fork()
                if child == 0:
                    try:
                        member.elect()
                    except blocking.NotLeader as error:
                        print(error, flush=True)
                    member.close()
            if child == 0:
                raise SystemExit(7)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), member.closed, member.is_leader)
            with member.campaign():
                print("leads")
    """
    with program(text) as parent:
        out, err = parent.communicate(timeout=PATIENCE_S)
    assert (parent.returncode, err) == (0, "")
    assert out.splitlines() == [
        "this member stayed in the process that was forked: join again",
        "7 False True",
        "leads",
    ]
