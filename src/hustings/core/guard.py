"""What a guard answers: the only thing about leadership that is not an opinion.

An election finds out who should lead; a guard decides who does. A member asks with
`ctx.acquire(ttl, request)`, renews with the same call, and gives back with `ctx.release(request)`.
The answer, if one comes, reaches `on_verdict`. Questions and answers may be late, lost, doubled and
out of order. So a member numbers its requests (growing within one incarnation), and an answer
carries the number back: only so can a member know from when on a grant counts. The guard acts on no
request of a member after a later one of the same member.

Law of every guard: at most one holder at a time, by the guard's own clock; a token for each period
of holding, larger than all before it. The same incarnation of the same member that asks again while
it holds keeps its token; another incarnation is another holder.
"""

from __future__ import annotations

import msgspec

from hustings.core.choice import MemberId


class Granted(msgspec.Struct, frozen=True, gc=False):
    """The asker holds `token` for at least `ttl`, by the guard's clock, from when it asked."""

    request: int
    token: int
    ttl: float


class Held(msgspec.Struct, frozen=True, gc=False):
    """Another member holds `token`, for `remaining` by the guard's clock unless it renews."""

    request: int
    holder: MemberId
    token: int
    remaining: float


class Freed(msgspec.Struct, frozen=True, gc=False):
    """Nobody holds the lease any more, as far as the guard knows: waiting members may ask now.

    It answers no request. It may be late, doubled or never come, and promises nothing.
    """

    token: int  # the last one


class Observed(msgspec.Struct, frozen=True, gc=False):
    """What the guard says to a member that looks: `holder` has `token`; None if nobody has.

    It answers no request. It may be late, and promises nothing but that the guard said so.
    """

    holder: MemberId | None
    token: int  # the last one if nobody holds


Verdict = Granted | Held | Freed | Observed
