"""The members that one member knows: entries, when each was last heard of, suspects, the forgotten.

This is the pure part of gossip membership, with time as an argument. It sends nothing; `membership`
runs it.

The circle holds at most `view_size` others. When more are heard of, it keeps the members whose ids
come first in the order of a hash with a private salt. That is a uniform sample of the group,
however often some members are mentioned. It is also a steady sample, since a member's place in that
order never changes.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence

from hustings.core.choice import Candidate, MemberId
from hustings.core.streams import Stream
from hustings.core.view import View
from hustings.layers.detector.detector import Report
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.messages import MAX_NUMBER, Entry, sound, weight

_ASKED = 4  # times that a silent member is asked in the second half of T_fail
_WHOLE = 32  # from this number of entries on, a message's entries are taken in together
_REFUSED = 1 << 14  # ids that are remembered as ranked too low: this only saves time

_NOTHING: Sequence[Report] = ()


class Known(Mapping[MemberId, Candidate]):
    """The candidates of a view, looked up in the entries, without a second table."""

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[MemberId, Entry]) -> None:
        self._entries = entries

    def __getitem__(self, member: MemberId) -> Candidate:
        return self._entries[member].who

    def __iter__(self) -> Iterator[MemberId]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Circle:
    """The members that one member knows. `view` lists the live ones and the member itself."""

    __slots__ = (
        "_accepts",
        "_asked",
        "_config",
        "_cursor",
        "_doubted",
        "_entries",
        "_forgotten",
        "_heard",
        "_keep",
        "_me",
        "_order",
        "_ranked",
        "_refused",
        "_salt",
        "_suspects",
        "latest",
        "view",
    )

    def __init__(self, config: GossipConfig, accepts: Callable[[Candidate], bool]) -> None:
        self._config = config
        self._accepts = accepts
        self._me: MemberId = 0
        self._entries: dict[MemberId, Entry] = {}  # of all known members, this one included
        # when each live member was last heard of; the longest silence first
        self._heard: dict[MemberId, float] = {}
        self._suspects: dict[MemberId, float] = {}  # when each suspect was last heard of
        # for some suspects: the counter that rumours must exceed
        self._doubted: dict[MemberId, int] = {}
        # Members that were forgotten or left, and what they must exceed to be believed in again.
        self._forgotten: dict[MemberId, tuple[int, int]] = {}
        self._order: list[MemberId] = []  # the live others, to be mentioned in turn
        self._cursor = 0
        self._keep: tuple[MemberId, ...] = ()  # members that stay, whatever their rank
        self._salt = 0
        self._ranked: list[
            tuple[int, MemberId]
        ] = []  # all others by rank, while the circle is full
        # members that rank behind them; only tested, never iterated
        self._refused: set[MemberId] = set()
        self._asked: dict[MemberId, float] = {}  # silent members, and when each was asked last
        # The latest incarnation and the highest counter that a member can have, as the world knows.
        self.latest = (MAX_NUMBER, MAX_NUMBER)
        self.view = View(Known(self._entries), [])

    def begin(self, own: Entry, salt: int) -> None:
        """Begin with the member itself."""
        self._me = own.who.id
        self._salt = salt
        self._entries[self._me] = own
        self.view.add(self._me)

    # What others may read

    @property
    def own(self) -> Entry:
        """The member's own entry."""
        return self._entries[self._me]

    @property
    def known(self) -> int:
        """How many members are known: the live ones, the member itself, and the suspects."""
        return len(self._entries)

    @property
    def suspects(self) -> list[MemberId]:
        """The present suspects."""
        return sorted(self._suspects)

    @property
    def keep(self) -> tuple[MemberId, ...]:
        """The members that stay, once heard of, however small the view is."""
        return self._keep

    @keep.setter
    def keep(self, members: tuple[MemberId, ...]) -> None:
        self._keep = members
        self._reconsider()

    def entry(self, member: MemberId) -> Entry | None:
        """The entry of a member, suspected or not."""
        return self._entries.get(member)

    @property
    def load(self) -> int:
        """The sum of all tables' sizes. It is bounded, whatever messages arrive."""
        known = len(self._entries) + len(self._heard) + len(self._suspects) + len(self._asked)
        lost = len(self._doubted) + len(self._forgotten)
        return known + lost + len(self._order) + len(self.view)

    def lives(self, member: MemberId) -> bool:
        """Whether another member is known and not suspected."""
        return member in self._heard

    def targets(self, rng: Stream, count: int) -> list[MemberId]:
        """Random members of the view: `count` of them, or all if there are fewer."""
        ids = self.view.ids
        others = len(ids) - 1
        if others <= 0:
            return []
        mine = bisect_left(ids, self._me)
        places = rng.sample(range(others), min(count, others))
        return [ids[place + (place >= mine)] for place in places]

    def some(self, most: int | None = None) -> tuple[Entry, ...]:
        """The member's own entry and as many others as fit into a message, in turn."""
        if self._config.partial and most is None:
            return self._with_leaders()
        order, entries = self._order, self._entries
        room = (self._config.entries if most is None else most) - 1
        if len(order) <= room:
            chosen = order
            start = self._cursor % (len(order) or 1)
        else:
            start = self._cursor % len(order)
            chosen = order[start : start + room]
            if len(chosen) < room:
                chosen = chosen + order[: room - len(chosen)]
        if most is None and self._config.gossip_bytes is not None:
            chosen = self._light(order, start, min(room, len(order)), self._config.gossip_bytes)
        if len(chosen) < len(order):
            self._cursor = start + len(chosen)
        return (entries[self._me], *[entries[member] for member in chosen])

    def _with_leaders(self) -> tuple[Entry, ...]:
        """The same as `some`, with the leaders before the others, out of turn."""
        config, entries, order = self._config, self._entries, self._order
        kept = [member for member in self._keep if member in self._heard]
        room = math.inf if config.gossip_bytes is None else config.gossip_bytes
        room -= sum(weight(entries[member]) for member in (self._me, *kept))
        start = self._cursor % (len(order) or 1)
        chosen: list[MemberId] = []
        for member in (*order[start:], *order[:start]):
            if member in kept:
                continue
            room -= weight(entries[member])
            if room < 0 or len(chosen) + len(kept) + 1 >= config.entries:
                break
            chosen.append(member)
        self._cursor = start + len(chosen)
        return tuple([entries[member] for member in (self._me, *kept, *chosen)])

    def _light(self, order: list[MemberId], start: int, most: int, room: int) -> list[MemberId]:
        """The next members in turn that are not too heavy together."""
        chosen: list[MemberId] = []
        room -= weight(self._entries[self._me])
        for offset in range(most):
            member = order[(start + offset) % len(order)]
            room -= weight(self._entries[member])
            if room < 0:
                break
            chosen.append(member)
        return chosen

    # Hearing

    def renew_own(self, me: Candidate) -> None:
        """Note that a period of the member has passed."""
        own = self._entries[self._me]
        if me != own.who:
            self.view.add(self._me)  # its attributes are new
        counter = min(own.counter + 1, MAX_NUMBER)
        self._entries[self._me] = Entry(me, own.incarnation, counter, own.place)

    def hear(
        self, entries: Sequence[Entry], now: float, teller: MemberId | None = None
    ) -> Sequence[Report]:
        """Take in entries that are newer than known ones. The sender's own entry is no rumour."""
        if self._doubted and teller is not None:
            self._doubted.pop(teller, None)
        known, heard, refused = self._entries, self._heard, self._refused
        latest, highest = self.latest
        # A state transfer is taken in as a whole: single entries would each move all that follow.
        whole = len(entries) >= _WHOLE and len(known) + len(entries) <= self._config.view_size
        met: dict[MemberId, None] = {}
        reports: list[Report] | None = None
        for entry in entries:
            who = entry.who.id
            old = known.get(who)
            if old is None:
                if who in refused:
                    continue
                if whole:
                    report = self._note(entry, now, met)
                else:
                    report = self._meet(entry, now)
                    refused = self._refused
            elif entry is old or entry.incarnation < old.incarnation:
                continue
            elif entry.incarnation == old.incarnation and entry.counter <= old.counter:
                continue
            elif entry.counter > highest or entry.incarnation > latest:
                continue
            elif who in heard and entry.who == old.who and entry.place == old.place:  # most entries
                same = entry.who is old.who
                # Read from a wire: a candidate that others have already seen stays the same object.
                known[who] = (
                    entry if same else Entry(old.who, entry.incarnation, entry.counter, old.place)
                )
                del heard[who]  # so that it goes to the end: the longest silence stays in front
                heard[who] = now
                continue
            elif who in met:
                continue  # twice in one message, with different contents
            else:
                report = self._renew(entry, old, now)
            if report is not None:
                reports = [] if reports is None else reports
                reports.append(report)
        if met:
            self._take_in(list(met))
        return _NOTHING if reports is None else reports

    def _meet(self, entry: Entry, now: float) -> Report | None:
        """Take in an unknown member, if it is news and there is room or it ranks high enough."""
        who = entry.who.id
        full = len(self._entries) > self._config.view_size
        rank = (self._rank(who), who) if full else (0, who)
        if full and self._by_rank()[-1] < rank:
            if len(self._refused) < _REFUSED:
                self._refused.add(who)
            return None
        if not self._is_news(entry):
            return None
        if full:
            ranked = self._by_rank()
            self._drop(ranked.pop()[1])  # all refused members still rank behind the others
            insort(ranked, rank)
        gone = self._forgotten.pop(who, None)
        self._entries[who] = entry
        self._heard[who] = now
        self._order.insert(self._cursor % (len(self._order) + 1), who)  # to be mentioned next
        self.view.add(who)
        return None if gone is None else Report(who, False)

    def _is_news(self, entry: Entry) -> bool:
        """Whether an unknown member's entry is sound, acceptable and not long past."""
        if not sound(entry) or not self._accepts(entry.who):
            return False
        if entry.incarnation > self.latest[0] or entry.counter > self.latest[1]:
            return False
        gone = self._forgotten.get(entry.who.id)
        return gone is None or (entry.incarnation, entry.counter) > gone

    def _note(self, entry: Entry, now: float, met: dict[MemberId, None]) -> Report | None:
        """As `_meet`, where there is room for all. `_take_in` does the rest for all of them."""
        if not self._is_news(entry):
            return None
        who = entry.who.id
        gone = self._forgotten.pop(who, None)
        self._entries[who] = entry
        self._heard[who] = now
        met[who] = None
        return None if gone is None else Report(who, False)

    def _take_in(self, met: list[MemberId]) -> None:
        """Put the noted members where `_meet` would have put them."""
        order, place = self._order, self._cursor
        if place <= len(order):
            order[place:place] = met[::-1]
        else:
            for who in met:
                order.insert(place % (len(order) + 1), who)
        self.view.ids.extend(met[1:])
        self.view.ids.sort()
        self.view.add(met[0])

    def _renew(self, entry: Entry, old: Entry, now: float) -> Report | None:
        """Take in news of a known member: a suspect, new attributes, or this member itself."""
        who = entry.who.id
        if who == self._me:  # it seems to have run before: go on above that
            if entry.incarnation == old.incarnation:
                self._entries[who] = Entry(old.who, old.incarnation, entry.counter, old.place)
            elif entry.incarnation < MAX_NUMBER:
                self._entries[who] = Entry(old.who, entry.incarnation + 1, old.counter, old.place)
            return None
        if entry.who != old.who:
            if not sound(entry) or not self._accepts(entry.who):
                return None
            if who in self._heard:
                self.view.add(who)
        elif entry.place != old.place:
            if not sound(entry):
                return None
            if who in self._heard:
                self.view.add(who)  # a reader that keeps addresses by this view looks again
        self._entries[who] = entry
        if who in self._suspects:
            if entry.incarnation == old.incarnation and entry.counter <= self._doubted.get(who, 0):
                return None  # the news may be older than the end
            return self.revive(who, now)
        del self._heard[who]
        self._heard[who] = now
        return None

    def excuse(self, now: float) -> None:
        """Count all members' silence from now on."""
        self._heard = dict.fromkeys(self._heard, now)

    # Losing

    def look_round(
        self, now: float, fail: float, cleanup: float, kept: float = math.inf
    ) -> Sequence[Report]:
        """Suspect silent members, and forget members that have been silent for long.

        `kept` is how long a member that stays in any case may be silent, if that is shorter.
        """
        silent = [who for who in self._keep if now - self._heard.get(who, now) > min(kept, fail)]
        for member, at in self._heard.items():
            if now - at <= fail:
                break
            if member not in silent:
                silent.append(member)
        for member in silent:
            self.suspect(member)
        for member in [who for who, at in self._suspects.items() if now - at > cleanup]:
            entry = self._entries[member]
            self.forget(member, (entry.incarnation, entry.counter))
        return [Report(member, True) for member in silent]

    def missing(self, now: float, silence: float) -> list[MemberId]:
        """The members that stay in any case and were never heard of, or not for `silence`."""
        heard, entries = self._heard, self._entries
        return [
            who
            for who in self._keep
            if who != self._me
            and (who not in entries or (who in heard and now - heard[who] > silence))
        ]

    def longest_silent(
        self, now: float, fail: float, after: float = 0.5, times: int = _ASKED
    ) -> MemberId | None:
        """The member to ask whether it is there: it was silent for this part of T_fail."""
        recent = now - (1.0 - after) * fail / times
        if self._asked:
            self._asked = {who: at for who, at in self._asked.items() if at > recent}
        for member, at in self._heard.items():
            if now - at <= after * fail:
                return None
            if member not in self._asked:
                self._asked[member] = now
                return member
        return None

    def suspect(self, member: MemberId, old_news: int = 0) -> None:
        """Take a member for dead, for now. Ignore the next `old_news` counters that are heard of.

        A member that has not been silent for long was still sending when others heard of it.
        """
        if member in self._heard:
            if old_news:
                self._doubted[member] = self._entries[member].counter + old_news
            self._suspects[member] = self._heard.pop(member)
            self._order.remove(member)
            self.view.remove(member)

    def revive(self, member: MemberId, now: float) -> Report | None:
        """Note that a member is alive. Report that if it takes back a suspicion."""
        self._doubted.pop(member, None)
        if self._suspects.pop(member, None) is None:
            if member in self._heard:
                del self._heard[member]  # so that it goes to the end: the longest silence in front
                self._heard[member] = now
            return None
        self._heard[member] = now
        self._order.append(member)
        self.view.add(member)
        return Report(member, False)

    def bid_farewell(self, member: MemberId, incarnation: int) -> Report | None:
        """Note that a member leaves: reports of this incarnation are no news any more.

        A later incarnation than the known one is not believed: it may not have begun. A sender that
        says that it is over would keep the member out.
        """
        entry = self._entries.get(member)
        if member == self._me or entry is None or incarnation < entry.incarnation:
            return None
        suspected = member in self._suspects
        self.forget(member, (entry.incarnation, MAX_NUMBER))
        return None if suspected else Report(member, True)

    def departed(self, member: MemberId) -> bool:
        """Whether a member is said to have left."""
        gone = self._forgotten.get(member)
        return gone is not None and gone[1] >= MAX_NUMBER

    def recall(self, member: MemberId) -> None:
        """A member has proven that it is there: reports of its end are void.

        The next news of the member takes back that it is gone.
        """
        if member in self._forgotten:
            self._forgotten[member] = (0, 0)

    def forget(self, member: MemberId, gone: tuple[int, int]) -> None:
        """Drop a member, and believe only news later than `gone`."""
        self._drop(member)
        self._reconsider()
        self._forgotten.pop(member, None)
        self._forgotten[member] = gone
        if len(self._forgotten) > self._config.view_size:
            del self._forgotten[next(iter(self._forgotten))]

    def _drop(self, member: MemberId) -> None:
        if self._heard.pop(member, None) is not None:
            self._order.remove(member)
            self.view.remove(member)
        self._suspects.pop(member, None)
        self._doubted.pop(member, None)
        del self._entries[member]

    # Choosing

    def _rank(self, member: MemberId) -> int:
        """A member's place in this member's private order. A lower rank stays longer."""
        return -1 if member in self._keep else Stream(self._salt ^ member).bits()

    def _by_rank(self) -> list[tuple[int, MemberId]]:
        if not self._ranked:
            others = (other for other in self._entries if other != self._me)
            self._ranked = sorted((self._rank(other), other) for other in others)
        return self._ranked

    def _reconsider(self) -> None:
        """A member is gone or stays for another reason: there may be room for refused members."""
        self._ranked = []
        self._refused = set()
