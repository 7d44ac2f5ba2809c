"""Quorum: the cost of a lease by majority, and the time that a group is without a leader.

Units are those of all forms here: a message takes one unit. One candidate asks at a time, and no
message is lost. Of v voters `down` are dead: the candidate asks them too, but they do not answer. A
candidate that votes itself sends itself nothing. A question without a grant within `retry` is
repeated, then after twice as long, and so on. The default, 3, is shorter than the two round trips
of a new lease, so these are asked once more than needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.form import (
    DECIDED,
    LECTURE,
    ClosedForms,
    Form,
    Number,
    Parameter,
    TheoryResult,
    plain,
    require,
    result,
)

SOURCE = f"{LECTURE}: consensus; PaxosLease 2012"
MOST_VOTERS = 7
ROUND_TRIP = 2

KEYS = (
    Parameter("v", "3", "voters, an odd number up to 7"),
    Parameter("down", "0", "voters that are dead, a minority"),
    Parameter("voter", "false", "the candidate is one of the voters"),
    Parameter("retry", "3", "wait for an answer before asking again"),
    Parameter("ttl", "30", "for how long a lease is granted; it is renewed after a third"),
    Parameter("drift", "0.001", "every clock's rate lies within 1 +- drift"),
    Parameter("backoff", "8", "a member that misses the leader waits a random time up to this"),
    Parameter("k", "1", "members that may stand for a leader that is gone"),
)


@dataclass(frozen=True, slots=True)
class LeaseSetting:
    """One candidate and its voters: the left-hand side of the forms."""

    v: int = 3
    down: int = 0
    voter: bool = False
    retry: Number = 3
    ttl: Number = 30
    drift: Number = Fraction(1, 1000)
    backoff: Number = 8
    k: int = 1

    def __post_init__(self) -> None:
        """Refuse settings that no group can have."""
        require(self.v in range(1, MOST_VOTERS + 1, 2), f"v must be 1, 3, 5 or 7, not {self.v}")
        require(0 <= self.down <= self.v // 2, f"down must be a minority of v = {self.v}")
        require(self.retry > 0, f"retry must be above 0, not {self.retry}")
        require(self.ttl >= 6, f"ttl must be at least three round trips, 6, not {self.ttl}")
        require(0 <= self.drift < 1, f"drift must lie in [0, 1), not {self.drift}")
        require(self.k >= 1, f"k must be at least 1, not {self.k}")

    @property
    def asked(self) -> int:
        """The number of voters that a question goes to."""
        return self.v - self.voter

    @property
    def pair(self) -> int:
        """The messages of one question and its answers."""
        return 2 * self.asked - self.down

    @property
    def outlasted(self) -> Number:
        """The time after which a follower that hears of the lease now may be sure of its end."""
        return self.ttl * Fraction(1 + self.drift) / Fraction(1 - self.drift)


def acquisition_time(lease: LeaseSetting) -> int:
    """From the first question to the lease: two round trips, 4; none for one's own only vote.

    Parameters: a lease.

    Source: PREPARE, PROMISE, PROPOSE, ACCEPTED. Verdict: counted. All know one unit later.

    >>> acquisition_time(LeaseSetting()), acquisition_time(LeaseSetting(v=1, voter=True))
    (4, 0)
    """
    return 2 * ROUND_TRIP if lease.asked else 0


def repeats(lease: LeaseSetting) -> tuple[int, int]:
    """How often the questions are repeated before the lease is granted: PREPARE, PROPOSE.

    The waits are retry, 2 retry, 4 retry, ...; an answer that comes at the very end of a wait is in
    time.

    Parameters: a lease.

    Source: a decision of this protocol. Verdict: counted.

    >>> repeats(LeaseSetting()), repeats(LeaseSetting(retry=4))
    ((0, 1), (0, 0))
    >>> repeats(LeaseSetting(retry=Fraction(1, 2)))
    (2, 1)
    """
    early = late = 0
    at, wait, end = lease.retry, lease.retry, acquisition_time(lease)
    while at < end:
        if at < ROUND_TRIP:
            early += 1
        else:
            late += 1
        wait = min(2 * wait, lease.ttl)
        at += wait
    return early, late


def acquisition_messages(lease: LeaseSetting) -> int:
    """A new lease, until all have heard of it: two pairs of question and answers, a multicast.

    Each repeated question costs a pair more, each repeated PROPOSE a multicast as well: with the
    default retry 6v + 2, with a retry of 4 or more 4v + 1.

    Parameters: a lease.

    Source: the rules of the protocol. Verdict: counted.

    >>> acquisition_messages(LeaseSetting()), acquisition_messages(LeaseSetting(retry=4))
    (20, 13)
    >>> acquisition_messages(LeaseSetting(v=5, down=2, voter=True, retry=4))
    13
    """
    early, late = repeats(lease)
    return (2 + early + late) * lease.pair + 1 + late


def renewal_time(lease: LeaseSetting) -> int:
    """From the question of a renewal to its grant: one round trip, 2.

    Parameters: a lease.

    Source: PROPOSE, ACCEPTED. Verdict: counted.

    >>> renewal_time(LeaseSetting())
    2
    """
    return ROUND_TRIP if lease.asked else 0


def renewal_messages(lease: LeaseSetting) -> int:
    """A renewal: a pair of question and answers, and a multicast; 2v + 1.

    Parameters: a lease.

    Source: the rules of the protocol. Verdict: counted.

    >>> renewal_messages(LeaseSetting()), renewal_messages(LeaseSetting(v=5, voter=True))
    (7, 9)
    """
    return lease.pair + 1


def renewal_rate(lease: LeaseSetting) -> Fraction:
    """Messages per unit of time at rest: a renewal every ttl / 3.

    Parameters: a lease.

    Source: the rules of the protocol. Verdict: counted.

    >>> renewal_rate(LeaseSetting())
    Fraction(7, 10)
    """
    return Fraction(3 * renewal_messages(lease)) / Fraction(lease.ttl)


def failover_time(lease: LeaseSetting, since: Number, wait: Number) -> Number:
    """From the leader's crash to the next lease.

    The last word of the leader needs 1 to arrive; the follower waits until the lease is over by any
    clock, then for a random time, then asks: 1 + ttl (1 + drift)/(1 - drift) + wait + 4 - since.

    Parameters: since, the time from the leader's last multicast to its crash, up to ttl / 3 - 2,
    when its next question leaves; wait, up to backoff. A question that was on its way extends the
    lease at the voters, and who asks meanwhile is refused: that case is left out.

    Source: the rules of the protocol. Verdict: counted.

    >>> failover_time(LeaseSetting(drift=0), since=0, wait=0)
    Fraction(35, 1)
    """
    latest = Fraction(lease.ttl) / 3 - ROUND_TRIP
    require(0 <= since <= latest, f"since must lie between 0 and {latest}, not {since}")
    require(0 <= wait <= lease.backoff, f"wait must lie between 0 and {lease.backoff}, not {wait}")
    return 1 + lease.outlasted + wait + acquisition_time(lease) - since


def failover_mean(lease: LeaseSetting) -> Number:
    """The same on average: a crash at any phase, and the first of k members that wait.

    since is (ttl / 3 - 2) / 2 on average, and the shortest of k waits backoff / (k + 1). Where two
    members ask within a round trip of each other it takes longer: backoff must be long beside it.

    Parameters: a lease.

    Source: the rules of the protocol. Verdict: counted.

    >>> failover_mean(LeaseSetting(drift=0, k=3))
    Fraction(33, 1)
    """
    latest = Fraction(lease.ttl) / 3 - ROUND_TRIP
    return failover_time(lease, latest / 2, Fraction(lease.backoff) / (lease.k + 1))


def resignation_messages(lease: LeaseSetting) -> int:
    """What a leader says that leaves in good order: RELEASE to the voters and one multicast.

    Parameters: the lease that is given back; `voter` is its leader.

    Source: the rules of the protocol. Verdict: counted.

    >>> resignation_messages(LeaseSetting()), resignation_messages(LeaseSetting(voter=True))
    (4, 3)
    """
    return lease.asked + 1


def forms(lease: LeaseSetting) -> list[Form]:
    """Every form at one setting.

    >>> [form.name for form in forms(LeaseSetting())][:2]
    ['acquisition_messages', 'acquisition_time']
    """
    latest = Fraction(lease.ttl) / 3 - ROUND_TRIP
    slack = "1 + ttl (1 + drift)/(1 - drift)"
    rows: list[tuple[str, Number, str]] = [
        (
            "acquisition_messages",
            acquisition_messages(lease),
            "4a - 2 down + 1, a = v, or v - 1 if the candidate votes; repeats on top",
        ),
        ("acquisition_time", acquisition_time(lease), "4"),
        ("known_time", acquisition_time(lease) + 1, "5, until all know"),
        ("repeated_questions", sum(repeats(lease)), "waits of retry, 2 retry, ... that end before"),
        ("renewal_messages", renewal_messages(lease), "2a - down + 1"),
        ("renewal_time", renewal_time(lease), "2"),
        ("renewal_rate", renewal_rate(lease), "messages per unit of time: 3 renewals each ttl"),
        ("failover_shortest", failover_time(lease, latest, 0), f"{slack} + 4 - (ttl/3 - 2)"),
        ("failover_longest", failover_time(lease, 0, lease.backoff), f"{slack} + backoff + 4"),
        (
            "failover_mean",
            failover_mean(lease),
            f"{slack} + backoff/(k + 1) + 4 - (ttl/3 - 2)/2",
        ),
        ("resignation_messages", resignation_messages(lease), "a + 1"),
    ]
    return [Form(name, value, formula, SOURCE, DECIDED) for name, value, formula in rows]


def evaluate(texts: Mapping[str, str]) -> TheoryResult:
    """All forms at the given parameters, texts as typed; `BadInput` tells a mistake.

    >>> evaluate({"v": "5"}).corrected["acquisition_time"]
    4
    """
    reading.refuse_unknown(texts, [key.key for key in KEYS])
    given = {key.key: texts.get(key.key, key.default) for key in KEYS}
    lease = LeaseSetting(
        v=reading.read_int("v", given["v"], 1, MOST_VOTERS),
        down=reading.read_int("down", given["down"], 0, MOST_VOTERS),
        voter=reading.read_flag("voter", given["voter"]),
        retry=reading.read_number("retry", given["retry"]),
        ttl=reading.read_number("ttl", given["ttl"]),
        drift=reading.read_number("drift", given["drift"]),
        backoff=reading.read_number("backoff", given["backoff"]),
        k=reading.read_int("k", given["k"], 1, reading.LARGEST_GROUP),
    )
    used: dict[str, object] = {key.key: getattr(lease, key.key) for key in KEYS}
    for key, value in used.items():
        if isinstance(value, Fraction):
            used[key] = plain(value)
    return result("quorum", used, forms(lease), [])


DECLARED = ClosedForms("quorum", KEYS, evaluate, {"example": {}})
