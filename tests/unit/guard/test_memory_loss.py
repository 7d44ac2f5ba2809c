"""An engine that comes back without its memory: what every guard makes of it, and what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from hustings.core.errors import BadInput
from hustings.guard import (
    Behind,
    Floor,
    Grant,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    MemoryLost,
    NotGranted,
)
from hustings.guard.base import HIGHEST_LIFT, LARGEST_TOKEN, Unreachable
from hustings.guard.memory import MemoryGuard, Register
from tests.guard.answers import granted, refused
from tests.net.kit.loops import run

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 10.0


class Clocked(Register):
    """A register on the test's clock."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 100.0

    def now(self) -> float:
        return self.time


class Desk:
    """A register, guards on it, and what they have noted."""

    def __init__(self) -> None:
        self.register = Clocked()
        self.notes: list[str] = []

    def guard(self) -> MemoryGuard:
        guard = MemoryGuard(self.register, clock=self.register.now)
        guard.group = "jobs"
        guard.note = self.notes.append
        return guard


class Unlifted(MemoryGuard):
    """An engine whose tokens only an operator lifts."""

    lifts = False


class Unaware(Guard):
    """An engine's client that does not look at what is known."""

    guarantees = Guarantees(monotone=True)

    def __init__(self, token: int) -> None:
        super().__init__(clock=lambda: 100.0)
        self.token = token
        self.released: list[int] = []

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        return self.token

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        raise NotGranted("gone")

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self.released.append(token)

    async def _observe(self) -> AsyncIterator[Holding]:
        yield Holding(None, 0)


def test_tokens_go_on_above_what_is_known_once_a_forgotten_leader_must_have_ended() -> None:
    desk = Desk()
    guard = desk.guard()
    assert run(refused(guard, BEN, TTL, 1000)) == HeldBy("", 0, TTL)
    (note,) = desk.notes
    assert "lost its memory" in note
    assert "last token is 0, and token 1000" in note
    assert "10 s" in note
    desk.register.time += 9.5
    assert run(refused(guard, BEN, TTL, 1000)).remaining == pytest.approx(0.5)
    assert len(desk.notes) == 1, "said once"
    desk.register.time += 0.5
    assert run(granted(guard, BEN, TTL, 1000)).token == 1001
    assert "go on above 1000" in desk.notes[-1]
    assert len(desk.notes) == 2


def test_a_leader_in_its_time_goes_on_at_once_with_a_larger_token() -> None:
    """Nobody else can have been let in while its lease ran, so there is nobody to wait for."""
    desk = Desk()
    guard = desk.guard()
    desk.register.recover(1000)
    first = run(granted(guard, ADA, TTL))
    desk.register.forget()
    with pytest.raises(NotGranted):
        run(guard.renew(first, TTL))
    assert run(granted(guard, ADA, TTL, first.token)).token == first.token + 1
    assert "lost its memory" in desk.notes[0]
    assert "go on above 1001" in desk.notes[1]


@pytest.mark.parametrize(
    "holder, known, later",
    [
        pytest.param(ADA, 1001, TTL, id="its time is over"),
        pytest.param(ADA, 1002, 0.0, id="somebody came later"),
        pytest.param(BEN, 1001, 0.0, id="another one asks"),
    ],
)
def test_nobody_else_goes_on_at_once(holder: Holder, known: int, later: float) -> None:
    desk = Desk()
    guard = desk.guard()
    desk.register.recover(1000)
    assert run(granted(guard, ADA, TTL)).token == 1001
    desk.register.forget()
    desk.register.time += later
    assert run(refused(guard, holder, TTL, known)).remaining == TTL


def test_whoever_gave_back_waits_like_others() -> None:
    desk = Desk()
    guard = desk.guard()
    run(guard.release(run(granted(guard, ADA, TTL))))
    desk.register.forget()
    run(refused(guard, ADA, TTL, 1))


def test_the_wait_is_that_of_the_lease_asked_for_now() -> None:
    desk = Desk()
    guard = desk.guard()
    run(refused(guard, BEN, 2.0, 7))
    desk.register.time += 2.0
    assert run(refused(guard, BEN, TTL, 7)).remaining == pytest.approx(8.0)


def test_the_wait_is_that_of_the_longest_lease_that_was_heard_of() -> None:
    """Who holds may have asked for more than who waits, and is forgotten with its lease."""
    desk = Desk()
    token = run(granted(desk.guard(), ADA, TTL)).token
    waiting = desk.guard()
    assert run(refused(waiting, BEN, 2.0)).remaining == pytest.approx(TTL)
    desk.register.forget()
    assert run(refused(waiting, BEN, 2.0, token)).remaining == pytest.approx(TTL)
    assert "10 s" in desk.notes[-1]
    desk.register.time += TTL - 0.5
    assert run(refused(waiting, BEN, 2.0, token)).remaining == pytest.approx(0.5)
    desk.register.time += 0.5
    assert run(granted(waiting, BEN, 2.0, token)).token > token


def test_what_was_only_heard_of_counts_if_the_engine_has_forgotten_its_own_word() -> None:
    """Somebody may have had that token: it must not be granted again."""
    desk = Desk()
    guard, well = desk.guard(), desk.guard()
    assert run(guard.acquire(BEN, TTL, 1000, 1005)) == HeldBy("", 0, TTL)
    assert "token 1005 is known here" in desk.notes[0]
    desk.register.time += TTL
    lifted = run(guard.acquire(BEN, TTL, 1000, 1005))
    assert isinstance(lifted, Grant)
    assert lifted.token == 1006
    assert "go on above 1005: 1006" in desk.notes[1]
    run(guard.release(lifted))
    lied_to = run(well.acquire(ADA, TTL, 1006, 9999))
    assert isinstance(lied_to, Grant)
    assert lied_to.token == 1007, "an engine that knows its own word is not lifted"
    desk.register.forget()
    at_once = run(well.acquire(ADA, TTL, 1007, 1009))
    assert isinstance(at_once, Grant)
    assert at_once.token == 1010


def test_an_engine_that_is_well_again_is_not_lifted() -> None:
    desk = Desk()
    guard = desk.guard()
    run(refused(guard, BEN, TTL, 1000))
    desk.register.recover(5000)
    assert run(granted(guard, BEN, TTL, 1000)).token == 5001
    desk.register.forget()
    desk.register.time += 100.0
    run(refused(desk.guard(), BEN, TTL, 5001))
    assert run(refused(guard, BEN, TTL, 5001)).remaining == TTL, "another loss, another wait"


def test_what_is_known_does_no_harm_to_who_holds() -> None:
    desk = Desk()
    guard = desk.guard()
    first = run(granted(guard, ADA, TTL))
    assert run(granted(guard, ADA, TTL, first.token)).token == first.token
    assert not desk.notes


def test_who_holds_a_token_below_what_it_has_heard_of_gets_a_larger_one() -> None:
    desk = Desk()
    guard = desk.guard()
    assert run(granted(guard, ADA, TTL)).token == 1
    assert run(refused(guard, ADA, TTL, 1000)) == HeldBy("", 0, TTL)
    desk.register.time += TTL
    assert run(granted(guard, ADA, TTL, 1000)).token == 1001


def test_a_holder_with_a_token_that_is_refused_everywhere_is_told_of() -> None:
    desk = Desk()
    guard = desk.guard()
    run(granted(desk.guard(), ADA, TTL))
    held = run(refused(guard, BEN, TTL, 1000))
    assert (held.holder, held.token) == ("ada", 1)
    (note,) = desk.notes
    assert "ada holds that token" in note
    run(refused(guard, BEN, TTL, 1000))
    assert len(desk.notes) == 1


def test_who_holds_the_token_that_is_known_is_not_told_of() -> None:
    desk = Desk()
    guard = desk.guard()
    first = run(granted(desk.guard(), ADA, TTL))
    run(refused(guard, BEN, TTL, first.token))
    assert not desk.notes


def test_a_place_that_is_kept_for_somebody_is_no_loss() -> None:
    desk = Desk()
    guard = desk.guard()
    first = run(granted(guard, ADA, TTL))
    run(guard.release(first, to="cleo"))
    assert run(refused(guard, BEN, TTL, first.token)).holder == "cleo"
    assert not desk.notes


def test_a_loss_after_the_engine_was_well_again_is_waited_for_anew() -> None:
    desk = Desk()
    guard = desk.guard()
    run(refused(guard, BEN, TTL, 1000))
    desk.register.recover(1000)
    other = desk.guard()
    first = run(granted(other, ADA, TTL))
    assert run(refused(guard, BEN, TTL, 1000)).token == first.token
    desk.register.forget()
    desk.register.time += TTL
    assert run(refused(guard, BEN, TTL, 1001)).remaining == TTL
    assert len(desk.notes) == 2, "and told of anew"


def test_where_only_an_operator_lifts_it_is_told_what_to_do() -> None:
    desk = Desk()
    guard = Unlifted(desk.register, clock=desk.register.now)
    guard.group = "jobs"
    for _ in range(2):
        with pytest.raises(MemoryLost) as caught:
            run(guard.acquire(BEN, TTL, 1000))
        assert "hustings guards URL --group jobs --recover --above 1000" in str(caught.value)
        desk.register.time += 2 * TTL
    run(guard.recover(1000))
    assert run(granted(guard, BEN, TTL, 1000)).token == 1001


def test_an_engine_that_did_not_look_is_given_back_what_it_granted() -> None:
    guard = Unaware(5)
    with pytest.raises(MemoryLost, match="its last token is 5"):
        run(guard.acquire(BEN, TTL, 1000))
    assert guard.released == [5]
    assert run(granted(guard, BEN, TTL, 5)).token == 5, "it may be its own: the member decides"


def test_an_operator_says_a_token() -> None:
    guard = Desk().guard()
    for above in (0, -1, HIGHEST_LIFT + 1, LARGEST_TOKEN):
        with pytest.raises(BadInput, match=f"from 1 to {HIGHEST_LIFT} here, not {above}"):
            run(guard.recover(above))
    with pytest.raises(BadInput, match="no recovery"):
        run(Unaware(5).recover(10))


def test_recovering_never_lets_tokens_fall() -> None:
    desk = Desk()
    guard = desk.guard()
    run(guard.recover(1000))
    run(guard.recover(10))
    assert run(granted(guard, ADA, TTL)).token == 1001


def test_a_known_token_beyond_all_counting_is_refused_with_a_sentence() -> None:
    run(refused(Desk().guard(), ADA, TTL, HIGHEST_LIFT))
    with pytest.raises(MemoryLost, match="no engine counts that far"):
        run(Desk().guard().acquire(ADA, TTL, LARGEST_TOKEN + 1))


def test_no_engine_is_lifted_to_where_it_would_soon_end() -> None:
    """Not even by who leads; the engine keeps as many tokens again as it may be lifted to."""
    desk = Desk()
    guard = desk.guard()
    for known in (HIGHEST_LIFT + 1, LARGEST_TOKEN - 2, LARGEST_TOKEN):
        for _ in range(2):
            with pytest.raises(MemoryLost, match="let the group have another name"):
                run(guard.acquire(ADA, TTL, known))
            desk.register.time += 2 * TTL
    desk.register.recover(HIGHEST_LIFT)
    first = run(granted(guard, ADA, TTL))
    assert first.token == HIGHEST_LIFT + 1
    desk.register.forget()
    with pytest.raises(MemoryLost, match="no engine is lifted above"):
        run(guard.acquire(ADA, TTL, first.token))
    assert run(granted(guard, BEN, TTL)).token == 1, "nothing was lifted"


def test_an_engine_that_is_reminded_counts_on_above_and_leaves_alone_who_holds() -> None:
    desk = Desk()
    guard = desk.guard()
    small = run(granted(desk.guard(), ADA, TTL))
    run(guard.remind(Behind(small.token), 1000))
    assert "its last token is 1, and token 1000 is known here" in desk.notes[0]
    assert "next tokens are above" in desk.notes[0]
    assert run(guard.renew(small, TTL)).token == small.token
    run(guard.release(small))
    assert run(granted(guard, BEN, TTL)).token == 1001


def test_where_only_an_operator_lifts_who_would_remind_is_told_so() -> None:
    desk = Desk()
    guard = Unlifted(desk.register, clock=desk.register.now)
    with pytest.raises(MemoryLost, match="--recover --above 1000"):
        run(guard.remind(Behind(1), 1000))
    assert run(granted(guard, ADA, TTL)).token == 1


def test_a_look_shows_who_holds_or_says_that_it_cannot() -> None:
    desk = Desk()
    guard = desk.guard()
    assert run(guard.look()) == Holding(None, 0)
    run(granted(guard, ADA, TTL))
    assert run(guard.look()) == Holding("ada", 1)
    assert run(Unaware(5).look()) == Holding(None, 0)
    with pytest.raises(Unreachable, match="did not say who holds"):
        run(Silent(5).look())


class Silent(Unaware):
    """An engine that shows nothing."""

    async def _observe(self) -> AsyncIterator[Holding]:
        if self.token < 0:
            yield Holding(None, 0)


# Its identity is lost, too


class Keeping(MemoryGuard):
    """An engine that keeps a word in a list that tests read."""

    def __init__(self, register: Register, kept: list[str]) -> None:
        super().__init__(register)
        self.kept = kept
        self.away = False

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        if self.away:
            raise Unreachable("gone")
        if instead or not self.kept:
            self.kept[:] = [word]
        return self.kept[0]


class UnliftedKeeping(Keeping):
    lifts = False


def test_who_asks_first_draws_the_name_and_all_others_hear_it() -> None:
    async def play() -> None:
        register, kept = Register(), list[str]()
        one, two = Keeping(register, kept), Keeping(register, kept)
        drawn = await one.identity()
        assert (len(drawn), kept) == (16, [drawn])
        assert await two.identity() == drawn
        kept.clear()
        assert await two.identity() != drawn, "it has been told none to go by"
        kept.clear()
        two.known_as = drawn
        assert await two.identity() == drawn
        assert await MemoryGuard(register).identity() == "", "one that keeps none"

    run(play())


@pytest.mark.parametrize("kind", [Keeping, UnliftedKeeping])
def test_an_engine_that_is_behind_gets_its_name_back(kind: type[Keeping]) -> None:
    async def play() -> None:
        kept = ["another"]
        guard = kind(Register(), kept)
        assert isinstance(await guard.acquire(ADA, TTL), Grant)
        await guard.release(Grant(ADA, 1, 0.0))
        with suppress(MemoryLost):
            await guard.acquire(ADA, TTL, 9)
        assert kept == ["another"], "who goes by none gives none"
        guard.known_as = "mine"
        guard.away = True
        with suppress(MemoryLost):
            await guard.acquire(ADA, TTL, 9)
        assert kept == ["another"], "what cannot be done now is done next time"
        guard.away = False
        with suppress(MemoryLost):
            await guard.acquire(ADA, TTL, 9)
        assert kept == ["mine"]
        kept[:] = ["another"]
        with suppress(MemoryLost):
            await guard.remind(Behind(1), 9)
        assert kept == ["mine"]

    run(play())


def test_an_engine_that_is_well_keeps_its_name() -> None:
    async def play() -> None:
        kept = ["another"]
        guard = Keeping(Register(), kept)
        guard.known_as = "mine"
        grant = await guard.acquire(ADA, TTL)
        assert isinstance(grant, Grant)
        await guard.renew(grant, TTL)
        assert isinstance(await guard.acquire(BEN, TTL), HeldBy)
        await guard.release(grant)
        assert isinstance(await guard.acquire(BEN, TTL, 1), Grant)
        assert kept == ["another"]

    run(play())


def test_a_leader_whose_engine_forgets_gives_the_name_back_as_it_goes_on() -> None:
    async def play() -> None:
        register, kept = Register(), ["mine"]
        guard = Keeping(register, kept)
        guard.known_as = "mine"
        await guard.recover(9)
        first = await guard.acquire(ADA, TTL)
        assert isinstance(first, Grant)
        register.forget()
        kept.clear()
        again = await guard.acquire(ADA, TTL, first.token)
        assert isinstance(again, Grant)
        assert kept == ["mine"]

    run(play())
