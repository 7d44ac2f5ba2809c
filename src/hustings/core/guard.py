"""What a guard answers: the only thing about leadership that is not an opinion.

An election finds out which member should lead. A guard decides which member leads. A member asks
with `ctx.acquire(ttl, request)`, renews with the same call, and gives back with
`ctx.release(request)`. The answer, if one comes, reaches `on_verdict`. Questions and answers may be
late, lost, doubled and out of order. So a member numbers its requests (growing within one
incarnation), and an answer carries the number back. Without the number a member could not know from
when on a grant counts. After a request of a member, the guard ignores that member's earlier
requests.

Law of every guard: at most one holder at a time, by the guard's own clock; a token for each period
of holding, larger than all before it. If an incarnation of a member asks again while it holds the
lease, it keeps its token. Another incarnation is another holder.
"""

from __future__ import annotations

import msgspec

from hustings.core.choice import MemberId


class Granted(msgspec.Struct, frozen=True, gc=False):
    """This member holds `token` for at least `ttl`, by the guard's clock, from when it asked."""

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
    """The lease is free, as far as the guard knows: waiting members may ask now.

    This answers no request. It may be late, doubled or never come, and promises nothing.
    """

    token: int  # the last token


class Observed(msgspec.Struct, frozen=True, gc=False):
    """The guard's state for a member that looks: `holder` has `token`. None: the lease is free.

    This answers no request. It may be late. It promises only that the guard said so.
    """

    holder: MemberId | None
    token: int  # the last token if the lease is free


Verdict = Granted | Held | Freed | Observed
