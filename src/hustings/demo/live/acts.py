"""The acts: what is done to the group, and how long it takes until all agree again.

Each act does one thing to real processes. Then it waits until every live member follows one leader,
and has done so for a while. Every wait has a limit. An act that reaches its limit has failed, and
says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Protocol

from hustings.core.errors import HustingsError
from hustings.core.streams import Stream, derive
from hustings.demo.live import telling
from hustings.demo.live.channel import CutOrder, HandOver, HealOrder, Order, RefusedReport, Report
from hustings.demo.live.measuring import Board, ProcessState, Sides
from hustings.demo.live.member_process import FIGURES, MemberPlan
from hustings.demo.live.processes import Processes
from hustings.demo.live.scene import NAMES, Audience, LiveAct, LivePlan, LiveScene

CALM = 0.5  # seconds for which all must agree before the agreement counts
REST = 0.5  # seconds between two acts, at least
LOOK = 0.05  # seconds between two pictures for the audience, at most
_SEEDS = 3  # members whose addresses a new member gets


def play(plan: LivePlan, audience: Audience) -> LiveScene:
    """Play all acts with real processes; none is left when this returns or raises."""
    with Processes() as processes:
        return play_with(processes, plan, audience)


def play_with(troupe: Troupe, plan: LivePlan, audience: Audience) -> LiveScene:
    """Play all acts with these processes; an error of theirs ends the demo, and is reported."""
    play = _Play(plan, audience, troupe)
    try:
        play.run()
        troupe.dismiss()
    except HustingsError as error:
        play.scene.failure = str(error)
    return play.scene


class Troupe(Protocol):
    """The interface of the members' processes that acts use; see `Processes`."""

    def start(self, part: MemberPlan) -> int: ...
    def order(self, name: str, order: Order) -> None: ...
    def kill(self, name: str) -> None: ...
    def pause(self, name: str) -> None: ...
    def resume(self, name: str) -> None: ...
    def hear(self, patience: float) -> list[tuple[str, Report]]: ...
    def dismiss(self) -> None: ...


class NoGroup(HustingsError):
    """The processes have not formed a group, so there is nothing to show."""


class _Missed(Exception):
    """An act failed, for this reason."""


class _Play:
    """Does things to the group and watches the effects."""

    def __init__(self, plan: LivePlan, audience: Audience, troupe: Troupe) -> None:
        self._plan = plan
        self._audience = audience
        self._troupe = troupe
        self._dice = Stream(derive(plan.seed, "demo", "play"))
        self._board = Board()
        self._numbers: dict[str, int] = {}
        self._victim = ""  # the member that is killed and restarted, later the one stopped
        self._refusal = ""
        self._start = time.monotonic()
        self.scene = LiveScene(plan, self._board, f"demo-{os.getpid()}")

    def run(self) -> None:
        """Play all acts in their order."""
        deeds = (
            self._begin,
            self._kill,
            self._restart,
            self._pause,
            self._resume,
            self._cut,
            self._heal,
            self._transfer,
        )
        for place, deed in enumerate(deeds):
            self._rest(until=place * self._plan.seconds / len(deeds), first=place == 0)
            self.scene.act = place
            deed()
        self._rest(until=self._plan.seconds)

    # The acts

    def _begin(self) -> None:
        """Start all members; the first one's address lets the others find the group."""
        count = self._plan.members

        def deed() -> None:
            self._fork(1)
            first = next(iter(self._board.members.values()))
            if not self._wait(lambda: first.standing is ProcessState.RUNNING, self._plan.limit):
                raise _Missed("the first member did not open in time")
            for number in range(2, count + 1):
                self._fork(number)
                self._listen(0.0)

        self._act(f"{count} start", telling.start(count, self._plan.protocol), deed)
        if failure := self.scene.acts[-1].failure:
            raise NoGroup(f"the group has not come together: {failure}")

    def _kill(self) -> None:
        self._victim = leader = self._leader()

        def deed() -> None:
            self._troupe.kill(leader)
            self._board.put(leader, ProcessState.KILLED)

        pid = self._board.members[leader].pid
        self._act(f"SIGKILL to {leader}", telling.kill(leader, pid), deed)

    def _restart(self) -> None:
        victim = self._victim
        number = self._numbers[victim]
        self._act(f"{victim} starts again", telling.restart(victim), lambda: self._fork(number))

    def _pause(self) -> None:
        self._victim = leader = self._leader()

        def deed() -> None:
            self._troupe.pause(leader)
            self._board.put(leader, ProcessState.PAUSED)

        pid = self._board.members[leader].pid
        self._act(f"SIGSTOP to {leader}", telling.pause(leader, pid), deed)

    def _resume(self) -> None:
        victim = self._victim

        def deed() -> None:
            self._board.put(victim, ProcessState.RUNNING)
            self._troupe.resume(victim)

        self._act(f"SIGCONT to {victim}", telling.resume(victim), deed)

    def _cut(self) -> None:
        sides = self._draw_sides(self._leader())

        def deed() -> None:
            self._board.sides = sides
            for side, other in (sides, sides[::-1]):
                away = CutOrder(tuple(self._board.members[name].endpoint for name in other))
                for name in side:
                    self._troupe.order(name, away)

        sizes = [len(side) for side in sides]
        self._act(f"{sizes[0]} cut off from {sizes[1]}", telling.cut(sides), deed)

    def _heal(self) -> None:
        leading = self._board.leading()

        def deed() -> None:
            self._board.sides = ()
            for sight in self._board.up():
                self._troupe.order(sight.name, HealOrder())

        self._act("the cut heals", telling.heal(leading), deed)

    def _transfer(self) -> None:
        leader = self._leader()
        successor = self._dice.choice([s.name for s in self._board.up() if s.name != leader])

        def deed() -> None:
            self._troupe.order(leader, HandOver(successor))

        self._act(f"{leader} transfers", telling.transfer(leader, successor), deed, successor)

    # How an act is played

    def _act(self, what: str, sentence: str, deed: Callable[[], None], wanted: str = "") -> None:
        """Do the act, and wait until all agree: on `wanted`, if it is given."""
        scene, board = self.scene, self._board
        before = board.leading()
        if scene.acts and before != scene.acts[-1].after:
            scene.unasked += 1
            self._tell(telling.unasked(scene.acts[-1].after, before))
        self._tell(sentence)
        self._refusal = ""
        began = time.monotonic()
        board.begin(began)
        failure = ""
        try:
            deed()
            self._settle(began, wanted)
        except _Missed as missed:
            failure = str(missed)
        after = board.leading()
        agreed = None if failure else max(0.0, board.agreed_at() - began)
        act = LiveAct(
            name=NAMES[scene.act],
            what=what,
            began=began - self._start,
            noticed=None if board.noticed is None else board.noticed - began,
            agreed=agreed,
            before=before,
            after=after,
            term=board.term(after),
            members=len(board.up()),
            failure=failure,
        )
        scene.acts.append(act)
        self._tell(telling.verdict(act))

    def _settle(self, began: float, wanted: str) -> None:
        board = self._board

        def settled() -> bool:
            if self._refusal:
                raise _Missed(self._refusal)
            leaders = board.leaders()
            if not leaders or (wanted and leaders != (wanted,)):
                return False
            return time.monotonic() - max(began, board.agreed_at()) >= CALM

        limit = self._plan.limit
        if not self._wait(settled, limit):
            raise _Missed(f"no agreement within {telling.duration(limit)}")

    def _rest(self, until: float, first: bool = False) -> None:
        """Do nothing for a while; the next act needs members that know each other and agree."""
        if first:
            return
        now = time.monotonic()
        end = max(now + REST, self._start + until)
        self._wait(lambda: False, end - now)
        undisturbed = not self._board.sides and all(s.up for s in self._board.members.values())
        if undisturbed and end - now > 5 * FIGURES:  # so rates are those of the quiet time alone
            self.scene.at_rest.append(self._board.rate_each())
        board = self._board
        if self.scene.acts[-1].failure:
            return  # the wait was long enough
        if not self._wait(lambda: board.acquainted() and bool(board.leaders()), self._plan.limit):
            trouble = "agree" if board.acquainted() else "know of each other"
            limit = telling.duration(self._plan.limit)
            self.scene.failure = f"after {limit} not all members {trouble}"
            self._tell(f"{self.scene.failure.capitalize()}.")

    def _wait(self, until: Callable[[], bool], limit: float) -> bool:
        """Listen, and show the audience, until a condition holds; return whether it does."""
        deadline = time.monotonic() + limit
        while not until():
            left = deadline - time.monotonic()
            if left <= 0.0:
                return False
            self._listen(min(left, LOOK))
        return True

    def _listen(self, patience: float) -> None:
        for name, report in self._troupe.hear(patience):
            self._board.hear(name, report)
            if isinstance(report, RefusedReport):
                self._refusal = f"{name} refused: {report.sentence}"
        self.scene.elapsed = time.monotonic() - self._start
        self._audience.look(self.scene)

    def _tell(self, sentence: str) -> None:
        self.scene.elapsed = time.monotonic() - self._start
        self.scene.sentence = sentence
        self._audience.hear(self.scene)

    # Helpers

    def _fork(self, number: int) -> None:
        seeds = tuple(telling.address(sight.endpoint) for sight in self._board.up()[:_SEEDS])
        part = self._plan.part(number, self.scene.group, tuple(each for each in seeds if each))
        self._numbers[part.name] = number
        self._board.start(part.name, self._troupe.start(part))

    def _leader(self) -> str:
        """The leader; if there is none, any member."""
        leading = self._board.leading()
        return leading[0] if leading else self._board.up()[-1].name

    def _draw_sides(self, leader: str) -> Sides:
        """The leader with a third to a half of the group, and the rest."""
        names = [sight.name for sight in self._board.up()]
        total = len(names)
        size = total // 3 + self._dice.below(total // 2 - total // 3 + 1)
        others = self._dice.sample([name for name in names if name != leader], size - 1)
        side = [name for name in names if name == leader or name in others]
        return tuple(side), tuple(name for name in names if name not in side)
