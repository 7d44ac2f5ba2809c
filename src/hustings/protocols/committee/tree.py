"""How committees send to members: SEND-MESSAGE-DOWN-TREE and LEARN-PROCESSORS.

A node sends a word when all its members send it. A receiver takes what most of the node's members
sent, so it must know these members. Leaves are public. The members of an elected committee are
known to the participants of its election: so a node can send to its children in the tree, and they
understand it. Its monitors, the leaves under its neighbours, are told down the tree. The members of
the monitors, its guards, keep its list. Members of other committees of its layer, which will elect
together with it, learn the list in three rounds:

report  guards of B tell guards of A the members of B (see `Network._sources`).
ask     members of A ask all members of some monitors of A, which are drawn at random long after the
        adversary has chosen: it must own half of a whole monitoring set to keep A from learning.
answer  guards of A tell the members that they believe to be in A, and no others: strangers cannot
        flood them.

A list of members goes as their places in the list of all, in increasing order. Or it goes as marks
on the list of the participants of the election, where that list is public and marks are shorter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.bits import Bits, Reader, pack
from hustings.protocols.committee.lockstep import (
    Inbox,
    Outbox,
    Program,
    Script,
    Spoken,
    Stage,
    to_all,
    together,
)
from hustings.protocols.committee.network import CommitteeNetwork
from hustings.protocols.committee.roster import distinct

Members = tuple[MemberId, ...]
Value = tuple[int, ...]  # what is sent: a list of members, or a word
At = tuple[int, int]  # the subject, and the node that holds word of it

MARK = Bits(1, 1)  # the content of a question or a nod


def plurality(values: Iterable[Value | None]) -> Value | None:
    """Return the most frequent value; of several, the least. None does not count.

    >>> plurality([(3,), (1, 2), None, (3,)]), plurality([(2,), (1,)]), plurality([None])
    ((3,), (1,), None)
    """
    counts: dict[Value, int] = {}
    for value in values:
        if value is not None:
            counts[value] = counts.get(value, 0) + 1
    return min(counts, key=lambda value: (-counts[value], value)) if counts else None


class ListCodec(ABC):
    """How a committee's words are written, and read although they may be false."""

    @abstractmethod
    def write(self, value: Value) -> Bits:
        """Write the value for sending."""

    @abstractmethod
    def read(self, bits: Bits) -> Value | None:
        """Read the value that was sent; None if no good member could send it."""


class Lists(ListCodec):
    """Lists of at most this many members: their places in the list of all, in increasing order."""

    __slots__ = ("_everybody", "_most", "_position", "_width")

    def __init__(self, network: CommitteeNetwork, most: int) -> None:
        self._position = network.roster.position
        self._everybody = network.roster.members
        self._width = network.label
        self._most = most

    def write(self, value: Value) -> Bits:
        return pack((self._position[member], self._width) for member in value)

    def read(self, bits: Bits) -> Value | None:
        width = self._width
        if not width or bits.length % width or bits.length > self._most * width:
            return None
        reader = Reader(bits)
        places = [reader.take(width) for _ in range(bits.length // width)]
        if places and places[-1] >= len(self._everybody):
            return None
        if any(one >= two for one, two in pairwise(places)):
            return None
        return tuple(self._everybody[place] for place in places)


class Marks(ListCodec):
    """Some of the participants of a public election: one bit for each of them."""

    __slots__ = ("_most", "_voters")

    def __init__(self, voters: Members, most: int) -> None:
        self._voters = voters
        self._most = most

    def write(self, value: Value) -> Bits:
        return pack((int(member in value), 1) for member in self._voters)

    def read(self, bits: Bits) -> Value | None:
        if bits.length != len(self._voters) or bits.value.bit_count() > self._most:
            return None
        reader = Reader(bits)
        return tuple(member for member in self._voters if reader.take(1))


class Word(ListCodec):
    """One number of this many bits."""

    __slots__ = ("_width",)

    def __init__(self, width: int) -> None:
        self._width = width

    def write(self, value: Value) -> Bits:
        return Bits(value[0], self._width)

    def read(self, bits: Bits) -> Value | None:
        return (bits.value,) if bits.length == self._width else None


def say(stage: Stage, outbox: Outbox) -> Script[Inbox]:
    """Send this in one round, and return what was received."""
    heard = yield Spoken(stage, outbox)
    return heard


class Book:
    """What one member knows of the committees."""

    __slots__ = ("_known", "me", "network")

    def __init__(self, network: CommitteeNetwork, me: MemberId) -> None:
        self.network = network
        self.me = me
        self._known: dict[tuple[int, int], Members] = {}

    def note(self, layer: int, index: int, members: Members) -> None:
        """Store a committee that became known."""
        self._known[layer, index] = members

    def knows(self, layer: int, index: int) -> bool:
        """Whether this member knows a committee, even an empty one."""
        return layer == 0 or (layer, index) in self._known

    def committee(self, layer: int, index: int) -> Members:
        """Return a committee as far as known; an unknown one is empty."""
        if layer == 0:
            return self.network.roster.leaves[index]
        return self._known.get((layer, index), ())

    def seats(self, layer: int) -> tuple[int, ...]:
        """Return the known nodes of a layer in whose committees this member sits."""
        if layer == 0:
            return self.network.roster.leaves_of[self.me]
        return tuple(
            index
            for (where, index), members in sorted(self._known.items())
            if where == layer and self.me in members
        )

    def hears(
        self, inbox: Inbox, speakers: Members, own: Value | None, codec: ListCodec
    ) -> Value | None:
        """Return a committee's word: what most members send, perhaps including this one."""
        counts: dict[Bits, int] = {}
        for each in speakers:
            if each != self.me and each in inbox:
                said = inbox[each]
                counts[said] = counts.get(said, 0) + 1
        read: list[Value | None] = [own] if self.me in speakers else []
        for bits, count in counts.items():
            read += [codec.read(bits)] * count
        return plurality(read)


# Down the tree


def send_down(
    book: Book,
    layer: int,
    held: Mapping[At, Value],
    targets: Mapping[At, tuple[int, ...]],
    codec: ListCodec,
) -> Program[dict[At, Value]]:
    """Send word from nodes of a layer down to leaves; return what this member gets there.

    `targets` says for each subject and node of the layer to which leaves under it the word goes; it
    is public. `held` is what this member sends as one of those nodes. Takes `layer` rounds.
    """
    network = book.network
    for level in range(layer, 0, -1):
        edges = _edges(network, level, targets)
        width = len(network.layers[level - 1])
        scripts = {}
        for subject, parent, child in edges:
            speakers, receivers = book.committee(level, parent), book.committee(level - 1, child)
            if book.me not in speakers and book.me not in receivers:
                continue
            word = held.get((subject, parent)) if book.me in speakers else None
            outbox = {} if word is None else to_all(receivers, book.me, codec.write(word))
            stage = Stage("down", child, level, members=speakers)
            scripts[subject * width + child] = say(stage, outbox)
        heard = yield from together(scripts, 1)
        received: dict[At, Value] = {}
        for subject, parent, child in edges:
            if book.me in book.committee(level - 1, child):
                inbox = heard.get(subject * width + child, {})
                own = held.get((subject, parent))
                value = book.hears(inbox, book.committee(level, parent), own, codec)
                if value is not None:
                    received[subject, child] = value
        held = received
        targets = {
            (subject, child): _under(network, level - 1, child, targets[subject, parent])
            for subject, parent, child in edges
        }
    return dict(held)


def _under(
    network: CommitteeNetwork, layer: int, index: int, leaves: tuple[int, ...]
) -> tuple[int, ...]:
    """Return those of some leaves that are under a node."""
    under = network.layers[layer][index].leaves
    return tuple(leaf for leaf in leaves if leaf in under)


def _edges(
    network: CommitteeNetwork, level: int, targets: Mapping[At, tuple[int, ...]]
) -> list[tuple[int, int, int]]:
    """Return subject, parent and child for every edge of the tree that word takes at a level."""
    return [
        (subject, parent, child)
        for (subject, parent), leaves in sorted(targets.items())
        for child in network.layers[level][parent].children
        if _under(network, level - 1, child, leaves)
    ]


def to_monitors(network: CommitteeNetwork, layer: int) -> dict[At, tuple[int, ...]]:
    """Return to which leaves the nodes of `layer` - 1 send the result of `layer`."""
    found = {
        (node.index, each): _under(network, layer - 1, each, node.monitors)
        for node in network.layers[layer]
        for each in node.below
    }
    return {at: leaves for at, leaves in found.items() if leaves}


# Learning


def learn(book: Book, layer: int, held: Mapping[At, Value], rng: Stream) -> Program[None]:
    """Learn the committees of a layer that one's own will elect with. Takes three rounds.

    `held` is what this member, in a leaf, knows of the nodes that the leaf monitors.
    """
    lists = _kept(book, layer, held)
    told = yield from _report(book, layer, lists)
    asked = yield from _ask(book, layer, rng)
    yield from _answer(book, layer, lists, told, asked)


def _kept(book: Book, layer: int, held: Mapping[At, Value]) -> dict[int, Value]:
    """Return the lists that this member keeps as a guard: by node, what most leaves received."""
    heard: dict[int, list[Value]] = {}
    for (subject, leaf), value in sorted(held.items()):
        if leaf in book.network.layers[layer][subject].monitors:
            heard.setdefault(subject, []).append(value)
    kept = {subject: plurality(values) for subject, values in heard.items()}
    return {subject: value for subject, value in kept.items() if value is not None}


def _report(book: Book, layer: int, lists: Mapping[int, Value]) -> Program[dict[int, Value]]:
    """Exchange reports among guards; return what this member is told, by node."""
    network, me = book.network, book.me
    readers = network.reports[layer].get(me, {})
    sources = network.hearings[layer].get(me, {})
    scripts = {}
    for subject in sorted({**readers, **sources}):
        outbox: Outbox = {}
        if subject in readers and subject in lists:
            bits = _codec(book, layer, subject).write(lists[subject])
            outbox = to_all(readers[subject], me, bits)
        stage = Stage(
            "report",
            subject,
            layer,
            members=network.guards[layer][subject],
            about=network.marked(layer, subject),
        )
        scripts[subject] = say(stage, outbox)
    heard = yield from together(scripts, 1)
    told = dict(lists)
    for subject, speakers in sources.items():
        if subject not in told:
            codec = _codec(book, layer, subject)
            value = book.hears(heard.get(subject, {}), speakers, None, codec)
            if value is not None:
                told[subject] = value
    return told


class Asked(NamedTuple):
    """The members that this one asked on behalf of each node, and the members that asked it."""

    guards: dict[int, Members]
    clients: Mapping[int, Inbox]


def _ask(book: Book, layer: int, rng: Stream) -> Program[Asked]:
    """Ask some monitors of one's own committees, which no adversary could foresee."""
    network, me = book.network, book.me
    leaves, knobs = network.roster.leaves, network.knobs
    asked: dict[int, Members] = {}
    for node in book.seats(layer):
        monitors = network.layers[layer][node].monitors
        if network.relatives[layer][node]:
            chosen = rng.sample(monitors, min(knobs.monitors, len(monitors)))
            asked[node] = distinct(leaves[leaf] for leaf in chosen)
    scripts = {}
    for node, guards in enumerate(network.guards[layer]):
        if node in asked or me in guards:
            outbox = to_all(asked.get(node, ()), me, MARK)
            scripts[node] = say(Stage("ask", node, layer, members=guards), outbox)
    heard = yield from together(scripts, 1)
    return Asked(asked, heard)


def _answer(
    book: Book,
    layer: int,
    lists: Mapping[int, Value],
    told: Mapping[int, Value],
    asked: Asked,
) -> Program[None]:
    """Answer members of guarded nodes; members note the committees in the answers."""
    network, me = book.network, book.me
    relatives = network.relatives[layer]
    clients: dict[int, list[MemberId]] = {}
    for node, committee in lists.items():
        inbox = asked.clients.get(node, {})
        known = [each for each in committee if each in inbox]  # strangers get no answer
        for subject in relatives[node]:
            clients.setdefault(subject, []).extend(known)
    wanted: dict[int, list[Members]] = {}
    for node, guards in asked.guards.items():
        for subject in relatives[node]:
            wanted.setdefault(subject, []).append(guards)
    scripts = {}
    for subject in sorted({**clients, **wanted}):
        outbox: Outbox = {}
        if subject in clients and subject in told:
            bits = _codec(book, layer, subject).write(told[subject])
            outbox = to_all(distinct([clients[subject]]), me, bits)
        stage = Stage("answer", subject, layer, about=network.marked(layer, subject))
        scripts[subject] = say(stage, outbox)
    heard = yield from together(scripts, 1)
    for subject, asking in wanted.items():
        if book.knows(layer, subject):
            continue  # it took part in that election itself, and saw the agreed result
        codec = _codec(book, layer, subject)
        speakers = distinct(asking)
        learnt = book.hears(heard.get(subject, {}), speakers, told.get(subject), codec)
        if learnt is not None:
            book.note(layer, subject, learnt)


def _codec(book: Book, layer: int, subject: int) -> ListCodec:
    """Return names, or marks on a public list if shorter: both follow from the network."""
    most = book.network.layers[layer][subject].most
    marked = book.network.marked(layer, subject)
    return Marks(marked, most) if marked else Lists(book.network, most)
