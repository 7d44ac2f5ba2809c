"""A criterion that members measure themselves: how well each of them hears the others.

    p  #1 ---- #2 ---- #3 ---- #4       numbered, every T_M
        `-,     `-x     `-,     `-,
    q      *               *      *     q has lost one of four

Idea       Every member multicasts numbered probes. A member that hears them counts the gaps: that
           is its loss, over the last `window` probes of each other member, on average over all of
           them. A probe says which probes its sender has heard, and how long ago. That makes a
           round trip, and half of it is the delay. The loss or the delay becomes an attribute of
           the member, and the choice function ranks by it (lowest:loss, lowest:delay).
Hysteresis An attribute follows the measured value only if the two differ by more than half a
`step`. A leader's attribute is better by two steps than its measured value. So a leader gives way
only to a member that measures better by at least a step, and surely to one that does by three.
Cost       One multicast of each member per T_M, with as many echoes as members, at most 32.
Paper      Announce-listen thesis, chapter 5, section 5.7, "Other definitions of leadership": "an
           estimate of the level of loss it has observed", "the sum of the delays observed".

`Measurement` is pure, with time as an argument. `Measuring` puts it under an election. The code
that runs a member reads the attribute (`stand`) after each handler.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.errors import BadInput
from hustings.core.messages import Count, Incarnation, LayerMessage, Role
from hustings.layers.layer import Layer
from hustings.layers.leadership.standing import with_attribute

MEASURE_TIMER = "T_M"
WORST = 1.0  # the attribute of a member that has measured nothing yet
_ECHOES = 32  # in one probe
_FEWEST = 5  # probes of a member, before its measurement counts
_RECENT = 64  # own probes that wait for their echo
_WEIGHT = 0.125  # of the latest round trip in the mean

Echo = tuple[MemberId, Count, float]  # the probe's sender, its number, how long ago


class MeasureMsg(LayerMessage, frozen=True, tag="MEASURE"):
    """A numbered probe, with the last probes that its sender has heard from others."""

    role: ClassVar[Role] = Role.DETECTOR
    incarnation: Incarnation
    number: Count
    echoes: tuple[Echo, ...] = ()


class MeasureConfig(Config, frozen=True, kw_only=True):
    """The measured quantity, and how soon an attribute follows it."""

    what: Annotated[
        Literal["loss", "delay"],
        msgspec.Meta(description="what is measured; the attribute has the same name"),
    ] = "loss"
    T_M: (
        Annotated[float, msgspec.Meta(gt=0, description="time between probes; default 5 delta")]
        | None
    ) = None
    window: Annotated[
        int,
        msgspec.Meta(
            ge=8, le=10_000, description="the number of latest probes of each member that count"
        ),
    ] = 50
    step: (
        Annotated[
            float,
            msgspec.Meta(
                gt=0,
                description="a leader gives way to a member whose measurement is better by more "
                "than this; default 0.1 for loss, delta/4 for delay",
            ),
        ]
        | None
    ) = None

    @property
    def period(self) -> float:
        """The time between two probes."""
        return 5 * self.delta if self.T_M is None else self.T_M

    @property
    def hysteresis(self) -> float:
        """By how much another member must be better."""
        if self.step is not None:
            return self.step
        return 0.1 if self.what == "loss" else self.delta / 4


def measure_config(given: str | Mapping[str, object], delta: float) -> MeasureConfig:
    """From a word, or from settings.

    >>> measure_config("delay", 0.05).hysteresis
    0.0125
    """
    settings = {"what": given} if isinstance(given, str) else dict(given)
    return MeasureConfig.parse({"delta": delta, **settings})


class Way:
    """The probes that have come from one member."""

    __slots__ = ("at", "delay", "first", "got", "last", "life")

    def __init__(self, now: float, life: int, number: int) -> None:
        """The first probe has this number. 0: none has come, and from now on each one is missed."""
        self.life = life
        self.first = self.last = number
        self.at = now  # when the last probe came
        self.got: dict[int, None] = {number: None} if number else {}
        self.delay: float | None = None

    def heard(self, now: float, number: int, window: int) -> None:
        """Note one more probe, which may be late or doubled."""
        if number > self.last:
            self.last, self.at = number, now
        self.got[number] = None
        self.first = max(self.first, self.last - window + 1)
        for old in [each for each in self.got if each < self.first]:
            del self.got[old]

    def counted(self, now: float, period: float, window: int) -> tuple[int, int]:
        """How many of its probes were due, and how many came. Overdue probes are lost."""
        last = self.last + max(0, int((now - self.at) / period - 0.5))
        first = max(self.first, last - window + 1, 1)
        return last - first + 1, sum(number >= first for number in self.got)


class Measurement:
    """How well one member hears the others, and the attribute that follows from it."""

    def __init__(self, config: MeasureConfig) -> None:
        self.config = config
        self.ways: dict[MemberId, Way] = {}
        self.sent: dict[int, float] = {}  # own probes, and when each was sent
        self.number = 0
        self.published: float | None = None

    def probe(self, now: float, life: int) -> MeasureMsg:
        """The next probe of this member."""
        self.number += 1
        self.sent[self.number] = now
        self.sent.pop(self.number - _RECENT, None)
        ids = [one for one, way in self.ways.items() if way.life]
        turn = self.number % len(ids) if ids else 0
        chosen = (ids[turn:] + ids[:turn])[:_ECHOES]
        echoes = tuple((one, self.ways[one].last, now - self.ways[one].at) for one in chosen)
        return MeasureMsg(life, self.number, echoes)

    def heard(self, now: float, me: MemberId, sender: MemberId, message: MeasureMsg) -> None:
        """A probe has come."""
        way = self.ways.get(sender)
        if way is None or way.life < message.incarnation:
            way = self.ways[sender] = Way(now, message.incarnation, message.number)
        elif way.life == message.incarnation:
            way.heard(now, message.number, self.config.window)
        for member, number, held in message.echoes[:_ECHOES]:
            sent = self.sent.get(number) if member == me else None
            if sent is not None and 0.0 <= held <= now - sent:
                half = (now - sent - held) / 2
                way.delay = half if way.delay is None else way.delay + _WEIGHT * (half - way.delay)

    def attend(self, now: float, others: Collection[MemberId]) -> None:
        """Note the members of the group. Others are gone, and no longer count."""
        for member in [one for one in self.ways if one not in others]:
            del self.ways[member]
        for member in others:
            if member not in self.ways:
                self.ways[member] = Way(now, 0, 0)

    def value(self, now: float) -> float | None:
        """The mean over all others; None before there are enough probes."""
        if self.config.what == "delay":
            known = [way.delay for way in self.ways.values() if way.delay is not None]
        else:
            period, window = self.config.period, self.config.window
            counts = [way.counted(now, period, window) for way in self.ways.values()]
            known = [1 - got / due for due, got in counts if due >= _FEWEST]
        return sum(known) / len(known) if known else None

    def follow(self, now: float, *, leading: bool) -> None:
        """Let the attribute follow, if the measured value has moved far enough."""
        measured, step = self.value(now), self.config.hysteresis
        if measured is None:
            return
        wanted = measured - (2 * step if leading else 0.0)
        if self.published is None or abs(wanted - self.published) > step / 2:
            self.published = wanted


class Measuring(Layer):
    """`inner`, whose member measures the attribute by which it is ranked."""

    adds = "a measurement"
    messages = (MeasureMsg,)

    def __init__(self, inner: Election, config: MeasureConfig) -> None:
        super().__init__(inner)
        self.measurement = Measurement(config)

    def stand(self, me: Candidate) -> Candidate:
        """This member with the measured value among its attributes."""
        value = self.measurement.published
        if value is None:
            return me
        return with_attribute(me, self.measurement.config.what, value)

    def start(self, ctx: Context) -> None:
        self.inner.start(ctx)
        ctx.set_timer(MEASURE_TIMER, self.measurement.config.period)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key != MEASURE_TIMER:
            self.inner.on_timer(ctx, key)
            return
        mine, now = ctx.me.id, ctx.now()
        self.measurement.attend(now, [one for one in ctx.view if one != mine])
        ctx.multicast(self.measurement.probe(now, ctx.incarnation))
        self.measurement.follow(now, leading=self.inner.leader == mine)
        ctx.set_timer(MEASURE_TIMER, self.measurement.config.period)

    def leave(self, ctx: Context) -> None:
        ctx.cancel_timer(MEASURE_TIMER)
        self.inner.leave(ctx)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        self.inner.assume_leader(ctx, leader, term)
        ctx.set_timer(MEASURE_TIMER, self.measurement.config.period)

    def state(self) -> str:
        return f"{self.inner.state()} measured={self.measurement.published}"

    @upon(MeasureMsg)
    def _on_measure(self, ctx: Context, sender: MemberId, message: MeasureMsg) -> None:
        if sender != ctx.me.id:
            self.measurement.heard(ctx.now(), ctx.me.id, sender, message)


def check_ranked(ranks: str, config: MeasureConfig) -> None:
    """Refuse to measure a quantity by which no member is ranked."""
    if f"lowest:{config.what}" not in ranks.split(","):
        raise BadInput(
            f"members measure their {config.what}, and are chosen by {ranks}: take choice "
            f"'lowest:{config.what}'"
        )
