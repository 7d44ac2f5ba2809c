"""Settings of the gossip layer: membership and bimodal multicast, and what follows from them.

Times default to multiples of delta. How long a member may be silent depends on how fast news of it
can spread. That depends on the size of the group, because a message of bounded size carries only a
part of a large view. So `fail_time` and similar functions take a size: members use their estimate.
"""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta

from hustings.core.config import Config, Surroundings

_UNSETTLED = 1e-3  # probability that some member still does not know another one after the warm-up
_TURNS = 8  # in which a silent member of a partial view is asked before it is suspected
_FEWEST = 4  # members in view, for that
_MISSED = 12  # periods without news of a leader that all messages name
_LOSSIEST = 0.95  # beyond that, gossip is not worth waiting for


class GossipConfig(Config, frozen=True, kw_only=True):
    """All settings of gossip membership and bimodal multicast."""

    # Gossip membership
    T_gossip: (
        Annotated[float, Meta(gt=0, description="period of the gossip; default delta")] | None
    ) = None
    fanout: Annotated[
        int, Meta(ge=1, description="the number of members that get gossip in each period")
    ] = 1
    entries: Annotated[
        int, Meta(ge=2, le=4096, description="the largest number of entries in one gossip message")
    ] = 64
    view_size: Annotated[
        int, Meta(ge=1, description="the largest number of other members in a view")
    ] = 1000
    partial: Annotated[
        bool,
        Meta(
            description="a view holds only a part of the group: gossip then also says which member "
            "leads, and silent members are asked sooner"
        ),
    ] = False
    T_fail: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="the silence after which a member is suspected; default from "
                "the group's size",
            ),
        ]
        | None
    ) = None
    T_cleanup: (
        Annotated[
            float,
            Meta(
                gt=0, description="the silence after which a member is forgotten; default 2 T_fail"
            ),
        ]
        | None
    ) = None
    p_mistake: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="the largest probability of a wrong suspicion, for the default T_fail",
        ),
    ] = 1e-9
    loss: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="the share of gossip that is assumed to be lost, for the default T_fail",
        ),
    ] = 0.1
    minima: Annotated[
        int,
        Meta(
            ge=3,
            le=4096,
            description="the number r of random values in the estimate of the group's size; its "
            "error is 1/sqrt(r-2)",
        ),
    ] = 128
    epoch: Annotated[
        int,
        Meta(
            ge=2,
            description="the number of gossip periods after which a new estimate of "
            "the size begins",
        ),
    ] = 100
    whole: Annotated[
        bool,
        Meta(
            description="a view that is not full holds the whole group: its size is the group's, "
            "without an estimate"
        ),
    ] = False
    seeds: Annotated[
        int,
        Meta(
            ge=0,
            description="the number of contacts that a new member asks; 0: it asks "
            "by multicast only",
        ),
    ] = 3
    transfer_messages: Annotated[
        int,
        Meta(ge=1, le=64, description="the number of messages in a state transfer to a new member"),
    ] = 4
    transfer_entries: (
        Annotated[
            int,
            Meta(
                ge=2,
                le=65_536,
                description="the largest number of entries in one message of a state transfer; "
                "default entries",
            ),
        ]
        | None
    ) = None
    transfers_per_period: Annotated[
        int,
        Meta(
            ge=1,
            description="the largest number of state transfers that a member sends in one period",
        ),
    ] = 16
    introductions: Annotated[
        int, Meta(ge=0, description="the number of members to which a new member introduces itself")
    ] = 0
    pull: Annotated[
        bool,
        Meta(
            description="a member that knows far fewer members than another one asks that one for "
            "a state transfer"
        ),
    ] = False
    gossip_bytes: (
        Annotated[
            int,
            Meta(
                ge=64,
                description="the largest number of bytes of the entries in one gossip message; "
                "default no limit",
            ),
        ]
        | None
    ) = None
    join_attempts: Annotated[
        int,
        Meta(
            ge=1,
            description="the number of attempts to join without an answer; then the "
            "member is alone",
        ),
    ] = 5
    # Bimodal multicast
    T_round: (
        Annotated[float, Meta(gt=0, description="period of the anti-entropy; default delta")] | None
    ) = None
    spread: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            description="the number of members to which a member passes a multicast on when it "
            "first gets it; 0: the first phase is the network's own multicast",
        ),
    ] = 0
    rounds: Annotated[
        int,
        Meta(ge=1, description="the number of anti-entropy rounds for which a message is buffered"),
    ] = 20
    digests: Annotated[
        int, Meta(ge=1, description="the number of members that get a digest in each round")
    ] = 2
    digest: Annotated[
        int,
        Meta(
            ge=1,
            le=4096,
            description="the largest number of messages in a digest, the latest first",
        ),
    ] = 32
    solicits: Annotated[
        int,
        Meta(ge=1, description="the largest number of messages that are asked for in one round"),
    ] = 16
    copies: Annotated[
        int,
        Meta(ge=1, description="the largest number of messages that are sent again in one round"),
    ] = 16
    buffer: Annotated[
        int, Meta(ge=1, description="the largest number of messages in the buffer")
    ] = 256
    origins: Annotated[
        int, Meta(ge=1, description="the largest number of senders whose copies are recognised")
    ] = 4096
    window: Annotated[
        int,
        Meta(
            ge=1,
            le=4096,
            description="the number of latest messages of a sender whose copies are recognised",
        ),
    ] = 64
    multicast_bytes: Annotated[
        int, Meta(ge=1, description="the largest size of a multicast message, in bytes")
    ] = 8192

    # What follows

    @property
    def period(self) -> float:
        """The period of the gossip."""
        return self.delta if self.T_gossip is None else self.T_gossip

    @property
    def welcoming(self) -> int:
        """The most entries in one message of a state transfer."""
        return self.entries if self.transfer_entries is None else self.transfer_entries

    @property
    def round_time(self) -> float:
        """The period of the anti-entropy."""
        return self.delta if self.T_round is None else self.T_round

    @property
    def buffering_time(self) -> float:
        """The longest time after its sending at which a multicast can still be delivered.

        It holds as long as delta bounds the delay of a message; a protocol's T_3 follows from it.
        """
        return self.rounds * self.round_time

    @property
    def epoch_time(self) -> float:
        """How long the estimate of the size takes."""
        return self.epoch * self.period

    @property
    def error(self) -> float:
        """The standard error of the size estimate, relative to the size.

        >>> round(GossipConfig(minima=102).error, 3)
        0.1
        """
        return 1 / math.sqrt(self.minima - 2)

    @property
    def join_wait(self) -> float:
        """How long a new member waits for an answer before it asks again."""
        return 2 * self.delta + self.period

    def rate(self, members: float) -> float:
        """How many members a member with some news tells in a period, on average.

        A message carries the news with probability min(1, entries / view), and its receiver keeps
        the news' subject in view with probability view / others: the view's size cancels out.
        """
        others = max(1.0, members - 1)
        carried = min(self.entries - 1, self.view_size, others)
        return self.fanout * (1 - self.loss) * carried / others

    def reach_time(self, members: float, miss: float) -> float:
        """How long news takes to reach one member, except with a probability of `miss`.

        Two phases of an epidemic. First the members that know multiply by 1 + rate in each period,
        each time with a delay on top. Then the members that do not know yet shrink by exp(-rate).
        """
        rate = self.rate(members)
        growth = math.log(max(1.0, members)) / math.log1p(rate)
        rest = -math.log(miss) / rate
        return growth * (self.period + self.delta) + rest * self.period + self.delta

    def fail_time(self, members: float) -> float:
        """T_fail in a group of `members`.

        Rumours of one member are rare where few have it in view. There each member asks the longest
        silent member of its view in every period. So it asks each of them once in about as many
        periods as its view has members.
        """
        if self.T_fail is not None:
            return self.T_fail
        rumours = self.reach_time(members, self.p_mistake)
        return min(rumours, self.asking_time) if self.partial else rumours

    @property
    def asking_time(self) -> float:
        """T_fail where the longest silent member in view is asked in every period."""
        return _TURNS * max(_FEWEST, self.view_size) * self.period + 2 * self.delta

    @property
    def leader_fail_time(self) -> float:
        """T_fail of a leader that all have in view, and that every message names.

        How long a counter takes to reach all members grows with the group. The time from one
        counter to the next does not: each message that comes brings one.
        """
        return _MISSED * self.period + 2 * self.delta if self.T_fail is None else self.T_fail

    def cleanup_time(self, members: float) -> float:
        """T_cleanup in a group of `members`."""
        return 2 * self.fail_time(members) if self.T_cleanup is None else self.T_cleanup

    @classmethod
    def for_group(cls, members: int, around: Surroundings) -> dict[str, object]:
        if around.p_ucastl is None:
            return {}
        return {"loss": min(around.p_ucastl, _LOSSIEST)}

    def broken_rules(self) -> list[str]:
        times = {
            "T_gossip": self.T_gossip,
            "T_fail": self.T_fail,
            "T_cleanup": self.T_cleanup,
            "T_round": self.T_round,
        }
        broken = [f"{name} must be finite" for name, value in times.items() if value == math.inf]
        if self.T_fail is not None and self.T_fail < self.period:
            broken.append(
                f"T_fail ({self.T_fail:g}) must be at least T_gossip ({self.period:g}), or a "
                "member is suspected before it can speak again"
            )
        if self.T_cleanup is not None and self.T_cleanup < self.fail_time(1):
            broken.append(
                f"T_cleanup ({self.T_cleanup:g}) must be at least T_fail "
                f"({self.fail_time(1):g}): a member is suspected before it is forgotten"
            )
        if self.fanout > self.view_size:
            broken.append(
                f"fanout ({self.fanout}) must not exceed view_size ({self.view_size}): gossip "
                "goes to members in view"
            )
        if self.buffering_time < self.delta:
            broken.append(
                f"rounds x T_round ({self.buffering_time:g}) must be at least delta "
                f"({self.delta:g}), or a multicast is too old when it arrives"
            )
        return broken

    def warnings(self) -> list[str]:
        found = []
        if self.T_fail is not None and self.T_cleanup is not None:
            if self.T_cleanup < 2 * self.T_fail:
                found.append(
                    f"T_cleanup = {self.T_cleanup:g} is shorter than 2 T_fail "
                    f"({2 * self.T_fail:g}): others may still speak of a member that was forgotten"
                )
        if self.T_fail is not None and self.T_fail < (need := self.reach_time(2, self.p_mistake)):
            found.append(
                f"T_fail = {self.T_fail:g} is shorter than {need:g}, which p_mistake = "
                f"{self.p_mistake:g} needs even for two members: expect wrong suspicions"
            )
        if self.buffering_time < 4 * self.delta:
            found.append(
                f"messages are buffered for {self.buffering_time:g}, less than digest, request and "
                f"copy take ({4 * self.delta:g}): anti-entropy repairs nothing"
            )
        return found


def warm_up(config: GossipConfig, members: int) -> float:
    """How long after a common start views and estimates have settled.

    All members know all others, as far as view_size lets them, but for a probability of about one
    in a thousand; the estimate of the size, which travels whole in every message, settles earlier.

    >>> warm_up(GossipConfig(), 10) < warm_up(GossipConfig(), 1000)
    True
    """
    joined = 2 * config.join_wait
    return joined + config.reach_time(members, _UNSETTLED / max(1, members) ** 2)
